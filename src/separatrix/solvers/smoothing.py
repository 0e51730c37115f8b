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

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.losses import Margin
from separatrix.result import Certificate, Status
from separatrix.solvers.bounds import ROUNDING, DualPoint, lower_bound, score_rounding
from separatrix.solvers.state import Callback, Solution, Trace, column_squares

Engine = Callable[[LinearObjective, Float, float, int, Solution | None], Solution]
"""(objective, θ, tol, max_iter, solution that θ comes from) → minimiser of an objective with quadratic terms everywhere."""

# Below this width the kink is sharp enough for the multipliers to do the rest.
_NARROW = 0.02
# The pull towards the last point, as a share of the curvature that unit second derivatives would have.
_PULL, _LEAST_PULL = 1e-3, 1e-9
_FIRST_ACCURACY, _LEAST_ACCURACY = 1e-2, 1e-18
_PROBLEMS, _STEPS, _FEW_STEPS, _IN_VAIN = 80, 50, 20, 6


class SmoothedHinge(Margin):
    """The hinge with a parabola of width h in place of its kink; four times that of width 2 is the Huberised loss."""

    def __init__(self, width: float) -> None:
        self.width, self.steepest = width, 1.0 / width

    def _of(self, m: Float) -> Float:
        z = np.maximum(1.0 - m, 0.0)
        return np.where(z < self.width, np.square(z) / (2.0 * self.width), z - 0.5 * self.width)

    def _slope(self, m: Float) -> Float:
        return -np.clip((1.0 - m) / self.width, 0.0, 1.0)

    def _bend(self, m: Float) -> Float:
        return np.where((m <= 1.0) & (m >= 1.0 - self.width), 1.0 / self.width, 0.0)

    def _dual(self, a: Float) -> Float:
        return np.where((a >= -1.0) & (a <= 0.0), a + 0.5 * self.width * np.square(a), np.inf)


class Sigmoid(Margin):
    """1/(1 + eᵐ), a smooth count of errors. It is not convex and has no conjugate."""

    steepest = 1.0 / (6.0 * 3.0**0.5)

    def _of(self, m: Float) -> Float:
        result: Float = expit(-m)
        return result

    def _slope(self, m: Float) -> Float:
        result: Float = -expit(m) * expit(-m)
        return result

    def _bend(self, m: Float) -> Float:
        # ℓ'' = p(1−p)(2p−1), p = σ(m), where it is positive: steps lead downhill.
        result: Float = np.maximum(expit(m) * expit(-m) * np.tanh(0.5 * m), 0.0)
        return result

    def _dual(self, a: Float) -> Float:
        return np.full_like(a, np.inf)


@dataclass(frozen=True)
class _Point:
    """F at θ and what one pass finds of it."""

    theta: Float
    value: float
    upper: float
    """`value` with the rounding of the scores counted."""
    lower: float
    """A lower bound of F*."""
    slopes: Float
    """(n,) the dual point."""
    kink: float
    """Σ s (ℓ(m) + ℓ*(a) − aη): what the difference of F and the bound owes to the smoothing."""
    residual: Float
    total: float
    steepest: float


def minimise_smoothed(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    engine: Engine,
    *,
    tol: float,
    max_iter: int,
    intercept: bool,
    callback: Callback | None = None,
) -> Solution:
    """Minimise until the proven gap is at most `tol` times max(1, |F|); the loss is one of a margin."""
    trace, status, iterations = Trace(callback), Status.MAX_ITER, 0
    penalty, kinked, convex = objective.penalty, not objective.loss.smooth, not isinstance(objective.loss, Sigmoid)
    provable = convex and not penalty.free[:, : theta.shape[1] - intercept].any()
    squares = column_squares(source)
    source.check_finite(squares)
    squares = np.where(squares > 0, squares, 1.0)
    width, pull, accuracy, vain = 1.0, _PULL, max(tol, _FIRST_ACCURACY if kinked else 0.0), 0
    # What is not convex has no bound that could end a solver's work.
    problem, found, steps = objective, None, _STEPS if convex else _FEW_STEPS
    best = point = _judge(objective, objective, source, theta, intercept, squares)
    lower, gap = max(0.0, best.lower), best.upper
    try:
        for k in range(_PROBLEMS):
            if kinked:
                shifts = width * point.slopes if k else None
                problem = replace(problem, loss=SmoothedHinge(width), offset=shifts)
            # ½qθ² + ½ρ(θ − θᵏ)² is one parabola, of curvature q + ρ
            quadratic = np.maximum(penalty.quadratic, pull * squares)
            held = replace(penalty, quadratic=quadratic, mean=(1.0 - penalty.quadratic / quadratic) * theta)
            problem = replace(problem, penalty=held)
            found = engine(problem, theta, accuracy, min(max_iter - iterations, steps), found)
            theta, iterations = found.theta, iterations + found.iterations
            point = _judge(objective, problem, source, theta, intercept, squares)
            fall = best.value - point.value
            best, lower = min(best, point, key=lambda one: one.value), max(lower, point.lower)
            target = objective.target(tol, best.value)
            reached = max(0.0, best.upper - lower)
            slow = fall <= target and reached > 0.5 * gap if provable else fall <= 0.01 * target
            vain, gap = vain + 1 if slow else 0, reached
            trace.add(objective=best.value, gap=gap if convex else np.inf, passes=source.passes, width=width * kinked)
            if found.status is Status.INTERRUPTED:
                status = Status.INTERRUPTED
            elif convex and gap <= target:
                status = Status.CONVERGED
            elif k and not provable and _still(problem, squares, point, fall, target):
                status = Status.UNPROVEN if convex else Status.STATIONARY
            elif vain >= _IN_VAIN:
                status = Status.STALLED
            if status is not Status.MAX_ITER or iterations >= max_iter:
                break
            width = 0.3 * width if width > _NARROW or vain else width
            pull = max(0.3 * pull, _LEAST_PULL)
            accuracy = min(0.3 * accuracy, 0.1 * gap / max(objective.unit, best.value)) if gap > 0 else accuracy
            accuracy = max(accuracy * (0.01 if vain else 1.0), _LEAST_ACCURACY)
        else:
            status = Status.STALLED
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    method = "dual point" if provable else "losses are nowhere negative" if convex else "none: the loss is not convex"
    stationarity = float(np.abs(best.residual).max(initial=0.0))
    certificate = Certificate(gap if convex else np.inf, best.value, method, stationarity=stationarity)
    return Solution(best.theta, status, certificate, iterations, trace.entries, best.total, best.steepest)


def _still(problem: LinearObjective, squares: Float, point: _Point, fall: float, target: float) -> bool:
    """Whether the kink is sharp, F has stopped falling, and a step along any one coordinate would not lower it either."""
    curvature = problem.loss.steepest * squares + problem.penalty.quadratic
    promise = max(fall, float((np.square(point.residual) / curvature).max()))
    return promise <= 0.01 * target and point.kink <= 0.5 * target


def _judge(
    objective: LinearObjective, problem: LinearObjective, source: Source, theta: Float, intercept: bool, squares: Float
) -> _Point:
    """F, and the lower bound that the slopes of another problem's loss give. One pass.

    A score of p terms is off by at most (p + 2)u Σ_j |θ_j x_j|, which moves the loss by its slope ℓ' times as much. Over all
    rows that is at most (p + 2)u Σ_j |θ_j| √(Σ s x_j²) √(Σ s ℓ'²), by Cauchy and Schwarz.
    """
    loss, penalty, p = objective.loss, objective.penalty, theta.shape[1]
    slopes: dict[int, Float] = {}

    def of_block(block: Block) -> tuple[Float, Float, float]:
        sums, products, steepest = np.zeros((2, 6)), np.zeros((p, 2)), 0.0
        for piece in block.pieces(4 << 20):
            rows, shifts = problem.counted(piece)
            eta, codes = objective.scores(theta, rows, None), rows.codes
            a = problem.loss.gradient(codes, eta if shifts is None else eta + shifts)
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
            slopes[piece.start] = _spread(a[:, 0], piece)
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
    return _Point(
        theta,
        value,
        value + ROUNDING * abs(value) + score_rounding(p) * moved,
        lower if proven else -np.inf,
        np.concatenate([slopes[start] for start in sorted(slopes)]),
        float(losses + conjugates - (slope * theta).sum()) if np.isfinite(conjugates) else 0.0,
        penalty.residual(theta, slope + penalty.gradient(theta)),
        float(total),
        steepest,
    )


def _spread(values: Float, piece: Block) -> Float:
    """Values of the rows that count as values of all rows, 0 for the others."""
    if len(values) == piece.n:
        return values
    assert piece.weights is not None
    every = np.zeros(piece.n)
    every[piece.weights > 0] = values
    return every
