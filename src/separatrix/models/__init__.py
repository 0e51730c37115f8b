"""The estimators users import."""
