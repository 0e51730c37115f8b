"""Second moments of rows [x, y] of one class, without a copy of all of them.

With the roots of the weights (or ones) as a last column r, the product of [√s(x − g), √s(y − g), r] with itself holds the
scatter about the guess g, the sums and the total weight:

    c = Σ s(z − g)/n,   m = g + c,   Σ s(z − m)(z − m)ᵀ = Σ s(z − g)(z − g)ᵀ − n·ccᵀ
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Centred, Float
from separatrix.data.centred.dense_rows import FAR, NEAR, PIECE, far_from_origin, scratch_rows
from separatrix.lazy import compiled_pays

# The first rows, which give a guess of the mean.
_GUESSED = 64
# How far from the mean, in spreads and squared, the guess may turn out to be: a digit less.
_OFF = 10.0
# Entries of a piece that fit, with its copy, into the nearest large cache.
_CACHED = 3 << 15
# Rows of a piece at least, to be joined.
_LEAST_ROWS = 128
# Up to so many columns, and from so many on, compiled loops are quicker than BLAS, and by so many seconds for a product.
_NARROW, _FILLS_TILES, _SAVED_SECONDS = 40, 56, 1.2e-11


class OneClassCentred(Centred):
    """Rows [x, y] of one class, less their mean, joined and centred a piece at a time."""

    n_classes = 1

    def __init__(
        self, X: NDArray[Any], beside: Float, weights: Float | None, guess: Float, compiled: bool = False
    ) -> None:
        self._parts, self._weights, self._compiled = (X, beside), weights, compiled
        product = self._product(guess)
        sums, self.counts = product[-1, :-1], product[-1, -1:].copy()
        shift = sums / self.counts
        self.mean_high, self.mean_low = (guess + shift)[None], np.zeros((1, len(guess)))
        self._scatter = product[:-1, :-1] - shift[:, None] * sums
        self._off = shift * sums

    def off(self, times: float) -> bool:
        """Whether some column's mean is further from the guess than so many times its spread, all squared: digits are lost."""
        return bool((self._off > times * self._scatter.diagonal()).any())

    def far_from_origin(self) -> bool:
        """Whether the last digits of the means could matter."""
        return bool((self.counts * np.square(self.mean_high[0]) > FAR * self._scatter.diagonal()).any())

    def _product(self, guess: Float) -> Float:
        X, width = self._parts[0], len(guess) + 1
        floats = X.dtype in (np.float64, np.float32)
        if not (floats and (width <= _NARROW or width >= _FILLS_TILES)):
            return self._wide_product(guess)
        if not (self._compiled or compiled_pays(_SAVED_SECONDS * width * X.size)):
            return self._wide_product(guess)
        return self._narrow_product(guess) if width <= _NARROW else self._tiled_product(guess)

    def _narrow_product(self, guess: Float) -> Float:
        kernels = import_module("separatrix.kernels.lines.narrow_rows")  # numba takes a while to import
        (X, beside), width = self._parts, len(guess) + 1
        (n, d), beside = X.shape, np.ascontiguousarray(beside)
        even = width + width % 2
        total, lines = np.zeros((even, even)), np.zeros((even, kernels.LINE))
        weights = np.empty(0) if self._weights is None else np.ascontiguousarray(self._weights)
        if X.flags.c_contiguous:
            kernels.add_products(X, beside, weights, guess, lines, total)
        else:  # columns side by side, a piece at a time: loops for one more layout would have to be compiled
            size = min(n, max(PIECE, _CACHED // width))
            room = scratch_rows(d, size).ravel()
            for start in range(0, n, size):
                at = slice(start, min(start + size, n))
                rows = room[: d * (at.stop - start)].reshape(d, -1).T
                rows[...] = X[at]
                kernels.add_products(rows, beside[at], weights[at], guess, lines, total)
        return total[:width, :width]

    def _tiled_product(self, guess: Float) -> Float:
        kernels = import_module("separatrix.kernels.products.grams")  # numba takes a while to import
        (X, beside), (n, d), joined = self._parts, self._parts[0].shape, len(guess)
        size = min(n, max(_LEAST_ROWS, _CACHED // joined))
        rooms, width, filled, grams = kernels.room_for(1, joined)
        sums, product = np.zeros((1, joined)), np.empty((joined + 1, joined + 1))
        one, room = np.zeros(size, dtype=np.intp), scratch_rows(size, joined)
        for start in range(0, n, size):
            at = slice(start, min(start + size, n))
            rows = room[: at.stop - start]
            rows[:, :d], rows[:, d:] = X[at], beside[at]
            weights = np.empty(0) if self._weights is None else self._weights[at]
            kernels.add_grams(rows, one[: len(rows)], weights, guess[None], one[:1], sums, rooms, width, filled, grams)
        found = np.empty((1, joined, joined))
        kernels.finish(rooms, width, filled, grams, np.zeros((1, 0, joined)), found)
        product[:-1, :-1], product[-1, :-1], product[:-1, -1] = found[0], sums[0], sums[0]
        product[-1, -1] = n if self._weights is None else self._weights.sum()
        return product

    def _wide_product(self, guess: Float) -> Float:
        (X, beside), weights = self._parts, self._weights
        (n, d), width = X.shape, len(guess) + 1
        size = min(n, max(PIECE, _CACHED // width))
        down = X.strides[0] < X.strides[1]  # to turn an array around costs more than to copy it
        room = scratch_rows(width, size).T if down else scratch_rows(size, width)
        total = np.zeros((width, width))
        for start in range(0, n, size):
            at = slice(start, min(start + size, n))
            rows = room[: at.stop - start]
            for part, here, about in ((X, rows[:, :d], guess[:d]), (beside, rows[:, d:-1], guess[d:])):
                if about.any():
                    np.subtract(part[at], about, out=here)
                else:  # a third of the time
                    here[...] = part[at]
            if weights is None:
                rows[:, -1] = 1.0
            else:
                rows[:, -1] = np.sqrt(weights[at])
                rows[:, :-1] *= rows[:, -1:]
            total += np.dot(rows.T, rows)
        return total

    def scatter(self) -> Float:
        return self._scatter

    def scatter_of(self, k: int) -> Float:
        return self._scatter

    def squares(self) -> Float:
        return np.maximum(self._scatter.diagonal()[None], 0.0)

    def rows(self) -> Float:
        return self.rows_of(0)

    def rows_of(self, k: int) -> Float:
        rows: Float = np.concatenate(self._parts, axis=1, dtype=np.float64) - self.mean_high
        return rows if self._weights is None else rows * np.sqrt(self._weights)[:, None]


class FewCentred(Centred):
    """Few rows of one class in an array of their own, less their mean; two numbers where one does not hold it."""

    n_classes = 1

    def __init__(self, rows: Float, weights: Float | None) -> None:
        sums = np.ones(len(rows)) if weights is None else weights
        total = sums.sum()
        with np.errstate(invalid="ignore", over="ignore"):  # NaN and inf are found later, and named
            high = (np.dot(sums, rows) / total)[None]
            rows -= high
            if far_from_origin(high, rows):
                low = (np.dot(sums, rows) / total)[None]
                rows -= low
            else:
                low = np.zeros_like(high)
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        self.counts, self.mean_high, self.mean_low, self._rows = total[None], high, low, rows

    def scatter(self) -> Float:
        return np.dot(self._rows.T, self._rows)

    def scatter_of(self, k: int) -> Float:
        return self.scatter()

    def squares(self) -> Float:
        return np.einsum("ij,ij->j", self._rows, self._rows)[None]

    def rows(self) -> Float:
        return self._rows

    def rows_of(self, k: int) -> Float:
        return self._rows


def one_class_centred(X: NDArray[Any], beside: Float, weights: Float | None, compiled: bool = False) -> Centred | None:
    """Rows [x, y] less their mean; ``None`` where they are few, or single numbers do not hold their means."""
    some = np.concatenate([X[:_GUESSED], beside[:_GUESSED]], axis=1, dtype=np.float64)
    guess = np.add.reduce(some) / len(some)
    some -= guess
    squares, spread = np.square(guess), np.einsum("ij,ij->j", some, some) / len(some)
    if (squares > FAR * spread).any():
        return None
    if (squares <= NEAR * spread).all():
        guess = np.zeros_like(guess)
    centred = OneClassCentred(X, beside, weights, guess, compiled)
    if centred.off(_OFF):  # the first rows are not like the others
        centred = OneClassCentred(X, beside, weights, centred.mean_high[0], compiled)
    return None if centred.far_from_origin() else centred
