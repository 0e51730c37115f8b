"""Stochastic gradient descent with variance reduction: steps from a few rows each, the noise of which dies out.

    θ ← prox(θ − (LM)⁻¹(∇F_B(θ) − ∇F_B(θ̃) + ∇F(θ̃)))      B a run of rows, θ̃ the point of the last full gradient

Plain stochastic gradients stop at a distance set by their noise; subtracting the same rows' gradient at a point whose
full gradient is known removes it, so the method converges to the optimum and can be certified. M is the metric of
step_metric.py, to which a share of the steepest Hessian is added while epochs fail to lower F; the proof is left to
Newton's method, or under a diagonal a dual point.

Reference: Johnson and Zhang (2013), NeurIPS 26 (SVRG); Xiao and Zhang (2014), SIAM J. Optimization 24.

**Complexity** O(nnz · m) per epoch. **Passes over the data** three per epoch (one full gradient, two by runs of rows), and one
for each proof. Rows are taken in the order of the source: shuffle them if neighbours resemble each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.solvers.bounds import Bound, dual_gap, least_bound
from separatrix.solvers.method import Budget, Method, Start, State
from separatrix.solvers.step_metric import HESSIAN_PARAMETERS, NEARLY, StepMetric, inner_tolerance, step_metric

# Rows of a step, or as many as there are parameters: fewer say little about the metric that the step is taken in.
_ROWS = 256
# The share of the steepest Hessian that is added after an epoch without success, at least.
_LITTLE = 0.05


@dataclass(frozen=True)
class SGDState(State):
    """The metric of the steps, their inverse length L, and what the metric has of the steepest Hessian."""

    metric: StepMetric
    least: float
    L: float
    held: float = 1.0
    left: float = np.inf
    """About the gap, as the metric estimates it."""


def _init(problem: LinearProblem, start: Start, budget: Budget) -> SGDState:
    penalty = problem.objective.penalty
    theta = np.clip(start.theta, penalty.low, penalty.high)
    evaluation, metric = problem.evaluate(theta), step_metric(problem, theta)
    # The Hessian of a run, scaled to all rows, is at most as many times ∇²F as there are runs.
    least = float(_runs(problem.source, theta)) if metric.exact else float(np.sqrt(theta.shape[1]))
    return SGDState(theta, evaluation, metric, least, least)


def _bound(problem: LinearProblem, state: SGDState, budget: Budget) -> SGDState:
    theta, gradient = state.theta, state.evaluation.gradient
    target, metric, held, left = budget.target, state.metric, state.held, state.left
    bound = state.trivial
    if metric.exact:
        metric = metric.retaken(theta, held)
        left = metric.left(theta, gradient, inner_tolerance(target, left))
        if left <= NEARLY * target:  # in a metric that is above ∇²F: what does ∇²F itself say?
            metric, held = metric.retaken(theta), 0.0
            left = metric.left(theta, gradient, inner_tolerance(target, left))
    if not metric.exact or budget.left <= 0:
        bound = least_bound(bound, dual_gap(problem, theta, state.evaluation, target))
    return replace(state, bound=bound, metric=metric, held=held, left=left, nearly=left <= NEARLY * target)


def _step(problem: LinearProblem, state: SGDState, budget: Budget) -> SGDState:
    """One epoch from the point of the last full gradient, and another full gradient."""
    moved = _epoch(problem, state, inner_tolerance(budget.target, state.left))
    new = problem.evaluate(moved)
    if new.value < state.value:
        L, held = max(0.8 * state.L, state.least), 0.25 * state.held
        return replace(state, theta=moved, evaluation=new, bound=Bound(np.inf), L=L, held=held)
    # Too bold: shorter steps from the same point.
    held = max(4.0 * state.held, _LITTLE)
    L = 2.0 * state.L if not state.metric.exact or held > 1.0 else state.L
    return replace(state, held=held, L=L, verdict=Status.STALLED if 1e6 * state.least < L else None)


def _epoch(problem: LinearProblem, state: SGDState, tol: float) -> Float:
    anchor = theta = state.theta
    source, penalty = problem.source, problem.objective.penalty
    total = float(source.n_rows or 0) or 1.0
    source.count_pass()
    for block in source.blocks():
        rows = -(-block.n // _runs(block, theta))  # of nearly equal length
        for start in range(0, block.n, max(1, rows)):
            piece = block.part(slice(start, min(start + rows, block.n)))
            share = piece.n / total
            change = (_slope(problem, theta, piece) - _slope(problem, anchor, piece)) / share
            # The penalty's own gradient is exact: it needs no rows.
            reduced = state.evaluation.gradient + change
            reduced = reduced + penalty.gradient(theta) - penalty.gradient(anchor)
            theta = state.metric.proximal(theta, reduced, state.L, tol)
    return theta


def _runs(rows: Source | Block, theta: Float) -> int:
    """How many runs of rows there are."""
    n = (rows.n if isinstance(rows, Block) else rows.n_rows) or 1
    return -(-n // max(_ROWS, min(theta.size, HESSIAN_PARAMETERS)))


def _slope(problem: LinearProblem, theta: Float, block: Block) -> Float:
    objective = problem.objective
    rows, own = objective.counted(block)
    slopes = objective.loss.gradient(rows.codes, objective.scores(theta, rows, own))
    if rows.weights is not None:
        slopes = slopes * rows.weights[:, None]
    return rows.rmatvec(slopes).T


SGD = Method("sgd", frozenset({"gradient", "curved", "prox"}), _init, _step, _bound)
