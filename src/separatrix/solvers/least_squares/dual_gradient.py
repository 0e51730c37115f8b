"""Conjugate gradients for ridge regression on the side of the rows: one dual coordinate per row and target.

    (X̃X̃ᵀ + αI) u = ỹ,   w = X̃ᵀu            X̃, ỹ the centred rows times the roots of their weights

    F(w) − F* ≤ F(w) − D(u) = ‖ỹ − X̃w − αu‖² + α‖X̃ᵀu − w‖²,     D(u) = 2α ỹᵀu − α²‖u‖² − α‖X̃ᵀu‖²  (α times the dual)

The bound holds for every pair (w, u). With w = X̃ᵀu it is the squared residual of the system itself, without the factor
‖X‖²/α by which the bound from the gradient, ‖∇F‖²/4α, is too large: the proof is had when the method has converged, not later.

It is taken at the published w, with fresh products. Those are off by rounding: X̃w by at most υ(‖ỹ‖ + Σ‖x_j‖|w_j|), and X̃ᵀu
by υ‖x_j‖‖u‖ in entry j, ‖x_j‖ the length of the column before it is centred (which covers the rounding of its mean).

Reference: Hestenes and Stiefel (1952), J. Research NBS 49; Saunders, Gammerman, Vovk (1998), ICML (dual ridge).

**Complexity** O(nnz · m) per step, for m targets. **Passes over the data** two per step, one where the rows are dense, and as
many for start and proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.result import Certificate, Status
from separatrix.solvers.least_squares.row_factors import unit
from separatrix.solvers.least_squares.weighted_rows import WeightedRows

_TINY = float(np.finfo(np.float64).tiny)
_RESTARTS = 3


def minimise_dual_ridge(
    rows: WeightedRows,
    alpha: Float,
    *,
    tol: float,
    max_iter: int,
    dtype: np.dtype[Any],
    extra: Callable[[Float], float],
    hopeless: bool = False,
) -> tuple[Float, Status, Certificate, int, list[dict[str, Any]]] | None:
    """Coefficients (m, d) rounded to `dtype`, status, certificate, steps and trace; α > 0.

    Stops when the proven gap is at most `tol` times the objective. Where it may find the problem `hopeless`, it gives None when
    one or two thirds of the steps show that there are too few of them; `extra` as for `minimise_ridge`.
    """
    u, residual, status = np.zeros_like(rows.targets), rows.targets.copy(order="K"), Status.MAX_ITER
    trace: list[dict[str, Any]] = []
    try:
        for _ in range(_RESTARTS):  # the recurrence of the residual drifts from the residual itself
            status = _descend(rows, alpha, u, residual, tol, max_iter - len(trace), trace, hopeless)
            if hopeless and status is Status.MAX_ITER:
                return None
            w, product = rows.there_and_back(u)
            published = _as_published(w, dtype)
            gap, value, residual = duality_gap(rows, alpha, u, w, published, product)
            near = gap <= tol * max(value, _TINY)
            if near or status is not Status.CONVERGED:
                break
            if published is not w:  # what is published is not what steps go on from
                exact, size, residual = duality_gap(rows, alpha, u, w, w, product)
                near = exact <= tol * max(size, _TINY)
                if near:
                    break
    except KeyboardInterrupt:
        status, near = Status.INTERRUPTED, False
        w = rows.transposed(u)
        published = _as_published(w, dtype)
        gap, value, residual = duality_gap(rows, alpha, u, w, published)
    gap = float(np.square(np.sqrt(gap) + extra(published.T)))
    certificate = Certificate(gap, value, "duality gap", largest_slope(rows, alpha, w, published, residual))
    if status is Status.CONVERGED and gap > tol * max(value, _TINY):
        status = Status.ROUNDED if near else Status.STALLED
    return published.T, status, certificate, len(trace), trace


def _value(left: Float, w: Float, alpha: Float) -> float:
    """F, of the residuals and the coefficients."""
    return float(np.square(left).sum() + alpha @ np.einsum("ij,ij->j", w, w))


def column_lengths(matrix: Float) -> Float:
    """(m,) ‖a_j‖, a fraction of the time that NumPy's norm takes for few entries."""
    return np.sqrt(np.einsum("ij,ij->j", matrix, matrix))


def _as_published(w: Float, dtype: np.dtype[Any]) -> Float:
    return w if dtype == np.float64 else w.astype(dtype).astype(np.float64)


def largest_slope(rows: WeightedRows, alpha: Float, w: Float, published: Float, residual: Float) -> float:
    """A bound on |∇F| at the published coefficients, entry by entry: 2(α|w − X̃ᵀu| + ‖x_j‖‖ỹ − X̃w − αu‖).

    The lengths are those of the columns before they are centred.
    """
    slope = np.sqrt(rows.squares.max(initial=0.0)) * column_lengths(residual)
    if published is not w:
        slope = slope + alpha * np.abs(published - w).max(axis=0, initial=0.0)
    return 2.0 * float(slope.max(initial=0.0))


def _descend(
    rows: WeightedRows,
    alpha: Float,
    u: Float,
    residual: Float,
    tol: float,
    max_iter: int,
    trace: list[dict[str, Any]],
    hopeless: bool,
) -> Status:
    """Conjugate gradients from u with the given residual, both changed in place."""
    direction, energy = residual.copy(order="K"), np.square(residual).sum(axis=0)
    gaps: list[float] = []
    for _ in range(max_iter):
        product = rows.there_and_back(direction)[1]
        product += alpha * direction
        curvature = np.einsum("ij,ij->j", direction, product)
        step = np.divide(energy, curvature, out=np.zeros_like(energy), where=curvature > 0)
        u += step * direction
        residual -= step * product
        left = np.einsum("ij,ij->j", residual, residual)
        # At the solution F = α ỹᵀu; the difference is of the order of the residual.
        value, gap = float((alpha * np.einsum("ij,ij->j", rows.targets, u)).sum()), float(left.sum())
        trace.append({"iteration": len(trace) + 1, "gap": gap, "objective": value})
        if gap <= 0.5 * tol * max(value, _TINY):
            return Status.CONVERGED
        if not step.any():
            return Status.STALLED
        gaps.append(gap)
        if hopeless and too_slow(gaps, max_iter, tol * max(value, _TINY)):
            return Status.MAX_ITER
        direction *= np.divide(left, energy, out=np.zeros_like(energy), where=energy > 0)
        direction += residual
        energy = left
    return Status.MAX_ITER


def too_slow(gaps: list[float], max_iter: int, goal: float) -> bool:
    """Whether one or two thirds of the steps show, by their gaps, that all of them are too few to reach the goal."""
    done = len(gaps)
    if done not in (-(-max_iter // 3), -(-2 * max_iter // 3)):
        return False
    # What a step of the last half has gained, of residuals that do not fall at every step.
    gained = np.log(min(gaps[: done - done // 2]) / min(gaps)) / max(1, done // 2)
    return not np.log(min(gaps) / goal) < (max_iter - done) * gained


def duality_gap(
    rows: WeightedRows, alpha: Float, u: Float, w: Float, published: Float, product: Float | None = None
) -> tuple[float, float, Float]:
    """Gap, objective and dual residual at the published coefficients (d, m), with w = X̃ᵀu as computed.

    `product` is X̃w where it is there already.
    """
    if product is None or published is not w:
        product = rows.times(published)
    v, sizes = unit(max(rows.total, len(rows.squares))), np.sqrt(rows.squares)
    left = rows.targets - product
    lengths = column_lengths(u)
    off = v * (column_lengths(rows.targets) + sizes @ np.abs(published) + alpha * lengths)
    apart = v * lengths * float(np.sqrt(sizes @ sizes))
    if published is not w:
        apart = apart + column_lengths(w - published)
    residual = left - alpha * u
    gap = np.square(column_lengths(residual) + off) + alpha * np.square(apart)
    return float(gap.sum()), _value(left, published, alpha), residual
