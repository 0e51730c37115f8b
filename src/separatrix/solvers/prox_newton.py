"""Proximal Newton with working sets, for absolute values and bounds.

    Δ = argmin  gᵀΔ + ½ ΔᵀHΔ + P₁(θ + Δ)   over the columns W,      θ ← θ + tΔ

One evaluation gives F, the whole gradient, and H of the columns in W: those that are not zero, those nothing holds back,
and those that violate the optimality conditions most. The quadratic is minimised by coordinate descent and
factorisations (see quadratic.py). W doubles while
violations are left, so a column that is never needed never costs more than its entry of the gradient. The proof is a dual
point (see bounds.py) or, with few columns, the Newton decrement of the least subgradient (see curvature.py).

Reference: Lee, Sun, Saunders (2014), SIAM J. Optimization 24; Massias et al. (2018), ICML, for working sets.

**Complexity** O(nnz + n|W|²) a pass, O(|W|²) a sweep of coordinate descent.
**Passes over the data** one a step and one a proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.result import Certificate, Status
from separatrix.solvers.bounds import Bound, dual_gap, intercept_price, intercept_shift, least_bound
from separatrix.solvers.curvature import Curvature, LargestRow, gap_bound, rounding, without_gauge
from separatrix.solvers.quadratic import minimise_quadratic
from separatrix.solvers.state import Callback, Solution, Trace

_EPS = float(np.finfo(np.float64).eps)
_FIRST, _LEAST_ACCURACY = 100, 1e-10
# Up to this many parameters all columns are in the working set, and ∇²F can prove what a dual point cannot.
_FEW = 400
# So many steps that promise less than this share of the tolerance, and the rest of the gap is not for steps to close.
_IN_VAIN, _NOTHING = 4, 1e-3
# Hessians of more parameters than this are not formed.
LARGEST_WORKING_SET = 4000


@dataclass(frozen=True)
class _Point:
    theta: Float
    evaluation: Evaluation
    columns: NDArray[np.intp]


def minimise_prox_newton(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    *,
    tol: float,
    max_iter: int,
    intercept: bool,
    callback: Callback | None = None,
    loss_gradient: Float | None = None,
) -> Solution:
    """Minimise until the proven gap is at most `tol` times max(1, |F|).

    `loss_gradient` at the starting point saves the pass that finds the first working set.
    """
    trace, status, iterations = Trace(callback), Status.MAX_ITER, 0
    penalty = objective.penalty
    theta = np.clip(theta, penalty.low, penalty.high)
    columns, largest = np.arange(theta.shape[1]), None
    if theta.size > _FEW:
        if loss_gradient is None:
            gradient = objective.evaluate(theta, source, 1).gradient
        else:
            gradient = loss_gradient + penalty.gradient(theta)
        columns = _working_set(objective, theta, gradient, np.empty(0, dtype=np.intp), _FIRST)
    point = _Point(theta, objective.evaluate(theta, source, 2, columns=columns), columns)
    bound, accuracy, vain = Bound(point.evaluation.value), 0.01, 0
    try:
        while True:
            target = objective.target(tol, point.evaluation.value)
            moved, decrease = _step(objective, point, accuracy * target)
            curvature = _whole(objective, point)
            bound = least_bound(bound, Bound(_newton_gap(objective, point, curvature, largest)))
            if bound.gap > target and decrease <= target and not _outside(objective, point):
                bound = least_bound(bound, _dual_gap(objective, source, point, intercept, target))
                accuracy = max(
                    1e-4 * accuracy, _LEAST_ACCURACY
                )  # a dual point asks for a smaller residual than the model can have at this accuracy
            trace.add(
                objective=point.evaluation.value,
                gap=bound.gap,
                passes=source.passes,
                working_set=len(point.columns),
                nonzero=int((point.theta != 0).any(axis=0).sum()),
            )
            if bound.gap <= target:
                status = Status.CONVERGED
                break
            if iterations >= max_iter:
                break
            vain = vain + 1 if decrease <= _NOTHING * target else 0
            if vain > _IN_VAIN:
                status = Status.UNPROVEN
                break
            iterations += 1
            metric = curvature.metric if curvature is not None and largest is None else None
            found = _search(objective, source, point, moved, metric)
            if found is None:
                status = Status.STALLED
                break
            point, bound = found, Bound(found.evaluation.value)
            if metric is not None:
                largest = LargestRow(point.evaluation.largest_row, metric)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    residual = penalty.residual(point.theta, point.evaluation.gradient)
    certificate = Certificate(
        bound.gap,
        point.evaluation.value,
        "dual point" if largest is None else "Newton decrement of the least subgradient, or a dual point",
        stationarity=float(np.abs(residual).max(initial=0.0)),
        kind=bound.kind,
    )
    return Solution(
        point.theta,
        status,
        certificate,
        iterations,
        trace.entries,
        point.evaluation.total,
        point.evaluation.steepest,
        loss_gradient=point.evaluation.gradient - penalty.gradient(point.theta),
    )


def _whole(objective: LinearObjective, point: _Point) -> Curvature | None:
    """∇²F factored, where all columns are in the working set and nothing is missing from its rank."""
    m, p = point.theta.shape
    if point.theta.size > _FEW or len(point.columns) < p or point.evaluation.hessian is None:
        return None
    curvature = Curvature(without_gauge(point.evaluation.hessian.copy(), objective), (m, p))
    return None if curvature.deficient or curvature.blank.any() else curvature


def _newton_gap(
    objective: LinearObjective, point: _Point, curvature: Curvature | None, largest: LargestRow | None
) -> float:
    """curvature.py's bound with the least subgradient r in place of g: P(θ+Δ) ≥ P(θ) + ξᵀΔ for every subgradient ξ."""
    concordance = objective.loss.concordance
    if curvature is None or largest is None or concordance is None:
        return np.inf
    evaluation, spread = point.evaluation, largest.spread(curvature)
    residual = objective.penalty.residual(point.theta, evaluation.gradient)
    noise = rounding(spread, evaluation, curvature.diagonal_length(point.theta), point.theta.shape[1])
    return gap_bound(curvature.decrement(residual) + noise, concordance * spread)


def _working_set(
    objective: LinearObjective, theta: Float, gradient: Float, before: NDArray[np.intp], fresh: int
) -> NDArray[np.intp]:
    """Columns that are used, free or of the previous set, and the `fresh` worst violators."""
    penalty = objective.penalty
    violation = np.abs(penalty.residual(theta, gradient)).max(axis=0)
    used = (theta != 0).any(axis=0) | penalty.free.any(axis=0)
    used[before] = True
    room = min(fresh, LARGEST_WORKING_SET // len(theta) - int(used.sum()))
    candidates = np.flatnonzero((violation > 0) & ~used)
    if room > 0 and len(candidates):
        worst = candidates[np.argsort(-violation[candidates], kind="stable")[:room]]
        used[worst] = True
    return np.flatnonzero(used)


def _outside(objective: LinearObjective, point: _Point) -> bool:
    """Whether a column outside the working set wants to come in, beyond rounding."""
    violation = np.abs(objective.penalty.residual(point.theta, point.evaluation.gradient))
    violation[:, point.columns] = 0.0
    return bool((violation > 1e-12 * np.abs(point.evaluation.gradient)).any())


def _dual_gap(objective: LinearObjective, source: Source, point: _Point, intercept: bool, target: float) -> Bound:
    shift = np.zeros(len(point.theta))
    if intercept and intercept_price(point.theta, point.evaluation.gradient) > 0.25 * target:
        assert point.evaluation.total_curvature is not None
        shift = intercept_shift(point.evaluation.gradient[:, -1], point.evaluation.total_curvature)
    return dual_gap(objective, source, point.theta, point.evaluation, shift, intercept)


def _step(objective: LinearObjective, point: _Point, tol: float) -> tuple[Float, float]:
    """The minimiser of the quadratic model over the working set, and by how much it lowers the model."""
    hessian, gradient = point.evaluation.hessian, point.evaluation.gradient
    assert hessian is not None
    at, penalty = point.columns, objective.penalty
    before, slope, absolute, low, high = (
        np.ascontiguousarray(a[:, at]).ravel()
        for a in (point.theta, gradient, penalty.absolute, penalty.low, penalty.high)
    )
    part, initial = before.copy(), slope.copy()
    minimise_quadratic(hessian, slope, part, absolute, low, high, tol)
    change = part - before
    # slope has become g + HΔ: ½(g + slope)ᵀΔ = gᵀΔ + ½ΔᵀHΔ
    model = 0.5 * float((initial + slope) @ change) + float((absolute * (np.abs(part) - np.abs(before))).sum())
    moved = point.theta.copy()
    moved[:, at] = part.reshape(len(moved), -1)
    return moved, -model


def _search(
    objective: LinearObjective, source: Source, point: _Point, moved: Float, metric: Float | None
) -> _Point | None:
    """The step, halved until F falls; the next working set grows with what the last gradient showed."""
    before, penalty = point.evaluation, objective.penalty
    step = moved - point.theta
    # Directional derivative of F, absolute values included: what the step promises.
    promise = float((before.gradient * step).sum()) + float(
        (penalty.absolute * (np.abs(moved) - np.abs(point.theta))).sum()
    )
    columns = point.columns
    if moved.size > _FEW:
        kept = columns[(moved[:, columns] != 0).any(axis=0)]
        columns = _working_set(objective, moved, before.gradient, kept, max(_FIRST, len(kept)))
    t = 1.0
    for _ in range(40):
        theta = point.theta + t * step if t < 1.0 else moved
        if np.array_equal(theta, point.theta) and np.array_equal(columns, point.columns):
            return None
        new = objective.evaluate(theta, source, 2, metric, columns)
        if new.value <= before.value + 1e-4 * t * promise + 4.0 * _EPS * abs(before.value):
            return _Point(theta, new, columns)
        t *= 0.5
    return None
