"""The loss and its derivatives averaged over a Gaussian, row by row and in all.

    E ℓ(y, η),  E ∂ℓ/∂η,  E ∂²ℓ/∂η²,      η = θx ~ N(θ̂x, xᵀSx)

To rounding for two classes (kernels/posterior/expected_loss.py); for more, over fixed Sobol' points and their mirror images.

**Complexity** O(n m² p²) for the products, and O(n K N) exponentials for N points and K > 2 classes.
**Passes over the data** one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri
from scipy.stats.qmc import Sobol

from separatrix.bayes.posterior import FullPosterior
from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.losses import Softmax
from separatrix.settings import one_blas_thread

_PIECE, _ROWS = 1 << 20, 1024
# Points for more than two classes: as many as these numbers (rows × classes × points) allow, between two powers of 2.
_NUMBERS, _FEWEST, _MOST = 1 << 21, 7, 10


@dataclass(frozen=True)
class ExpectedLoss:
    """Σ s ℓ averaged over a Gaussian: value, gradient (m, p) and Hessian (mp, mp), of the loss alone."""

    value: float
    gradient: Float
    hessian: Float


def expected_loss(objective: LinearObjective, source: Source, posterior: FullPosterior) -> ExpectedLoss:
    """The loss and its derivatives, averaged over the posterior. One pass."""
    m, p = posterior.mean.shape
    rows_of = RowAverages.over(objective, source, posterior)

    def of_block(block: Block) -> tuple[float, Float, Float]:
        value, gradient, hessian = 0.0, np.zeros((p, m)), np.zeros((m, p, m, p))
        for rows, _, height, slope, bend in rows_of.pieces(block):
            if rows.weights is not None:
                height, slope = height * rows.weights, slope * rows.weights[:, None]
                bend = bend * rows.weights[:, None, None]
            value += float(height.sum())
            gradient += rows.rmatvec(slope)
            for k in range(m):
                hessian[k, :, k] += rows.gram(np.maximum(bend[:, k, k], 0.0))
                for l in range(k):  # noqa: E741  # name of the formula
                    hessian[k, :, l] -= rows.gram(np.maximum(-bend[:, k, l], 0.0))  # −E p_k p_l
        return value, gradient, hessian

    value, gradient, hessian = source.reduce(
        of_block, lambda one, two: (one[0] + two[0], one[1] + two[1], one[2] + two[2]), rows_of.rows
    )
    for k in range(m):
        for l in range(k):  # noqa: E741  # name of the formula
            hessian[l, :, k] = hessian[k, :, l].T
    return ExpectedLoss(value, gradient.T, hessian.reshape(m * p, m * p))


@dataclass(frozen=True)
class RowAverages:
    """ℓ, ∂ℓ/∂η and ∂²ℓ/∂η² of every row, averaged over the scores N(η, xᵀSx) that a Gaussian gives it."""

    objective: LinearObjective
    mean: Float
    covariance: Float
    """(m, p, m, p) S."""
    points: Float
    """Over which a softmax is averaged; none for two classes."""
    rows: int | None
    """Of a block."""

    @classmethod
    def over(cls, objective: LinearObjective, source: Source, posterior: FullPosterior) -> RowAverages:
        """For the rows of a source."""
        (m, p), several = posterior.mean.shape, isinstance(objective.loss, Softmax)
        with one_blas_thread():
            covariance = posterior.covariance().reshape(m, p, m, p)
        points = _points(m - 1, source.n_rows) if several else np.zeros((0, 0))
        return cls(objective, posterior.mean, covariance, points, _ROWS if several else None)

    def pieces(self, block: Block) -> Iterator[tuple[Block, Float, Float, Float, Float]]:
        """Rows that count, η (n, m), and the averages (n,), (n, m), (n, m, m), without the weights of the rows."""
        m = len(self.mean)
        for piece in block.pieces(_PIECE // (m * m)):
            rows, own = self.objective.counted(piece)
            if rows.n:
                eta = self.objective.scores(self.mean, rows, own)
                yield rows, eta, *self._averages(rows, eta, score_spread(rows, self.covariance))

    def _averages(self, rows: Block, eta: Float, spread: Float) -> tuple[Float, Float, Float]:
        from separatrix.kernels.posterior.expected_loss import expected_logistic, expected_softmax

        n, m = eta.shape
        height, slope, bend = np.empty(n), np.empty((n, m)), np.empty((n, m, m))
        if isinstance(self.objective.loss, Softmax):
            expected_softmax(np.ascontiguousarray(eta), spread, self.points, height, slope, bend)
            at = np.arange(n), rows.codes
            height -= eta[at]
            slope[at] -= 1.0
        else:
            flat = np.ascontiguousarray(eta[:, 0]), np.ascontiguousarray(spread[:, 0, 0])
            expected_logistic(*flat, height, slope[:, 0], bend[:, 0, 0])
            height -= rows.codes * eta[:, 0]
            slope[:, 0] -= rows.codes
        return height, slope, bend


def score_spread(rows: Block, covariance: Float) -> Float:
    """(n, m, m) xᵀS_klx of every row; from S itself, which for many classes is less work than from its factor."""
    m, dense = len(covariance), rows.dense()
    spread = np.empty((rows.n, m, m))
    for k in range(m):
        for l in range(k + 1):  # noqa: E741  # name of the formula
            spread[:, k, l] = spread[:, l, k] = np.einsum("ij,ij->i", rows.matvec(covariance[k, :, l]), dense)
    return spread


@lru_cache(maxsize=8)
def _points(dimension: int, n_rows: int | None) -> Float:
    """(N, dimension) standard normal points that are evenly spread, each with its mirror image."""
    power = int(np.log2(_NUMBERS / ((dimension + 1) * max(1, n_rows or _NUMBERS))))
    uniform = Sobol(dimension, scramble=False).random_base2(min(max(power, _FEWEST), _MOST) - 1)
    z = ndtri(uniform + 0.5 / len(uniform))
    return np.ascontiguousarray(np.concatenate([z, -z]))
