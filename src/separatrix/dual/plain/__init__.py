"""Small machines in NumPy: steps of pairs of rows, and Newton's on those that are free."""
