"""Least squares with a penalty: closed forms on normal equations and row factors, and conjugate gradients."""
