"""Inner loops compiled by numba: pure functions of arrays, imported only where the data are large enough to pay for it."""
