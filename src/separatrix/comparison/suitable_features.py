"""Which encoded columns a discriminant can read, and what is said of those that it cannot.

Gaussian of each class     at a column that is 1 with share p in class k the score is −(1 − p)/(2p): 50 below the others for
p = 1 %, 5 for p = 10 %. So an indicator must be 1, and be 0, in a tenth of the rows of each class.
pooled covariance          a column that is constant within every class, and differs between them, has no variance to
measure the difference by: it separates the classes by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float
from separatrix.tables.findings import joined

_LEAST_SHARE, _LEAST_ROWS = 0.1, 5
_NAMED = 3
# What rounding leaves of a constant column, of its spread.
_CONSTANT = 1e-10


def gaussian_in_classes(X: Float, codes: Codes) -> NDArray[np.bool_]:
    """(p,) whether a column is no indicator, or one that varies enough in every class; a constant one does not."""
    low, high = X.min(axis=0), X.max(axis=0)
    two = np.flatnonzero(((low == X) | (high == X)).all(axis=0))
    kept = np.ones(X.shape[1], dtype=bool)
    for k in np.unique(codes):
        rows = X[np.ix_(codes == k, two)]
        ones = (rows == high[two]).sum(axis=0)
        least = max(min(_LEAST_ROWS, len(rows) / 4), _LEAST_SHARE * len(rows))
        kept[two] &= (ones >= least) & (len(rows) - ones >= least)
    return kept


def constant_within_classes(X: Float, codes: Codes) -> NDArray[np.bool_]:
    """(p,) whether a column has one value in each class, and not the same in all."""
    found = X.min(axis=0) < X.max(axis=0)
    spread = np.abs(X).max(axis=0)
    for k in np.unique(codes):
        at = np.flatnonzero(found)
        rows = X[np.ix_(codes == k, at)]
        found[at] = rows.max(axis=0) - rows.min(axis=0) <= _CONSTANT * spread[at]
    return found


def unsuited(names: Sequence[str]) -> str:
    """What is said where a model does without columns that are no Gaussian."""
    which = listed(names)
    return (
        f"It does without {which}: a Gaussian of each class needs every value of an indicator in a tenth of the rows of every "
        "class."
    )


def unread(names: Sequence[str]) -> str:
    """What is said where a model reads columns as they are, and some are free text."""
    return f"It does without {listed(names)}: it reads columns as they are, not the words of free text."


def separating(names: Sequence[str]) -> str:
    """What is said where columns are constant within each class."""
    one = len(names) == 1
    return (
        f"{listed(names)} {'is' if one else 'are'} constant within each class and {'differs' if one else 'differ'} between "
        f"classes: {'it separates' if one else 'they separate'} them without a mistake, and a covariance within classes cannot "
        f"measure by how much. Remove {'it' if one else 'them'} if the outcome is known by {'it' if one else 'them'}, or use "
        "another family."
    )


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = [repr(name) for name in names[:_NAMED]]
    more = len(names) - len(shown)
    return joined([*shown, *([f"{more} more"] if more else [])])
