"""Conjugate gradients for ridge regression whose Gram matrix does not fit: many columns, many rows.

    (S + αI) w = c,  one product with S a step, preconditioned by the diagonal

Every target has its own step lengths but all share each pass. The gap is proven by strong convexity:
F(w) − F* ≤ ‖∇F‖² / (4α). Without a penalty nothing bounds it, and the status says so.

Reference: Hestenes and Stiefel (1952), J. Research NBS 49.

**Complexity** O(nnz · m) a step. **Passes over the data** one a step, and two to start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.objectives.least_squares import LeastSquares
from separatrix.result import Certificate, Status


def minimise_ridge(
    objective: LeastSquares,
    source: Source,
    diagonal: Float,
    total: float,
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[dict[str, Any]], None] | None = None,
) -> tuple[Float, Status, Certificate, int, list[dict[str, Any]]]:
    """Coefficients (m, d), status, certificate, steps and trace.

    Stops when the proven gap is at most `tol` times the objective (without a penalty: when the preconditioned residual
    has shrunk by `tol`), or when the objective stops falling. `diagonal` is that of S, `total` the weight of the rows.
    """
    alpha = objective.alpha
    theta = np.zeros((len(alpha), source.n_features))
    start = objective.evaluate(theta, source, order=1)
    assert start.gradient is not None
    value, residual = start.value, -0.5 * start.gradient  # residual = c − (S+αI)w
    inverse = 1.0 / np.maximum(diagonal + alpha[:, None], np.finfo(np.float64).tiny)
    direction = inverse * residual
    energy = np.einsum("ij,ij->i", residual, direction)
    proven = bool((alpha > 0).all())
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
            if callback is not None:
                callback(trace[-1])
            if proven and gap <= tol * max(float(value.sum()), np.finfo(np.float64).tiny):
                status = Status.CONVERGED
                break
            if not proven and float(fresh.sum()) <= tol * tol * first:
                status = Status.UNPROVEN
                break
            # The objective falls at every step; when it no longer does, rounding is all that is left.
            still = still + 1 if (gained <= np.finfo(np.float64).eps * np.abs(value)).all() else 0
            if still >= 20 or not fresh.any():
                status = Status.STALLED
                break
            direction = (
                white + np.divide(fresh, energy, out=np.zeros_like(energy), where=energy > 0)[:, None] * direction
            )
            energy = fresh
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    # The recurrences drift from the truth; the certificate is taken at the answer, from the data.
    final = objective.evaluate(theta, source, order=1)
    assert final.gradient is not None
    noise = np.finfo(np.float64).eps * (32.0 + 2.0 * np.sqrt(total)) * np.outer(np.sqrt(final.value), np.sqrt(diagonal))
    gap = _gap(np.abs(0.5 * final.gradient) + noise, alpha)
    if status is Status.CONVERGED and gap > tol * max(float(final.value.sum()), np.finfo(np.float64).tiny):
        status = Status.STALLED
    certificate = Certificate(
        gap,
        float(final.value.sum()),
        "strong convexity of the penalty" if proven else "none: without a penalty nothing bounds the gap",
        stationarity=float(np.abs(final.gradient).max(initial=0.0)),
    )
    return theta, status, certificate, steps, trace


def _gap(residual: Float, alpha: Float) -> float:
    """Σ_j ‖r_j‖²/α_j ≥ F − F*; without a penalty only a zero residual proves anything."""
    squares = np.square(residual).sum(axis=1)
    return float(np.divide(squares, alpha, out=np.where(squares > 0, np.inf, 0.0), where=alpha > 0).sum())
