"""Products with the kernel matrix of the training rows, a block at a time and never in full unless it fits.

    scores[rows] += K[rows, which] · change

Blocks of half a megabyte stay in cache from the product of matrices to the exponential to the sum. Where a value
costs more than reading it from memory, columns of K are kept, as many as the bound on memory allows; those unused for longest
make room. Values are of single precision until `sharpen` is called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import local
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.kernels import Kernel, RBFKernel
from separatrix.dual.long_rows import long_products
from separatrix.dual.points import Points
from separatrix.dual.rounding import kernel_errors, score_errors

Index = NDArray[np.intp]

_ROWS, _COLUMNS, _PIECE, _TASK = 256, 512, 512, 2048
# Rows of a stripe of the whole matrix at least and at most, how many stripes there are in between, and the multiplications up
# to which a second thread is not worth waking.
_STRIPE, _STRIPES, _ALONE = (64, 256), 12, 2e7
# Columns of a sum in double precision, and the terms of it that may be added one after the other.
_EXACT, _RUN = 256, 64
# Columns of a panel of radial kernels (kernels/products/panels.py); the share of the memory for the left side of a product.
RADIAL_PART, _SHARE = 128, 0.25
# Rows up to which all values are worth keeping although they are as quickly computed as read.
_QUICK = 3000
_SCORE = 10  # multiplications that the update of one score is worth
# Entries of a dense product that take the time of one of a sparse product.
_FILLED = 30
_rooms = local()
# The room of two whole matrices is kept from fit to fit, up to so many values each: the system clears fresh memory, which
# costs more than computing values.
_SPARE = 1 << 22
_spare: list[Float] = []


def _room(rows: int, columns: int, dtype: DTypeLike) -> NDArray[Any]:
    """Room for a block of values, kept by the thread."""
    key = np.dtype(dtype).char
    held: NDArray[Any] | None = getattr(_rooms, key, None)
    if held is None or held.size < rows * columns:
        held = np.empty(rows * columns, dtype)
        setattr(_rooms, key, held)
    return held[: rows * columns].reshape(rows, columns)


def product_values(kernel: Kernel, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Values from the two sides of their product, in room of the thread that the next call takes again."""
    # Fresh memory for every block would cost as much as filling it.
    return kernel.finish(np.matmul(left, right, out=_room(len(left), right.shape[1], left.dtype)))


def radial_sums(
    kernel: RBFKernel, vectors: Points, coefficients: Float, dtype: DTypeLike
) -> Callable[[NDArray[Any]], Float]:
    """The function left sides of rows, of `dtype` → (n, m) Σ βⱼk(x, zⱼ) for every column β of `coefficients`."""
    from separatrix.kernels.support_vectors import radial  # numba takes a while to import

    n, columns = coefficients.shape
    right, parts = kernel.right(vectors, dtype), -(-n // RADIAL_PART)
    # Vectors that fill the last part have coefficients of 0.
    panels = radial.aligned(parts * len(right) * RADIAL_PART, right).reshape(parts, len(right), RADIAL_PART)
    factors = np.zeros((parts * RADIAL_PART, columns), dtype)
    for k in range(parts):
        part = right[:, k * RADIAL_PART : (k + 1) * RADIAL_PART]
        panels[k, :, : part.shape[1]], panels[k, :, part.shape[1] :] = part, 0.0
    factors[:n] = coefficients
    panels, factors = panels.reshape(parts, -1), factors.reshape(parts, RADIAL_PART, columns)
    add = radial.add_radial if np.dtype(dtype) == np.float64 else radial.add_single_radial

    def sums(left: NDArray[Any]) -> Float:
        found = np.zeros((len(left), columns))
        add(left, panels, factors, found)
        return found

    return sums


def _careful(values: NDArray[Any], change: Float) -> NDArray[Any]:
    """values · change with sums of few additions per term: `matmul` adds one after the other, so it is given runs of terms."""
    total = np.zeros(len(values))
    for start in range(0, len(change), _EXACT):
        part = np.zeros(len(values))
        for at in range(start, min(start + _EXACT, len(change)), _RUN):
            part += values[:, at : at + _RUN] @ change[at : at + _RUN]
        total += part
    return total


class KernelMatrix:
    """The kernel matrix of the training rows: `memory` bytes may be kept, and `single` precision may serve to begin with."""

    at_once = 0  # the least rows of a working set

    def __init__(self, kernel: Kernel, points: Points, memory: float, single: bool) -> None:
        self._kernel, self.points, self.memory = kernel, points, memory
        self.dtype: DTypeLike = np.float64
        self.cost = float(points.X.shape[1] + _SCORE)
        self._values: Float | None = None
        self._borrowed: Float | None = None
        self._kept: _Kept | None = None
        self._sides: dict[np.dtype[Any], NDArray[Any] | None] = {}
        n, whole = len(points), kept_whole(kernel, points, memory)
        if whole and kernel.single and worth_filling(points):
            points = self.points = Points(points.X.toarray(), np.zeros(points.X.shape[1]))
        if whole:
            self._values = self._all() if (given := kernel.given(points)) is None else given
            return
        kernel.prepare(points)
        if single and kernel.single_serves(points):
            self.dtype = np.float32
        if not kernel.cheap(points):
            self._kept = _Kept(n, memory, self.dtype)

    def release(self) -> None:
        """Give back the room of all values: they are not read again."""
        if self._borrowed is not None and self._borrowed.size <= _SPARE and len(_spare) < 2:
            _spare.append(self._borrowed)
        self._borrowed = self._values = None

    def restricted(self, rows: Index) -> KernelMatrix:
        """The matrix of some of the rows; all values must be at hand."""
        assert self._values is not None
        part = KernelMatrix.__new__(KernelMatrix)
        part._kernel, part.points = self._kernel, self.points.take(rows)
        part.memory, part.dtype, part.cost = self.memory, np.float64, self.cost
        part._values, part._kept, part._sides, part._borrowed = self.square(rows), None, {}, None
        return part

    @property
    def values(self) -> Float | None:
        """All values, where they are at hand."""
        return self._values

    @property
    def sizes(self) -> tuple[list[tuple[float, Float]], Float]:
        """(ρ, t) and s of the rounding of the values (rounding.py)."""
        return self._sizes

    @property
    def rank(self) -> float:
        """What its rank is at most, as far as the kernel tells."""
        return self._kernel.rank(self.points.X.shape[1])

    def errors(self, beta: Float, at_once: int | None = None) -> Float:
        """(n,) bounds on the rounding of Kβ that `add` gives in double precision: exactly, or with so many rows at once."""
        # One term passes through the sum of its run, that of the runs of its block, and that of the blocks.
        support = int(np.count_nonzero(beta))
        careful = _RUN + _EXACT // _RUN + support // _EXACT + 2
        if isinstance(self._kernel, RBFKernel):  # the sum of its part, and that of the parts
            careful = max(careful, RADIAL_PART + support // RADIAL_PART + 2)
        return score_errors(*self._sizes, beta, careful if at_once is None else at_once + 2)

    def largest(self) -> float:
        """A bound on k(x, x)."""
        return float(np.square(self._sizes[1]).max(initial=0.0))

    @cached_property
    def _sizes(self) -> tuple[list[tuple[float, Float]], Float]:
        return kernel_errors(self._kernel, self.points)

    def positive(self) -> bool:
        """Whether the matrix is positive semi-definite up to rounding; all values must be at hand."""
        assert self._values is not None
        shifted = 0.5 * (self._values + self._values.T)
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
            self._kept = _Kept(len(self.points), self.memory, self.dtype)

    def _left(self, dtype: DTypeLike) -> NDArray[Any] | None:
        """The left side of all products, where the kernel has one and memory allows: kept from round to round."""
        key = np.dtype(dtype)
        if key not in self._sides:
            fits = key.itemsize * len(self.points) * (self.points.X.shape[1] + 2) <= _SHARE * self.memory
            self._sides[key] = self._kernel.left(self.points, dtype) if fits and not self.points.sparse else None
        return self._sides[key]

    def diagonal(self) -> Float:
        """(n,) k(x, x)."""
        return self._kernel.diagonal(self.points) if self._values is None else self._values.diagonal().copy()

    def column(self, which: int) -> Float:
        """(n,) values with one row, in double precision."""
        if self._values is not None:
            return self._values[:, which]
        one, values = self.points.take(slice(which, which + 1)), np.empty(len(self.points))

        def fill(start: int) -> None:
            rows = slice(start, start + _TASK)
            values[rows] = self._kernel.between(self.points.take(rows), one)[:, 0]

        in_parallel(fill, range(0, len(values), _TASK))
        return values

    def square(self, which: Index, exact: bool = False, room: Float | None = None) -> Float:
        """K of some rows among themselves, in `room` if given: of single precision while the scores are, unless `exact`."""
        if self._values is not None:  # of all rows they are not copied: they are not to be changed
            if len(which) == len(self._values) and bool((which[1:] > which[:-1]).all()):
                return self._values
            many = 4 * len(which) > len(self._values)  # values of rows that cost as much as a chosen one
            return self._values.take(which, 0).take(which, 1) if many else self._values[np.ix_(which, which)]
        part, side = self.points.take(which), None if exact else self._left(self.dtype)
        q = len(which)
        values = np.empty((q, q)) if room is None else room[: q * q].reshape(q, q)
        right = None if side is None else self._kernel.right(part, self.dtype)

        def fill(start: int) -> None:
            rows = slice(start, start + _ROWS)
            if side is None or right is None:
                values[rows] = self._kernel.between(part.take(rows), part)
            else:
                values[rows] = product_values(self._kernel, side[which[rows]], right)

        in_parallel(fill, range(0, q, _ROWS))
        return values

    def add(self, scores: Float, rows: Index | None, which: Index, change: Float, exact: bool = False) -> None:
        """scores[rows] += K[rows, which] · change, all rows when `rows` is None; `exact` for double precision."""
        if not len(which):
            return
        dtype = np.float64 if exact else self.dtype
        slots = None if self._kept is None or exact else self._fetch(which)
        if self._values is not None:
            values = self._values
            if exact:
                self._each(scores, rows, lambda here: _careful(values[here][:, which], change))
            else:
                self._each(scores, rows, lambda here: values[here][:, which] @ change)
        elif slots is not None:
            kept = self._kept
            assert kept is not None
            self._each(scores, rows, lambda here: change @ kept.read(slots, here))
        else:
            self._each(scores, rows, self._computed(which, change, dtype, _careful if exact else np.matmul))

    def _computed(
        self, which: Index, change: Float, dtype: DTypeLike, times: Callable[[Any, Any], NDArray[Any]]
    ) -> Callable[[Any], NDArray[Any]]:
        """The function rows → K[rows, which] · change, values being computed."""
        width = _COLUMNS * 4 // np.dtype(dtype).itemsize  # blocks of the same size in bytes
        cuts = [slice(at, at + width) for at in range(0, len(which), width)]
        parts = [(self.points.take(which[cut]), change[cut].astype(dtype)) for cut in cuts]
        side = self._left(dtype)
        if side is None:

            def by_values(here: Any) -> NDArray[Any]:
                left = self.points.take(here)
                total = np.zeros(len(left))
                for right, c in parts:
                    total += times(self._kernel.between(left, right, dtype), c)
                return total

            return by_values
        if isinstance(self._kernel, RBFKernel):
            add = radial_sums(self._kernel, self.points.take(which), change[:, None], dtype)
            return lambda here: add(side[here])[:, 0]
        factors = [(self._kernel.right(right, dtype), c) for right, c in parts]

        def by_products(here: Any) -> NDArray[Any]:
            left = side[here]
            total = np.zeros(len(left))
            for right, c in factors:
                total += times(product_values(self._kernel, left, right), c)
            return total

        return by_products

    def _each(self, scores: Float, rows: Index | None, function: Callable[[Any], NDArray[Any]]) -> None:
        """scores[rows] += function(rows), a piece at a time, on the threads."""
        n = len(scores) if rows is None else len(rows)

        def one(start: int) -> None:
            for at in range(start, min(start + _PIECE, n), _ROWS):
                cut = slice(at, min(at + _ROWS, n))
                here = cut if rows is None else rows[cut]
                scores[here] += function(here)

        in_parallel(one, range(0, n, _PIECE))

    def _fetch(self, which: Index) -> Index | None:
        """Where the columns are kept, once they are; None when there are too many to keep at once."""
        assert self._kept is not None
        if len(which) > self._kept.room:
            return None
        missing, free = self._kept.claim(which)
        self._fill(self._kept.values, free, missing)
        return self._kept.slots[which]

    def _all(self) -> Float:
        """All values, each pair of rows once where the kernel is known to be symmetric."""
        n = len(self.points)
        try:
            room = _spare.pop()
        except IndexError:
            room = np.empty(0)
        self._borrowed = room if room.size >= n * n else np.empty(n * n)
        values = self._borrowed[: n * n].reshape(n, n)
        products = long_products(self._kernel, self.points)
        if products is not None:
            values[:] = self._kernel.finish(products)
            return values
        self._kernel.prepare(self.points)
        left = None if self.points.sparse else self._kernel.left(self.points, np.float64)
        if left is None and not (self.points.sparse and self._kernel.single):
            self._fill(values, np.arange(n), np.arange(n))
            return values
        right = None if left is None else self._kernel.opposite(left)

        alone = float(n) * (self.points.X.nnz if self.points.sparse else self.points.X.size) < _ALONE
        height = _STRIPE[1] if alone else min(max(n // _STRIPES, _STRIPE[0]), _STRIPE[1])

        def fill(start: int) -> None:
            rows, end = slice(start, start + height), min(start + height, n)
            if left is None or right is None:
                values[rows, start:] = self._kernel.between(self.points.take(rows), self.points.take(slice(start, n)))
            else:
                np.matmul(left[rows], right[:, start:], out=values[rows, start:])
                self._kernel.finish(values[rows, start:])
            values[end:, rows] = values[rows, end:].T

        if alone:
            for start in range(0, n, height):
                fill(start)
        else:
            in_parallel(fill, range(0, n, height))
        return values

    def _fill(self, values: NDArray[Any], slots: Index, which: Index) -> None:
        """values[slots] = K[which, :]."""

        def fill(start: int) -> None:
            at = slice(start, start + _ROWS)
            left, there = self.points.take(which[at]), slots[at]
            for column in range(0, len(self.points), _TASK):
                cut = slice(column, column + _TASK)
                values[there, cut] = self._kernel.between(left, self.points.take(cut), values.dtype)

        in_parallel(fill, range(0, len(which), _ROWS))


def kept_whole(kernel: Kernel, points: Points, memory: float) -> bool:
    """Whether all values between these rows are kept: they fit, and computing those that are needed again would cost more."""
    n = len(points)
    return 8.0 * n * n <= memory and (n <= _QUICK or not (kernel.single and kernel.cheap(points)))


def worth_filling(points: Points) -> bool:
    """Whether products of these sparse rows are quicker once their zeros are stored too."""
    if not points.sparse or not points.X.shape[0]:
        return False
    n, d = points.X.shape
    return bool(d <= _FILLED * (points.X.nnz / n + 1.0) and d <= n + _ROWS)


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
        return self.values[slots, rows] if isinstance(rows, slice) else self.values[np.ix_(slots, rows)]
