"""Sequential minimal optimisation on a dense matrix of kernel values.

    max_β  Σ yᵢβᵢ − ½βᵀKβ,   Σ βᵢ = Σ βᵢ⁰,   lowᵢ ≤ βᵢ ≤ highᵢ          v = y − Kβ
    i = argmax v over β < high,   j = argmax (vᵢ − vⱼ)²/η over β > low,   η = Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ
    βᵢ += t,  βⱼ −= t,  v −= t(Kᵢ − Kⱼ),      t = (vᵢ − vⱼ)/η, cut at the bounds

A machine on some rows of a larger matrix has `values`, whose row i is copied from K when it is first needed: most rows never
are. Largest entries are found among whole numbers, as which doubles are ordered alike: with the place of an entry in the
last bits of its number the search is one reduction, which compilers turn into vector instructions. Entries that differ in
those bits alone are equal to it.

Reference: Fan, Chen, Lin (2005), Working set selection using second order information, JMLR 6, WSS 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

# A curvature below this share of the diagonal is rounding: the step goes to a bound.
FLAT = 1e-14
_FAST = {"reassoc", "contract", "nsz"}
_BELOW_SIGN = 0x7FFFFFFFFFFFFFFF


@compiled()
def need(i: Any, K: Any, rows: Any, values: Any, known: Any, cut: Any) -> None:
    """Have row i of `values` filled; rows before `cut`, and those from it on, are neighbours in K, unless it is negative."""
    if not known[i]:
        known[i] = True
        source, row, q = K[rows[i]], values[i], len(rows)
        if cut < 0:
            for t in range(q):
                row[t] = source[rows[t]]
            return
        first = source[rows[0] :]
        for t in range(cut):
            row[t] = first[t]
        if cut < q:
            first, last = source[rows[cut] :], row[cut:]
            for t in range(q - cut):
                last[t] = first[t]


@compiled()
def neighbours(rows: Any) -> Any:
    """Where the second of two runs of neighbours among the rows begins; −1 where they are more."""
    cut = len(rows)
    for t in range(1, len(rows)):
        if rows[t] != rows[t - 1] + 1:
            if cut < len(rows):
                return -1
            cut = t
    return cut


@compiled()
def largest_place(bits: Any, places: Any) -> Any:
    """Where the largest double is; `places` has the bits that hold a place set."""
    best = np.int64(-_BELOW_SIGN)
    for t in range(len(bits)):
        b = bits[t]
        best = max(best, ((b ^ ((b >> 63) & _BELOW_SIGN)) & ~places) | t)
    return best & places


@compiled(fastmath=_FAST, error_model="numpy")
def move_scores(v: Any, up: Any, down: Any, values: Any, i: Any, j: Any, step: Any, rising: Any, falling: Any) -> None:
    """v −= step·(Kᵢ − Kⱼ), with v of the rows whose β may rise and −v of those whose β may fall, −∞ for others."""
    for t in range(len(v)):
        x = v[t] - step * (values[i, t] - values[j, t])
        v[t] = x
        rising[t] = x + up[t]
        falling[t] = down[t] - x


@compiled(fastmath=_FAST, error_model="numpy")
def weigh_pairs(
    falling: Any, diagonal: Any, values: Any, i: Any, start: Any, best: Any, own: Any, flat: Any, gains: Any
) -> None:
    """What a step of i with each row from `start` on would gain; negative where it would lose."""
    for t in range(len(gains)):
        room, eta = best + falling[t], own + diagonal[t] - 2.0 * values[i, start + t]
        gains[t] = room * abs(room) / (0.5 * (eta + abs(eta)) + flat)


@compiled(error_model="numpy")
def smo(
    K: Any,
    rows: Any,
    values: Any,
    known: Any,
    cut: Any,
    v: Any,
    beta: Any,
    low: Any,
    high: Any,
    tol: Any,
    max_iter: Any,
) -> tuple[Any, Any]:
    """(steps, violation left); `v` and `beta` are changed in place. Stops when no pair violates by more than `tol`.

    `rows` (q,) of K are the machine's, in `values` (q, q) where `known`; `cut` is that of `need`.
    """
    q = len(v)
    up, down, diagonal = np.empty(q), np.empty(q), np.empty(q)
    rising, falling, gains = np.empty(q), np.empty(q), np.empty(q)
    bits, largest = 0, 0.0
    while (1 << bits) < q:
        bits += 1
    places = np.int64((1 << bits) - 1)
    for t in range(q):
        up[t] = 0.0 if beta[t] < high[t] else -np.inf
        down[t] = 0.0 if beta[t] > low[t] else -np.inf
        diagonal[t] = K[rows[t], rows[t]]
        largest = max(largest, abs(diagonal[t]))
        rising[t], falling[t] = v[t] + up[t], down[t] - v[t]
    flat = max(FLAT * largest, 1e-300)
    # Rows and views that are made in the loop would be counted, which takes longer than a step of few rows.
    rises, falls, gained = rising.view(np.int64), falling.view(np.int64), gains.view(np.int64)
    steps = 0
    while True:
        i = largest_place(rises, places)
        best = rising[i]
        violation = best + falling[largest_place(falls, places)]
        if not violation > tol or steps >= max_iter:
            return steps, violation
        if not known[i]:
            need(i, K, rows, values, known, cut)
        weigh_pairs(falling, diagonal, values, i, 0, best, diagonal[i], flat, gains)
        j = largest_place(gained, places)
        if not gains[j] > 0.0:
            return steps, violation
        if not known[j]:
            need(j, K, rows, values, known, cut)
        step = (v[i] - v[j]) / max(diagonal[i] + diagonal[j] - 2.0 * values[i, j], flat)
        above, below = high[i] - beta[i], beta[j] - low[j]
        full_up, full_down = step >= above and above <= below, step >= below and below <= above
        step = min(step, above, below)
        # A variable that reaches its bound is put there exactly: whether it is free is decided by equality.
        beta[i] = high[i] if full_up else beta[i] + step
        beta[j] = low[j] if full_down else beta[j] - step
        for t in (i, j):
            up[t] = 0.0 if beta[t] < high[t] else -np.inf
            down[t] = 0.0 if beta[t] > low[t] else -np.inf
        move_scores(v, up, down, values, i, j, step, rising, falling)
        steps += 1
