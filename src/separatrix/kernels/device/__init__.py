"""Inner loops over rows that lie on a device: CUDA C++ compiled at run time, PyTorch's own operations where that cannot be had.

Both give the same sums to the precision that they state; the tests hold one against the other and against NumPy.
"""
