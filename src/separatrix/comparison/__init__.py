"""A table in, a ranked comparison of the whole family out."""
