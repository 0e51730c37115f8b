"""Columns of sparse rows that are all zeros: under a penalty about 0 their coefficients are 0, and the fit does without them.

No score and no sum over the rows has a part of theirs, and neither has the penalty at 0: a proof for the other columns is one
for all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.data import Source
from separatrix.data.arrays import SparseSource
from separatrix.data.block import Float


def without_empty_columns(source: Source) -> tuple[Source, NDArray[np.intp] | None]:
    """The rows with those columns alone that have entries, and which these are; as they are where that is not worth it."""
    found = source.without_empty_columns() if isinstance(source, SparseSource) else None
    return found or (source, None)


def with_zeros(coef: Float, columns: NDArray[np.intp], n_features: int) -> Float:
    """(K, d) coefficients of all columns, of those of `columns`."""
    every = np.zeros((len(coef), n_features))
    every[:, columns] = coef
    return every
