"""Quantiles of a column from one pass, in memory that grows with the logarithm of its length (Munro and Paterson, 1980).

Values are kept in sorted buffers of k. Two buffers whose values stand for 2ˡ rows each become one whose values stand for 2ˡ⁺¹:
every second value of both together, the odd and the even ones in turn.

    |rank − rank of the answer| ≤ n L/(2k),   L = log₂(n/k) levels        exact while there are fewer than 2k values

The sketch of some rows merged with that of others is a sketch of all. Deep inside a long column one value of every 2ˡ is drawn
and stands for them (`drawn`): n/2ˡ draws, one from each run, move the rank of the answer by about ½√(2ˡn) rows. With 8 in the
rows from 2¹⁸ on and 64 in those from 2²¹ on that is less than 0.3 % of n.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SIZE = 2048
_DRAWN, _SELDOM = 3, 6  # of 2³ values one, of 2⁶
_LONGER = 8  # times as deep inside the column


def draw_level(start: int, long: int) -> int:
    """Of how many values one is drawn, as a power of two, in a run that begins at this row; 0 before row `long`."""
    return 0 if start < long else _DRAWN if start < _LONGER * long else _SELDOM


class QuantileSketch:
    """The distribution of the values seen so far.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.tables.quantiles import QuantileSketch
    >>> sketch = QuantileSketch.of(np.arange(1001.0))
    >>> sketch.merge(QuantileSketch.of(np.array([2000.0, 3000.0]))).median()
    501.0
    """

    def __init__(self) -> None:
        self.n = 0
        self._loose: list[NDArray[np.float64]] = []  # by level: fewer than a buffer
        self._levels: list[NDArray[np.float64] | None] = []  # a sorted buffer each
        self._odd: list[bool] = []  # which half the next buffer made at a level keeps

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> QuantileSketch:
        """The sketch of some values."""
        sketch = cls()
        sketch.add(values)
        return sketch

    @classmethod
    def drawn(cls, values: NDArray[np.float64], marks: NDArray[np.uint64], level: int = _DRAWN) -> QuantileSketch:
        """The sketch of one value of every 2ˡᵉᵛᵉˡ, which the last bits of the marks draw; those left over count too."""
        sketch, step = cls(), 1 << level
        whole = len(values) >> level << level
        at = np.arange(0, whole, step) + (marks[:whole:step] % np.uint64(step)).astype(np.intp)
        sketch.add(values[at], level)
        sketch.add(values[whole:])
        return sketch

    def add(self, values: NDArray[np.float64], level: int = 0) -> None:
        """Add values, none of them NaN, each of which stands for 2ˡᵉᵛᵉˡ."""
        self.n += len(values) << level
        while len(self._loose) <= level:
            self._loose.append(np.empty(0))
        pending = np.concatenate([self._loose[level], values])
        while len(pending) >= _SIZE:  # as many buffers as are one of a higher level, sorted at once
            more = int(np.log2(len(pending) // _SIZE))
            run, pending = pending[: _SIZE << more], pending[_SIZE << more :]
            self._push(np.sort(run)[(1 << more) // 2 :: 1 << more], level + more)
        self._loose[level] = pending

    def _push(self, buffer: NDArray[np.float64], level: int) -> None:
        while len(self._levels) <= level:
            self._levels.append(None)
            self._odd.append(False)
        held = self._levels[level]
        if held is None:
            self._levels[level] = buffer
            return
        self._levels[level], odd = None, self._odd[level]
        self._odd[level] = not odd
        self._push(np.sort(np.concatenate([held, buffer]), kind="stable")[int(odd) :: 2], level + 1)

    def merge(self, other: QuantileSketch) -> QuantileSketch:
        """Add another's values to this, in place."""
        for level, buffer in enumerate(other._levels):
            if buffer is not None:
                self._push(buffer, level)
        self.n += other.n - sum(len(loose) << level for level, loose in enumerate(other._loose))
        for level, loose in enumerate(other._loose):
            self.add(loose, level)
        return self

    def median(self) -> float:
        """The value in the middle, the mean of both where there are two; NaN without values."""
        if not self.n:
            return float("nan")
        held = (*enumerate(self._loose), *enumerate(self._levels))
        parts = [(part, 2**level) for level, part in held if part is not None]
        values = np.concatenate([part for part, _ in parts])
        ranks = np.concatenate([np.full(len(part), weight) for part, weight in parts])
        order = np.argsort(values, kind="stable")
        behind = np.cumsum(ranks[order])
        low, high = (
            values[order[np.searchsorted(behind, place, side="right")]] for place in ((self.n - 1) // 2, self.n // 2)
        )
        return float(0.5 * low + 0.5 * high)
