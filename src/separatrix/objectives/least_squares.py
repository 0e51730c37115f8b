"""Penalised least squares, evaluated block by block.

    F(W) = Σᵢ sᵢ‖yᵢ − W xᵢ‖² + Σ_j α_j‖w_j‖²          rows of the source centred, so there is no intercept here
    ∇F   = −2 Σᵢ sᵢ (yᵢ − W xᵢ) xᵢᵀ + 2 diag(α) W
    ∇²F·V = 2 Σᵢ sᵢ (V xᵢ) xᵢᵀ + 2 diag(α) V

W is (m, d), one row a target; the targets y are (n, m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source


@dataclass(frozen=True)
class RidgeEvaluation:
    """Value, and as far as asked for: gradient, and the Hessian as a product with a direction."""

    value: Float
    gradient: Float | None = None
    hvp: Callable[[Float], Float] | None = None


def _weighted(block: Block, values: Float) -> Float:
    return values if block.weights is None else values * block.weights[:, None]


class LeastSquares:
    """The ridge objective on a centred source.

    Parameters
    ----------
    alpha : ndarray of shape (m,)
        Penalty of each target: the only place where it enters.
    y_mean : ndarray of shape (m,)
        Taken off the targets.
    """

    def __init__(self, alpha: Float, y_mean: Float) -> None:
        self.alpha, self.y_mean = alpha, y_mean

    def evaluate(self, theta: Float, source: Source, order: int = 1) -> RidgeEvaluation:
        """F (m,), from order 1 on its gradient (m, d), from order 2 on its Hessian product. One pass."""

        def of_block(block: Block) -> tuple[Float, Float]:
            block = block.counted()
            assert block.y is not None
            residual = block.y - self.y_mean - block.matvec(theta.T)
            weighted = _weighted(block, residual)
            value = np.einsum("ij,ij->j", weighted, residual)
            return value, block.rmatvec(weighted) if order else np.zeros(0)

        value, cross = source.reduce(of_block, lambda a, b: (a[0] + b[0], a[1] + b[1]))
        value = value + self.alpha * np.square(theta).sum(axis=1)
        if order == 0:
            return RidgeEvaluation(value)
        gradient = 2.0 * (self.alpha[:, None] * theta - cross.T)
        return RidgeEvaluation(value, gradient, (lambda v: self.hvp(v, source)) if order > 1 else None)

    def hvp(self, direction: Float, source: Source) -> Float:
        """∇²F · V. One pass."""

        def of_block(block: Block) -> Float:
            block = block.counted()
            return block.rmatvec(_weighted(block, block.matvec(direction.T)))

        product = source.reduce(of_block, lambda a, b: a + b)
        return 2.0 * (product.T + self.alpha[:, None] * direction)
