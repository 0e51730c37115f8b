"""Ridge regression in closed form from its normal equations.

    min_w  F(w) = Σ sᵢ(yᵢ − wᵀxᵢ − b)² + α‖w‖²      ⇒      (S + αI) w = c,   b = ȳ − wᵀx̄

    gap:        F(w) − F* = rᵀ(S+αI)⁻¹r,  r = c − (S+αI)w          (F is quadratic, so this is the gap itself)
    norm ball:  min F₀(w) s.t. ‖w‖ ≤ ρ  ⇔  ‖w(α)‖ = ρ for some α > 0, or α = 0 and ‖w(0)‖ ≤ ρ

α = 0 with dependent columns gives the minimum-norm answer. The rank is judged in standardised columns, so that it does
not depend on units; the norm is in the user's units.

Reference for the secular equation: Reinsch (1971), Numerische Mathematik 16; Golub and Van Loan, section 6.2.1.

**Complexity** O(d³ + d²m), or O(r²d) for r < d rows. **Passes over the data** none: one was made for the statistic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from separatrix.data.block import Float
from separatrix.result import Certificate
from separatrix.statistics.gram import NormalEquations
from separatrix.statistics.metric import Metric, metric_of

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Solution:
    """Coefficients (m, d), the rank they were found in, the proof, the multiplier of a norm constraint, the conditioning."""

    coef: Float
    rank: int
    certificate: Certificate
    multiplier: float = 0.0
    condition: float = 1.0

    @property
    def rank_deficient(self) -> bool:
        """Whether other coefficients fit equally well."""
        return self.rank < self.coef.shape[1]


def solve_ridge(equations: NormalEquations, alpha: Float) -> Solution:
    """The ridge answer for one penalty a target (m,)."""
    d, m = equations.cross.shape
    coef = np.empty((m, d))
    gap, objective, stationarity, rank, condition = 0.0, 0.0, 0.0, d, 1.0
    for penalty in np.unique(alpha):
        targets = alpha == penalty
        metric = _metric(equations, float(penalty))
        part = _solve(equations, metric, float(penalty), targets)
        coef[targets] = part
        residual, noise = _residual(equations, part, float(penalty), targets)
        proven = np.linalg.norm(metric.half(residual), axis=1) + metric.half_bound(noise)
        gap += float(np.square(proven).sum())
        stationarity = max(stationarity, 2.0 * float(np.abs(residual).max(initial=0.0)))
        objective += penalty * float(np.square(part).sum())
        rank, condition = min(rank, metric.rank), max(condition, metric.condition)
    objective += float(equations.residual_squares(coef).sum())
    certificate = Certificate(gap, objective, "Newton decrement of the normal equations", stationarity=stationarity)
    return Solution(coef, rank, certificate, condition=condition)


def refine(solution: Solution, equations: NormalEquations, alpha: Float, gradient: Float, value: float) -> Solution:
    """One step of refinement with a gradient (m, d) taken from the data instead of from the rounded statistic.

    Corrected seminormal equations: nearly the accuracy of a QR factorisation of the data. Reference: Björck (1987),
    Linear Algebra and its Applications 88/89.
    """
    coef, gap = solution.coef.copy(), 0.0
    for penalty in np.unique(alpha):
        targets = alpha == penalty
        metric = _metric(equations, float(penalty))
        half = metric.half(-0.5 * gradient[targets])
        coef[targets] += metric.back(half)
        gap += float(np.square(half).sum())
    # The gap of the point the gradient was taken at bounds that of the better one.
    stationarity = float(np.abs(gradient).max(initial=0.0))
    proof = Certificate(gap + solution.certificate.gap * 1e-6, value, "Newton decrement from the data", stationarity)
    return Solution(coef, solution.rank, proof, condition=solution.condition)


def _metric(equations: NormalEquations, penalty: float) -> Metric:
    """The metric of S + αI. A thin S is never of full column rank: its answer lies in the span of its rows."""
    floor = np.full(equations.scatter.n_features, penalty) if penalty > 0 else None
    return metric_of(equations.scatter, floor, standardise=not equations.scatter.thin, inside=True)


def _solve(equations: NormalEquations, metric: Metric, alpha: float, targets: Float) -> Float:
    cross = equations.cross.T[targets]
    coef = metric.solve(cross)
    coef += metric.solve(cross - alpha * coef - equations.scatter.times(coef))  # one step of refinement
    if metric.singular and not equations.scatter.thin:
        coef = _minimum_norm(equations.scatter.matrix(), coef, metric.rank)
    return coef


def _minimum_norm(matrix: Float, coef: Float, rank: int) -> Float:
    """Take off the part of the coefficients in the null space of S, found in standardised columns."""
    scale = np.sqrt(matrix.diagonal())
    scale = np.where(scale > 0, scale, 1.0)
    _, vectors = np.linalg.eigh(matrix / scale / scale[:, None])
    null, _ = np.linalg.qr(vectors[:, : len(matrix) - rank] / scale[:, None])
    return coef - (coef @ null) @ null.T


def _residual(equations: NormalEquations, coef: Float, alpha: float, targets: Float) -> tuple[Float, Float]:
    """r = c − (S+αI)w, and how large the rounding in S, c and r can be, entry by entry."""
    cross = equations.cross.T[targets]
    residual = cross - alpha * coef - equations.scatter.times(coef)
    scatter = equations.scatter
    if scatter.thin:
        size = (np.abs(coef) @ np.abs(scatter.rows).T) @ np.abs(scatter.rows)
    else:
        size = np.abs(coef) @ np.abs(scatter.matrix())
    noise = _EPS * (8.0 + 2.0 * np.sqrt(equations.total)) * (np.abs(cross) + alpha * np.abs(coef) + size)
    return residual, noise


class Spectrum:
    """S = V diag(Λ) Vᵀ once, then any number of penalties at O(dm) each: the whole ridge path."""

    def __init__(self, equations: NormalEquations) -> None:
        scatter = equations.scatter
        if scatter.thin:
            values, vectors = np.linalg.eigh(scatter.rows @ scatter.rows.T)
            kept = values > _EPS * scatter.n_features * values.max(initial=0.0)
            self.values = values[kept]
            self.vectors = (scatter.rows.T @ vectors[:, kept]) / np.sqrt(self.values)
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

    def squared_norm(self, alpha: float) -> tuple[float, float]:
        """‖w(α)‖² and its derivative in α."""
        inverse = self.inverse(alpha)
        squares = np.square(self.cross).sum(axis=1)
        return float(squares @ inverse**2), float(-2.0 * squares @ inverse**3)


def solve_norm_ball(equations: NormalEquations, radius: float) -> Solution:
    """Least squares under ‖w‖ ≤ radius (Frobenius norm for several targets)."""
    spectrum = Spectrum(equations)
    free = solve_ridge(equations, np.zeros(equations.cross.shape[1]))
    if np.linalg.norm(free.coef) <= radius:
        return free
    # 1/‖w(α)‖ is concave and increasing: Newton from the left climbs to the root without a safeguard.
    alpha = 0.0
    for _ in range(100):
        squared, slope = spectrum.squared_norm(alpha)
        step = 2.0 * squared / -slope * (np.sqrt(squared) / radius - 1.0)
        if not step > _EPS * alpha:
            break
        alpha += step
    ridge = solve_ridge(equations, np.full(equations.cross.shape[1], alpha))
    norm = float(np.linalg.norm(ridge.coef))
    coef = ridge.coef * min(1.0, radius / norm)  # the last rounding, so that the constraint holds
    objective = float(equations.residual_squares(coef).sum())
    # For any α ≥ 0, min_w F₀(w) + α(‖w‖² − ρ²) is a lower bound of the constrained optimum.
    dual = ridge.certificate.objective - ridge.certificate.gap - alpha * radius**2
    rounding = 16.0 * _EPS * (float(equations.target_squares.sum()) + alpha * radius**2)
    certificate = Certificate(
        max(objective - dual, 0.0) + rounding,
        objective,
        "duality gap of the norm constraint",
        stationarity=ridge.certificate.stationarity,
        primal_feasibility=max(0.0, float(np.linalg.norm(coef)) - radius),
        complementary_slackness=abs(alpha * (float(np.square(coef).sum()) - radius**2)),
    )
    return Solution(coef, len(coef[0]), certificate, multiplier=alpha)


def solve_nonnegative(equations: NormalEquations, alpha: Float) -> Solution:
    """Ridge under w ≥ 0, by active sets on a square root of S + αI."""
    spectrum = Spectrum(equations)
    d, m = equations.cross.shape
    coef = np.zeros((m, d))
    gap = objective = stationarity = dual_violation = slackness = 0.0
    used = spectrum.values > _EPS * d * spectrum.values.max(initial=0.0)
    roots = np.sqrt(spectrum.values[used])
    curvature = float(spectrum.values.min()) if len(spectrum.values) == d else 0.0
    for j in range(m):
        # ‖Aw − t‖² + α‖w‖² with AᵀA = S and Aᵀt = c has the same minimiser and needs at most 2d rows.
        A, target = roots[:, None] * spectrum.vectors[:, used].T, spectrum.cross[used, j] / roots
        if not len(A):  # nothing varies: zero fits as well as anything
            A, target = np.zeros((1, d)), np.zeros(1)
        if alpha[j] > 0:
            A, target = np.concatenate([A, np.sqrt(alpha[j]) * np.eye(d)]), np.concatenate([target, np.zeros(d)])
        coef[j], _ = nnls(A, target)
        gradient = -2.0 * (equations.cross[:, j] - alpha[j] * coef[j] - equations.scatter.times(coef[j : j + 1])[0])
        value = float(equations.residual_squares(coef)[j] + alpha[j] * coef[j] @ coef[j])
        objective += value
        positive = coef[j] > 0
        stationarity = max(stationarity, float(np.abs(gradient[positive]).max(initial=0.0)))
        dual_violation = max(dual_violation, float((-gradient[~positive]).max(initial=0.0)))
        slackness = max(slackness, float(np.abs(gradient * coef[j]).max(initial=0.0)))
        # F(w) − F* ≤ max over v ≥ 0 of ∇F(w)ᵀ(w − v) − μ‖w − v‖², μ the least curvature; separable by coordinate.
        least = alpha[j] + curvature
        if least > 0:
            best = np.maximum(coef[j] - gradient / (2.0 * least), 0.0) - coef[j]
            gap += float(-(gradient @ best) - least * best @ best)
        else:
            gap = np.inf
    certificate = Certificate(
        gap,
        objective,
        "strong convexity",
        stationarity,
        dual_feasibility=dual_violation,
        complementary_slackness=slackness,
    )
    return Solution(coef, d, certificate)
