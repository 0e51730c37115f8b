"""Least squares at the coefficients that are published, from the data, in twice the working precision.

    F(w, b) = Σ sᵢ(yᵢ − wᵀxᵢ − b)² + α‖w‖²,    g = Σ sᵢrᵢ(xᵢ − c),   g₀ = Σ sᵢrᵢ

What is left of rounding is that of the results themselves: in columns of high condition the gradient of the working
precision would be nothing but noise. Columns are scaled by powers of two, which changes no digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.lazy import compiled_pays_by_now

_EXACT_SUM = 5e-8  # seconds of a term in a sum by Python


@dataclass(frozen=True)
class PublishedGradient:
    """Σ residual squares (m,), half the gradient with its sign changed (m, d), and Σ residuals (m,)."""

    squares: Float
    gradient: Float
    sums: Float


def power_of_two(sizes: Float) -> Float:
    """The powers of two next to some sizes ≥ 0; 1 for zero."""
    return np.ldexp(1.0, np.frexp(np.where(sizes > 0, sizes, 1.0))[1])


def _home(source: Source, n_targets: int) -> str:
    """The module with the sums: compiled, unless the rows are few and numba would take longer to import than they do."""
    terms = np.inf if source.n_rows is None else 4.0 * source.n_rows * source.n_features * n_targets
    return "kernels.compensated" if compiled_pays_by_now(_EXACT_SUM * terms) else "objectives.exact_sums"


def published_gradient(
    source: Source, coef: Float, intercept: Float, centre: Float, x_size: Float, y_size: Float
) -> PublishedGradient:
    """One pass over a valued source; `x_size` and `y_size` say how large columns and targets are, about."""
    kernels = import_module(f"separatrix.{_home(source, len(coef))}")
    x_unit, y_unit = power_of_two(x_size), power_of_two(y_size)
    scaled_coef = np.ascontiguousarray(coef * x_unit / y_unit[:, None])
    scaled_intercept = intercept / y_unit
    m, d = coef.shape

    def of_block(block: Block) -> tuple[Float, Float]:
        block = block.counted()
        assert block.y is not None
        rows = np.ascontiguousarray(block.dense() / x_unit)
        targets = np.ascontiguousarray(block.y / y_unit)
        weights = np.empty(0) if block.weights is None else np.ascontiguousarray(block.weights, dtype=np.float64)
        gradient, squares = np.zeros((m, d + 1, 2)), np.zeros((m, 2))
        kernels.add_gradient(rows, targets, weights, scaled_coef, scaled_intercept, gradient, squares)
        return gradient, squares

    def merge(total: tuple[Float, Float], other: tuple[Float, Float]) -> tuple[Float, Float]:
        for mine, theirs in zip(total, other, strict=True):
            kernels.add_pairs(mine.reshape(-1, 2), theirs.reshape(-1, 2))
        return total

    gradient, squares = source.reduce(of_block, merge)
    about = kernels.shifted(gradient, centre / x_unit)
    return PublishedGradient(
        squares.sum(axis=1) * np.square(y_unit), about[:, 1:] * x_unit * y_unit[:, None], about[:, 0] * y_unit
    )
