"""Least squares and ridge, for real targets and for classes."""
