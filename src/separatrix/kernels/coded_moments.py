"""Second moments of numbers and categories without the matrix of zeros and ones that the categories stand for.

    v = (x − centre)/scale − g_k      a row's numbers about a guess of their class mean, holes filled
    sums_k += s·v,   shares_k,a += s,   across_a += s·v,   together_ab += s       for the indicators a, b that are 1 in the row

An indicator is a feature: the category of a row, or the mark of a hole. An empty `weights` means that every row counts once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

# Rows whose numbers stay in cache while the columns are read one after another.
_TILE = 256


@compiled()
def add_coded_rows(
    values: Any,
    places: Any,
    hole_at: Any,
    fill: Any,
    centre: Any,
    scale: Any,
    codes: Any,
    weights: Any,
    guess: Any,
    sums: Any,
    shares: Any,
    across: Any,
    together: Any,
    out: Any,
) -> None:
    """out (n, p) = √s·v of numbers `values` (p, n); adds to sums (K, p), shares (K, d), across (d, p), together (d, d), a > b.

    `places` (q, n) are the features of the categories, −1 for none; `hole_at` (p,) those that mark a hole of a number.
    """
    n, p = out.shape
    marked = np.flatnonzero(hole_at >= 0)
    ones = np.empty(len(marked) + len(places), dtype=np.uint64)
    for start in range(0, n, _TILE):
        stop = min(n, start + _TILE)
        for j in range(p):
            filled, middle, unit = fill[j], centre[j], scale[j]
            for i in range(start, stop):
                v = values[j, i]
                out[i, j] = ((v if v == v else filled) - middle) / unit
        for i in range(start, stop):
            k, m = np.uint64(codes[i]), 0  # unsigned: nothing is counted from the end
            weight = 1.0 if len(weights) == 0 else weights[i]
            for j in range(p):
                out[i, j] -= guess[k, j]
                sums[k, j] += weight * out[i, j]
            for q in range(len(places)):
                if places[q, i] >= 0:
                    ones[m] = places[q, i]
                    m += 1
            for mark in marked:
                if values[mark, i] != values[mark, i]:
                    ones[m] = hole_at[mark]
                    m += 1
            for one in range(m):
                a = ones[one]
                shares[k, a] += weight
                for j in range(p):
                    across[a, j] += weight * out[i, j]
                for other in range(one):
                    b = ones[other]
                    together[max(a, b), min(a, b)] += weight
            if len(weights) > 0:
                root = np.sqrt(weight)
                for j in range(p):
                    out[i, j] *= root
