"""The Gram matrix of few dense rows with many columns, and their squared lengths, in one pass.

    K = Σ_j z_j z_jᵀ over the columns z_j of X − 1cᵀ,      ‖xᵢ − c‖²

Products may be in single precision, at half the price; what they are worth is found when a point that they led to is proven on
the rows themselves. Lengths enter proofs, and are sums of double precision always.

**Complexity** O(n²d/2). **Passes over the data** one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.data.centred.dense_rows import scratch_rows
from separatrix.data.source import in_parallel

# Rows need no centre where it is no further away than this many times what they are from each other, squared.
_NEAR_CENTRE = 100.0
# Columns that are added up before their sums are.
_COLUMNS = 2048


def dense_gram(X: Any, centre: Float | None, single: bool = False) -> tuple[Float, Float]:
    """(n, n) inner products and (n,) squared lengths, of rows taken from a centre where there is one.

    Columns in parts, the same on any number of threads.
    """
    starts = range(0, X.shape[1], _COLUMNS)
    parts: dict[int, tuple[Any, Float]] = {}

    def of_columns(start: int) -> None:
        part = np.asarray(X[:, start : start + _COLUMNS], dtype=np.float64)
        part = part if centre is None else part - centre[start : start + _COLUMNS]
        if single:
            rounded = scratch_rows(1, -(-part.size // 2)).view(np.float32).ravel()[: part.size].reshape(part.shape)
            rounded[...] = part
            parts[start] = rounded @ rounded.T, np.einsum("ij,ij->i", part, part)
        else:
            product = part @ part.T
            parts[start] = product, product.diagonal()

    in_parallel(of_columns, starts)
    total, squares = np.zeros((len(X), len(X))), np.zeros(len(X))
    for start in starts:
        product, own = parts.pop(start)
        total += product
        squares += own
    return total, squares


def near_centre(gram: Float) -> bool:
    """Whether rows with this Gram matrix need no centre for it to have all digits."""
    middle = float(gram.mean())
    return 0.0 <= middle <= _NEAR_CENTRE * (float(gram.diagonal().mean()) - middle)


def from_the_mean(gram: Float) -> Float:
    """The Gram matrix of rows taken from their mean."""
    means = gram.mean(axis=0)
    found: Float = gram - means - (means - means.mean())[:, None]
    return found
