"""The dual: one coordinate a row."""
