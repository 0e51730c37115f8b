"""Inner loops over rows that lie on a device: CUDA C++ compiled at run time, Triton if asked for, else PyTorch.

engine.py decides which. All give the same sums to the precision that they state; the tests hold one against the other and
against NumPy.
"""
