"""Newton's method for a logistic regression with few rows and columns: all of it in a few products of matrices.

    θ ← θ − t H⁻¹g,      H = Aᵀ diag(sh) A + diag q,      A = [X, 1]

The same steps as in newton.py, of which one costs there what ten cost here: no pass is shared out, no curvature is measured for
the proof, which is the closed form of rows.py. H is of single precision where its factor shows that this will do: it turns a
step a little, and neither F, the gradient nor the gap depend on it. Where rounding stands in the way of a step or of the proof
the method gives up, and another goes on from its point.

**Complexity** O(np² + p³) per step. **Passes over the data** one per step, two for the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from separatrix.data.block import Float
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.rounding import EPS
from separatrix.result import Status
from separatrix.solvers.at_hand.rows import Losses, RowsAtHand, proof
from separatrix.solvers.bounds import Bound, least_bound
from separatrix.solvers.method import Budget, Method, Start, State

_HALVINGS = 40
# A point whose gap is below this share of the target needs no further step.
_FAR_BELOW = 1e-3
_LAST_DIGITS = 1e-7
# Rows so short that nothing is vectorised along them are laid column by column, and half a Hessian costs more than all of it.
_NARROW = 10
# Entries of A from which on a Hessian in single precision is worth a try; it does while no column is so nearly a combination of
# those before it, as the square of a pivot by the diagonal.
_IN_SINGLE, _FIRM = 1 << 14, 1e-3


@dataclass(frozen=True)
class _Columns:
    """Aᵀ = [X, 1]ᵀ, q with a 0 for the intercept, and Σ s x_j²/q_j over all penalised columns."""

    rows: RowsAtHand
    transposed: Float
    quadratic: Float
    held: int
    size: float
    single: NDArray[np.float32] | None
    """Aᵀ in single precision, where that is worth a try."""

    @classmethod
    def of(cls, problem: LinearProblem) -> _Columns:
        rows = RowsAtHand.of(problem)
        transposed = rows.block.dense().T
        if len(transposed) <= _NARROW:
            transposed = np.ascontiguousarray(transposed)
        quadratic, held = problem.objective.penalty.quadratic[0], len(problem.scale)
        scaled = transposed if rows.weights is None else transposed * rows.weights
        size = float((np.einsum("ij,ij->i", scaled, transposed)[:held] / quadratic[:held]).sum())
        worth = transposed.size >= _IN_SINGLE and len(transposed) > _NARROW
        with np.errstate(over="ignore", under="ignore"):  # a factor of that is refused
            single = transposed.astype(np.float32) if worth else None
        return cls(rows, transposed, quadratic, held, size, single)

    def scores(self, theta: Float) -> Float:
        scores = theta @ self.transposed
        return scores if self.rows.offset is None else scores + self.rows.offset


@dataclass(frozen=True)
class SmallState(State):
    """The derivatives at the point, and the last factor of a Hessian."""

    columns: _Columns
    at: Losses
    border: Float
    """(p,) Σ s h x."""
    factor: Any = None


def _state(problem: LinearProblem, columns: _Columns, theta: Float, factor: Any = None) -> SmallState:
    problem.source.count_pass()
    with np.errstate(invalid="ignore", over="ignore"):  # found below, and reported by column
        at = columns.rows.losses(columns.scores(theta))
        sums, pull = np.stack([at.slopes, at.bends]) @ columns.transposed.T, columns.quadratic * theta
        gradient = sums[0] + pull
        value = at.value + 0.5 * float(pull @ theta)
    problem.source.check_finite(np.asarray(value), gradient)
    evaluation = Evaluation(value, at.value, gradient[None, :], at.residual, columns.rows.total, steepest=at.steepest)
    return SmallState(theta[None, :], evaluation, columns, at, sums[1], factor)


def _init(problem: LinearProblem, start: Start, budget: Budget) -> SmallState:
    return _state(problem, _Columns.of(problem), start.theta[0].copy())


def _bound(problem: LinearProblem, state: SmallState, budget: Budget) -> SmallState:
    return replace(state, bound=least_bound(state.trivial, _gap(state)))


def _gap(state: SmallState) -> Bound:
    columns, gradient = state.columns, state.evaluation.gradient[0]
    held = columns.held
    border = state.border[:held] if held < len(gradient) else None
    with np.errstate(over="ignore"):
        return proof(
            columns.rows, state.at, state.value, gradient[:held], border, columns.quadratic[:held], columns.size
        )


def _factor(state: SmallState) -> Float | None:
    """Cholesky's factor of the Hessian at the point; ``None`` where rounding leaves none."""
    columns = state.columns
    if len(columns.transposed) <= _NARROW:
        hessian = (columns.transposed * state.at.bends) @ columns.transposed.T
    else:
        scaled = columns.transposed * np.sqrt(state.at.bends)
        hessian = scaled @ scaled.T
    hessian.flat[:: len(hessian) + 1] += columns.quadratic
    factor, failed = lapack.dpotrf(hessian.T, lower=1, clean=0, overwrite_a=1)
    return None if failed else factor


def _single_factor(state: SmallState) -> NDArray[np.float32] | None:
    """The same in single precision; ``None`` also where it would have too few digits for a step."""
    columns = state.columns
    assert columns.single is not None
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = columns.single * np.sqrt(state.at.bends).astype(np.float32)
        hessian = scaled @ scaled.T
        hessian.flat[:: len(hessian) + 1] += columns.quadratic
    diagonal = hessian.diagonal().copy()
    factor, failed = lapack.spotrf(hessian.T, lower=1, clean=0, overwrite_a=1)
    firm = not failed and bool((np.square(factor.diagonal()) >= _FIRM * diagonal).all())
    return factor if firm else None


def _solved(factor: Any, gradient: Float) -> Float:
    solve = lapack.spotrs if factor.dtype == np.float32 else lapack.dpotrs
    return np.asarray(solve(factor, gradient, lower=1)[0], dtype=np.float64)


def _step(problem: LinearProblem, state: SmallState, budget: Budget) -> SmallState:
    columns = state.columns
    factor: Any = None if columns.single is None else _single_factor(state)
    if factor is None:
        columns, factor = replace(columns, single=None), _factor(state)
    if factor is None:
        return replace(state, verdict=Status.UNPROVEN)
    step = -_solved(factor, state.evaluation.gradient[0])
    promise = float(state.evaluation.gradient[0] @ step)
    t = 1.0
    for _ in range(_HALVINGS):
        moved = _state(problem, columns, state.theta[0] + t * step, factor)
        if moved.value <= state.value + 1e-4 * t * promise + 4.0 * EPS * abs(state.value):
            if (
                moved.value >= state.value and not _gap(moved).gap < 0.5 * _gap(state).gap
            ):  # rounding is all that is left
                break
            return moved
        t *= 0.5
    if columns.single is not None:
        return _step(problem, replace(state, columns=replace(columns, single=None)), budget)
    return replace(state, verdict=Status.UNPROVEN)


def _polish(problem: LinearProblem, state: SmallState, budget: Budget) -> SmallState:
    """A last step with the last factor: it costs little, and removes most of what is left of the error.

    Where the last digits are asked for it is a full step, which squares the error.
    """
    asked = budget.tol <= _LAST_DIGITS
    factor = _factor(state) if asked else state.factor
    if factor is None or (not asked and state.bound.gap <= _FAR_BELOW * budget.target):
        return state
    gradient = state.evaluation.gradient[0]
    step = -_solved(factor, gradient)
    moved = _bound(problem, _state(problem, state.columns, state.theta[0] + step, factor), budget)
    if not asked:
        return moved if moved.bound.gap < state.bound.gap else state
    # The bound may be all rounding already, while the gradient still falls.
    left = moved.evaluation.gradient[0]
    nearer = float(left @ _solved(factor, left)) < -0.5 * float(gradient @ step)
    return moved if nearer and moved.bound.gap <= budget.target else state


SMALL_NEWTON = Method(
    "newton", frozenset({"gradient", "hessian", "smooth", "held"}), _init, _step, _bound, polish=_polish
)
