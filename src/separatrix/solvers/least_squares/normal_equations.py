"""Ridge regression in closed form from its normal equations.

    min_w  F(w) = Σ sᵢ(yᵢ − wᵀxᵢ − b)² + α‖w‖²      ⇒      (S + αI) w = c,   b = ȳ − wᵀx̄

    gap:        F(w) − F* = rᵀ(S+αI)⁻¹r,  r = c − (S+αI)w          (F is quadratic, so this is the gap itself)

S is held as a matrix (Cholesky, eigenvectors), or as rows A of the data or of their triangular factor (`row_factors`). The
certificate is for the coefficients as they are published (float32 when the data are), and is widened by what rounding does:

    matrix   S is within u√(S_jj S_kk) of the truth, so that in columns of unit size S + αI ≥ λ − du, λ its least eigenvalue;
             r is within u(√(S_jj S_yy) + |S||w|) of it.
    rows     A and t are within uA and ut of the truth, column by column. r = Aᵀ(t − Aw) − αw is off by at most u‖a_j‖‖t − Aw‖,
             and by Aᵀp with ‖p‖ ≤ u(‖t‖ + Σ‖a_j‖|w_j|); since (Aᵀp)ᵀ(AᵀA)⁻¹Aᵀp ≤ ‖p‖², the second adds ‖p‖ to the root.
             Where there is a dual point u*, F(w) − F* ≤ ‖t − Aw − αu*‖² + α‖Aᵀu* − w‖², the first norm off by ‖p‖ + uα‖u*‖
             and the second by u‖u*‖(Σ‖a_j‖²)^½ (`dual_gradient`).

u is ε(32 + 2√n). α = 0 with dependent columns gives the minimum-norm answer; the rank is judged in columns of unit size, so
that it does not depend on units, and then only F ≥ 0 bounds the gap, since a direction that was left out may have been lost
to rounding. A matrix does not establish a rank: columns that agree in seven digits look dependent in it.

**Complexity** O(d³ + d²m), or O(r²d) for r < d rows. **Passes over the data** none: one was made for the statistic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.result import Certificate
from separatrix.solvers.least_squares.penalised_metric import penalised_metric
from separatrix.solvers.least_squares.row_factors import EPS, row_factor, unit, without_part_in
from separatrix.statistics.gram import NormalEquations
from separatrix.statistics.metric import Metric, metric_of, row_lengths

DOUBLE = np.dtype(np.float64)
LEFT_OUT = "F ≥ 0: directions without variance were left out"
# Eight digits of the objective, or nine of the fitted values: what "exact" promises of a closed form.
_EXACT = 1e-8
_EXACT_FITTED = 1e-18
# The digits of the coefficients that a closed form should have where the data do.
_DIGITS = 1e-9
_LARGEST_RATIO = 100.0
_PROVES = 0.1
# Share of the squares of the targets that the gap of an answer may be before its last step, and of the gap before it after one.
_LEFT, _GAIN = 1e-22, 1e-2
# Squares of singular values, as a share of the largest, whose directions have the digits that a fit has.
_CLEAR = 1e-4
# Up to this condition of S + αI one spectrum of S has the digits that a fit has.
ONE_SPECTRUM = 1e6


@dataclass(frozen=True)
class LeastSquaresSolution:
    """Coefficients of least squares and what is known of them.

    Attributes
    ----------
    coef : ndarray of shape (m, d)
    intercept : ndarray of shape (m,)
    rank : int
        Number of directions the coefficients were found in.
    certificate : Certificate
    target_squares : float
        Σ S_yy, the size of the targets.
    gap_before_rounding : float
        The gap of the coefficients before they were rounded to the type they are published in.
    multiplier : float
        Of a constraint.
    error : float
        About how much of the coefficients, relative to all of them, rounding may have changed.
    established : bool
        Whether the rank was found from rows.
    """

    coef: Float
    intercept: Float
    rank: int
    certificate: Certificate
    target_squares: float
    gap_before_rounding: float
    multiplier: float = 0.0
    error: float = 0.0
    established: bool = True

    @property
    def rank_deficient(self) -> bool:
        """Whether other coefficients fit equally well."""
        return self.rank < self.coef.shape[1]

    def exact(self, gap: float | None = None) -> bool:
        """Whether a gap, by default the certificate's, is within what an exact answer promises."""
        size = self.certificate.gap if gap is None else gap
        return size <= _EXACT * self.certificate.objective + _EXACT_FITTED * self.target_squares

    @property
    def resolved(self) -> bool:
        """Whether a more accurate statistic has nothing to add."""
        if self.rank_deficient:
            return self.established
        return self.exact(self.gap_before_rounding) and self.error <= _DIGITS


@dataclass(frozen=True)
class _Part:
    """The targets of one penalty; `value` is F at the published coefficients."""

    coef: Float
    coef_before_rounding: Float
    rank: int
    complete: bool
    condition: float
    value: float
    gap: float
    gap_before_rounding: float
    stationarity: float


def solve_ridge(equations: NormalEquations, alpha: Float, dtype: np.dtype[Any] = DOUBLE) -> LeastSquaresSolution:
    """The ridge answer for one penalty per target (m,), rounded to the type it will be published in."""
    solve, by_rows = _part_of_matrix, equations.scatter.thin
    if by_rows:
        solve = _part_of_rows
    if (alpha == alpha[0]).all():
        parts = [solve(equations, float(alpha[0]), slice(None), dtype)]
        coef, wide = parts[0].coef, parts[0].coef_before_rounding
    else:
        coef, wide, parts = np.empty(equations.cross.T.shape), np.empty(equations.cross.T.shape), []
        for penalty in np.unique(alpha):
            targets = alpha == penalty
            part = solve(equations, float(penalty), targets, dtype)
            coef[targets], wide[targets] = part.coef, part.coef_before_rounding
            parts.append(part)
    value = sum(part.value for part in parts)
    extra, method = rounding_of_intercept(equations, coef, dtype), "Newton decrement of the normal equations"
    gap, before = (sum(getattr(part, name) for part in parts) for name in ("gap", "gap_before_rounding"))
    rank = min(part.rank for part in parts)
    if not all(part.complete for part in parts):
        method = LEFT_OUT
        gap = before = np.inf
    if not gap <= value:
        gap = min(gap, value + rounding_of_value(equations, coef))  # since F ≥ 0
    if not before <= value:
        before = min(before, objective(equations, wide, alpha) + rounding_of_value(equations, wide))
    return LeastSquaresSolution(
        coef,
        equations.intercept(coef),
        rank,
        Certificate(gap + extra, value, method, max(part.stationarity for part in parts)),
        float(equations.target_squares.sum()),
        before + (extra if dtype == DOUBLE else rounding_of_intercept(equations, coef, DOUBLE)),
        error=_error(equations, coef, max(part.condition for part in parts)),
        established=by_rows or rank == int((equations.column_squares > 0).sum()),
    )


def _as_published(coef: Float, dtype: np.dtype[Any]) -> list[Float]:
    """The coefficients, and what is left of them in another type."""
    return [coef] if dtype == DOUBLE else [coef, coef.astype(dtype).astype(np.float64)]


def _part_of_matrix(equations: NormalEquations, alpha: float, targets: Any, dtype: np.dtype[Any]) -> _Part:
    metric: Metric | None = penalised_metric(equations, alpha)
    coef = None if metric is None else _refined(equations, metric, alpha, targets)
    if metric is None or coef is None:
        metric = ridge_metric(equations, alpha)
        coef = _solve(equations, metric, alpha, targets)
    off = _unit(equations) * len(coef.T) * metric.condition
    slack = 1.0 / math.sqrt(1.0 - off) if off < _PROVES else math.inf
    cross, size = equations.cross.T[targets], float(equations.target_squares[targets].sum())
    gaps, residual, enough = [], coef, _EXACT_FITTED * size
    for held in _as_published(coef, dtype):
        residual = cross - _normal_product(equations, held, alpha)
        lengths = row_lengths(metric.half(residual))
        rough = slack * (lengths + metric.rough_bound(_rough_rounding(equations, held, alpha, targets)))
        gap = float(rough @ rough)
        if not gap <= enough:
            noise = slack * (lengths + metric.half_bound(rounding_of_gradient(equations, held, alpha, targets)))
            gap = float(noise @ noise)
        gaps.append(gap)
    # wᵀ(S + αI)w = (c − r)ᵀw
    value = max(size - float(np.vdot(cross + residual, held)), _penalty(alpha, held))
    stationarity = 2.0 * float(np.abs(residual).max(initial=0.0))
    return _Part(held, coef, metric.rank, metric.complete, metric.condition, value, gaps[-1], gaps[0], stationarity)


def _part_of_rows(equations: NormalEquations, alpha: float, targets: Any, dtype: np.dtype[Any]) -> _Part:
    assert equations.target_rows is not None
    A, t = equations.scatter.rows, equations.target_rows[:, targets]
    sizes = equations.column_sizes
    u = unit_of_rows(equations)
    enough = _EXACT_FITTED * float(np.vdot(t, t))
    for careful in (False, True):
        factor = row_factor(A, alpha, careful, equations.rounding)
        coef, dual = factor.with_dual(t)
        gaps, residual = [], coef
        for held in _as_published(coef, dtype):
            rows = t - A @ held.T
            residual = rows.T @ A - alpha * held if alpha > 0 else rows.T @ A
            off = _rounding_of_rows(equations, held, targets)
            gap = np.inf
            if dual is not None:  # F(w) − D(u)
                lengths, apart = np.linalg.norm(dual, axis=0), np.linalg.norm(coef - held, axis=1)
                roots = np.linalg.norm(rows - alpha * dual, axis=0) + off + u * alpha * lengths
                roots = np.hypot(roots, np.sqrt(alpha) * (apart + u * lengths * np.linalg.norm(sizes)))
                gap = float(np.square(roots).sum())
            if not gap <= enough:
                noise = u * np.linalg.norm(rows, axis=0)[:, None] * sizes + 4.0 * EPS * alpha * np.abs(held)
                gap = min(gap, float(np.square(factor.lengths(residual, noise) + off).sum()))
            gaps.append(gap)
        if gaps[0] <= enough or len(A) >= A.shape[1] or alpha == 0:
            break
    value = float(np.square(rows).sum()) + _penalty(alpha, held)
    stationarity = 2.0 * float(np.abs(residual).max(initial=0.0))
    return _Part(held, coef, factor.rank, factor.complete, factor.condition, value, gaps[-1], gaps[0], stationarity)


def ridge_metric(equations: NormalEquations, penalty: float) -> Metric:
    """The metric of S + αI for a matrix S."""
    floor = np.full(equations.scatter.n_features, penalty) if penalty > 0 else None
    return metric_of(equations.scatter, floor)


def _error(equations: NormalEquations, coef: Float, condition: float) -> float:
    """About the relative error of the coefficients, in columns of unit size: εκ², or from rows ε(κ + κ²‖y − Xw‖/‖Xw‖).

    Reference: Golub and Van Loan, section 5.3.8.
    """
    parts = coef * equations.column_sizes
    fitted = math.sqrt(np.vdot(parts, parts))
    if not fitted:
        return 0.0
    size = equations.residual_squares(coef) if equations.scatter.thin else equations.target_squares
    ratio = min(_LARGEST_RATIO, math.sqrt(size.sum()) / fitted)
    if equations.scatter.thin:
        return EPS * equations.rounding * (np.sqrt(condition) + condition * ratio)
    return EPS * condition * (1.0 + ratio)


def objective(equations: NormalEquations, coef: Float, alpha: Float) -> float:
    """F(w), summed over the targets."""
    penalty = sum(_penalty(float(a), w) for a, w in zip(alpha, coef, strict=True))
    return float(equations.residual_squares(coef).sum()) + penalty


def _penalty(alpha: float, coef: Float) -> float:
    """α‖w‖²; without a penalty the squares may overflow."""
    return alpha * float(np.vdot(coef, coef)) if alpha > 0 else 0.0


def _unit(equations: NormalEquations) -> float:
    """Relative rounding of a sum over the rows."""
    return unit(equations.total)


def _normal_product(equations: NormalEquations, coef: Float, alpha: float) -> Float:
    product = equations.scatter.times(coef)
    return product + alpha * coef if alpha > 0 else product


def _absolute_product(equations: NormalEquations, coef: Float, alpha: float) -> Float:
    scatter = equations.scatter
    if scatter.thin:
        size = (np.abs(coef) @ np.abs(scatter.rows).T) @ np.abs(scatter.rows)
    else:
        size = np.abs(coef) @ np.abs(scatter.matrix())
    return size + alpha * np.abs(coef) if alpha > 0 else size


def rounding_of_gradient(equations: NormalEquations, coef: Float, alpha: float, targets: Any) -> Float:
    """How far c − (S+αI)w can be from the truth, entry by entry."""
    spread = np.outer(equations.target_sizes[targets], equations.column_sizes)
    return _unit(equations) * (spread + _absolute_product(equations, coef, alpha))


def _rough_rounding(equations: NormalEquations, coef: Float, alpha: float, targets: Any) -> Float:
    """The same from |S_jk| ≤ √(S_jj S_kk): looser, but no product with a matrix."""
    sizes, magnitudes = equations.column_sizes, np.abs(coef)
    spread = (equations.target_sizes[targets] + magnitudes @ sizes)[:, None] * sizes
    return _unit(equations) * (spread + alpha * magnitudes)


def rounding_of_value(equations: NormalEquations, coef: Float) -> float:
    """How far Σ residual squares can be from the truth."""
    if equations.scatter.thin:  # the roots of the sums are off by ‖p‖
        root, off = np.sqrt(equations.residual_squares(coef)), _rounding_of_rows(equations, coef)
        return float((2.0 * root * off + np.square(off)).sum() + _unit(equations) * np.square(root).sum())
    size = float(equations.target_squares.sum()) + float((np.abs(coef) * _absolute_product(equations, coef, 0.0)).sum())
    return _unit(equations) * size


def _rounding_of_rows(equations: NormalEquations, coef: Float, targets: Any = slice(None)) -> Float:
    """(m,) how far the rows t − Aw can be from the truth, ‖p‖ above."""
    sizes = equations.target_sizes[targets] + np.abs(coef) @ equations.column_sizes
    return unit_of_rows(equations) * sizes


def unit_of_rows(equations: NormalEquations) -> float:
    """Relative rounding of the columns of rows."""
    return equations.rounding * unit(max(*equations.scatter.rows.shape, equations.total))


def rounding_of_intercept(equations: NormalEquations, coef: Float, dtype: np.dtype[Any]) -> float:
    """What F gains because b is rounded: n times the square of its error. Means are as exact as the values they are of."""
    step = 4.0 * float(np.finfo(dtype).eps)
    part = EPS / (step * math.sqrt(equations.total))
    x_size = np.abs(equations.x_mean) + part * equations.column_sizes
    y_size = np.abs(equations.y_mean) + part * equations.target_sizes
    error = step * (y_size + np.abs(coef) @ x_size)
    return equations.total * float(error @ error)


def _refined(equations: NormalEquations, metric: Metric, alpha: float, targets: Any) -> Float | None:
    """The coefficients by steps in about the metric of S + αI; None where they gain little."""
    cross, before = equations.cross.T[targets], np.inf
    coef, enough = metric.solve(cross), _LEFT * float(equations.target_squares[targets].sum())
    while True:
        half = metric.half(cross - _normal_product(equations, coef, alpha))
        left = float(np.vdot(half, half))
        coef += metric.back(half)
        if left <= enough:
            return coef
        if not left <= _GAIN * before:
            return None
        before = left


def _solve(equations: NormalEquations, metric: Metric, alpha: float, targets: Any) -> Float:
    cross = equations.cross.T[targets]
    coef = metric.solve(cross)
    coef += metric.solve(cross - _normal_product(equations, coef, alpha))  # one step of refinement
    if metric.singular and metric.complete:
        coef[:, equations.column_squares == 0.0] = 0.0  # no other direction is left out
    elif metric.singular:
        coef = _minimum_norm(equations.scatter.matrix(), coef, metric.rank)
    return coef


def _minimum_norm(matrix: Float, coef: Float, rank: int) -> Float:
    """Take off the part of the coefficients in the null space of S, found in standardised columns."""
    scale = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    _, vectors = np.linalg.eigh(matrix / scale / scale[:, None])
    return without_part_in(coef, vectors[:, : len(matrix) - rank] / scale[:, None])


def _right_vectors(rows: Float) -> tuple[Float, Float]:
    """Singular values > 0 of n × d rows, n < d, descending, and their right vectors: from products of the rows, or a triangle.

    Right vectors from the eigenvectors u of the products, rowsᵀu/σ, are orthogonal to ε(σ_max/σ)², so these will do where all
    directions are clear of rounding, or rounding themselves.
    """
    if rows.shape[1] < 2 * rows.shape[0]:
        _, singular, right = np.linalg.svd(rows, full_matrices=False)
        return singular, right
    values, left = np.linalg.eigh(rows @ rows.T)
    clear = values > _CLEAR * values[-1]
    along = left.T @ rows
    lengths = np.sqrt(np.einsum("ij,ij->i", along, along))
    if clear.any() and lengths[~clear].max(initial=0.0) <= EPS * max(rows.shape) * lengths.max():
        return lengths[clear][::-1], (along[clear] / lengths[clear, None])[::-1]
    Q, R = np.linalg.qr(rows.T)
    _, singular, right = np.linalg.svd(R.T, full_matrices=False)
    return singular, right @ Q.T


class Spectrum:
    """S = V diag(Λ) Vᵀ once, then any number of penalties at O(dm) each: the whole ridge path."""

    def __init__(self, equations: NormalEquations) -> None:
        scatter = equations.scatter
        if scatter.thin:
            singular, right = _right_vectors(scatter.rows)
            kept = singular > EPS * max(scatter.rows.shape) * singular.max(initial=0.0)
            self.values, self.vectors = np.square(singular[kept])[::-1], right[kept][::-1].T  # ascending, as below
        else:
            self.values, self.vectors = np.linalg.eigh(scatter.matrix())
        self.floor = 0.0 if scatter.thin else EPS * scatter.n_features * float(np.max(self.values, initial=0.0))
        self.values = np.maximum(self.values, 0.0)
        self.cross = self.vectors.T @ equations.cross

    def condition(self, alpha: float) -> float:
        """Largest over least eigenvalue of S + αI, in the user's units."""
        largest, least = float(np.max(self.values, initial=0.0)), float(np.min(self.values, initial=np.inf))
        return (largest + alpha) / (least + alpha) if least + alpha > 0 else np.inf

    def inverse(self, alpha: float) -> Float:
        """1/(Λ + α), and 0 where both vanish (minimum norm)."""
        total = self.values + alpha
        used = total > (0.0 if alpha > 0 else self.floor)
        return np.divide(1.0, total, out=np.zeros_like(total), where=used)

    def coef(self, alpha: float) -> Float:
        """Coefficients (m, d) for one penalty."""
        return (self.vectors @ (self.inverse(alpha)[:, None] * self.cross)).T
