"""Products of a sparse matrix and of its transpose, on the threads where it is large.

    (Xw)ₖ = Xₖw          Xᵀr = Σₖ Xₖᵀrₖ,  added up in order

Xₖ are parts of the rows with about as many entries each; how many depends on the matrix alone, and so do the sums. A sum of c
entries of a column passes through c additions at most, as it does in one piece: a part without an entry adds zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.block import Float
from separatrix.data.source import in_parallel

# Entries of a part, and per column, that are worth a thread's while; parts at most.
_ENTRIES, _PER_COLUMN, _MOST = 500_000, 8, 16


class SparseParts:
    """The rows of a CSR array, in parts that share its memory."""

    def __init__(self, X: Any) -> None:
        (n, d), count = X.shape, min(_MOST, X.nnz // _ENTRIES, X.nnz // (_PER_COLUMN * max(1, X.shape[1])))
        self._n = n
        if count < 2:
            self._cuts, self._rows = [slice(0, n)], [X]
        else:
            ends = np.searchsorted(X.indptr, np.arange(1, count) * (X.nnz / count)).tolist()
            self._cuts = [slice(a, b) for a, b in zip([0, *ends], [*ends, n], strict=True)]
            self._rows = [_part(X, cut, d) for cut in self._cuts]
        self._columns = [rows.T for rows in self._rows]
        self.count = len(self._cuts)

    def scores(self, w: Float) -> Float:
        """Xw, for w of shape (d,) or (d, K)."""
        if self.count == 1:
            return np.asarray(self._rows[0] @ w, dtype=np.float64)
        found = np.empty((self._n, *w.shape[1:]))

        def fill(k: int) -> None:
            found[self._cuts[k]] = self._rows[k] @ w

        in_parallel(fill, range(self.count))
        return found

    def products(self, r: Float) -> Float:
        """Xᵀr, for r of shape (n,) or (n, K)."""
        if self.count == 1:
            return np.asarray(self._columns[0] @ r, dtype=np.float64)
        found: dict[int, Float] = {}

        def add(k: int) -> None:
            found[k] = np.asarray(self._columns[k] @ r[self._cuts[k]], dtype=np.float64)

        in_parallel(add, range(self.count))
        total = found[0]
        for k in range(1, self.count):
            total += found[k]
        return total


def _part(X: Any, cut: slice, n_columns: int) -> Any:
    first, last = int(X.indptr[cut.start]), int(X.indptr[cut.stop])
    rows = (X.data[first:last], X.indices[first:last], X.indptr[cut.start : cut.stop + 1] - X.indptr[cut.start])
    return sp.csr_array(rows, shape=(cut.stop - cut.start, n_columns))
