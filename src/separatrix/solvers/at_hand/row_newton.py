"""Newton's method for a logistic regression with fewer rows than columns: everything happens in the Gram matrix of the rows.

    w = Q⁻¹Xᵀα,   K = XQ⁻¹Xᵀ (n, n),   η = o + Kα + b,   F = Σ s ℓ(η) + ½ αᵀKα,     Q = diag q

With r = −s a (the slopes), W = diag(sh), v = α − r the gradient by w is Xᵀv, and the Newton step solves

    Δα = −v + W^½(β − Δb γ),   Bβ = W^½Kv,   Bγ = W^½1,   B = I + W^½KW^½,   Δb = (1ᵀW^½β + 1ᵀr) / 1ᵀW^½γ

so that a step costs one factor of an (n, n) matrix and no look at X. The factor is of single precision where that will do: it
turns a step a little, and neither F, the gradient nor the gap depend on it. The gap of rows.py is ½uᵀKu + cβ with u = v − cW1,
c and β as there. At the end w is multiplied out, and the proof is computed from X at just that point.

Reference: Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, algorithm 3.1.

**Complexity** O(n²d) once, O(n³) per step. **Passes over the data** one for K, two for the proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from separatrix.data.block import Float
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.rounding import EPS
from separatrix.result import Status
from separatrix.solvers.at_hand.row_gram import combined_rows, row_gram, row_scores
from separatrix.solvers.at_hand.rows import Losses, RowsAtHand, proof
from separatrix.solvers.bounds import Bound, least_bound
from separatrix.solvers.method import Budget, Method, Start, State

_HALVINGS = 40
# From so many rows on a K in single precision, and a factor of it, is worth a try, with so many looks at what it leaves.
_ROWS_IN_SINGLE, _LOOKS = 160, 3
# Steps cost little beside K, and the last one squares the error: the point is so much better than asked for.
_BETTER = 1e-3
# The largest entry of W^½KW^½ up to which a factor of B in single precision has digits enough for a step.
_FIRM = 1e4


@dataclass(frozen=True)
class _Gram:
    """X as it is stored, 1/q (d,), and K; `single` where K has products in single precision."""

    rows: RowsAtHand
    X: NDArray[Any]
    ones: bool
    inverse: Float
    K: Float
    single: bool

    @classmethod
    def of(cls, problem: LinearProblem, single: bool) -> _Gram:
        rows = RowsAtHand.of(problem)
        X, ones = rows.block.plain_rows(any_order=True) or (
            rows.block.dense()[:, : len(problem.scale)],
            problem.fit_intercept,
        )
        inverse = 1.0 / problem.objective.penalty.quadratic[0, : X.shape[1]]
        problem.source.count_pass()
        even = bool((inverse == inverse[0]).all())

        def fill(at: slice, part: NDArray[Any]) -> None:
            np.multiply(X[:, at], 1.0 if even else np.sqrt(inverse[at]), out=part, casting="same_kind")

        with np.errstate(invalid="ignore", over="ignore"):  # found here, and reported by column
            K = row_gram(X, np.dtype(np.float32 if single else np.float64), fill)
            if even:
                K *= inverse[0]
        if single and not np.isfinite(K.diagonal()).all():
            return cls.of(problem, single=False)
        problem.source.check_finite(K.diagonal())
        return cls(rows, X, ones, inverse, K, single)

    @cached_property
    def narrow(self) -> NDArray[np.float32]:
        """K in single precision, for the matrices of steps."""
        with np.errstate(over="ignore"):
            return self.K.astype(np.float32)

    def with_offset(self, scores: Float) -> Float:
        """The scores with what is added to them."""
        return scores if self.rows.offset is None else scores + self.rows.offset


@dataclass(frozen=True)
class RowState(State):
    """θ is (α, b), and the gradient that by α and b, until the end."""

    gram: _Gram
    at: Losses
    products: Float
    """(n,) Kα."""
    w: Float | None = None
    """(d,) Q⁻¹Xᵀα, where the products are those with X itself."""
    looks: int = 0
    """How often they were, of a K in single precision."""


def _state(gram: _Gram, alpha: Float, b: float, products: Float, **more: Any) -> RowState:
    at = gram.rows.losses(gram.with_offset(products + b))
    v = alpha + at.slopes
    gradient = np.append(gram.K @ v, at.slopes.sum() if gram.ones else 0.0)
    value = at.value + 0.5 * float(alpha @ products)
    evaluation = Evaluation(value, at.value, gradient[None, :], at.residual, gram.rows.total, steepest=at.steepest)
    return RowState(np.append(alpha, b)[None, :], evaluation, gram, at, products, **more)


def _init(problem: LinearProblem, start: Start, budget: Budget) -> RowState:
    """From w = 0 with the intercept of the start: coefficients that are not combinations of the rows are of no use."""
    rows = problem.source.n_rows
    gram = _Gram.of(problem, single=rows is not None and rows >= _ROWS_IN_SINGLE)
    b = float(start.theta[0, -1]) if gram.ones else 0.0
    return _state(gram, np.zeros(len(gram.K)), b, np.zeros(len(gram.K)))


def _bound(problem: LinearProblem, state: RowState, budget: Budget) -> RowState:
    """The gap; before it is believed of a K in single precision the products are multiplied out."""
    share = _BETTER if budget.left > 0 else 1.0
    gap = _gap(state) / share
    if state.gram.single and state.w is None and gap <= budget.target:
        state = _looked_at(problem, state)
        gap = _gap(state) / share
    return replace(state, bound=least_bound(state.trivial, Bound(gap, method="dual point")))


def _gap(state: RowState) -> float:
    at, alpha, gradient = state.at, state.theta[0, :-1], state.evaluation.gradient[0]
    u, bent = alpha + at.slopes, 0.0
    product = gradient[:-1]
    if state.gram.ones:
        total = float(at.bends.sum())
        shift = gradient[-1] / total if total > 0 else np.inf
        if not abs(shift) < 1.0:
            return np.inf
        bent = 1.01 * abs(shift * gradient[-1])
        u = u - shift * at.bends
        product = state.gram.K @ u
    return 0.5 * max(0.0, float(u @ product)) + bent


def _looked_at(problem: LinearProblem, state: RowState) -> RowState:
    """The same point with its products from X; steps from there only add the rounding of what they add."""
    gram, alpha, b, looks = state.gram, state.theta[0, :-1], float(state.theta[0, -1]), state.looks + 1
    if looks > _LOOKS:
        return _stuck(problem, state)
    w = combined_rows(alpha[None, :], gram.X)[0] * gram.inverse
    problem.source.count_pass()
    problem.source.count_pass()
    return _state(gram, alpha, b, row_scores(gram.X, w), w=w, looks=looks)


def _stuck(problem: LinearProblem, state: RowState) -> RowState:
    """The same point with a K in double precision, where it was in single; else nothing helps."""
    if not state.gram.single:
        return replace(state, verdict=Status.UNPROVEN)
    gram, alpha = _Gram.of(problem, single=False), state.theta[0, :-1]
    return _state(gram, alpha, float(state.theta[0, -1]), gram.K @ alpha)


def _step(problem: LinearProblem, state: RowState, budget: Budget) -> RowState:
    moved = _stepped(state, single=True) if len(state.gram.K) >= _ROWS_IN_SINGLE else None
    if moved is None:
        moved = _stepped(state, single=False)
    return _stuck(problem, state) if moved is None else moved


def _solved(gram: _Gram, roots: Float, sides: Float, single: bool) -> Float | None:
    """R(I + RKR)⁻¹ times the sides; ``None`` where rounding leaves no factor, or less than it takes for a step."""
    held = roots.astype(np.float32) if single else roots
    with np.errstate(over="ignore", invalid="ignore"):  # looked at below
        matrix = (gram.narrow if single else gram.K) * held
        matrix *= held[:, None]
    diagonal = matrix.reshape(-1)[:: len(matrix) + 1]
    if single and not diagonal.max(initial=0.0) < _FIRM:
        return None
    diagonal += 1.0
    factorise, solve = (lapack.spotrf, lapack.spotrs) if single else (lapack.dpotrf, lapack.dpotrs)
    factor, failed = factorise(matrix.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        return None
    return np.asarray(solve(factor, sides, lower=1)[0]) * roots[:, None]


def _stepped(state: RowState, single: bool) -> RowState | None:
    """The next point, by a step whose matrix is factored in single or double precision; ``None`` where F does not fall."""
    gram, at, K = state.gram, state.at, state.gram.K
    alpha, b, gradient = state.theta[0, :-1], float(state.theta[0, -1]), state.evaluation.gradient[0]
    roots = np.sqrt(at.bends)
    solved = _solved(gram, roots, np.stack([roots * gradient[:-1], roots], axis=1), single)
    if solved is None:
        return None
    up = 0.0
    if gram.ones:
        up = (float(solved[:, 0].sum()) - gradient[-1]) / max(float(solved[:, 1].sum()), np.finfo(np.float64).tiny)
    step = solved[:, 0] - up * solved[:, 1] - (alpha + at.slopes)
    along = K @ step
    promise = float((alpha + at.slopes) @ along) + up * gradient[-1]
    t = 1.0
    for _ in range(_HALVINGS):
        moved = _state(gram, alpha + t * step, b + t * up, state.products + t * along, looks=state.looks)
        if moved.value <= state.value + 1e-4 * t * promise + 4.0 * EPS * abs(state.value):
            return moved if moved.value < state.value else None
        t *= 0.5
    return None


def _settle(problem: LinearProblem, state: RowState) -> State:
    """The point in the columns' coordinates, and what is true of just it."""
    gram, quadratic = state.gram, problem.objective.penalty.quadratic[0]
    if state.w is None:
        state = _looked_at(problem, replace(state, looks=0))
    assert state.w is not None
    at, d = state.at, len(state.w)
    theta = np.append(state.w, state.theta[0, -1]) if gram.ones else state.w
    problem.source.count_pass()
    sums = combined_rows(np.stack([at.slopes, at.bends]), gram.X)
    gradient = np.append(sums[0], at.slopes.sum()) if gram.ones else sums[0]
    pull = quadratic[: len(theta)] * theta
    gradient = gradient + pull
    value = at.value + 0.5 * float(pull @ theta)
    weights = np.ones(len(gram.K)) if gram.rows.weights is None else gram.rows.weights
    size = (1.01 if gram.single else 1.0) * float(weights @ gram.K.diagonal())
    border = sums[1] if gram.ones else None
    gap = proof(gram.rows, at, value, gradient[:d], border, quadratic[:d], size)
    evaluation = Evaluation(value, at.value, gradient[None, :], at.residual, gram.rows.total, steepest=at.steepest)
    return State(theta[None, :], evaluation, bound=gap)


ROW_NEWTON = Method(
    "newton", frozenset({"gradient", "hessian", "smooth", "held"}), _init, _step, _bound, settle=_settle
)
