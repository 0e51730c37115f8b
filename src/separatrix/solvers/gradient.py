"""Accelerated proximal gradient descent: the plainest method that handles everything.

    θ₊ = prox(v − (LM)⁻¹∇F(v)),     v = θ + β(θ − θ₋),     L raised until the quadratic lies above F

M is the metric of step_metric.py: the Hessian of a sample, taken again when steps in it no longer gain much, or a diagonal
where that would be too large. Momentum is dropped whenever it points uphill. The proof is that of finish.py, or a dual point
(see bounds.py) under a diagonal.

Reference: Beck and Teboulle (2009), SIAM J. Imaging Sciences 2; O'Donoghue and Candès (2015), Found. Comp. Math. 15.

**Complexity** O(nnz · m) a step. **Passes over the data** two a step, and those of the proof.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.result import Certificate, Status
from separatrix.solvers.bounds import Bound, dual_gap, intercept_price, intercept_shift, least_bound
from separatrix.solvers.finish import NEARLY, finish
from separatrix.solvers.state import Callback, Solution, Trace
from separatrix.solvers.step_metric import StepMetric, inner_tolerance, step_metric

_EPS = float(np.finfo(np.float64).eps)
_PROOF_EVERY = 10
# A step in a good metric leaves less than this of the gap; else the metric is taken again.
_GAINS = 0.25
# How far above its quadratic F may come to lie under a metric that is near ∇²F: third derivatives, not a wrong L.
_ABOVE = 1.5


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
    theta = np.clip(theta, penalty.low, penalty.high)
    best = current = objective.evaluate(theta, source, 1)
    answer, bound = theta, Bound(best.value)
    try:
        metric = step_metric(objective, source, theta)
        before, momentum, L = theta, 1.0, 1.0 if metric.exact else 1.0 / np.sqrt(theta.shape[1])
        left = np.inf
        while True:
            target = objective.target(tol, current.value)
            if metric.exact:
                previous, within = left, inner_tolerance(target, left)
                left = metric.left(theta, current.gradient, within)
                if left > _GAINS * previous:
                    metric, momentum, before, L = metric.retaken(theta), 1.0, theta, 1.0
                    left = metric.left(theta, current.gradient, within)
            if iterations % _PROOF_EVERY == 0 and iterations and not metric.exact:
                bound = least_bound(bound, proof(objective, source, answer, best, intercept, target))
            trace.add(objective=current.value, gap=bound.gap, passes=source.passes)
            if bound.gap <= target:
                status = Status.CONVERGED
                break
            if left <= NEARLY * target and iterations < max_iter:
                return finish(
                    objective, source, theta, iterations, trace, tol=tol, max_iter=max_iter, intercept=intercept
                )
            if iterations >= max_iter:
                bound = least_bound(bound, proof(objective, source, answer, best, intercept, target))
                break
            iterations += 1
            within = inner_tolerance(target, left)
            fresh = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            point = theta + (momentum - 1.0) / fresh * (theta - before)
            point = np.clip(point, penalty.low, penalty.high)
            at = current if np.array_equal(point, theta) else objective.evaluate(point, source, 1)
            moved, new, L = _prox_step(objective, source, point, at, metric, L, within)
            if metric.product(point - moved, moved - theta) > 0:
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


def _prox_step(
    objective: LinearObjective,
    source: Source,
    point: Float,
    at: Evaluation,
    metric: StepMetric,
    L: float,
    tol: float,
) -> tuple[Float, Evaluation, float]:
    """A step whose quadratic model lies above the smooth part of F."""
    penalty = objective.penalty
    smooth = at.loss + penalty.smooth_value(point)
    above = _ABOVE if metric.exact else 1.0
    while True:
        moved = metric.proximal(point, at.gradient, L, tol)
        step = moved - point
        new = objective.evaluate(moved, source, 1)
        model = smooth + float((at.gradient * step).sum()) + 0.5 * above * L * metric.square(step)
        if new.loss + penalty.smooth_value(moved) <= model + 4.0 * _EPS * abs(model) or 1e6 * step.size < L:
            return moved, new, max(1.0, 0.5 * L) if metric.exact else L * 0.98
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
