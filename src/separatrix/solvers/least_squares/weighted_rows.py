"""Rows in memory as the dual of ridge regression sees them: centred, times the roots of their weights.

    X̃ = √s (X − 1cᵀ),   ỹ = √s (y − ȳ),        c = Σ sx / Σ s with an intercept, else 0

X̃ is never stored: X̃v = √s(Xv − cᵀv), X̃ᵀp = Xᵀ(√s p) − c Σ √s p. What cancels there is in the proof of `dual_gradient`.
Few rows also have a Gram matrix: of dense columns that are centred one by one as they pass through the cache; of sparse ones

    X̃X̃ᵀ = (√s X)(√s X)ᵀ − p rᵀ − r pᵀ + ‖c‖² r rᵀ,   r = √s,  p = √s X c

Parts are cut by the shape alone and added in their order: the same bits on any number of threads.

**Complexity** O(nnz · m) for a product with m columns, O(n²d) for the Gram matrix. **Passes over the data** one for each; X̃ᵀp
and X̃X̃ᵀp of dense rows are had together in one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.data.source import Source, in_parallel, ordered
from separatrix.data.sparse import SparseBlock
from separatrix.solvers.at_hand.row_gram import row_gram

# Entries of a part: worth a thread, and for sparse rows more than the sums over parts cost.
_ENTRIES, _ENTRIES_A_COLUMN = 1 << 20, 8
_DENSE_ENTRIES = 1 << 19
# Entries of a part of the columns that stays in the cache from one product to the next.
_CACHED = 1 << 17
# Entries of an array that one thread multiplies with a vector before others have begun.
_WHOLE = 1 << 22
# From so many rows on their products cost so much more than to read them that single precision is worth a first try.
_ROWS_IN_SINGLE = 160
# Up to so many targets the columns of a sparse product are made one by one.
_FEW_TARGETS = 4


class WeightedRows(ABC):
    """X̃ and its products.

    Attributes
    ----------
    sums, squares : ndarray of shape (d,)
        Σ sx and Σ sx² of the columns.
    targets : ndarray of shape (n, m)
        ỹ.
    target_mean : ndarray of shape (m,)
        ȳ, or zero without an intercept.
    centre : ndarray of shape (d,)
    total : float
        Σ s.
    """

    sums: Float
    squares: Float

    def __init__(self, source: Source, fit_intercept: bool) -> None:
        self.source = source
        blocks = list(source.blocks())
        weights = np.concatenate([block.row_weights for block in blocks])
        targets = np.concatenate([block.y for block in blocks])
        self._kept = np.flatnonzero(weights)
        weights, targets = weights[self._kept], targets[self._kept]
        self.total, self._roots = float(weights.sum()), np.sqrt(weights)[:, None]
        self._weighted = bool((weights != 1.0).any())
        with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity are found in the sums, and named
            self._read(weights)
        source.count_pass()
        centred = self._shifted = fit_intercept and self.total > 0
        self.target_mean = weights @ targets / self.total if centred else np.zeros(targets.shape[1])
        self.centre = self.sums / self.total if centred else np.zeros_like(self.sums)
        # One target after the other in memory: arithmetic on few columns is slow row by row.
        self.targets = np.asfortranarray(self._roots * (targets - self.target_mean))

    @abstractmethod
    def _read(self, weights: Float) -> None:
        """Find the sums and the squares."""

    @abstractmethod
    def _times(self, v: Float) -> Float:
        """Xv."""

    @abstractmethod
    def _transposed(self, p: Float) -> Float:
        """Xᵀp."""

    def check_sums(self) -> None:
        """Refuse NaN and infinity, naming the column; refuse rows whose weights are all zero."""
        self.source.check_finite(self.sums)
        if not self.total:
            raise ValueError("The total weight of the rows is zero, so nothing can be learned; give positive weights.")

    def check_squares(self) -> None:
        """Refuse overflow and underflow, naming the column."""
        self.source.check_finite(self.squares)
        if (
            (self.squares == 0.0) & (self.sums != 0.0)
        ).any():  # the squares of such values are zero in double precision
            raise ValueError(self.source.explain_range())

    def times(self, v: Float) -> Float:
        """X̃v (n, m) for the columns of v (d, m)."""
        product = self._times(v)
        self.source.count_pass()
        if self._shifted:
            product -= self.centre @ v
        if self._weighted:
            product *= self._roots
        return product

    def transposed(self, p: Float) -> Float:
        """X̃ᵀp (d, m) for the columns of p (n, m)."""
        rooted = self._roots * p if self._weighted else p
        product = self._transposed(rooted)
        self.source.count_pass()
        if self._shifted:  # a product of matrices, in the order of the other: loops over few targets are short
            sums = rooted.sum(axis=0)[None]
            by_rows = product.flags.c_contiguous
            product -= np.dot(self.centre[:, None], sums) if by_rows else np.dot(sums.T, self.centre[None]).T
        return product

    def there_and_back(self, p: Float) -> tuple[Float, Float]:
        """X̃ᵀp (d, m) and X̃X̃ᵀp (n, m)."""
        w = self.transposed(p)
        return w, self.times(w)


class SparseRows(WeightedRows):
    """Of a sparse matrix."""

    def _read(self, weights: Float) -> None:
        entries = max(_ENTRIES, _ENTRIES_A_COLUMN * self.source.n_features)
        self._blocks = [block.counted() for block in self.source.coarse(entries).blocks()]
        if (self.source.entries or 0) <= _WHOLE:  # other types are read as float64 once, not in every product
            self._blocks = [block.doubled() if isinstance(block, SparseBlock) else block for block in self._blocks]
        ends = np.cumsum([0] + [block.n for block in self._blocks])
        self._at = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.sums = self._transposed(weights[:, None])[:, 0]
        self.squares = np.sum([block.column_squares(block.weights) for block in self._blocks], axis=0)

    def _times(self, v: Float) -> Float:
        if len(self._blocks) == 1:
            return _by_columns(self._blocks[0].matvec, v)
        product = np.empty((len(self._roots), v.shape[1]), order="F")

        def of_block(k: int) -> None:
            product[self._at[k]] = _by_columns(self._blocks[k].matvec, v)

        _each(of_block, len(self._blocks))
        return product

    def _transposed(self, p: Float) -> Float:
        if len(self._blocks) == 1:
            return _by_columns(self._blocks[0].rmatvec, p)
        parts: list[Float] = [p] * len(self._blocks)

        def of_block(k: int) -> None:
            parts[k] = _by_columns(self._blocks[k].rmatvec, p[self._at[k]])

        _each(of_block, len(self._blocks))
        total = parts[0]
        for part in parts[1:]:
            total += part
        return total


class DenseRows(WeightedRows):
    """Of an array."""

    def __init__(self, source: Source, fit_intercept: bool) -> None:
        self._centred = fit_intercept
        super().__init__(source, fit_intercept)

    def _read(self, weights: Float) -> None:
        X = self.source.array()
        assert X is not None, "only an array has dense rows"
        self._X = X if len(self._kept) == len(X) else X[self._kept]
        if X.size <= _WHOLE:  # other types are read as float64 once, not in every product
            self._X = self._X.astype(np.float64, copy=False)
        n, d = self._X.shape
        self._rows, self._columns = max(1, _DENSE_ENTRIES // d), max(64, _DENSE_ENTRIES // max(1, n))
        self._add_up(weights)

    def _add_up(self, weights: Float) -> None:
        """Find the sums."""
        self.sums = self._transposed(weights[:, None])[:, 0]

    @cached_property
    def squares(self) -> Float:  # type: ignore[override]  # only the proof asks for them
        squares, weights = np.empty(self._X.shape[1]), np.square(self._roots[:, 0])

        def of_columns(k: int) -> None:
            at = slice(k * self._columns, (k + 1) * self._columns)
            part = self._X[:, at].astype(np.float64, copy=False)
            squares[at] = (
                np.einsum("i,ij,ij->j", weights, part, part) if self._weighted else np.einsum("ij,ij->j", part, part)
            )

        with np.errstate(over="ignore", under="ignore"):
            _each(of_columns, -(-len(squares) // self._columns))
        return squares

    def _times(self, v: Float) -> Float:
        product = np.empty((len(self._X), v.shape[1]))
        if self._X.size * v.shape[1] <= _WHOLE:
            return np.dot(self._X.astype(np.float64, copy=False), v, out=product)

        def of_rows(k: int) -> None:
            at = slice(k * self._rows, (k + 1) * self._rows)
            np.matmul(self._X[at].astype(np.float64, copy=False), v, out=product[at])

        _each(of_rows, -(-len(product) // self._rows))
        return product

    def _transposed(self, p: Float) -> Float:
        product = np.empty((self._X.shape[1], p.shape[1]))
        if self._X.size * p.shape[1] <= _WHOLE:
            return np.dot(self._X.T.astype(np.float64, copy=False), p, out=product)

        def of_columns(k: int) -> None:
            at = slice(k * self._columns, (k + 1) * self._columns)
            # Unlike np.dot, matmul does not copy a part of an array.
            np.matmul(self._X[:, at].T.astype(np.float64, copy=False), p, out=product[at])

        _each(of_columns, -(-len(product) // self._columns))
        return product

    def there_and_back(self, p: Float) -> tuple[Float, Float]:
        """Both in one pass: of the columns in parts that are in the cache for the second product."""
        (n, d), m = self._X.shape, p.shape[1]
        if self._X.size <= _CACHED:
            return super().there_and_back(p)
        rooted = self._roots * p if self._weighted else p
        sums, w = rooted.sum(axis=0)[None], np.empty((d, m))
        step, width = max(32, _CACHED // max(1, n)), max(64, _ENTRIES // max(1, n))
        width = step * -(-width // step)

        def of_columns(start: int) -> Float:
            total = np.zeros((n, m))
            for first in range(start, min(start + width, d), step):
                at = slice(first, min(first + step, start + width))
                part = self._X[:, at].astype(np.float64, copy=False)
                np.matmul(part.T, rooted, out=w[at])
                if self._shifted:
                    w[at] -= np.dot(self.centre[at, None], sums)
                total += np.matmul(part, w[at])
            return total

        product = np.zeros((n, m))
        for part in ordered(of_columns, range(0, d, width)):
            product += part
        self.source.count_pass()
        if self._shifted:
            product -= self.centre @ w
        if self._weighted:
            product *= self._roots
        return w, product


class GramRows(WeightedRows):
    """Few rows with many columns, and their Gram matrix.

    Attributes
    ----------
    single : bool
        Whether that has products in float32.
    first_gram : ndarray of shape (n, n)
    """

    single = False
    first_gram: Float

    def null_direction(self) -> Float | None:
        """(n,) of unit length, for which X̃ᵀv = 0 and ỹᵀv = 0: the roots of the weights where the rows are centred."""
        return self._roots[:, 0] / np.sqrt(self.total) if self._shifted else None

    @property
    def before_centring(self) -> float:
        """How much larger the eigenvalues were, at most, of what was multiplied and then centred."""
        return 0.0

    @abstractmethod
    def gram(self, dtype: np.dtype[Any]) -> Float:
        """X̃X̃ᵀ with products in a type."""


class FewDenseRows(GramRows, DenseRows):
    """Of an array."""

    _precise = False

    def _add_up(self, weights: Float) -> None:
        self.sums, self.squares = np.empty(self._X.shape[1]), np.empty(self._X.shape[1])
        self.single = not self._precise and len(weights) >= _ROWS_IN_SINGLE
        self.first_gram = self.gram(np.dtype(np.float32 if self.single else np.float64))

    def gram(self, dtype: np.dtype[Any]) -> Float:
        """X̃X̃ᵀ with products in a type; it finds the sums and (in that type) the squares on its way."""
        weights = np.square(self._roots[:, 0])

        def centred(at: slice, part: NDArray[Any]) -> None:
            X = self._X[:, at].astype(np.float64, copy=False)
            np.matmul(weights, X, out=self.sums[at])
            mean = self.sums[at] / self.total if self._centred else np.zeros(1)
            np.subtract(X, mean, out=part, casting="same_kind")
            if self._weighted:
                np.multiply(part, self._roots, out=part, casting="same_kind")
            self.squares[at] = np.einsum("ij,ij->j", part, part) + self.total * np.square(mean)

        with np.errstate(invalid="ignore", over="ignore"):
            return row_gram(self._X, dtype, centred)


class PreciseRows(FewDenseRows):
    """The same with products in double precision, whatever their number."""

    _precise = True


class FewSparseRows(GramRows, SparseRows):
    """Of a sparse matrix; products are in double precision."""

    @cached_property
    def first_gram(self) -> Float:  # type: ignore[override]  # only who asks for it has it made
        return self.gram(np.dtype(np.float64))

    @property
    def before_centring(self) -> float:
        return self.total * float(self.centre @ self.centre)

    def gram(self, dtype: np.dtype[Any]) -> Float:
        scaled: Any = sp.vstack([block.X for block in self._blocks if isinstance(block, SparseBlock)], format="csr")
        scaled = scaled.astype(dtype)
        if self._weighted:
            scaled = sp.diags_array(self._roots[:, 0]) @ scaled
        gram: Float = (scaled @ scaled.T).toarray().astype(np.float64, copy=False)
        if self._shifted:
            root, along = self._roots[:, 0], scaled @ self.centre
            along = along - 0.5 * float(self.centre @ self.centre) * root
            gram -= np.outer(along, root)
            gram -= np.outer(root, along)
        return gram


def _each(work: Callable[[int], None], number: int) -> None:
    if number == 1:
        work(0)
    else:
        in_parallel(work, range(number))


def _by_columns(multiply: Callable[[Float], Float], v: Float) -> Float:
    """Products with the columns of v. For few of them the inner loop over columns is too short to be worth it."""
    if v.shape[1] == 1:
        return multiply(np.ascontiguousarray(v[:, 0]))[:, None]
    if v.shape[1] > _FEW_TARGETS:
        return multiply(np.ascontiguousarray(v))
    return np.stack([multiply(np.ascontiguousarray(column)) for column in v.T]).T
