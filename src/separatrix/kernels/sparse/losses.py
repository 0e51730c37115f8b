"""The logistic and softmax losses over sparse rows, their gradients and the softmax's Hessian: the entries are read once.

    η = o + b + wᵀx,     loss += s log(1 + e^{−ỹη}),        r = s(σ(η) − y),           gradient += r x
    η_k = o_k + b_k + w_kᵀx,   loss += s(log Σ e^{η_k} − η_y),   r_k = s(p_k − [k = y]),   gradient_k += r_k x

Of several scores the coefficients lie column by column, (d, m): those of one entry are neighbours in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.softmax import exponentials, row_below, row_curve, row_slopes

_FAST = {"reassoc", "contract"}


@compiled(fastmath=_FAST)
def sparse_logistic_pass(
    data: Any,
    indices: Any,
    indptr: Any,
    codes: Any,
    weights: Any,
    offset: Any,
    w: Any,
    b: Any,
    gradient: Any,
    curvatures: Any,
) -> tuple[Any, Any, Any, Any]:
    """(loss, Σ r, Σ r²/s, max |η|); `gradient` gains Σ rx, `curvatures` (n,) or empty takes σ(1 − σ).

    Empty arrays of weights and offsets stand for ones and zeros.
    """
    loss, slopes, squares, steepest = 0.0, 0.0, 0.0, 0.0
    for i in range(len(codes)):
        eta = b
        for p in range(indptr[i], indptr[i + 1]):
            eta += data[p] * w[np.uint64(indices[p])]  # unsigned: no test for an index that counts from the end
        if len(offset) > 0:
            eta += offset[i]
        weight = 1.0 if len(weights) == 0 else weights[i]
        small = np.exp(-abs(eta))
        high = 1.0 / (1.0 + small)  # σ(|η|)
        wrong_side = (eta < 0.0) == (codes[i] == 1)
        loss += weight * (np.log1p(small) + (abs(eta) if wrong_side else 0.0))
        # 1 − σ is small·high, not a difference that would cancel.
        slope = high if wrong_side else small * high
        slope = -slope if codes[i] == 1 else slope
        if len(curvatures) > 0:
            curvatures[i] = small * high * high
        squares += weight * slope * slope
        slope *= weight
        slopes += slope
        steepest = max(steepest, abs(eta))
        for p in range(indptr[i], indptr[i + 1]):
            gradient[np.uint64(indices[p])] += slope * data[p]
    return loss, slopes, squares, steepest


@compiled(fastmath=_FAST)
def sparse_softmax_pass(
    data: Any,
    indices: Any,
    indptr: Any,
    codes: Any,
    weights: Any,
    offset: Any,
    W: Any,
    b: Any,
    gradient: Any,
    slopes: Any,
    posteriors: Any,
) -> tuple[Any, Any, Any]:
    """(loss, Σ ‖r‖²/s, max |η|); `gradient` (d, m) and `slopes` gain the sums, `posteriors` (n, m) or empty is filled."""
    m = W.shape[1]
    eta = np.empty(m)
    loss, squares, steepest = 0.0, 0.0, 0.0
    for i in range(len(codes)):
        for k in range(m):
            eta[k] = b[k]
        if len(offset) > 0:
            for k in range(m):
                eta[k] += offset[i, k]
        for p in range(indptr[i], indptr[i + 1]):
            row, entry = W[np.uint64(indices[p])], data[p]
            for k in range(m):
                eta[k] += entry * row[k]
        weight = 1.0 if len(weights) == 0 else weights[i]
        behind, at, height = row_below(eta, codes[i])
        exponentials(eta)
        value, square = row_slopes(eta, behind, at, codes[i], weight, slopes, posteriors, i)
        loss += value
        squares += square
        steepest = max(steepest, height)
        for p in range(indptr[i], indptr[i + 1]):
            row, entry = gradient[np.uint64(indices[p])], data[p]
            for k in range(m):
                row[k] += entry * eta[k]
    return loss, squares, steepest


@compiled(fastmath=_FAST)
def sparse_softmax_curve(
    data: Any, indices: Any, indptr: Any, posteriors: Any, weights: Any, V: Any, v: Any, product: Any, sums: Any
) -> None:
    """`product` (d, m) and `sums` gain the Hessian's product with (V, v), v the part of the intercepts."""
    m = V.shape[1]
    z = np.empty(m)
    for i in range(len(posteriors)):
        for k in range(m):
            z[k] = v[k]
        for p in range(indptr[i], indptr[i + 1]):
            row, value = V[np.uint64(indices[p])], data[p]
            for k in range(m):
                z[k] += value * row[k]
        row_curve(z, posteriors[i], 1.0 if len(weights) == 0 else weights[i], sums)
        for p in range(indptr[i], indptr[i + 1]):
            row, value = product[np.uint64(indices[p])], data[p]
            for k in range(m):
                row[k] += value * z[k]
