"""The commonest losses over large blocks, dense or sparse, in compiled loops that read every row once.

The same sums as in linear.py, which stays the definition: a loss, a layout or a size that is not served here goes there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Float, RowSums
from separatrix.data.source import Source
from separatrix.data.views import entries_below
from separatrix.lazy import compiled_pays
from separatrix.objectives.losses import Loss, Softmax
from separatrix.objectives.margin_losses import Hinge, Logistic, SmoothedHinge, SquaredHinge
from separatrix.objectives.rounding import EPS

# Below the first number of multiplications a pass NumPy is as fast as a compiled loop that is there. From the second on a fit,
# and those that follow it on such rows, gain what the import takes; the shape alone decides, as the bits of the answer follow.
_WORTH_COMPILING, _WORTH_IMPORTING = 50_000, 30_000_000
# The same of entries that are stored in a sparse block.
_ENTRIES, _FEW_ENTRIES = 100_000, 2_000  # the latter where numba is there
_MANY_COLUMNS = 2000
# From this many classes on products of matrices beat a loop over rows, in pieces of so many rows.
_MANY_CLASSES, _PIECE = 20, 1024
_NOTHING, _NO_MATRIX = np.empty(0), np.empty((0, 0))
# Up to so many columns rows are turned into lines; of several classes up to fewer.
FEW_COLUMNS, _FEW_OF_SOFTMAX = 56, 32
MARGINS: dict[type, str] = {Hinge: "hinge", SquaredHinge: "squared_hinge", SmoothedHinge: "smoothed_hinge"}
_KINDS: dict[type, str] = {Logistic: "logistic", **MARGINS}


@dataclass(frozen=True)
class Fused:
    """Sums over one block; `curvatures` are what `Loss.curvature` gives, `largest_row` is NaN unless asked for."""

    loss: float
    gradient: Float
    largest_row: float
    steepest: float
    residual: float
    total: float
    curvatures: NDArray[np.floating[Any]] | None = None
    bend: Float | None = None
    """(m, m) Σ s∇²ℓ, where it is known."""
    precision: float = EPS


def worth_compiling(source: Source, theta: Float) -> bool:
    """Whether a pass is long enough: by the shape, and longer as long as numba is not imported."""
    if source.n_rows is None or source.device is not None:
        return True
    entries = entries_below(source)
    work = source.n_rows * theta.size if entries is None else entries * len(theta)
    return work >= (_WORTH_COMPILING if compiled_pays(0.0) else _WORTH_IMPORTING)


def fused_sums(
    loss: Loss, theta: Float, block: Block, own: Float | None, metric: Float | None, keep: bool
) -> Fused | None:
    """Value and gradient of the rows that count, with their offsets; ``None`` where there is no compiled loop."""
    if (there := block.row_sums()) is not None:
        sums = _sums_there(loss, theta, *there, own, metric, keep)
        if sums is not None or there[0].curved:  # else the rows can be made
            return sums
    plain = block.plain_rows()
    if plain is None:
        return _sparse_sums(loss, theta, block, own, keep) if metric is None else None
    total = float(block.n) if block.weights is None else float(block.weights.sum())
    if type(loss) is Logistic:
        return _logistic_sums(theta, block, own, metric, keep, total)
    if type(loss) is Softmax and loss.baseline is None and metric is None:
        return _softmax_sums(loss, theta, block, own, keep, total)
    return None


def _logistic_sums(
    theta: Float, block: Block, own: Float | None, metric: Float | None, keep: bool, total: float
) -> Fused | None:
    """Of dense rows: side by side where their columns are few or neighbours in memory, else one after the other."""
    plain = block.plain_rows()
    assert plain is not None
    (X, ones), weights = plain, _NOTHING if block.weights is None else block.weights
    d, bends = X.shape[1], np.empty(block.n if keep else 0)
    offset = _NOTHING if own is None else np.ascontiguousarray(own[:, 0])
    measure = _NOTHING if metric is None else np.ascontiguousarray(metric)
    w, gradient = np.ascontiguousarray(theta[0]), np.zeros((1, len(theta[0])))
    if d <= FEW_COLUMNS or not X.flags.c_contiguous:
        from separatrix.kernels.lines.logistic_lines import logistic_lines

        value, squares, steepest, largest, _ = logistic_lines(
            X, ones, block.codes, weights, offset, w, measure, gradient[0], _NO_MATRIX, bends, _NOTHING
        )
    else:
        from separatrix.kernels.logistic import logistic_pass  # numba takes a while to import

        last = float(w[d]) if ones else 0.0
        value, slope, squares, steepest, largest = logistic_pass(
            X, block.codes, weights, offset, w[:d], last, measure[:d], gradient[0, :d], bends
        )
        if ones:
            gradient[0, d] = slope
            largest += float(measure[d]) if metric is not None else 0.0
    largest = np.nan if metric is None else largest
    return Fused(value, gradient, largest, steepest, squares, total, bends[:, None] if keep else None)


def _softmax_sums(
    loss: Softmax, theta: Float, block: Block, own: Float | None, keep: bool, total: float
) -> Fused | None:
    """Of several classes: few columns side by side, many classes by products of matrices, else row by row."""
    plain, m = block.plain_rows(), len(theta)
    assert plain is not None
    (X, ones), weights = plain, _NOTHING if block.weights is None else block.weights
    d, few = X.shape[1], X.shape[1] <= _FEW_OF_SOFTMAX
    if m >= _MANY_CLASSES and not few:
        return _many_classes(loss, theta, block, own, keep)
    offset = _NO_MATRIX if own is None else np.ascontiguousarray(own)
    # For steps alone: single precision is enough there, and half the memory.
    p = np.empty((block.n if keep else 0, m), dtype=np.float32)
    if few:
        from separatrix.kernels.lines.softmax_lines import softmax_lines

        W, gradient = np.ascontiguousarray(theta), np.zeros(theta.shape)
        value, squares, steepest = softmax_lines(
            X, ones, block.codes, weights, offset, W, gradient, _NO_MATRIX, _NO_MATRIX, p
        )
    else:
        from separatrix.kernels.softmax import softmax_pass

        W, b = np.ascontiguousarray(theta[:, :d]), np.ascontiguousarray(theta[:, d]) if ones else np.zeros(m)
        sums, slopes = np.zeros((m, d)), np.zeros(m)
        value, squares, steepest = softmax_pass(X, block.codes, weights, offset, W, b, sums, slopes, p)
        gradient = _joined(sums, slopes, ones)
    return Fused(value, gradient, np.nan, steepest, squares, total, p if keep else None)


def _sums_there(
    loss: Loss, theta: Float, rows: RowSums, ones: bool, own: Float | None, metric: Float | None, keep: bool
) -> Fused | None:
    """The same, made where the rows lie."""
    kind = kind_of(loss)
    if kind is None or (type(loss) in MARGINS and not rows.margins):
        return None
    W, b = (theta[:, :-1], theta[:, -1]) if ones else (theta, np.zeros(len(theta)))
    measure = metric[:-1] if ones and metric is not None else metric
    rounded = {"width": loss.width} if isinstance(loss, SmoothedHinge) else {}
    sums = rows.loss_sums(kind, W, b, own, measure, keep, **rounded)
    if sums is None:
        return None
    largest = np.nan if metric is None else sums.largest + (float(metric[-1]) if ones else 0.0)
    gradient = _joined(sums.gradient, sums.slopes, ones)
    facts = (largest, sums.steepest, sums.squares, sums.total, sums.curvatures, sums.bend, sums.precision)
    return Fused(sums.loss, gradient, *facts)


def _curve_there(direction: Float, rows: RowSums, ones: bool, p: Any) -> Float:
    V, last = (direction[:, :-1], direction[:, -1]) if ones else (direction, np.zeros(len(direction)))
    product, sums = rows.loss_curve(p, V, last)
    return np.concatenate([product, sums[None]]) if ones else product


def kind_of(loss: Loss) -> str | None:
    """The name of a loss whose sums can be made where the rows lie."""
    if type(loss) is Softmax:
        return "softmax" if loss.baseline is None else None
    return _KINDS.get(type(loss))


def _sparse_sums(loss: Loss, theta: Float, block: Block, own: Float | None, keep: bool) -> Fused | None:
    sparse, m = block.sparse_rows(), len(theta)
    served = type(loss) is Logistic or (type(loss) is Softmax and loss.baseline is None)
    if sparse is None or not served:
        return None
    if len(sparse[0][0]) * m < (_FEW_ENTRIES if compiled_pays(0.0) else _ENTRIES):
        return None
    from separatrix.kernels.sparse.losses import sparse_logistic_pass, sparse_softmax_pass

    (rows, ones), weights = sparse, _NOTHING if block.weights is None else block.weights
    d, kept = block.shape[1] - ones, block.n if keep else 0
    total = float(block.n) if block.weights is None else float(weights.sum())
    if m == 1:
        gradient, curvatures = np.zeros((1, d + ones)), np.empty((kept, 1))
        offset = _NOTHING if own is None else np.ascontiguousarray(own[:, 0])
        w, b = np.ascontiguousarray(theta[0, :d]), float(theta[0, d]) if ones else 0.0
        value, slope, squares, steepest = sparse_logistic_pass(
            *rows, block.codes, weights, offset, w, b, gradient[0, :d], curvatures[:, 0]
        )
        if ones:
            gradient[0, d] = slope
        return Fused(value, gradient, np.nan, steepest, squares, total, curvatures if keep else None)
    offset = np.empty((0, 0)) if own is None else np.ascontiguousarray(own)
    W, last = _by_column(theta, d)
    product, p = np.zeros((d + ones, m)), np.empty((kept, m), dtype=np.float32)
    slopes = product[d] if ones else np.zeros(m)
    value, squares, steepest = sparse_softmax_pass(*rows, block.codes, weights, offset, W, last, product[:d], slopes, p)
    return Fused(value, product.T, np.nan, steepest, squares, total, p if keep else None)


def column_by_column(theta: Float) -> Float:
    """θ (m, p) with the scores of one column as neighbours in memory, where it is large: once for all blocks."""
    return np.asfortranarray(theta) if len(theta) > 1 and theta.shape[1] >= _MANY_COLUMNS else theta


def _by_column(theta: Float, d: int) -> tuple[Float, Float]:
    """(d, m) coefficients and (m,) intercepts, zeros where there are none."""
    m, p = theta.shape
    return np.ascontiguousarray(theta[:, :d].T), np.ascontiguousarray(theta[:, d]) if p > d else np.zeros(m)


def fused_curve(direction: Float, block: Block, p: NDArray[np.floating[Any]]) -> Float:
    """(p, m) product of the Hessian with a direction, given the curvatures of the rows that count: of a softmax, or dense."""
    if (there := block.row_sums()) is not None and there[0].curved:
        return _curve_there(direction, *there, p)
    if len(direction) >= _MANY_CLASSES and block.sparse_rows() is None:
        product, at = np.zeros(direction.T.shape), 0
        for piece in block.cut(_PIECE):
            moved, own = piece.matvec(direction.T), p[at : at + piece.n]
            moved -= np.einsum("ij,ij->i", own, moved)[:, None]
            moved *= own
            product += piece.rmatvec(moved if piece.weights is None else moved * piece.weights[:, None])
            at += piece.n
        return product
    from separatrix.kernels.logistic import logistic_curve
    from separatrix.kernels.softmax import softmax_curve

    plain, sparse = block.plain_rows(), block.sparse_rows()
    weights = _NOTHING if block.weights is None else block.weights
    if plain is None:
        from separatrix.kernels.sparse.losses import sparse_softmax_curve

        assert sparse is not None
        rows, ones = sparse
        d, m = block.shape[1] - ones, len(direction)
        total = np.zeros((d + ones, m))
        sums = total[d] if ones else np.zeros(m)
        sparse_softmax_curve(*rows, p, weights, *_by_column(direction, d), total[:d], sums)
        return total
    X, ones = plain
    m, d = len(direction), X.shape[1]
    if m == 1:
        along = np.zeros(d + ones)
        last = float(direction[0, d]) if ones else 0.0
        sloped = logistic_curve(X, p[:, 0], weights, np.ascontiguousarray(direction[0, :d]), last, along[:d])
        if ones:
            along[d] = sloped
        return along[:, None]
    v = np.ascontiguousarray(direction[:, d]) if ones else np.zeros(m)
    product, sums = np.zeros((m, d)), np.zeros(m)
    softmax_curve(X, p, weights, np.ascontiguousarray(direction[:, :d]), v, product, sums)
    return _joined(product, sums, ones).T


def _many_classes(loss: Softmax, theta: Float, block: Block, own: Float | None, keep: bool) -> Fused:
    """The same sums by products of matrices, a few rows at a time that stay in cache with their scores."""
    gradient, p = np.zeros(theta.T.shape), np.empty((block.n if keep else 0, len(theta)), dtype=np.float32)
    value, squares, steepest, total, at = 0.0, 0.0, 0.0, 0.0, 0
    for rows in block.cut(_PIECE):
        eta = rows.matvec(theta.T)
        if own is not None:
            eta += own[at : at + rows.n]
        steepest = max(steepest, float(eta.max(initial=0.0)), -float(eta.min(initial=0.0)))
        losses, slopes, _ = loss.at(rows.codes, eta, curved=False)
        if keep:
            p[at : at + rows.n] = slopes
            p[np.arange(at, at + rows.n), rows.codes] += 1.0
        weights = np.ones(rows.n) if rows.weights is None else rows.weights
        squares += float(weights @ np.einsum("ij,ij->i", slopes, slopes))
        value, total = value + float(weights @ losses), total + float(weights.sum())
        gradient += rows.rmatvec(slopes if rows.weights is None else slopes * weights[:, None])
        at += rows.n
    return Fused(value, gradient.T, np.nan, steepest, squares, total, p if keep else None)


def _joined(columns: Float, last: Float, ones: bool) -> Float:
    return np.column_stack([columns, last]) if ones else columns
