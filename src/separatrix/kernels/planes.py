"""The objective of many linear rules at their published coefficients, rounding counted.

    P = ½‖w‖² + Σ Cᵢ max(0, 1 − ỹᵢ(wᵀ(xᵢ − c) + o)),      o = b + wᵀc

o is summed with twice the digits (compensated.py), so that rows far from the origin lose nothing; never `fastmath`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.compensated import double_product, double_sum

_EPS = float(np.finfo(np.float64).eps)


@compiled()
def shifted_intercepts(weights: Any, centre: Any, intercepts: Any, sign: Any) -> Any:
    """(m, 2) b + sign·wᵀc, and a bound on its error beyond the last rounding."""
    out = np.empty((len(weights), 2))
    for m in range(len(weights)):
        high, low, size = intercepts[m], 0.0, abs(intercepts[m])
        for j in range(len(centre)):
            p, q = double_product(sign * weights[m, j], centre[j])
            high, low = double_sum(high, low, p, q)
            size += abs(p)
        d = len(centre) + 2.0
        out[m, 0], out[m, 1] = high + low, d * d * _EPS * _EPS * size + d * 1e-300
    return out


@compiled(fastmath={"reassoc", "contract"})
def _score(x: Any, centre: Any, w: Any) -> tuple[Any, Any]:
    score, size = 0.0, 0.0
    for j in range(len(w)):
        term = (x[j] - centre[j]) * w[j]
        score += term
        size += abs(term)
    return score, size


@compiled()
def upper_objectives(
    X: Any, centre: Any, rows: Any, starts: Any, signs: Any, bound: Any, weights: Any, offsets: Any
) -> Any:
    """(m,) bounds on P from above; machine m has `rows` from starts[m] to starts[m + 1], and `offsets` are o with errors."""
    out = np.empty(len(weights))
    d = weights.shape[1]
    for m in range(len(weights)):
        length, slack = 0.0, 0.0
        for j in range(d):
            length += weights[m, j] ** 2
        for p in range(starts[m], starts[m + 1]):
            i = rows[p]
            score, size = _score(X[i], centre, weights[m])
            error = (d + 6) * _EPS * (size + abs(offsets[m, 0])) + offsets[m, 1]
            slack += bound[i] * max(0.0, 1.0 - signs[p] * (score + offsets[m, 0]) + error)
        q = starts[m + 1] - starts[m]
        out[m] = 0.5 * length * (1.0 + (d + 2) * _EPS) + slack * (1.0 + (q + 2) * _EPS)
    return out


@compiled()
def sparse_upper_objectives(
    data: Any,
    indices: Any,
    indptr: Any,
    rows: Any,
    starts: Any,
    signs: Any,
    bound: Any,
    weights: Any,
    intercepts: Any,
) -> Any:
    """The same for the rows of a CSR matrix, which have no centre."""
    out = np.empty(len(weights))
    d = weights.shape[1]
    for m in range(len(weights)):
        w, length, slack = weights[m], 0.0, 0.0
        for j in range(d):
            length += w[j] ** 2
        for p in range(starts[m], starts[m + 1]):
            i, score, size = rows[p], 0.0, 0.0
            for at in range(indptr[i], indptr[i + 1]):
                term = np.float64(data[at]) * w[np.uint64(indices[at])]  # unsigned: no test for a negative index
                score += term
                size += abs(term)
            error = (indptr[i + 1] - indptr[i] + 6) * _EPS * (size + abs(intercepts[m]))
            slack += bound[i] * max(0.0, 1.0 - signs[p] * (score + intercepts[m]) + error)
        q = starts[m + 1] - starts[m]
        out[m] = 0.5 * length * (1.0 + (d + 2) * _EPS) + slack * (1.0 + (q + 2) * _EPS)
    return out
