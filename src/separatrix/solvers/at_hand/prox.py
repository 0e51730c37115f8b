"""Proximal Newton for a logistic regression with absolute values, rows in memory, and a proof for next to nothing.

    Δ = argmin  gᵀΔ + ½ ΔᵀHΔ + l‖w + Δ‖₁,      b eliminated,      θ ← θ + tΔ

The slopes that the model has at its minimiser, a + hz with z = XΔ + c, are a dual point (see bounds.py): the intercept's
condition Σ s(a + hz) = 0 and |Σ s(a + hz)x_j| ≤ l_j are those of the model's minimum. They differ from the optimal slopes by
O(‖z‖²), and D from F* by the square of that; the slopes at θ + Δ itself miss the conditions by O(‖z‖²), which costs D as much.
So the step that reaches the tolerance proves it as well. What the model misses by is made up for by a factor f,

    D = Σ s H(fu) + f Σ s(a + hz)o − Σ_j (f|v_j| − l_j)₊²/2q_j,      v = Σ s(a + hz)x,   u = −ỹ(a + hz) in (0, 1)

with the entropy H, and f|v_j| ≤ l_j where q_j = 0. Columns whose slope is far below l_j stay out of the model. All steps up to
the one that proves are one call of compiled code (see kernels/prox_columns.py); where its sweeps would cost more than the
Gram matrix of the columns, quadratic.py minimises the model. Where rounding, or a model that is hard to minimise, stands in
the way the method gives up, and prox_newton.py goes on from its point.

**Complexity** O(nnz) per sweep, a few of them per step; O(n|W|²) for a Gram matrix.
**Passes over the data** two per step, one per proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.objectives.column_units import has_few_rows
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.margin_losses import Logistic
from separatrix.objectives.rounding import EPS, ROUNDING, score_rounding
from separatrix.result import Status
from separatrix.solvers.at_hand.row_gram import combined_rows
from separatrix.solvers.at_hand.rows import Losses, RowsAtHand
from separatrix.solvers.bounds import Bound, least_bound
from separatrix.solvers.method import Budget, Method, Start, State
from separatrix.solvers.quadratic import minimise_quadratic

_HALVINGS = 40
# Columns at zero are in a model from this share of l_j on, and so many of them, or as many as are used.
_INSIDE, _FRESH = 0.7, 100
# Up to so many dense columns are swept together; of more those that are used and so many others, or as many again, until no
# other is steeper than this.
_ALL, _MORE, _BEYOND = 400, 300, 1.01
# What a model with a Gram matrix may leave: a share of what the last one gained, and at the end of the target, where a
# factorisation finds the last digits at once. So near is the end.
_LEFT, _LEFT_NEAR, _LEAST_LEFT = 0.01, 1000.0, 1e-6
_NEAR = 30.0
# Entries that one call may read, a fraction of a second of them; steps after which another method is better; steps in a
# row that hardly gain.
_MOST_READ, _MOST_STEPS, _IN_VAIN, _NOTHING = 50_000_000, 40, 3, 1e-3
# u and 1 − u are at least this share of what they are at θ, and f no less than a half: logarithms are off by 4 at most.
_INNER, _LEAST_FACTOR, _LOGARITHM = 0.1, 0.5, 4.0
_NONE = np.empty(0)


@dataclass(frozen=True)
class ProxColumns:
    """The rows; X as a CSC matrix, or as it is stored where it is dense; q, l and √Σ s x_j² of its columns."""

    rows: RowsAtHand
    sparse: tuple[Float, NDArray[Any], NDArray[Any]] | None
    X: NDArray[Any]
    quadratic: Float
    absolute: Float
    sizes: Float
    free: bool

    @classmethod
    def of(cls, problem: LinearProblem) -> ProxColumns:
        from separatrix.kernels.columns import by_columns, column_squares

        rows, d, penalty = RowsAtHand.of(problem), len(problem.scale), problem.objective.penalty
        stored, sparse, X, squares = rows.block.sparse_rows(), None, np.empty((0, d)), np.empty(d)
        if stored is None:
            plain = rows.block.plain_rows(any_order=True)  # without the ones, and not copied
            X = rows.block.dense()[:, :d] if plain is None else plain[0]
            known = rows.weights is None and has_few_rows(problem.source) and problem.sizes.any()
            squares = (
                len(rows.signs) * np.square(problem.sizes[:d]) if known else rows.block.column_squares(rows.weights)[:d]
            )
        else:
            sparse = by_columns(*stored[0], d)
            column_squares(*sparse, _NONE if rows.weights is None else rows.weights, squares)
        q, absolute = np.ascontiguousarray(penalty.quadratic[0, :d]), np.ascontiguousarray(penalty.absolute[0, :d])
        return cls(rows, sparse, X, q, absolute, np.sqrt(squares), problem.fit_intercept)

    def part(self, which: NDArray[np.intp]) -> Float:
        """(n, k) some columns of a dense X, in Fortran's order."""
        return np.asarray(self.X[:, which], dtype=np.float64, order="F")

    def columns(self, which: NDArray[np.intp]) -> tuple[Float, NDArray[Any] | None, NDArray[Any]]:
        """As kernels take them: all that are stored, or some of a dense X."""
        if self.sparse is not None:
            return self.sparse
        n = len(self.X)
        return self.part(which).ravel(order="F"), None, np.arange(0, n * len(which) + 1, max(n, 1))

    def scores(self, w: Float, b: float, scores: Float) -> None:
        """Scores += Xw + b."""
        from separatrix.kernels.columns import column_scores

        used = np.flatnonzero(w) if self.sparse is None else np.arange(len(w))
        column_scores(*self.columns(used), w[used], b, scores)

    def products(self, r: Float) -> Float:
        """(d,) Xᵀr."""
        from separatrix.kernels.columns import column_products

        if self.sparse is None:
            return combined_rows(r[None, :], self.X)[0]
        out = np.empty(len(self.sizes))
        column_products(*self.sparse, r, out)
        return out


@dataclass(frozen=True)
class ProxState(State):
    """The derivatives at the point, its scores, and the best lower bound of F* so far."""

    held: ProxColumns
    at: Losses
    scores: Float
    gained: float = np.inf
    """What the last model with a Gram matrix promised."""
    lower: float = -np.inf
    vain: int = 0
    """Steps that gained next to nothing, and models whose minimum was not found."""
    steps: int = 0
    """Steps so far."""
    hard: bool = False
    """Whether sweeps were not enough for the last model."""

    def facts(self) -> dict[str, Any]:
        return {"nonzero": int(np.count_nonzero(self.theta[0, : len(self.held.sizes)]))}


def offered_prox(problem: LinearProblem) -> bool:
    """Whether a problem is of this kind: two classes, absolute values of everything but a free intercept, no bounds."""
    objective, d = problem.objective, len(problem.scale)
    penalty = objective.penalty
    plain = type(objective.loss) is Logistic and penalty.matrix is None and not penalty.mean.any()
    bounded = np.isfinite(penalty.low).any() or np.isfinite(penalty.high).any()
    held = (penalty.absolute[0, :d] > 0).all() and objective.free_intercept == problem.fit_intercept
    return bool(plain and held and not bounded)


def _state(problem: LinearProblem, held: ProxColumns, theta: Float) -> ProxState:
    from separatrix.kernels.columns import logistic_losses

    problem.source.count_pass()
    rows, d = held.rows, len(held.sizes)
    scores = np.zeros(len(rows.signs)) if rows.offset is None else rows.offset.astype(np.float64)
    slopes, bends = np.empty(len(scores)), np.empty(len(scores))
    with np.errstate(invalid="ignore", over="ignore"):  # found below, and reported by column
        held.scores(theta[:d], float(theta[d]) if held.free else 0.0, scores)
        weights = _NONE if rows.weights is None else rows.weights
        loss, residual, steepest = logistic_losses(scores, scores, 0.0, rows.signs, weights, slopes, bends)
        pull, gradient = held.quadratic * theta[:d], np.empty(len(theta))
        np.add(held.products(slopes), pull, out=gradient[:d])
        if held.free:
            gradient[d] = slopes.sum()
        value = loss + 0.5 * float(pull @ theta[:d]) + float(held.absolute @ np.abs(theta[:d]))
    problem.source.check_finite(np.asarray(value), gradient)
    evaluation = Evaluation(value, loss, gradient[None, :], residual, rows.total, steepest=steepest)
    return ProxState(theta[None, :], evaluation, held, Losses(loss, slopes, bends, residual, steepest), scores)


def _init(problem: LinearProblem, start: Start, budget: Budget) -> ProxState:
    return _state(problem, ProxColumns.of(problem), start.theta[0].copy())


def _bound(problem: LinearProblem, state: ProxState, budget: Budget) -> ProxState:
    """The value against the lower bound; an error of the scores moves F by at most its slopes, Σ s|a||x_jθ_j|."""
    d = len(state.held.sizes)
    moved = math.sqrt(state.at.residual) * float(np.abs(state.theta[0, :d]) @ state.held.sizes)
    if state.held.free:
        moved += math.sqrt(state.at.residual * state.held.rows.total) * abs(float(state.theta[0, d]))
    noise = ROUNDING * abs(state.value) + score_rounding(d + 1) * moved
    gap = max(0.0, state.value - state.lower) + noise
    return replace(state, bound=least_bound(state.trivial, Bound(gap, method="dual point")))


def _lower(problem: LinearProblem, held: ProxColumns, slopes: Float, bends: Float, steepest: float, z: Float) -> float:
    """D of the slopes a + hz, with f; −∞ where they are no dual point, or hardly one. `steepest` is at least |η|.

    The exact c meets the intercept's condition, and differs from ours by rounding: see bounds.py.
    """
    rows, size, missed = held.rows, np.abs(slopes), 0.0
    before, slopes = slopes, slopes + bends * z
    weights = 1.0 if rows.weights is None else rows.weights
    if held.free:
        total = float(bends.sum())
        shift = -float(slopes.sum()) / total
        z = z + shift
        slopes = before + bends * z
    p = size / weights
    other = np.minimum(np.divide(bends, size, out=np.ones(len(p)), where=size > 0), 1.0)
    margin = rows.signs * z
    inner, outer = 1.0 - margin * other, 1.0 + margin * p
    if not (inner.min() >= _INNER and outer.min() >= _INNER):
        return -np.inf
    problem.source.count_pass()
    product, u = np.abs(held.products(slopes)), p * inner
    residual = float((weights * u) @ u)
    if held.free:
        missed = ROUNDING * math.sqrt(residual * rows.total) / total + 4.0 * ROUNDING * abs(shift)
    product += (ROUNDING * math.sqrt(residual) + missed * math.sqrt(rows.total)) * held.sizes
    strict = held.quadratic == 0
    with np.errstate(divide="ignore"):
        factor = min(1.0, float(np.where(strict, held.absolute / product, np.inf).min(initial=1.0)))
    if factor < _LEAST_FACTOR:
        return -np.inf
    u *= factor
    rest = (1.0 - factor) + factor * other * outer
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = weights * -(np.where(u > 0, u * np.log(u), 0.0) + np.where(rest > 0, rest * np.log(rest), 0.0))
    value, noise = float(entropy.sum()), ROUNDING * float(np.abs(entropy).sum())
    if rows.offset is not None:
        terms = factor * slopes * rows.offset
        value += float(terms.sum())
        noise += ROUNDING * float(np.abs(terms).sum())
    if not strict.all():
        beyond = np.maximum(factor * product - held.absolute, 0.0)[~strict]
        with np.errstate(over="ignore"):
            value -= float((np.square(beyond) / held.quadratic[~strict]).sum()) * 0.5 * (1.0 + ROUNDING)
    if held.free:
        largest = 0.0 if rows.offset is None else float(np.abs(rows.offset).max(initial=0.0))
        noise += missed * total * (steepest + largest + _LOGARITHM)
    return value - noise if np.isfinite(value) else -np.inf


def _step(problem: LinearProblem, state: ProxState, budget: Budget) -> ProxState:
    """Steps by sweeps until the proof is due, or one with a Gram matrix after a model that was too hard for them."""
    if state.steps >= _MOST_STEPS:
        return replace(state, verdict=Status.UNPROVEN)
    if state.hard:
        return _gram_step(problem, state, budget)
    from separatrix.kernels.prox_columns import FAR, HARD, NEAR, prox_steps

    held, rows, at, n = state.held, state.held.rows, state.at, len(state.scores)
    d, gradient = len(held.sizes), state.evaluation.gradient[0]
    slopes, bends, z = np.empty((2, n)), np.empty((2, n)), np.empty(n)
    slopes[0], bends[0] = at.slopes, at.bends
    theta = state.theta[0].copy()
    swept = np.arange(d) if held.sparse is not None or d <= _ALL else _inside(state, 0.0, _MORE)
    moving = np.append(theta[swept], theta[d:])
    taken, ended, last = prox_steps(
        *held.columns(swept),
        rows.signs,
        _NONE if rows.weights is None else rows.weights,
        held.quadratic[swept],
        held.absolute[swept],
        held.free,
        moving,
        state.scores.copy(),
        gradient[swept],
        slopes,
        bends,
        state.value,
        budget.tol,
        problem.objective.unit,
        _FRESH if held.sparse is None else d,
        min(_MOST_STEPS - state.steps, budget.left),
        _MOST_READ,
        z,
    )
    theta[swept], theta[d:] = moving[: len(swept)], moving[len(swept) :]
    for _ in range(2 * taken - 1 if len(swept) == d else 1):
        problem.source.count_pass()
    if taken == 0:
        return _gram_step(problem, state, budget) if ended == HARD else replace(state, verdict=Status.UNPROVEN)
    moved = _state(problem, held, theta)
    lower = state.lower
    if ended == NEAR and not _left_out(moved, swept):
        steepest = moved.at.steepest + float(np.abs(z).max(initial=0.0))
        lower = max(lower, _lower(problem, held, slopes[last], bends[last], steepest, z))
    little = state.value - moved.value <= _NOTHING * budget.target
    vain = state.vain + 1 if little else 0
    verdict = Status.UNPROVEN if vain > _IN_VAIN or ended not in (NEAR, FAR, HARD) else None
    steps = state.steps + taken
    return replace(
        moved,
        lower=lower,
        vain=vain,
        verdict=verdict,
        steps=steps,
        hard=ended == HARD,
        taken=taken,
        gained=state.gained,
    )


def _gram_step(problem: LinearProblem, state: ProxState, budget: Budget) -> ProxState:
    """A step by the Gram matrix of the columns that may move."""
    held, at, target = state.held, state.at, budget.target
    before, gradient, d = state.theta[0], state.evaluation.gradient[0], len(held.sizes)
    inside, total, border = _inside(state, _INSIDE, _FRESH), float(at.bends.sum()), np.zeros(0)
    if held.free and not total > 0:
        return replace(state, verdict=Status.UNPROVEN)
    problem.source.count_pass()
    part = held.part(inside)
    scaled = part * np.sqrt(at.bends)[:, None]
    hessian = scaled.T @ scaled
    hessian.flat[:: len(inside) + 1] += held.quadratic[inside]
    slope, lowered, c = gradient[inside], 0.0, 0.0
    if held.free:
        border = at.bends @ part
        hessian -= np.outer(border / total, border)
        slope = slope - gradient[d] / total * border
        lowered = 0.5 * float(gradient[d]) ** 2 / total
    start, absolute = before[inside], held.absolute[inside]
    end, initial, anywhere = start.copy(), slope.copy(), np.full(len(inside), np.inf)
    gained = min(state.gained, state.value)
    left = _LEFT * gained if gained > _LEFT_NEAR * target else _LEAST_LEFT * target
    settled = minimise_quadratic(hessian, slope, end, absolute, -anywhere, anywhere, left)
    change = end - start
    lowered -= 0.5 * float((initial + slope) @ change) + float(absolute @ (np.abs(end) - np.abs(start)))
    step, z = np.zeros(len(before)), part @ change
    step[inside] = change
    if held.free:
        step[d] = c = -(float(gradient[d]) + float(border @ change)) / total
    z = z + c
    lower = state.lower
    if lowered <= _NEAR * target:
        steepest = at.steepest + float(np.abs(z).max(initial=0.0))
        lower = max(lower, _lower(problem, held, at.slopes, at.bends, steepest, z))
    vain = state.vain + (lowered <= _NOTHING * target or not settled)
    if vain > _IN_VAIN:
        return replace(state, lower=lower, verdict=Status.UNPROVEN)
    slope_along, t = float(gradient @ step), 1.0
    for _ in range(_HALVINGS):
        moved = _state(problem, held, before + t * step)
        promise = t * slope_along + float(held.absolute @ (np.abs(moved.theta[0, :d]) - np.abs(before[:d])))
        if moved.value <= state.value + 1e-4 * promise + 4.0 * EPS * abs(state.value):
            return replace(moved, lower=lower, vain=vain, steps=state.steps + 1, hard=True, gained=lowered)
        t *= 0.5
    return replace(state, lower=lower, verdict=Status.UNPROVEN)


def _inside(state: ProxState, least: float, fresh: int) -> NDArray[np.intp]:
    """The columns that may move: those that are used, and at most `fresh` others, or as many again as are used.

    Others have slopes of at least a share of l_j.
    """
    d = len(state.held.sizes)
    used = state.theta[0, :d] != 0
    steep = np.abs(state.evaluation.gradient[0, :d]) / state.held.absolute
    inside, room = used | (steep >= least), max(fresh, int(used.sum()))
    others = np.flatnonzero(inside & ~used)
    if len(others) > room:
        inside[others[np.argpartition(-steep[others], room)[room:]]] = False
    return np.flatnonzero(inside)


def _left_out(state: ProxState, swept: NDArray[np.intp]) -> bool:
    """Whether a column that was not swept has a slope so far beyond l_j that it is no use to look for a proof."""
    beyond = np.abs(state.evaluation.gradient[0, : len(state.held.sizes)]) > _BEYOND * state.held.absolute
    beyond[swept] = False
    return bool(beyond.any())


SMALL_PROX = Method("prox_newton", frozenset({"gradient", "hessian", "coordinates", "held"}), _init, _step, _bound)
