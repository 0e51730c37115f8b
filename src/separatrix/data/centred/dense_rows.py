"""Dense rows of one block less their class means, and their second moments: sorted by class, or streamed through cache.

Products are `np.dot`, not `@`: NumPy keeps the interpreter's lock in the latter where the result has 500 entries or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from threading import local
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Centred, Codes, Float
from separatrix.data.centred.class_runs import class_runs

# Runs of one class with many rows or entries are summed by BLAS, short ones by one vectorised reduction.
_LONG_SEGMENT, _LARGE_SEGMENT = 32, 2048
# Rows that stay in cache from one step to the next.
PIECE = 1024
# Rows of a block that give a guess of its class means.
SAMPLE = 256
_LARGEST_SCRATCH = 1 << 20
# Columns from which on tiles of products (kernels/products) are quicker than BLAS.
_FILLS_TILES = 44
# Squares of a mean, in those of its column's spread, up to which sums about the origin keep its digits; from which on the mean
# itself needs more digits than one number has.
NEAR, FAR = 1.0, 1e4

_kept = local()


def scratch_rows(rows: int, columns: int) -> Float:
    """Room for a piece of rows, kept by the thread: fresh memory for every piece costs more than filling it."""
    if rows * columns > _LARGEST_SCRATCH:
        return np.empty((rows, columns))
    if not hasattr(_kept, "room") or _kept.room.size < rows * columns:
        _kept.room = np.empty(rows * columns)
    room: Float = _kept.room[: rows * columns]
    return room.reshape(rows, columns)


def rows_at(X: NDArray[Any], which: NDArray[np.intp], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Copies of some rows. `np.take` is the quickest, but copies all of an array first that does not lie in rows."""
    if X.flags.c_contiguous:
        mode: Literal["raise", "clip"] = "raise" if out is None else "clip"  # "raise" would copy once more
        return np.take(X, which, axis=0, out=out, mode=mode)
    if out is None:
        return X[which]
    out[...] = X[which]
    return out


def far_from_origin(means: Float, centred: Float) -> bool:
    """Whether the last digits of the means could matter: some column's mean is large against its spread."""
    sample = centred[:: max(1, len(centred) // 64)]
    spread = np.einsum("ij,ij->j", sample, sample) * (FAR / max(1, len(sample)))
    return bool((np.square(means).max(axis=0, initial=0.0) > spread).any())


class SortedCentred(Centred):
    """A copy of the rows, sorted by class; means as sums of two numbers where one does not hold them."""

    def __init__(self, X: NDArray[Any], codes: Codes, n_classes: int, weights: Float | None, scratch: bool) -> None:
        self.n_classes = n_classes
        if n_classes == 1 and (weights is None or weights.all()):
            rows = X if scratch else np.array(X, dtype=np.float64, order="C")
            self._present, self._lengths = np.zeros(min(1, len(X)), dtype=np.intp), np.array([len(X)][: len(X)])
        else:
            order, self._present, self._lengths, weights = class_runs(codes, n_classes, weights)
            rows = rows_at(X, order).astype(np.float64, order="C", copy=False)
        self._starts = (np.cumsum(self._lengths) - self._lengths).astype(np.intp)
        few, small = _LONG_SEGMENT * len(self._starts), _LARGE_SEGMENT * len(self._starts)
        self._short = len(rows) < few and rows.size < small
        runs = self._lengths.astype(np.float64) if weights is None else self._sums(weights[:, None])[:, 0]
        with np.errstate(invalid="ignore", over="ignore"):  # NaN and inf are found later, and named
            high = self._sums(rows if weights is None else rows * weights[:, None]) / runs[:, None]
            self._subtract(rows, high)
            if len(rows) and far_from_origin(high, rows):
                low = self._sums(rows if weights is None else rows * weights[:, None]) / runs[:, None]
                self._subtract(rows, low)
            else:
                low = np.zeros_like(high)
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        self._rows = rows
        self.counts, self.mean_high, self.mean_low = (self._expand(part) for part in (runs, high, low))

    def _sums(self, rows: Float) -> Float:
        if len(self._starts) == 0:
            return np.zeros((0, rows.shape[1]))
        if self._short:
            return np.add.reduceat(rows, self._starts, axis=0)
        ones = np.ones(int(self._lengths.max()))
        return np.stack([np.dot(ones[:m], rows[a : a + m]) for a, m in zip(self._starts, self._lengths, strict=True)])

    def _subtract(self, rows: Float, means: Float) -> None:
        if self._short:
            rows -= np.repeat(means, self._lengths, axis=0)
        else:
            for a, m, mean in zip(self._starts, self._lengths, means, strict=True):
                rows[a : a + m] -= mean

    def _expand(self, part: Float) -> Float:
        if len(part) == self.n_classes:
            return part
        every = np.zeros((self.n_classes, *part.shape[1:]))
        every[self._present] = part
        return every

    def scatter(self) -> Float:
        return np.dot(self._rows.T, self._rows)

    def scatter_of(self, k: int) -> Float:
        rows = self.rows_of(k)
        return rows.T @ rows

    def squares(self) -> Float:
        if self._short:
            return self._expand(self._sums(np.square(self._rows)))
        runs = zip(self._starts, self._lengths, strict=True)
        parts = [np.einsum("ij,ij->j", self._rows[a : a + m], self._rows[a : a + m]) for a, m in runs]
        return self._expand(np.stack(parts) if parts else np.zeros((0, self._rows.shape[1])))

    def rows(self) -> Float:
        return self._rows

    def rows_of(self, k: int) -> Float:
        at = int(np.searchsorted(self._present, k))
        if at == len(self._present) or self._present[at] != k:
            return np.zeros((0, self._rows.shape[1]))
        return self._rows[self._starts[at] : self._starts[at] + self._lengths[at]]


def sweepable(X: NDArray[Any]) -> bool:
    """Whether the compiled loops are made for such an array."""
    return X.flags.c_contiguous and X.dtype in (np.float64, np.float32)


def _swept(X: NDArray[Any]) -> NDArray[Any]:
    """A piece in a layout the compiled loops are made for."""
    return X if sweepable(X) else np.ascontiguousarray(X, dtype=np.float64)


class StreamedCentred(Centred):
    """Large blocks near the origin, a piece of the block that stays in cache at a time.

    Rows are taken relative to a guess g of their class mean, from a sample of the block, so that one reading gives both
    the mean m = g + c, c = Σ s(x − g)/n, and the scatter Σ s(x−g)(x−g)ᵀ − n·ccᵀ. The guess is within a fraction of the
    spread, so the correction is small against the sum and loses nothing.
    """

    def __init__(self, X: NDArray[Any], codes: Codes, n_classes: int, weights: Float | None) -> None:
        self.n_classes = n_classes
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            X, codes, weights = X[kept], codes[kept], weights[kept]
        self._kernels = import_module("separatrix.kernels.centring")  # numba takes a while to import
        self._X, self._codes = X, codes
        self._weights = np.empty(0) if weights is None else weights
        self.counts = np.zeros(n_classes)
        self._kernels.add_counts(codes, self._weights, self.counts)
        self._size = np.where(self.counts > 0, self.counts, 1.0)[:, None]
        self._guess, seen = np.zeros((n_classes, X.shape[1])), np.zeros(n_classes, dtype=np.intp)
        step = max(1, len(codes) // SAMPLE)
        rows, drawn, step = (X, codes, step) if sweepable(X) else (_swept(X[::step]), codes[::step], 1)
        self.far_from_origin = self._kernels.guess_means(rows, drawn, step, self._guess, seen)
        unseen = np.flatnonzero((self.counts > 0) & (seen == 0))
        if len(unseen):
            some_row = np.zeros(n_classes, dtype=np.intp)
            some_row[codes[::-1]] = np.arange(len(codes))[::-1]  # the first of every class is written last
            self._guess[unseen] = X[some_row[unseen]]
        self._shift = np.zeros_like(self._guess)
        self._known = self.counts == 0
        self.mean_low = np.zeros_like(self._guess)
        self._kept: dict[int, Float] = {}  # of classes, until they are asked for

    @property
    def mean_high(self) -> Float:  # type: ignore[override]  # known once the rows have been read
        """Class means; free after the second moments, else one more reading."""
        if not self._known.all():
            self.squares()
        return self._guess + self._shift

    def _learn(self, k: Any, sums: Float) -> None:
        self._shift[k], self._known[k] = sums / self._size[k], True

    def _whole(self) -> Iterator[tuple[NDArray[Any], Codes, Float]]:
        """The rows in a layout the compiled loops are made for: all at once, so that threads do not queue for the interpreter,
        or pieces that are turned around in cache.
        """
        if sweepable(self._X):
            yield self._X, self._codes, self._weights
        else:
            yield from self._pieces()

    def _pieces(self) -> Iterator[tuple[NDArray[Any], Codes, Float]]:
        for start in range(0, len(self._codes), PIECE):
            at = slice(start, start + PIECE)
            yield _swept(self._X[at]), self._codes[at], self._weights[at]

    def _scatters(self, classes: Codes, together: bool) -> NDArray[Any]:
        """Scatters of some classes about their means, from one reading: of each, or added up."""
        kernels, d = import_module("separatrix.kernels.products.grams"), self._X.shape[1]
        count, groups = 1 if together else len(classes), np.full(self.n_classes, -1, dtype=np.intp)
        groups[classes] = 0 if together else np.arange(count)
        rooms, width, filled, grams = kernels.room_for(count, d)
        sums, scatters = np.zeros_like(self._guess), np.empty((count, d, d))
        for X, codes, weights in self._whole():
            kernels.add_grams(X, codes, weights, self._guess, groups, sums, rooms, width, filled, grams)
        self._learn(classes, sums[classes])
        off = sums[classes] / np.sqrt(self._size[classes])
        kernels.finish(rooms, width, filled, grams, off.reshape(count, -1, d), scatters)
        return scatters

    def scatter(self) -> Float:
        if self._X.shape[1] < _FILLS_TILES:
            return self._scatter_of_few_columns()
        scatter: Float = self._scatters(np.arange(self.n_classes), together=True)[0]
        return scatter

    def _scatter_of_few_columns(self) -> Float:
        """Pieces that stay in cache, multiplied by BLAS: few columns would leave most of a tile empty."""
        d = self._X.shape[1]
        total, product, sums = np.zeros((d, d)), np.empty((d, d)), np.zeros_like(self._guess)
        scratch = np.empty((min(PIECE, len(self._codes)), d))
        for X, codes, weights in self._pieces():
            rows = scratch[: len(codes)]
            self._kernels.centre_rows(X, codes, weights, self._guess, sums, rows)
            total += np.dot(rows.T, rows, out=product)
        self._learn(slice(None), sums)
        off = sums / np.sqrt(self._size)
        total -= np.dot(off.T, off)
        return total

    def squares(self) -> Float:
        total, sums = np.zeros_like(self._guess), np.zeros_like(self._guess)
        for X, codes, weights in self._whole():
            self._kernels.add_squares(X, codes, weights, self._guess, sums, total)
        self._learn(slice(None), sums)
        return np.maximum(total - self._shift * sums, 0.0)

    @cached_property
    def _order(self) -> tuple[Codes, Codes]:
        small = self._codes.astype(np.int16, copy=False)  # 16-bit keys sort by radix
        lengths = np.bincount(self._codes, minlength=self.n_classes)
        return np.argsort(small, kind="stable"), np.concatenate([[0], np.cumsum(lengths)])

    def scatter_of(self, k: int) -> Float:
        if k not in self._kept:  # one reading for all classes that are likely to be asked for
            many = np.flatnonzero(np.bincount(self._codes, minlength=self.n_classes) >= self._X.shape[1])
            wanted = np.array([k]) if k not in many or self._known[many].all() else many
            self._kept.update(zip(wanted.tolist(), self._scatters(wanted, together=False), strict=True))
        return self._kept.pop(k)

    def rows(self) -> Float:
        return np.concatenate([self.rows_of(k) for k in range(self.n_classes)])

    def rows_of(self, k: int) -> Float:
        order, edges = self._order
        at = order[edges[k] : edges[k + 1]]
        rows = self._X[at].astype(np.float64) - self._guess[k]
        weights = self._weights[at] if len(self._weights) else np.ones(len(at))
        self._learn(k, weights @ rows)
        return (rows - self._shift[k]) * np.sqrt(weights)[:, None]
