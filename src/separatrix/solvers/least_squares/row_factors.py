"""Factors of S + αI = AᵀA + αI made from the rows A, whose condition number is not squared.

    PrimalFactor   [A; √α I] = Q R in columns of unit size              at least as many rows as columns: a triangular factor
    DualFactor     [Aᵀ; √α I] = Q R, the largest of its rows first      fewer rows than columns, α > 0
    SpanFactor     A⁺ on the directions of the rows that are resolved   fewer rows than columns, α = 0

A factor solves for coefficients and bounds rᵀ(S+αI)⁻¹r, the gap of F at a point whose half gradient is r (r = c − (S+αI)w).

The dual answer is the shortest (w, z) with Aw + √α z = t, and w = Aᵀu, z = √α u. A column in large units is a long row of
[Aᵀ; √α I]; sorted to the top it is eliminated first, and the error in every row is small against that row: Cox and Higham
(1998), BIT 38. A Cholesky factor of AAᵀ + αI is tried first: its u will do where steps of refinement bring the residual of the
dual system down to rounding, whatever the units are. With u the gap is bounded as in `dual_gradient`.

Without one it uses (S+αI)⁻¹ ⪯ I/α: a direction that no row resolves costs ‖r‖²/α, and is not left out. For columns T in large
units that is too much. The others add up to τ = Σ‖a_k‖², so that the Schur complement of T in S + αI, which is
αI + A_Tᵀ(I + A₋A₋ᵀ/α)⁻¹A_T, is at least (αI + A_TᵀA_T)/(1 + τ/α), and that has a primal factor of its own.

**Complexity** O(d³) for the primal factor, O(r²d) for r rows otherwise. **Passes over the data** none.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr, solve_triangular

from separatrix.data.block import Float

EPS = float(np.finfo(np.float64).eps)
# A pivoted factorisation of more rows than this costs more than its accuracy is worth.
_PIVOTED = 1000
# The share of a factor's own rounding, in units of its least singular value, up to which it proves anything.
_PROVES = 0.1
# Columns whose squares are so much larger than the typical ones are judged in their own units.
_LARGE = 1e6
# Directions are clear when the eigenvalues of the products of scaled rows are so even. The Cholesky factor of products needs
# less: steps of refinement mend what its rounding, ε over this, leaves, and the minimum norm has the condition of the rows.
_CLEAR, _FACTORED = 1e-6, 1e-9
# Share of the squares of the targets that may be left in the residual of a dual point, how much a step of refinement has to
# gain, and how many there are.
_LEFT, _GAIN, _STEPS = 1e-22, 1e-2, 6
# So many directions that the rows do not have are found one by one; LAPACK's room for a column that it turns.
_FEW_MISSING, _WORK = 8, 64


def unit(size: float) -> float:
    """Relative rounding of a sum of `size` terms."""
    return EPS * (32.0 + 2.0 * math.sqrt(size))


class RowFactor(ABC):
    """(S + αI)⁻¹ of rows.

    Attributes
    ----------
    rank : int
        Number of directions that are resolved.
    complete : bool
        Whether these are all directions in which something varies.
    condition : float
        Upper bound on 1/λ_min of S + αI in columns of unit size.
    """

    rank: int
    complete: bool = True
    condition: float = 1.0

    @abstractmethod
    def coef(self, targets: Float) -> Float:
        """(m, d) minimisers for the columns t of `targets`."""

    def with_dual(self, targets: Float) -> tuple[Float, Float | None]:
        """The same and, where there is one, the dual point (r, m): coef = (Aᵀu)ᵀ up to rounding."""
        return self.coef(targets), None

    @abstractmethod
    def step(self, residual: Float) -> Float:
        """r(S+αI)⁻¹ for the rows r."""

    @abstractmethod
    def lengths(self, residual: Float, noise: Float) -> Float:
        """(m,) upper bounds on √(rᵀ(S+αI)⁻¹r) for every r within `noise` of the rows of `residual`, entry by entry."""


class PrimalFactor(RowFactor):
    """R of [A; √α I]. Directions without a singular value above rounding, in columns of unit size, are left out."""

    def __init__(self, rows: Float, alpha: float, rounding: float) -> None:
        self._alpha = alpha
        r, d = rows.shape
        self._scale = np.sqrt(np.square(rows).sum(axis=0) + alpha)
        varies = self._scale > 0
        self._scale = np.where(varies, self._scale, 1.0)
        stacked = rows / self._scale
        if alpha > 0:
            stacked = np.concatenate([stacked, np.diag(np.sqrt(alpha) / self._scale)])
        basis, self._factor = np.linalg.qr(stacked)
        self._basis = basis[:r]
        left, singular, right = np.linalg.svd(self._factor)
        # A column's norm has a relative error of rounding; a matrix of such columns, √d times as much.
        floor = rounding * unit(len(stacked)) * np.sqrt(d) * singular.max(initial=0.0)
        kept = singular > floor
        self.rank = int(kept.sum())
        self.complete = self.rank == int(varies.sum())
        self._inverse = (right[kept].T / singular[kept]) @ left[:, kept].T  # R⁻¹, or its pseudo-inverse
        least = float(singular[kept].min(initial=np.inf))
        self.condition = float(np.square(self._inverse).sum())
        self._null = right[~kept].T / self._scale[:, None]
        self._triangular = self.rank == d
        # The rows are those of a matrix with columns within rounding of the true ones: AᵀA ⪰ (1 − off)² RᵀR.
        off = floor / least if self.rank else 0.0
        self._slack = 1.0 / (1.0 - off) if off < _PROVES else np.inf

    def coef(self, targets: Float) -> Float:
        cross = self._basis.T @ targets
        if self._triangular:
            solution = solve_triangular(self._factor, cross, check_finite=False).T / self._scale
        else:
            solution = (self._inverse @ cross).T / self._scale
        return self._minimum_norm(solution)

    def _minimum_norm(self, coef: Float) -> Float:
        """Take off the part of the coefficients that changes nothing."""
        if self._alpha > 0 or not self._null.size:
            return coef
        return without_part_in(coef, self._null)

    def step(self, residual: Float) -> Float:
        scaled = (residual / self._scale).T
        if self._triangular:
            half = solve_triangular(self._factor, scaled, trans="T", check_finite=False)
            return solve_triangular(self._factor, half, check_finite=False).T / self._scale
        return self._minimum_norm((self._inverse @ (self._inverse.T @ scaled)).T / self._scale)

    def lengths(self, residual: Float, noise: Float) -> Float:
        half = (residual / self._scale) @ self._inverse
        extra = (np.abs(noise) / self._scale + unit(len(half.T)) * np.abs(residual) / self._scale) @ np.abs(
            self._inverse
        )
        return self._slack * (np.linalg.norm(half, axis=1) + np.linalg.norm(extra, axis=1))


class DualFactor(RowFactor):
    """(AAᵀ + αI)⁻¹ by Cholesky, or `careful`, from a sorted factorisation of [Aᵀ; √α I]. α > 0."""

    def __init__(self, rows: Float, alpha: float, careful: bool) -> None:
        self._rows, self._alpha = rows, alpha
        r, d = rows.shape
        self.rank = d
        self._lower: Float | None = None
        if not careful:
            gram = rows @ rows.T
            gram.ravel()[:: r + 1] += alpha
            lower, failed = lapack.dpotrf(gram, lower=1, clean=0)
            self._lower = None if failed else lower

    @cached_property
    def _solver(self) -> _SortedFactor:
        r = len(self._rows)
        return _SortedFactor(np.concatenate([self._rows.T, np.sqrt(self._alpha) * np.eye(r)]))

    @cached_property
    def _parts(self) -> tuple[NDArray[np.bool_], PrimalFactor | None, float]:
        """Columns in large units, their own factor, √(1 + τ/α)."""
        squares, d = np.einsum("ij,ij->j", self._rows, self._rows), self._rows.shape[1]
        typical = max(self._alpha, float(np.partition(squares, d // 2)[d // 2]))
        large = squares > _LARGE * typical
        inner = PrimalFactor(self._rows[:, large], self._alpha, 1.0) if large.any() else None
        return large, inner, float(np.sqrt(1.0 + squares[~large].sum() / self._alpha))

    def coef(self, targets: Float) -> Float:
        return self.with_dual(targets)[0]

    def with_dual(self, targets: Float) -> tuple[Float, Float | None]:
        A, alpha = self._rows, self._alpha
        if self._lower is not None:
            return self._by_steps(self._lower, targets)
        d, root = A.shape[1], np.sqrt(alpha)
        both = np.zeros((d + len(A), targets.shape[1]))
        for _ in range(3):
            both += self._solver.shortest(targets - A @ both[:d] - root * both[d:])
        return both[:d].T, both[d:] / root

    def _by_steps(self, lower: Float, targets: Float) -> tuple[Float, Float | None]:
        """Steps of refinement until the residual is rounding; no dual point where they do not get there."""
        A, enough, left = self._rows, _LEFT * float(np.square(targets).sum()), np.inf
        u, w, residual = np.zeros_like(targets), np.zeros((A.shape[1], targets.shape[1])), targets
        for _ in range(_STEPS):
            u = u + _solved(lower, residual)
            w = A.T @ u
            residual = targets - self._alpha * u - A @ w
            before, left = left, float(np.square(residual).sum())
            if left <= enough or not left <= _GAIN * before:
                break
        return w.T, u if left <= enough else None

    def step(self, residual: Float) -> Float:
        if self._lower is not None:
            inner = _solved(self._lower, (residual @ self._rows.T).T).T @ self._rows
        else:
            basis = self._solver.basis[: residual.shape[1]]
            inner = (residual @ basis) @ basis.T
        return (residual - inner) / self._alpha

    def lengths(self, residual: Float, noise: Float) -> Float:
        size = np.abs(residual) + noise
        plain = np.linalg.norm(size, axis=1) / np.sqrt(self._alpha)
        large, inner, factor = self._parts
        if inner is None:
            return plain
        split = np.linalg.norm(size[:, ~large], axis=1) / np.sqrt(self._alpha)
        split += factor * inner.lengths(residual[:, large], noise[:, large])
        return np.minimum(plain, split)


class SpanFactor(RowFactor):
    """The answer of minimum norm for fewer rows than columns, without a penalty; it bounds nothing but F ≥ 0."""

    complete = False

    def __init__(self, rows: Float) -> None:
        self._rows = rows
        scale = np.sqrt(np.einsum("ij,ij->j", rows, rows))
        # Which combinations of the rows are resolved does not depend on the units of the columns.
        scaled = rows / np.where(scale > 0, scale, 1.0)
        gram = scaled @ scaled.T
        span, solver = _Reflected.of(scaled, gram), None
        if span is not None:
            self._span: _Reflected | _Projected = span
            inner = span.of_rows(rows)
            solver = _CholeskyFactor.of(inner)
        else:
            values, left = np.linalg.eigh(gram)
            kept = values > _CLEAR * values.max(initial=0.0)
            # Eigenvalues have half the digits of singular values: what is left of the rows in the other directions tells.
            rest = left[:, ~kept].T @ scaled
            clear = not np.sqrt(np.einsum("ij,ij->i", rest, rest)).max(initial=0.0) > _rounding(scaled, gram)
            if not clear:
                left, singular, _ = np.linalg.svd(scaled, full_matrices=False)
                kept = singular > EPS * max(rows.shape) * singular.max(initial=0.0)
            self._span = _Projected(left[:, kept])
            inner = self._span.of_rows(rows)
            if clear:  # in the units of the columns: large ones alone may resolve less
                solver = _CholeskyFactor.of(inner)
        self.rank = len(inner)
        self._solver: _SortedFactor | _CholeskyFactor = _SortedFactor(inner.T) if solver is None else solver

    def coef(self, targets: Float) -> Float:
        coef = np.zeros((self._rows.shape[1], targets.shape[1]))
        for _ in range(3):
            coef += self._solver.shortest(self._span.of_rows(targets - self._rows @ coef))
        return coef.T

    def step(self, residual: Float) -> Float:
        raise NotImplementedError  # there is no gradient to step along: the residuals are zero, or not of these columns

    def lengths(self, residual: Float, noise: Float) -> Float:
        return np.full(len(residual), np.inf)


def _rounding(scaled: Float, gram: Float) -> float:
    """The length of a combination of rows that is nothing but rounding: no row is longer than the largest singular value."""
    return EPS * max(scaled.shape) * float(np.sqrt(gram.diagonal().max(initial=0.0)))


class _Projected:
    """The span of orthonormal columns: an orthonormal basis that is multiplied."""

    def __init__(self, left: Float) -> None:
        self._left = left

    def of_rows(self, rows: Float) -> Float:
        """LᵀA."""
        return np.asarray(self._left.T @ rows)


class _Reflected:
    """The same for all directions but a few, k: a product of k reflections, a fraction of an eigendecomposition."""

    def __init__(self, reflectors: Float, factors: Float) -> None:
        self._reflectors, self._factors = reflectors, factors

    @classmethod
    def of(cls, scaled: Float, gram: Float) -> _Reflected | None:
        """All directions but those in which the rows are nothing but rounding; None where these are many, or not clear.

        Gx = 0 for x = (−L₁₁⁻ᵀL₂₁ᵀ, I) where the Cholesky factor of G, pivoted, ends in L₂₁; a step of refinement from the rows.
        """
        n = len(gram)
        lower, pivots, rank, _ = lapack.dpstrf(gram, lower=1)
        missing, order = n - rank, pivots - 1
        if not rank or missing > _FEW_MISSING:
            return None
        main, at = np.tril(lower[:rank, :rank]), order[:rank]
        part = gram[np.ix_(at, at)]
        if not lapack.dpocon(main, np.abs(part).sum(axis=0).max(), uplo="L")[0] > _FACTORED:
            return None
        null = np.zeros((n, missing))
        if missing:
            null[order[rank:]] = np.eye(missing)
            null[at] = -solve_triangular(main, lower[rank:, :rank].T, lower=True, trans="T", check_finite=False)
            null[at] -= _solved(main, scaled[at] @ (null.T @ scaled).T)
            null = np.linalg.qr(null)[0]
            rest = null.T @ scaled
            if np.sqrt(np.einsum("ij,ij->i", rest, rest)).max() > _rounding(scaled, gram):
                return None
        reflectors, factors, _, _ = lapack.dgeqrf(null)
        return cls(reflectors, factors)

    def of_rows(self, rows: Float) -> Float:
        """LᵀA."""
        if not len(self._factors):
            return rows
        return _turned(self._reflectors, self._factors, rows, "T")[len(self._factors) :]


def _turned(reflectors: Float, factors: Float, matrix: Float, trans: str) -> Float:
    """QA or QᵀA, of a Q as LAPACK keeps it."""
    return np.asarray(lapack.dormqr("L", trans, reflectors, factors, matrix, _WORK * max(1, matrix.shape[1]))[0])


class _CholeskyFactor:
    """The shortest x with Bx = t is Bᵀ(BBᵀ)⁻¹t, for rows B of moderate condition."""

    def __init__(self, rows: Float, lower: Float) -> None:
        self._rows, self._lower = rows, lower

    @classmethod
    def of(cls, rows: Float) -> _CholeskyFactor | None:
        """The factor, or None where the rows are not of moderate condition."""
        gram = rows @ rows.T
        if not len(gram):
            return cls(rows, gram)
        lower, failed = lapack.dpotrf(gram, lower=1, clean=1)
        if failed or not lapack.dpocon(lower, np.abs(gram).sum(axis=0).max(initial=0.0), uplo="L")[0] > _FACTORED:
            return None
        return cls(rows, lower)

    def shortest(self, targets: Float) -> Float:
        return np.asarray(self._rows.T @ _solved(self._lower, targets))


def _solved(lower: Float, targets: Float) -> Float:
    """(LLᵀ)⁻¹t; LAPACK takes no empty matrices."""
    return np.asarray(lapack.dpotrs(lower, targets, lower=1)[0]) if len(lower) else targets


class _SortedFactor:
    """Q and R of a tall matrix M, its largest rows first; the shortest x with Mᵀx = t is Q R⁻ᵀ t."""

    def __init__(self, matrix: Float) -> None:
        self._order = np.argsort(-np.abs(matrix).max(axis=1, initial=0.0), kind="stable")
        k = matrix.shape[1]
        self._columns = np.arange(k)
        if not k:
            self._factor, self._kept = np.empty((0, 0)), (np.empty((len(matrix), 0)), np.empty(0))
        elif k <= _PIVOTED:
            self._kept, self._factor, self._columns = qr(
                matrix[self._order], mode="raw", pivoting=True, check_finite=False
            )
        else:
            self._kept, self._factor = qr(matrix[self._order], mode="raw", check_finite=False)

    @cached_property
    def basis(self) -> Float:
        """Q."""
        return self._times(np.eye(len(self._factor)))

    def shortest(self, targets: Float) -> Float:
        inner = solve_triangular(self._factor, targets[self._columns], trans="T", check_finite=False)
        return self._times(inner)

    def _times(self, inner: Float) -> Float:
        """Q times a matrix, which costs less than to form Q."""
        found = np.zeros((len(self._order), inner.shape[1]))
        if len(inner):
            found[: len(inner)] = inner
            found[self._order] = _turned(*self._kept, found, "N")
        return found


def without_part_in(coef: Float, directions: Float) -> Float:
    """The rows of `coef` less their projection on the columns of `directions`."""
    # Largest rows first: then small entries of the basis, which belong to columns in large units, keep their digits.
    order = np.argsort(-np.abs(directions).max(axis=1, initial=0.0), kind="stable")
    basis = np.empty_like(directions)
    basis[order] = np.linalg.qr(directions[order])[0]
    return coef - (coef @ basis) @ basis.T


def row_factor(rows: Float, alpha: float, careful: bool = False, rounding: float = 1.0) -> RowFactor:
    """The factor that the shape of the rows and the penalty ask for; `rounding` as for `NormalEquations`."""
    if len(rows) >= rows.shape[1]:
        return PrimalFactor(rows, alpha, rounding)
    return DualFactor(rows, alpha, careful) if alpha > 0 else SpanFactor(rows)
