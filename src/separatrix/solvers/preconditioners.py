"""Preconditioners of conjugate gradients on ∇²F: matrices near it that are cheap to take and to solve with.

    blocks      M_k = n/n_S Σ_{i ∈ S} sᵢ (∇²ℓᵢ)_kk xᵢxᵢᵀ + q_k          a block a score, of a sample of the rows
    diagonal    that of Σ s ∇²ℓ ⊗ xxᵀ + q, every row with the mean curvature; x centred beside a free intercept

No score notices one vector that is added to the coefficients of all classes of a softmax, but blocks take such a direction
for a curved one. So v minimises ½ Σ v_kᵀM_kv_k − rᵀv where Σ_k v_k = 0; along the direction the penalty counts:

    v_k = M_k⁻¹(r_k − μ) + r̄/q,    (Σ_k M_k⁻¹) μ = Σ_k M_k⁻¹ r_k,    r̄ the mean of the r_k

**Complexity** O(m n_S p² + m p³) to take blocks, O(m p²) to solve with them. **Passes over the data** one of the sample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla

from separatrix.data.block import Block, Float
from separatrix.data.source import Source, in_parallel
from separatrix.data.views import entries_below
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers.sample import Sample, column_squares

Solve = Callable[[Float], Float]

# Columns, and numbers in all blocks together, up to which blocks are formed; one block for all scores where each of its own
# would be more.
_BLOCK_COLUMNS = 3000
_BLOCK_ENTRIES = 1 << 24
# Dense entries that take as long as a stored one; products with ∇²F that one solution may cost at first.
_SPARSE, _DEAR = 4.0, 4.0
# Products that blocks may cost from the beginning; later as many as were spent.
_WORTH = 30.0
# Flops that pass while Python calls what makes a block, and a product with ∇²F.
_BLOCK_CALLS, _PRODUCT_CALLS = 2e5, 1e6
# Numbers, and multiplications, up to which blocks are made all at once: their calls would take longer one by one.
_STACK = 1 << 19
# Rows that know a block: some for each of its columns, more where classes are many and each has few of them.
_ROWS_PER_COLUMN = 10
_PIECE = 1 << 20
# From this many weights on, and up to so many columns, pairs of columns are formed once for all of them, a few rows at a time.
_MANY_WEIGHTS, _FEW_COLUMNS, _PAIR_ROWS = 16, 150, 128


# How far a free intercept may move in a step: beyond that the scores say nothing new.
_REACH = 30.0


def reins(evaluation: Evaluation, problem: LinearProblem) -> Float:
    """(m, 1) what is missing of the curvature of each free intercept that a step of it stays within reach; mostly zeros.

    Where a class has next to no probability, or all of it, in every row, F is flat there and its slope may be large.
    """
    if not problem.objective.free_intercept or evaluation.total_curvature is None:
        return np.zeros((problem.shape[0], min(1, problem.shape[1])))
    least = np.abs(evaluation.gradient[:, -1]) / _REACH
    return np.maximum(least - evaluation.total_curvature.diagonal(), 0.0)[:, None]


class Near(NamedTuple):
    """A matrix near ∇²F as it was taken at a point."""

    solve: Solve
    price: float
    """The products with ∇²F that taking another costs as much as."""
    effective: float
    """tr M⁻¹(M − q): about how many parameters the rows decide on, the penalty on the others."""


class Preconditioner(ABC):
    """What can be taken at the points of a problem."""

    squares: Float
    """(p,) Σ s x_j²."""
    centre: Float
    """(p − 1,) means of the columns beside a free intercept, perhaps of a sample; else none."""

    @abstractmethod
    def at(self, theta: Float, evaluation: Evaluation, spent: int) -> Near:
        """The matrix at a point, after `spent` products with ∇²F in all."""


def block_rows(shape: tuple[int, int]) -> int:
    """How many rows blocks are taken from."""
    m, p = shape
    return p * max(_ROWS_PER_COLUMN, m)


def preconditioner(problem: LinearProblem, sample: Sample | None) -> Preconditioner:
    """Blocks where these are affordable, the diagonal where not; from a sample of the rows where there is one."""
    p, penalty = problem.shape[1], problem.objective.penalty
    if p > _BLOCK_COLUMNS or problem.source.n_rows is None or penalty.matrix is not None:
        return Diagonal(problem)
    return _Blocks(problem, sample)


class _Blocks(Preconditioner):
    def __init__(self, problem: LinearProblem, sample: Sample | None) -> None:
        self._problem, self._share = problem, 1.0 if sample is None else sample.share
        self._rows = problem if sample is None else sample.problem
        m, p = problem.shape
        self._small = m * p * p <= _BLOCK_ENTRIES
        rows = self._share * (problem.source.n_rows or 0)
        # Flops of a block (and what scaling its rows costs), of its factor and inverse, over those of a product with ∇²F.
        block = p * (rows * (p + 100.0) + 2.0 * p**2) + _BLOCK_CALLS
        entries = _SPARSE * stored if (stored := entries_below(problem.source)) is not None else p * rows / self._share
        product = 4.0 * m * entries + _PRODUCT_CALLS
        self._price, self._solution = block / product, 2.0 * m * p**2 / product

    @cached_property
    def squares(self) -> Float:  # type: ignore[override]  # a pass, where they are asked for
        return column_squares(self._problem.source)

    @cached_property
    def centre(self) -> Float:  # type: ignore[override]  # a pass over the sample
        return _means(self._rows.source) if self._problem.objective.free_intercept else np.zeros(0)

    @cached_property
    def _diagonal(self) -> Diagonal:
        return Diagonal(self._problem)

    def at(self, theta: Float, evaluation: Evaluation, spent: int) -> Near:
        penalty, loss, m = self._problem.objective.penalty, self._problem.objective.loss, len(theta)
        even = bool((penalty.quadratic == penalty.quadratic[:1]).all())
        differ = bool((theta != theta[:1]).any())
        worth = max(_WORTH, spent)
        apart = self._small and m * self._price <= worth and (differ or not even)
        dear = self._solution > _DEAR * max(1.0, spent / _WORTH)
        if dear or self._price > worth or not (apart or even):
            return self._diagonal.at(theta, evaluation, spent)
        grams, every = self._grams(theta, apart), np.arange(theta.shape[1])
        grams[:, every, every] += penalty.quadratic[: len(grams)]
        grams[:, -1:, -1:] += reins(evaluation, self._problem)[: len(grams), :, None]
        inverses = _inverses(grams)
        decided = theta.size - float((penalty.quadratic * np.diagonal(inverses, axis1=1, axis2=2)).sum())
        price = len(inverses) * self._price
        if loss.gauge() is None or not even:
            return Near(lambda r: _times(inverses, r), price, decided)
        return Near(_without_gauge(inverses, penalty.quadratic[0]), price, decided)

    def _grams(self, theta: Float, apart: bool) -> Float:
        """(m, p, p) Σ s (∇²ℓ)_kk xxᵀ, of the sample scaled to all rows; (1, p, p) with the mean of the scores."""
        objective, source = self._rows.objective, self._rows.source

        def of_block(block: Block) -> Float:
            total: Float | None = None
            for piece in block.pieces(_PIECE):
                rows, own = objective.counted(piece)
                curvature = objective.loss.curvature(rows.codes, objective.scores(theta, rows, own))
                weights = np.ascontiguousarray(objective.loss.diagonal(curvature).T)
                weights = weights if apart else weights.mean(axis=0, keepdims=True)
                part = _weighted_grams(rows, weights if rows.weights is None else weights * rows.weights)
                total = part if total is None else np.add(total, part, out=total)
            assert total is not None
            return total

        tasks = None if source.n_rows is None else max(512, -(-source.n_rows // 8))
        return source.reduce(of_block, np.add, tasks) / self._share


def _weighted_grams(rows: Block, weights: Float) -> Float:
    """(m, p, p) Xᵀ diag(w_k) X: of few columns and many weights by one product with the pairs of columns."""
    m, p = len(weights), rows.shape[1]
    if m > 1 and m * rows.n * p <= _STACK:
        stack = np.sqrt(weights)[:, :, None] * rows.dense()
        return np.matmul(stack.transpose(0, 2, 1), stack)
    if m < _MANY_WEIGHTS or p > _FEW_COLUMNS:
        return np.stack([rows.gram(w) for w in weights])
    X, (one, other) = rows.dense(), np.triu_indices(p)
    full = np.empty((m, p, p))
    packed = np.zeros((m, len(one)))
    for at in range(0, rows.n, _PAIR_ROWS):
        part = X[at : at + _PAIR_ROWS]
        packed += weights[:, at : at + _PAIR_ROWS] @ (part[:, one] * part[:, other])
    full[:, one, other] = full[:, other, one] = packed
    return full


class Diagonal(Preconditioner):
    """The diagonal, every row with the mean curvature and columns centred beside a free intercept.

    In w and b + wᵀx̄ the Hessian has hardly an entry between slopes and intercept.
    """

    def __init__(self, problem: LinearProblem) -> None:
        source, self._problem, self._quadratic = problem.source, problem, problem.objective.penalty.quadratic
        self.squares, self.centre = column_squares(source), np.zeros(0)
        self._spread = self.squares
        if problem.objective.free_intercept:
            self.centre, total = _means(source), self.squares[-1]
            self._spread = np.append(np.maximum(self.squares[:-1] - total * np.square(self.centre), 0.0), total)

    def at(self, theta: Float, evaluation: Evaluation, spent: int) -> Near:
        assert evaluation.total_curvature is not None
        mean, centre = evaluation.total_curvature.diagonal()[:, None] / evaluation.total, self.centre
        diagonal = np.maximum(mean * self._spread + self._quadratic, np.finfo(np.float64).tiny)
        diagonal[:, -1:] += reins(evaluation, self._problem)
        effective = float((1.0 - self._quadratic / diagonal).sum())
        if not len(centre):
            return Near(lambda v: v / diagonal, 0.0, effective)

        def apply(v: Float) -> Float:
            moved = v.copy()
            moved[:, :-1] -= np.multiply.outer(v[:, -1], centre)
            moved /= diagonal
            moved[:, -1] -= moved[:, :-1] @ centre
            return moved

        return Near(apply, 0.0, effective)


def _means(source: Source) -> Float:
    """(p − 1,) means of the columns but the last, which are ones. One pass."""

    def of_block(block: Block) -> Float:
        counted = block.counted()
        return counted.rmatvec(counted.row_weights)

    sums = source.reduce(of_block, np.add)
    means: Float = sums[:-1] / sums[-1]
    return means


def _inverses(matrices: Float) -> Float:
    """(m, p, p) M⁻¹ of each; many small ones at once, unless one of them is singular."""
    if matrices.size * matrices.shape[1] <= _STACK and len(matrices) > 1:
        root = np.sqrt(np.maximum(np.diagonal(matrices, axis1=1, axis2=2), np.finfo(np.float64).tiny))
        units, every = root[:, :, None] * root[:, None, :], np.arange(root.shape[1])
        equal = matrices / units
        equal[:, every, every] = 1.0 + 1e-13 * len(every)
        try:
            halves = np.linalg.inv(np.linalg.cholesky(equal))
            return np.matmul(halves.transpose(0, 2, 1), halves) / units
        except np.linalg.LinAlgError:
            pass  # one by one, below
    inverses = np.empty_like(matrices)

    def invert(k: int) -> None:
        inverses[k] = _inverse(matrices[k])

    in_parallel(invert, range(len(inverses)))
    return inverses


def _inverse(matrix: Float) -> Float:
    """M⁻¹, in columns of equal units; with what rounding asks for added where M is singular."""
    root = np.sqrt(np.where(matrix.diagonal() > 0, matrix.diagonal(), 1.0))
    equal = matrix / root[:, None] / root[None, :]
    more = 1e-13 * len(matrix)
    while True:
        equal[np.diag_indices(len(equal))] = 1.0 + more
        factor, failed = sla.lapack.dpotrf(equal, lower=1)
        if not failed:
            break
        more *= 100.0
    inverse, _ = sla.lapack.dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    result: Float = inverse / root[:, None] / root[None, :]
    return result


def _times(inverses: Float, r: Float) -> Float:
    """(m, p) M_k⁻¹ r_k."""
    return r @ inverses[0] if len(inverses) == 1 else np.matmul(inverses, r[:, :, None])[:, :, 0]


def _without_gauge(inverses: Float, quadratic: Float) -> Solve:
    total = _inverse(inverses.sum(axis=0)) if len(inverses) > 1 else None
    inverse_penalty = np.divide(1.0, quadratic, out=np.zeros_like(quadratic), where=quadratic > 0)

    def apply(r: Float) -> Float:
        mean = r.sum(axis=0) / len(r)
        if total is None:
            return _times(inverses, r - mean) + mean * inverse_penalty
        solved = _times(inverses, r - mean)
        solved -= inverses @ (total @ solved.sum(axis=0))
        return solved + mean * inverse_penalty

    return apply
