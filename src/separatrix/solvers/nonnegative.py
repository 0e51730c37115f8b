"""Ridge regression under w ≥ 0, by active sets.

    min_{w ≥ 0}  ‖Aw − t‖² + α‖w‖²,      AᵀA = S,  Aᵀt = c        (the same minimiser, with at most 2d rows)

Columns are scaled to unit size first; non-negative coefficients stay so. The gap is F(w) − F* ≤ max_{v ≥ 0}
∇F(w)ᵀ(w − v) − μ‖w − v‖² with μ the least curvature, separable by coordinate. Reference: Lawson and Hanson (1974), ch. 23.

**Complexity** O(d³) and a few active-set steps. **Passes over the data** none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.result import Certificate
from separatrix.solvers.normal_equations import Solution, objective, rounding_of_gradient, rounding_of_intercept
from separatrix.statistics.gram import NormalEquations

_EPS = float(np.finfo(np.float64).eps)


def solve_nonnegative(equations: NormalEquations, alpha: Float, dtype: np.dtype[Any]) -> Solution:
    """Coefficients ≥ 0 (m, d) for one penalty a target."""
    from scipy.optimize import nnls  # a slow import that only this needs

    d, m = equations.cross.shape
    diagonal = equations.scatter.diagonal()
    coef = np.zeros((m, d))
    gap, stationarity, violation, slackness = 0.0, 0.0, 0.0, 0.0
    for j in range(m):
        scale = np.sqrt(diagonal + alpha[j])
        scale = np.where(scale > 0, scale, 1.0)
        root, right, curvature = _square_root(equations, scale, j, float(alpha[j]))
        coef[j] = nnls(root, right)[0] / scale
        coef[j] = coef[j].astype(dtype)
        at = slice(j, j + 1)
        product = equations.scatter.times(coef[at])[0] + (alpha[j] * coef[j] if alpha[j] > 0 else 0.0)
        noise = 2.0 * rounding_of_gradient(equations, coef[at], float(alpha[j]), at)[0]
        gradient = 2.0 * (product - equations.cross[:, j])
        positive = coef[j] > 0
        stationarity = max(stationarity, float(np.abs(gradient[positive]).max(initial=0.0)))
        violation = max(violation, float((-gradient[~positive]).max(initial=0.0)))
        slackness = max(slackness, float(np.abs(gradient * coef[j]).max(initial=0.0)))
        gap += _gap(coef[j] * scale, gradient / scale, noise / scale, curvature)
    value = objective(equations, coef, alpha)
    gap = min(gap, value) + rounding_of_intercept(equations, coef, dtype)
    certificate = Certificate(
        gap, value, "least curvature", stationarity, dual_feasibility=violation, complementary_slackness=slackness
    )
    return Solution(coef, d, certificate)


def _square_root(equations: NormalEquations, scale: Float, j: int, alpha: float) -> tuple[Float, Float, float]:
    """A and t in scaled columns, and the least curvature there."""
    d, scatter = len(scale), equations.scatter
    if scatter.thin and equations.target_rows is not None:
        root, right, least = scatter.rows / scale, equations.target_rows[:, j], 0.0
    else:
        values, vectors = np.linalg.eigh(scatter.matrix() / scale / scale[:, None])
        used = values > _EPS * d
        roots = np.sqrt(values[used])
        root, right = roots[:, None] * vectors[:, used].T, vectors[:, used].T @ (equations.cross[:, j] / scale) / roots
        least = float(values[0]) if used.all() else 0.0
    if alpha > 0:
        floor = np.sqrt(alpha) / scale
        root, right = np.concatenate([root, np.diag(floor)]), np.concatenate([right, np.zeros(d)])
        least += float(np.square(floor).min())
    if not len(root):  # nothing varies: zero fits as well as anything
        root, right = np.zeros((1, d)), np.zeros(1)
    return root, right, max(least - _EPS * d, 0.0)


def _gap(coef: Float, gradient: Float, noise: Float, curvature: float) -> float:
    """Σ_j max over v_j ≥ 0 of g_j(w_j − v_j) − μ(w_j − v_j)², the gradient as bad as rounding allows."""
    if curvature <= 0.0:
        return np.inf
    gaps = []
    for sign in (1.0, -1.0):
        worst = gradient + sign * noise
        step = coef - np.maximum(coef - worst / (2.0 * curvature), 0.0)
        gaps.append(worst * step - curvature * np.square(step))
    return float(np.maximum(*gaps).sum())
