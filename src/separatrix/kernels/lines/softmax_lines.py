"""The softmax loss over dense rows of few columns, with its gradient and its Hessian, a line of rows at a time.

    η_k = o_k + w_kᵀx,   π = softmax η,   loss += s(log Σ e^{η_k} − η_y),   gradient_k += s(π_k − [k = y]) x
    products_kl += s π_k π_l xxᵀ,   which is −∇² off the diagonal of its blocks

As logistic_lines.py has it for two classes: `LINE` rows are turned into lines of their columns, and scores, exponentials and
sums run along these. With `ones` a column of them follows those of X, in W, the gradient and the products. Sums run in the
order of the lines; only the order within one is left to the compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.exponentials import falling_exponential, log_one_plus_many
from separatrix.kernels.lines.logistic_lines import APART, LINE, add_products

_FAST = {"reassoc", "contract"}


@compiled(fastmath=_FAST)
def _add_scores(W: Any, lines: Any, m: Any, eta: Any) -> None:
    """`eta` (K, ·) gains the scores of m rows."""
    K, p = W.shape
    even = p // 4 * 4
    for k in range(K):
        for j in range(0, even, 4):
            a, b, c, d = W[k, j], W[k, j + 1], W[k, j + 2], W[k, j + 3]
            for t in range(m):
                two = a * lines[j, t] + b * lines[j + 1, t]
                eta[k, t] += two + (c * lines[j + 2, t] + d * lines[j + 3, t])
        for j in range(even, p):
            for t in range(m):
                eta[k, t] += W[k, j] * lines[j, t]


@compiled(fastmath=_FAST)
def _relative(eta: Any, m: Any, top: Any, others: Any, at: Any) -> Any:
    """max |η| of m rows; `eta` becomes e^{η − max η}, `others` its sum without the largest score's, which is 1, at `at`."""
    steepest = 0.0
    for t in range(m):
        top[t], at[t], others[t] = eta[0, t], 0, 0.0
    for k in range(1, len(eta)):
        for t in range(m):
            higher = eta[k, t] > top[t]
            at[t] = k if higher else at[t]
            top[t] = eta[k, t] if higher else top[t]
    for k in range(len(eta)):
        for t in range(m):
            steepest = max(steepest, abs(eta[k, t]))
        for t in range(m):
            eta[k, t] = falling_exponential(eta[k, t] - top[t])
        for t in range(m):
            others[t] += 0.0 if at[t] == k else eta[k, t]
    return steepest


@compiled(fastmath=_FAST)
def _add_gradient(slopes: Any, lines: Any, gradient: Any) -> None:
    """`gradient` (K, p) gains the sums of slopes times lines, four of these at a time."""
    K, p = gradient.shape
    for k in range(K):
        for j in range(0, p, 4):
            one, two, three, four = 0.0, 0.0, 0.0, 0.0
            for t in range(LINE):
                slope = slopes[k, t]
                one += slope * lines[j, t]
                two += slope * lines[j + 1, t]
                three += slope * lines[j + 2, t]
                four += slope * lines[j + 3, t]
            for a, total in enumerate((one, two, three, four)):
                if j + a < p:
                    gradient[k, j + a] += total


@compiled(fastmath=_FAST, error_model="numpy")
def softmax_lines(
    X: Any, ones: Any, codes: Any, weights: Any, offset: Any, W: Any, gradient: Any, products: Any, bend: Any, kept: Any
) -> tuple[Any, Any, Any]:
    """(loss, Σ s‖π − e_y‖², max |η|); `gradient` (K, p) gains the sums, `kept` (n, K) takes the posteriors.

    `products` is all zeros and takes the (Kp, Kp) sums of the formula, its side filled up to a multiple of four; then `bend`
    (K, K) gains Σ s(diag π − ππᵀ). Empty arrays stand for ones and zeros, and for what is not asked for.
    """
    (n, d), (K, p) = X.shape, W.shape
    lines, eta, slopes = np.zeros(((p + 3) // 4 * 4, APART)), np.zeros((K, LINE)), np.zeros((K, LINE))
    top, others, own, weight = np.empty(LINE), np.empty(LINE), np.empty(LINE), np.zeros(LINE)
    at, code = np.empty(LINE, dtype=np.int64), np.empty(LINE, dtype=np.int64)
    spread, bent = np.zeros((len(products), APART)), np.empty((4, LINE))
    if ones:
        lines[d, :] = 1.0
    loss, squares, steepest = 0.0, 0.0, 0.0
    for first in range(0, n, LINE):
        m = min(LINE, n - first)
        for t in range(m):
            for j in range(d):
                lines[j, t] = X[first + t, j]
            code[t] = codes[first + t]
            weight[t] = 1.0 if len(weights) == 0 else weights[first + t]
        for t in range(m, LINE):  # of the last line: rows that are not there
            weight[t] = 0.0
        for k in range(K):
            for t in range(m):
                eta[k, t] = 0.0 if len(offset) == 0 else offset[first + t, k]
        _add_scores(W, lines, m, eta)
        for t in range(m):
            own[t] = eta[code[t], t]
        steepest = max(steepest, _relative(eta, m, top, others, at))
        for t in range(m):
            loss += weight[t] * (log_one_plus_many(others[t]) + (top[t] - own[t]))
            others[t], own[t] = 1.0 / (1.0 + others[t]), 0.0
        for k in range(K):
            for t in range(m):
                eta[k, t] *= others[t]
                slopes[k, t] = weight[t] * eta[k, t]
                own[t] += 0.0 if code[t] == k else eta[k, t]
                squares += 0.0 if code[t] == k else slopes[k, t] * eta[k, t]
        for t in range(m):  # π − 1 is less what the others have, not a difference that would cancel
            slopes[code[t], t] = -weight[t] * own[t]
            squares += weight[t] * own[t] * own[t]
        if m < LINE:
            eta[:, m:], slopes[:, m:] = 0.0, 0.0
        if len(kept) > 0:
            for k in range(K):
                for t in range(m):
                    kept[first + t, k] = eta[k, t]
        _add_gradient(slopes, lines, gradient)
        if len(products) > 0:
            for k in range(K):
                for j in range(p):
                    for t in range(LINE):
                        spread[k * p + j, t] = eta[k, t] * lines[j, t]
            add_products(spread, weight, bent, products)
            for k in range(K):
                for t in range(LINE):
                    top[t] = weight[t] * eta[k, t]
                for l in range(K):  # noqa: E741  # name of the formula
                    total = 0.0
                    for t in range(LINE):
                        total += top[t] * eta[l, t]
                    bend[k, l] -= total if k != l else 0.0
    for j in range(len(products)):
        for k in range(j):
            products[k, j] = products[j, k]
    for k in range(len(bend)):
        bend[k, k] = -np.sum(bend[k])
    return loss, squares, steepest
