"""The logistic loss and its gradient over dense rows, each row read once.

    η = o + b + wᵀx,   loss += s log(1 + e^{−ỹη}),   r = s(σ(η) − y),   gradient += r x,   row = √(sσ(1 − σ)) x

Sums run in the order of the rows; only the order within a dot product is left to the compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled


@compiled(fastmath={"reassoc", "contract"})
def logistic_pass(
    X: Any, codes: Any, weights: Any, offset: Any, w: Any, b: Any, metric: Any, gradient: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """(loss, Σ sr, Σ sr², max |η|, max Σ_j metric_j x_j²); `gradient` gains Σ srx. Empty arrays stand for ones and zeros."""
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
        steepest = max(steepest, abs(eta))
        for j in range(X.shape[1]):
            gradient[j] += slope * X[i, j]
    return loss, slopes, squares, steepest, largest


@compiled(fastmath={"reassoc", "contract"})
def logistic_rows(
    X: Any, ones: Any, codes: Any, weights: Any, offset: Any, w: Any, metric: Any, gradient: Any, rows: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """(loss, Σ sr², max |η|, max Σ_j metric_j x_j², Σ sh), h = σ(1 − σ); `gradient` gains Σ srx, `rows` take √(sh) x.

    With `ones` a column of them follows those of X, in w, the metric, the gradient and the rows.
    """
    d = X.shape[1]
    loss, squares, steepest, largest, bends = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(X.shape[0]):
        eta, size = 0.0, 0.0
        if len(metric) > 0:
            for j in range(d):
                eta += w[j] * X[i, j]
                size += metric[j] * X[i, j] * X[i, j]
            largest = max(largest, size + (metric[d] if ones else 0.0))
        else:
            for j in range(d):
                eta += w[j] * X[i, j]
        if ones:
            eta += w[d]
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
        steepest = max(steepest, abs(eta))
        bend = weight * small * high * high
        bends += bend
        root = np.sqrt(bend)
        for j in range(d):
            gradient[j] += slope * X[i, j]
            rows[i, j] = root * X[i, j]
        if ones:
            gradient[d] += slope
            rows[i, d] = root
    return loss, squares, steepest, largest, bends
