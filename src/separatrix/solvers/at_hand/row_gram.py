"""Products with a dense array in memory, on all threads: vX, Xw, and the Gram matrix of few rows with many columns.

    K = Σ z zᵀ   over the columns z of Z (n, d), in single or double precision; sums of large parts are double

Parts are cut by the shape alone and added in their order: the same bits on any number of threads.

**Complexity** O(nd), and O(n²d/2) for K. **Passes over the data** one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.data.centred.dense_rows import scratch_rows
from separatrix.data.source import in_parallel, ordered

# Entries of a part, which are copied to be multiplied; columns whose products cost so much more than to add up
# the result, products that are worth a thread, and into how many sums the columns are cut at most.
_ENTRIES = 1 << 19
_COLUMNS, _PRODUCTS, _SUMS = 1000, 20_000_000, 16
# Entries that are worth a thread. Unlike np.dot, matmul does not copy a part of an array.
_WORTH_A_THREAD = 1 << 20


def combined_rows(v: Float, X: NDArray[Any]) -> Float:
    """(k, d) vX of a matrix v (k, n)."""
    product, step = np.empty((len(v), X.shape[1])), max(64, _WORTH_A_THREAD // max(1, len(X)))

    def of_columns(start: int) -> None:
        at = slice(start, start + step)
        np.matmul(v, X[:, at].astype(np.float64, copy=False), out=product[:, at])

    in_parallel(of_columns, range(0, X.shape[1], step))
    return product


def row_scores(X: NDArray[Any], w: Float) -> Float:
    """(n,) Xw."""
    product, step = np.empty(len(X)), max(1, _WORTH_A_THREAD // max(1, X.shape[1]))

    def of_rows(start: int) -> None:
        at = slice(start, start + step)
        np.matmul(X[at].astype(np.float64, copy=False), w, out=product[at])

    in_parallel(of_rows, range(0, len(X), step))
    return product


def row_gram(X: NDArray[Any], dtype: np.dtype[Any], fill: Callable[[slice, NDArray[Any]], None]) -> Float:
    """K (n, n), float64, of what a call writes for a slice of the columns of X (n, d) into an array of a type."""
    (n, d), across = X.shape, X.strides[0] >= X.strides[1]
    width = max(_COLUMNS, -(-d // _SUMS), _PRODUCTS // max(1, n) ** 2)
    step = max(64, _ENTRIES // max(1, n))
    step = -(-width // -(-width // step))  # even parts

    def of_columns(start: int) -> Any:
        total: Any = None
        for a in range(start, min(start + width, d), step):
            at = slice(a, min(a + step, start + width, d))
            room = scratch_rows(n, at.stop - a).reshape(-1).view(dtype)[: n * (at.stop - a)]
            part = room.reshape(n, -1, order="C" if across else "F")
            fill(at, part)
            product = part @ part.T  # BLAS makes half of it, as SciPy's call would, which holds up the other threads
            total = product if total is None else np.add(total, product, out=total)
        return total

    K = np.zeros((n, n))
    for part in ordered(of_columns, range(0, d, width)):
        K += part
    return K
