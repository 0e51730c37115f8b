"""The logistic loss and its gradient over dense rows, each row read once.

    η = o + b + wᵀx,   loss += s log(1 + e^{−ỹη}),   r = s(σ(η) − y),   gradient += r x

Sums run in the order of the rows; only the order within a dot product is left to the compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled


@compiled(fastmath={"reassoc", "contract"})
def logistic_pass(
    X: Any, codes: Any, weights: Any, offset: Any, w: Any, b: Any, metric: Any, gradient: Any, bends: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """(loss, Σ sr, Σ sr², max |η|, max Σ_j metric_j x_j²); `gradient` gains Σ srx, `bends` take σ(1 − σ).

    Empty arrays stand for ones and zeros, and for what is not asked for.
    """
    loss, slopes, squares, steepest, largest = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(X.shape[0]):
        eta = 0.0
        if len(metric) > 0:
            size = 0.0
            for j in range(X.shape[1]):
                eta += w[j] * X[i, j]
                size += metric[j] * X[i, j] * X[i, j]
            largest = max(largest, size)
        else:
            for j in range(X.shape[1]):
                eta += w[j] * X[i, j]
        eta += b
        if len(offset) > 0:
            eta += offset[i]
        weight = 1.0 if len(weights) == 0 else weights[i]
        small = np.exp(-abs(eta))
        high = 1.0 / (1.0 + small)  # σ(|η|)
        p = high if eta >= 0.0 else small * high
        wrong_side = (eta < 0.0) == (codes[i] == 1)
        loss += weight * (np.log1p(small) + (abs(eta) if wrong_side else 0.0))
        # 1 − σ is small·high, not a difference that would cancel.
        slope = p if codes[i] == 0 else (-(small * high) if eta >= 0.0 else -high)
        squares += weight * slope * slope
        slope *= weight
        slopes += slope
        if len(bends) > 0:
            bends[i] = small * high * high
        steepest = max(steepest, abs(eta))
        for j in range(X.shape[1]):
            gradient[j] += slope * X[i, j]
    return loss, slopes, squares, steepest, largest


@compiled(fastmath={"reassoc", "contract"})
def logistic_curve(X: Any, bends: Any, weights: Any, v: Any, b: Any, product: Any) -> Any:
    """Σ u with u = s h (b + vᵀx), h the bends; `product` gains Σ ux."""
    total = 0.0
    for i in range(X.shape[0]):
        moved = 0.0
        for j in range(X.shape[1]):
            moved += v[j] * X[i, j]
        moved = (moved + b) * bends[i]
        if len(weights) > 0:
            moved *= weights[i]
        total += moved
        for j in range(X.shape[1]):
            product[j] += moved * X[i, j]
    return total
