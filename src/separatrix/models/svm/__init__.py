"""Support vector machines, linear and with kernels."""
