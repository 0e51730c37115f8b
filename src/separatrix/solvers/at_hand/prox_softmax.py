"""Proximal Newton for a softmax regression with absolute values, rows in memory: the coefficients that may move, one by one.

    Δ = argmin  gᵀΔ + ½ ΔᵀHΔ + Σ l|θ + Δ|   over the coefficients (k, j) in W,      θ ← θ + tΔ
    H = Σ s (diag π − ππᵀ) ⊗ aaᵀ + diag q,      a = (x, 1)

A column that one class needs is seldom one that all need: W has coefficients, not columns, and H of W is two products,

    H_WW = blockdiag_k(A_kᵀ diag(s π_k) A_k) − GᵀG + diag q,      G = (√s π_k A_k)_k,      A_k the columns of class k in W

W are the coefficients that are not zero, the intercepts, and those that violate the optimality conditions most, no more of them
than there are others. What quadratic.py leaves of the model's minimum is a share of what the last one gained. H is filled in
the direction in which all intercepts move together, which no gradient has a part in. The proof is the dual point of bounds.py.

H costs as much as hundreds of gradients: the first steps are along the gradient, with shrinkage, in the units of the columns,

    θ ← S(θ − τg/u, τl/u),      u_j = Σ s x_j²,      τ = Σ u (Δθ)² / Σ Δθ Δg      of the last step (Barzilai and Borwein)

F may rise for a few of them. They end where F hardly falls, or where they have cost as much as a model.

Where rounding, or a model that is hard to minimise, stands in the way the method gives up, and prox_newton.py goes on from its
point.

Reference: Lee, Sun, Saunders (2014), SIAM J. Optimization 24; Wright, Nowak, Figueiredo (2009), IEEE Trans. Signal Proc. 57.

**Complexity** O(nKp + n|W|²) per step and what quadratic.py takes. **Passes over the data** one per step, one or two per proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.losses import Softmax
from separatrix.objectives.rounding import EPS
from separatrix.result import Status
from separatrix.solvers.at_hand.small_softmax import SoftmaxState, SoftmaxTable, softmax_state
from separatrix.solvers.bounds import dual_gap, least_bound
from separatrix.solvers.method import Budget, Method, Start
from separatrix.solvers.quadratic import minimise_quadratic

_HALVINGS = 40
# Steps along the gradient, until so many lower F by no more than a share, or have taken as long as some models;
# F may rise for so many.
_CHUNK, _MEMORY, _RISE, _AS_LONG = 20, 10, 1e-4, 0.5
# Coefficients at zero that enter W at once, or as many as it has; those that it may have in all.
_FRESH, _MOST = 200, 3000
# What a model may leave: a share of what the last one gained, and where it promises no more than so many times the target, a
# share of that.
_LEFT, _NEAR, _LEAST_LEFT = 0.03, 30.0, 1e-2
# Rounds of sweeps and factorisations that a model is worth, far from the optimum and near it.
_FAR_ROUNDS, _NEAR_ROUNDS = 10, 60
# Steps after which another method is better, and steps in a row that promise next to nothing.
_MOST_STEPS, _IN_VAIN, _NOTHING = 50, 4, 1e-3


@dataclass(frozen=True)
class ProxSoftmaxState(SoftmaxState):
    """The minimiser of the model at the point, and how far it may be trusted."""

    moved: Float | None = None
    promised: float = np.inf
    """By how much the last model was lowered."""
    rate: float = 0.0
    """The length of the next step along the gradient."""
    descending: bool = False
    """Whether there is to be one."""
    steps: int = 0
    """Of this kind."""
    vain: int = 0
    """Models in a row that promised next to nothing."""

    def facts(self) -> dict[str, Any]:
        return {"nonzero": int(np.count_nonzero(self.theta[:, : self.table.held]))}


def prox_softmax_offered(problem: LinearProblem) -> bool:
    """Whether a problem is of this kind: a softmax, absolute values of everything but free intercepts, no bounds."""
    objective, d = problem.objective, len(problem.scale)
    loss, penalty = objective.loss, objective.penalty
    plain = type(loss) is Softmax and loss.baseline is None and penalty.matrix is None and not penalty.mean.any()
    bounded = np.isfinite(penalty.low).any() or np.isfinite(penalty.high).any()
    held = d > 0 and bool((penalty.absolute[:, :d] > 0).all()) and objective.free_intercept == problem.fit_intercept
    return bool(plain and held and not bounded)


def _state(problem: LinearProblem, table: SoftmaxTable, theta: Float) -> ProxSoftmaxState:
    smooth = softmax_state(problem, table, theta)
    absolute = float((problem.objective.penalty.absolute * np.abs(theta)).sum())
    evaluation = replace(smooth.evaluation, value=smooth.value + absolute)
    return ProxSoftmaxState(theta, evaluation, table, smooth.posteriors)


def _init(problem: LinearProblem, start: Start, budget: Budget) -> ProxSoftmaxState:
    table = SoftmaxTable.of(problem)
    return replace(_state(problem, table, start.theta.copy()), rate=1.0, descending=True)


def _working_set(problem: LinearProblem, state: ProxSoftmaxState) -> tuple[NDArray[np.intp], bool]:
    """Places in θ, class by class, and whether others violate the conditions as well."""
    penalty, theta = problem.objective.penalty, state.theta
    used = (theta != 0) | (penalty.absolute == 0)
    violation = np.where(used, 0.0, np.abs(penalty.residual(theta, state.evaluation.gradient))).ravel()
    count = int(used.sum())
    room = min(max(_FRESH, count), max(0, _MOST - count))
    inside, candidates = used.ravel(), np.flatnonzero(violation > 0)
    if more := len(candidates) > room:
        candidates = candidates[np.argpartition(-violation[candidates], room)[:room]]
    inside[candidates] = True
    return np.flatnonzero(inside), more


def _hessian(state: ProxSoftmaxState, places: NDArray[np.intp]) -> Float:
    """(|W|, |W|) H of the coefficients at these places, the rows in two parts."""
    table, posteriors = state.table, state.posteriors
    (K, n), p = posteriors.shape, len(table.columns)
    classes, columns = np.divmod(places, p)
    ends = np.searchsorted(classes, np.arange(K + 1))
    halves: list[Float] = [np.empty(0)] * 2

    def of_rows(half: int) -> None:
        rows = slice(half * n // 2, (half + 1) * n // 2)
        part, shares = table.columns[:, rows], posteriors[:, rows]
        if table.weights is not None:
            part = part * np.sqrt(table.weights[rows])
        G = part[columns]
        blocks = [own @ own.T for own in (G[ends[k] : ends[k + 1]] * np.sqrt(shares[k]) for k in range(K))]
        G *= shares[classes]
        total = -(G @ G.T)
        for k, block in enumerate(blocks):
            total[ends[k] : ends[k + 1], ends[k] : ends[k + 1]] += block
        halves[half] = total

    in_parallel(of_rows, range(2))
    hessian = halves[0]
    hessian += halves[1]
    hessian.flat[:: len(places) + 1] += table.quadratic.ravel()[places]
    free = np.flatnonzero(columns >= table.held)
    if len(free):
        hessian[np.ix_(free, free)] += float(hessian[free, free].mean()) / len(free)
    return hessian


def _descend(problem: LinearProblem, state: ProxSoftmaxState) -> ProxSoftmaxState:
    """Some steps along the gradient; whether more of them are to follow."""
    penalty, rate, values, best = problem.objective.penalty, state.rate, [state.value], state
    squares, passes = state.table.squares, state.steps + _CHUNK
    unit = 1.0 / np.where(squares > 0, squares, 1.0)  # columns of any size
    for _ in range(_CHUNK):
        gradient = state.evaluation.gradient
        for _ in range(_HALVINGS):
            aim = state.theta - rate * unit * gradient
            theta = np.sign(aim) * np.maximum(np.abs(aim) - rate * unit * penalty.absolute, 0.0)
            fresh, change = _state(problem, state.table, theta), theta - state.theta
            size = float((np.square(change) / unit).sum())
            if fresh.value <= max(values[-_MEMORY:]) - 1e-4 * size / rate:
                break
            rate *= 0.25
        else:  # rounding is all that is left
            return replace(best, descending=False, promised=_LEFT * best.value, steps=0)
        bent = float(np.vdot(change, fresh.evaluation.gradient - gradient))
        rate = size / bent if bent > 0 else 2.0 * rate
        state = fresh
        values.append(state.value)
        best = state if state.value < best.value else best
    gained = values[0] - best.value
    used, n = float(np.count_nonzero(best.theta)), best.posteriors.shape[1]
    model = used**2 * (n + used / 3.0) / (4.0 * n * best.theta.size)
    more = gained > _RISE * best.value and passes <= max(_CHUNK, _AS_LONG * model)
    # What a model may gain now these steps do not tell.
    return replace(best, rate=rate, descending=more, promised=_LEFT * best.value, steps=passes if more else 0)


def _bound(problem: LinearProblem, state: ProxSoftmaxState, budget: Budget) -> ProxSoftmaxState:
    """The model's minimiser, and where it promises no more than the target, the dual point."""
    if state.descending:
        return replace(state, bound=state.trivial)
    penalty, target = problem.objective.penalty, budget.target
    places, more = _working_set(problem, state)
    start, slope, absolute = (a.ravel()[places] for a in (state.theta, state.evaluation.gradient, penalty.absolute))
    end, initial, anywhere = start.copy(), slope.copy(), np.full(len(places), np.inf)
    hessian = _hessian(state, places)

    def minimise(left: float, rounds: int) -> float:
        minimise_quadratic(hessian, slope, end, absolute, -anywhere, anywhere, left, rounds)
        # slope has become g + HΔ: ½(g + slope)ᵀΔ = gᵀΔ + ½ΔᵀHΔ
        return -0.5 * float((initial + slope) @ (end - start)) - float(absolute @ (np.abs(end) - np.abs(start)))

    gained, near = min(state.promised, state.value), _NEAR * target
    # The dual point misses F by ‖θ‖₁ times the largest r of slopes that miss their conditions; that r²/h is gained by moving.
    size = float(np.abs(state.theta[:, : state.table.held]).sum())
    missed = _LEAST_LEFT * target / size if size > target else _LEAST_LEFT
    least = min(_LEAST_LEFT * target, len(places) * missed**2 / float(hessian.diagonal().max()))
    promised = minimise(_LEFT * gained, _FAR_ROUNDS) if gained > near else minimise(least, _NEAR_ROUNDS)
    if gained > near >= promised:
        promised = minimise(least, _NEAR_ROUNDS)
    moved = state.theta.copy()
    moved.ravel()[places] = end
    bound = least_bound(state.bound, state.trivial)
    if promised <= target and not more:
        bound = least_bound(bound, dual_gap(problem, state.theta, state.evaluation, target))
    vain = state.vain + 1 if promised <= _NOTHING * target else 0
    verdict = Status.UNPROVEN if vain > _IN_VAIN or state.steps > _MOST_STEPS else None
    return replace(state, bound=bound, moved=moved, promised=promised, vain=vain, verdict=verdict)


def _step(problem: LinearProblem, state: ProxSoftmaxState, budget: Budget) -> ProxSoftmaxState:
    if state.descending:
        return _descend(problem, state)
    absolute, before, moved = problem.objective.penalty.absolute, state.theta, state.moved
    assert moved is not None
    step, t = moved - before, 1.0
    slope = float((state.evaluation.gradient * step).sum())
    for _ in range(_HALVINGS):
        fresh = _state(problem, state.table, moved if t == 1.0 else before + t * step)
        promise = t * slope + float((absolute * (np.abs(fresh.theta) - np.abs(before))).sum())
        if fresh.value <= state.value + 1e-4 * promise + 4.0 * EPS * abs(state.value):
            return replace(fresh, promised=state.promised, steps=state.steps + 1, vain=state.vain)
        t *= 0.5
    return replace(state, verdict=Status.UNPROVEN)


PROX_SOFTMAX = Method("prox_newton", frozenset({"gradient", "hessian", "coordinates", "held"}), _init, _step, _bound)
