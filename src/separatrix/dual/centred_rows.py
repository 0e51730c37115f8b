"""Rows taken from a centre, and what rounding may do to their products.

    scores (x − c)ᵀw,      products Σᵢ rᵢ(xᵢ − c),      b = β − wᵀc the published intercept,  β = b + wᵀc what it amounts to

A difference x − c is correctly rounded. A sum of m terms loses at most m u Σ|terms|, u = ε/2, in any order. Where
Σ_j |x_j − c_j||w_j| is dear, ‖x − c‖‖w‖ is at least as large (Cauchy and Schwarz). Σ_j w_j c_j is computed with the rounding
errors of its products (Dekker) and rounded once, so b loses u|b| however far the centre lies.

Reference: Higham (2002), Accuracy and Stability of Numerical Algorithms, sections 3.1 and 4.2; Dekker (1971).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.at_hand.dense_gram import dense_gram, from_the_mean, near_centre
from separatrix.dual.at_hand.sparse_parts import SparseParts
from separatrix.lazy import compiled_pays
from separatrix.objectives.rounding import exact_dot, exact_terms

EPS = float(np.finfo(np.float64).eps)
UNIT = 0.5 * EPS
# NumPy adds in blocks of 128 with eight partial sums, then in pairs: no sum along a contiguous axis is deeper than this.
SUM = 64.0 * UNIT
_BLOCK = 4096
# More columns than rows, and no more rows than this: everything can happen on the rows' side.
_GRAM_ROWS = 3000
# Columns that are added up before their sums are, in scores; entries of a part of the columns that is worth a thread.
_RUN, _ENTRIES_A_PART, _ALL = 1024, 1 << 20, slice(None)
# What a dense copy of the rows may have for entries, and how far a column may be scaled.
_ENTRIES, _POWER = 30_000_000, 500
# How many products of dense columns take as long as one of two stored entries; seconds that each entry saves in their place.
_PAIR, _SAVED_A_PAIR = 25.0, 1e-6
# Entries of which absolute values are added up, and indices that are counted at once.
_SMALL, _PART = 2_000_000, 1_000_000
# Indices that cannot be negative need no test for it in a compiled loop; those of 64 bits have no common type with a counter.
_INDEX = {4: np.uint32, 8: np.int64}


def stored_parts(X: Any, centre: Float) -> tuple[Any, Any, Any, Any]:
    """What the compiled loops take for rows: the three arrays of a CSR matrix, or dense rows; and the centre."""
    if sp.issparse(X):
        return X.data[None], X.indices.view(_INDEX[X.indices.dtype.itemsize]), X.indptr, centre
    return X, None, None, centre


@dataclass(frozen=True)
class CentredRows:
    """Rows in memory, seen from a centre."""

    X: Any  # (n, d), a C-ordered array or a CSR array
    free: bool  # whether there is an intercept without a penalty
    centre: Float  # (d,) zeros for sparse rows and where the intercept is not free
    squares: Float  # (n,) ‖xᵢ − c‖²
    gram: Float | None = None  # (n, n) inner products, from the mean where `free`, of dense rows that are few
    single: bool = False  # whether these are products in float32

    @classmethod
    def of(cls, X: Any, free: bool, single: bool = False) -> CentredRows:
        """Dense rows with a free intercept from their mean: the intercept then hardly depends on the weights.

        `single` allows products in float32 for a Gram matrix that only a search reads.
        """
        if free and sp.issparse(X) and X.nnz > 0.5 * X.shape[0] * X.shape[1]:
            X = X.toarray()  # hardly more memory, and a centre
        centre = np.zeros(X.shape[1])
        if not sp.issparse(X) and X.shape[0] <= min(X.shape[1] - 1, _GRAM_ROWS):
            return cls._few(X, free, single)
        if free and not sp.issparse(X):
            with np.errstate(over="ignore", invalid="ignore"):
                mean = X.mean(axis=0, dtype=np.float64)
            centre = np.where(np.isfinite(mean), mean, 0.0)
        with np.errstate(over="ignore"):
            return cls(X, free, centre, _row_squares(X, centre))

    @classmethod
    def _few(cls, X: Any, free: bool, single: bool) -> CentredRows:
        """Few dense rows with many columns, with their Gram matrix."""
        with np.errstate(over="ignore", invalid="ignore"):
            centre = np.zeros(X.shape[1])
            gram, squares = dense_gram(X, None, single)
            if free and not near_centre(gram):
                mean = X.mean(axis=0, dtype=np.float64)
                centre, single = np.where(np.isfinite(mean), mean, 0.0), False
                gram, squares = dense_gram(X, centre)
            elif single and not np.isfinite(gram).all():  # in the smaller range of float32
                return cls._few(X, free, False)
            gram = from_the_mean(gram) if free else gram
            return cls(X, free, centre, squares, gram if np.isfinite(gram).all() else None, single)

    @property
    def precise(self) -> CentredRows:
        """The same with the Gram matrix in double precision."""
        return self._few(self.X, self.free, False) if self.single else self

    @cached_property
    def factor(self) -> GramFactor | None:
        """Rows with the same Gram matrix and no more columns than rows, for a search on the rows' side."""
        return None if self.gram is None else GramFactor.of(self.gram, self.free)

    @cached_property
    def lengths(self) -> Float:
        """(n,) ‖xᵢ − c‖, no smaller than it is."""
        return np.sqrt(self.squares) * (1.0 + (self.X.shape[1] + 4.0) * UNIT)

    @cached_property
    def _terms_a_row(self) -> float:
        if sp.issparse(self.X):
            return float(np.diff(self.X.indptr).max(initial=0))
        return float(min(self.X.shape[1], _RUN) + self.X.shape[1] / _RUN)

    @cached_property
    def _terms_a_column(self) -> float:
        if sp.issparse(self.X):
            return float(self._column_counts.max(initial=0))
        return float(min(self._terms, len(self.squares)) + len(self.squares) / self._terms)

    @property
    def _terms(self) -> int:
        """Rows that are added up before their sums are: few enough to keep all sums short, and many enough to be quick."""
        return 256

    def scores(self, w: Float) -> Float:
        """(X − 1cᵀ)w, for w of shape (d,) or (d, K)."""
        if sp.issparse(self.X):
            return self._sparse.scores(w)
        return _joined([_short_sums(rows, w) for _, rows in self._blocks(_BLOCK)])

    @cached_property
    def _sparse(self) -> SparseParts:
        return SparseParts(self.X)

    def products(self, r: Float) -> Float:
        """(X − 1cᵀ)ᵀr, for r of shape (n,) or (n, K)."""
        if sp.issparse(self.X):
            return self._sparse.products(r)
        total = np.zeros((self.X.shape[1], *r.shape[1:]))
        step = max(64, _ENTRIES_A_PART // max(1, len(self.squares)))

        def of_columns(start: int) -> None:
            at = slice(start, start + step)
            for first, rows in self._blocks(self._terms, at):
                total[at] += rows.T @ r[first : first + len(rows)]

        in_parallel(of_columns, range(0, len(total), step))
        return total

    def _blocks(self, size: int, at: slice = _ALL) -> Iterator[tuple[int, Float]]:
        """Rows in blocks, of some columns."""
        for start in range(0, self.X.shape[0], size):
            part = self.X[start : start + size, at]
            yield start, part - self.centre[at] if self._centred else np.asarray(part, dtype=np.float64)

    @cached_property
    def _small(self) -> bool:
        """Whether sums of absolute values are cheap; lengths do without them."""
        return not sp.issparse(self.X) and self.X.size <= _SMALL

    def score_rounding(self, w: Float, beta: Any) -> Float:
        """How far every computed score + β may be from the true one."""
        if self._small:
            sizes = _joined([np.abs(rows) @ np.abs(w) for _, rows in self._blocks(_BLOCK)])
        else:
            sizes = np.multiply.outer(self.lengths, np.sqrt(np.square(w).sum(axis=0)))
        return (self._terms_a_row + 6.0) * UNIT * (1.0 + SUM) * (sizes + np.abs(beta))

    def product_rounding(self, r: Float) -> Any:
        """How far, in length, `products` may be from the truth; of r (n, K), those with each column."""
        if self._small:
            total = np.zeros((self.X.shape[1], *r.shape[1:]))
            for start, rows in self._blocks(_BLOCK):
                total += np.abs(rows).T @ np.abs(r[start : start + len(rows)])
            size = np.sqrt(np.square(total).sum(axis=0))
        else:
            size = self.lengths @ np.abs(r)
        return (self._terms_a_column + 6.0) * UNIT * size * (1.0 + self._terms_a_column * EPS)

    def published(self, w: Float, beta: float) -> float:
        """b = β − wᵀc, rounded once."""
        return exact_dot(-w, self.centre, beta) if self._centred else beta

    def intercepts(self, W: Float, beta: Float) -> tuple[Float, Float]:
        """(K,) b = β − wᵀc as they are published, and b + wᵀc, what they amount to; each rounded once."""
        if not self._centred:
            return beta, beta
        terms = exact_terms(W, self.centre)
        b = [math.fsum([own, *row]) for own, row in zip(beta.tolist(), (-terms).tolist(), strict=True)]
        there = [math.fsum([own, *row]) for own, row in zip(b, terms.tolist(), strict=True)]
        return np.array(b), np.array(there)

    def offset(self, w: Float, b: float) -> float:
        """β = b + wᵀc, rounded once."""
        return exact_dot(w, self.centre, b) if self._centred else b

    @cached_property
    def _centred(self) -> bool:
        return bool(self.centre.any())

    @cached_property
    def _column_counts(self) -> NDArray[np.intp]:
        """(d,) entries of the columns of sparse rows; in parts, whose indices are copied."""
        indices, d = self.X.indices, self.X.shape[1]
        counts = np.zeros(d, dtype=np.intp)
        for start in range(0, len(indices), _PART):
            counts += np.bincount(indices[start : start + _PART], minlength=d)
        return counts

    @cached_property
    def _used(self) -> NDArray[np.intp]:
        """Columns that are not all zeros."""
        d = self.X.shape[1]
        return np.flatnonzero(self._column_counts) if sp.issparse(self.X) else np.arange(d)

    @property
    def has_row_gram(self) -> bool:
        """Whether sparse rows are so few that the matrix of their inner products is small."""
        return sp.issparse(self.X) and len(self.squares) < len(self._used) and len(self.squares) <= _GRAM_ROWS

    @cached_property
    def row_gram(self) -> Float:
        """(n, n) inner products of sparse rows."""
        X = self.X.astype(np.float64, copy=False)
        gram: Float = (X @ X.T).toarray()
        return gram

    @property
    def has_copy(self) -> bool:
        """Whether a dense copy is not too large."""
        return len(self.squares) * len(self._used) <= _ENTRIES

    @cached_property
    def dense_copy(self) -> DenseCopy | None:
        """The rows for a method that factors matrices; ``None`` where a dense copy would be too large."""
        n, d = self.X.shape
        used = self._used
        if not self.has_copy:
            return None
        if sp.issparse(self.X) and len(used) > n and (copy := self._rows_side) is not None:
            return copy
        A = self.X[:, used].toarray().astype(np.float64) if sp.issparse(self.X) else self.X - self.centre
        mean = A.mean(axis=0) if self.free else np.zeros(len(used))
        A -= mean
        wide = len(used) > n
        size = np.abs(A).max(initial=0.0) if wide else np.abs(A).max(axis=0, initial=0.0)
        with np.errstate(divide="ignore"):
            power = np.where(size > 0, np.round(np.log2(size)), 0.0).clip(-_POWER, _POWER)
        scale = np.broadcast_to(np.exp2(power), mean.shape)
        A /= scale
        turn = None
        if wide:
            turn, factor = sla.qr(A.T, mode="economic", overwrite_a=True, check_finite=False)
            A = np.ascontiguousarray(factor.T)
        return DenseCopy(A, 1.0 / np.square(scale[: A.shape[1]]), d, used, mean, scale, turn)

    @property
    def has_sparse_copy(self) -> bool:
        """Whether so few entries are stored that products of pairs of them are quicker than those of dense columns."""
        if not sp.issparse(self.X) or len(self._used) > len(self.squares):
            return False
        few = self.X.nnz**2 * _PAIR <= float(len(self.squares) * len(self._used)) ** 2
        return few and compiled_pays(_SAVED_A_PAIR * self.X.nnz)

    @cached_property
    def sparse_copy(self) -> DenseCopy:
        """The same with A as sparse rows, which are not centred."""
        X, used = self.X, self._used
        A = X[:, used].astype(np.float64)
        A.sort_indices()
        power = np.round(np.log2(abs(A).max(axis=0).toarray().ravel())).clip(-_POWER, _POWER)
        A.data /= np.exp2(power)[A.indices]
        return DenseCopy(A, np.exp2(-2.0 * power), X.shape[1], used, np.zeros(len(used)), np.exp2(power), None)

    @property
    def _rows_side(self) -> DenseCopy | None:
        """The copy of sparse rows that are fewer than their columns: a factor of their Gram matrix, if that has the digits."""
        with np.errstate(over="ignore", invalid="ignore"):
            gram = self.row_gram
            near = near_centre(gram)
            gram = from_the_mean(gram) if self.free else gram
        if not (near and np.isfinite(gram).all()):
            return None
        factor = GramFactor.of(gram, self.free)
        L, (n, d) = factor.rows.X, self.X.shape
        mean = self.products(np.full(n, 1.0 / n)) if self.free else np.zeros(d)
        power = np.round(np.log2(max(np.abs(L).max(initial=0.0), np.finfo(np.float64).tiny))).clip(-_POWER, _POWER)
        scale = np.full(L.shape[1], np.exp2(power))
        return DenseCopy(L / scale, 1.0 / np.square(scale), d, np.arange(d), mean, scale, (self, factor))


@dataclass(frozen=True)
class GramFactor:
    """Rows L with LLᵀ the Gram matrix of X: of X = LQᵀ, Q with orthonormal columns, Q is what is not formed."""

    rows: CentredRows
    triangle: Float
    """(r, r) the rows of L in `pivots`: all others depend on these."""
    pivots: NDArray[np.intp]

    @classmethod
    def of(cls, gram: Float, free: bool) -> GramFactor:
        triangle, pivots, rank, _ = dpstrf(gram, lower=1)
        L, order = np.tril(triangle)[:, : max(1, rank)], pivots - 1
        rows = np.empty_like(L, order="C")
        rows[order] = L
        inner = CentredRows(rows, free, np.zeros(L.shape[1]), np.square(rows).sum(axis=1))
        return cls(inner, L[: L.shape[1]], order[: L.shape[1]])

    def multipliers(self, theta: Float) -> Float:
        """(n, K) γ with Σ γᵢxᵢ = Qθ, Σγ = 0 where the rows are taken from their mean; θ is (r, K)."""
        gamma = np.zeros((len(self.rows.squares), theta.shape[1]))
        gamma[self.pivots] = sla.solve_triangular(self.triangle, theta, lower=True, trans="T", check_finite=False)
        return gamma - gamma.mean(axis=0) if self.rows.free else gamma


@dataclass(frozen=True)
class DenseCopy:
    """Rows A (n, p), dense or those of `sparse_copy`, and the penalty ρ (p,) that makes their problem the one of X.

    The columns are centred where the intercept is free, and scaled by powers of two, so that no product overflows. Where they
    are more than the rows, all have one scale, and the rows are rotated into as many dimensions as there are rows.
    """

    A: Any
    penalty: Float
    n_features: int
    used: NDArray[np.intp]
    mean: Float
    scale: Float
    turn: Float | tuple[CentredRows, GramFactor] | None
    """(d, p) the rotation, or the rows and the factor of their Gram matrix, by which it is found."""

    def back(self, theta: Float, beta: Any) -> tuple[Float, Any]:
        """Weights (d,) or (d, K) and intercepts as X has them."""
        if isinstance(self.turn, tuple):
            rows, factor = self.turn
            gamma = factor.multipliers((theta.T / self.scale).T.reshape(len(theta), -1))
            w = rows.products(gamma).reshape(-1, *theta.shape[1:])
            return w, beta - self.mean @ w
        inner = ((theta if self.turn is None else self.turn @ theta).T / self.scale).T
        w = np.zeros((self.n_features, *theta.shape[1:]))
        w[self.used] = inner
        return w, beta - self.mean @ inner


def _joined(parts: list[Float]) -> Float:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _short_sums(rows: Float, w: Float) -> Float:
    """rows @ w, no sum longer than a run of columns: rounding is in proportion to the longest."""
    total: Float = rows[:, :_RUN] @ w[:_RUN]
    for start in range(_RUN, rows.shape[1], _RUN):
        total += rows[:, start : start + _RUN] @ w[start : start + _RUN]
    return total


def _row_squares(X: Any, centre: Float) -> Float:
    """(n,) squared lengths of CSR rows, or of dense ones taken from a centre."""
    squares = np.empty(X.shape[0])
    for start in range(0, X.shape[0], _BLOCK):
        stop = min(start + _BLOCK, X.shape[0])
        if sp.issparse(X):
            first, last = X.indptr[start], X.indptr[stop]
            entries = np.append(np.square(X.data[first:last], dtype=np.float64), 0.0)
            sums = np.add.reduceat(entries, X.indptr[start:stop] - first)
            squares[start:stop] = np.where(np.diff(X.indptr[start : stop + 1]) > 0, sums, 0.0)
        else:
            rows = X[start:stop] - centre
            squares[start:stop] = np.einsum("ij,ij->i", rows, rows)
    return squares
