"""Quantiles of a column from one pass, in memory that grows with the logarithm of its length (Munro and Paterson, 1980).

Values are kept in sorted buffers of k. Two buffers whose values stand for 2ˡ rows each become one whose values stand for 2ˡ⁺¹:
every second value of both together, the odd and the even ones in turn.

    |rank − rank of the answer| ≤ n L/(2k),   L = log₂(n/k) levels        exact while there are fewer than 2k values

The sketch of some rows merged with that of others is a sketch of all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SIZE = 2048


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
        self._loose = np.empty(0)  # fewer than a buffer, each standing for itself
        self._levels: list[NDArray[np.float64] | None] = []  # a sorted buffer each
        self._odd: list[bool] = []  # which half the next buffer made at a level keeps

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> QuantileSketch:
        """The sketch of some values."""
        sketch = cls()
        sketch.add(values)
        return sketch

    def add(self, values: NDArray[np.float64]) -> None:
        """Add values, none of them NaN."""
        self.n += len(values)
        pending = np.concatenate([self._loose, values])
        while len(pending) >= _SIZE:  # as many buffers as are one of a higher level, sorted at once
            level = int(np.log2(len(pending) // _SIZE))
            run, pending = pending[: _SIZE << level], pending[_SIZE << level :]
            self._push(np.sort(run)[(1 << level) // 2 :: 1 << level], level)
        self._loose = pending

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
        self.n += other.n - len(other._loose)
        self.add(other._loose)
        return self

    def median(self) -> float:
        """The value in the middle, the mean of both where there are two; NaN without values."""
        if not self.n:
            return float("nan")
        parts = [(self._loose, 1), *((b, 2**level) for level, b in enumerate(self._levels) if b is not None)]
        values = np.concatenate([part for part, _ in parts])
        ranks = np.concatenate([np.full(len(part), weight) for part, weight in parts])
        order = np.argsort(values, kind="stable")
        behind = np.cumsum(ranks[order])
        low, high = (
            values[order[np.searchsorted(behind, place, side="right")]] for place in ((self.n - 1) // 2, self.n // 2)
        )
        return float(0.5 * low + 0.5 * high)
