"""Least squares under a bound on the norm of the coefficients.

    min F₀(w) s.t. ‖w‖ ≤ ρ  ⇔  ‖w(α)‖ = ρ for some α > 0, or α = 0 and ‖w(0)‖ ≤ ρ;      w(α) the ridge answer

For any α ≥ 0, min_w F₀(w) + α(‖w‖² − ρ²) is a lower bound of the constrained optimum: the ridge objective less its proven gap
and αρ². α is the root of the secular equation on the eigenvalues of S, improved by solves where they do not resolve the
columns. The norm is in the user's units. References: Reinsch (1971), Numerische Mathematik 16; Golub and Van Loan, 6.2.1.

**Complexity** that of a few ridge answers. **Passes over the data** none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.result import Certificate
from separatrix.solvers.least_squares.normal_equations import (
    DOUBLE,
    LeastSquaresSolution,
    Spectrum,
    objective,
    rounding_of_intercept,
    rounding_of_value,
    solve_ridge,
)
from separatrix.solvers.least_squares.row_factors import EPS, unit
from separatrix.statistics.gram import NormalEquations

# How near ‖w(α)‖ should be to the radius, and where a search for α gives up.
_NEAR = 1e-12
_LAST_LOGARITHM = 650.0


def solve_norm_ball(equations: NormalEquations, radius: float, dtype: np.dtype[Any] = DOUBLE) -> LeastSquaresSolution:
    """Least squares under ‖w‖ ≤ radius (Frobenius norm for several targets)."""
    m = equations.cross.shape[1]
    free = solve_ridge(equations, np.zeros(m), dtype)
    # Without anything to explain w = 0 is the answer in every ball.
    established = free.established or not free.rank_deficient or not equations.cross.any()
    if np.linalg.norm(free.coef) <= radius and established:
        return free
    alpha = _searched(equations, _multiplier(equations, radius), radius)
    ridge = solve_ridge(equations, np.full(m, alpha), dtype)
    coef = _inside(ridge.coef, radius, dtype)
    value = objective(equations, coef, np.zeros(m))
    dual = ridge.certificate.objective - ridge.certificate.gap - alpha * radius**2
    rounding = rounding_of_value(equations, coef) + unit(equations.total) * alpha * radius**2
    intercept = rounding_of_intercept(equations, coef, dtype)
    gap = min(max(value - dual, 0.0), value) + rounding
    certificate = Certificate(
        gap + intercept,
        value,
        "duality gap of the norm constraint",
        stationarity=ridge.certificate.stationarity,
        primal_feasibility=max(0.0, float(np.linalg.norm(coef)) - radius),
        complementary_slackness=abs(alpha * (float(np.square(coef).sum()) - radius**2)),
    )
    before = gap if dtype == DOUBLE else min(gap, ridge.gap_before_rounding + rounding)
    return LeastSquaresSolution(
        coef,
        equations.intercept(coef),
        len(coef[0]),
        certificate,
        ridge.target_squares,
        before,
        multiplier=alpha,
        error=ridge.error,
    )


def _inside(coef: Float, radius: float, dtype: np.dtype[Any]) -> Float:
    """The last rounding, so that the constraint holds for the coefficients that are published."""
    norm = float(np.linalg.norm(coef))
    if norm <= radius:
        return coef
    inner = coef * (radius / norm)
    rounded = inner.astype(dtype)
    towards_zero = np.nextafter(rounded, np.zeros_like(rounded))
    return np.where(np.abs(rounded) > np.abs(inner), towards_zero, rounded).astype(np.float64)


def _searched(equations: NormalEquations, alpha: float, radius: float) -> float:
    """A better α, from solves, where the spectrum in the user's units does not resolve the columns."""

    def excess(logarithm: float) -> float:
        coef = solve_ridge(equations, np.full(equations.cross.shape[1], np.exp(logarithm))).coef
        return float(np.log(np.linalg.norm(coef) / radius))

    diagonal = equations.column_squares
    start = float(np.log(alpha if alpha > 0 else np.median(diagonal[diagonal > 0])))
    at = excess(start)
    if abs(at) <= _NEAR:
        return alpha
    step = np.log(4.0) if at > 0 else -np.log(4.0)
    end = start + step
    while excess(end) * at > 0 and abs(end) < _LAST_LOGARITHM:
        start, step = end, 2.0 * step
        end += step
    if abs(end) >= _LAST_LOGARITHM:
        return alpha
    from scipy.optimize import brentq  # a slow import that only this needs

    return float(np.exp(brentq(excess, *sorted((start, end)), xtol=_NEAR, maxiter=100)))


def _multiplier(equations: NormalEquations, radius: float) -> float:
    """α with ‖w(α)‖ = radius, in units in which the right-hand side and the least eigenvalue that counts are near 1."""
    spectrum = Spectrum(equations)
    used = spectrum.values > spectrum.floor
    values, cross = spectrum.values[used], np.linalg.norm(spectrum.cross[used], axis=1)
    unit_of_values, size = float(values.max()), float(np.linalg.norm(cross))
    values, squares = values / unit_of_values, np.square(cross / size)
    target = radius / size * unit_of_values
    # 1/‖w(α)‖ is concave and increasing: Newton from the left climbs to the root without a safeguard.
    alpha = 0.0
    for _ in range(200):
        total = values + alpha
        norm = float(np.sqrt(squares @ total**-2.0))
        slope = float(squares @ total**-3.0)
        step = norm**2 / slope * (norm / target - 1.0)
        if not step > EPS * alpha:
            break
        alpha += step
    return alpha * unit_of_values
