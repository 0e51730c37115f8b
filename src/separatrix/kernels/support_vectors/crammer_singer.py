"""One sweep of dual coordinate ascent for Crammer and Singer's machine: all K multipliers of a row at once.

    min_a  ½A‖a − αᵢ‖² + gᵀ(a − αᵢ),   a_k ≤ U_k = Cᵢ[k = yᵢ],  Σ_k a_k = 0;   g_k = f_k(xᵢ) + 1 − [k = yᵢ],  A = ‖xᵢ‖² + reach
    a_k = min(U_k, (β − B_k)/A),   B = g − Aαᵢ,   β such that the sum is zero: from the largest of B + AU

Reference: Crammer and Singer (2001), JMLR 2, section 6; Keerthi et al. (2008), KDD.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled, row_entry, row_span

# More than so many numbers are taken in the order of a sort.
_FEW = 8


@compiled()
def _solve(A: Any, g: Any, own: Any, price: Any, i: Any, alpha: Any, top: Any, change: Any) -> Any:
    """`change` takes a − αᵢ; returns the largest of it. `top` is room for K numbers."""
    K, largest = len(g), 0.0
    if not A > 0.0:  # a row of zeros without an intercept: the objective is linear
        worst = -1
        for k in range(K):
            if k != own and (worst < 0 or g[k] > g[worst]):
                worst = k
        for k in range(K):
            change[k] = (price if k == own else (-price if k == worst else 0.0)) - alpha[i, k]
            largest = max(largest, abs(change[k]))
        return largest
    for k in range(K):
        top[k] = g[k] - A * alpha[i, k] + (A * price if k == own else 0.0)
    total, count = -A * price, 0
    while count < K:  # the largest that is left: as a rule few are taken, so the others need no order
        most = count
        if count < _FEW:
            for k in range(count + 1, K):
                if top[k] > top[most]:
                    most = k
        elif count == _FEW:
            top[count:] = np.sort(top[count:])[::-1]
        if count > 0 and not total < count * top[most]:
            break
        total += top[most]
        top[most] = top[count]
        count += 1
    beta = total / count
    for k in range(K):
        bound = price if k == own else 0.0
        change[k] = min(bound, (beta - (g[k] - A * alpha[i, k])) / A) - alpha[i, k]
        largest = max(largest, abs(change[k]))
    return largest


@compiled()
def sweep(
    data: Any, indices: Any, indptr: Any, centre: Any, sides: Any, reach: Any, order: Any, alpha: Any, W: Any, b: Any
) -> Any:
    """The rise of the dual after every row, of a CSR matrix's three arrays or of dense rows and their centre.

    `sides` are class codes, C and the squared lengths of the rows; `alpha` (n, K), `W` (d, K) and `b` (K,) change in place.
    """
    # Every array has a name of its own, and none is made or viewed row by row: each of these is counted by an atomic operation.
    codes, price, squares = sides
    (d, K), rise = W.shape, 0.0
    g, change, top = np.empty(K), np.empty(K), np.empty(K)
    for i in order:
        first, last = row_span(indptr, i, d)
        own, A = codes[i], squares[i] + reach
        for k in range(K):
            g[k] = b[k] + (0.0 if k == own else 1.0)
        for p in range(first, last):
            j, x = row_entry(data, indices, centre, i, p)
            for k in range(K):
                g[k] += W[j, k] * x
        if _solve(A, g, own, price[i], i, alpha, top, change) == 0.0:
            continue
        for k in range(K):
            rise -= change[k] * (g[k] + 0.5 * A * change[k])
            alpha[i, k] += change[k]
            b[k] += reach * change[k]
        for p in range(first, last):
            j, x = row_entry(data, indices, centre, i, p)
            for k in range(K):
                W[j, k] += change[k] * x
    return rise
