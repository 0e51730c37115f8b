"""Exact leave-one-out losses of regularised discriminants over a whole grid, from moments and one more pass.

Leaving out one unit of a row x of class k, with z = x − m_k and c = n_k/(n_k − 1):

    m_k ← m_k − z/(n_k − 1),     S_k ← S_k − c zzᵀ,     S ← S − c zzᵀ,     n_k ← n_k − 1,     n ← n − 1

so for a class j the mixed covariance becomes B_j − q zzᵀ, where B_j has the new divisors (the same for every row that is
left out, except that the row's own class has lost one) and q = c·p for j ≠ k, c·(a+p) for j = k. With B = UΛUᵀ:

    Σ = γB + (1−γ)tI − γq zzᵀ = U (A − γq uuᵀ) Uᵀ,     A = γΛ + (1−γ)t,  u = Uᵀz,  v = Uᵀ(x − m_j)
    log|Σ| = Σ log A + log(1 − γq uᵀA⁻¹u),       distance = vᵀA⁻¹v + γq (uᵀA⁻¹v)² / (1 − γq uᵀA⁻¹u)

For the trace target t itself loses q‖z‖²/d, a different scalar for every row; since it is small against t, 1/A is a
geometric series in it, and the whole grid of γ is a few matrix products. The series is cut where it reaches rounding;
where it would be long (few rows) A is evaluated row by row instead. No model is ever fitted again.

**Complexity** O(K·A·(d³ + nd² + ndG)). **Passes over the data** one, after the one for the moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from separatrix.data.block import Block, Codes, Float
from separatrix.data.source import Source
from separatrix.statistics.metric import DenseMetric
from separatrix.statistics.mixing import Mix, mixing_coefficients
from separatrix.statistics.moments import ClassMoments, Divisor

_EPS = float(np.finfo(np.float64).eps)
_LONGEST_SERIES = 10
_ENTRIES_AT_ONCE = 2_000_000
_ROWS_AT_ONCE = 4096


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


class _Base:
    """B of one class, its eigenvectors, and the series of 1/A and log|A| in the relative loss of t."""

    def __init__(self, matrix: Float, own: float, pooled: float, grid: Grid) -> None:
        self.matrix, self.own, self.pooled = matrix, own, pooled
        self.trace = float(matrix.trace())
        self.usable = not (1.0 in grid.gammas and (DenseMetric(matrix).singular or grid.outside > 0))
        if grid.target == "diagonal":
            return
        values, self.vectors = np.linalg.eigh(matrix)
        self.values = np.maximum(values, 0.0)
        self.t = 1.0 if grid.target == "identity" else self.trace / (len(matrix) + grid.outside)
        gammas = grid.gammas[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):  # a singular B at γ = 1: `usable` is False
            A = gammas * self.values + (1.0 - gammas) * self.t
            share = (1.0 - gammas) * self.t / A
            powers = _powers(-share, _LONGEST_SERIES)
            self.series = powers / A
            logs = [np.log(A).sum(axis=1)] + [-powers[s].sum(axis=1) / s for s in range(1, _LONGEST_SERIES)]
        self.log_series = np.stack(logs)


@dataclass(frozen=True)
class _Batch:
    """Rows of a block sorted by class, one per column: z = x − m_k, ‖z‖², the class, and where each class's run is."""

    z: Float
    squares: Float
    codes: Codes
    runs: dict[int, slice]

    @classmethod
    def of_block(cls, block: Block, means: Float) -> tuple[_Batch, Float]:
        weights = block.repetitions()
        kept = np.flatnonzero(weights)
        order = kept[np.argsort(block.codes[kept], kind="stable")]
        codes = block.codes[order]
        z = np.ascontiguousarray((block.dense()[order] - means[codes]).T)
        ends = np.cumsum(np.bincount(codes, minlength=len(means)))
        runs = {k: slice(int(a), int(b)) for k, (a, b) in enumerate(pairwise([0, *ends])) if b > a}
        return cls(z, np.einsum("ij,ij->j", z, z), codes, runs), weights[order]

    def of_class(self, k: int) -> _Batch:
        at = self.runs[k]
        z = np.ascontiguousarray(self.z[:, at])
        return _Batch(z, self.squares[at], self.codes[at], {k: slice(0, at.stop - at.start)})


def loo_losses(source: Source, moments: ClassMoments, grid: Grid) -> tuple[Float, Float]:
    """(alphas, gammas) mean log-loss and error rate over rows each scored by the model without it."""
    bases = [_bases(moments, grid, float(alpha)) for alpha in grid.alphas]
    means = moments.means

    def of_block(block: Block) -> Float:
        rows, weights = _Batch.of_block(block, means)
        losses = np.zeros((2, len(grid.alphas), len(grid.gammas)))
        if not len(weights):
            return losses
        at = np.arange(len(weights))
        for a, pair in enumerate(bases):
            scores = _scores(rows, moments, grid, *pair)
            # A grid point whose covariance has no inverse once a row is gone has no leave-one-out score at all.
            broken = np.isnan(scores).any(axis=(0, 2))
            scores[:, broken] = 0.0
            own = scores[rows.codes, :, at].T
            largest = scores.max(axis=0)
            wrong = scores.argmax(axis=0) != rows.codes
            sums = np.exp(np.subtract(scores, largest, out=scores), out=scores).sum(axis=0)
            losses[0, a] = np.where(broken, np.inf, (np.log(sums) + largest - own) @ weights)
            losses[1, a] = np.where(broken, np.inf, wrong @ weights)
        return losses

    total = source.reduce(of_block, np.add, rows=_ROWS_AT_ONCE) / moments.total
    return total[0], total[1]


def _bases(moments: ClassMoments, grid: Grid, alpha: float) -> tuple[list[_Base], list[_Base]]:
    """For every class: B when a row of another class is left out, and when one of its own is."""
    pooled = moments.pooled().matrix()
    pooled_size = moments.total - 1.0 - (moments.n_classes if grid.divisor == "unbiased" else 0)
    others: list[_Base] = []
    owns: list[_Base] = []
    for k, count in enumerate(moments.counts):
        scatter = moments.of_class(k).matrix()
        for left, into in ((count, others), (count - 1.0, owns)):
            a, p = mixing_coefficients(alpha, left - (grid.divisor == "unbiased"), pooled_size, grid.mix)
            into.append(_Base(a * scatter + p * pooled, a, p, grid))
    return others, owns


def _scores(rows: _Batch, moments: ClassMoments, grid: Grid, others: list[_Base], owns: list[_Base]) -> Float:
    """(K, G, n) log π_k + log p(x | k) without the row itself, up to a common constant; NaN where undefined."""
    counts = moments.counts
    scores = np.empty((len(counts), len(grid.gammas), rows.z.shape[1]))
    ratio = counts / np.maximum(counts - 1.0, 1.0)
    lost = ratio[rows.codes]
    for j in range(len(counts)):
        scores[j] = _class_scores(rows, moments, grid, others[j], lost * others[j].pooled, j, counts[j])
        if j in rows.runs:  # the row's own class has lost it
            base, mine = owns[j], rows.of_class(j)
            q = np.full(mine.z.shape[1], ratio[j] * (base.own + base.pooled))
            scores[j][:, rows.runs[j]] = _class_scores(mine, moments, grid, base, q, j, counts[j] - 1.0, ratio[j])
    return scores


def _class_scores(
    rows: _Batch, moments: ClassMoments, grid: Grid, base: _Base, q: Float, j: int, count: float, stretch: float = 0.0
) -> Float:
    """(G, n) scores of class j; for rows of that class x − m_j without the row is z·stretch."""
    function = _by_rows if grid.target == "diagonal" else _by_eigenvectors
    penalty = function(base, rows, moments.means - moments.means[j], q, stretch, grid)
    prior = count / (moments.total - 1.0) if grid.priors is None else float(grid.priors[j])
    with np.errstate(divide="ignore"):  # prior 0: the class is impossible
        scores = np.log(prior) - 0.5 * penalty
    if not base.usable:
        scores[grid.gammas == 1.0] = np.nan
    return scores


def _by_eigenvectors(base: _Base, rows: _Batch, shifts: Float, q: Float, stretch: float, grid: Grid) -> Float:
    """(G, n) distance + log-determinant for the identity and trace targets."""
    # x − m_j = z + (m_k − m_j): the second part is one vector per class, so only two sums run over the rows.
    u, shift = base.vectors.T @ rows.z, shifts @ base.vectors
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lost = -q * rows.squares / base.trace if grid.target == "trace" else np.zeros(len(q))
        uu, us, rest = _sums(base, u, shift, rows, lost, bool(stretch), grid)
        shrunk = np.multiply.outer(grid.gammas, q)
        left = 1.0 - shrunk * uu
        uv, vv = (stretch * uu, stretch**2 * uu) if stretch else (uu + us, uu + 2.0 * us)
        gone = ~(left > 1e-10)  # leaving the row out takes away all variance in some direction
        if gone.any():
            left[gone] = np.nan
        return vv + rest + shrunk * np.square(uv) / left + np.log(left)


def _sums(
    base: _Base, u: Float, shift: Float, rows: _Batch, lost: Float, own: bool, grid: Grid
) -> tuple[Float, Float, Float]:
    """(G, n) sums Σu²/A, Σus/A, and Σs²/A + log|A| with s the shift of the row's class; A = γλ + (1−γ)t(1 + lost)."""
    largest = float(np.abs(lost).max())
    length = 1 if largest <= _EPS else int(np.ceil(np.log(_EPS / 4.0) / np.log(min(largest, 0.999)))) + 1
    if length > _LONGEST_SERIES:
        return _direct_sums(base, u, np.zeros_like(u) if own else shift[rows.codes].T, lost, grid)
    series = base.series[:length]
    flat = series.reshape(-1, series.shape[2])
    shape = (*series.shape[:2], u.shape[1])
    uu = _horner((flat @ np.square(u)).reshape(shape), lost)
    powers = _powers(lost, length)
    if own:
        rest, us = base.log_series[:length].T @ powers, np.zeros(1)
    else:
        us = _horner((flat @ (u * shift.T[:, rows.codes])).reshape(shape), lost)
        rest = np.empty(shape[1:])
        for k, at in rows.runs.items():
            rest[:, at] = (series @ np.square(shift[k]) + base.log_series[:length]).T @ powers[:, at]
    return uu, us, rest + _outside(base, lost, grid)


def _powers(x: Float, length: int) -> Float:
    """1, x, x², … along a new first axis."""
    powers = np.ones((length, *x.shape))
    for s in range(1, length):
        np.multiply(powers[s - 1], x, out=powers[s])
    return powers


def _horner(terms: Float, x: Float) -> Float:
    """Σ_s x^s T_s."""
    total = terms[-1]
    for term in terms[-2::-1]:
        total *= x
        total += term
    return total


def _outside(base: _Base, lost: Float, grid: Grid) -> Float | float:
    """log-determinant over the columns beyond the span of the rows."""
    if not grid.outside:
        return 0.0
    return grid.outside * np.log(np.multiply.outer(1.0 - grid.gammas, base.t * (1.0 + lost)))


def _direct_sums(base: _Base, u: Float, s: Float, lost: Float, grid: Grid) -> tuple[Float, Float, Float]:
    """The same without the series: A for every row."""
    gammas = grid.gammas[:, None, None]
    uu, us, rest = (np.empty((len(grid.gammas), len(lost))) for _ in range(3))
    step = max(1, _ENTRIES_AT_ONCE // (len(grid.gammas) * len(u)))
    for start in range(0, len(lost), step):
        at = slice(start, start + step)
        A = gammas * base.values[:, None] + (1.0 - gammas) * base.t * (1.0 + lost[at])
        inverse = 1.0 / A
        uu[:, at] = np.einsum("dn,gdn->gn", np.square(u[:, at]), inverse)
        us[:, at] = np.einsum("dn,gdn->gn", u[:, at] * s[:, at], inverse)
        rest[:, at] = np.einsum("dn,gdn->gn", np.square(s[:, at]), inverse) + np.log(A).sum(axis=1)
    return uu, us, rest + _outside(base, lost, grid)


def _by_rows(base: _Base, rows: _Batch, shifts: Float, q: Float, stretch: float, grid: Grid) -> Float:
    """The same for the diagonal target, which loses a full diagonal with every row: one small factorisation each."""
    z = rows.z.T
    v = z * stretch if stretch else z + shifts[rows.codes]
    n, d = z.shape
    result = np.empty((len(grid.gammas), n))
    diagonal = np.arange(d)
    step = max(1, _ENTRIES_AT_ONCE // (d * d))
    for start in range(0, n, step):
        at = slice(start, start + step)
        left = base.matrix - q[at, None, None] * z[at, :, None] * z[at, None, :]
        variances = np.maximum(left[:, diagonal, diagonal], 0.0)
        scale = np.sqrt(np.where(variances > 0, variances, 1.0))
        left = left / scale[:, :, None] / scale[:, None, :]
        target = v[at] / scale
        for g, gamma in enumerate(grid.gammas):
            shrunk = gamma * left
            shrunk[:, diagonal, diagonal] = left[:, diagonal, diagonal]
            values, vectors = _factor(shrunk)
            values = np.where(values.min(axis=1, keepdims=True) <= d * _EPS, np.nan, values)
            white = np.einsum("nij,ni->nj", vectors, target) / np.sqrt(values)
            result[g, at] = np.square(white).sum(axis=1) + np.log(values).sum(axis=1) + 2.0 * np.log(scale).sum(axis=1)
    return result


def _factor(matrices: Float) -> tuple[Float, Float]:
    """(values, vectors) with M⁻¹ = V diag(1/values) Vᵀ and |M| = Π values: by Cholesky, by eigenvectors where it fails."""
    try:
        lower = np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return np.linalg.eigh(matrices)
    pivots = np.diagonal(lower, axis1=1, axis2=2)
    return np.square(pivots), np.swapaxes(np.linalg.inv(lower) * pivots[:, :, None], 1, 2)
