"""Ridge regression under w ≥ 0, by active sets.

    min_{w ≥ 0}  ‖Aw − t‖² + α‖w‖²,      AᵀA = S,  Aᵀt = c        (the same minimiser, with at most 2d rows)

Columns are scaled to unit size first; non-negative coefficients stay so. The gap is F(w) − F* ≤ max_{v ≥ 0}
∇F(w)ᵀ(w − v) − Σ μ_j(w_j − v_j)², separable by coordinate, with μ_j = λ + α in these units: λ is the least eigenvalue of S,
less rounding, and the penalty adds its own to each coordinate. Reference: Lawson and Hanson (1974), ch. 23.

**Complexity** O(d³) and a few active-set steps. **Passes over the data** none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.result import Certificate
from separatrix.solvers.least_squares.normal_equations import (
    DOUBLE,
    LeastSquaresSolution,
    objective,
    rounding_of_gradient,
    rounding_of_intercept,
    rounding_of_value,
    unit_of_rows,
)
from separatrix.solvers.least_squares.row_factors import EPS, unit
from separatrix.statistics.gram import NormalEquations


def solve_nonnegative(equations: NormalEquations, alpha: Float, dtype: np.dtype[Any]) -> LeastSquaresSolution:
    """Coefficients ≥ 0 (m, d) for one penalty per target."""
    from scipy.optimize import nnls  # a slow import that only this needs

    d, m = equations.cross.shape
    diagonal = equations.column_squares
    coef = np.zeros((m, d))
    gap, before, stationarity, violation, slackness = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(m):
        scale = np.sqrt(diagonal + alpha[j])
        scale = np.where(scale > 0, scale, 1.0)
        root, right, least = _square_root(equations, scale, j, float(alpha[j]))
        curvature = least + alpha[j] / np.square(scale)
        size = float(np.abs(right).max(initial=0.0)) or 1.0  # the tolerance of older versions of nnls is absolute
        exact = np.maximum(nnls(root, right / size)[0], 0.0) * size / scale
        coef[j] = exact.astype(dtype)
        before += _gap_at(equations, exact, float(alpha[j]), j, scale, curvature)[0]
        more, gradient = _gap_at(equations, coef[j], float(alpha[j]), j, scale, curvature)
        gap += more
        positive = coef[j] > 0
        stationarity = max(stationarity, float(np.abs(gradient[positive]).max(initial=0.0)))
        violation = max(violation, float((-gradient[~positive]).max(initial=0.0)))
        slackness = max(slackness, float(np.abs(gradient * coef[j]).max(initial=0.0)))
    value = objective(equations, coef, alpha)
    most = value + rounding_of_value(equations, coef)  # since F ≥ 0
    extra, last = (rounding_of_intercept(equations, coef, kind) for kind in (dtype, DOUBLE))
    certificate = Certificate(
        min(gap, most) + extra,
        value,
        "least curvature" if gap < most else "F ≥ 0",
        stationarity,
        dual_feasibility=violation,
        complementary_slackness=slackness,
    )
    size = float(equations.target_squares.sum())
    return LeastSquaresSolution(coef, equations.intercept(coef), d, certificate, size, min(before, most) + last)


def _gap_at(
    equations: NormalEquations, coef: Float, alpha: float, j: int, scale: Float, curvature: Float
) -> tuple[float, Float]:
    """The gap of target j's coefficients, and their gradient."""
    at = slice(j, j + 1)
    scatter = equations.scatter
    if scatter.thin and equations.target_rows is not None:
        left = equations.target_rows[:, j] - scatter.rows @ coef
        half = alpha * coef - left @ scatter.rows
        u = unit_of_rows(equations)
        sizes = np.sqrt(scatter.diagonal())
        # Rows within u of the truth, column by column: see `normal_equations`.
        off = float(np.linalg.norm(left)) + float(np.sqrt(equations.target_squares[j]) + np.abs(coef) @ sizes)
        noise = u * off * sizes + 4.0 * EPS * alpha * np.abs(coef)
    else:
        half = scatter.times(coef[None])[0] + alpha * coef - equations.cross[:, j]
        noise = rounding_of_gradient(equations, coef[None], alpha, at)[0]
    return _gap(coef * scale, 2.0 * half / scale, 2.0 * noise / scale, curvature), 2.0 * half


def _square_root(equations: NormalEquations, scale: Float, j: int, alpha: float) -> tuple[Float, Float, float]:
    """A and t in scaled columns, the penalty's rows included, and the least eigenvalue of S there, less rounding."""
    d, scatter = len(scale), equations.scatter
    varies = scatter.diagonal() > 0  # a constant column has no curvature, and no gradient
    if scatter.thin and equations.target_rows is not None:
        root, right, least = scatter.rows / scale, equations.target_rows[:, j], 0.0
        if len(root) >= varies.sum() > 0:
            off = unit_of_rows(equations) * np.sqrt(d)
            least = max(float(np.linalg.svd(root[:, varies], compute_uv=False)[-1]) - off, 0.0) ** 2
    else:
        values, vectors = np.linalg.eigh(scatter.matrix() / scale / scale[:, None])
        used = values > EPS * d
        roots = np.sqrt(values[used])
        root, right = roots[:, None] * vectors[:, used].T, vectors[:, used].T @ (equations.cross[:, j] / scale) / roots
        least = max(float(values[d - int(varies.sum()) :].min(initial=1.0)) - d * unit(equations.total), 0.0)
    if alpha > 0:
        root, right = np.concatenate([root, np.diag(np.sqrt(alpha) / scale)]), np.concatenate([right, np.zeros(d)])
    if not len(root):  # nothing varies: zero fits as well as anything
        root, right = np.zeros((1, d)), np.zeros(1)
    return root, right, least


def _gap(coef: Float, gradient: Float, noise: Float, curvature: Float) -> float:
    """Σ_j max over v_j ≥ 0 of g_j(w_j − v_j) − μ_j(w_j − v_j)², the gradient as bad as rounding allows."""
    flat = curvature <= 0.0
    if (flat & ((coef > 0) | (gradient < noise))).any():
        return np.inf
    gaps = []
    for worst in (gradient + noise, gradient - noise):
        step = coef - np.maximum(coef - worst / (2.0 * np.where(flat, 1.0, curvature)), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):  # a bound beyond the largest number is none
            gaps.append(np.where(flat, 0.0, step * (worst - curvature * step)))
    return float(np.maximum(*gaps).sum())
