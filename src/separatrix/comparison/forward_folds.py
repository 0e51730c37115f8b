"""Folds forward in time: each is predicted from the rows before it alone.

rows in the order of time    | learnt from only | fold 0 | fold 1 | … | fold k − 1 |

The rows before fold 0 are a share 1/(k + 1) of all, or more until every class has two of them. Rows of the same time stay
together, so nothing is learnt from rows of the moment that is predicted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float
from separatrix.data.labels import shown

NOT_JUDGED = -1
"""The fold of rows that are learnt from only."""


def forward_folds(times: Float, codes: Codes, classes: NDArray[Any], n_folds: int) -> tuple[Codes, list[str]]:
    """(1, n) numbers of the fold that predicts each row, and what is to be said of them.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.forward_folds import forward_folds
    >>> folds, _ = forward_folds(np.array([5.0, 1, 2, 3, 4, 6]), np.array([1, 0, 1, 0, 1, 0]), np.array(["a", "b"]), 2)
    >>> folds.tolist()
    [[0, -1, -1, -1, -1, 1]]
    """
    if n_folds < 2:
        raise ValueError(f"cv={n_folds}: give at least two folds.")
    order = np.argsort(times, kind="stable")
    sorted_times, n = times[order], len(times)
    start = n // (n_folds + 1)
    for k in range(len(classes)):
        own = np.flatnonzero(codes[order] == k)
        if len(own) < 2 or own[1] + 1 > n - n_folds:
            raise ValueError(
                f"Class {shown(classes[k])} has no two rows early enough in time to learn from before {n_folds} folds are "
                "predicted: take fewer folds, or drop this class."
            )
        start = max(start, int(own[1]) + 1)
    # Every cut is at the first row of its time; the first one moves on instead, for its rows of every class.
    cuts = np.linspace(start, n, n_folds + 1)[:-1].round().astype(np.intp)
    begins = np.searchsorted(sorted_times, sorted_times[cuts], side="left")
    if begins[0] < start:
        begins[0] = np.searchsorted(sorted_times, sorted_times[start], side="right")
    begins = np.unique(np.maximum(begins, begins[0]))
    begins = begins[begins < n]
    if len(begins) < 2:
        raise ValueError("The rows are of too few times to learn from some and to predict later ones in two folds.")
    found = np.full((1, n), NOT_JUDGED, dtype=np.intp)
    found[0, order] = np.searchsorted(begins, np.arange(n), side="right") - 1
    notes = [
        f"Every fold is predicted from the rows before it in time. The first {begins[0]} rows are learnt from only: scores, "
        f"tables and pictures are of the {n - begins[0]} rows after them."
    ]
    if len(begins) < n_folds:
        notes.append(f"Rows of the same time stay together, so there are {len(begins)} folds instead of {n_folds}.")
    return found, notes
