"""The dual: one coordinate per row."""
