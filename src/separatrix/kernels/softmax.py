"""The softmax loss, its gradient and its Hessian-vector products over dense rows, each row read once.

    η_k = o_k + b_k + w_kᵀx,   p = softmax η,   loss += s(log Σ e^{η_k} − η_y),   gradient_k += s(p_k − [k = y]) x
    product_k += s p_k (z_k − pᵀz) x,   z = Vx

Four rows at a time share what is read of W and what is written of the sums, and `_TILE` rows their exponentials, which are
taken side by side. Sums run in the order of the rows; only the order within a dot product, and within four rows, is left to
the compiler. What happens between scores and sums is `row_below`, `exponentials`, `row_slopes` and `row_curve`, for sparse
rows too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.exponentials import falling_exponential

_FAST = {"reassoc", "contract"}
# Rows whose exponentials are taken together: a multiple of four.
_TILE = 32


@compiled(fastmath=_FAST)
def row_below(eta: Any, code: Any) -> tuple[Any, Any, Any]:
    """(max η − η_code, where the maximum is, max |η|) of one row; its scores become η − max η."""
    largest, at, steepest = -np.inf, 0, 0.0
    for k in range(len(eta)):
        if eta[k] > largest:
            largest, at = eta[k], k
        steepest = max(steepest, abs(eta[k]))
    own = eta[code]
    for k in range(len(eta)):
        eta[k] -= largest
    return largest - own, at, steepest


@compiled(fastmath=_FAST)
def exponentials(below: Any) -> None:
    """e^x for x ≤ 0, in place."""
    for k in range(len(below)):
        below[k] = falling_exponential(below[k])


@compiled(fastmath=_FAST)
def row_slopes(eta: Any, behind: Any, at: Any, code: Any, weight: Any, slopes: Any, p: Any, i: Any) -> tuple[Any, Any]:
    """(loss, s‖p − e_y‖²) of row i; its exponentials become s(p − e_y), and row i of `p` its posteriors, if it has rows."""
    others = 0.0
    for k in range(len(eta)):
        others += 0.0 if k == at else eta[k]
    inverse, squares = 1.0 / (1.0 + others), 0.0
    for k in range(len(eta)):
        eta[k] *= inverse
        if len(p) > 0:
            p[i, k] = eta[k]
        residual = eta[k] - (1.0 if k == code else 0.0)
        eta[k] = weight * residual
        slopes[k] += eta[k]
        squares += eta[k] * residual
    return weight * (np.log1p(others) + behind), squares


@compiled(fastmath=_FAST)
def row_curve(z: Any, p: Any, weight: Any, sums: Any) -> None:
    """z becomes s p_k(z_k − pᵀz), which `sums` gain."""
    mean = 0.0
    for k in range(len(z)):
        mean += p[k] * z[k]
    for k in range(len(z)):
        z[k] = weight * p[k] * (z[k] - mean)
        sums[k] += z[k]


@compiled(fastmath=_FAST)
def _scores(X: Any, first: Any, rows: Any, W: Any, b: Any, scores: Any) -> None:
    """Wx + b of up to four rows."""
    m, d = W.shape
    for k in range(m):
        if rows == 4:
            one, two, three, four = b[k], b[k], b[k], b[k]
            for j in range(d):
                w = W[k, j]
                one += w * X[first, j]
                two += w * X[first + 1, j]
                three += w * X[first + 2, j]
                four += w * X[first + 3, j]
            scores[0, k], scores[1, k], scores[2, k], scores[3, k] = one, two, three, four
        else:
            for r in range(rows):
                one = b[k]
                for j in range(d):
                    one += W[k, j] * X[first + r, j]
                scores[r, k] = one


@compiled(fastmath=_FAST)
def _add(X: Any, first: Any, rows: Any, slopes: Any, sums: Any) -> None:
    """`sums` gain the slopes of up to four rows times these."""
    m, d = sums.shape
    for k in range(m):
        if rows == 4:
            one, two, three, four = slopes[0, k], slopes[1, k], slopes[2, k], slopes[3, k]
            for j in range(d):
                pair = one * X[first, j] + two * X[first + 1, j]
                sums[k, j] += pair + (three * X[first + 2, j] + four * X[first + 3, j])
        else:
            for r in range(rows):
                one = slopes[r, k]
                for j in range(d):
                    sums[k, j] += one * X[first + r, j]


@compiled(fastmath=_FAST)
def softmax_pass(
    X: Any, codes: Any, weights: Any, offset: Any, W: Any, b: Any, gradient: Any, slopes: Any, p: Any
) -> tuple[Any, Any, Any]:
    """(loss, Σ s‖p − e_y‖², max |η|); `gradient` and `slopes` gain the sums, `p` (n, m) or empty takes the posteriors."""
    eta, behind, at = np.empty((_TILE, len(W))), np.empty(_TILE), np.empty(_TILE, dtype=np.intp)
    flat = eta.reshape(-1)
    loss, squares, steepest = 0.0, 0.0, 0.0
    for start in range(0, len(X), _TILE):
        tile = min(_TILE, len(X) - start)
        for first in range(0, tile, 4):
            _scores(X, start + first, min(4, tile - first), W, b, eta[first:])
        for r in range(tile):
            if len(offset) > 0:
                for k in range(len(W)):
                    eta[r, k] += offset[start + r, k]
            behind[r], at[r], height = row_below(eta[r], codes[start + r])
            steepest = max(steepest, height)
        exponentials(flat[: tile * len(W)])
        for r in range(tile):
            i = start + r
            weight = 1.0 if len(weights) == 0 else weights[i]
            value, square = row_slopes(eta[r], behind[r], at[r], codes[i], weight, slopes, p, i)
            loss += value
            squares += square
        for first in range(0, tile, 4):
            _add(X, start + first, min(4, tile - first), eta[first:], gradient)
    return loss, squares, steepest


@compiled(fastmath=_FAST)
def softmax_curve(X: Any, p: Any, weights: Any, V: Any, v: Any, product: Any, sums: Any) -> None:
    """`product` and `sums` gain the Hessian's product with (V, v), v the part of the intercepts."""
    z = np.empty((4, len(V)))
    for first in range(0, len(X), 4):
        rows = min(4, len(X) - first)
        _scores(X, first, rows, V, v, z)
        for r in range(rows):
            row_curve(z[r], p[first + r], 1.0 if len(weights) == 0 else weights[first + r], sums)
        _add(X, first, rows, z, product)
