"""Conjugate gradients for ridge regression on the side of the columns, in columns of about unit size.

    (X̃ᵀX̃ + αI) w = X̃ᵀỹ        preconditioned by its diagonal ‖x̃_j‖² + α;        r = X̃ᵀ(ỹ − X̃w) − αw

    F(w) − F* ≤ ‖ỹ − X̃w − αu‖² + α‖X̃ᵀu − w‖² = ‖r‖²/α        at u = (ỹ − X̃w)/α: the bound of `dual_gradient`

With at least as many rows as columns: the system of the rows has the eigenvalue α for every row more, and cannot be
preconditioned for the lengths of the columns, which differ with the frequencies of words. Every step lowers F by its own
squared length, so that F is known without the residuals. The proof takes u from the recurrence and the rest afresh.

Reference: Hestenes and Stiefel (1952), J. Research NBS 49; Björck (1996), Numerical methods for least squares problems, ch. 7.

**Complexity** O(nnz · m) per step, for m targets. **Passes over the data** two per step, and four for start and proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.result import Certificate, Status
from separatrix.solvers.least_squares.dual_gradient import duality_gap, largest_slope, too_slow
from separatrix.solvers.least_squares.weighted_rows import WeightedRows

_TINY = float(np.finfo(np.float64).tiny)
_RESTARTS = 3
# Rows and columns, side by side and spread out, that show whether columns depend on each other; how much more alike than
# independent ones they may be.
_LOOKED_AT, _SIDE_BY_SIDE, _ALIKE = 256, 32, 2.0


def expected_steps(X: NDArray[Any], penalty: float, tol: float) -> float:
    """About how many steps an array with no fewer rows than columns takes; ∞ where its columns depend on each other.

    Correlations between independent columns have r² of about 1/n, which some rows and columns show. The eigenvalues of such
    columns, in unit size, are within (1 ± √(d/n))² (Marchenko and Pastur 1967), and the penalty adds to all of them: κ. A step
    takes the gap to ((√κ − 1)/(√κ + 1))² of what it was. The proof costs a factor ‖x‖²/α beside the tolerance.
    """
    (n, d), side = X.shape, min(_SIDE_BY_SIDE, X.shape[1])
    rows = slice(None, None, max(1, n // _LOOKED_AT))
    spread = np.arange(side, d, max(1, (d - side) // _SIDE_BY_SIDE))
    with np.errstate(all="ignore"):  # columns without a length look like no others
        some = np.concatenate([X[rows, :side], X[rows][:, spread]], axis=1, dtype=np.float64)
        some -= some.mean(axis=0)
        squares = np.einsum("ij,ij->j", some, some)
        some /= np.sqrt(squares)
        products = np.dot(some.T, some)
        k, size = len(products), float(squares.max()) * n / len(some)
        alike = (float(np.vdot(products, products)) - k) * max(1, len(some) - 1) / max(1, k * (k - 1))
    if not (alike <= _ALIKE and size < np.inf):
        return math.inf
    ratio, added = math.sqrt(d / n), penalty / size
    root = math.sqrt((np.square(1.0 + ratio) + added) / max(np.square(1.0 - ratio) + added, _TINY))
    gain = 2.0 * math.log((root + 1.0) / max(root - 1.0, _TINY))
    return math.log(max(1.0, size / penalty) / max(tol, _TINY)) / gain


def minimise_primal_ridge(
    rows: WeightedRows,
    alpha: Float,
    *,
    tol: float,
    max_iter: int,
    dtype: np.dtype[Any],
    extra: Callable[[Float], float],
    hopeless: bool = False,
) -> tuple[Float, Status, Certificate, int, list[dict[str, Any]]] | None:
    """As `minimise_dual_ridge`."""
    spread = np.maximum(rows.squares - rows.total * np.square(rows.centre), 0.0)
    scale = 1.0 / (spread[:, None] + alpha)
    w, left = np.zeros((len(spread), len(alpha)), order="F"), rows.targets.copy(order="K")
    status, near = Status.MAX_ITER, False
    trace: list[dict[str, Any]] = []
    published, u, product = w, np.zeros_like(left), w
    gap, value, residual = np.inf, 0.0, left
    try:
        for _ in range(_RESTARTS):  # the recurrence of the residual drifts from the residual itself
            status = _descend(rows, alpha, scale, w, left, tol, max_iter - len(trace), trace, hopeless)
            if hopeless and status is Status.MAX_ITER:
                return None
            u, published = left / alpha, w.astype(dtype).astype(np.float64)
            product = rows.transposed(u)
            gap, value, residual = duality_gap(rows, alpha, u, product, w)
            near = gap <= tol * max(value, _TINY)
            if near or status is not Status.CONVERGED:
                break
            left = residual + left  # ỹ − X̃w itself
    except KeyboardInterrupt:
        status, near = Status.INTERRUPTED, False
        published, u = w.astype(dtype).astype(np.float64), left / alpha
        product = rows.transposed(u)
    if dtype != np.float64 or status is Status.INTERRUPTED:
        gap, value, residual = duality_gap(rows, alpha, u, product, published)
    gap = float(np.square(np.sqrt(gap) + extra(published.T)))
    certificate = Certificate(gap, value, "duality gap", largest_slope(rows, alpha, product, published, residual))
    if status is Status.CONVERGED and gap > tol * max(value, _TINY):
        status = Status.ROUNDED if near else Status.STALLED
    return published.T, status, certificate, len(trace), trace


def _descend(
    rows: WeightedRows,
    alpha: Float,
    scale: Float,
    w: Float,
    left: Float,
    tol: float,
    max_iter: int,
    trace: list[dict[str, Any]],
    hopeless: bool,
) -> Status:
    """Conjugate gradients from w with the residuals `left` of the rows, both changed in place."""
    slope = rows.transposed(left) - alpha * w
    direction = scale * slope
    energy = np.einsum("ij,ij->j", slope, direction)
    value = float(np.square(left).sum() + (alpha * np.square(w)).sum())
    gaps: list[float] = []
    for _ in range(max_iter):
        moved = rows.times(direction)
        curvature = np.einsum("ij,ij->j", moved, moved) + alpha * np.einsum("ij,ij->j", direction, direction)
        step = np.divide(energy, curvature, out=np.zeros_like(energy), where=curvature > 0)
        w += step * direction
        left -= step * moved
        slope -= step * (rows.transposed(moved) + alpha * direction)
        value -= float((step * energy).sum())
        gap = float((np.einsum("ij,ij->j", slope, slope) / alpha).sum())
        trace.append({"iteration": len(trace) + 1, "gap": gap, "objective": value})
        if gap <= 0.5 * tol * max(value, _TINY):
            return Status.CONVERGED
        if not step.any():
            return Status.STALLED
        gaps.append(gap)
        if hopeless and too_slow(gaps, max_iter, tol * max(value, _TINY)):
            return Status.MAX_ITER
        steepest = scale * slope
        before, energy = energy, np.einsum("ij,ij->j", slope, steepest)
        direction *= np.divide(energy, before, out=np.zeros_like(energy), where=before > 0)
        direction += steepest
    return Status.MAX_ITER
