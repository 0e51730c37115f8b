"""Newton's method for the cumulative logit, with a proof from how slowly its curvature changes.

    β ← β − t H⁻¹g,       H = ∇²F(β);   t = 1 unless F would not fall or thresholds would change their order

The proof. Let λ = √(gᵀH⁻¹g) and, for a radius r, let κ be such that ∇²F(β + Δ) ⪰ κH for all ‖Δ‖_H ≤ r. On the sphere of that
radius F(β + Δ) ≥ F − λr + κr²/2, which is at least F where r ≥ 2λ/κ: as F is convex, its minimum lies inside, and there

    F(β) − F* ≤ max_t λt − κt²/2 = λ²/(2κ)

κ is the least of e^{−rR}, R = max_i ‖zᵢ‖_{H⁻¹} over the rows z = (−x, e_k) of the logistic losses, of
(sinh(δ_k/2)/sinh((δ_k + rT_k)/2))², T_k = ‖e_k − e_{k−1}‖_{H⁻¹}, for the barrier between thresholds δ_k apart, and of 1
for the penalty. With r = 4λ it is enough that κ ≥ ½. λ is widened by what rounding does to the gradient.

**Complexity** O(n d²) per pass, O(d³) per factorisation. **Passes over the data** one per step, about six in all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.objectives.cumulative_problem import CumulativeProblem
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.rounding import EPS
from separatrix.objectives.solution import Solution
from separatrix.result import Status
from separatrix.solvers.bounds import Bound, least_bound
from separatrix.solvers.curvature import Curvature, rounding
from separatrix.solvers.driver import Trace, run
from separatrix.solvers.line_search import line_search
from separatrix.solvers.method import Budget, Method, Start, State

# So many steps that lower F by rounding at most, and the rest of the gap is not for steps to close: thresholds of which hardly
# any row tells where they belong, or weights over many decades.
_IN_VAIN = 4
_METHOD = "Newton decrement, slowly changing curvature"


@dataclass(frozen=True)
class CumulativeState(State):
    """The curvature at the point, and a bound on R where it was measured."""

    curvature: Curvature
    spread: float = np.inf
    idle: int = 0
    """Steps in a row that lowered F by no more than its rounding."""


def _init(problem: Any, start: Start, budget: Budget) -> CumulativeState:
    evaluation = problem.evaluate(start.theta, 2)
    return _state(problem, start.theta, evaluation, np.inf)


def _state(problem: CumulativeProblem, beta: Float, evaluation: Evaluation, spread: float) -> CumulativeState:
    assert evaluation.hessian is not None
    return CumulativeState(beta, evaluation, Curvature(evaluation.hessian.copy(), problem.shape), spread)


def _bound(problem: Any, state: CumulativeState, budget: Budget) -> CumulativeState:
    curvature, evaluation = state.curvature, state.evaluation
    decrement = curvature.decrement(evaluation.gradient)
    known = state.trivial
    if not curvature.deficient and 0.5 * decrement**2 <= budget.target:
        spread = state.spread
        if not np.isfinite(spread):
            metric = curvature.metric
            spread = curvature.spread(problem.evaluate(state.theta, 1, metric).largest_row)
        gap = proven_gap(problem, state.theta, evaluation, curvature, spread)
        known = least_bound(known, Bound(gap, method=_METHOD))
        state = replace(state, spread=spread)
    return replace(state, bound=known, verdict=Status.STALLED if state.idle > _IN_VAIN else None)


def proven_gap(
    problem: CumulativeProblem, beta: Float, evaluation: Evaluation, curvature: Curvature, spread: float
) -> float:
    """λ²/(2κ), or infinity where κ is not known to be at least ½."""
    length = curvature.diagonal_length(beta)
    noise = rounding(spread, evaluation, length, beta.shape[1]) + 8.0 * EPS * np.sqrt(beta.size) * length
    decrement = curvature.decrement(evaluation.gradient) + noise
    radius, kappa = 4.0 * decrement, float(np.exp(-4.0 * decrement * spread))
    thresholds = problem.objective.split(beta)[1]
    for k, gap in enumerate(np.diff(thresholds).tolist()):
        between = np.zeros(beta.shape)
        at = beta.shape[1] - len(thresholds) + k
        between[0, at], between[0, at + 1] = -1.0, 1.0
        moved = radius * curvature.decrement(between)
        # sinh(u)/sinh(v) = e^{u − v}(1 − e^{−2u})/(1 − e^{−2v})
        ratio = np.exp(-0.5 * moved) * np.expm1(-gap) / np.expm1(-(gap + moved))
        kappa = min(kappa, float(np.square(ratio)))
    return decrement**2 / (2.0 * kappa) if kappa >= 0.5 else np.inf


def _step(problem: Any, state: CumulativeState, budget: Budget) -> CumulativeState:
    step = -state.curvature.solve(state.evaluation.gradient)
    found = line_search(problem, state.theta, step, state.evaluation, order=2)
    if found is None:
        return replace(state, verdict=Status.STALLED)
    beta, _, evaluation = found
    before, moved = state.evaluation, _state(problem, beta, evaluation, np.inf)
    fallen = before.value - evaluation.value > 4.0 * before.precision * abs(before.value)
    idle = 0 if fallen else state.idle + 1
    return replace(moved, idle=idle)


def _polish(problem: Any, state: CumulativeState, budget: Budget) -> CumulativeState:
    """A last step, for the digits of the coefficients, where it gains and is proven as well."""
    moved = _step(problem, state, budget)
    gained = moved.curvature.decrement(moved.evaluation.gradient) < state.curvature.decrement(state.evaluation.gradient)
    if moved.verdict is not None or not gained:
        return state
    moved = _bound(problem, moved, budget)
    return moved if moved.bound.gap <= budget.target else state


CUMULATIVE_NEWTON = Method("newton", frozenset({"gradient", "hessian", "smooth"}), _init, _step, _bound, polish=_polish)


def minimise_cumulative(
    problem: CumulativeProblem, beta: Float, *, tol: float, max_iter: int, callback: Any = None
) -> Solution:
    """The minimiser of a cumulative logit, with its proof."""
    start: Any = problem  # a method asks nothing of a problem but what this one has
    return run(CUMULATIVE_NEWTON, start, Start(beta, near=True), tol=tol, max_iter=max_iter, trace=Trace(callback))
