"""Accelerated proximal gradient descent in a diagonal metric: the plainest method that handles everything.

    θ₊ = prox(v − M⁻¹∇F(v)),     v = θ + β(θ − θ₋),     M = L·diag,  L raised until the quadratic lies above F

Momentum is dropped whenever it points uphill. The diagonal is that of the largest second derivative the loss can have, so
the units of the columns do not matter. The proof is a dual point (see bounds.py).

Reference: Beck and Teboulle (2009), SIAM J. Imaging Sciences 2; O'Donoghue and Candès (2015), Found. Comp. Math. 15.

**Complexity** O(nnz · m) a step. **Passes over the data** two a step, and one for each proof.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.result import Certificate, Status
from separatrix.solvers.bounds import Bound, dual_gap, intercept_price, intercept_shift, least_bound
from separatrix.solvers.state import Callback, Solution, Trace, column_squares

_EPS = float(np.finfo(np.float64).eps)
_PROOF_EVERY = 10


def minimise_gradient(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    *,
    tol: float,
    max_iter: int,
    intercept: bool,
    callback: Callback | None = None,
) -> Solution:
    """Minimise until the proven gap is at most `tol` times max(1, |F|)."""
    trace, status, iterations = Trace(callback), Status.MAX_ITER, 0
    penalty = objective.penalty
    diagonal = min(objective.loss.steepest, 4.0) * column_squares(source) + penalty.quadratic
    if penalty.matrix is not None:
        diagonal = diagonal + np.abs(penalty.matrix).sum(axis=1).reshape(theta.shape)
    diagonal = np.where(diagonal > 0, diagonal, 1.0)
    theta = np.clip(theta, penalty.low, penalty.high)
    best = current = objective.evaluate(theta, source, 1)
    before, momentum, L, bound = theta, 1.0, 1.0 / np.sqrt(theta.shape[1]), Bound(best.value)
    answer = theta
    try:
        while True:
            target = objective.target(tol, current.value)
            bound = least_bound(bound, Bound(best.value))
            if iterations % _PROOF_EVERY == 0 and iterations:
                bound = least_bound(bound, proof(objective, source, answer, best, intercept, target))
            trace.add(objective=current.value, gap=bound.gap, passes=source.passes)
            if bound.gap <= target:
                status = Status.CONVERGED
                break
            if iterations >= max_iter:
                break
            iterations += 1
            fresh = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            point = theta + (momentum - 1.0) / fresh * (theta - before)
            point = np.clip(point, penalty.low, penalty.high)
            at = current if np.array_equal(point, theta) else objective.evaluate(point, source, 1)
            moved, new, L = _prox_step(objective, source, point, at, diagonal, L)
            if float(((point - moved) * diagonal * (moved - theta)).sum()) > 0:
                momentum, before = 1.0, moved  # uphill: start again from here
            else:
                momentum, before = fresh, theta
            if np.array_equal(moved, theta):
                bound = least_bound(bound, proof(objective, source, answer, best, intercept, target))
                status = Status.CONVERGED if bound.gap <= target else Status.STALLED
                break
            theta, current = moved, new
            if current.value <= best.value:
                best, answer, bound = current, theta, Bound(current.value)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    residual = penalty.residual(answer, best.gradient)
    stationarity = float(np.abs(residual).max(initial=0.0))
    certificate = Certificate(bound.gap, best.value, "dual point", stationarity=stationarity, kind=bound.kind)
    return Solution(answer, status, certificate, iterations, trace.entries, best.total, best.steepest)


def proximal(objective: LinearObjective, point: Float, gradient: Float, metric: Float) -> Float:
    """The minimiser of gᵀΔ + ½Δᵀ diag(metric) Δ + P₁(θ + Δ)."""
    penalty = objective.penalty
    z = point - gradient / metric
    return np.clip(np.sign(z) * np.maximum(np.abs(z) - penalty.absolute / metric, 0.0), penalty.low, penalty.high)


def _prox_step(
    objective: LinearObjective, source: Source, point: Float, at: Evaluation, diagonal: Float, L: float
) -> tuple[Float, Evaluation, float]:
    """A step whose quadratic model lies above the smooth part of F."""
    penalty = objective.penalty
    smooth = at.loss + penalty.smooth_value(point)
    while True:
        moved = proximal(objective, point, at.gradient, L * diagonal)
        step = moved - point
        new = objective.evaluate(moved, source, 1)
        model = smooth + float((at.gradient * step).sum()) + 0.5 * L * float((diagonal * np.square(step)).sum())
        if new.loss + penalty.smooth_value(moved) <= model + 4.0 * _EPS * abs(model) or 1e6 * diagonal.size < L:
            return moved, new, L * 0.98
        L *= 2.0


def proof(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    evaluation: Evaluation,
    intercept: bool,
    target: float = 0.0,
) -> Bound:
    """The bound of a dual point; two passes where the intercept's condition is not near enough for `target`, else one."""
    shift = np.zeros(len(theta))
    if intercept and intercept_price(theta, evaluation.gradient) > 0.25 * target:
        curvature = objective.evaluate(theta, source, 1, keep=True).total_curvature
        assert curvature is not None
        shift = intercept_shift(evaluation.gradient[:, -1], curvature)
    return dual_gap(objective, source, theta, evaluation, shift, intercept)
