"""Newton's method with conjugate gradients inside, for smooth objectives of very many parameters.

    H d = −g  to within ‖Hd + g‖ ≤ η‖g‖,   one product with H a step
    preconditioned by (A ⊗ G + q)⁻¹, A = Σ s∇²ℓ/Σ s the mean curvature of the scores, G = XᵀX; by its diagonal when p is large

No H is formed: its products need m numbers per row, kept from the evaluation. The diagonal is that of centred columns: in w and
b + wᵀx̄ the Hessian has hardly an entry between slopes and intercept. The proof is a dual point (see bounds.py); it costs ½Σr²/q
of the residual r in these coordinates, and a square of the intercept's.

Reference: Nocedal and Wright (2006), algorithm 7.1; Dembo, Eisenstat, Steihaug (1982), SIAM J. Numerical Analysis 19.

**Complexity** O(nnz · m) per product. **Passes over the data** one per product and one per step; memory O(m(n + p)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.settings import one_blas_thread
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
from separatrix.solvers.driver import run
from separatrix.solvers.line_search import line_search
from separatrix.solvers.method import Budget, Method, Start, State
from separatrix.solvers.sample import FAR_OUT, Sample, column_squares

# Up to this many columns their Gram matrix is worth its price as a preconditioner, from this many rows.
_KRONECKER_COLUMNS = 1500
_GRAM_ROWS = 20_000
_MOST_PRODUCTS = 200
_ROWS_PER_PARAMETER = 10
_FORCING = 5e-2
_CHEAP = 2_000_000


@dataclass(frozen=True)
class NewtonCGState(State):
    """The preconditioner, and whether every coefficient but the intercept has a quadratic penalty."""

    preconditioner: _Kronecker | _Diagonal
    held: bool


def _init(problem: LinearProblem, start: Start, budget: Budget) -> NewtonCGState:
    theta = start.theta if start.near else _on_sample(problem, start.theta)
    evaluation = problem.evaluate(theta, keep=True)
    penalties = problem.objective.penalty.quadratic[:, : theta.shape[1] - problem.objective.free_intercept]
    even = penalties.max(initial=0.0) <= 1e6 * penalties.min(initial=np.inf)
    dense = even and theta.shape[1] <= _KRONECKER_COLUMNS
    preconditioner = _Kronecker(problem) if dense else _Diagonal(problem)
    return NewtonCGState(theta, evaluation, preconditioner, bool((penalties > 0).all()))


def _on_sample(problem: LinearProblem, theta: Float) -> Float:
    """The optimum of a twentieth of the rows, roughly; θ where that would be too few."""
    n_rows = problem.source.n_rows or 0
    rows = max(n_rows // 20, _ROWS_PER_PARAMETER * theta.size)
    sample = Sample.of(problem, rows) if 8 * rows <= n_rows else None
    if sample is None:
        return theta
    found = run(NEWTON_CG, sample.scaled(), Start(theta, near=True), tol=0.1 * theta.size / rows, max_iter=20)
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found.theta if found.steepest < FAR_OUT else theta


def _bound(problem: LinearProblem, state: NewtonCGState, budget: Budget) -> NewtonCGState:
    bound, gradient = least_bound(state.bound, state.trivial), state.evaluation.gradient
    if not problem.objective.free_intercept:
        bound = least_bound(bound, strong_convexity(problem, gradient))
    elif bound.gap > budget.target and _cost(problem, state)(gradient) <= budget.target:
        bound = least_bound(bound, _proof(problem, state, budget.target))
    return replace(state, bound=bound)


def _cost(problem: LinearProblem, state: NewtonCGState) -> Callable[[Float], float]:
    """By how much a dual point with some gradient is below F, nearly, for points near the present one."""
    preconditioner, quadratic = state.preconditioner, problem.objective.penalty.quadratic[:, :-1]
    if not (isinstance(preconditioner, _Diagonal) and problem.objective.free_intercept and state.held):
        return partial(dual_cost, problem, state.theta)
    curvature, centre = state.evaluation.total_curvature, preconditioner.centre
    assert curvature is not None
    inverse = np.linalg.pinv(curvature, hermitian=True)

    def cost(gradient: Float) -> float:
        last = gradient[:, -1]
        left = gradient[:, :-1] - np.multiply.outer(last, centre)
        with np.errstate(over="ignore"):  # columns of extreme size
            return 0.5 * float((np.square(left) / quadratic).sum()) + float(last @ inverse @ last)

    return cost


def _proof(problem: LinearProblem, state: NewtonCGState, target: float) -> Bound:
    """Factors alone meet the intercept's condition where it nearly holds, else after a shift; both where a pass is cheap."""
    theta, evaluation, n_rows = state.theta, state.evaluation, problem.source.n_rows
    if isinstance(state.preconditioner, _Diagonal):
        bound = product_gap(problem, evaluation, state.preconditioner.squares)
        if bound.gap < np.inf:
            return bound
    if n_rows is None or n_rows * theta.size > _CHEAP:
        return dual_gap(problem, theta, evaluation, target)
    assert evaluation.total_curvature is not None
    shift = intercept_shift(evaluation.gradient[:, -1], evaluation.total_curvature)
    return least_bound(*(shifted_gap(problem, theta, evaluation, c) for c in (np.zeros(len(theta)), shift)))


def _step(problem: LinearProblem, state: NewtonCGState, budget: Budget) -> NewtonCGState:
    evaluation, target = state.evaluation, budget.target
    step = _solve(evaluation, state.preconditioner.at(evaluation), _cost(problem, state), target)
    if not state.held and -0.5 * float((evaluation.gradient * step).sum()) <= 0.01 * target:
        return replace(state, verdict=Status.UNPROVEN)
    assert evaluation.times is not None
    evaluation.times.release()  # what is kept of every row makes room for the next
    found = line_search(problem, state.theta, step, evaluation, keep=True)
    if found is None:
        return replace(state, verdict=Status.STALLED)
    return replace(state, theta=found[0], evaluation=found[2], bound=Bound(np.inf))


class _Kronecker:
    """(A ⊗ G + q̄)⁻¹ with A = Σ s∇²ℓ / Σ s and G = Σ s xxᵀ: exact if every row had the mean curvature."""

    def __init__(self, problem: LinearProblem) -> None:
        source = problem.source
        drawn = source.sample(_GRAM_ROWS) if (source.n_rows or 0) > 2 * _GRAM_ROWS else None
        rows = source if drawn is None else drawn[0]
        share = 1.0 if drawn is None else len(drawn[1]) / float(source.n_rows or 1)
        gram = rows.reduce(_gram, np.add) / share
        self._unit = 1.0 / np.sqrt(np.where(gram.diagonal() > 0, gram.diagonal(), 1.0))
        with one_blas_thread():
            values, self._vectors = np.linalg.eigh(gram * np.outer(self._unit, self._unit))
        self._values = np.maximum(values, 0.0)
        self._quadratic = float(np.median(problem.objective.penalty.quadratic * np.square(self._unit)))

    def at(self, evaluation: Evaluation) -> Callable[[Float], Float]:
        """The inverse with the mean curvature of this point."""
        assert evaluation.total_curvature is not None
        values, vectors = np.linalg.eigh(evaluation.total_curvature / evaluation.total)
        denominator = np.multiply.outer(np.maximum(values, 0.0), self._values) + self._quadratic
        denominator = np.maximum(denominator, 1e-10 * denominator.max())

        def apply(v: Float) -> Float:
            turned = vectors.T @ ((v * self._unit) @ self._vectors)
            return (vectors @ (turned / denominator)) @ self._vectors.T * self._unit

        return apply


def _gram(block: Block) -> Float:
    total = np.zeros((block.shape[1], block.shape[1]))
    for piece in block.pieces(1 << 20):
        counted = piece.counted()
        total += counted.gram(counted.weights)
    return total


class _Diagonal:
    """The inverse of the diagonal, every row with the mean curvature and columns centred beside a free intercept."""

    def __init__(self, problem: LinearProblem) -> None:
        source, self._quadratic = problem.source, problem.objective.penalty.quadratic
        self.squares, self.centre = column_squares(source), np.zeros(0)
        self._spread = self.squares
        if problem.objective.free_intercept:
            sums = source.reduce(_column_sums, np.add)
            self.centre = sums[:-1] / sums[-1]
            self._spread = np.append(np.maximum(self.squares[:-1] - sums[:-1] * self.centre, 0.0), sums[-1])

    def at(self, evaluation: Evaluation) -> Callable[[Float], Float]:
        """The inverse with the mean curvature of this point."""
        assert evaluation.total_curvature is not None
        mean, centre = evaluation.total_curvature.diagonal()[:, None] / evaluation.total, self.centre
        diagonal = np.maximum(mean * self._spread + self._quadratic, np.finfo(np.float64).tiny)
        if not len(centre):
            return lambda v: v / diagonal

        def apply(v: Float) -> Float:
            moved = v.copy()
            moved[:, :-1] -= np.multiply.outer(v[:, -1], centre)
            moved /= diagonal
            moved[:, -1] -= moved[:, :-1] @ centre
            return moved

        return apply


def _column_sums(block: Block) -> Float:
    counted = block.counted()
    return counted.rmatvec(counted.row_weights)


def _solve(
    evaluation: Evaluation,
    precondition: Callable[[Float], Float],
    cost: Callable[[Float], float],
    target: float,
) -> Float:
    """Conjugate gradients on H d = −g, down to what the tolerance or the forcing term asks for."""
    assert evaluation.times is not None
    gradient = evaluation.gradient
    step, residual = np.zeros_like(gradient), -gradient
    white = precondition(residual)
    direction, energy = white.copy(), float((residual * white).sum())
    first = energy
    for _ in range(_MOST_PRODUCTS):
        product = evaluation.times(direction)
        with np.errstate(over="ignore", invalid="ignore"):  # columns of extreme size: what there is so far must do
            curvature = float((direction * product).sum())
        if not 0 < curvature < np.inf:
            return step if step.any() else direction
        length = energy / curvature
        step = step + length * direction
        residual = residual - length * product
        white = precondition(residual)
        fresh = float((residual * white).sum())
        # No more is needed than a gradient whose bound is below the target, or than the quadratic model is good for.
        bound = cost(residual)
        # A step that is below the target is the last one, where exactness can make it one.
        last = first <= target and np.isfinite(bound)
        if bound <= 0.25 * target or (fresh <= _FORCING * first and not last):
            break
        direction = white + (fresh / energy) * direction
        energy = fresh
    return step


NEWTON_CG = Method("newton-cg", frozenset({"gradient", "products", "smooth"}), _init, _step, _bound)
