"""Stochastic gradient descent with variance reduction: steps from a few rows each, the noise of which dies out.

    θ ← prox(θ − (∇F_B(θ) − ∇F_B(θ̃) + ∇F(θ̃)) / (L·diag))      B a run of rows, θ̃ the point of the last full gradient

Plain stochastic gradients stop at a distance set by their noise; subtracting the same rows' gradient at a point whose
full gradient is known removes it, so the method converges to the optimum and can be certified.

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
from separatrix.solvers.gradient import proof, proximal
from separatrix.solvers.state import Callback, Solution, Trace, column_squares

_ROWS = 256


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
    squares = column_squares(source)
    diagonal = min(objective.loss.steepest, 4.0) * squares + penalty.quadratic
    diagonal = np.where(diagonal > 0, diagonal, 1.0) * np.sqrt(theta.shape[1])
    theta = np.clip(theta, penalty.low, penalty.high)
    anchor = objective.evaluate(theta, source, 1)
    rate, bound = 1.0, Bound(anchor.value)  # `rate` divides the steps
    try:
        while True:
            target = objective.target(tol, anchor.value)
            bound = least_bound(Bound(anchor.value), proof(objective, source, theta, anchor, intercept, target))
            trace.add(objective=anchor.value, gap=bound.gap, passes=source.passes)
            if bound.gap <= target:
                status = Status.CONVERGED
                break
            if epochs >= max_iter:
                break
            epochs += 1
            moved = _epoch(objective, source, theta, anchor.gradient, diagonal * rate)
            new = objective.evaluate(moved, source, 1)
            if new.value <= anchor.value:
                theta, anchor, rate = moved, new, rate * 0.8
            else:  # too bold: steps half as long from the same point
                rate *= 2.0
                if rate > 1e6:
                    status = Status.STALLED
                    break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    residual = penalty.residual(theta, anchor.gradient)
    stationarity = float(np.abs(residual).max(initial=0.0))
    certificate = Certificate(bound.gap, anchor.value, "dual point", stationarity=stationarity, kind=bound.kind)
    return Solution(theta, status, certificate, epochs, trace.entries, anchor.total, anchor.steepest)


def _epoch(objective: LinearObjective, source: Source, anchor: Float, gradient: Float, diagonal: Float) -> Float:
    theta = anchor
    total = float(source.n_rows or 0) or 1.0
    source._count_pass()
    for block in source.blocks():
        for start in range(0, block.n, _ROWS):
            piece = block.part(slice(start, min(start + _ROWS, block.n)))
            share = piece.n / total
            reduced = gradient + (_slope(objective, theta, piece) - _slope(objective, anchor, piece)) / share
            # The penalty's own gradient is exact: it needs no rows.
            reduced = reduced + objective.penalty.gradient(theta) - objective.penalty.gradient(anchor)
            theta = proximal(objective, theta, reduced, diagonal)
    return theta


def _slope(objective: LinearObjective, theta: Float, block: Block) -> Float:
    rows, own = objective.counted(block)
    slopes = objective.loss.gradient(rows.codes, objective.scores(theta, rows, own))
    if rows.weights is not None:
        slopes = slopes * rows.weights[:, None]
    return rows.rmatvec(slopes).T
