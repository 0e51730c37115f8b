"""The commonest losses over large dense blocks, in compiled loops that read every row once.

The same sums as in linear.py, which stays the definition: a loss, a layout or a size that is not served here goes there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.lazy import compiled_pays
from separatrix.objectives.losses import Loss, Softmax
from separatrix.objectives.margin_losses import Logistic

# Below this many multiplications a pass NumPy is as fast; above, a compiled loop saves so many seconds for each, over the
# passes of a fit.
_WORTH_COMPILING, _SAVED_SECONDS = 2_000_000, 5e-9
_NOTHING = np.empty(0)


@dataclass(frozen=True)
class Fused:
    """Sums over one block; `curvatures` are what `Loss.curvature` gives, `largest_row` is NaN unless asked for."""

    loss: float
    gradient: Float
    largest_row: float
    steepest: float
    residual: float
    total: float
    curvatures: NDArray[np.float32] | None = None


def worth_compiling(source: Source, theta: Float) -> bool:
    """Whether a pass is long enough: by the shape, and as long as numba is not imported by what a fit would gain."""
    if source.n_rows is None:
        return True
    work = source.n_rows * theta.size
    return work >= _WORTH_COMPILING and compiled_pays(_SAVED_SECONDS * work)


def fused_sums(
    loss: Loss, theta: Float, block: Block, own: Float | None, metric: Float | None, keep: bool
) -> Fused | None:
    """Value and gradient of the rows that count, with their offsets; ``None`` where there is no compiled loop."""
    plain = block.plain_rows()
    if plain is None:
        return None
    (X, ones), weights = plain, _NOTHING if block.weights is None else block.weights
    m, d = len(theta), X.shape[1]
    total = float(block.n) if block.weights is None else float(weights.sum())
    W = np.ascontiguousarray(theta[:, :d])
    b = np.ascontiguousarray(theta[:, d]) if ones else np.zeros(m)
    gradient = np.zeros((m, d))
    if type(loss) is Logistic and not keep:
        from separatrix.kernels.logistic import logistic_pass  # numba takes a while to import

        offset = _NOTHING if own is None else np.ascontiguousarray(own[:, 0])
        measure = _NOTHING if metric is None else np.ascontiguousarray(metric[:d])
        value, slope, squares, steepest, largest = logistic_pass(
            X, block.codes, weights, offset, W[0], b[0], measure, gradient[0]
        )
        largest = np.nan if metric is None else largest + (float(metric[d]) if ones else 0.0)
        return Fused(value, _joined(gradient, np.array([slope]), ones), largest, steepest, squares, total)
    if type(loss) is Softmax and loss.baseline is None and metric is None:
        from separatrix.kernels.softmax import softmax_pass

        offset = np.empty((0, 0)) if own is None else np.ascontiguousarray(own)
        # For steps alone: single precision is enough there, and half the memory.
        slopes, p = np.zeros(m), np.empty((block.n if keep else 0, m), dtype=np.float32)
        value, squares, steepest = softmax_pass(X, block.codes, weights, offset, W, b, gradient, slopes, p)
        return Fused(value, _joined(gradient, slopes, ones), np.nan, steepest, squares, total, p if keep else None)
    return None


def fused_curve(direction: Float, block: Block, p: NDArray[np.float32]) -> Float:
    """(p, m) product of the softmax's Hessian with a direction, given the posteriors of the rows that count."""
    from separatrix.kernels.softmax import softmax_curve

    plain = block.plain_rows()
    assert plain is not None
    X, ones = plain
    m, d = len(direction), X.shape[1]
    v = np.ascontiguousarray(direction[:, d]) if ones else np.zeros(m)
    product, sums = np.zeros((m, d)), np.zeros(m)
    weights = _NOTHING if block.weights is None else block.weights
    softmax_curve(X, p, weights, np.ascontiguousarray(direction[:, :d]), v, product, sums)
    return _joined(product, sums, ones).T


def _joined(columns: Float, last: Float, ones: bool) -> Float:
    return np.column_stack([columns, last]) if ones else columns
