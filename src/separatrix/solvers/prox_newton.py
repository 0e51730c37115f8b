"""Proximal Newton with working sets, for absolute values and bounds.

    Δ = argmin  gᵀΔ + ½ ΔᵀHΔ + P₁(θ + Δ)   over the columns W,      θ ← θ + tΔ

One evaluation gives F, the whole gradient, and H of the columns in W: those that are not zero, those nothing holds back,
and those that violate the optimality conditions most. The quadratic is minimised by coordinate descent and
factorisations (see quadratic.py). W doubles while violations are left, so a column that is never needed never costs more
than its entry of the gradient. The proof is a dual point (see bounds.py) or, with few columns, the Newton decrement of the
least subgradient (see curvature.py).

Reference: Lee, Sun, Saunders (2014), SIAM J. Optimization 24; Massias et al. (2018), ICML, for working sets.

**Complexity** O(nnz + n|W|²) per pass, O(|W|²) per sweep of coordinate descent.
**Passes over the data** one per step and one per proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.solvers.bounds import Bound, dual_gap, least_bound
from separatrix.solvers.curvature import Curvature, LargestRow, gap_bound, rounding, without_gauge
from separatrix.solvers.line_search import line_search
from separatrix.solvers.method import Budget, Method, Start, State
from separatrix.solvers.quadratic import minimise_quadratic

_FIRST, _FIRST_ACCURACY, _LEAST_ACCURACY = 100, 0.01, 1e-10
# Up to this many parameters all columns are in the working set, and ∇²F can prove what a dual point cannot.
_FEW = 400
# So many steps that promise less than this share of the tolerance, and the rest of the gap is not for steps to close.
_IN_VAIN, _NOTHING = 4, 1e-3
# A gap is hardly less than what a step is about to gain, and no proof below it.
_PROMISING = 2.0
# Hessians of more parameters than this are not formed.
LARGEST_WORKING_SET = 4000


@dataclass(frozen=True)
class ProxNewtonState(State):
    """The working set, the minimiser of the quadratic model over it, and how well such models are solved."""

    columns: NDArray[np.intp]
    largest: LargestRow | None = None
    moved: Float | None = None
    accuracy: float = _FIRST_ACCURACY
    vain: int = 0
    """Steps in a row that promised next to nothing."""
    idle: int = 0
    """Shortened steps in a row that lowered F by no more than its rounding."""

    def facts(self) -> dict[str, Any]:
        return {"working_set": len(self.columns), "nonzero": int((self.theta != 0).any(axis=0).sum())}


def _init(problem: LinearProblem, start: Start, budget: Budget) -> ProxNewtonState:
    penalty = problem.objective.penalty
    theta = np.clip(start.theta, penalty.low, penalty.high)
    columns = np.arange(theta.shape[1])
    if theta.size > _FEW:
        if start.loss_gradient is None:
            gradient = problem.evaluate(theta).gradient
        else:
            gradient = start.loss_gradient + penalty.gradient(theta)
        columns = _working_set(problem, theta, gradient, np.empty(0, dtype=np.intp), _FIRST)
    return ProxNewtonState(theta, problem.evaluate(theta, 2, columns=columns), columns)


def _bound(problem: LinearProblem, state: ProxNewtonState, budget: Budget) -> ProxNewtonState:
    target, accuracy = budget.target, state.accuracy
    moved, decrease = _minimise_model(problem, state, accuracy * target)
    bound = least_bound(state.bound, state.trivial)
    if decrease <= _PROMISING * target:  # else ∇²F proves nothing yet
        bound = least_bound(bound, _newton_bound(problem, state))
    if bound.gap > target and decrease <= target and not _outside(problem, state):
        bound = least_bound(bound, dual_gap(problem, state.theta, state.evaluation, target))
        # A dual point asks for a smaller residual than the model can have at this accuracy.
        accuracy = max(1e-4 * accuracy, _LEAST_ACCURACY)
    vain = state.vain + 1 if decrease <= _NOTHING * target else 0
    verdict = Status.UNPROVEN if vain > _IN_VAIN else Status.STALLED if state.idle > _IN_VAIN else None
    return replace(state, bound=bound, moved=moved, accuracy=accuracy, vain=vain, verdict=verdict)


def _metric(problem: LinearProblem, state: ProxNewtonState) -> Float | None:
    """In which the rows are measured for the Newton decrement; ``None`` where it is of no use or they are measured already."""
    if state.largest is not None or state.theta.size > _FEW or len(state.columns) < problem.shape[1]:
        return None
    assert state.evaluation.hessian is not None
    diagonal = state.evaluation.hessian.diagonal().reshape(problem.shape).min(axis=0)
    return 1.0 / diagonal if (diagonal > 0).all() else None


def _newton_bound(problem: LinearProblem, state: ProxNewtonState) -> Bound:
    """curvature.py's bound with the least subgradient r in place of g: P(θ+Δ) ≥ P(θ) + ξᵀΔ for every subgradient ξ."""
    concordance, hessian = problem.objective.loss.concordance, state.evaluation.hessian
    if state.largest is None or concordance is None or hessian is None:
        return Bound(np.inf)
    curvature = Curvature(without_gauge(hessian.copy(), problem.objective), problem.shape)
    if curvature.deficient or curvature.blank.any():
        return Bound(np.inf)
    evaluation, spread = state.evaluation, state.largest.spread(curvature)
    residual = problem.objective.penalty.residual(state.theta, evaluation.gradient)
    noise = rounding(spread, evaluation, curvature.diagonal_length(state.theta), problem.shape[1])
    gap = gap_bound(curvature.decrement(residual) + noise, concordance * spread)
    return Bound(gap, method="Newton decrement of the least subgradient")


def _working_set(
    problem: LinearProblem, theta: Float, gradient: Float, before: NDArray[np.intp], fresh: int
) -> NDArray[np.intp]:
    """Columns that are used, free or of the previous set, and the `fresh` worst violators."""
    penalty = problem.objective.penalty
    violation = np.abs(penalty.residual(theta, gradient)).max(axis=0)
    used = (theta != 0).any(axis=0) | penalty.free.any(axis=0)
    used[before] = True
    room = min(fresh, LARGEST_WORKING_SET // len(theta) - int(used.sum()))
    candidates = np.flatnonzero((violation > 0) & ~used)
    if room > 0 and len(candidates):
        worst = candidates[np.argsort(-violation[candidates], kind="stable")[:room]]
        used[worst] = True
    return np.flatnonzero(used)


def _outside(problem: LinearProblem, state: ProxNewtonState) -> bool:
    """Whether a column outside the working set violates the optimality conditions, beyond rounding."""
    violation = np.abs(problem.objective.penalty.residual(state.theta, state.evaluation.gradient))
    violation[:, state.columns] = 0.0
    return bool((violation > 1e-12 * np.abs(state.evaluation.gradient)).any())


def _minimise_model(problem: LinearProblem, state: ProxNewtonState, tol: float) -> tuple[Float, float]:
    """The minimiser of the quadratic model over the working set, and by how much it lowers the model."""
    hessian, gradient = state.evaluation.hessian, state.evaluation.gradient
    assert hessian is not None
    at, penalty = state.columns, problem.objective.penalty
    before, slope, absolute, low, high = (
        np.ascontiguousarray(a[:, at]).ravel()
        for a in (state.theta, gradient, penalty.absolute, penalty.low, penalty.high)
    )
    part, initial = before.copy(), slope.copy()
    minimise_quadratic(hessian, slope, part, absolute, low, high, tol)
    change = part - before
    # slope has become g + HΔ: ½(g + slope)ᵀΔ = gᵀΔ + ½ΔᵀHΔ
    model = 0.5 * float((initial + slope) @ change) + float((absolute * (np.abs(part) - np.abs(before))).sum())
    moved = state.theta.copy()
    moved[:, at] = part.reshape(len(moved), -1)
    return moved, -model


def _step(problem: LinearProblem, state: ProxNewtonState, budget: Budget) -> ProxNewtonState:
    """The step, halved until F falls; the next working set grows with what the last gradient showed."""
    before, penalty, moved = state.evaluation, problem.objective.penalty, state.moved
    assert moved is not None
    step = moved - state.theta
    # Directional derivative of F, absolute values included: what the step promises.
    promise = float((before.gradient * step).sum()) + float(
        (penalty.absolute * (np.abs(moved) - np.abs(state.theta))).sum()
    )
    columns = state.columns
    if moved.size > _FEW:
        kept = columns[(moved[:, columns] != 0).any(axis=0)]
        columns = _working_set(problem, moved, before.gradient, kept, max(_FIRST, len(kept)))
    metric = _metric(problem, state)
    same = np.array_equal(columns, state.columns)
    asked: dict[str, Any] = {"order": 2, "metric": metric, "columns": columns}
    found = line_search(problem, state.theta, step, before, moved=moved, promise=promise, stay=not same, **asked)
    if found is None:
        return replace(state, verdict=Status.STALLED)
    theta, t, evaluation = found
    largest = state.largest if metric is None else LargestRow(evaluation.largest_row, metric)
    fallen = before.value - evaluation.value > 4.0 * before.precision * abs(before.value)
    idle = 0 if t == 1.0 or fallen else state.idle + 1
    kept = {"accuracy": state.accuracy, "vain": state.vain, "idle": idle}
    return ProxNewtonState(theta, evaluation, columns, largest, **kept)


PROX_NEWTON = Method("prox_newton", frozenset({"gradient", "hessian", "coordinates", "held"}), _init, _step, _bound)
