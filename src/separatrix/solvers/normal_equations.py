"""Ridge regression in closed form from its normal equations.

    min_w  F(w) = Σ sᵢ(yᵢ − wᵀxᵢ − b)² + α‖w‖²      ⇒      (S + αI) w = c,   b = ȳ − wᵀx̄

    gap:        F(w) − F* = rᵀ(S+αI)⁻¹r,  r = c − (S+αI)w          (F is quadratic, so this is the gap itself)
    norm ball:  min F₀(w) s.t. ‖w‖ ≤ ρ  ⇔  ‖w(α)‖ = ρ for some α > 0, or α = 0 and ‖w(0)‖ ≤ ρ

The certificate is for the coefficients as they are published (float32 when the data are), and is widened by what rounding
in S, c, r and b can do. α = 0 with dependent columns gives the minimum-norm answer; the rank is judged in standardised
columns, so that it does not depend on units, and then only F ≥ 0 bounds the gap, since a direction that was left out may
have been lost to rounding. The norm is in the user's units.

Reference for the secular equation: Reinsch (1971), Numerische Mathematik 16; Golub and Van Loan, section 6.2.1.

**Complexity** O(d³ + d²m), or O(r²d) for r < d rows. **Passes over the data** none: one was made for the statistic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.result import Certificate
from separatrix.statistics.gram import NormalEquations
from separatrix.statistics.metric import Metric, metric_of

_EPS = float(np.finfo(np.float64).eps)
_DOUBLE = np.dtype(np.float64)


@dataclass(frozen=True)
class Solution:
    """Coefficients (m, d), the rank they were found in, the proof, a constraint's multiplier, the conditioning."""

    coef: Float
    rank: int
    certificate: Certificate
    multiplier: float = 0.0
    condition: float = 1.0

    @property
    def rank_deficient(self) -> bool:
        """Whether other coefficients fit equally well."""
        return self.rank < self.coef.shape[1]


def solve_ridge(equations: NormalEquations, alpha: Float, dtype: np.dtype[Any] = _DOUBLE) -> Solution:
    """The ridge answer for one penalty a target (m,), rounded to the type it will be published in."""
    d, m = equations.cross.shape
    coef = np.empty((m, d))
    gap, stationarity, rank, condition, complete = 0.0, 0.0, d, 1.0, True
    for penalty in np.unique(alpha):
        targets = alpha == penalty
        metric = ridge_metric(equations, float(penalty))
        part = _solve(equations, metric, float(penalty), targets).astype(dtype).astype(np.float64)
        coef[targets] = part
        residual = equations.cross.T[targets] - _normal_product(equations, part, float(penalty))
        noise = rounding_of_gradient(equations, part, float(penalty), targets)
        proven = np.linalg.norm(metric.half(residual), axis=1) + metric.half_bound(noise)
        gap += float(np.square(proven).sum())
        stationarity = max(stationarity, 2.0 * float(np.abs(residual).max(initial=0.0)))
        rank, condition = min(rank, metric.rank), max(condition, metric.condition)
        complete = complete and metric.complete
    value = objective(equations, coef, alpha)
    gap += rounding_of_intercept(equations, coef, dtype)
    method = "Newton decrement of the normal equations"
    if not complete:
        gap, method = gap + value, "F ≥ 0: directions without variance were left out"
    return Solution(coef, rank, Certificate(gap, value, method, stationarity), condition=condition)


def refine(solution: Solution, equations: NormalEquations, alpha: Float, gradient: Float, value: float) -> Solution:
    """One step of refinement with a gradient (m, d) taken from the data instead of from the rounded statistic.

    Corrected seminormal equations: nearly the accuracy of a QR factorisation of the data. Reference: Björck (1987),
    Linear Algebra and its Applications 88/89. Kept only where the gap at the point it starts from is small: that of the
    better point is smaller still.
    """
    coef, gap = solution.coef.copy(), 0.0
    spread = np.sqrt(equations.scatter.diagonal()) * np.sqrt(value)
    for penalty in np.unique(alpha):
        targets = alpha == penalty
        metric = ridge_metric(equations, float(penalty))
        half = metric.half(-0.5 * gradient[targets])
        # What rounding leaves: in the gradient, and in the coefficients that are stored.
        stored = _EPS * _absolute_product(equations, coef[targets], float(penalty))
        noise = _unit(equations) * spread + stored
        coef[targets] += metric.back(half)
        gap += float(np.square(np.linalg.norm(half, axis=1) + metric.half_bound(noise)).sum())
    gap += rounding_of_intercept(equations, coef, _DOUBLE)
    stationarity = float(np.abs(gradient).max(initial=0.0))
    proof = Certificate(gap, value, "Newton decrement from the data", stationarity)
    return Solution(coef, solution.rank, proof, condition=solution.condition)


def ridge_metric(equations: NormalEquations, penalty: float) -> Metric:
    """The metric of S + αI. A thin S is never of full column rank: its answer lies in the span of its rows."""
    floor = np.full(equations.scatter.n_features, penalty) if penalty > 0 else None
    return metric_of(equations.scatter, floor, standardise=not equations.scatter.thin, inside=True)


def objective(equations: NormalEquations, coef: Float, alpha: Float) -> float:
    """F(w), summed over the targets."""
    penalty = sum(float(a) * float(np.square(w).sum()) for a, w in zip(alpha, coef, strict=True) if a > 0)
    return float(equations.residual_squares(coef).sum()) + penalty


def _unit(equations: NormalEquations) -> float:
    """Relative rounding of a sum over the rows."""
    return _EPS * (32.0 + 2.0 * np.sqrt(equations.total))


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
    spread = np.outer(np.sqrt(equations.target_squares[targets]), np.sqrt(equations.scatter.diagonal()))
    return _unit(equations) * (spread + _absolute_product(equations, coef, alpha))


def rounding_of_intercept(equations: NormalEquations, coef: Float, dtype: np.dtype[Any]) -> float:
    """What F gains because b is rounded: n times the square of its error."""
    unit = 4.0 * float(np.finfo(dtype).eps)
    error = unit * (np.abs(equations.y_mean) + np.abs(coef) @ np.abs(equations.x_mean))
    return equations.total * float(np.square(error).sum())


def _solve(equations: NormalEquations, metric: Metric, alpha: float, targets: Any) -> Float:
    cross = equations.cross.T[targets]
    coef = metric.solve(cross)
    coef += metric.solve(cross - _normal_product(equations, coef, alpha))  # one step of refinement
    if metric.singular and not equations.scatter.thin:
        coef = _minimum_norm(equations.scatter.matrix(), coef, metric.rank)
    return coef


def _minimum_norm(matrix: Float, coef: Float, rank: int) -> Float:
    """Take off the part of the coefficients in the null space of S, found in standardised columns."""
    scale = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    _, vectors = np.linalg.eigh(matrix / scale / scale[:, None])
    null = vectors[:, : len(matrix) - rank] / scale[:, None]
    # Largest rows first: then small entries of Q, which belong to columns in large units, keep their digits.
    order = np.argsort(-np.abs(null).max(axis=1), kind="stable")
    null[order] = np.linalg.qr(null[order])[0]
    return coef - (coef @ null) @ null.T


class Spectrum:
    """S = V diag(Λ) Vᵀ once, then any number of penalties at O(dm) each: the whole ridge path."""

    def __init__(self, equations: NormalEquations) -> None:
        scatter = equations.scatter
        if scatter.thin:
            _, singular, right = np.linalg.svd(scatter.rows, full_matrices=False)
            kept = singular > _EPS * max(scatter.rows.shape) * singular.max(initial=0.0)
            self.values, self.vectors = np.square(singular[kept]), right[kept].T
        else:
            self.values, self.vectors = np.linalg.eigh(scatter.matrix())
        self._floor = _EPS * scatter.n_features * float(np.max(self.values, initial=0.0))
        self.values = np.maximum(self.values, 0.0)
        self.cross = self.vectors.T @ equations.cross

    def inverse(self, alpha: float) -> Float:
        """1/(Λ + α), and 0 where both vanish (minimum norm)."""
        total = self.values + alpha
        used = total > (0.0 if alpha > 0 else self._floor)
        return np.divide(1.0, total, out=np.zeros_like(total), where=used)

    def coef(self, alpha: float) -> Float:
        """Coefficients (m, d) for one penalty."""
        return (self.vectors @ (self.inverse(alpha)[:, None] * self.cross)).T


def solve_norm_ball(equations: NormalEquations, radius: float, dtype: np.dtype[Any] = _DOUBLE) -> Solution:
    """Least squares under ‖w‖ ≤ radius (Frobenius norm for several targets)."""
    m = equations.cross.shape[1]
    free = solve_ridge(equations, np.zeros(m), dtype)
    if np.linalg.norm(free.coef) <= radius:
        return free
    alpha = _multiplier(equations, radius)
    ridge = solve_ridge(equations, np.full(m, alpha), dtype)
    norm = float(np.linalg.norm(ridge.coef))
    coef = ridge.coef * min(1.0, radius / norm)  # the last rounding, so that the constraint holds
    value = objective(equations, coef, np.zeros(m))
    # For any α ≥ 0, min_w F₀(w) + α(‖w‖² − ρ²) is a lower bound of the constrained optimum.
    dual = ridge.certificate.objective - ridge.certificate.gap - alpha * radius**2
    size = float(equations.target_squares.sum()) + float((np.abs(coef) * _absolute_product(equations, coef, 0.0)).sum())
    rounding = _unit(equations) * (size + alpha * radius**2) + rounding_of_intercept(equations, coef, dtype)
    certificate = Certificate(
        max(value - dual, 0.0) + rounding,
        value,
        "duality gap of the norm constraint",
        stationarity=ridge.certificate.stationarity,
        primal_feasibility=max(0.0, float(np.linalg.norm(coef)) - radius),
        complementary_slackness=abs(alpha * (float(np.square(coef).sum()) - radius**2)),
    )
    return Solution(coef, len(coef[0]), certificate, multiplier=alpha)


def _multiplier(equations: NormalEquations, radius: float) -> float:
    """α with ‖w(α)‖ = radius, in units in which the largest eigenvalue and the right-hand side are 1."""
    spectrum = Spectrum(equations)
    unit = float(spectrum.values.max())
    size = float(np.linalg.norm(spectrum.cross))
    values, squares = spectrum.values / unit, np.square(spectrum.cross / size).sum(axis=1)
    target = radius / size * unit
    # 1/‖w(α)‖ is concave and increasing: Newton from the left climbs to the root without a safeguard.
    alpha = 0.0
    for _ in range(200):
        total = np.where(values + alpha > _EPS * len(values), values + alpha, np.inf)
        norm = float(np.sqrt(squares @ total**-2.0))
        slope = float(squares @ total**-3.0)
        step = norm**2 / slope * (norm / target - 1.0)
        if not step > _EPS * alpha:
            break
        alpha += step
    return alpha * unit
