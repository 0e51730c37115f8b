"""Products of matrices in compiled loops, a tile in registers at a time."""
