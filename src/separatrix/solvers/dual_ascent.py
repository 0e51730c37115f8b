"""Dual coordinate ascent until its primal point is certified (the sweeps are in dual/coordinate_ascent.py).

    θ₊ ≈ argmin F(θ) + ½(θ − θ_k)ᵀM(θ − θ_k)         by a few sweeps over the dual variables of this problem

Coordinates of α are slow where their curvature Q_ii = Σ_j x_ij²/q_j is large: columns in large units, correlated columns, a
weak penalty, and above all the intercept, which has none. With M = τ ∇²Σsℓ the rows of the proximal problem are seen in
coordinates in which Q_ii is the leverage of a row, whatever the units, and the intercept is a column like the others. With
many columns M would be too large: there it is ρ for the intercept alone, and the penalty must do for the rest.

Reference: Shalev-Shwartz and Zhang (2016), Math. Programming 155; Rockafellar (1976), SIAM J. Control 14.

**Complexity** O(np²) a sweep in turned coordinates, O(nnz) in the columns themselves. **Passes over the data** one a sweep,
two a proximal step, and those of the proof.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla

from separatrix.data.affine import Intercept
from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.dual.coordinate_ascent import DualAscent, ProximalCoordinates
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.result import Certificate, Status
from separatrix.settings import one_blas_thread
from separatrix.solvers.bounds import Bound, least_bound
from separatrix.solvers.curvature import Curvature
from separatrix.solvers.finish import HESSIAN_PARAMETERS, NEARLY, finish
from separatrix.solvers.gradient import proof
from separatrix.solvers.state import Callback, Solution, Trace

_TURNED_COLUMNS = min(1000, HESSIAN_PARAMETERS)
_SWEEPS = 5
# M as a share of the Hessian: the smaller, the longer the proximal steps and the more sweeps each of them takes.
_HELD = 0.1


def minimise_dual(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    *,
    tol: float,
    max_iter: int,
    intercept: bool,
    callback: Callback | None = None,
) -> Solution:
    """Sweep until the proven gap is at most `tol` times max(1, |F|); `max_iter` counts sweeps."""
    trace = Trace(callback)
    if theta.shape[1] <= _TURNED_COLUMNS:
        with one_blas_thread():
            return _turned(objective, source, theta, tol, max_iter, intercept, trace)
    return _plain(objective, source, theta, tol, max_iter, intercept, trace)


def _turned(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    tol: float,
    max_iter: int,
    intercept: bool,
    trace: Trace,
) -> Solution:
    status, sweeps, patience = Status.MAX_ITER, 0, _SWEEPS
    ascent = DualAscent(objective.offset, 0.5)
    evaluation = objective.evaluate(theta, source, 2)
    try:
        while True:
            trace.add(objective=evaluation.value, gap=evaluation.value, passes=source.passes)
            assert evaluation.hessian is not None
            curvature = Curvature(evaluation.hessian.copy(), (1, theta.shape[1]))
            left = 0.5 * curvature.decrement(evaluation.gradient) ** 2
            if left <= NEARLY * objective.target(tol, evaluation.value) and sweeps < max_iter:
                return finish(objective, source, theta, sweeps, trace, tol=tol, max_iter=max_iter, intercept=intercept)
            if sweeps >= max_iter:
                break
            ascent.begin(source, _whitened(objective, evaluation, theta))
            assert ascent.coordinates.turn is not None
            while sweeps < max_iter:
                for _ in range(min(patience, max_iter - sweeps)):
                    ascent.sweep(source)
                    sweeps += 1
                moved = (ascent.coordinates.turn @ ascent.u[:-1])[None, :]
                new = objective.evaluate(moved, source, 2)
                if new.value < evaluation.value:
                    theta, evaluation = moved, new
                    break
                patience = 2 * patience  # not near enough to the proximal point for F to fall
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return _stopped(theta, status, evaluation, Bound(evaluation.value), sweeps, trace)


def _whitened(objective: LinearObjective, evaluation: Evaluation, theta: Float) -> ProximalCoordinates:
    """ProximalCoordinates in which the penalty and M together are the identity, centred for a step from θ."""
    assert evaluation.hessian is not None
    quadratic = objective.penalty.quadratic[0]
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


def _plain(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    tol: float,
    max_iter: int,
    intercept: bool,
    trace: Trace,
) -> Solution:
    status, sweeps = Status.MAX_ITER, 0
    d = theta.shape[1] - intercept
    rows = source.source if isinstance(source, Intercept) else source  # the sweeps keep the intercept apart
    ascent = DualAscent(objective.offset, 1e-3)
    inverse = np.append(1.0 / objective.penalty.quadratic[0, :d], 0.0)
    centre = np.zeros(d + 1)
    evaluation = objective.evaluate(theta, source, 1, keep=True)
    best, bound, point = theta, Bound(evaluation.value), theta
    try:
        while bound.gap > (target := objective.target(tol, evaluation.value)) and sweeps < max_iter:
            if intercept:
                curvature = objective.evaluate(point, source, 1, keep=True).total_curvature
                assert curvature is not None
                inverse[d], centre[d] = 1.0 / (_HELD * float(curvature[0, 0])), point[0, d]
            ascent.begin(rows, ProximalCoordinates(inverse, centre))
            for _ in range(min(_SWEEPS, max_iter - sweeps)):
                ascent.sweep(rows)
                sweeps += 1
            point = (ascent.u if intercept else ascent.u[:d])[None, :].copy()
            now = objective.evaluate(point, source, 1)
            if now.value <= evaluation.value:
                best, evaluation = point, now
            found = proof(objective, source, best, evaluation, intercept, target)
            bound = least_bound(Bound(evaluation.value), found)
            trace.add(objective=evaluation.value, gap=bound.gap, passes=source.passes)
        if bound.gap <= objective.target(tol, evaluation.value):
            status = Status.CONVERGED
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return _stopped(best, status, evaluation, bound, sweeps, trace)


def _stopped(theta: Float, status: Status, evaluation: Evaluation, bound: Bound, sweeps: int, trace: Trace) -> Solution:
    stationarity = float(np.abs(evaluation.gradient).max(initial=0.0))
    certificate = Certificate(bound.gap, evaluation.value, "dual point", stationarity=stationarity, kind=bound.kind)
    return Solution(theta, status, certificate, sweeps, trace.entries, evaluation.total, evaluation.steepest)
