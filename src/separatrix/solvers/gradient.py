"""Accelerated proximal gradient descent: the plainest method that handles everything.

    θ₊ = prox(v − (LM)⁻¹∇F(v)),     v = θ + β(θ − θ₋),     L raised until the quadratic lies above F

M is the metric of step_metric.py: the Hessian of a sample, taken again when steps in it no longer gain much, or a diagonal
where that would be too large. Momentum is dropped whenever it points uphill. The proof is left to Newton's method (a dual point
proves ½ gᵀq⁻¹g at best, larger by the ratio of the Hessian to the penalty), or under a diagonal a dual point (see bounds.py).

Reference: Beck and Teboulle (2009), SIAM J. Imaging Sciences 2; O'Donoghue and Candès (2015), Found. Comp. Math. 15.

**Complexity** O(nnz · m) per step. **Passes over the data** two per step, and those of the proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from separatrix.data.block import Float
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.rounding import EPS
from separatrix.result import Status
from separatrix.solvers.bounds import Bound, dual_gap, least_bound
from separatrix.solvers.method import Budget, Method, Start, State
from separatrix.solvers.step_metric import NEARLY, StepMetric, inner_tolerance, step_metric

_PROOF_EVERY = 10
# A step in a good metric leaves less than this of the gap; else the metric is taken again.
_GAINS = 0.25
# How far above its quadratic F may come to lie under a metric that is near ∇²F: third derivatives, not a wrong L.
_ABOVE = 1.5


@dataclass(frozen=True)
class GradientState(State):
    """The best point, and the one that steps go on from: momentum does not lower F at every step."""

    current: Float
    at: Evaluation
    before: Float
    metric: StepMetric
    L: float
    momentum: float = 1.0
    left: float = np.inf
    """About the gap, as the metric estimates it."""
    steps: int = 0


def _init(problem: LinearProblem, start: Start, budget: Budget) -> GradientState:
    penalty = problem.objective.penalty
    theta = np.clip(start.theta, penalty.low, penalty.high)
    evaluation, metric = problem.evaluate(theta), step_metric(problem, theta)
    L = 1.0 if metric.exact else 1.0 / np.sqrt(theta.shape[1])
    return GradientState(theta, evaluation, theta, evaluation, theta, metric, L)


def _bound(problem: LinearProblem, state: GradientState, budget: Budget) -> GradientState:
    metric, left = state.metric, state.left
    if metric.exact:
        within = inner_tolerance(budget.target, left)
        left = metric.left(state.current, state.at.gradient, within)
        if left > _GAINS * state.left:
            metric = metric.retaken(state.current)
            left = metric.left(state.current, state.at.gradient, within)
            state = replace(state, metric=metric, momentum=1.0, before=state.current, L=1.0)
    bound = least_bound(state.bound, state.trivial)
    nearly = left <= NEARLY * budget.target
    due = state.steps % _PROOF_EVERY == 0 and state.steps > 0 and not metric.exact
    if due or (budget.left <= 0 and bound.gap > budget.target):
        bound = least_bound(bound, dual_gap(problem, state.theta, state.evaluation, budget.target))
    return replace(state, bound=bound, left=left, nearly=nearly)


def _step(problem: LinearProblem, state: GradientState, budget: Budget) -> GradientState:
    penalty, metric, theta = problem.objective.penalty, state.metric, state.current
    within = inner_tolerance(budget.target, state.left)
    fresh = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.momentum**2))
    point = theta + (state.momentum - 1.0) / fresh * (theta - state.before)
    point = np.clip(point, penalty.low, penalty.high)
    at = state.at if np.array_equal(point, theta) else problem.evaluate(point)
    moved, new, L = _prox_step(problem, point, at, metric, state.L, within)
    if metric.product(point - moved, moved - theta) > 0:
        momentum, before = 1.0, moved  # uphill: start again from here
    else:
        momentum, before = fresh, theta
    if np.array_equal(moved, theta):
        bound = least_bound(state.bound, dual_gap(problem, state.theta, state.evaluation, budget.target))
        return replace(state, bound=bound, verdict=Status.STALLED)
    state = replace(state, current=moved, at=new, before=before, L=L, momentum=momentum, steps=state.steps + 1)
    if not new.value <= state.value:  # momentum, or a step to where F overflows
        return state
    return replace(state, theta=moved, evaluation=new, bound=Bound(np.inf))


def _prox_step(
    problem: LinearProblem,
    point: Float,
    at: Evaluation,
    metric: StepMetric,
    L: float,
    tol: float,
) -> tuple[Float, Evaluation, float]:
    """A step whose quadratic model lies above the smooth part of F."""
    penalty = problem.objective.penalty
    smooth = at.loss + penalty.smooth_value(point)
    above = _ABOVE if metric.exact else 1.0
    while True:
        moved = metric.proximal(point, at.gradient, L, tol)
        step = moved - point
        new = problem.evaluate(moved)
        model = smooth + float((at.gradient * step).sum()) + 0.5 * above * L * metric.square(step)
        if new.loss + penalty.smooth_value(moved) <= model + 4.0 * EPS * abs(model) or 1e6 * step.size < L:
            return moved, new, max(1.0, 0.5 * L) if metric.exact else L * 0.98
        L *= 2.0


GRADIENT = Method("gradient", frozenset({"gradient", "curved", "prox"}), _init, _step, _bound)
