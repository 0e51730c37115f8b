"""Exact leave-one-out losses of regularised discriminants over a whole grid, from moments and one more pass.

Leaving out one unit of a row x of class k, with z = x − m_k and c = n_k/(n_k − 1):

    m_k ← m_k − z/(n_k − 1),     S_k ← S_k − c zzᵀ,     S ← S − c zzᵀ,     n_k ← n_k − 1,     n ← n − 1

so for a class j the mixed covariance becomes B_j − q zzᵀ, where B_j has the new divisors (the same for every row that is
left out, except that the row's own class has lost one) and q = c·p for j ≠ k, c·(a+p) for j = k. One eigendecomposition
of each B_j serves all values of γ: see loo_series.py. No model is ever fitted again.

**Complexity** O(K·A·(d³ + nd² + ndG)). **Passes over the data** one, after the one for the moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Float
from separatrix.data.source import Source, ordered
from separatrix.lazy import compiled_pays
from separatrix.statistics.loo_series import LeftOutBases, LeftOutRows, Shrinkage, invertible
from separatrix.statistics.metric import DenseMetric
from separatrix.statistics.mixing import Mix, mixing_coefficients
from separatrix.statistics.moments import ClassMoments, Divisor

_EPS = float(np.finfo(np.float64).eps)
_ENTRIES_AT_ONCE = 2_000_000
# Rows of a block at least; the blocks that are worth having, and what compiled loops want of every class in a block.
_ROWS_AT_ONCE, _BLOCKS, _ROWS_OF_CLASS = 2048, 8, 500
# Of one class: they stay in cache from one class's eigenvectors to the next.
_NUMBERS_AT_ONCE = 1 << 15
# What vectorised loops take at a time; what is left over they take one by one, as slowly as all the rest.
_TOGETHER = 32
# What compiled loops save of a product of a row with a column.
_SECONDS_SAVED = 5e-11


@dataclass(frozen=True)
class Grid:
    """What is tried, and how the covariances are read."""

    alphas: Float
    gammas: Float
    target: Literal["identity", "trace", "diagonal"]
    mix: Mix
    divisor: Divisor
    priors: Float | None
    outside: int = 0
    """Columns beyond the span of the rows: their variance is that of the target alone."""


class _Scorer(Protocol):
    """The models at one α."""

    broken: NDArray[np.bool_]
    """(G,) whether some class has no inverse."""

    def scores(self, rows: LeftOutRows) -> Float:
        """(K, G, n) log π + log p(x) up to a constant, of the other classes in their circle, then of the rows' own."""


def loo_losses(source: Source, moments: ClassMoments, grid: Grid) -> tuple[Float, Float]:
    """(alphas, gammas) mean log-loss and error rate over rows each scored by the model without it."""
    work = float(moments.total) * len(grid.alphas) * moments.n_classes * moments.n_features
    saved = work * (moments.n_features + 4 * len(grid.gammas)) * _SECONDS_SAVED
    kernels = import_module("separatrix.kernels.left_out") if compiled_pays(saved) else None

    def scorer_at(alpha: float) -> _Scorer:
        return (
            _DiagonalScorer(moments, grid, alpha)
            if grid.target == "diagonal"
            else _EigenScorer(moments, grid, alpha, kernels)
        )

    scorers = list(ordered(scorer_at, grid.alphas.tolist()))

    def of_block(block: Block) -> Float:
        losses = np.zeros((2, len(grid.alphas), len(grid.gammas)))
        for rows in _by_class(block, moments, grid, kernels):
            for a, scorer in enumerate(scorers):
                losses[:, a] += _losses(scorer.scores(rows), rows, kernels)
        return losses

    full = (
        0
        if kernels is None or source.n_rows is None
        else min(_ROWS_OF_CLASS * moments.n_classes, source.n_rows // _BLOCKS)
    )
    total = source.reduce(of_block, np.add, rows=max(_ROWS_AT_ONCE, full)) / moments.total
    total[:, np.array([scorer.broken for scorer in scorers])] = np.inf
    return total[0], total[1]


def _by_class(block: Block, moments: ClassMoments, grid: Grid, kernels: Any) -> Iterator[LeftOutRows]:
    """The rows that count, a few of one class at a time."""
    weights, counts, means = block.repetitions(), moments.counts, moments.means
    kept = np.flatnonzero(weights)
    order = kept[np.argsort(block.codes[kept], kind="stable")]
    ends = np.cumsum(np.bincount(block.codes[order], minlength=len(counts)))
    dense = block.dense()
    at_once = _TOGETHER * max(1, _NUMBERS_AT_ONCE // (_TOGETHER * moments.n_features))
    for k, (first, last) in enumerate(pairwise([0, *ends])):
        shifts = means[k] - np.concatenate([means[k + 1 :], means[:k]])
        factor, log_priors = float(counts[k] / max(counts[k] - 1.0, 1.0)), _log_priors(k, moments, grid)
        parts = max(1, -(-(last - first) // at_once))
        for part in range(parts if last > first else 0):
            at = order[first + (last - first) * part // parts : first + (last - first) * (part + 1) // parts]
            repeated = weights[at]
            if (
                kernels is not None
            ):  # to a number that loops take at a time, by the last row again, which does not count
                more = -len(at) % _TOGETHER
                at, repeated = np.append(at, np.repeat(at[-1:], more)), np.append(repeated, np.zeros(more))
            z = np.ascontiguousarray((dense[at] - means[k]).T)
            squares, panels = np.einsum("ij,ij->j", z, z), None if kernels is None else kernels.panels_of(z)
            yield LeftOutRows(k, z, squares, repeated, factor, shifts, log_priors, panels)


def _log_priors(k: int, moments: ClassMoments, grid: Grid) -> Float:
    """(K,) of the classes after k, in a circle, and of k, with a row of k left out."""
    counts = moments.counts.copy()
    counts[k] -= 1.0
    priors = counts / (moments.total - 1.0) if grid.priors is None else grid.priors
    with np.errstate(divide="ignore"):  # prior 0: the class is impossible
        return np.log(np.concatenate([priors[k + 1 :], priors[: k + 1]]))


def _losses(scores: Float, rows: LeftOutRows, kernels: Any) -> Float:
    """(2, G) log-losses and errors, summed over the rows; infinite where a covariance has no inverse once a row is gone."""
    others, own = scores[:-1], scores[-1].copy()
    after = len(others) - rows.k  # ties go to the first class
    if kernels is not None:
        found = np.empty((2, len(own)))
        kernels.left_out_losses(scores, after, rows.weights, *found)
        return np.where(np.isnan(found), np.inf, found)
    wrong = (others[after:] >= own).any(axis=0) | (others[:after] > own).any(axis=0)
    largest = scores.max(axis=0)
    sums = np.exp(np.subtract(scores, largest, out=scores), out=scores).sum(axis=0)
    loss = (np.log(sums, out=sums) + largest - own) @ rows.weights
    return np.where(np.isnan(loss), np.inf, np.stack([loss, wrong @ rows.weights]))


def _mixed(moments: ClassMoments, grid: Grid, alpha: float) -> tuple[tuple[Float, Float], tuple[Float, Float]]:
    """B of every class and q/c when a row of another class is left out, and of its own; one B where all are alike."""
    pooled = moments.pooled().matrix()
    pooled_size = moments.total - 1.0 - (moments.n_classes if grid.divisor == "unbiased" else 0)
    parts: list[list[tuple[Float, float]]] = [[], []]
    for k, count in enumerate(moments.counts):
        for own, left in enumerate((count, count - 1.0)):
            a, p = mixing_coefficients(alpha, left - (grid.divisor == "unbiased"), pooled_size, grid.mix)
            parts[own].append((a * moments.of_class(k).matrix() + p * pooled if a else p * pooled, p + own * a))
    alike = [part[:1] if alpha == 0.0 else part for part in parts]
    others, owns = ((np.stack([m for m, _ in part]), np.array([q for _, q in part])) for part in alike)
    return others, owns


class _EigenScorer:
    """The identity and trace targets."""

    def __init__(self, moments: ClassMoments, grid: Grid, alpha: float, kernels: Any) -> None:
        shrinkage = Shrinkage(grid.gammas, grid.target, grid.outside)
        others, owns = _mixed(moments, grid, alpha)
        average = float(moments.pooled().trace() / moments.total)
        bases = LeftOutBases.of(*others, average, shrinkage, kernels)
        own, circle = LeftOutBases.of(*owns, average, shrinkage, kernels), bases.twice()
        spectra = zip((*others[0], *owns[0]), (*bases.values, *own.values), strict=True)
        usable = all(invertible(matrix, values, shrinkage) for matrix, values in spectra)
        self.broken = (grid.gammas == 1.0) & (not usable)
        K = moments.n_classes
        self._bases = [(circle.take(slice(k + 1, k + K)), own.take(slice(k, k + 1))) for k in range(K)]

    def scores(self, rows: LeftOutRows) -> Float:
        others, own = self._bases[rows.k]
        scores = np.empty((len(self._bases), len(self.broken), len(rows.squares)))
        others.scores(rows, False, scores[:-1])
        own.scores(rows, True, scores[-1:])
        return scores


class _DiagonalScorer:
    """The diagonal target, which loses a full diagonal with every row: one small factorisation each."""

    def __init__(self, moments: ClassMoments, grid: Grid, alpha: float) -> None:
        self._others, self._owns = _mixed(moments, grid, alpha)
        self._gammas, self._n_classes = grid.gammas, moments.n_classes
        usable = 1.0 not in grid.gammas or not any(
            DenseMetric(matrix).singular for matrix in (*self._others[0], *self._owns[0])
        )
        self.broken = (grid.gammas == 1.0) & (not usable)

    def scores(self, rows: LeftOutRows) -> Float:
        z, K = rows.z.T, self._n_classes
        scores = np.empty((K, len(self._gammas), len(z)))
        for place, shift in enumerate(rows.shifts):
            scores[place] = self._penalties(self._others, (rows.k + 1 + place) % K, z, z + shift, rows.factor)
        scores[-1] = self._penalties(self._owns, rows.k, z, z * rows.factor, rows.factor)
        return rows.log_priors[:, None, None] - 0.5 * scores

    def _penalties(self, mixed: tuple[Float, Float], j: int, z: Float, v: Float, factor: float) -> Float:
        """(G, n) of class j, for rows z = x − m_k and v = x − m_j."""
        j = min(j, len(mixed[0]) - 1)
        matrix, q = mixed[0][j], factor * mixed[1][j]
        n, d = z.shape
        result = np.empty((len(self._gammas), n))
        diagonal = np.arange(d)
        step = max(1, _ENTRIES_AT_ONCE // (d * d))
        for start in range(0, n, step):
            at = slice(start, start + step)
            left = matrix - q * z[at, :, None] * z[at, None, :]
            variances = np.maximum(left[:, diagonal, diagonal], 0.0)
            scale = np.sqrt(np.where(variances > 0, variances, 1.0))
            left = left / scale[:, :, None] / scale[:, None, :]
            target, log_scale = v[at] / scale, 2.0 * np.log(scale).sum(axis=1)
            for g, gamma in enumerate(self._gammas):
                shrunk = gamma * left
                shrunk[:, diagonal, diagonal] = left[:, diagonal, diagonal]
                values, vectors = _factor(shrunk)
                values = np.where(values.min(axis=1, keepdims=True) <= d * _EPS, np.nan, values)
                white = np.einsum("nij,ni->nj", vectors, target) / np.sqrt(values)
                result[g, at] = np.square(white).sum(axis=1) + np.log(values).sum(axis=1) + log_scale
        return result


def _factor(matrices: Float) -> tuple[Float, Float]:
    """(values, vectors) with M⁻¹ = V diag(1/values) Vᵀ and |M| = Π values: by Cholesky, by eigenvectors where it fails."""
    try:
        lower = np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return np.linalg.eigh(matrices)
    pivots = np.diagonal(lower, axis1=1, axis2=2)
    return np.square(pivots), np.swapaxes(np.linalg.inv(lower) * pivots[:, :, None], 1, 2)
