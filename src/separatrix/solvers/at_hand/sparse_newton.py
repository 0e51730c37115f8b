"""Newton's method with conjugate gradients for a logistic regression on few sparse rows: compiled, a call for every step.

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
from separatrix.objectives.rounding import EPS
from separatrix.result import Status
from separatrix.solvers.at_hand.rows import Losses, RowsAtHand, proof
from separatrix.solvers.bounds import Bound, least_bound
from separatrix.solvers.method import Budget, Method, Start, State

_HALVINGS, _MOST_PRODUCTS = 40, 200
# The share of gᵀD⁻¹g that a step may leave: little where the one before left little, since then the model is good.
_LEAST_LEFT, _MOST_LEFT = 1e-4, 0.1
# A gradient is brought to this share of what the proof asks for: the model is not the objective.
_BELOW = 0.1
# Sweeps per step, the share of the gap that they may leave, and where a dual variable begins as a share of its weight.
_SWEEPS, _GAIN, _FIRST = 3, 0.3, 1e-3


@dataclass(frozen=True)
class _Sparse:
    """The three arrays of X without its empty columns, (d,) which those are that it has, q, and Σ_ij s x_ij²/q_j."""

    rows: RowsAtHand
    arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    columns: NDArray[np.intp]
    ones: bool
    quadratic: Float
    size: float

    @classmethod
    def of(cls, problem: LinearProblem) -> _Sparse:
        from separatrix.kernels.sparse_newton import weighted_size  # numba takes a while to import

        rows = RowsAtHand.of(problem)
        stored = rows.block.sparse_rows()
        assert stored is not None, "the rows are not sparse"
        (data, indices, indptr), ones = stored
        seen = np.zeros(len(problem.scale), dtype=bool)
        seen[indices] = True
        columns = np.flatnonzero(seen)
        if len(columns) < len(seen):
            place = np.cumsum(seen, dtype=indices.dtype) - indices.dtype.type(1)
            indices = place[indices]
        quadratic = problem.objective.penalty.quadratic[0, columns]
        size = weighted_size(data, indices, indptr, _or_empty(rows.weights), quadratic)
        return cls(rows, (data, indices, indptr), columns, ones, quadratic, float(size))


@dataclass(frozen=True)
class SparseState(State):
    """The derivatives at the point; (d,) Σ s h x and the diagonal of H̃; g̃ᵀD⁻¹g̃ where the last step began."""

    sparse: _Sparse
    at: Losses
    border: Float
    diagonal: Float
    energy: float = np.inf
    alpha: Float | None = None
    """(n,) dual variables, while sweeps over them are worth their time."""
    swept: int = 0
    """Steps of sweeps so far: every one has orders of its own."""


def _or_empty(values: Float | None) -> Float:
    return np.empty(0) if values is None else values


def _state(problem: LinearProblem, sparse: _Sparse, theta: Float, energy: float = np.inf) -> SparseState:
    from separatrix.kernels.sparse_newton import sparse_derivatives

    problem.source.count_pass()
    rows, d = sparse.rows, len(sparse.quadratic)
    slopes, bends, sums = np.empty(rows.block.n), np.empty(rows.block.n), np.zeros((3, d))
    loss, residual, steepest = sparse_derivatives(
        *sparse.arrays,
        rows.signs,
        _or_empty(rows.weights),
        _or_empty(rows.offset),
        theta,
        theta[d] if sparse.ones else 0.0,
        slopes,
        bends,
        sums,
    )
    at = Losses(loss, slopes, bends, residual, steepest)
    pull = sparse.quadratic * theta[:d]
    gradient, border = np.empty(len(theta)), sums[1]
    np.add(sums[0], pull, out=gradient[:d])
    diagonal = np.add(sums[2], sparse.quadratic, out=sums[2])
    if sparse.ones:
        gradient[d], total = slopes.sum(), bends.sum()
        diagonal -= np.square(border) / total if total > 0 else 0.0
        np.maximum(diagonal, sparse.quadratic, out=diagonal)
    value = loss + 0.5 * float(pull @ theta[:d])
    problem.source.check_finite(np.asarray(value), gradient)
    evaluation = Evaluation(value, loss, gradient[None, :], residual, rows.total, steepest=steepest)
    return SparseState(theta[None, :], evaluation, sparse, at, border, diagonal, energy)


def _init(problem: LinearProblem, start: Start, budget: Budget) -> SparseState:
    sparse = _Sparse.of(problem)
    at = np.append(sparse.columns, len(problem.scale)) if sparse.ones else sparse.columns
    state = _state(problem, sparse, start.theta[0, at])
    alone = not sparse.ones and len(sparse.rows.signs) < len(sparse.columns) and not start.theta.any()
    return replace(state, alpha=_FIRST * sparse.rows.block.row_weights) if alone else state


def _bound(problem: LinearProblem, state: SparseState, budget: Budget) -> SparseState:
    return replace(state, bound=least_bound(state.trivial, _gap(state)))


def _gap(state: SparseState) -> Bound:
    sparse, d = state.sparse, len(state.sparse.quadratic)
    border = state.border if sparse.ones else None
    with np.errstate(over="ignore"):
        gradient = state.evaluation.gradient[0, :d]
        return proof(sparse.rows, state.at, state.value, gradient, border, sparse.quadratic, sparse.size)


def _sweep(problem: LinearProblem, state: SparseState, alpha: Float) -> SparseState | None:
    """The point of a few sweeps over the dual variables, which change in place; ``None`` where that gains too little."""
    from separatrix.kernels.dual_logistic import sweep
    from separatrix.kernels.sparse_rows import add_transposed

    rows, inverse = state.sparse.rows, 1.0 / state.sparse.quadratic
    (data, indices, indptr), signs = state.sparse.arrays, rows.signs
    weights, scale = rows.block.row_weights, np.append(inverse, 0.0)
    theta, shift = np.zeros(len(inverse) + 1), np.zeros(len(signs)) if rows.offset is None else rows.offset
    add_transposed(data, indices, indptr, signs * alpha, theta[:-1])
    theta[:-1] *= inverse
    generator = np.random.default_rng(state.swept)
    for _ in range(_SWEEPS):
        problem.source.count_pass()
        order = generator.permutation(len(signs))
        sweep(data[None, :], indices, indptr, signs, weights, shift, order, scale, alpha, theta)
    moved = replace(_state(problem, state.sparse, theta[:-1]), alpha=alpha, swept=state.swept + 1)
    return moved if _gap(moved).gap <= _GAIN * min(_gap(state).gap, state.value) else None


def _step(problem: LinearProblem, state: SparseState, budget: Budget) -> SparseState:
    if state.alpha is not None:
        moved = _sweep(problem, state, state.alpha.copy())
        if moved is not None:
            return moved
    return _newton_step(problem, replace(state, alpha=None), budget)


def _newton_step(problem: LinearProblem, state: SparseState, budget: Budget) -> SparseState:
    from separatrix.kernels.sparse_newton import conjugate_gradients

    sparse, gradient = state.sparse, state.evaluation.gradient[0]
    d, total = len(sparse.quadratic), float(state.at.bends.sum())
    if not total > 0:
        return replace(state, verdict=Status.UNPROVEN)
    reduced = gradient[:d] - (gradient[d] / total) * state.border if sparse.ones else gradient
    energy = float((np.square(reduced) / state.diagonal).sum())
    # Where weights differ by 10¹⁶, the step before may have begun where g̃ was exactly 0 and moved the intercept alone.
    left = min(max(energy / state.energy, _LEAST_LEFT), _MOST_LEFT) if state.energy > 0 else _MOST_LEFT
    step = np.empty(len(gradient))
    products = conjugate_gradients(
        *sparse.arrays,
        state.at.bends,
        sparse.quadratic,
        reduced,
        state.border,
        state.diagonal,
        sparse.ones,
        left,
        _BELOW * budget.target,
        _MOST_PRODUCTS,
        step[:d],
    )
    for _ in range(products):
        problem.source.count_pass()
    if sparse.ones:
        step[d] = -(gradient[d] + float(state.border @ step[:d])) / total
    promise, t = float(gradient @ step), 1.0
    for _ in range(_HALVINGS):
        moved = _state(problem, sparse, state.theta[0] + t * step, energy)
        if moved.value <= state.value + 1e-4 * t * promise + 4.0 * EPS * abs(state.value):
            if (
                moved.value >= state.value and not _gap(moved).gap < 0.5 * _gap(state).gap
            ):  # rounding is all that is left
                break
            return moved
        t *= 0.5
    return replace(state, verdict=Status.UNPROVEN)


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
