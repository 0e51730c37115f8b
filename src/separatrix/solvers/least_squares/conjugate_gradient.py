"""Conjugate gradients for ridge regression whose Gram matrix does not fit: many columns, many rows.

    (S + αI) w = c,  one product with S per step, preconditioned by the diagonal

Every target has its own step lengths but all share each pass.

The gap is taken from the data at the coefficients that are published. F(w) − F* = rᵀ(S+αI)⁻¹r ≤ ‖r‖²/α with r = c − (S+αI)w.
r = Xᵀe − αw is computed from rounded rows e = y − Xw: with u the relative rounding of a sum over the rows, it is off by at most
u‖x_j‖‖e‖ in entry j, and by Xᵀp with ‖p‖ ≤ u(‖y‖ + Σ‖x_j‖|w_j|), which adds at most ‖p‖ to the root of the gap, since
(Xᵀp)ᵀ(S+αI)⁻¹Xᵀp ≤ ‖p‖². Without a penalty only F ≥ 0 bounds the gap, and the status is `UNPROVEN`.

Reference: Hestenes and Stiefel (1952), J. Research NBS 49.

**Complexity** O(nnz · m) per step. **Passes over the data** one per step, and two to start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.objectives.least_squares import LeastSquares
from separatrix.result import Certificate, Status
from separatrix.solvers.least_squares.row_factors import EPS, unit

_TINY = float(np.finfo(np.float64).tiny)


def minimise_ridge(
    objective: LeastSquares,
    source: Source,
    diagonal: Float,
    total: float,
    *,
    tol: float,
    max_iter: int,
    dtype: np.dtype[Any] = np.dtype(np.float64),  # noqa: B008  # immutable
    extra: Callable[[Float], float] = lambda theta: 0.0,
) -> tuple[Float, Status, Certificate, int, list[dict[str, Any]]]:
    """Coefficients (m, d) rounded to `dtype`, status, certificate, steps and trace.

    Stops when the proven gap is at most `tol` times the objective (without a penalty: when the preconditioned residual
    has shrunk by `tol`), or when the objective stops falling. `diagonal` is that of S, `total` the weight of the rows, and
    `extra` bounds the square root of what is not in `objective`: F at the published intercept, less F at the best one.
    """
    alpha = objective.alpha
    theta = np.zeros((len(alpha), source.n_features))
    start = objective.evaluate(theta, source, order=1)
    assert start.gradient is not None
    value, residual = start.value, -0.5 * start.gradient  # residual = c − (S+αI)w
    inverse = 1.0 / np.maximum(diagonal + alpha[:, None], _TINY)
    direction = inverse * residual
    energy = np.einsum("ij,ij->i", residual, direction)
    proven = bool((alpha > 0).all())
    target_squares = start.value
    first, still, status = float(energy.sum()), 0, Status.MAX_ITER
    trace: list[dict[str, Any]] = []
    steps = 0
    try:
        for steps in range(1, max_iter + 1):
            product = 0.5 * objective.hvp(direction, source)
            curvature = np.einsum("ij,ij->i", direction, product)
            step = np.divide(energy, curvature, out=np.zeros_like(energy), where=curvature > 0)[:, None]
            theta = theta + step * direction
            residual = residual - step * product
            gained = step[:, 0] * energy
            value = value - gained
            white = inverse * residual
            fresh = np.einsum("ij,ij->i", residual, white)
            gap = _gap(residual, alpha)
            trace.append({"iteration": steps, "gap": gap, "objective": float(value.sum())})
            if proven and gap <= tol * max(float(value.sum()), _TINY):
                status = Status.CONVERGED
                break
            if not proven and float(fresh.sum()) <= tol * tol * first:
                status = Status.UNPROVEN
                break
            # The objective falls at every step; when it no longer does, rounding is all that is left.
            still = still + 1 if (gained <= EPS * np.abs(value)).all() else 0
            if still >= 20 or not fresh.any():
                status = Status.STALLED
                break
            direction = (
                white + np.divide(fresh, energy, out=np.zeros_like(energy), where=energy > 0)[:, None] * direction
            )
            energy = fresh
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    # The recurrences drift from the truth; the certificate is taken at the published answer, from the data.
    certificate, near = _certify(objective, source, diagonal, total, theta.astype(dtype), tol, target_squares, extra)
    if status is Status.CONVERGED and not near:
        status = Status.STALLED
        if dtype != np.float64:
            _, near = _certify(objective, source, diagonal, total, theta, tol, target_squares, lambda theta: 0.0)
            status = Status.ROUNDED if near else Status.STALLED
    return theta.astype(dtype).astype(np.float64), status, certificate, steps, trace


def _certify(
    objective: LeastSquares,
    source: Source,
    diagonal: Float,
    total: float,
    theta: Float,
    tol: float,
    target_squares: Float,
    extra: Callable[[Float], float],
) -> tuple[Certificate, bool]:
    """The certificate at θ, and whether it is within the tolerance. One pass."""
    theta, alpha, u = theta.astype(np.float64), objective.alpha, unit(max(total, len(diagonal)))
    at = objective.evaluate(theta, source, order=1)
    assert at.gradient is not None
    sizes = np.sqrt(diagonal)
    noise = u * np.outer(np.sqrt(at.value), sizes) + 4.0 * EPS * alpha[:, None] * np.abs(theta)
    off = u * (np.sqrt(target_squares) + np.abs(theta) @ sizes)
    lengths = np.linalg.norm(np.abs(0.5 * at.gradient) + noise, axis=1)
    proven = bool((alpha > 0).all())
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = np.where(alpha > 0, lengths / np.sqrt(alpha) + off, np.inf)
    most = np.square(np.sqrt(at.value) * (1.0 + u) + off)  # since F ≥ 0
    gap = float(np.square(np.sqrt(np.minimum(np.square(roots), most).sum()) + extra(theta)))
    value = float(at.value.sum())
    certificate = Certificate(
        gap,
        value,
        "strong convexity of the penalty" if proven else "F ≥ 0: without a penalty nothing else bounds the gap",
        stationarity=float(np.abs(at.gradient).max(initial=0.0)),
    )
    return certificate, gap <= tol * max(value, _TINY)


def _gap(residual: Float, alpha: Float) -> float:
    """Σ_j ‖r_j‖²/α_j ≥ F − F*; without a penalty only a zero residual proves anything."""
    squares = np.square(residual).sum(axis=1)
    return float(np.divide(squares, alpha, out=np.where(squares > 0, np.inf, 0.0), where=alpha > 0).sum())
