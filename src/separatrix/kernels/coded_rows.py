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

# Rows whose numbers stay in cache while the columns are read one after another, and from the scores to the gradient.
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
def coded_logistic_pass(
    values: Any,
    places: Any,
    hole_at: Any,
    fill: Any,
    centre: Any,
    codes: Any,
    weights: Any,
    offset: Any,
    u: Any,
    t: Any,
    b: Any,
    metric: Any,
    marked: Any,
    least: Any,
    gradient: Any,
    shares: Any,
) -> tuple[Any, Any, Any, Any, Any]:
    """(loss, Σ sr, Σ sr², max |η|, max (least + Σ_p metric_p v_p² + Σ_a marked_a)) of numbers `values` (p, n).

    `places` (q, n) are the features of the categories, −1 for none, `hole_at` (p,) those that mark a hole of a number. Empty
    arrays stand for ones and zeros, and for what is not asked for.
    """
    p, n = values.shape
    loss, slopes, squares, steepest, largest = 0.0, 0.0, 0.0, 0.0, 0.0
    v, eta, size, slope = np.empty((p, _TILE)), np.empty(_TILE), np.empty(_TILE), np.empty(_TILE)
    measured = len(metric) > 0
    for start in range(0, n, _TILE):
        m = min(_TILE, n - start)
        for i in range(m):
            eta[i] = b if len(offset) == 0 else b + offset[start + i]
            size[i] = least
        for j in range(p):
            filled, middle, along = fill[j], centre[j], u[j]
            for i in range(m):
                x = values[j, start + i]
                moved = (x if x == x else filled) - middle
                v[j, i] = moved
                eta[i] += along * moved
            if measured:
                for i in range(m):
                    size[i] += metric[j] * v[j, i] * v[j, i]
            if hole_at[j] >= 0:
                for i in range(m):
                    x = values[j, start + i]
                    if x != x:
                        eta[i] += t[hole_at[j]]
                        size[i] += marked[hole_at[j]] if measured else 0.0
        for q in range(len(places)):
            for i in range(m):
                a = places[q, start + i]
                if a >= 0:
                    eta[i] += t[a]
                    size[i] += marked[a] if measured else 0.0
        for i in range(m):
            score, code = eta[i], codes[start + i]
            weight = 1.0 if len(weights) == 0 else weights[start + i]
            small = np.exp(-abs(score))
            high = 1.0 / (1.0 + small)  # σ(|η|)
            wrong_side = (score < 0.0) == (code == 1)
            loss += weight * (np.log1p(small) + (abs(score) if wrong_side else 0.0))
            # 1 − σ is small·high, not a difference that would cancel.
            chance = high if score >= 0.0 else small * high
            r = chance if code == 0 else (-(small * high) if score >= 0.0 else -high)
            squares += weight * r * r
            slope[i] = weight * r
            slopes += weight * r
            steepest = max(steepest, abs(score))
            if measured:
                largest = max(largest, size[i])
        for j in range(p):
            total = 0.0
            for i in range(m):
                total += slope[i] * v[j, i]
            gradient[j] += total
            if hole_at[j] >= 0:
                for i in range(m):
                    x = values[j, start + i]
                    if x != x:
                        shares[hole_at[j]] += slope[i]
        for q in range(len(places)):
            for i in range(m):
                a = places[q, start + i]
                if a >= 0:
                    shares[a] += slope[i]
    return loss, slopes, squares, steepest, largest
