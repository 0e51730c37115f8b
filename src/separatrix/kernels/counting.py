"""Sums of sparse rows by class, one pass over the stored entries."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]  # numba ships no types
def add_rows_by_class(data: Any, indices: Any, indptr: Any, codes: Any, weights: Any, out: Any) -> Any:
    """out[codes[i], j] += weights[i] · x[i, j] over the stored entries of a CSR matrix; the least of them, or 0."""
    least = 0.0
    for i in range(len(codes)):
        row = out[codes[i]]
        weight = weights[i]
        for p in range(indptr[i], indptr[i + 1]):
            row[indices[p]] += weight * data[p]
            least = min(least, data[p])
    return least
