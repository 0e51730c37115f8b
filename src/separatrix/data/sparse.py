"""Sparse rows: blocks of a SciPy CSR array, centred without becoming dense.

    Σ (x−m)(x−m)ᵀ = XᵀX − n·mmᵀ      safe in a column that is mostly zeros: mean² ≤ density · Σx²/n (Cauchy–Schwarz)

Columns whose mean is large against their spread are centred explicitly instead, as a few dense columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.block import Block, Centred, Codes, Entries, Float, StoredBlock
from separatrix.data.centred.class_runs import class_runs
from separatrix.data.dense import DenseBlock
from separatrix.lazy import compiled_pays

# A sparse column that would lose more than three digits by Σx² − n·mean² is centred explicitly.
_CANCELLATION = 1e3
# From this many stored entries on compiled products are worth the import of numba, from the second on where it is there.
_CURVED_FROM, _FEW_ENTRIES = 100_000, 2_000
# Seconds that compiled loops save for an entry, over the passes of a fit.
_SAVED_SECONDS = 1e-7
# Up to this many SciPy takes longer to make the matrix of a product than NumPy for the product.
_COUNTED = 10_000
# Nanoseconds of a product of two dense entries, of two sparse ones in a compiled loop, and in SciPy; making rows dense takes
# as long as products with so many columns.
_DENSE_PRODUCT, _COMPILED_PRODUCT, _PRODUCT, _DENSE_OVERHEAD = 0.02, 0.6, 3.5, 60
# Nanoseconds that SciPy takes for a dozen small matrices.
_MATRICES = 1e6
# From this share of stored entries on products of dense rows are cheaper, where a block of them is small.
_FULL, _FITS = 0.2, 1 << 22


class _SparseCentred(Centred):
    def __init__(self, X: Any, codes: Codes, n_classes: int, weights: Float | None, looped: bool) -> None:
        self.n_classes, self._looped = n_classes, looped
        if n_classes == 1 and (weights is None or weights.all()):
            present, lengths, sorted_weights = np.zeros(1, dtype=np.intp), np.array([X.shape[0]]), weights
            order, self._X, self._codes = np.arange(X.shape[0]), X, codes
        else:
            order, present, lengths, sorted_weights = class_runs(codes, n_classes, weights)
            self._X, self._codes = X[order], codes[order]
        self._weights = np.ones(len(order)) if sorted_weights is None else sorted_weights
        ends = np.cumsum(lengths)
        self._runs = {int(k): slice(int(b - m), int(b)) for k, b, m in zip(present, ends, lengths, strict=True)}
        self.counts = np.bincount(self._codes, self._weights, minlength=n_classes).astype(np.float64, copy=False)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            divisor = np.where(self.counts > 0, self.counts, 1.0)[:, None]
            self.mean_high = self._sums() / divisor
            self._squares, sums = self._deviations()
            self.mean_low = sums / divisor

    def _sums(self) -> Float:
        X = self._X
        if not self._looped:
            return self._by_class(X)
        from separatrix.kernels.sparse.rows import add_rows_by_class

        sums = np.zeros((self.n_classes, X.shape[1]))
        add_rows_by_class(X.data, X.indices, X.indptr, self._codes, self._weights, sums)
        return sums

    def _by_class(self, X: Any) -> Float:
        position = np.arange(len(self._codes))
        members = sp.csr_array((self._weights, (self._codes, position)), shape=(self.n_classes, len(self._codes)))
        return (members @ X).toarray()

    def _with_data(self, data: Float) -> Any:
        return sp.csr_array((data, self._X.indices, self._X.indptr), shape=self._X.shape)

    def _deviations(self) -> tuple[Float, Float]:
        """Σ s(x−m)² and Σ s(x−m) by class: the stored entries, and m for the weight of those that are not stored."""
        X = self._X
        if not self._looped:
            row_codes = np.repeat(self._codes, np.diff(X.indptr))
            deviation = X.data - self.mean_high[row_codes, X.indices]
            stored = self._by_class(self._with_data(np.ones_like(X.data)))
            squares, sums = (self._by_class(self._with_data(part)) for part in (np.square(deviation), deviation))
        else:
            from separatrix.kernels.sparse.rows import add_deviations

            stored, squares, sums = np.zeros((3, *self.mean_high.shape))
            arrays = X.data, X.indices, X.indptr, self._codes, self._weights
            add_deviations(*arrays, self.mean_high, stored, squares, sums)
        unstored = np.maximum(self.counts[:, None] - stored, 0.0)
        return squares + unstored * np.square(self.mean_high), sums - unstored * self.mean_high

    def _scatter(self, rows: slice, classes: slice) -> Float:
        X, weights = self._X[rows], self._weights[rows]
        means, counts = self.mean_high[classes], self.counts[classes]
        squares = self._squares[classes].sum(axis=0)
        with np.errstate(invalid="ignore", over="ignore"):
            raw = squares + counts @ np.square(means)
            # Σx² − n·mean² is safe for a column whose mean is small against its spread (any column that is mostly
            # zeros); the others are centred as dense columns. Cross terms with a centred column need no correction.
            explicit = np.flatnonzero(raw > _CANCELLATION * squares)
            if len(explicit) > X.shape[1] // 2:
                Z = self._dense_rows(rows)
                return Z.T @ Z
            block = SparseBlock(X)
            total = block.gram(weights)
            total -= means.T @ (counts[:, None] * means)
            if len(explicit):
                columns = X[:, explicit].toarray()
                columns -= self.mean_high[:, explicit][self._codes[rows]]
                columns -= self.mean_low[:, explicit][self._codes[rows]]
                cross = block.rmatvec(weights[:, None] * columns)
                total[:, explicit] = cross
                total[explicit, :] = cross.T
                total[np.ix_(explicit, explicit)] = columns.T @ (weights[:, None] * columns)
        np.fill_diagonal(total, squares)
        return total

    def _dense_rows(self, rows: slice) -> Float:
        Z: Float = self._X[rows].toarray()
        Z -= self.mean_high[self._codes[rows]]
        Z -= self.mean_low[self._codes[rows]]
        return Z * np.sqrt(self._weights[rows])[:, None]

    def scatter(self) -> Float:
        return self._scatter(slice(None), slice(None))

    def scatter_of(self, k: int) -> Float:
        return self._scatter(self._runs.get(k, slice(0, 0)), slice(k, k + 1))

    def squares(self) -> Float:
        return self._squares

    def rows(self) -> Float:
        return self._dense_rows(slice(None))

    def rows_of(self, k: int) -> Float:
        return self._dense_rows(self._runs.get(k, slice(0, 0)))


class SparseBlock(StoredBlock):
    """Rows of a SciPy CSR array."""

    _least: float | None = None  # seen on the way through the entries, by class_sums
    of_many = False
    """Whether the rows that this block is a part of have entries enough for a single pass to be worth the import of numba."""

    def _of(self, X: Any, y: NDArray[Any] | None, weights: Float | None, start: int) -> SparseBlock:
        block = SparseBlock(X, y, weights, start)
        block.of_many = self.of_many
        return block

    @cached_property
    def _looped(self) -> bool:
        """Whether the entries are visited by compiled loops, which begin with the import of numba."""
        return self.X.nnz >= _CURVED_FROM and (self.of_many or compiled_pays(_SAVED_SECONDS * self.X.nnz))

    def _with(self, data: NDArray[Any]) -> Any:
        """The matrix with other entries in the same places; SciPy takes longer to make a small one than to multiply it."""
        twin = copy(self.X)
        twin.data = data
        return twin

    @cached_property
    def _as_double(self) -> Any:
        return self.X if self.X.dtype == np.float64 else self._with(self.X.data.astype(np.float64))

    def _double(self) -> Any:
        return super()._double() if self._looped else self._as_double

    def doubled(self) -> SparseBlock:
        """The block with its entries in double precision, for many products."""
        return self if self.X.dtype == np.float64 else self._of(self._double(), self.y, self.weights, self.start)

    @cached_property
    def _across(self) -> Any:
        return self._as_double.T

    def _summed(self, each: Float, values: Any) -> Float:
        """(d,) Σ_i each_i · values_ij over the stored entries."""
        terms = np.repeat(each, np.diff(self.X.indptr)) * values
        return np.bincount(self.X.indices, terms, self.shape[1]).astype(np.float64, copy=False)

    def rmatvec(self, r: Float) -> Float:
        if r.ndim == 1 and self.X.nnz <= _COUNTED:
            return self._summed(r, self.X.data)
        if not self._looped:
            product: Float = self._across @ r
            return product
        # SciPy copies a slice of a larger matrix before it transposes it.
        from separatrix.kernels.sparse.rows import add_transposed, add_transposed_columns

        X, single = self.X, r.size == len(r)
        product = np.zeros(self.shape[1] if single else (self.shape[1], r.shape[1]))
        add = add_transposed if single else add_transposed_columns
        add(X.data, X.indices, X.indptr, np.ascontiguousarray(r.ravel() if single else r), product)
        return product.reshape(self.shape[1], *r.shape[1:])

    def gram(self, weights: Float | None = None) -> Float:
        X, (n, d) = self._double(), self.shape
        products = X.nnz**2 / max(n, 1)  # of rows of nnz/n entries: (nnz/n)² each
        compiled = self._looped and products >= d * d
        if _DENSE_PRODUCT * n * d * (d + _DENSE_OVERHEAD) < (_COMPILED_PRODUCT if compiled else _PRODUCT) * products:
            rows: Float = X.toarray()
            rows = rows if weights is None else rows * np.sqrt(weights)[:, None]
            return rows.T @ rows
        if compiled:
            return self.gram_of(np.arange(d), np.ones(n) if weights is None else weights)
        scaled = X if weights is None else sp.diags_array(weights) @ X
        return (X.T @ scaled).toarray()

    def gram_of(self, which: Codes, weights: Float) -> Float:
        if not self._looped:
            return super().gram_of(which, weights)
        from separatrix.kernels.sparse.rows import add_gram

        place = np.full(self.shape[1], -1, dtype=np.int64)
        place[which] = np.arange(len(which))
        lower = np.zeros((len(which), len(which)))
        add_gram(self.X.data, self.X.indices, self.X.indptr, place, weights, lower)
        return lower + np.tril(lower, -1).T

    def curve(self, weights: Float, v: Float) -> Float:
        if not self._compiled() or v.ndim > 1:
            return super().curve(weights, v)
        return self._curved(weights, v, 0.0)[:-1]

    def curve_with_ones(self, weights: Float, v: Float) -> Float:
        if not self._compiled():
            return super().curve_with_ones(weights, v)
        return self._curved(weights, v[:-1], v[-1])

    def _compiled(self) -> bool:
        return self._looped or (self.X.nnz >= _FEW_ENTRIES and compiled_pays(0.0))

    def _curved(self, weights: Float, v: Float, constant: float) -> Float:
        from separatrix.kernels.sparse.rows import add_curved

        product = np.zeros(self.shape[1] + 1)
        X = self.X
        product[-1] = add_curved(X.data, X.indices, X.indptr, weights, v, constant, product[:-1])
        return product

    def sparse_rows(self) -> tuple[tuple[NDArray[Any], NDArray[Any], NDArray[Any]], bool] | None:
        return self.stored_rows(), False

    def _squared(self) -> Any:
        return self._with(np.square(self.X.data.astype(np.float64, copy=False)))

    def column_squares(self, weights: Float | None = None) -> Float:
        each = np.ones(self.n) if weights is None else weights
        if self.X.nnz <= _COUNTED:
            return self._summed(each, np.square(self.X.data.astype(np.float64, copy=False)))
        if not self._looped:
            return self._squared().T @ each
        from separatrix.kernels.sparse.rows import add_squares

        squares = np.zeros(self.shape[1])
        add_squares(self.X.data, self.X.indices, self.X.indptr, each, squares)
        return squares

    def columns(self, which: Codes) -> SparseBlock:
        return SparseBlock(self.X[:, which], self.y, self.weights, self.start)

    def row_squares(self, metric: Float) -> Float:
        return self._squared() @ metric

    def dense(self) -> Float:
        return self._double().toarray()

    def stored_rows(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self.X.data, self.X.indices, self.X.indptr

    def _small(self) -> bool:
        """Whether dense rows are multiplied before SciPy has made the matrices that sparse ones need."""
        return _DENSE_PRODUCT * self.n * self.shape[1] * (min(self.shape) + _DENSE_OVERHEAD) < _MATRICES

    def centre(self, codes: Codes, n_classes: int) -> Centred:
        entries = self.n * self.shape[1]
        if self._small() or (self.X.nnz > _FULL * entries and entries <= _FITS):
            return DenseBlock(self.dense(), None, self.weights, scratch=True).centre(codes, n_classes)
        return _SparseCentred(self._double(), codes, n_classes, self.weights, self._looped)

    def join(self, columns: Float) -> Block:
        if self._small():
            n, d = self.shape
            rows = np.zeros((n, d + columns.shape[1]))
            rows[np.repeat(np.arange(n), np.diff(self.X.indptr)), self.X.indices] = self.X.data
            rows[:, d:] = columns
            return DenseBlock(rows, self.y, self.weights, self.start, scratch=True)
        joined = sp.hstack([self._double(), sp.csr_array(columns)], format="csr")
        return SparseBlock(joined, self.y, self.weights, self.start)

    def pieces(self, size: int) -> Iterator[Block]:
        yield self  # what is stored of it is small already

    def class_sums(self, codes: Codes, n_classes: int) -> Float:
        weights = self.row_weights
        if not self._looped:
            members = sp.csr_array((weights, (codes, np.arange(self.n))), shape=(n_classes, self.n))
            return (members @ self._double()).toarray()
        from separatrix.kernels.sparse.rows import add_rows_by_class

        sums = np.zeros((n_classes, self.shape[1]))
        self._least = add_rows_by_class(self.X.data, self.X.indices, self.X.indptr, codes, weights, sums)
        return sums

    def least(self) -> float:
        if self._least is not None:
            return self._least
        return min(0.0, float(self.X.data.min(initial=0.0)))

    def column_minima(self) -> Float:
        return np.minimum(0.0, self._double().min(axis=0).toarray().ravel()) if self.n else np.zeros(self.shape[1])

    def stored_entries(self) -> Entries:
        rows = np.repeat(np.arange(self.n), np.diff(self.X.indptr))
        return Entries(self.X.data, rows, self.X.indices, self.shape[1], implicit_zeros=True)

    def non_finite(self) -> Any:
        bad = ~np.isfinite(self.X.data) if self.X.dtype.kind == "f" else np.zeros(self.X.nnz, dtype=bool)
        return sp.csr_array((bad, self.X.indices, self.X.indptr), shape=self.X.shape)
