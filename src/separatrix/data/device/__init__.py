"""Rows on a device: PyTorch tensors, and CuPy arrays read as such, where they lie."""
