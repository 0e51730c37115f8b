"""Dense rows: blocks of an array of any real dtype and order.

Products are `np.dot`, not `@`: NumPy keeps the interpreter's lock in the latter where the result has 500 entries or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Centred, Codes, Entries, Float, StoredBlock, class_runs
from separatrix.lazy import compiled_pays

# Runs of one class with many rows or entries are summed by BLAS, short ones by one vectorised reduction.
_LONG_SEGMENT, _LARGE_SEGMENT = 32, 2048
# Rows of a class from which on a guess of its mean costs little against them.
_ROWS_OF_A_CLASS = 4
# Entries worth a compiled loop, and rows that stay in cache from one step to the next.
WORTH_COMPILING = 1 << 20
_PIECE = 1024
# Rows of a block that give a guess of its class means.
_SAMPLE = 256
_LARGEST_SCRATCH = 1 << 20
# Products with as few vectors of as many entries take longer in BLAS.
_FEW_PRODUCTS, _MANY_COLUMNS = 12, 24
# Sums of a column by so few classes are a product of matrices: every entry waits for the one before it otherwise.
_FEW_SUMS = 8


_kept = local()


def scratch_rows(rows: int, columns: int) -> Float:
    """Room for a piece of rows, kept by the thread: fresh memory for every piece costs more than filling it."""
    if rows * columns > _LARGEST_SCRATCH:
        return np.empty((rows, columns))
    if not hasattr(_kept, "room") or _kept.room.size < rows * columns:
        _kept.room = np.empty(rows * columns)
    room: Float = _kept.room[: rows * columns]
    return room.reshape(rows, columns)


def _far_from_origin(means: Float, centred: Float) -> bool:
    """Whether the last digits of the means could matter: some column's mean is large against its spread."""
    sample = centred[:: max(1, len(centred) // 64)]
    return bool(np.any(np.square(means).max(axis=0, initial=0.0) > 1e4 * np.square(sample).mean(axis=0)))


class _SortedCentred(Centred):
    def __init__(self, X: NDArray[Any], codes: Codes, n_classes: int, weights: Float | None, scratch: bool) -> None:
        self.n_classes = n_classes
        if n_classes == 1 and (weights is None or weights.all()):
            rows = X if scratch else np.array(X, dtype=np.float64, order="C")
            self._present, self._lengths = np.zeros(min(1, len(X)), dtype=np.intp), np.array([len(X)][: len(X)])
        else:
            order, self._present, self._lengths, weights = class_runs(codes, n_classes, weights)
            rows = np.take(X, order, axis=0).astype(np.float64, order="C", copy=False)
        self._starts = (np.cumsum(self._lengths) - self._lengths).astype(np.intp)
        few, small = _LONG_SEGMENT * len(self._starts), _LARGE_SEGMENT * len(self._starts)
        self._short = len(rows) < few and rows.size < small
        runs = self._lengths.astype(np.float64) if weights is None else self._sums(weights[:, None])[:, 0]
        with np.errstate(invalid="ignore", over="ignore"):  # NaN and inf are found later, and named
            high = self._sums(rows if weights is None else rows * weights[:, None]) / runs[:, None]
            self._subtract(rows, high)
            if len(rows) and _far_from_origin(high, rows):
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


def _sweepable(X: NDArray[Any]) -> bool:
    return X.flags.c_contiguous and X.dtype in (np.float64, np.float32)


def _swept(X: NDArray[Any]) -> NDArray[Any]:
    """A piece in a layout the compiled loops are made for."""
    return X if _sweepable(X) else np.ascontiguousarray(X, dtype=np.float64)


class _StreamedCentred(Centred):
    """The same for large blocks near the origin, a piece of the block that stays in cache at a time.

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
        step = max(1, len(codes) // _SAMPLE)
        rows, drawn, step = (X, codes, step) if _sweepable(X) else (_swept(X[::step]), codes[::step], 1)
        self.far_from_origin = self._kernels.guess_means(rows, drawn, step, self._guess, seen)
        unseen = np.flatnonzero((self.counts > 0) & (seen == 0))
        if len(unseen):
            some_row = np.zeros(n_classes, dtype=np.intp)
            some_row[codes[::-1]] = np.arange(len(codes))[::-1]  # the first of every class is written last
            self._guess[unseen] = X[some_row[unseen]]
        self._shift = np.zeros_like(self._guess)
        self._known = self.counts == 0
        self.mean_low = np.zeros_like(self._guess)

    @property
    def mean_high(self) -> Float:  # type: ignore[override]  # known once the rows have been read
        """Class means; free after the second moments, else one more reading."""
        if not self._known.all():
            self.squares()
        return self._guess + self._shift

    def _learn(self, k: Any, sums: Float) -> None:
        self._shift[k], self._known[k] = sums / self._size[k], True

    def _pieces(self) -> Iterator[tuple[NDArray[Any], Codes, Float]]:
        for start in range(0, len(self._codes), _PIECE):
            at = slice(start, start + _PIECE)
            yield _swept(self._X[at]), self._codes[at], self._weights[at]

    def scatter(self) -> Float:
        total = np.zeros((self._X.shape[1], self._X.shape[1]))
        piece, sums = np.empty_like(total), np.zeros_like(self._guess)
        scratch = np.empty((min(_PIECE, len(self._codes)), self._X.shape[1]))
        for X, codes, weights in self._pieces():
            rows = scratch[: len(codes)]
            self._kernels.centre_rows(X, codes, weights, self._guess, sums, rows)
            total += np.dot(rows.T, rows, out=piece)
        self._learn(slice(None), sums)
        total -= self._shift.T @ sums
        return total

    def squares(self) -> Float:
        total, sums = np.zeros_like(self._guess), np.zeros_like(self._guess)
        whole = iter([(self._X, self._codes, self._weights)])  # one call: threads do not queue for the interpreter
        for X, codes, weights in whole if _sweepable(self._X) else self._pieces():
            self._kernels.add_squares(X, codes, weights, self._guess, sums, total)
        self._learn(slice(None), sums)
        return np.maximum(total - self._shift * sums, 0.0)

    @cached_property
    def _order(self) -> tuple[Codes, Codes]:
        small = self._codes.astype(np.int16, copy=False)  # 16-bit keys sort by radix
        lengths = np.bincount(self._codes, minlength=self.n_classes)
        return np.argsort(small, kind="stable"), np.concatenate([[0], np.cumsum(lengths)])

    def scatter_of(self, k: int) -> Float:
        order, edges = self._order
        total = np.zeros((self._X.shape[1], self._X.shape[1]))
        piece, sums = np.empty_like(total), np.zeros(self._X.shape[1])
        scratch = np.empty((min(_PIECE, edges[k + 1] - edges[k]), self._X.shape[1]))
        for start in range(edges[k], edges[k + 1], _PIECE):
            at = order[start : min(start + _PIECE, edges[k + 1])]
            rows = scratch[: len(at)]
            if _sweepable(self._X):
                self._kernels.gather_rows(self._X, at, self._weights, self._guess[k], sums, rows)
            else:
                weights = self._weights[at] if len(self._weights) else self._weights
                every = np.arange(len(at))
                self._kernels.gather_rows(_swept(self._X[at]), every, weights, self._guess[k], sums, rows)
            total += np.dot(rows.T, rows, out=piece)
        self._learn(k, sums)
        total -= np.outer(self._shift[k], sums)
        return total

    def rows(self) -> Float:
        return np.concatenate([self.rows_of(k) for k in range(self.n_classes)])

    def rows_of(self, k: int) -> Float:
        order, edges = self._order
        at = order[edges[k] : edges[k + 1]]
        rows = self._X[at].astype(np.float64) - self._guess[k]
        weights = self._weights[at] if len(self._weights) else np.ones(len(at))
        self._learn(k, weights @ rows)
        return (rows - self._shift[k]) * np.sqrt(weights)[:, None]


class DenseBlock(StoredBlock):
    """Rows of a dense array of any real dtype and order.

    `scratch` rows are ours alone, float64, used once: they may be centred in place. `compiled` loops are worth
    their import where the block, or all the rows that it is a part of, have many entries.
    """

    _least: float | None = None  # seen on the way through the entries, by class_sums

    def __init__(
        self,
        X: NDArray[Any],
        y: NDArray[Any] | None = None,
        weights: Float | None = None,
        start: int = 0,
        scratch: bool = False,
        compiled: bool = False,
    ) -> None:
        super().__init__(X, y, weights, start)
        self._scratch, self._compiled = scratch, compiled

    def _of(self, X: Any, y: NDArray[Any] | None, weights: Float | None, start: int) -> DenseBlock:
        return DenseBlock(X, y, weights, start, compiled=self._compiled)

    def matvec(self, v: Float) -> Float:
        few = v.size <= _FEW_PRODUCTS * len(v) and len(v) >= _MANY_COLUMNS
        sweeps = few and self._compiled and v.dtype == np.float64 and _sweepable(self.X)
        if not (sweeps and compiled_pays(0.0)):
            return np.dot(self._double(), v)
        products = np.empty((self.n, *v.shape[1:]))
        kernels = import_module("separatrix.kernels.scores")  # numba takes a while to import
        kernels.few_products(self.X, np.ascontiguousarray(v.T).reshape(-1, len(v)), products.reshape(self.n, -1))
        return products

    def rmatvec(self, r: Float) -> Float:
        return np.dot(self._double().T, r)

    def gram(self, weights: Float | None = None) -> Float:
        X: Float = self._double()
        if weights is not None:  # a product of a matrix with itself costs half of one of two
            X = np.multiply(X, np.sqrt(weights)[:, None], out=scratch_rows(self.n, self.shape[1]))
        return np.dot(X.T, X)

    def column_squares(self, weights: Float | None = None) -> Float:
        X = self._double()
        return np.einsum("ij,ij->j", X, X) if weights is None else np.einsum("i,ij,ij->j", weights, X, X)

    def columns(self, which: Codes) -> DenseBlock:
        return DenseBlock(np.take(self.X, which, axis=1), self.y, self.weights, self.start)

    def row_squares(self, metric: Float) -> Float:
        X = self._double()
        return np.multiply(X, X, out=scratch_rows(self.n, self.shape[1])) @ metric

    def dense(self) -> Float:
        return self._double()

    def plain_rows(self, any_order: bool = False) -> tuple[NDArray[Any], bool] | None:
        laid = _sweepable(self.X) or (any_order and _sweepable(self.X.T))
        return (self.X, False) if laid else None

    def centre(self, codes: Codes, n_classes: int) -> Centred:
        large = self._compiled or self.X.size >= WORTH_COMPILING
        if large and self.n >= _ROWS_OF_A_CLASS * n_classes:
            streamed = _StreamedCentred(self.X, codes, n_classes, self.weights)
            if not streamed.far_from_origin:
                return streamed
        return _SortedCentred(self.X, codes, n_classes, self.weights, self._scratch)

    def join(self, columns: Float) -> DenseBlock:
        down = self.X.strides[0] < self.X.strides[1]  # to turn an array around costs more than to copy it
        joined = np.empty((self.n, self.shape[1] + columns.shape[1]), order="F" if down else "C")
        joined[:, : self.shape[1]] = self.X
        joined[:, self.shape[1] :] = columns
        return DenseBlock(joined, self.y, self.weights, self.start, scratch=True)

    def class_sums(self, codes: Codes, n_classes: int) -> Float:
        floats, tall = self.X.dtype in (np.float64, np.float32), self.X.flags.c_contiguous
        if not (self._compiled and floats and (tall or n_classes > _FEW_SUMS)):
            return super().class_sums(codes, n_classes)
        kernels = import_module("separatrix.kernels.centring")  # numba takes a while to import
        weights = np.empty(0) if self.weights is None else self.weights
        sums = np.zeros((n_classes, self.shape[1]) if tall else (self.shape[1], n_classes))
        add = kernels.add_rows_by_class if tall else kernels.add_columns_by_class
        if not add(self.X, codes, weights, sums):
            self._least = 0.0
        return sums if tall else np.ascontiguousarray(sums.T)

    def least(self) -> float:
        if self._least is not None:
            return self._least
        return min(0.0, float(self.X.min(initial=0.0))) if self.X.dtype.kind != "u" else 0.0

    def column_minima(self) -> Float:
        if not self.n:
            return np.zeros(self.shape[1])
        return self.X.min(axis=0).astype(np.float64)

    def stored_entries(self) -> Entries:
        rows, columns = np.arange(self.n)[:, None], np.arange(self.shape[1])
        return Entries(self.X, rows, columns, self.shape[1], implicit_zeros=False)

    def non_finite(self) -> NDArray[np.bool_]:
        return ~np.isfinite(self.X) if self.X.dtype.kind == "f" else np.zeros(self.shape, dtype=bool)
