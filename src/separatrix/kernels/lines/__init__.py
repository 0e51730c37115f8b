"""Sums over rows that are turned into lines of their columns."""
