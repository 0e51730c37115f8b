"""Newton's method for a logistic regression with fewer rows than columns: everything happens in the Gram matrix of the rows.

    w = Q⁻¹Xᵀα,   K = XQ⁻¹Xᵀ (n, n),   η = o + Kα + b,   F = Σ s ℓ(η) + ½ αᵀKα,     Q = diag q

With r = −s a (the slopes), W = diag(sh), v = α − r the gradient by w is Xᵀv, and the Newton step solves

    Δα = −v + W^½(β − Δb γ),   Bβ = W^½Kv,   Bγ = W^½1,   B = I + W^½KW^½,   Δb = (1ᵀW^½β + 1ᵀr) / 1ᵀW^½γ

so that a step costs one factor of an (n, n) matrix and no look at X. The gap of rows.py is ½uᵀKu + cβ with u = v − cW1,
c and β as there. At the end w is multiplied out, and the proof is computed from X at just that point.

Reference: Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, algorithm 3.1.

**Complexity** O(n²d) once, O(n³) per step. **Passes over the data** one for K, two for the proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from separatrix.data.block import Float
from separatrix.data.source import in_parallel, ordered
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.rounding import EPS
from separatrix.result import Status
from separatrix.solvers.at_hand.rows import Losses, RowsAtHand, proof
from separatrix.solvers.bounds import Bound, least_bound
from separatrix.solvers.method import Budget, Method, Start, State

_HALVINGS = 40
# Entries of X that are multiplied at once: columns of them stay in cache.
_ENTRIES = 1 << 18
# Steps cost little beside K, and the last one squares the error: the point is so much better than asked for.
_BETTER = 1e-3


@dataclass(frozen=True)
class _Gram:
    """X as it is stored, 1/q (d,), and K."""

    rows: RowsAtHand
    X: NDArray[Any]
    ones: bool
    inverse: Float
    K: Float

    @classmethod
    def of(cls, problem: LinearProblem) -> _Gram:
        rows = RowsAtHand.of(problem)
        X, ones = rows.block.plain_rows() or (rows.block.dense()[:, : len(problem.scale)], problem.fit_intercept)
        inverse = 1.0 / problem.objective.penalty.quadratic[0, : X.shape[1]]
        problem.source.count_pass()
        gram = cls(rows, X, ones, inverse, np.zeros((len(X), len(X))))
        even = bool((inverse == inverse[0]).all())

        def of_columns(start: int) -> Any:
            part = gram.part(start)
            part = part if even else part * np.sqrt(inverse[start : start + part.shape[1]])
            return part @ part.T

        with np.errstate(invalid="ignore", over="ignore"):  # found here, and reported by column
            for product in ordered(of_columns, gram.starts):
                gram.K.__iadd__(product)
            if even:
                gram.K.__imul__(inverse[0])
        problem.source.check_finite(gram.K.diagonal())
        return gram

    @property
    def starts(self) -> range:
        """Where runs of columns begin that are multiplied at once."""
        return range(0, self.X.shape[1], max(64, _ENTRIES // len(self.X)))

    def part(self, start: int) -> Float:
        """A run of columns."""
        part = self.X[:, start : start + self.starts.step]
        return part.astype(np.float64, copy=False)

    def transposed(self, v: Float) -> Float:
        """(2, d) v X of a matrix v (2, n)."""
        product = np.empty((len(v), self.X.shape[1]))

        def of_columns(start: int) -> None:
            np.matmul(v, self.part(start), out=product[:, start : start + self.starts.step])

        in_parallel(of_columns, self.starts)
        return product

    def times(self, w: Float) -> Float:
        """(n,) Xw."""
        total = np.zeros(len(self.X))
        for part in ordered(lambda start: self.part(start) @ w[start : start + self.starts.step], self.starts):
            total += part
        return total

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


def _state(gram: _Gram, alpha: Float, b: float, products: Float) -> RowState:
    at = gram.rows.losses(gram.with_offset(products + b))
    v = alpha + at.slopes
    gradient = np.append(gram.K @ v, at.slopes.sum() if gram.ones else 0.0)
    value = at.value + 0.5 * float(alpha @ products)
    evaluation = Evaluation(value, at.value, gradient[None, :], at.residual, gram.rows.total, steepest=at.steepest)
    return RowState(np.append(alpha, b)[None, :], evaluation, gram, at, products)


def _init(problem: LinearProblem, start: Start, budget: Budget) -> RowState:
    """From w = 0 with the intercept of the start: coefficients that are not combinations of the rows are of no use."""
    gram = _Gram.of(problem)
    b = float(start.theta[0, -1]) if gram.ones else 0.0
    return _state(gram, np.zeros(len(gram.K)), b, np.zeros(len(gram.K)))


def _bound(problem: LinearProblem, state: RowState, budget: Budget) -> RowState:
    at, alpha, gradient = state.at, state.theta[0, :-1], state.evaluation.gradient[0]
    u, bent = alpha + at.slopes, 0.0
    product = gradient[:-1]
    if state.gram.ones:
        total = float(at.bends.sum())
        shift = gradient[-1] / total if total > 0 else np.inf
        if not abs(shift) < 1.0:
            return replace(state, bound=state.trivial)
        bent = 1.01 * abs(shift * gradient[-1])
        u = u - shift * at.bends
        product = state.gram.K @ u
    gap = (0.5 * max(0.0, float(u @ product)) + bent) / (_BETTER if budget.left > 0 else 1.0)
    return replace(state, bound=least_bound(state.trivial, Bound(gap, method="dual point")))


def _step(problem: LinearProblem, state: RowState, budget: Budget) -> RowState:
    gram, at, K = state.gram, state.at, state.gram.K
    alpha, b, gradient = state.theta[0, :-1], float(state.theta[0, -1]), state.evaluation.gradient[0]
    roots = np.sqrt(at.bends)
    matrix = K * roots
    matrix *= roots[:, None]
    matrix.flat[:: len(matrix) + 1] += 1.0
    factor, failed = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        return replace(state, verdict=Status.UNPROVEN)
    sides = np.stack([roots * gradient[:-1], roots], axis=1)
    solved = lapack.dpotrs(factor, sides, lower=1)[0] * roots[:, None]
    up = 0.0
    if gram.ones:
        up = (float(solved[:, 0].sum()) - gradient[-1]) / max(float(solved[:, 1].sum()), np.finfo(np.float64).tiny)
    step = solved[:, 0] - up * solved[:, 1] - (alpha + at.slopes)
    along = K @ step
    promise = float((alpha + at.slopes) @ along) + up * gradient[-1]
    t = 1.0
    for _ in range(_HALVINGS):
        moved = _state(gram, alpha + t * step, b + t * up, state.products + t * along)
        if moved.value <= state.value + 1e-4 * t * promise + 4.0 * EPS * abs(state.value):
            return moved if moved.value < state.value else replace(state, verdict=Status.UNPROVEN)
        t *= 0.5
    return replace(state, verdict=Status.UNPROVEN)


def _settle(problem: LinearProblem, state: RowState) -> State:
    """The point in the columns' coordinates, and what is true of just it."""
    gram = state.gram
    d, quadratic = gram.X.shape[1], problem.objective.penalty.quadratic[0]
    theta = np.empty(d + gram.ones)
    theta[:d] = gram.transposed(state.theta[:, :-1])[0] * gram.inverse
    if gram.ones:
        theta[d] = state.theta[0, -1]
    problem.source.count_pass()
    problem.source.count_pass()
    at = gram.rows.losses(gram.with_offset(gram.times(theta[:d]) + (theta[d] if gram.ones else 0.0)))
    sums = gram.transposed(np.stack([at.slopes, at.bends]))
    gradient = np.append(sums[0], at.slopes.sum()) if gram.ones else sums[0]
    pull = quadratic[: len(theta)] * theta
    gradient = gradient + pull
    value = at.value + 0.5 * float(pull @ theta)
    weights = np.ones(len(gram.K)) if gram.rows.weights is None else gram.rows.weights
    size = float(weights @ gram.K.diagonal())
    border = sums[1] if gram.ones else None
    gap = proof(gram.rows, at, value, gradient[:d], border, quadratic[:d], size)
    evaluation = Evaluation(value, at.value, gradient[None, :], at.residual, gram.rows.total, steepest=at.steepest)
    return State(theta[None, :], evaluation, bound=gap)


ROW_NEWTON = Method(
    "newton", frozenset({"gradient", "hessian", "smooth", "held"}), _init, _step, _bound, settle=_settle
)
