"""One sweep of dual coordinate ascent for Crammer and Singer's machine: all K multipliers of a row at once.

    min_a  ½A‖a − αᵢ‖² + gᵀ(a − αᵢ),   a_k ≤ U_k = Cᵢ[k = yᵢ],  Σ_k a_k = 0;   g_k = f_k(xᵢ) + 1 − [k = yᵢ],  A = ‖xᵢ‖² + reach
    a_k = min(U_k, (β − B_k)/A),   B = g − Aαᵢ,   β such that the sum is zero: found by sorting B + AU

Reference: Crammer and Singer (2001), JMLR 2, section 6; Keerthi et al. (2008), KDD.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled, row_entry, row_span


@compiled()
def _solve(A: Any, g: Any, own: Any, price: Any, alpha: Any, change: Any) -> Any:
    """`change` takes a − α; returns the largest of it."""
    K, largest = len(g), 0.0
    if not A > 0.0:  # a row of zeros without an intercept: the objective is linear
        worst = -1
        for k in range(K):
            if k != own and (worst < 0 or g[k] > g[worst]):
                worst = k
        for k in range(K):
            change[k] = (price if k == own else (-price if k == worst else 0.0)) - alpha[k]
            largest = max(largest, abs(change[k]))
        return largest
    top = np.empty(K)
    for k in range(K):
        top[k] = g[k] - A * alpha[k] + (A * price if k == own else 0.0)
    top = np.sort(top)[::-1]
    total, count = top[0] - A * price, 1
    while count < K and total < count * top[count]:
        total += top[count]
        count += 1
    beta = total / count
    for k in range(K):
        bound = price if k == own else 0.0
        change[k] = min(bound, (beta - (g[k] - A * alpha[k])) / A) - alpha[k]
        largest = max(largest, abs(change[k]))
    return largest


@compiled()
def _visit(i: Any, A: Any, g: Any, sides: Any, reach: Any, alpha: Any, b: Any, change: Any, rise: Any) -> Any:
    """Move the multipliers of row i: whether any has moved, and the rise of the dual so far."""
    codes, price, _ = sides
    if _solve(A, g, codes[i], price[i], alpha[i], change) == 0.0:
        return False, rise
    for k in range(len(b)):
        rise -= change[k] * (g[k] + 0.5 * A * change[k])
        alpha[i, k] += change[k]
        b[k] += reach * change[k]
    return True, rise


@compiled()
def sweep(
    data: Any, indices: Any, indptr: Any, centre: Any, sides: Any, reach: Any, order: Any, alpha: Any, W: Any, b: Any
) -> Any:
    """The rise of the dual after every row, of a CSR matrix's three arrays or of dense rows and their centre.

    `sides` are class codes, C and the squared lengths of the rows; `alpha` (n, K), `W` (d, K) and `b` (K,) change in place.
    """
    codes, _, squares = sides
    (d, K), rise = W.shape, 0.0
    g, change = np.empty(K), np.empty(K)
    for i in order:
        first, last = row_span(indptr, i, d)
        for k in range(K):
            g[k] = b[k] + (0.0 if k == codes[i] else 1.0)
        for p in range(first, last):
            j, x = row_entry(data, indices, centre, i, p)
            for k in range(K):
                g[k] += W[j, k] * x
        moved, rise = _visit(i, squares[i] + reach, g, sides, reach, alpha, b, change, rise)
        if moved:
            for p in range(first, last):
                j, x = row_entry(data, indices, centre, i, p)
                for k in range(K):
                    W[j, k] += change[k] * x
    return rise
