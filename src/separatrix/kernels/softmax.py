"""The softmax loss, its gradient and its Hessian-vector products over dense rows, each row read once.

    η_k = o_k + b_k + w_kᵀx,   p = softmax η,   loss += s(log Σ e^{η_k} − η_y),   gradient_k += s(p_k − [k = y]) x
    product_k += s p_k (z_k − pᵀz) x,   z = Vx

Sums run in the order of the rows; only the order within a dot product is left to the compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

_FAST = {"reassoc", "contract"}


@compiled(fastmath=_FAST)
def softmax_pass(
    X: Any, codes: Any, weights: Any, offset: Any, W: Any, b: Any, gradient: Any, slopes: Any, p: Any
) -> tuple[Any, Any, Any]:
    """(loss, Σ s‖p − e_y‖², max |η|); `gradient` and `slopes` gain the sums, `p` (n, m) or empty takes the posteriors."""
    m, d = W.shape
    eta = np.empty(m)
    loss, squares, steepest = 0.0, 0.0, 0.0
    for i in range(X.shape[0]):
        largest, at = -np.inf, 0
        for k in range(m):
            total = 0.0
            for j in range(d):
                total += W[k, j] * X[i, j]
            total += b[k]
            if len(offset) > 0:
                total += offset[i, k]
            eta[k] = total
            if total > largest:
                largest, at = total, k
            steepest = max(steepest, abs(total))
        own, others = eta[codes[i]], 0.0
        for k in range(m):
            eta[k] = np.exp(eta[k] - largest)
            others += 0.0 if k == at else eta[k]
        weight = 1.0 if len(weights) == 0 else weights[i]
        loss += weight * (np.log1p(others) + (largest - own))
        inverse = 1.0 / (1.0 + others)
        for k in range(m):
            eta[k] *= inverse
            if len(p) > 0:
                p[i, k] = eta[k]
            residual = eta[k] - (1.0 if k == codes[i] else 0.0)
            slope = weight * residual
            slopes[k] += slope
            squares += slope * residual
            for j in range(d):
                gradient[k, j] += slope * X[i, j]
    return loss, squares, steepest


@compiled(fastmath=_FAST)
def softmax_curve(X: Any, p: Any, weights: Any, V: Any, v: Any, product: Any, sums: Any) -> None:
    """`product` and `sums` gain the Hessian's product with (V, v), v the part of the intercepts."""
    m, d = V.shape
    z = np.empty(m)
    for i in range(X.shape[0]):
        mean = 0.0
        for k in range(m):
            total = 0.0
            for j in range(d):
                total += V[k, j] * X[i, j]
            z[k] = total + v[k]
            mean += p[i, k] * z[k]
        weight = 1.0 if len(weights) == 0 else weights[i]
        for k in range(m):
            moved = weight * p[i, k] * (z[k] - mean)
            sums[k] += moved
            for j in range(d):
                product[k, j] += moved * X[i, j]
