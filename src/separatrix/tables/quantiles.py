"""Quantiles of a column from one pass, in bounded memory: a sample of its rows by the hash of their places.

    the value of row i is held  ⇔  h(i) < 2⁶⁴⁻ᴸ                 L the least level at which no more than k values are held

Whether a value is held depends on its place and on how many there are: the same of all rows however these are cut into runs,
and whatever they are stored in. Exact up to k values; beyond, the m held ones (about k/2 to k) are a random sample, the rank of
whose middle is off by about n/(2√m): 0.4 to 0.6 % of n.

A run by itself would hold k values, most of which the others make superfluous. Levels only grow when runs are merged, so a
level that any of them has reached spares the runs that come later the rest (`Reached`); what is held of all is the same.

Reference: Gibbons and Tirthapura (2001), Estimating simple functions on the union of data streams, SPAA.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIZE = 1 << 14
"""Values that a sketch of all rows holds, at most."""


class Reached:
    """The level that the sketches of a column have reached, for those of its later rows."""

    def __init__(self) -> None:
        self.level = 0


class Marks:
    """Hashes of the places of a run's rows: which rows are held at a level, looked up once for all columns."""

    def __init__(self, marks: NDArray[np.uint64]) -> None:
        self.marks = marks
        self._held: dict[int, tuple[NDArray[np.intp], NDArray[np.uint64]]] = {}

    def held(self, level: int) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
        """The rows whose values are held at a level, and their hashes."""
        if level not in self._held:
            at = np.flatnonzero(self.marks < _limit(level))
            self._held[level] = at, self.marks[at]
        return self._held[level]


def _limit(level: int) -> np.uint64:
    return np.uint64(2**64 - 1 if level == 0 else 1 << (64 - level))


class QuantileSketch:
    """The distribution of the values seen so far.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.tables.encoding.encoding_sums import hashed_places
    >>> from separatrix.tables.quantiles import Marks, QuantileSketch
    >>> sketch = QuantileSketch.of(np.arange(1001.0), Marks(hashed_places(0, 1001)))
    >>> sketch.merge(QuantileSketch.of(np.array([2000.0, 3000.0]), Marks(hashed_places(1001, 2)))).median()
    501.0
    """

    def __init__(self, reached: Reached | None = None) -> None:
        self._reached = Reached() if reached is None else reached
        self._level, self._n_held = 0, 0
        self._held: list[tuple[NDArray[np.float64], NDArray[np.uint64]]] = []  # values, and the hashes of their places

    @classmethod
    def of(cls, values: NDArray[np.float64], marks: Marks, reached: Reached | None = None) -> QuantileSketch:
        """The sketch of a run of values, NaN for a hole."""
        sketch = cls(reached)
        sketch._level = sketch._reached.level
        at, own = marks.held(sketch._level)
        drawn = values[at]
        seen = ~np.isnan(drawn)
        sketch._add(drawn, own) if seen.all() else sketch._add(drawn[seen], own[seen])
        sketch._sift(SIZE)
        return sketch

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_reached": Reached()}  # in another process, or later, there are other rows to come

    def merge(self, other: QuantileSketch) -> QuantileSketch:
        """Add another's values to this, in place."""
        self._level = max(self._level, other._level)
        for values, marks in other._held:
            self._add(values, marks)
        self._sift(2 * SIZE)  # not every time
        return self

    def _add(self, values: NDArray[np.float64], marks: NDArray[np.uint64]) -> None:
        self._held.append((values, marks))
        self._n_held += len(values)

    def _sift(self, room: int) -> None:
        """Where more values are held than there is room for, hold those of the least level at which they are few enough."""
        if self._n_held <= room:
            return
        values, marks = (np.concatenate(parts) for parts in zip(*self._held, strict=True))
        kept = marks < _limit(self._level)
        while kept.sum() > SIZE:
            self._level += 1
            kept = marks < _limit(self._level)
        self._held, self._n_held = [(values[kept], marks[kept])], int(kept.sum())
        self._reached.level = max(self._reached.level, self._level)

    def median(self) -> float:
        """The value in the middle, the mean of both where there are two; NaN without values."""
        self._sift(SIZE)
        held = [values[marks < _limit(self._level)] for values, marks in self._held]
        return float(np.median(np.concatenate(held))) if held and any(map(len, held)) else float("nan")
