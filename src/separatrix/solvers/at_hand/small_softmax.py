"""Newton's method for a softmax regression with few rows, columns and classes: all of it in a few products of matrices.

    F(W, b) = Σ s (log Σ_k e^{η_k} − η_y) + ½ Σ_kj q_kj w_kj²,      η = o + Wx + b,   q > 0,   the intercepts b are free
    H = Σ s (diag π − ππᵀ) ⊗ aaᵀ + diag q,      π the posteriors,   a = (x, 1)

The same steps as in newton.py, of which one costs there what ten cost here. Numbers lie class by class, (K, n): sums over
classes run along the rows. The second term of H is one product, GGᵀ with the matrix G = √s π ⊗ a; the blocks of the first are
another, with √s a; both for all classes but the last, since blocks of one row add up to nothing. Adding one number to all
intercepts changes nothing: H is filled in that direction, which no gradient has a part in. The proof is the closed form of
bounds.py. H is of single precision where that will do: it turns a step a little, and neither F, the gradient nor the gap
depend on it. Where rounding stands in the way of a step or of the proof the method gives up, and another goes on.

**Complexity** O(nK²p² + K³p³) per step. **Passes over the data** one per step, two for the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from separatrix.data.block import Float
from separatrix.objectives.hessian_blocks import blocks_of_products
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.losses import Softmax
from separatrix.objectives.rounding import EPS, ROUNDING
from separatrix.result import Status
from separatrix.solvers.at_hand.row_lines import lines_pay
from separatrix.solvers.bounds import Bound, least_bound, shift_gap
from separatrix.solvers.method import Budget, Method, Start, State

_HALVINGS = 40
# A point whose gap is below this share of the target needs no further step.
_FAR_BELOW = 1e-3
_LAST_DIGITS = 1e-7
# Numbers of G that stay in cache while they are multiplied.
_ENTRIES = 1 << 17
# From so many coefficients on a Hessian in single precision is worth a try, up to this ratio of its diagonal and the penalty.
_IN_SINGLE, _FIRM = 96, 1e4
# Up to so many columns a compiled loop along them is faster than products of matrices.
_FEW_COLUMNS, _FEW_COEFFICIENTS = 64, 256
# Up to so many coefficients the Hessian is summed with the gradient: the last one, which no step needs, costs less than looks.
_AT_ONCE = 96
_NOTHING, _NO_MATRIX = np.empty(0), np.empty((0, 0))


@dataclass(frozen=True)
class SoftmaxTable:
    """(p, n) the rows and a 1 each as columns, where in (K, n) their classes are, what they weigh, and (K, p) q."""

    columns: Float
    own: NDArray[np.intp]
    weights: Float | None
    offset: Float | None
    total: float
    quadratic: Float
    held: int
    squares: Float
    """(p,) Σ s x_j²."""
    codes: NDArray[Any] | None
    """The classes of the rows, where a compiled loop is there for them."""

    @classmethod
    def of(cls, problem: LinearProblem) -> SoftmaxTable:
        block = problem.source.one_block()
        assert block is not None, "the rows are not at hand"
        rows, offset = problem.objective.counted(block)
        columns, n = np.ascontiguousarray(rows.dense().T), rows.n
        own = rows.codes.astype(np.intp) * n + np.arange(n)
        total = float(n) if rows.weights is None else float(rows.weights.sum())
        squares = np.square(columns)
        squares = squares.sum(axis=1) if rows.weights is None else squares @ rows.weights
        quadratic = problem.objective.penalty.quadratic
        shifts = None if offset is None else np.ascontiguousarray(offset.T)
        pay = len(columns) <= _FEW_COLUMNS and lines_pay(n, quadratic.size)
        codes = rows.codes if pay else None
        return cls(columns, own, rows.weights, shifts, total, quadratic, len(problem.scale), squares, codes)

    def weighed(self, values: Float) -> Float:
        """The values (K, n) or (n,) times the weights of the rows."""
        return values if self.weights is None else values * self.weights


@dataclass(frozen=True)
class SoftmaxState(State):
    """(K, n) posteriors at the point, and the last factor of a Hessian."""

    table: SoftmaxTable
    posteriors: Float
    factor: Any = None
    hessian: Float | None = None
    """(Kp, Kp) Σ s ∇²ℓ, where it was summed with the rest."""

    @cached_property
    def gap(self) -> Bound:
        """The closed form of bounds.py."""
        table, held = self.table, self.table.held
        quadratic, squares = table.quadratic[:, :held], table.squares[:held]
        if held == self.theta.shape[1]:
            left, error = self.evaluation.gradient, ROUNDING * np.sqrt(self.evaluation.residual * squares)
            with np.errstate(over="ignore"):  # columns of extreme size: no bound
                gap = 0.5 * float((np.square(np.abs(left) + error) / quadratic).sum())
            return Bound(gap + ROUNDING * abs(self.value), method="strong convexity of the penalty")
        if self.hessian is not None:
            K, p = self.theta.shape
            beside = self.hessian.reshape(K, p, K, p)[..., held]  # the columns of the intercepts
            # A block on the diagonal is a sum of others, so that an entry has two roundings.
            return shift_gap(
                quadratic,
                squares,
                self.evaluation,
                beside[:, held],
                lambda shift: beside[:, :held] @ shift,
                2.0 * ROUNDING,
            )
        posteriors = self.posteriors
        weighed = table.weighed(posteriors)
        curvature = np.diag(weighed.sum(axis=1)) - weighed @ posteriors.T

        def product(shift: Float) -> Float:
            along = weighed * (shift[:, None] - shift @ posteriors)
            moved: Float = (along @ table.columns.T)[:, :held]
            return moved

        return shift_gap(quadratic, squares, self.evaluation, curvature, product)


def small_softmax_offered(problem: LinearProblem) -> bool:
    """Whether a problem is of this kind: a softmax, a quadratic penalty about 0 of everything but free intercepts."""
    objective, d = problem.objective, len(problem.scale)
    loss, penalty = objective.loss, objective.penalty
    plain = type(loss) is Softmax and loss.baseline is None and penalty.smooth and penalty.matrix is None
    held = bool((penalty.quadratic[:, :d] > 0).all()) and not penalty.mean.any()
    return plain and held and penalty.quadratic.size > 0 and objective.free_intercept == problem.fit_intercept


def _looked(table: SoftmaxTable, theta: Float) -> tuple[float, Float, float, float, Float]:
    """Σ s ℓ, its gradient, Σ s‖∇ℓ‖², max |η| and the posteriors."""
    scores = theta @ table.columns
    if table.offset is not None:
        scores += table.offset
    steepest = max(float(scores.max()), -float(scores.min()))
    scores -= scores.max(axis=0)
    right = scores.ravel()[table.own]
    parts = np.exp(scores, out=scores)
    mine = parts.ravel()[table.own]
    parts.ravel()[table.own] = 0.0
    others = parts.sum(axis=0)
    # One of `others` and `mine` is large, or `mine` is exactly 1: nothing cancels, and small losses keep their digits.
    losses = table.weighed(np.log1p(others + (mine - 1.0)) - right)
    parts /= others + mine
    posteriors = parts.copy()
    posteriors.ravel()[table.own] = mine / (others + mine)
    parts.ravel()[table.own] = -others / (others + mine)
    slopes = table.weighed(parts)
    return float(losses.sum()), slopes @ table.columns.T, float(np.vdot(slopes, parts)), steepest, posteriors


def _looked_along(
    table: SoftmaxTable, theta: Float, products: Float | None = None
) -> tuple[float, Float, float, float, Float]:
    """The same by the compiled loop; `products` takes what blocks_of_products wants."""
    from separatrix.kernels.lines.softmax_lines import softmax_lines

    weights = _NOTHING if table.weights is None else table.weights
    offset = _NO_MATRIX if table.offset is None else np.ascontiguousarray(table.offset.T)
    K, n = len(theta), table.columns.shape[1]
    gradient, posteriors, rows = np.zeros(theta.shape), np.empty((K, n)), table.columns.T
    products, bend = (_NO_MATRIX, _NO_MATRIX) if products is None else (products, np.zeros((K, K)))
    loss, residual, steepest = softmax_lines(
        rows, False, table.codes, weights, offset, theta, gradient, products, bend, posteriors.T
    )
    return loss, gradient, residual, steepest, posteriors


def softmax_state(
    problem: LinearProblem, table: SoftmaxTable, theta: Float, factor: Any = None, *, curved: bool = False
) -> SoftmaxState:
    """The smooth part of F and its gradient at θ, with the Hessian if that is `curved` and cheap. One pass."""
    problem.source.count_pass()
    K, p = theta.shape
    products = _room(K * p) if curved and table.codes is not None and K * p <= _AT_ONCE else None
    with np.errstate(invalid="ignore", over="ignore"):  # found below, and reported by column
        if table.codes is None:
            loss, slopes, residual, steepest, posteriors = _looked(table, theta)
        else:
            loss, slopes, residual, steepest, posteriors = _looked_along(table, theta, products)
        pull = table.quadratic * theta
        gradient, value = slopes + pull, loss + 0.5 * float(np.vdot(pull, theta))
    problem.source.check_finite(np.asarray(value), gradient)
    evaluation = Evaluation(value, loss, gradient, residual, table.total, steepest=steepest)
    hessian = None if products is None else _assembled(products, K, p)
    return SoftmaxState(theta, evaluation, table, posteriors, factor, hessian)


def _init(problem: LinearProblem, start: Start, budget: Budget) -> SoftmaxState:
    return softmax_state(problem, SoftmaxTable.of(problem), start.theta.copy(), curved=True)


def _bound(problem: LinearProblem, state: SoftmaxState, budget: Budget) -> SoftmaxState:
    return replace(state, bound=least_bound(state.trivial, state.gap))


def _hessian_along(table: SoftmaxTable, theta: Float) -> Float:
    """Σ s ∇²ℓ, half of it summed in registers."""
    K, p = theta.shape
    products = _room(K * p)
    _looked_along(table, theta, products)
    return _assembled(products, K, p)


def _room(size: int) -> Float:
    """Zeros for the sums of the compiled loop, whose side is filled up to a multiple of four."""
    return np.zeros((side := -(-size // 4) * 4, side))


def _assembled(products: Float, K: int, p: int) -> Float:
    """Σ s ∇²ℓ from them."""
    blocks = blocks_of_products(products[: K * p, : K * p], K)
    return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3)).reshape(K * p, K * p)


def _hessian(state: SoftmaxState, dtype: Any) -> Any:
    """The same by products of matrices."""
    table = state.table
    all_columns, posteriors = table.columns.astype(dtype, copy=False), state.posteriors.astype(dtype, copy=False)
    (K, n), p = posteriors.shape, len(all_columns)
    first = (K - 1) * p
    products, blocks = np.zeros((first, first), dtype), np.zeros((first, p), dtype)
    for start in range(0, n, width := max(64, _ENTRIES // (K * p))):
        columns = all_columns[:, start : start + width]
        if table.weights is not None:
            columns = columns * np.sqrt(table.weights[start : start + width]).astype(dtype, copy=False)
        G = (posteriors[:-1, None, start : start + width] * columns).reshape(first, -1)
        products += G @ G.T
        blocks += G @ columns.T
    hessian = np.zeros((K * p, K * p), dtype)
    hessian[:first, :first] -= products
    for at in range(0, first, p):
        hessian[at : at + p, at : at + p] += blocks[at : at + p]
    # The blocks of a row of them add up to nothing, and so do those of a column.
    last = hessian[:first, :first].reshape(first, K - 1, p).sum(axis=1)
    hessian[:first, first:] = -last
    hessian[first:, first:] = last.reshape(K - 1, p, p).sum(axis=0)
    return hessian


def _factor(state: SoftmaxState, single: bool = False) -> Any:
    """Cholesky's factor of the Hessian at the point, from its upper half; ``None`` where rounding leaves none.

    In single precision also ``None`` where a factor would have too few digits for a step.
    """
    table, (K, p) = state.table, state.theta.shape
    few = table.codes is not None and K * p <= _FEW_COEFFICIENTS
    if state.hessian is not None:
        hessian = state.hessian.copy()
    else:
        hessian = _hessian_along(table, state.theta) if few else _hessian(state, np.float32 if single else np.float64)
    diagonal = hessian.reshape(-1)[:: K * p + 1]
    if single and not (diagonal.reshape(K, p) <= _FIRM * table.quadratic)[:, : table.held].all():
        return None
    diagonal += table.quadratic.ravel()
    if table.held < p:
        intercepts = slice(table.held, None, p)
        hessian[intercepts, intercepts] += hessian[intercepts, intercepts].trace() / K
    factorise = lapack.spotrf if hessian.dtype == np.float32 else lapack.dpotrf
    factor, failed = factorise(hessian.T, lower=1, clean=0, overwrite_a=1)
    return None if failed else factor


def _solved(factor: Any, gradient: Float) -> Float:
    solve = lapack.spotrs if factor.dtype == np.float32 else lapack.dpotrs
    solved: Float = solve(factor, gradient.ravel(), lower=1)[0].reshape(gradient.shape).astype(np.float64, copy=False)
    return solved


def _step(problem: LinearProblem, state: SoftmaxState, budget: Budget) -> SoftmaxState:
    moved = _stepped(problem, state, single=True) if state.theta.size >= _IN_SINGLE else None
    if moved is None:
        moved = _stepped(problem, state, single=False)
    return replace(state, verdict=Status.UNPROVEN) if moved is None else moved


def _stepped(problem: LinearProblem, state: SoftmaxState, single: bool) -> SoftmaxState | None:
    """The next point, by a step of a Hessian in single or double precision; ``None`` where F does not fall."""
    factor, gradient = _factor(state, single), state.evaluation.gradient
    if factor is None:
        return None
    step = -_solved(factor, gradient)
    promise, t = float(np.vdot(gradient, step)), 1.0
    for _ in range(_HALVINGS):
        moved = softmax_state(problem, state.table, state.theta + t * step, factor, curved=True)
        if moved.value <= state.value + 1e-4 * t * promise + 4.0 * EPS * abs(state.value):
            if moved.value >= state.value and not moved.gap.gap < 0.5 * state.gap.gap:  # rounding is all that is left
                break
            return moved
        t *= 0.5
    return None


def _polish(problem: LinearProblem, state: SoftmaxState, budget: Budget) -> SoftmaxState:
    """A last step with the last factor, or a full one where the last digits are asked for: see small_newton.py."""
    asked = budget.tol <= _LAST_DIGITS
    factor = _factor(state) if asked else state.factor
    if factor is None or (not asked and state.bound.gap <= _FAR_BELOW * budget.target):
        return state
    gradient = state.evaluation.gradient
    step = -_solved(factor, gradient)
    moved = _bound(problem, softmax_state(problem, state.table, state.theta + step, factor), budget)
    if not asked:
        return moved if moved.bound.gap < state.bound.gap else state
    # The bound may be all rounding already, while the gradient still falls.
    left = moved.evaluation.gradient
    nearer = float(np.vdot(left, _solved(factor, left))) < -0.5 * float(np.vdot(gradient, step))
    return moved if nearer and moved.bound.gap <= budget.target else state


SMALL_SOFTMAX = Method(
    "newton", frozenset({"gradient", "hessian", "smooth", "held"}), _init, _step, _bound, polish=_polish
)
