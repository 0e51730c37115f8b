"""The Hessian of the logistic and softmax losses over dense rows, in one compiled sweep over a block.

The same sums as in linear.py, which stays the definition. Threads queue for the interpreter once per block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.data.block import Block, Float, RowSums
from separatrix.objectives.fused import FEW_COLUMNS, Fused, fused_sums, kind_of
from separatrix.objectives.hessian_blocks import blocks_of_products
from separatrix.objectives.losses import Loss, Softmax
from separatrix.objectives.margin_losses import Logistic
from separatrix.objectives.rounding import EPS

_NOTHING, _NO_MATRIX = np.empty(0), np.empty((0, 0))
_NO_POSTERIORS = np.empty((0, 0), dtype=np.float32)
# Coefficients of all classes up to which a Hessian is summed in registers.
_FEW_COEFFICIENTS = 512


@dataclass(frozen=True)
class CurvedSums:
    """Sums over the rows that count: those of linear.py, in the order of its fields."""

    loss: float
    gradient: Float
    hessian: Float
    largest_row: float
    steepest: float
    residual: float
    total: float
    curvature: Float
    precision: float = EPS


def fused_hessian(loss: Loss, theta: Float, block: Block, own: Float | None, metric: Float | None) -> CurvedSums | None:
    """Value, gradient and Hessian of the rows that count, with their offsets; ``None`` where there is no compiled loop."""
    there = block.row_sums()
    if there is not None and there[0].curved and kind_of(loss) not in (None, "softmax"):
        sums = fused_sums(loss, theta, block, own, metric, keep=True)
        return None if sums is None else _hessian_there(sums, *there)
    if type(loss) is Softmax:
        return _softmax_hessian(loss, theta, block, own, metric)
    plain = block.plain_rows()
    if plain is None or type(loss) is not Logistic:
        return None
    from separatrix.kernels.lines.logistic_lines import logistic_lines  # numba takes a while to import

    (X, ones), weights, p = plain, _NOTHING if block.weights is None else block.weights, theta.shape[1]
    w, gradient, side = np.ascontiguousarray(theta[0]), np.zeros((1, p)), -(-p // 4) * 4
    offset = _NOTHING if own is None else np.ascontiguousarray(own[:, 0])
    measure, hessian = _NOTHING if metric is None else metric, np.zeros((side, side))
    value, squares, steepest, largest, bend = logistic_lines(
        X, ones, block.codes, weights, offset, w, measure, gradient[0], hessian, _NOTHING, _NOTHING
    )
    total = float(block.n) if block.weights is None else float(weights.sum())
    largest = np.nan if metric is None else largest
    kept = hessian[:p, :p].reshape(1, 1, p, p)
    return CurvedSums(value, gradient, kept, largest, steepest, squares, total, np.full((1, 1), bend))


def _softmax_hessian(
    loss: Softmax, theta: Float, block: Block, own: Float | None, metric: Float | None
) -> CurvedSums | None:
    """The same with all scores of a softmax, where coefficients and columns are few."""
    plain, (m, p) = block.plain_rows(), theta.shape
    if plain is None or loss.baseline is not None or p > FEW_COLUMNS or m * p > _FEW_COEFFICIENTS:
        return None
    from separatrix.kernels.lines.softmax_lines import softmax_lines

    (X, ones), weights, side = plain, _NOTHING if block.weights is None else block.weights, -(-m * p // 4) * 4
    offset = _NO_MATRIX if own is None else np.ascontiguousarray(own)
    gradient, products, bend = np.zeros((m, p)), np.zeros((side, side)), np.zeros((m, m))
    W = np.ascontiguousarray(theta)
    value, squares, steepest = softmax_lines(
        X, ones, block.codes, weights, offset, W, gradient, products, bend, _NO_POSTERIORS
    )
    total = float(block.n) if block.weights is None else float(weights.sum())
    largest = np.nan if metric is None else block.largest_row(metric)
    hessian = blocks_of_products(products[: m * p, : m * p], m)
    return CurvedSums(value, gradient, hessian, largest, steepest, squares, total, bend)


def _hessian_there(sums: Fused, rows: RowSums, ones: bool) -> CurvedSums:
    """The same, made where the rows lie."""
    hessian = rows.loss_hessian(sums.curvatures, ones)
    p = len(hessian)
    assert sums.bend is not None, "curvatures were kept"
    facts = (sums.largest_row, sums.steepest, sums.residual, sums.total)
    return CurvedSums(sums.loss, sums.gradient, hessian.reshape(1, 1, p, p), *facts, sums.bend, sums.precision)
