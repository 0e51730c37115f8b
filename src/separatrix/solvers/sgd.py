"""Stochastic gradient descent with variance reduction: steps from a few rows each, the noise of which dies out.

    θ ← prox(θ − (LM)⁻¹(∇F_B(θ) − ∇F_B(θ̃) + ∇F(θ̃)))      B a run of rows, θ̃ the point of the last full gradient

Plain stochastic gradients stop at a distance set by their noise; subtracting the same rows' gradient at a point whose
full gradient is known removes it, so the method converges to the optimum and can be certified. M is the metric of
step_metric.py, to which a share of the steepest Hessian is added while epochs fail to lower F; the proof is that of
finish.py (a dual point under a diagonal).

Reference: Johnson and Zhang (2013), NeurIPS 26 (SVRG); Xiao and Zhang (2014), SIAM J. Optimization 24.

**Complexity** O(nnz · m) an epoch. **Passes over the data** three an epoch (one full gradient, two by runs of rows), and one
for each proof. Rows are taken in the order of the source: shuffle them if neighbours resemble each other.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import LinearObjective
from separatrix.result import Certificate, Status
from separatrix.solvers.bounds import Bound, least_bound
from separatrix.solvers.finish import HESSIAN_PARAMETERS, NEARLY, finish
from separatrix.solvers.gradient import proof
from separatrix.solvers.state import Callback, Solution, Trace
from separatrix.solvers.step_metric import StepMetric, inner_tolerance, step_metric

# Rows of a step, or as many as there are parameters: fewer say little about the metric that the step is taken in.
_ROWS = 256
# The share of the steepest Hessian that is added after an epoch without success, at least.
_LITTLE = 0.05


def minimise_sgd(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    *,
    tol: float,
    max_iter: int,
    intercept: bool,
    callback: Callback | None = None,
) -> Solution:
    """Minimise until the proven gap is at most `tol` times max(1, |F|); `max_iter` counts epochs."""
    trace, status, epochs = Trace(callback), Status.MAX_ITER, 0
    penalty = objective.penalty
    theta = np.clip(theta, penalty.low, penalty.high)
    anchor = objective.evaluate(theta, source, 1)
    bound = Bound(anchor.value)
    try:
        metric = step_metric(objective, source, theta)
        # The Hessian of a run, scaled to all rows, is at most as many times ∇²F as there are runs.
        least = float(_runs(source, theta)) if metric.exact else np.sqrt(theta.shape[1])
        L, held, left = least, 1.0, np.inf
        while True:
            target = objective.target(tol, anchor.value)
            bound = Bound(anchor.value)
            if metric.exact:
                metric = metric.retaken(theta, held)
                left = metric.left(theta, anchor.gradient, inner_tolerance(target, left))
                if left <= NEARLY * target:  # so says a metric that is above ∇²F: what does ∇²F itself say?
                    metric, held = metric.retaken(theta), 0.0
                    left = metric.left(theta, anchor.gradient, inner_tolerance(target, left))
            if not metric.exact or epochs >= max_iter:
                bound = least_bound(bound, proof(objective, source, theta, anchor, intercept, target))
            trace.add(objective=anchor.value, gap=bound.gap, passes=source.passes)
            if bound.gap <= target:
                status = Status.CONVERGED
                break
            if left <= NEARLY * target and epochs < max_iter:
                return finish(objective, source, theta, epochs, trace, tol=tol, max_iter=max_iter, intercept=intercept)
            if epochs >= max_iter:
                break
            epochs += 1
            moved = _epoch(objective, source, theta, anchor.gradient, metric, L, inner_tolerance(target, left))
            new = objective.evaluate(moved, source, 1)
            if new.value < anchor.value:
                theta, anchor, L, held = moved, new, max(0.8 * L, least), 0.25 * held
            else:  # too bold: shorter steps from the same point
                held = max(4.0 * held, _LITTLE)
                if not metric.exact or held > 1.0:
                    L *= 2.0
                if 1e6 * least < L:
                    status = Status.STALLED
                    break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    residual = penalty.residual(theta, anchor.gradient)
    stationarity = float(np.abs(residual).max(initial=0.0))
    certificate = Certificate(bound.gap, anchor.value, "dual point", stationarity=stationarity, kind=bound.kind)
    return Solution(theta, status, certificate, epochs, trace.entries, anchor.total, anchor.steepest)


def _epoch(
    objective: LinearObjective,
    source: Source,
    anchor: Float,
    gradient: Float,
    metric: StepMetric,
    L: float,
    tol: float,
) -> Float:
    theta = anchor
    total = float(source.n_rows or 0) or 1.0
    source.count_pass()
    for block in source.blocks():
        rows = -(-block.n // _runs(block, theta))  # of nearly equal length
        for start in range(0, block.n, max(1, rows)):
            piece = block.part(slice(start, min(start + rows, block.n)))
            share = piece.n / total
            reduced = gradient + (_slope(objective, theta, piece) - _slope(objective, anchor, piece)) / share
            # The penalty's own gradient is exact: it needs no rows.
            reduced = reduced + objective.penalty.gradient(theta) - objective.penalty.gradient(anchor)
            theta = metric.proximal(theta, reduced, L, tol)
    return theta


def _runs(rows: Source | Block, theta: Float) -> int:
    """How many runs of rows there are."""
    n = (rows.n if isinstance(rows, Block) else rows.n_rows) or 1
    return -(-n // max(_ROWS, min(theta.size, HESSIAN_PARAMETERS)))


def _slope(objective: LinearObjective, theta: Float, block: Block) -> Float:
    rows, own = objective.counted(block)
    slopes = objective.loss.gradient(rows.codes, objective.scores(theta, rows, own))
    if rows.weights is not None:
        slopes = slopes * rows.weights[:, None]
    return rows.rmatvec(slopes).T
