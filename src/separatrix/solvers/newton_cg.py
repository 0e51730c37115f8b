"""Newton's method with conjugate gradients inside, for smooth objectives of very many parameters.

    H d = −g  to within ‖Hd + g‖ ≤ η‖g‖,   one product with H a step
    preconditioned by blocks of H, one a score, taken from a sample of the rows; by its diagonal when p is large

First on the sample, where products cost little, or in the span of the rows where these are few (see row_span.py). No H is
formed: its products need m numbers per row, kept from the evaluation.
Blocks are taken when the products that were spent have cost as much, and again when those since have. The proof is a dual point
(see bounds.py); beside a free intercept it costs ½Σr²/q of the residual r in w and b + wᵀx̄, and a square of the intercept's.

Reference: Nocedal and Wright (2006), algorithm 7.1; Dembo, Eisenstat, Steihaug (1982), SIAM J. Numerical Analysis 19.

**Complexity** O(nnz · m) per product. **Passes over the data** one per product and one per step; memory O(m(n + p)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from separatrix.data.block import Float
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.solvers.bounds import (
    Bound,
    dual_cost,
    dual_gap,
    intercept_shift,
    least_bound,
    product_gap,
    shifted_gap,
    strong_convexity,
)
from separatrix.solvers.line_search import line_search
from separatrix.solvers.method import Budget, Method, Start, State
from separatrix.solvers.preconditioners import Near, Preconditioner, Solve, block_rows, preconditioner, reins
from separatrix.solvers.row_span import RowSpan
from separatrix.solvers.sample import FAR_OUT, Sample

_MOST_PRODUCTS, _FEW_PRODUCTS = 200, 20
# The share of the energy that a step may leave: little where the one before left little, since then the model is good.
_LEAST_LEFT, _MOST_LEFT = 1e-4, 0.1
# Steps that a sample is given.
_STEPS = 20
_CHEAP = 2_000_000
# Tolerances that ask for the last digits, and steps that are taken for them.
_LAST_DIGITS, _LAST_STEPS = 1e-7, 4
# Products in the span of few rows cost little: the point is so much better than asked for.
_BETTER = 0.1


@dataclass(frozen=True)
class NewtonCGState(State):
    """The preconditioner as it was last taken."""

    preconditioner: Preconditioner
    held: bool
    """Whether every coefficient but the intercept has a quadratic penalty."""
    near: Near | None = None
    since: int = 0
    """Products since it was taken."""
    spent: int = 0
    """Products in all."""
    energy: float = np.inf
    """gᵀM⁻¹g where the last step began: about twice what was left to gain."""
    dearer: float = 1.0
    """How many times what `_cost` says a proof turned out to cost."""


def _init(problem: LinearProblem, start: Start, budget: Budget) -> NewtonCGState:
    n_rows, rows = problem.source.n_rows or 0, block_rows(problem.shape)
    rows = max(rows, n_rows // 20)
    sample = Sample.of(problem, rows) if 4 * rows <= n_rows else None
    if sample is None and not (start.near or start.theta.any()) and (span := RowSpan.of(problem)) is not None:
        return _in_span(problem, span, budget)
    if sample is None or start.near:
        return _state(problem, start.theta, sample)
    theta = _on_sample(sample, start.theta, budget)
    sample = sample.uncopied()  # what is kept of all rows takes the room of its copies
    return _state(problem, theta, sample)


def _state(problem: LinearProblem, theta: Float, sample: Sample | None) -> NewtonCGState:
    evaluation = problem.evaluate(theta, keep=True)
    penalties = problem.objective.penalty.quadratic[:, : theta.shape[1] - problem.objective.free_intercept]
    return NewtonCGState(theta, evaluation, preconditioner(problem, sample), bool((penalties > 0).all()))


def _on_sample(sample: Sample, theta: Float, budget: Budget) -> Float:
    """The optimum of a sample, to less than its statistical error, about a unit a parameter; θ where it is far out."""
    problem = sample.scaled()
    state = _init(problem, Start(theta), budget)
    for _ in range(min(budget.left, _STEPS)):
        state = _step(problem, state, Budget(budget.tol, 0.0, budget.left))
        if not state.held and state.evaluation.steepest > FAR_OUT:
            return theta
        if state.verdict is not None or (state.near is not None and state.energy <= state.near.effective):
            break
    return state.theta


def _in_span(problem: LinearProblem, span: RowSpan, budget: Budget) -> NewtonCGState:
    """The optimum in coordinates of the rows' span, to better than is asked for, and the state at just that point."""
    state, taken = _state(span.problem, np.zeros(span.problem.shape), None), 0
    while taken < budget.left:
        own = Budget(budget.tol, _BETTER * problem.target(budget.tol, state.value), budget.left - taken)
        state = _bound(span.problem, state, own)
        if state.bound.gap <= own.target:
            break
        state, taken = _step(span.problem, state, own), taken + 1
        if state.verdict is not None:
            break
    for _ in range(span.problem.source.passes):
        problem.source.count_pass()
    return replace(_state(problem, span.coefficients(state.theta), None), taken=taken)


def _bound(problem: LinearProblem, state: NewtonCGState, budget: Budget) -> NewtonCGState:
    bound, gradient = least_bound(state.bound, state.trivial), state.evaluation.gradient
    if not problem.objective.free_intercept:
        bound = least_bound(bound, strong_convexity(problem, gradient))
    elif bound.gap > budget.target and (cost := _cost(problem, state)(gradient)) <= budget.target:
        proof = _proof(problem, state, budget.target)
        if budget.target < proof.gap < np.inf and cost > 0:
            state = replace(state, dearer=state.dearer * max(1.0, proof.gap / cost))
        bound = least_bound(bound, proof)
    return replace(state, bound=bound)


def _cost(problem: LinearProblem, state: NewtonCGState) -> Callable[[Float], float]:
    """By how much a dual point with some gradient is below F, nearly, for points near the present one.

    The intercept's condition is met by factors or by a shift, whichever costs less; of the shift's product with the Hessian the
    means of the columns give a guess.
    """
    quadratic, factors = problem.objective.penalty.quadratic[:, :-1], dual_cost(problem, state.theta)
    if not (problem.objective.free_intercept and state.held):
        return factors
    curvature, centre = state.evaluation.total_curvature, state.preconditioner.centre
    assert curvature is not None
    bends = np.maximum(curvature.diagonal(), np.finfo(np.float64).tiny)

    def cost(gradient: Float) -> float:
        last = gradient[:, -1]
        left = gradient[:, :-1] - np.multiply.outer(last, centre)
        with np.errstate(over="ignore"):  # columns of extreme size
            shifted = 0.5 * float((np.square(left) / quadratic).sum()) + float((np.square(last) / bends).sum())
        return shifted if state.dearer == 1.0 else min(state.dearer * shifted, factors(gradient))

    return cost


def _proof(problem: LinearProblem, state: NewtonCGState, target: float) -> Bound:
    """Factors alone meet the intercept's condition where it nearly holds, else after a shift; both where a pass is cheap.

    With several classes factors cost many times what is left of the condition: always a shift.
    """
    theta, evaluation, n_rows = state.theta, state.evaluation, problem.source.n_rows
    bound = product_gap(problem, evaluation, state.preconditioner.squares)
    if bound.gap <= target or (bound.gap < np.inf and dual_cost(problem, theta)(evaluation.gradient) > target):
        return bound
    large = n_rows is None or n_rows * theta.size > _CHEAP
    if large and len(theta) == 1:
        return least_bound(bound, dual_gap(problem, theta, evaluation, target))
    assert evaluation.total_curvature is not None
    shift = intercept_shift(evaluation.gradient[:, -1], evaluation.total_curvature)
    shifts = (shift,) if large else (np.zeros(len(theta)), shift)
    return least_bound(bound, *(shifted_gap(problem, theta, evaluation, c) for c in shifts))


def _step(problem: LinearProblem, state: NewtonCGState, budget: Budget) -> NewtonCGState:
    evaluation, target = state.evaluation, budget.target
    near, since = state.near, state.since
    if near is None or since >= near.price:
        near, since = state.preconditioner.at(state.theta, evaluation, state.spent), 0
    most = _FEW_PRODUCTS + int(near.price) if near.price else _MOST_PRODUCTS
    held = reins(evaluation, problem)
    step, products, energy = _solve(evaluation, near.solve, _cost(problem, state), target, most, state.energy, held)
    if not state.held and -0.5 * float((evaluation.gradient * step).sum()) <= 0.01 * target:
        return replace(state, verdict=Status.UNPROVEN)
    assert evaluation.times is not None
    evaluation.times.release()  # what is kept of every row makes room for the next
    found = line_search(problem, state.theta, step, evaluation, keep=True)
    if found is None:
        return replace(state, verdict=Status.STALLED)
    return replace(
        state,
        theta=found[0],
        evaluation=found[2],
        bound=Bound(np.inf),
        near=near,
        since=since + products,
        spent=state.spent + products,
        energy=energy,
    )


def _solve(
    evaluation: Evaluation,
    precondition: Solve,
    cost: Callable[[Float], float],
    target: float,
    most: int,
    before: float,
    held: Float,
) -> tuple[Float, int, float]:
    """Conjugate gradients on H d = −g, down to what the tolerance or the forcing term asks for; products taken, gᵀM⁻¹g.

    `held` (m, 1) is added to the curvature of the last column.
    """
    assert evaluation.times is not None
    gradient = evaluation.gradient
    step, residual = np.zeros_like(gradient), -gradient
    white = precondition(residual)
    direction, energy = white.copy(), float((residual * white).sum())
    first, taken = energy, 0
    left = min(max(first / before, _LEAST_LEFT), _MOST_LEFT)
    for taken in range(1, most + 1):
        product = evaluation.times(direction)
        if held.any():
            product[:, -1:] += held * direction[:, -1:]
        with np.errstate(over="ignore", invalid="ignore"):  # columns of extreme size: what there is so far must do
            curvature = float((direction * product).sum())
        if not 0 < curvature < np.inf:
            return step if step.any() else direction, taken, first
        length = energy / curvature
        step = step + length * direction
        residual = residual - length * product
        white = precondition(residual)
        fresh = float((residual * white).sum())
        # No more is needed than a gradient whose bound is below the target, or than the quadratic model is good for.
        bound = cost(residual)
        # A step that is below the target is the last one, where exactness can make it one.
        last = first <= target and np.isfinite(bound)
        if bound <= 0.25 * target or (fresh <= left * first and not last):
            break
        direction = white + (fresh / energy) * direction
        energy = fresh
    return step, taken, first


def _polish(problem: LinearProblem, state: NewtonCGState, budget: Budget) -> NewtonCGState:
    """Steps beyond the tolerance where the last digits are asked for: each leaves a small share of what was left."""
    if budget.tol > _LAST_DIGITS:
        return state
    for _ in range(_LAST_STEPS):
        moved = _step(problem, state, Budget(budget.tol, 0.0, budget.left))
        if moved.verdict is not None:
            break
        moved = _bound(problem, moved, budget)
        if not moved.bound.gap < state.bound.gap:
            break
        state = moved
    return state


NEWTON_CG = Method("newton-cg", frozenset({"gradient", "products", "smooth"}), _init, _step, _bound, polish=_polish)
