"""Loops over the entries of sparse rows: losses, steps of Newton's method, products."""
