"""Products of rows whose columns are kept as codes of their levels: sums without the encoded matrix."""
