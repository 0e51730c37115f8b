"""Dual coordinate ascent until its primal point is certified (the sweeps are in dual/coordinate_ascent.py).

    θ₊ ≈ argmin F(θ) + ½(θ − θ_k)ᵀM(θ − θ_k)         by a few sweeps over the dual variables of this problem

Coordinates of α are slow where their curvature Q_ii = Σ_j x_ij²/q_j is large: columns in large units, correlated columns, a
weak penalty, and above all the intercept, which has none. With M = τ ∇²Σsℓ the rows of the proximal problem are seen in
coordinates in which Q_ii is the leverage of a row, whatever the units, and the intercept is a column like the others. With
many columns M would be too large: there it is ρ for the intercept alone, and the penalty must do for the rest.

Reference: Shalev-Shwartz and Zhang (2016), Math. Programming 155; Rockafellar (1976), SIAM J. Control 14.

**Complexity** O(np²) per sweep in turned coordinates, O(nnz) in the columns themselves. **Passes over the data** one per sweep,
two a proximal step, and those of the proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as sla

from separatrix.data.affine import Intercept
from separatrix.data.block import Float
from separatrix.dual.coordinate_ascent import DualAscent, ProximalCoordinates
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers.bounds import Bound, dual_gap, least_bound
from separatrix.solvers.curvature import Curvature
from separatrix.solvers.method import Budget, Method, Start, State
from separatrix.solvers.step_metric import HESSIAN_PARAMETERS, NEARLY

_TURNED_COLUMNS = min(1000, HESSIAN_PARAMETERS)
_SWEEPS = 5
# M as a share of the Hessian: the smaller, the longer the proximal steps and the more sweeps each of them takes.
_HELD = 0.1


@dataclass(frozen=True)
class DualState(State):
    """The dual variables, and in the columns themselves the last proximal point, which may not be the best one."""

    ascent: DualAscent
    turned: bool
    point: Float
    patience: int = _SWEEPS
    swept: bool = False


def _init(problem: LinearProblem, start: Start, budget: Budget) -> DualState:
    theta, turned = start.theta, start.theta.shape[1] <= _TURNED_COLUMNS
    ascent = DualAscent(problem.objective.offset, 0.5 if turned else 1e-3)
    evaluation = problem.evaluate(theta, 2) if turned else problem.evaluate(theta, keep=True)
    return DualState(theta, evaluation, ascent, turned, theta)


def _bound(problem: LinearProblem, state: DualState, budget: Budget) -> DualState:
    evaluation, bound = state.evaluation, least_bound(state.bound, state.trivial)
    if state.turned:
        assert evaluation.hessian is not None
        curvature = Curvature(evaluation.hessian.copy(), problem.shape)
        left = 0.5 * curvature.decrement(evaluation.gradient) ** 2
        return replace(state, bound=bound, nearly=left <= NEARLY * budget.target)
    if bound.gap > budget.target and state.swept:
        bound = least_bound(bound, dual_gap(problem, state.theta, evaluation, budget.target))
    return replace(state, bound=bound)


def _step(problem: LinearProblem, state: DualState, budget: Budget) -> DualState:
    return _turned_step(problem, state, budget) if state.turned else _plain_step(problem, state, budget)


def _turned_step(problem: LinearProblem, state: DualState, budget: Budget) -> DualState:
    """Sweeps in turned coordinates until their point lowers F."""
    ascent, source, sweeps, patience = state.ascent, problem.source, 0, state.patience
    ascent.begin(source, _whitened(problem, state.evaluation, state.theta))
    assert ascent.coordinates.turn is not None
    while sweeps < budget.left:
        for _ in range(min(patience, budget.left - sweeps)):
            ascent.sweep(source)
            sweeps += 1
        moved = (ascent.coordinates.turn @ ascent.u[:-1])[None, :]
        new = problem.evaluate(moved, 2)
        if new.value < state.value:
            return replace(state, theta=moved, evaluation=new, bound=Bound(np.inf), patience=patience, taken=sweeps)
        patience = 2 * patience  # not near enough to the proximal point for F to fall
    return replace(state, patience=patience, taken=sweeps)


def _whitened(problem: LinearProblem, evaluation: Evaluation, theta: Float) -> ProximalCoordinates:
    """ProximalCoordinates in which the penalty and M together are the identity, centred for a step from θ."""
    assert evaluation.hessian is not None
    quadratic = problem.objective.penalty.quadratic[0]
    held = _HELD * (evaluation.hessian - np.diag(quadratic))
    # Columns may depend on each other: a little more on the diagonal, and any M will do.
    held[np.diag_indices(len(held))] += 1e-10 * (held.diagonal() + quadratic)
    both = held + np.diag(quadratic)
    unit = 1.0 / np.sqrt(np.where(both.diagonal() > 0, both.diagonal(), 1.0))
    equal = both * np.outer(unit, unit)
    equal[np.diag_indices(len(equal))] = 1.0
    factor = sla.cholesky(equal, lower=True, check_finite=False)
    turn = unit[:, None] * sla.solve_triangular(factor, np.eye(len(unit)), lower=True, trans="T", check_finite=False)
    return ProximalCoordinates(np.append(np.ones(len(unit)), 0.0), np.append(turn.T @ (held @ theta[0]), 0.0), turn)


def _plain_step(problem: LinearProblem, state: DualState, budget: Budget) -> DualState:
    """A few sweeps over the columns themselves; the intercept is held near where it was."""
    ascent, source, intercept = state.ascent, problem.source, problem.objective.free_intercept
    d = state.theta.shape[1] - intercept
    rows = source.source if isinstance(source, Intercept) and intercept else source  # the sweeps keep it apart
    inverse = np.append(1.0 / problem.objective.penalty.quadratic[0, :d], 0.0)
    centre = np.zeros(d + 1)
    if intercept:
        curvature = problem.evaluate(state.point, keep=True).total_curvature
        assert curvature is not None
        inverse[d], centre[d] = 1.0 / (_HELD * float(curvature[0, 0])), state.point[0, d]
    ascent.begin(rows, ProximalCoordinates(inverse, centre))
    sweeps = min(_SWEEPS, budget.left)
    for _ in range(sweeps):
        ascent.sweep(rows)
    point = (ascent.u if intercept else ascent.u[:d])[None, :].copy()
    now = problem.evaluate(point)
    if now.value <= state.value:
        state = replace(state, theta=point, evaluation=now, bound=Bound(np.inf))
    return replace(state, point=point, taken=sweeps, swept=True)


DUAL = Method("dual", frozenset({"dual", "smooth"}), _init, _step, _bound)
