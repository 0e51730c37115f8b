"""Newton's method with conjugate gradients for a logistic regression on few sparse rows: compiled, many steps in a call.

    H̃v = −g̃,    g̃ = g − βk/Σsh,     Δb = −(β + kᵀv)/Σsh             b eliminated, as rows.py has g, k and β

Columns without an entry have coefficients of 0 and are left out until the end. g̃ is just what the proof of rows.py has to bring
to zero, so that steps which lower it also prove. The preconditioner is the diagonal of H̃. newton_cg.py does the same in
passes that are shared out, which pay for themselves where the entries are many.

Fewer rows than columns that share few of them are nearly solved one by one: without an intercept the first steps are sweeps of
dual coordinate ascent (see kernels/dual_logistic.py), as long as each lowers the gap to a fraction.

**Complexity** O(nnz + d) per product. **Passes over the data** one per product and one per step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.solvers.at_hand.rows import WITHIN, RowsAtHand, SummedLosses, proof
from separatrix.solvers.bounds import least_bound, nowhere_negative
from separatrix.solvers.method import Budget, Method, Start, State

# Where a dual variable begins as a share of its weight.
_FIRST = 1e-3
# Entries read in one call, during which no Ctrl-C is heard: about a tenth of a second. A step reads each some twenty times.
_AT_ONCE, _READ = 100_000_000, 20
_NOTHING = np.empty(0)


@dataclass(frozen=True)
class _Sparse:
    """The three arrays of X without its empty columns, (d,) which those are that it has, and q."""

    rows: RowsAtHand
    arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    columns: NDArray[np.intp]
    ones: bool
    quadratic: Float

    @classmethod
    def of(cls, problem: LinearProblem) -> _Sparse:
        from separatrix.kernels.sparse.newton import mark  # numba takes a while to import

        rows = RowsAtHand.of(problem)
        stored = rows.block.sparse_rows()
        assert stored is not None, "the rows are not sparse"
        (data, indices, indptr), ones = stored
        seen = np.zeros(len(problem.scale), dtype=bool)
        mark(indices, seen)
        columns = np.flatnonzero(seen)
        if len(columns) < len(seen):
            place = np.cumsum(seen, dtype=indices.dtype) - indices.dtype.type(1)
            indices = place[indices]
        quadratic = problem.objective.penalty.quadratic[0, columns]
        return cls(rows, (data, indices, indptr), columns, ones, quadratic)


@dataclass(frozen=True)
class SparseState(State):
    """At least Σ_ij s x_ij²/q_j; g̃ᵀD⁻¹g̃ where the last step began."""

    sparse: _Sparse
    size: float
    energy: float


def _or_empty(values: Float | None) -> Float:
    return _NOTHING if values is None else values


def _moved(
    problem: LinearProblem,
    sparse: _Sparse,
    theta: Float,
    budget: Budget,
    energy: float = np.inf,
    alpha: Float = _NOTHING,
    *,
    known: bool,
) -> SparseState:
    """Where the next steps lead from θ, which is changed; the trace has θ itself already where it is `known`."""
    from separatrix.kernels.sparse.steps import sparse_steps

    rows, objective = sparse.rows, problem.objective
    at_once = 1 + _AT_ONCE // (_READ * (1 + len(sparse.arrays[0]) + len(theta)))
    gradient, border = np.empty(len(theta)), np.empty(len(sparse.quadratic))
    trail = np.empty((1 + max(0, min(budget.left, at_once)), 2))
    value, sums, size, energy, taken, passes, stuck = sparse_steps(
        *sparse.arrays,
        rows.signs,
        _or_empty(rows.weights),
        _or_empty(rows.offset),
        sparse.ones,
        rows.total,
        sparse.quadratic,
        WITHIN * budget.tol,
        objective.unit,
        energy,
        alpha,
        theta,
        gradient,
        border,
        trail,
    )
    for _ in range(passes):
        problem.source.count_pass()
    problem.source.check_finite(np.asarray(value), gradient)
    loss, residual, steepest, bend = sums
    evaluation = Evaluation(value, loss, gradient[None, :], residual, rows.total, steepest=steepest)
    at = SummedLosses(loss, residual, steepest, float(gradient[-1]), bend)
    beside = border if sparse.ones else None
    with np.errstate(over="ignore"):
        gap = proof(rows, at, value, gradient[: len(border)], beside, sparse.quadratic, size)
    bound, verdict = least_bound(nowhere_negative(value), gap), Status.UNPROVEN if stuck else None
    passed = tuple((value, gap) for value, gap in trail[int(known) : taken].tolist())
    return SparseState(
        theta[None, :], evaluation, sparse, size, energy, bound=bound, taken=taken, verdict=verdict, passed=passed
    )


def _init(problem: LinearProblem, start: Start, budget: Budget) -> SparseState:
    sparse = _Sparse.of(problem)
    at = np.append(sparse.columns, len(problem.scale)) if sparse.ones else sparse.columns
    alone = not sparse.ones and len(sparse.rows.signs) < len(sparse.columns) and not start.theta.any()
    alpha = _FIRST * sparse.rows.block.row_weights if alone else _NOTHING
    return _moved(problem, sparse, start.theta[0, at], budget, alpha=alpha, known=False)


def _bound(problem: LinearProblem, state: SparseState, budget: Budget) -> SparseState:
    return state  # every point comes with its own


def _step(problem: LinearProblem, state: SparseState, budget: Budget) -> SparseState:
    return _moved(problem, state.sparse, state.theta[0].copy(), budget, state.energy, known=True)


def _settle(problem: LinearProblem, state: SparseState) -> State:
    """The point with a coefficient of 0 for every empty column."""
    sparse, (_, p) = state.sparse, problem.shape
    at = np.append(sparse.columns, p - 1) if sparse.ones else sparse.columns
    theta, gradient = np.zeros((1, p)), np.zeros((1, p))
    theta[0, at], gradient[0, at] = state.theta[0], state.evaluation.gradient[0]
    return State(theta, replace(state.evaluation, gradient=gradient), bound=state.bound)


SPARSE_NEWTON = Method(
    "newton-cg", frozenset({"gradient", "products", "smooth", "held"}), _init, _step, _bound, settle=_settle
)
