"""The logistic loss over dense rows with its gradient and its Hessian, a line of rows at a time.

    η = o + wᵀx,   loss += s log(1 + e^{−ỹη}),   r = s(σ(η) − y),   gradient += r x,   hessian += s σ(1 − σ) xxᵀ

`LINE` rows are turned into lines of their columns, in the nearest caches: whatever is done to a row is then done to many side
by side, the exponential too, which of few columns takes longer than the products. Half of the Hessian is summed in registers,
in less time than a product of matrices takes for all of it. With `ones` a column of them follows those of X, in w, the
metric, the gradient and the Hessian. Sums run in the order of the lines; only the order within one is left to the compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.exponentials import falling_exponential, log_one_plus

LINE = 128
# Lines a power of two apart would share their places in a cache.
APART = LINE + 8
_FAST = {"reassoc", "contract"}


@compiled(fastmath=_FAST)
def add_products(lines: Any, bend: Any, bent: Any, hessian: Any) -> None:
    """`hessian` gains Σ bend z_j z_k of the lines z, in blocks of four by four on and below the diagonal."""
    for j in range(0, len(lines), 4):
        for a in range(4):
            for t in range(LINE):
                bent[a, t] = bend[t] * lines[j + a, t]
        for k in range(0, j + 1, 4):
            a0, a1, a2, a3, b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            c0, c1, c2, c3, d0, d1, d2, d3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for t in range(LINE):
                a, b, c, d = bent[0, t], bent[1, t], bent[2, t], bent[3, t]
                one, two, three, four = lines[k, t], lines[k + 1, t], lines[k + 2, t], lines[k + 3, t]
                a0, a1, a2, a3 = a0 + a * one, a1 + a * two, a2 + a * three, a3 + a * four
                b0, b1, b2, b3 = b0 + b * one, b1 + b * two, b2 + b * three, b3 + b * four
                c0, c1, c2, c3 = c0 + c * one, c1 + c * two, c2 + c * three, c3 + c * four
                d0, d1, d2, d3 = d0 + d * one, d1 + d * two, d2 + d * three, d3 + d * four
            for a, row in enumerate(((a0, a1, a2, a3), (b0, b1, b2, b3), (c0, c1, c2, c3), (d0, d1, d2, d3))):
                for b, total in enumerate(row):
                    hessian[j + a, k + b] += total


@compiled(fastmath=_FAST)
def logistic_lines(
    X: Any,
    ones: Any,
    codes: Any,
    weights: Any,
    offset: Any,
    w: Any,
    metric: Any,
    gradient: Any,
    hessian: Any,
    bends: Any,
    border: Any,
) -> tuple[Any, Any, Any, Any, Any]:
    """(loss, Σ sr², max |η|, max Σ_j metric_j x_j², Σ sh), h = σ(1 − σ); `gradient` gains Σ srx,
    `border` (p,) Σ shx, `bends` (n,) takes h.

    `hessian` is all zeros and takes Σ shxxᵀ; its side is that of w, filled up to a multiple of four. Empty arrays stand for
    ones and zeros, and for what is not asked for.
    """
    n, d = X.shape
    p = len(w)
    lines = np.zeros(((p + 3) // 4 * 4, APART))
    eta, small, slope, bend, bent = np.empty(LINE), np.empty(LINE), np.zeros(LINE), np.zeros(LINE), np.empty((4, LINE))
    if ones:
        lines[d, :] = 1.0
    loss, squares, steepest, largest, total = 0.0, 0.0, 0.0, 0.0, 0.0
    for first in range(0, n, LINE):
        m = min(LINE, n - first)
        for t in range(m):
            for j in range(d):
                lines[j, t] = X[first + t, j]
        for t in range(m):
            eta[t] = 0.0 if len(offset) == 0 else offset[first + t]
        for j in range(p):
            for t in range(m):
                eta[t] += w[j] * lines[j, t]
        for t in range(m):
            small[t] = falling_exponential(-abs(eta[t]))
        for t in range(m):
            weight = 1.0 if len(weights) == 0 else weights[first + t]
            one, low = codes[first + t] == 1, small[t]
            high = 1.0 / (1.0 + low)  # σ(|η|); 1 − σ is low·high, not a difference that would cancel
            wrong_side = (eta[t] < 0.0) == one
            loss += weight * (log_one_plus(low) + (abs(eta[t]) if wrong_side else 0.0))
            size = high if wrong_side else low * high
            squares += weight * size * size
            slope[t] = weight * (-size if one else size)
            bend[t] = low * high * high
            steepest = max(steepest, abs(eta[t]))
        if len(bends) > 0:
            for t in range(m):
                bends[first + t] = bend[t]
        if len(weights) > 0:
            for t in range(m):
                bend[t] *= weights[first + t]
        for t in range(m, LINE):  # of the last line: rows that are not there
            slope[t], bend[t] = 0.0, 0.0
        for t in range(m):
            total += bend[t]
        for j in range(p):
            along = 0.0
            for t in range(LINE):
                along += slope[t] * lines[j, t]
            gradient[j] += along
        for j in range(len(border)):
            along = 0.0
            for t in range(LINE):
                along += bend[t] * lines[j, t]
            border[j] += along
        if len(metric) > 0:
            for t in range(m):
                size = 0.0
                for j in range(p):
                    size += metric[j] * lines[j, t] * lines[j, t]
                largest = max(largest, size)
        if len(hessian) > 0:
            add_products(lines, bend, bent, hessian)
    for j in range(len(hessian)):
        for k in range(j):
            hessian[k, j] = hessian[j, k]
    return loss, squares, steepest, largest, total
