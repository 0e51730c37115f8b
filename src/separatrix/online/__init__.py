"""Learning row by row, on mistakes."""
