"""Newton's method for logistic regressions whose rows are in memory at once and few: see rows.py."""
