"""Inner products and distances of sparse rows, as dense matrices.

    out_ik = Σⱼ x_ij z_kj,   the columns of Z being at hand:  for every entry of x, those of Z in its column
    d = |x|² + |z|² − 2xᵀz

A row of `out` stays in cache while it is filled, and no sparse matrix is made of what is nowhere zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

_EPS = float(np.finfo(np.float64).eps)


@compiled()
def fill_dots(data: Any, indices: Any, indptr: Any, other: Any, rows: Any, starts: Any, out: Any) -> None:
    """out = XZᵀ for X in CSR and Z in CSC, its entries `other` in the `rows` of each column from starts[j] on."""
    for i in range(len(indptr) - 1):
        line = out[i]
        line[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x, j = np.float64(data[p]), np.uint64(indices[p])  # unsigned: no test for an index that counts from the end
            for q in range(starts[j], starts[j + 1]):
                line[np.uint64(rows[q])] += x * other[q]


@compiled()
def fill_exponents(dots: Any, left: Any, right: Any, gamma: Any) -> None:
    """−γ‖x − z‖² in the place of the inner products, from squared lengths; rows that differ by rounding alone are the same."""
    for i in range(len(left)):
        line, own = dots[i], left[i]
        for k in range(len(right)):
            both = own + right[k]
            distance = both - 2.0 * line[k]
            line[k] = -gamma * distance if distance > 4.0 * _EPS * both else 0.0
