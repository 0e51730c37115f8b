"""Newton's method for smooth objectives, from a sample to the whole: a certified optimum in about three passes.

    θ ← θ − t H⁻¹g,      H = ∇²F(θ) = Σ s ∇²ℓ ⊗ xxᵀ + ∇²P        (for the logistic loss: iteratively reweighted least squares)

First on a few per cent of the rows (see sample.py), then on all rows. H is kept while the step proves that it has hardly
changed (see curvature.py), so late passes evaluate gradients alone. t = 1 unless the objective would not fall.

`IRLS` is the same as textbooks have it: from the start itself, on all rows, with the Hessian of every point. For the logistic
loss without a penalty a step with t = 1 is the weighted least squares of z = η + W⁻¹(y − p) on X with weights W = p(1 − p).

Reference: Boyd and Vandenberghe (2004), Convex Optimization, section 9.5; Bach (2010), Electronic J. Statistics 4.

**Complexity** O(n m² p²) for a pass with H, O(n m p) for one without, O((mp)³) per factorisation.
**Passes over the data** about three at the usual tolerances, each an evaluation of F.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from separatrix.data.block import Float
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.solvers.bounds import Bound, dual_cost, dual_gap, least_bound, strong_convexity
from separatrix.solvers.curvature import (
    Curvature,
    LargestRow,
    blurred,
    flat_directions,
    gap_bound,
    rounding,
    without_gauge,
)
from separatrix.solvers.line_search import line_search
from separatrix.solvers.method import Budget, Method, Start, State
from separatrix.solvers.sample import start_on_sample

# H is kept while its relative change is proven to stay below this.
_HARDLY_CHANGED = 0.25
_LAST_DIGITS, _LAST_STEPS, _CHEAP = 1e-7, 3, 2_000_000
# The share of the tolerance that a dual point should cost before it is asked for a proof instead.
_FAR_BELOW = 0.01


@dataclass(frozen=True)
class _Second:
    """A Hessian with the point it belongs to, and how far θ has moved from there."""

    curvature: Curvature
    spread: float = np.inf
    drift: float = 0.0
    unresolved: bool = False
    """Whether H lacks directions in which F is not flat: then it proves nothing."""

    def bound(self, evaluation: Evaluation, theta: Float, concordance: float) -> float:
        """The gap at a point that has drifted from where H was taken."""
        if self.unresolved:
            return np.inf
        loosened = float(np.exp(0.5 * min(self.drift, 100.0)))
        spread = self.spread * loosened
        decrement = loosened * self.curvature.decrement(evaluation.gradient)
        if np.isfinite(spread):
            length = self.curvature.diagonal_length(theta)
            decrement += rounding(spread, evaluation, length, theta.shape[1])
        return gap_bound(decrement, concordance * spread)


@dataclass(frozen=True)
class NewtonState(State):
    """The Hessian in use, and the largest row once it was measured."""

    second: _Second
    largest: LargestRow | None = None


def _init(problem: LinearProblem, start: Start, budget: Budget, *, sampled: bool = True) -> NewtonState:
    theta = start.theta if start.near or not sampled else start_on_sample(problem, start.theta, budget.left)
    evaluation = problem.evaluate(theta, 2)
    return NewtonState(theta, evaluation, _second(problem, evaluation))


def _second(problem: LinearProblem, evaluation: Evaluation) -> _Second:
    assert evaluation.hessian is not None
    curvature = Curvature(without_gauge(evaluation.hessian.copy(), problem.objective), problem.shape)
    return _Second(curvature, unresolved=not flat_directions(problem, curvature))


def _spread(largest: LargestRow | None, curvature: Curvature, gradient: Float, rate: float) -> float:
    """A bound on max_i ‖xᵢ‖_{H⁻¹}; infinite without looking for eigenvalues where no proof follows whatever they are."""
    if largest is None or rate * largest.least_spread(curvature) * curvature.decrement(gradient) >= 1.0:
        return np.inf
    return largest.spread(curvature)


def _rate(problem: LinearProblem) -> float:
    concordance = problem.objective.loss.concordance
    return np.inf if concordance is None else concordance


def _drifted(second: _Second, rate: float, distance: float) -> _Second:
    return replace(second, drift=second.drift + rate * second.spread * distance) if rate else second


def _known(problem: LinearProblem, state: NewtonState) -> Bound:
    """The least of three bounds: self-concordance, strong convexity, and losses being nowhere negative."""
    rate, bounds = _rate(problem), [state.trivial, strong_convexity(problem, state.evaluation.gradient)]
    if rate == 0.0 or (np.isfinite(rate) and np.isfinite(state.second.spread)):
        gap = state.second.bound(state.evaluation, state.theta, rate)
        bounds.append(Bound(gap, method="Newton decrement, self-concordance"))
    return least_bound(*bounds)


def _bound(problem: LinearProblem, state: NewtonState, budget: Budget) -> NewtonState:
    bound = _known(problem, state)
    if bound.gap <= budget.target:
        return replace(state, bound=bound)
    if blurred(state.second.curvature, state.second.spread, state.evaluation, state.theta, budget.target):
        return replace(state, bound=bound, verdict=Status.ROUNDED)
    if dual_cost(problem, state.theta)(state.evaluation.gradient) <= _FAR_BELOW * budget.target:
        # Where the reach of self-concordance is too short: rows far out, curvature that rounding blurs.
        bound = least_bound(bound, dual_gap(problem, state.theta, state.evaluation))
    return replace(state, bound=bound)


def _step(problem: LinearProblem, state: NewtonState, budget: Budget, *, kept: bool = True) -> NewtonState:
    rate, second, largest = _rate(problem), state.second, state.largest
    step = -second.curvature.solve(state.evaluation.gradient)
    length = second.curvature.length(step)
    fresh = not (kept and rate * second.spread * length + second.drift < _HARDLY_CHANGED)
    metric = None if np.isfinite(second.spread) else second.curvature.metric
    found = line_search(problem, state.theta, step, state.evaluation, order=2 if fresh else 1, metric=metric)
    if found is None:
        return replace(state, verdict=Status.STALLED)
    theta, t, evaluation = found
    if metric is not None:
        largest = LargestRow(evaluation.largest_row, metric)
    if evaluation.hessian is not None:
        second = _second(problem, evaluation)
        second = replace(second, spread=_spread(largest, second.curvature, evaluation.gradient, rate))
    else:
        second = _drifted(second, rate, t * length)
    return NewtonState(theta, evaluation, second, largest)


def _polish(problem: LinearProblem, state: NewtonState, budget: Budget) -> NewtonState:
    """A last step with the same H, where it costs little; several where the last digits are asked for."""
    n_rows, asked = problem.source.n_rows, budget.tol <= _LAST_DIGITS
    if not asked and (n_rows is None or n_rows * problem.shape[1] > _CHEAP):
        return state
    for _ in range(_LAST_STEPS if asked else 1):
        curvature = state.second.curvature
        step = -curvature.solve(state.evaluation.gradient)
        theta = state.theta + step
        second = _drifted(state.second, _rate(problem), curvature.length(step))
        moved = NewtonState(theta, problem.evaluate(theta, 1), second, state.largest)
        moved = replace(moved, bound=_known(problem, moved))
        # The bound may be all rounding already, while the gradient still falls.
        nearer = curvature.decrement(moved.evaluation.gradient) < 0.5 * curvature.decrement(state.evaluation.gradient)
        if not (nearer and moved.bound.gap <= budget.target):
            break
        state = moved
    return state


NEWTON = Method(
    "newton",
    frozenset({"gradient", "hessian", "smooth"}),
    _init,
    _step,
    _bound,
    polish=_polish,
    aliases=("newton-cholesky",),
)
IRLS = replace(
    NEWTON,
    name="irls",
    init=partial(_init, sampled=False),
    step=partial(_step, kept=False),
    polish=None,
    aliases=(),
)
