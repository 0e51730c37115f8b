"""Hessian-vector products of sparse rows, each row read once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]  # numba ships no types
def add_curved(data: Any, indices: Any, indptr: Any, weights: Any, v: Any, out: Any) -> None:
    """out += Xᵀ (weights · (X v)) for the rows of a CSR matrix."""
    for i in range(len(weights)):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * v[np.uint64(indices[p])]  # unsigned: no test for an index that counts from the end
        total *= weights[i]
        for p in range(indptr[i], indptr[i + 1]):
            out[np.uint64(indices[p])] += total * data[p]
