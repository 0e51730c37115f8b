"""Gradient descent as textbooks write it: a fixed rate ρ, no metric, no momentum, no line search.

    all rows            θ ← θ − ρ ∇F(θ)                            for the logistic loss  w ← w + ρ Σ (yᵢ − pᵢ) xᵢ
    one row at a time   θ ← θ − ρ (sᵢ∇ℓᵢ(θ) + sᵢ/S ∇P(θ))          one after the other, in the order of the source;  S = Σ s

F = Σ s ℓ + P/C, so that ρ is the rate of the log-likelihood whatever C is. With all rows F falls at every step where ρ < 2/L, L
the largest eigenvalue of ∇²F. Above, steps overshoot: a quadratic part of F grows without bound, the logistic loss goes up and
down for ever. It has then ended above the lowest point of its way, and the status says so. With one row at a time a rate
that is fixed leaves θ at a distance of the optimum that is in proportion to ρ: it goes up and down in any case, and only
ending above the start is a sign.

Reference: Robbins and Monro (1951), Annals of Mathematical Statistics 22; Nesterov (2004), Introductory Lectures on Convex
Optimization, section 1.2.3.

**Complexity** O(nnz · m) per step of all rows, or per epoch. **Passes over the data** one for each, another for the epoch, two
for each proof by Newton's decrement, which is asked for now and then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from separatrix.data.block import Float
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.solvers.bounds import Bound, least_bound, strong_convexity
from separatrix.solvers.curvature import Curvature, LargestRow, flat_directions, gap_bound, rounding, without_gauge
from separatrix.solvers.method import Budget, Method, Start, State

_PROOF_EVERY = 10
# Parameters up to which the Hessian of a proof costs little beside the steps.
_SMALL_HESSIAN = 300
# So many times what it was at the start, F does not come back.
_BLOWN_UP = 1e6
_NAMES = ("gradient", "sgd")


@dataclass(frozen=True)
class FixedRateState(State):
    """F at the start, the lowest so far, and the number of steps."""

    first: float
    lowest: float
    steps: int = 0


def fixed_rate(problem: LinearProblem, name: str, rate: float, record: bool = False) -> Method:
    """The method of a fixed rate: "gradient" for all rows, "sgd" for one at a time, whose points are kept for the `record`."""
    if name not in _NAMES:
        raise ValueError(
            f"eta0 is the fixed rate of solver='gradient' (all rows) and of solver='sgd' (one row at a time), not of {name!r}."
        )
    if not {"smooth", "curved"} <= problem.offers:
        raise ValueError(
            "eta0 asks for plain steps along the gradient, which absolute values, bounds and losses with kinks do not have: "
            "use an L2 penalty or none and a smooth loss, or leave eta0 out."
        )
    step = partial(_epoch, rate=rate, record=record) if name == "sgd" else partial(_step, rate=rate)
    bound = partial(_bound, noisy=name == "sgd")
    return Method(name, frozenset({"gradient", "smooth", "curved"}), _init, step, bound)


def _init(problem: LinearProblem, start: Start, budget: Budget) -> FixedRateState:
    evaluation = problem.evaluate(start.theta)
    return FixedRateState(start.theta, evaluation, evaluation.value, evaluation.value)


def _moved(problem: LinearProblem, state: FixedRateState, theta: Float) -> FixedRateState:
    evaluation = problem.evaluate(theta)
    lowest, steps = min(state.lowest, evaluation.value), state.steps + 1
    return FixedRateState(theta, evaluation, state.first, lowest, steps)


def _step(problem: LinearProblem, state: FixedRateState, budget: Budget, rate: float) -> FixedRateState:
    return _moved(problem, state, state.theta - rate * state.evaluation.gradient)


def _epoch(problem: LinearProblem, state: FixedRateState, budget: Budget, rate: float, record: bool) -> FixedRateState:
    objective, source, theta = problem.objective, problem.source, state.theta
    penalty, total, visited = objective.penalty, state.evaluation.total, []
    source.count_pass()
    for block in source.blocks():
        for at in range(block.n):
            row, own = objective.counted(block.part(slice(at, at + 1)))
            if not row.n:  # a row of weight zero
                continue
            weight = 1.0 if row.weights is None else float(row.weights[0])
            slope = objective.loss.gradient(row.codes, objective.scores(theta, row, own))
            gradient = row.rmatvec(slope).T + penalty.gradient(theta) / total
            theta = theta - rate * weight * gradient
            visited += [theta] if record else []
    return replace(_moved(problem, state, theta), visited=tuple(visited[:-1]))


def _bound(problem: LinearProblem, state: FixedRateState, budget: Budget, noisy: bool) -> FixedRateState:
    bound = least_bound(state.trivial, strong_convexity(problem, state.evaluation.gradient))
    due = state.steps % _PROOF_EVERY == 0 or budget.left <= 0
    if due and bound.gap > budget.target:
        bound = least_bound(bound, _newton_bound(problem, state.theta))
    before = state.first if noisy else state.lowest
    blown_up = not state.value <= _BLOWN_UP * max(problem.objective.unit, abs(state.first))
    rose = budget.left <= 0 and state.value > before + budget.target
    return replace(state, bound=bound, verdict=Status.DIVERGED if blown_up or rose else None)


def _newton_bound(problem: LinearProblem, theta: Float) -> Bound:
    """F − F* by the Newton decrement and self-concordance (see curvature.py). Two passes."""
    objective, nothing = problem.objective, Bound(np.inf)
    if theta.size > _SMALL_HESSIAN or objective.loss.concordance is None:
        return nothing
    evaluation = problem.evaluate(theta, 2)
    assert evaluation.hessian is not None
    curvature = Curvature(without_gauge(evaluation.hessian.copy(), objective), problem.shape)
    if not flat_directions(problem, curvature):
        return nothing
    largest = problem.evaluate(theta, 1, metric=curvature.metric).largest_row
    spread = LargestRow(largest, curvature.metric).spread(curvature)
    if not np.isfinite(spread):
        return nothing
    decrement = curvature.decrement(evaluation.gradient)
    decrement += rounding(spread, evaluation, curvature.diagonal_length(theta), theta.shape[1])
    gap = gap_bound(decrement, objective.loss.concordance * spread)
    return Bound(gap, method="Newton decrement, self-concordance")
