"""One sweep of dual coordinate ascent for the hinge and the squared hinge.

    max_α  Σ αᵢ − ½‖Σ αᵢỹᵢxᵢ‖² − ½Σ Dᵢαᵢ²,    0 ≤ αᵢ ≤ Uᵢ          hinge U = C, D = 0;  squared U = ∞, D = 1/2C
    Gᵢ = ỹᵢ(wᵀxᵢ + b) − 1 + Dᵢαᵢ,    αᵢ ← min(max(αᵢ − Gᵢ/Qᵢ, 0), Uᵢ),    w += Δαᵢỹᵢxᵢ,    b += Δαᵢỹᵢ·reach

Rows at a bound whose gradient points outside by more than the last sweep's largest violation are moved behind the end of
`order` and are inactive until they are called back.

Reference: Hsieh et al. (2008), A dual coordinate descent method for large-scale linear SVM, ICML, algorithm 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled, row_entry, row_span


@compiled()
def _projected(gradient: Any, alpha: Any, upper: Any) -> Any:
    """The part of the gradient along which α may move."""
    if alpha == 0.0:
        return min(gradient, 0.0)
    return max(gradient, 0.0) if alpha == upper else gradient


@compiled()
def _moved(gradient: Any, curvature: Any, alpha: Any, upper: Any) -> Any:
    """The best α, all others being fixed."""
    if curvature > 0.0:
        return min(max(alpha - gradient / curvature, 0.0), upper)
    return upper if gradient < 0.0 else 0.0  # a row of zeros without an intercept


@compiled(inline="always")
def _visit(i: Any, gradient: Any, sides: Any, reach: Any, alpha: Any, found: Any) -> tuple[Any, Any]:
    """Move αᵢ: the change of ỹᵢαᵢ, and how far the dual falls; `found` takes the projected gradient."""
    signs, upper, ridge, squares = sides
    projected = _projected(gradient, alpha[i], upper[i])
    found[0], found[1] = max(found[0], projected), min(found[1], projected)
    if projected == 0.0:
        return 0.0, 0.0
    curvature = squares[i] + reach + ridge[i]
    fresh = _moved(gradient, curvature, alpha[i], upper[i])
    change = fresh - alpha[i]
    alpha[i] = fresh
    return change * signs[i], change * (gradient + 0.5 * curvature * change)


def _sweep(
    data: Any,
    indices: Any,
    indptr: Any,
    centre: Any,
    sides: Any,
    reach: Any,
    order: Any,
    active: Any,
    bounds: Any,
    alpha: Any,
    w: Any,
    b: Any,
) -> tuple[Any, Any, Any]:
    """(rows still active, rise of the dual, b) after the first `active` rows of `order`.

    Rows are the three arrays of a CSR matrix, or dense ones and their centre; `sides` are ỹ, U, D and the squared lengths of
    the rows. `bounds` (2,) holds the last sweep's largest and least projected gradients and takes this one's.
    """
    signs, upper, ridge, _ = sides
    found, rise, at = np.array([-np.inf, np.inf]), 0.0, 0
    while at < active:
        i = order[at]
        first, last = row_span(indptr, i, len(w))
        score, rest = (0.0, b) if indices is None else (b, 0.0)  # long sums of dense rows are not for b to pass through
        for p in range(first, last):
            j, x = row_entry(data, indices, centre, i, p)
            score += w[j] * x
        gradient = signs[i] * (score + rest) - 1.0 + ridge[i] * alpha[i]
        if (alpha[i] == 0.0 and gradient > bounds[0]) or (alpha[i] == upper[i] and gradient < bounds[1]):
            active -= 1
            order[at], order[active] = order[active], order[at]
            continue
        change, fall = _visit(i, gradient, sides, reach, alpha, found)
        at += 1
        if change != 0.0:
            rise, b = rise - fall, b + change * reach
            for p in range(first, last):
                j, x = row_entry(data, indices, centre, i, p)
                w[j] += change * x
    bounds[:] = found
    return active, rise, b


sweep_sparse = compiled()(_sweep)
sweep_dense = compiled(fastmath={"reassoc", "contract"})(_sweep)
