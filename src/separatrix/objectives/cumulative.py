"""The cumulative logit of ordered classes (proportional odds), as logistic losses and a barrier.

    P(y ≤ k | x) = σ(θ_k − wᵀx),    θ_0 < … < θ_{K−2}                  one score for all thresholds
    −log P(y = k | x) = −log(σ(a) − σ(b)),    a = θ_k − wᵀx,   b = θ_{k−1} − wᵀx           (a = ∞ and b = −∞ at the ends)
                      = softplus(−a) + softplus(b) + g(a − b),    g(δ) = −log(1 − e^{−δ})

a − b = θ_k − θ_{k−1} does not depend on x: the likelihood is that of a logistic regression in which every row is on one side of
the threshold above it and on the other side of the one below, with a barrier Σ_k n_k g(θ_k − θ_{k−1}) that keeps thresholds
apart. All three terms are convex in (w, θ), and their curvature changes slowly: what a proof needs (solvers/ordered/).

    softplus''(z + Δ) ≥ e^{−|Δ|} softplus''(z),        g''(δ) = 1/(4 sinh²(δ/2)),   which falls in δ

Codes are the ranks of the classes. β = (w, θ) is (1, d + K − 1).

Reference: McCullagh (1980), J. Royal Statistical Society B 42; Pratt (1981), J. American Statistical Association 76.

**Complexity** O(n d) for the gradient, O(n d²) with the Hessian. **Passes over the data** one per evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from separatrix.data.block import Block, Codes, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.penalties import Penalty

_PIECE = 1 << 20


@dataclass(frozen=True)
class _CumulativeSums:
    loss: float
    gradient: Float
    hessian: Float | None
    largest_row: float
    steepest: float
    residual: float
    total: float

    def __add__(self, other: _CumulativeSums) -> _CumulativeSums:
        hessian = None if self.hessian is None or other.hessian is None else self.hessian + other.hessian
        return _CumulativeSums(
            self.loss + other.loss,
            self.gradient + other.gradient,
            hessian,
            max(self.largest_row, other.largest_row),
            max(self.steepest, other.steepest),
            self.residual + other.residual,
            self.total + other.total,
        )


@dataclass(frozen=True)
class CumulativeLogit:
    """Σ s ℓ + P over the rows of a labelled source.

    Parameters
    ----------
    penalty : Penalty
        Of shape (1, d + K − 1), none on the thresholds.
    counts : ndarray of shape (K,)
        Total weight of every class, by rank.
    ranks : ndarray of shape (K,)
        The rank of every code.
    offset : ndarray of shape (n,), optional
        Added to the scores wᵀx.
    """

    penalty: Penalty
    counts: Float
    ranks: Codes
    offset: Float | None = None

    @property
    def n_thresholds(self) -> int:
        """K − 1."""
        return len(self.counts) - 1

    def split(self, beta: Float) -> tuple[Float, Float]:
        """w (d,) and θ (K − 1,)."""
        return beta[0, : -self.n_thresholds], beta[0, -self.n_thresholds :]

    def start(self, n_features: int) -> Float:
        """w = 0 and the thresholds that are best for it: the log-odds of the cumulative shares."""
        below = np.cumsum(self.counts)[:-1]
        return np.concatenate([np.zeros(n_features), np.log(below) - np.log(self.counts.sum() - below)])[None, :]

    def evaluate(self, beta: Float, source: Source, order: int = 1, metric: Float | None = None) -> Evaluation:
        """F, ∇F, and ∇²F for order 2; infinite where thresholds are not in order. One pass.

        `metric` (d + K − 1,) asks for a bound on max Σ_j metric_j z_j² over the rows z of the logistic losses.
        """
        w, thresholds = self.split(beta)
        gaps = np.diff(thresholds)
        if not (gaps > 0).all():
            return Evaluation(np.inf, np.inf, np.zeros_like(beta), 0.0, float(self.counts.sum()))
        sums = source.reduce(lambda block: self._of_block(w, thresholds, block, order, metric), _CumulativeSums.__add__)
        source.check_finite(np.asarray(sums.loss), sums.gradient)
        loss, gradient, hessian = self._barrier(gaps, sums)
        return Evaluation(
            loss + self.penalty.value(beta),
            loss,
            gradient[None, :] + self.penalty.gradient(beta),
            sums.residual,
            sums.total,
            None if hessian is None else self.penalty.add_hessian(hessian),
            sums.largest_row,
            sums.steepest,
        )

    def _barrier(self, gaps: Float, sums: _CumulativeSums) -> tuple[float, Float, Float | None]:
        """The sums with Σ_k n_k g(θ_k − θ_{k−1})."""
        inner, d = self.counts[1:-1], len(sums.gradient) - self.n_thresholds
        gradient, hessian = sums.gradient.copy(), sums.hessian
        with np.errstate(over="ignore", under="ignore"):
            loss = sums.loss - float(inner @ np.log(-np.expm1(-gaps)))
            slopes, bends = -inner / np.expm1(gaps), inner / np.square(2.0 * np.sinh(0.5 * gaps))
        gradient[d + 1 :] += slopes
        gradient[d:-1] -= slopes
        if hessian is not None:
            at = np.arange(d, d + len(gaps))
            hessian[at, at] += bends
            hessian[at + 1, at + 1] += bends
            hessian[at, at + 1] -= bends
            hessian[at + 1, at] -= bends
        return loss, gradient, hessian

    def shifted(self, block: Block) -> tuple[Block, Float]:
        """The rows of a block that count, and their offsets."""
        counted = block.counted()
        if self.offset is None:
            return counted, np.zeros(counted.n)
        own = self.offset[block.start : block.start + block.n]
        return counted, own[block.weights > 0] if counted.n < block.n and block.weights is not None else own

    def _of_block(self, w: Float, thresholds: Float, block: Block, order: int, metric: Float | None) -> _CumulativeSums:
        total: _CumulativeSums | None = None
        for piece in block.pieces(_PIECE):
            part = self._of_piece(w, thresholds, piece, order, metric)
            total = part if total is None else total + part
        assert total is not None
        return total

    def _of_piece(self, w: Float, thresholds: Float, piece: Block, order: int, metric: Float | None) -> _CumulativeSums:
        rows, own = self.shifted(piece)
        d, last = len(w), self.n_thresholds
        rank = self.ranks[rows.codes]
        weights = np.ones(rows.n) if rows.weights is None else rows.weights
        eta = rows.matvec(w) + own
        upper = np.append(thresholds, np.inf)[rank] - eta
        lower = np.append(-np.inf, thresholds)[rank] - eta
        above, below = expit(-upper), expit(lower)  # 0 at the ends
        loss = float(weights @ (np.logaddexp(0.0, -upper) + np.logaddexp(0.0, lower)))
        gradient = np.concatenate([rows.rmatvec(weights * (above - below)), np.zeros(last)])
        ends = np.bincount(rank, weights * above, last + 1)[:last], np.bincount(rank, weights * below, last + 1)[1:]
        gradient[d:] = ends[1] - ends[0]
        hessian = None
        if order > 1:
            bend = weights * above * (1.0 - above), weights * below * (1.0 - below)
            hessian = np.zeros((d + last, d + last))
            hessian[:d, :d] = rows.gram(bend[0] + bend[1])
            each = np.zeros((rows.n, last + 2))
            each[np.arange(rows.n), rank + 1] = bend[0]
            each[np.arange(rows.n), rank] += bend[1]
            inner = each[:, 1:-1]  # column k: what row i has of threshold k
            hessian[:d, d:] = -rows.rmatvec(inner)
            hessian[d:, :d] = hessian[:d, d:].T
            hessian[np.arange(d, d + last), np.arange(d, d + last)] = inner.sum(axis=0)
        finite = np.where(np.isfinite(upper), np.abs(upper), 0.0), np.where(np.isfinite(lower), np.abs(lower), 0.0)
        largest = np.nan
        if metric is not None:
            largest = rows.largest_row(metric[:d]) + float(metric[d:].max(initial=0.0))
        return _CumulativeSums(
            loss,
            gradient,
            hessian,
            largest,
            float(max(finite[0].max(initial=0.0), finite[1].max(initial=0.0))),
            float(weights @ (np.square(above) + np.square(below))),
            2.0 * float(weights.sum()),
        )
