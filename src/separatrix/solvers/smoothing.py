"""Margin losses with a kink, or whose curvature jumps: a sequence of problems that every solver can prove, and a proof for F.

    F_k(θ) = Σ sᵢ ℓ_h(mᵢ − h uᵢᵏ) + P(θ) + ½ Σ_j ρ_j (θ_j − θ_jᵏ)²       ρ_j > 0 where P has little curvature, else 0
    ℓ_h(m) = 0 for m ≥ 1,   (1−m)²/2h for 1−h ≤ m ≤ 1,   1 − m − h/2 below                       ℓ_h ≤ hinge ≤ ℓ_h + h/2
    uᵢᵏ⁺¹  = −ℓ_h'(mᵢ − h uᵢᵏ) ∈ [0, 1]

θᵏ⁺¹ = argmin F_k is found by any solver for smooth losses, which proves it by the strong convexity of the quadratic terms. With
the shifts h u this is the method of multipliers for the constraints ξᵢ ≥ 1 − mᵢ: it reaches the kink at a width h that still
lets Newton's method take long steps. Losses without a kink have no width and no shifts, only the pull ρ.

The proof for F. The slopes a = −ỹu (ỹℓ' for losses without a kink) lie in the domain of ℓ*: they are a dual point (see
bounds.py). Losses are nowhere negative, so F* ≥ 0 as well.

Reference: Rockafellar (1976), Mathematics of Operations Research 1; Nesterov (2005), Mathematical Programming 103.

**Complexity** that of the solver; memory O(n) for the shifts. **Passes over the data** those of the solver, and one for each
problem of the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.held import Held, HeldRows
from separatrix.objectives.fused import MARGINS
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.losses import Loss
from separatrix.objectives.margin_losses import Logistic, SmoothedHinge
from separatrix.objectives.penalties import Penalty
from separatrix.objectives.rounding import ROUNDING, score_rounding
from separatrix.objectives.solution import Solution
from separatrix.result import Status
from separatrix.solvers.bounds import Bound, DualPoint, lower_bound
from separatrix.solvers.driver import run
from separatrix.solvers.method import Budget, Method, Start, State
from separatrix.solvers.sample import column_squares

# Below this width the kink is sharp enough for the multipliers to do the rest.
_NARROW = 0.02
# The pull towards the last point, as a share of the curvature that unit second derivatives would have.
_PULL, _LEAST_PULL = 1e-3, 1e-9
_FIRST_ACCURACY, _LEAST_ACCURACY = 1e-2, 1e-18
_PROBLEMS, _STEPS, _FEW_STEPS, _IN_VAIN = 80, 50, 20, 6
# The sigmoid loss starts from the optimum of the logistic loss, roughly.
_NEARBY = 1e-2


class _Rounding(NamedTuple):
    """The loss of one problem of the sequence, its optimum, and what the slopes of the problem before shift its scores by."""

    loss: Any
    theta: Float
    factor: float


@dataclass(frozen=True)
class _Judged:
    """A point under the loss itself, with the dual point that the slopes of the smoothed loss give."""

    theta: Float
    evaluation: Evaluation
    upper: float
    """F with the rounding of the scores counted."""
    lower: float
    """A lower bound of F*."""
    slopes: HeldRows
    """One per row: the dual point."""
    made: tuple[_Rounding, ...]
    """How they came about."""
    kink: float
    """Σ s (ℓ(m) + ℓ*(a) − aη): what the difference of F and the bound owes to the smoothing."""


@dataclass(frozen=True)
class SmoothedState(State):
    """The best point, the last one, and how the next problem of the sequence will be rounded off."""

    point: _Judged
    squares: Float
    upper: float
    lower: float
    width: float = 1.0
    pull: float = _PULL
    accuracy: float = _FIRST_ACCURACY
    vain: int = 0
    """Problems in a row that gained next to nothing."""
    problems: int = 0
    found: Solution | None = None
    convex: bool = True
    ending: Status | None = None

    @property
    def trivial(self) -> Bound:
        return super().trivial if self.convex else Bound(np.inf, method="none: the loss is not convex")

    @property
    def gap(self) -> float:
        """The proven gap of the best point."""
        return max(0.0, self.upper - self.lower)

    def facts(self) -> dict[str, Any]:
        return {"width": self.width}


def smoothed(method: Method) -> Method:
    """The method that solves the sequence of problems by another, which minimises the smooth ones."""

    def init(problem: LinearProblem, start: Start, budget: Budget) -> SmoothedState:
        return _init(problem, start, budget, method)

    def step(problem: LinearProblem, state: SmoothedState, budget: Budget) -> SmoothedState:
        return _step(problem, state, budget, method)

    return Method(method.name, method.needs, init, step, _bound)


def _init(problem: LinearProblem, start: Start, budget: Budget, method: Method) -> SmoothedState:
    loss, theta, spent = problem.objective.loss, start.theta, 0
    convex = loss.convex
    if not convex and not theta.any():
        # From zero, where its curvature vanishes, the first step could lead anywhere.
        near = problem.with_objective(loss=Logistic())
        first = run(method, near, start, tol=_NEARBY, max_iter=budget.left)
        if first.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # what there is has no sigmoid in it yet
        theta, spent = first.theta, first.iterations
    squares = column_squares(problem.source)
    problem.source.check_finite(squares)
    squares = np.where(squares > 0, squares, 1.0)
    point = _judge(problem, problem.objective, theta, squares, (_Rounding(loss, theta, 0.0),))
    accuracy = max(budget.tol, 0.0 if loss.smooth else _FIRST_ACCURACY)
    limits: dict[str, Any] = {"accuracy": accuracy, "convex": convex, "width": 0.0 if loss.smooth else 1.0}
    lower = max(0.0, point.lower)
    return SmoothedState(theta, point.evaluation, point, squares, point.upper, lower, taken=spent, **limits)


def _provable(problem: LinearProblem, state: SmoothedState) -> bool:
    free = problem.objective.penalty.free[:, : len(problem.scale)].any()
    return state.convex and not free


def _bound(problem: LinearProblem, state: SmoothedState, budget: Budget) -> SmoothedState:
    if not state.convex:
        return replace(state, bound=state.trivial, verdict=state.ending)
    method = "dual point" if _provable(problem, state) else "losses are nowhere negative"
    return replace(state, bound=Bound(state.gap, method=method), verdict=state.ending)


def _step(problem: LinearProblem, state: SmoothedState, budget: Budget, method: Method) -> SmoothedState:
    """One problem of the sequence, from the last point, and what it shows of the loss itself."""
    objective, penalty, theta = problem.objective, problem.objective.penalty, state.point.theta
    rounded = objective
    if not objective.loss.smooth:
        shifts = state.point.slopes.times(state.width) if state.problems else None
        rounded = replace(rounded, loss=SmoothedHinge(state.width), shifts=shifts)
    rounded = replace(rounded, penalty=_pulled(penalty, theta, state.pull * state.squares))
    # What is not convex has no bound that could end a solver's work.
    steps = min(budget.left, _STEPS if state.convex else _FEW_STEPS)
    near = Start(theta, state.found is not None, None if state.found is None else state.found.loss_gradient)
    found = run(method, replace(problem, objective=rounded), near, tol=state.accuracy, max_iter=steps)
    before = state.point.made if rounded.shifts is not None else ()
    made = (*before, _Rounding(rounded.loss, found.theta, state.width))
    point = _judge(problem, rounded, found.theta, state.squares, made)
    fall = state.value - point.evaluation.value
    better = point.evaluation.value < state.value
    theta, evaluation = (point.theta, point.evaluation) if better else (state.theta, state.evaluation)
    upper, lower = point.upper if better else state.upper, max(state.lower, point.lower)
    target, provable = problem.target(budget.tol, evaluation.value), _provable(problem, state)
    gap = max(0.0, upper - lower)
    slow = fall <= target and gap > 0.5 * state.gap if provable else fall <= 0.01 * target
    vain, problems = state.vain + 1 if slow else 0, state.problems + 1
    ending = None
    if found.status is Status.INTERRUPTED:
        ending = Status.INTERRUPTED
    elif problems > 1 and not provable and _still(problem, rounded, state.squares, point, fall, target):
        ending = Status.UNPROVEN if state.convex else Status.STATIONARY
    elif vain >= _IN_VAIN or problems >= _PROBLEMS:
        ending = Status.STALLED
    accuracy = state.accuracy
    if gap > 0:
        accuracy = min(0.3 * accuracy, 0.1 * gap / max(objective.unit, evaluation.value))
    return SmoothedState(
        theta,
        evaluation,
        point,
        state.squares,
        upper,
        lower,
        width=0.3 * state.width if state.width > _NARROW or vain else state.width,
        pull=max(0.3 * state.pull, _LEAST_PULL),
        accuracy=max(accuracy * (0.01 if vain else 1.0), _LEAST_ACCURACY),
        vain=vain,
        problems=problems,
        found=found,
        convex=state.convex,
        ending=ending,
        taken=max(1, found.iterations),
    )


def _pulled(penalty: Penalty, theta: Float, pull: Float) -> Penalty:
    """P + ½ Σ_j ρ_j (θ_j − θ_jᵏ)²: one parabola again, ρ what is missing of `pull` where P has less curvature."""
    if penalty.matrix is not None:
        added = np.tile(pull, len(theta))
        matrix = penalty.matrix + np.diag(added)
        mean = np.linalg.solve(matrix, penalty.matrix @ penalty.mean.ravel() + added * theta.ravel()).astype(np.float64)
        return replace(penalty, matrix=matrix, mean=mean.reshape(theta.shape))
    quadratic = np.maximum(penalty.quadratic, pull)
    share = penalty.quadratic / quadratic
    return replace(penalty, quadratic=quadratic, mean=(1.0 - share) * theta + share * penalty.mean)


def _still(
    problem: LinearProblem, rounded: LinearObjective, squares: Float, point: _Judged, fall: float, target: float
) -> bool:
    """Whether the kink is sharp, F has stopped falling, and a step along any one coordinate would not lower it either."""
    curvature = rounded.loss.steepest * squares + rounded.penalty.quadratic
    residual = problem.objective.penalty.residual(point.theta, point.evaluation.gradient)
    promise = max(fall, float((np.square(residual) / curvature).max()))
    return promise <= 0.01 * target and point.kink <= 0.5 * target


def _judge(
    problem: LinearProblem, rounded: LinearObjective, theta: Float, squares: Float, made: tuple[_Rounding, ...]
) -> _Judged:
    """F, and the lower bound that the slopes of another problem's loss give. One pass.

    A score of p terms is off by at most (p + 2)u Σ_j |θ_j x_j|, which moves the loss by its slope ℓ' times as much. Over all
    rows that is at most (p + 2)u Σ_j |θ_j| √(Σ s x_j²) √(Σ s ℓ'²), by Cauchy and Schwarz.
    """
    objective, source, intercept = problem.objective, problem.source, problem.objective.free_intercept
    loss, penalty, p = objective.loss, objective.penalty, theta.shape[1]
    slopes = Held[Float](partial(_slopes, made))

    def of_block(block: Block) -> tuple[Float, Float, float]:
        there = _judged_there(loss, rounded, theta, block)
        if there is not None:
            slopes.put(block, there[3])
            return there[:3]
        sums, products, steepest = np.zeros((2, 6)), np.zeros((p, 2)), 0.0
        for piece in block.pieces(4 << 20):
            rows, shifts = rounded.counted(piece)
            eta, codes = objective.scores(theta, rows, None), rows.codes
            a = rounded.loss.gradient(codes, eta if shifts is None else eta + shifts)
            shares = (codes[:, None] == np.arange(2)) * (1.0 if rows.weights is None else rows.weights[:, None])
            dual, slope = loss.conjugate(codes, a), loss.gradient(codes, eta)[:, 0]
            columns = [
                loss.value(codes, eta),
                dual,
                np.ones(rows.n),
                np.abs(dual),
                np.square(a[:, 0]),
                np.square(slope),
            ]
            sums += shares.T @ np.column_stack(columns)
            products += rows.rmatvec(a * shares)
            steepest = max(steepest, float(np.abs(eta).max(initial=0.0)))
            slopes.put(piece, _spread(a[:, 0], piece))
        return sums, products, steepest

    sums, products, steepest = source.reduce(
        of_block, lambda one, two: (one[0] + two[0], one[1] + two[1], max(one[2], two[2]))
    )
    source.check_finite(sums[:, 0], products)
    losses, conjugates, total, size, residual, slopes_squared = sums.sum(axis=0)
    slope, value = products.sum(axis=1)[None], float(losses) + penalty.value(theta)
    dual_point = DualPoint(sums[:, 1], products.T[:, None, :], float(size), np.sqrt(residual * squares))
    flows = loss.flows(products[-1][:, None]) if intercept else None
    lower, proven = -np.inf, True
    if flows is not None or not intercept:
        lower, proven = lower_bound(penalty, dual_point, flows, theta)
    moved = float((np.abs(theta) * np.sqrt(slopes_squared * squares)).sum())
    gradient = slope + penalty.gradient(theta)
    return _Judged(
        theta,
        Evaluation(value, float(losses), gradient, float(slopes_squared), float(total), steepest=steepest),
        value + ROUNDING * abs(value) + score_rounding(p) * moved,
        lower if proven else -np.inf,
        HeldRows(slopes),
        made,
        float(losses + conjugates - (slope * theta).sum()) if np.isfinite(conjugates) else 0.0,
    )


def _judged_there(
    loss: Loss, rounded: LinearObjective, theta: Float, block: Block
) -> tuple[Float, Float, float, Any] | None:
    """What slopes of another loss, with their offsets, show of a loss of the margin, made where the rows lie.

    (2, 6) by class Σ s of ℓ, ℓ*(a), 1, |ℓ*(a)|, a², ℓ'²; (p, 2) Σ s a x; max |η|; (n,) a. ``None`` where it cannot be had.
    """
    there = block.row_sums()
    if there is None or not there[0].margins or type(loss) not in MARGINS or type(rounded.loss) not in MARGINS:
        return None
    (rows, ones), kinds = there, (MARGINS[type(loss)], MARGINS[type(rounded.loss)])
    w, b = (theta[0, :-1], float(theta[0, -1])) if ones else (theta[0], 0.0)
    width = rounded.loss.width if isinstance(rounded.loss, SmoothedHinge) else 0.0
    own = None if rounded.shifts is None else rounded.shifts.of(block)
    sums, products, steepest, slopes = rows.judged(kinds, w, b, own, width)
    return sums, products if ones else products[:-1], steepest, slopes


def _slopes(made: tuple[_Rounding, ...], block: Block) -> Float:
    """The slopes again from the rows, problem after problem: for engines whose workers keep nothing between passes."""
    rows, a = block.counted(), np.zeros((0, 1))
    for at, (loss, theta, factor) in enumerate(made):
        eta = rows.matvec(theta.T)
        a = loss.gradient(rows.codes, eta + factor * a if at else eta)
    return _spread(a[:, 0], block)


def _spread(values: Float, piece: Block) -> Float:
    """Values of the rows that count as values of all rows, 0 for the others."""
    if len(values) == piece.n:
        return values
    assert piece.weights is not None
    spread = np.zeros(piece.n)
    spread[piece.weights > 0] = values
    return spread
