"""Sums over numbers and categories without the matrix of zeros and ones that the categories stand for.

Second moments:

    v = (x − centre)/scale − g_k      a row's numbers about a guess of their class mean, holes filled
    sums_k += s·v,   shares_k,a += s,   across_a += s·v,   together_ab += s       for the indicators a, b that are 1 in the row

The logistic loss and its gradient:

    η = o + b + Σ_p u_p v_p + Σ_a t_a                            v = x − centre
    loss += s log(1 + e^{−ỹη}),   r = s(σ(η) − y),   gradient_p += r v_p,   shares_a += r

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


@compiled(fastmath={"reassoc", "contract"})
def coded_scores(
    values: Any,
    places: Any,
    hole_at: Any,
    fill: Any,
    centre: Any,
    offset: Any,
    u: Any,
    t: Any,
    b: Any,
    eta: Any,
) -> None:
    """`eta` (m,) takes η of m rows, of numbers `values` (p, n); an empty `offset` stands for zeros.

    `places` (q, n) are the features of the categories, −1 for none, `hole_at` (p,) those that mark a hole of a number. What an
    indicator adds is t[a + 1], and t[0] = 0 is for none: no row takes a branch.
    """
    for first in range(0, len(eta), _TILE):
        own = eta[first : first + _TILE]
        for i in range(len(own)):
            own[i] = b if len(offset) == 0 else b + offset[first + i]
        for j in range(len(values)):
            filled, middle, along = fill[j], centre[j], u[j]
            mark = t[hole_at[j] + 1]
            for i in range(len(own)):
                x = values[j, first + i]
                own[i] += along * ((x if x == x else filled) - middle)
            if hole_at[j] >= 0:
                for i in range(len(own)):
                    x = values[j, first + i]
                    own[i] += 0.0 if x == x else mark
        for q in range(len(places)):
            for i in range(len(own)):
                own[i] += t[np.uint64(places[q, first + i] + 1)]  # unsigned: nothing is counted from the end


@compiled(fastmath={"reassoc", "contract"})
def coded_sizes(
    values: Any,
    places: Any,
    hole_at: Any,
    fill: Any,
    centre: Any,
    metric: Any,
    marked: Any,
    least: Any,
    sizes: Any,
) -> None:
    """`sizes` (m,) take least + Σ_p metric_p v_p² + Σ_a marked_a of m rows; `marked` as `t` above."""
    for first in range(0, len(sizes), _TILE):
        own = sizes[first : first + _TILE]
        own[:] = least
        for j in range(len(values)):
            filled, middle, mark = fill[j], centre[j], marked[hole_at[j] + 1]
            for i in range(len(own)):
                x = values[j, first + i]
                v = (x if x == x else filled) - middle
                own[i] += metric[j] * v * v + (0.0 if x == x else mark)
        for q in range(len(places)):
            for i in range(len(own)):
                own[i] += marked[np.uint64(places[q, first + i] + 1)]


@compiled(fastmath={"reassoc", "contract"})
def add_coded_slopes(
    values: Any,
    places: Any,
    hole_at: Any,
    fill: Any,
    centre: Any,
    codes: Any,
    weights: Any,
    eta: Any,
    small: Any,
    logs: Any,
    gradient: Any,
    shares: Any,
) -> tuple[Any, Any, Any]:
    """(loss, Σ sr, Σ sr²) of scores η; adds to gradient (p,) and to shares (1 + d,), none first.

    `small` are e^{−|η|} and `logs` log(1 + e^{−|η|}).
    """
    loss, slopes, squares = 0.0, 0.0, 0.0
    slope, v = np.empty(_TILE), np.empty(_TILE)
    for first in range(0, len(eta), _TILE):
        m = min(_TILE, len(eta) - first)
        for i in range(m):
            code, low = codes[first + i], small[first + i]
            margin = -eta[first + i] if code == 1 else eta[first + i]  # positive on the wrong side
            weight = 1.0 if len(weights) == 0 else weights[first + i]
            high = 1.0 / (1.0 + low)  # σ(|η|); 1 − σ is small·high, not a difference that would cancel
            size = high if margin >= 0.0 else low * high
            loss += weight * (logs[first + i] + (margin if margin > 0.0 else 0.0))
            squares += weight * size * size
            r = weight * (-size if code == 1 else size)
            slope[i] = r
            slopes += r
        for j in range(len(values)):
            total, filled, middle = 0.0, fill[j], centre[j]
            for i in range(m):
                x = values[j, first + i]
                v[i] = (x if x == x else filled) - middle
            for i in range(m):  # of numbers side by side: the order of the sum is the same however `values` lie
                total += slope[i] * v[i]
            gradient[j] += total
            if hole_at[j] >= 0:
                total = 0.0
                for i in range(m):
                    x = values[j, first + i]
                    v[i] = 0.0 if x == x else slope[i]
                for i in range(m):
                    total += v[i]
                shares[hole_at[j] + 1] += total
        for q in range(len(places)):
            for i in range(m):
                shares[np.uint64(places[q, first + i] + 1)] += slope[i]
    return loss, slopes, squares
