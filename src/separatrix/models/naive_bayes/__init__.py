"""Naive Bayes: counts and moments of one column at a time."""
