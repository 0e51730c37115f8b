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
from separatrix.solvers.bounds import least_bound, nowhere_negative
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
    """Aᵀ = [X, 1]ᵀ, and q with a 0 for the intercept: what there is to compute with where no loop is compiled."""

    rows: RowsAtHand
    transposed: Float
    quadratic: Float
    held: int
    single: NDArray[np.float32] | None
    """Aᵀ in single precision, where that is worth a try."""

    @classmethod
    def of(cls, problem: LinearProblem) -> _Columns:
        rows = RowsAtHand.of(problem)
        transposed = rows.block.dense().T
        if len(transposed) <= _NARROW:
            transposed = np.ascontiguousarray(transposed)
        quadratic, held = problem.objective.penalty.quadratic[0], len(problem.scale)
        worth = transposed.size >= _IN_SINGLE and len(transposed) > _NARROW
        with np.errstate(over="ignore", under="ignore"):  # a factor of that is refused
            single = transposed.astype(np.float32) if worth else None
        return cls(rows, transposed, quadratic, held, single)

    def size(self) -> float:
        """Σ_ij s x_ij²/q_j over all penalised columns."""
        scaled = self.transposed if self.rows.weights is None else self.transposed * self.rows.weights
        squares = np.einsum("ij,ij->i", scaled, self.transposed)[: self.held]
        return float((squares / self.quadratic[: self.held]).sum())

    def look(self, theta: Float) -> tuple[Losses, Float, Float]:
        """The losses at θ; (p,) Σ s a x and Σ s h x."""
        scores = theta @ self.transposed
        at = self.rows.losses(scores if self.rows.offset is None else scores + self.rows.offset)
        gradient, border = np.stack([at.slopes, at.bends]) @ self.transposed.T
        return at, gradient, border

    def hessian(self, bends: Float) -> Float:
        """Σ s h xxᵀ."""
        if len(self.transposed) <= _NARROW:
            return np.asarray((self.transposed * bends) @ self.transposed.T)
        scaled = self.transposed * np.sqrt(bends)
        return np.asarray(scaled @ scaled.T)


@dataclass(frozen=True)
class SmallState(State):
    """The derivatives at the point, and the last factor of a Hessian."""

    columns: _Columns
    at: Losses
    size: float
    """At least Σ_ij s x_ij²/q_j."""
    factor: Any = None


def _state(
    problem: LinearProblem,
    columns: _Columns,
    theta: Float,
    size: float,
    factor: Any = None,
) -> SmallState:
    problem.source.count_pass()
    with np.errstate(invalid="ignore", over="ignore"):  # found below, and reported by column
        at, slopes, border = columns.look(theta)
        pull = columns.quadratic * theta
        gradient = slopes + pull
        value = at.value + 0.5 * float(pull @ theta)
    problem.source.check_finite(np.asarray(value), gradient)
    evaluation = Evaluation(value, at.value, gradient[None, :], at.residual, columns.rows.total, steepest=at.steepest)
    held = columns.held
    beside = border[:held] if held < len(gradient) else None
    with np.errstate(over="ignore"):
        gap = proof(columns.rows, at, value, gradient[:held], beside, columns.quadratic[:held], size)
    bound = least_bound(nowhere_negative(value), gap)
    return SmallState(theta[None, :], evaluation, columns, at, size, factor, bound=bound)


def _init(problem: LinearProblem, start: Start, budget: Budget) -> SmallState:
    columns = _Columns.of(problem)
    with np.errstate(invalid="ignore", over="ignore"):
        size = columns.size()
    return _state(problem, columns, start.theta[0].copy(), size)


def _bound(problem: LinearProblem, state: SmallState, budget: Budget) -> SmallState:
    return state  # every point comes with its own


def _factor(state: SmallState) -> Float | None:
    """Cholesky's factor of the Hessian at the point; ``None`` where rounding leaves none."""
    columns = state.columns
    hessian = columns.hessian(state.at.bends)
    hessian[np.diag_indices(len(hessian))] += columns.quadratic
    factor, failed = lapack.dpotrf(hessian.T, lower=1, clean=0, overwrite_a=1)
    return None if failed else factor


def _single_factor(state: SmallState) -> NDArray[np.float32] | None:
    """The same in single precision; ``None`` also where it would have too few digits for a step."""
    columns, at = state.columns, state.at
    if columns.single is None:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = columns.single * np.sqrt(at.bends).astype(np.float32)
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
    factor: Any = _single_factor(state)
    if factor is None:
        columns, factor = _exact(columns), _factor(state)
    if factor is None:
        return replace(state, verdict=Status.UNPROVEN)
    step = -_solved(factor, state.evaluation.gradient[0])
    promise = float(state.evaluation.gradient[0] @ step)
    t = 1.0
    for _ in range(_HALVINGS):
        moved = _state(problem, columns, state.theta[0] + t * step, state.size, factor)
        if moved.value <= state.value + 1e-4 * t * promise + 4.0 * EPS * abs(state.value):
            if (
                moved.value >= state.value and not moved.bound.gap < 0.5 * state.bound.gap
            ):  # rounding is all that is left
                break
            return moved
        t *= 0.5
    if factor.dtype == np.float32:
        return _step(problem, replace(state, columns=_exact(columns)), budget)
    return replace(state, verdict=Status.UNPROVEN)


def _exact(columns: _Columns) -> _Columns:
    """The same without a copy in single precision."""
    return replace(columns, single=None)


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
    moved = _state(problem, state.columns, state.theta[0] + step, state.size, factor)
    if not asked:
        return moved if moved.bound.gap < state.bound.gap else state
    # The bound may be all rounding already, while the gradient still falls.
    left = moved.evaluation.gradient[0]
    nearer = float(left @ _solved(factor, left)) < -0.5 * float(gradient @ step)
    return moved if nearer and moved.bound.gap <= budget.target else state


SMALL_NEWTON = Method(
    "newton", frozenset({"gradient", "hessian", "smooth", "held"}), _init, _step, _bound, polish=_polish
)
