"""Logistic regression: fits, paths, cross-validation and inference."""
