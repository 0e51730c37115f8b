"""Dense rows: blocks of an array of any real dtype and order.

Products are `np.dot`, not `@`: NumPy keeps the interpreter's lock in the latter where the result has 500 entries or less. But
of an array that is a part of another, as rows are of one in Fortran's order, `np.dot` and `np.take` make a copy first.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Centred, Codes, Entries, Float, StoredBlock
from separatrix.data.centred.dense_rows import SAMPLE, SortedCentred, StreamedCentred, rows_at, scratch_rows, sweepable
from separatrix.data.centred.one_class import FewCentred, one_class_centred
from separatrix.data.source import in_parallel, ordered
from separatrix.lazy import compiled_pays

# Rows of a class from which on a guess of its mean costs little against them.
_ROWS_OF_A_CLASS = 4
# Entries worth a compiled loop.
WORTH_COMPILING = 1 << 20
# Entries of a part of the columns that is worth a thread, and of a block whose products are shared out.
_PART, _SHARED = 1 << 20, 1 << 22
# Products with as few vectors of as many entries take longer in BLAS.
_FEW_PRODUCTS, _MANY_COLUMNS = 12, 24
# Sums of a column by so few classes are a product of matrices: every entry waits for the one before it otherwise.
_FEW_SUMS = 8
# Entries whose copy costs less than to go through them in pieces.
_FEW_ENTRIES = 1 << 13


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
        sweeps = few and self._compiled and v.dtype == np.float64 and sweepable(self.X)
        if not (sweeps and compiled_pays(0.0)):
            return _product(self._double(), v)
        products = np.empty((self.n, *v.shape[1:]))
        kernels = import_module("separatrix.kernels.scores")  # numba takes a while to import
        kernels.few_products(self.X, np.ascontiguousarray(v.T).reshape(-1, len(v)), products.reshape(self.n, -1))
        return products

    def rmatvec(self, r: Float) -> Float:
        if self.X.size < _SHARED or not self.n:
            return _product(self._double().T, r)
        found = np.empty((self.shape[1], *r.shape[1:]))

        def of_columns(at: slice) -> None:
            np.matmul(self.X[:, at].T.astype(np.float64, copy=False), r, out=found[at])

        in_parallel(of_columns, self._column_parts())
        return found

    def _column_parts(self) -> list[slice]:
        """Columns that are worth a thread, cut by the shape alone."""
        step = max(64, _PART // max(1, self.n))
        return [slice(start, start + step) for start in range(0, self.shape[1], step)]

    def gram(self, weights: Float | None = None) -> Float:
        X: Float = self._double()
        if weights is not None:  # a product of a matrix with itself costs half of one of two
            X = np.multiply(X, np.sqrt(weights)[:, None], out=scratch_rows(self.n, self.shape[1]))
        return _product(X.T, X)

    def column_squares(self, weights: Float | None = None) -> Float:
        X, down = self.X, self.X.strides[0] < self.X.strides[1]
        whole = slice(0, self.n)

        def of_part(rows: slice, columns: slice) -> Float:
            part: Float = X[rows, columns].astype(np.float64, copy=False)
            if weights is None:
                return np.asarray(np.einsum("ij,ij->j", part, part))
            return np.asarray(np.einsum("i,ij,ij->j", weights[rows], part, part))

        if X.size <= _PART:
            return of_part(whole, slice(None))
        if down:  # parts that lie together in memory
            return np.concatenate(list(ordered(lambda at: of_part(whole, at), self._column_parts())))
        step, total = max(1, _PART // max(1, self.shape[1])), np.zeros(self.shape[1])
        for part in ordered(lambda at: of_part(slice(at, at + step), slice(None)), range(0, self.n, step)):
            total += part
        return total

    def columns(self, which: Codes) -> DenseBlock:
        picked = np.take(self.X, which, axis=1) if self.X.flags.c_contiguous else self.X.T[which].T
        return DenseBlock(picked, self.y, self.weights, self.start)

    def row_squares(self, metric: Float) -> Float:
        X = self._double()
        return np.multiply(X, X, out=scratch_rows(self.n, self.shape[1])) @ metric

    def dense(self) -> Float:
        return self._double()

    def plain_rows(self, any_order: bool = False) -> tuple[NDArray[Any], bool] | None:
        laid = sweepable(self.X) or (any_order and sweepable(self.X.T))
        return (self.X, False) if laid else None

    def centre(self, codes: Codes, n_classes: int) -> Centred:
        large = self._compiled or self.X.size >= WORTH_COMPILING
        if large and self.n >= _ROWS_OF_A_CLASS * n_classes:
            streamed = StreamedCentred(self.X, codes, n_classes, self.weights)
            if not streamed.far_from_origin:
                return streamed
        return SortedCentred(self.X, codes, n_classes, self.weights, self._scratch)

    def join(self, columns: Float) -> DenseBlock:
        return ExtendedBlock(self.X, columns, self.y, self.weights, self.start, self._compiled)

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


def _product(A: Float, b: Float) -> Float:
    """Ab without a copy of A."""
    found: Float = np.dot(A, b) if A.flags.forc else np.matmul(A, b)
    return found


class PickedBlock(DenseBlock):
    """Some rows of an array, copied when they are first read: by the worker, not where blocks are cut."""

    def __init__(
        self, X: NDArray[Any], which: Codes, y: Any, weights: Float | None, start: int, compiled: bool
    ) -> None:
        self._from, self.y, self.weights, self.start = (X, which), y, weights, start
        self._scratch, self._compiled = False, compiled

    @cached_property
    def X(self) -> NDArray[Any]:
        """The copies."""
        return rows_at(*self._from)

    @property
    def shape(self) -> tuple[int, int]:
        X, which = self._from
        return len(which), X.shape[1]

    def _rows(self, at: Any, start: int) -> DenseBlock:
        X, which = self._from  # a part alone is copied, not all for it
        y, weights = (None if values is None else values[at] for values in (self.y, self.weights))
        return PickedBlock(X, which[at], y, weights, start, self._compiled)


class ExtendedBlock(DenseBlock):
    """Rows of an array with further columns beside them; their second moments need no copy of all of them."""

    def __init__(
        self, X: NDArray[Any], beside: Float, y: Any, weights: Float | None, start: int, compiled: bool = False
    ) -> None:
        self._parts, self.y, self.weights, self.start = (X, beside), y, weights, start
        self._scratch, self._compiled = True, compiled

    @cached_property
    def X(self) -> Float:
        """Both, as one array."""
        X, beside = self._parts
        down = X.strides[0] < X.strides[1]  # to turn an array around costs more than to copy it
        joined = np.empty(self.shape, order="F" if down else "C")
        joined[:, : X.shape[1]] = X
        joined[:, X.shape[1] :] = beside
        return joined

    @property
    def shape(self) -> tuple[int, int]:
        X, beside = self._parts
        return len(X), X.shape[1] + beside.shape[1]

    def centre(self, codes: Codes, n_classes: int) -> Centred:
        if n_classes > 1 or not self.n or not (self.weights is None or self.weights.all()):
            return super().centre(codes, n_classes)  # rows of weight 0 may hold NaN
        (n, d), centred = self.shape, None
        if n >= max(SAMPLE, d) and n * d > _FEW_ENTRIES:
            centred = one_class_centred(*self._parts, self.weights, self._compiled)
        return FewCentred(self.X, self.weights) if centred is None else centred
