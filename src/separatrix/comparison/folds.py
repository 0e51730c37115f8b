"""The folds of a comparison: stratified by class, by group where rows belong together, or forward in time.

Forward in time each fold is predicted from the rows before it alone:

rows in the order of time    | learnt from only | fold 0 | fold 1 | … | fold k − 1 |

The rows before fold 0 are a share 1/(k + 1) of all, or more until every class has two of them. Rows of the same time stay
together, so nothing is learnt from rows of the moment that is predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from separatrix.data.block import Codes, Float
from separatrix.data.labels import shown

FOLDS = 5
"""How many, unless the table is small."""
_SMALL_TABLE, _FOLDS_OF_SMALL = 100, 10
_PERIODS = 10
NOT_JUDGED = -1
"""The fold of rows that are learnt from only."""
Fold = tuple[Codes, Codes]
"""The rows that are learnt from, and those that are left out."""


@dataclass(frozen=True)
class Related:
    """Rows that no fold may take apart, inner ones included: those of a group, or those of the past and of the future."""

    groups: Codes | None = None
    times: Float | None = None

    def __bool__(self) -> bool:
        return self.groups is not None or self.times is not None

    def take(self, rows: Codes) -> Related:
        """Of some rows."""
        groups, times = self.groups, self.times
        return Related(None if groups is None else groups[rows], None if times is None else times[rows])

    def together(self, y: Codes) -> Codes | None:
        """Groups for a calibration that leaves them out in turn: those given, or periods, rows of one time in one of them.

        A curve of two numbers may be learnt from the future, but not from the neighbours of the rows that it is judged by.
        No periods where a class is of one of them only.
        """
        if self.groups is not None or self.times is None:
            return self.groups
        periods = _PERIODS * np.searchsorted(np.sort(self.times), self.times) // len(self.times)
        lasting = all(len(np.unique(periods[y == k])) > 1 for k in np.unique(y))
        return periods if lasting else None


UNRELATED = Related()


def inner_folds(y: Codes, most: int, seed: int, related: Related = UNRELATED) -> list[Fold]:
    """Folds of training rows to choose a penalty by, fewer where a class is small; none where a class has a single row.

    Rows of a group share a fold, and with times every fold is predicted from the rows before it, as in the comparison itself.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.folds import Related, inner_folds
    >>> groups = np.array([0, 0, 1, 1, 2, 2])
    >>> folds = inner_folds(np.array([0, 1, 0, 1, 0, 1]), 3, 0, Related(groups=groups))
    >>> sorted(np.unique(groups[outside]).tolist() for _, outside in folds)
    [[0], [1], [2]]
    """
    classes = np.unique(y)
    folds = min(most, int(np.bincount(y)[classes].min()))
    if related.groups is not None:
        folds = min(folds, *(len(np.unique(related.groups[y == k])) for k in classes))
    if folds < 2:
        return []
    if related.times is not None:
        return _forward(related.times, np.searchsorted(classes, y), classes, folds)
    shuffled: dict[str, Any] = {"shuffle": True, "random_state": seed}
    splitter = StratifiedKFold(folds, **shuffled) if related.groups is None else StratifiedGroupKFold(folds, **shuffled)
    found = list(splitter.split(y, y, related.groups))
    # Groups may leave a fold without rows, or all rows of a class in one fold.
    return [one for one in found if len(one[1]) and len(np.unique(y[one[0]])) == len(classes)]


def _forward(times: Float, codes: Codes, classes: NDArray[Any], most: int) -> list[Fold]:
    """As many folds forward in time as the classes allow."""
    for k in range(most, 1, -1):
        try:
            numbers = forward_folds(times, codes, classes, k)[0][0]
        except ValueError:  # a class comes too late
            continue
        return [(np.flatnonzero(numbers < j), np.flatnonzero(numbers == j)) for j in range(int(numbers.max()) + 1)]
    return []


def forward_folds(times: Float, codes: Codes, classes: NDArray[Any], n_folds: int) -> tuple[Codes, list[str]]:
    """(1, n) numbers of the fold that predicts each row, and what is to be said of them.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.folds import forward_folds
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


def usual_folds(codes: Codes) -> int:
    """The number of folds where none is asked for: more for a small table, as far as its smallest class allows.

    A model of 4/5 of 30 rows is much worse than one of all of them, and what is found in the table looks like nothing.
    """
    if len(codes) >= _SMALL_TABLE:
        return FOLDS
    return int(np.clip(np.unique(codes, return_counts=True)[1].min(), FOLDS, _FOLDS_OF_SMALL))


def stratified_folds(
    codes: Codes, classes: NDArray[Any], n_folds: int, n_repeats: int, seed: int, groups: Codes | None = None
) -> tuple[Codes, list[str]]:
    """(n_repeats, n) numbers of the fold that leaves out each row, and a note where there had to be fewer folds."""
    if n_folds < 2 or n_repeats < 1:
        raise ValueError(f"cv={n_folds} and n_repeats={n_repeats}: give at least two folds and one repeat.")
    counts = np.bincount(codes, minlength=len(classes))
    rarest = int(counts.argmin())
    if counts[rarest] < 2:
        raise ValueError(
            f"Class {shown(classes[rarest])} has {counts[rarest]} row{'' if counts[rarest] == 1 else 's'}, which cannot be "
            "both learnt from and left out: give at least two rows of every class, or leave this one out: rare_class='drop' "
            "(--rare-class drop)."
        )
    notes, k = [], min(n_folds, int(counts[rarest]))
    if k < n_folds:
        notes.append(
            f"Class {shown(classes[rarest])} has {counts[rarest]} rows, so there are {k} folds instead of {n_folds}."
        )
    if groups is not None and len(np.unique(groups)) < k:
        raise ValueError(f"The rows are of {len(np.unique(groups))} groups, too few for {k} folds; take fewer folds.")
    found = np.empty((n_repeats, len(codes)), dtype=np.intp)
    for r in range(n_repeats):
        shuffled: dict[str, Any] = {"shuffle": True, "random_state": seed + r}
        splitter = StratifiedKFold(k, **shuffled) if groups is None else StratifiedGroupKFold(k, **shuffled)
        for number, (_, test) in enumerate(splitter.split(codes, codes, groups)):
            found[r, test] = number
        _check_groups(found[r], codes, classes)
    if groups is not None:
        notes.append(f"Rows of a group share a fold: {len(np.unique(groups))} groups in {k} folds.")
    return found, notes


def _check_groups(folds: Codes, codes: Codes, classes: NDArray[Any]) -> None:
    """Every class is left in the training part of every fold, which groups may prevent."""
    for number in range(int(folds.max()) + 1):
        absent = np.setdiff1d(np.arange(len(classes)), codes[folds != number])
        if len(absent):
            raise ValueError(
                f"All rows of class {shown(classes[absent[0]])} are in groups of one fold, which cannot be both learnt from "
                "and left out: take fewer folds, or other groups."
            )


def draw_folds(
    codes: Codes,
    classes: NDArray[Any],
    n_folds: int | None,
    n_repeats: int,
    seed: int,
    groups: Codes | None,
    times: Float | None,
) -> tuple[Codes, list[str]]:
    """The folds that are asked for, and what is to be said of them."""
    wanted = usual_folds(codes) if n_folds is None else n_folds
    if times is None:
        return stratified_folds(codes, classes, wanted, n_repeats, seed, groups)
    if groups is not None or n_repeats != 1:
        raise ValueError(
            "Folds forward in time are drawn once and not by group: give time without group and n_repeats."
        )
    return forward_folds(times, codes, classes, wanted)
