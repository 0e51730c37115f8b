"""Leave-one-out scores of rows of one class under a row of shrunken covariances: see statistics/loo_series.py.

    score = log π − ½(vᵀA⁻¹v + r(uᵀA⁻¹v)²/(1 − r uᵀA⁻¹u) + log|A| + log(1 − r uᵀA⁻¹u)),     r = γq

The terms of the series are matrix products; what follows reads them once, while they are in cache.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from separatrix.kernels import compiled

_SMALL = 1.0 / 64.0


@compiled(inline="always")
def _add_up(sums: Any, x: Any, G: Any, moving: Any) -> None:
    """Σ_l x^l T_l into the first G rows: by Horner, from the last term on."""
    for row in range(sums.shape[0] - 1, G - 1, -1):
        term, into = sums[row], sums[row - moving if row >= G + moving else row - G]
        for i in range(x.shape[0]):
            into[i] += x[i] * term[i]


@compiled(fastmath={"reassoc", "contract"}, error_model="numpy")
def _combine(uu: Any, us: Any, rest: Any, shrunk: Any, prior: Any, stretch: Any, least: Any, out: Any) -> None:
    """(G, n) scores of a class; with a `stretch` of the rows' own."""
    for g in range(out.shape[0]):
        ratio, score, a, s, constant, large = shrunk[g], out[g], uu[g], us[g], rest[g], 0
        if stretch == 0.0:
            for i in range(score.shape[0]):
                along, left = a[i] + s[i], 1.0 - ratio * a[i]
                score[i] = prior - 0.5 * (along + s[i] + constant[i] + ratio * along * along / left)
                large += not ratio * a[i] < _SMALL
        else:
            for i in range(score.shape[0]):
                along, left = a[i] * stretch, 1.0 - ratio * a[i]
                score[i] = prior - 0.5 * (stretch * along + constant[i] + ratio * along * along / left)
                large += not ratio * a[i] < _SMALL
        if large == 0:
            for i in range(score.shape[0]):
                y = ratio * a[i]
                tail = y * (1 / 6 + y * (1 / 7 + y * (1 / 8 + y * (1 / 9))))
                score[i] += 0.5 * y * (1 + y * (1 / 2 + y * (1 / 3 + y * (1 / 4 + y * (1 / 5 + tail)))))
        else:
            for i in range(score.shape[0]):
                left = 1.0 - ratio * a[i]
                score[i] -= 0.5 * math.log(left) if left > least else math.nan


@compiled(fastmath={"reassoc", "contract"}, error_model="numpy")
def left_out_scores(
    z: Any, x: Any, vectors: Any, terms: Any, logs: Any, shrunk: Any, R: Any, moving: Any, shifts: Any, priors: Any,
    stretch: Any, least: Any, out: Any,
) -> None:  # fmt: skip
    """(J, G, n) scores into `out`; with a `stretch` those of the rows' own class. NaN where less than `least` is left.

    `vectors`, `terms`, `logs` and `shrunk` are of J classes or of one for all; R rows of the terms are used.
    """
    J, G, n = out.shape
    d = terms.shape[2]
    u, squares, bent = np.empty((d, n)), np.empty((d, n)), np.empty((R, d))
    uu, us, rest = np.empty((R, n)), np.zeros((R, n)), np.empty((R, n))
    for j in range(J):
        b = j if vectors.shape[0] > 1 else 0
        if b == j:
            np.dot(vectors[b], z, u)
            for c in range(d):
                for i in range(n):
                    squares[c, i] = u[c, i] * u[c, i]
            np.dot(terms[b, :R], squares, uu)
            _add_up(uu, x, G, moving)
        shift = np.dot(vectors[b], shifts[j])
        for r in range(R):
            constant = 0.0
            for c in range(d):
                bent[r, c] = terms[b, r, c] * shift[c]
                constant += bent[r, c] * shift[c]
            rest[r] = constant + logs[b, r]
        _add_up(rest, x, G, moving)
        if stretch == 0.0:
            np.dot(bent, u, us)
            _add_up(us, x, G, moving)
        _combine(uu, us, rest, shrunk[b], priors[j], stretch, least, out[j])
