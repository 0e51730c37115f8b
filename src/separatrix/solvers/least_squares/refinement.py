"""Refinement of a least-squares answer with gradients from the data, in twice the working precision.

    w ← w + (S+αI)⁻¹ r,     r = Σ sᵢ(yᵢ − wᵀxᵢ − b)(xᵢ − x̄) − αw at the doubles (w, b) themselves
    F(w, b) − F* = rᵀ(S+αI)⁻¹r + r₀²/n,     r₀ = Σ sᵢ(yᵢ − wᵀxᵢ − b)

The second line is exact for the quadratic F when x̄ is the mean; a double x̄ is off by μ ≤ 4ε|x̄|, which adds r₀μ to r. With a
factor of the rows the first line gains as many digits per step as the condition number leaves (16 − log₁₀ κ), until the
coefficients are the doubles next to the answer, however large the residuals are. Reference: Björck (1967), BIT 7.

**Complexity** O(nd·m) per step, some thirty operations per entry. **Passes over the data** one per step, at most nine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.objectives.compensated_least_squares import published_gradient
from separatrix.result import Certificate
from separatrix.solvers.least_squares.normal_equations import DOUBLE, LeastSquaresSolution
from separatrix.solvers.least_squares.row_factors import EPS, RowFactor, row_factor
from separatrix.statistics.gram import NormalEquations

_STEPS = 8
_AWAY = 16.0  # times the least gap
_LAST = 1e-14  # the rounding of the bound itself


def refine(
    solution: LeastSquaresSolution,
    equations: NormalEquations,
    alpha: Float,
    source: Source,
    fit_intercept: bool,
    dtype: np.dtype[Any] = DOUBLE,
) -> LeastSquaresSolution:
    """The best answer of a few steps, with its proof from the data. `equations` hold rows and are of full rank."""
    rows_of = equations.scatter.rows
    factors = {float(a): row_factor(rows_of, float(a), True, equations.rounding) for a in np.unique(alpha)}
    centre = equations.x_mean
    sizes = np.sqrt(equations.column_squares / equations.total) + np.abs(centre)
    heights = np.sqrt(equations.target_squares / equations.total) + np.abs(equations.y_mean)

    def at(coef: Float, intercept: Float) -> tuple[Certificate, Float, Float]:
        """The certificate at a point, and the step from there."""
        found = published_gradient(source, coef, intercept, centre, sizes, heights)
        residual = found.gradient - alpha[:, None] * coef
        noise = EPS * (np.abs(found.gradient) + 2.0 * alpha[:, None] * np.abs(coef))
        shift = found.sums / equations.total if fit_intercept else np.zeros_like(found.sums)
        if fit_intercept:
            noise += 4.0 * EPS * np.abs(found.sums)[:, None] * np.abs(centre)
        gap, step = equations.total * float(np.square(shift).sum()), np.empty_like(coef)
        for penalty, factor in factors.items():
            rows = alpha == penalty
            step[rows] = factor.step(residual[rows])
            gap += float(np.square(_length(factor, residual[rows], noise[rows])).sum())
        value = float(found.squares.sum() + (alpha * np.square(coef).sum(axis=1)).sum())
        gap = (1.0 + _LAST) * min(gap, value)
        method, stationarity = "Newton decrement from the data", 2.0 * float(np.abs(residual).max(initial=0.0))
        return Certificate(gap, value, method, stationarity), step, shift - step @ centre

    coef, intercept = solution.coef, solution.intercept if fit_intercept else np.zeros(len(alpha))
    best, step, shift = at(coef, intercept)
    points = [(best, coef, intercept)]
    for _ in range(_STEPS - 1):
        if np.array_equal(coef + step, coef):
            break
        coef, intercept = coef + step, intercept + shift
        certificate, step, shift = at(coef, intercept)
        points.append((certificate, coef, intercept))
        # Where the rounding of the coefficients decides, one step is better than another by chance: an answer that is not
        # exact yet is worth another one, unless the steps lead away.
        slow = not certificate.gap <= 0.25 * best.gap
        if not certificate.gap <= _AWAY * best.gap or (slow and replace(solution, certificate=best).exact()):
            break
        best = certificate if certificate.gap < best.gap else best
    best, coef, intercept = min(points, key=lambda point: point[0].gap)
    before = best.gap
    if dtype != DOUBLE:
        coef, intercept = (part.astype(dtype).astype(np.float64) for part in (coef, intercept))
        best, _, _ = at(coef, intercept)
    return replace(solution, coef=coef, intercept=intercept, certificate=best, gap_before_rounding=before, error=0.0)


def _length(factor: RowFactor, residual: Float, noise: Float) -> Float:
    with np.errstate(invalid="ignore"):  # a factor that proves nothing, at a zero gradient
        return np.nan_to_num(factor.lengths(residual, noise), nan=0.0, posinf=np.inf)
