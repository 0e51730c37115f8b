"""Products with the kernel matrix of the training rows, a block at a time and never whole unless it fits.

    scores[rows] += K[rows, which] · change

Blocks of 256 rows by 512 columns stay in cache from the product of matrices to the exponential to the sum. Where a value
costs more than reading it from memory, columns of K are kept, as many as the bound on memory allows; those unused for longest
make room. Values are of single precision until `sharpen` is called.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.kernels import Kernel
from separatrix.dual.points import Points

Index = NDArray[np.intp]

_ROWS, _COLUMNS, _TASK = 256, 512, 4096


class Gram:
    """The kernel matrix of the training rows.

    Parameters
    ----------
    kernel : Kernel
    points : Points
    memory : float
        Bytes that may be kept.
    single : bool
        Whether single precision serves to begin with.
    """

    def __init__(self, kernel: Kernel, points: Points, memory: float, single: bool) -> None:
        self._kernel, self.points, self._memory = kernel, points, memory
        self.dtype: DTypeLike = np.float64
        self._whole: Float | None = None
        self._kept: _Kept | None = None
        n = len(points)
        kernel.prepare(points)
        if 8.0 * n * n <= memory:
            self._whole = np.empty((n, n))
            self._fill(self._whole, np.arange(n), np.arange(n))
            return
        if single and kernel.single_serves(points):
            self.dtype = np.float32
        if not kernel.cheap(points):
            self._kept = _Kept(n, memory, self.dtype)

    def restricted(self, rows: Index) -> Gram:
        """The matrix of some of the rows; all values must be at hand."""
        assert self._whole is not None
        part = Gram.__new__(Gram)
        part._kernel, part.points, part._memory, part.dtype = self._kernel, self.points, self._memory, np.float64
        part._whole, part._kept = self._whole[np.ix_(rows, rows)], None
        return part

    def positive(self) -> bool:
        """Whether the matrix is positive semi-definite up to rounding; all values must be at hand."""
        assert self._whole is not None
        shifted = 0.5 * (self._whole + self._whole.T)
        shifted[np.diag_indices(len(shifted))] += 1e-10 * float(np.abs(shifted).max(initial=0.0))
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            return False
        return True

    def sharpen(self) -> None:
        """From now on, double precision."""
        self.dtype = np.float64
        if self._kept is not None:
            self._kept = _Kept(len(self.points), self._memory, self.dtype)

    def square(self, which: Index) -> Float:
        """K of a few rows among themselves, in double precision."""
        if self._whole is not None:
            return self._whole[np.ix_(which, which)]
        part = self.points.take(which)
        values = np.empty((len(which), len(which)))

        def fill(start: int) -> None:
            rows = slice(start, start + _ROWS)
            values[rows] = self._kernel.between(part.take(rows), part)

        in_parallel(fill, range(0, len(which), _ROWS))
        return values

    def add(self, scores: Float, rows: Index | None, which: Index, change: Float, exact: bool = False) -> None:
        """scores[rows] += K[rows, which] · change, all rows when `rows` is None; `exact` for double precision."""
        n, dtype = len(scores) if rows is None else len(rows), np.float64 if exact else self.dtype
        slots = None if self._kept is None or exact else self._fetch(which)
        stored = self._whole is not None or slots is not None
        parts = [
            (self.points.take(which[at : at + _COLUMNS]), change[at : at + _COLUMNS].astype(dtype))
            for at in range(0, 0 if stored else len(which), _COLUMNS)
        ]

        def one(start: int) -> None:
            for at in range(start, min(start + _TASK, n), _ROWS):
                cut = slice(at, min(at + _ROWS, n))
                here = cut if rows is None else rows[cut]
                if self._whole is not None:
                    scores[here] += self._whole[here][:, which] @ change
                elif slots is not None and self._kept is not None:
                    scores[here] += change @ self._kept.read(slots, here)
                else:
                    left = self.points.take(here)
                    for right, coefficients in parts:
                        scores[here] += self._kernel.between(left, right, dtype) @ coefficients

        if len(which):
            in_parallel(one, range(0, n, _TASK))

    def _fetch(self, which: Index) -> Index | None:
        """Where the columns are kept, once they are; None when there are too many to keep at once."""
        assert self._kept is not None
        if len(which) > self._kept.room:
            return None
        missing, free = self._kept.claim(which)
        self._fill(self._kept.values, free, missing)
        return self._kept.slots[which]

    def _fill(self, values: NDArray[Any], slots: Index, which: Index) -> None:
        """values[slots] = K[which, :]."""

        def fill(start: int) -> None:
            at = slice(start, start + _ROWS)
            left, there = self.points.take(which[at]), slots[at]
            for column in range(0, len(self.points), _TASK):
                cut = slice(column, column + _TASK)
                values[there, cut] = self._kernel.between(left, self.points.take(cut), values.dtype)

        in_parallel(fill, range(0, len(which), _ROWS))


class _Kept:
    """Columns of K in memory; those unused for longest make room for others."""

    def __init__(self, n: int, memory: float, dtype: DTypeLike) -> None:
        self.room = min(n, int(memory // (np.dtype(dtype).itemsize * n)))
        self.values = np.empty((self.room, n), dtype)
        self.slots = np.full(n, -1, dtype=np.intp)
        self._owner, self._used = np.full(self.room, -1, dtype=np.intp), np.zeros(self.room, dtype=np.int64)
        self._clock = 0

    def claim(self, which: Index) -> tuple[Index, Index]:
        """Which columns are missing, and the slots that are theirs from now on."""
        self._clock += 1
        here = self.slots[which]
        self._used[here[here >= 0]] = self._clock
        missing = which[here < 0]
        free = np.argsort(self._used, kind="stable")[: len(missing)]
        evicted = self._owner[free]
        self.slots[evicted[evicted >= 0]] = -1
        self._owner[free], self._used[free], self.slots[missing] = missing, self._clock, free
        return missing, free

    def read(self, slots: Index, rows: slice | Index) -> NDArray[Any]:
        """(columns, rows) values."""
        if isinstance(rows, slice):
            part: NDArray[Any] = self.values[slots, rows]
            return part
        return self.values[np.ix_(slots, rows)]
