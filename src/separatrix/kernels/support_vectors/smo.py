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
def need(i: Any, K: Any, rows: Any, values: Any, known: Any) -> None:
    """Have row i of `values` filled."""
    if not known[i]:
        known[i] = True
        source, row = K[rows[i]], values[i]
        for t in range(len(rows)):
            row[t] = source[rows[t]]


@compiled()
def largest_place(bits: Any, places: Any) -> Any:
    """Where the largest double is; `places` has the bits that hold a place set."""
    best = np.int64(-_BELOW_SIGN)
    for t in range(len(bits)):
        b = bits[t]
        best = max(best, ((b ^ ((b >> 63) & _BELOW_SIGN)) & ~places) | t)
    return best & places


@compiled(fastmath=_FAST, error_model="numpy")
def move_scores(v: Any, up: Any, down: Any, first: Any, second: Any, step: Any, rising: Any, falling: Any) -> None:
    """v −= step·(first − second), with v of the rows whose β may rise and −v of those whose β may fall, −∞ for others."""
    for t in range(len(v)):
        x = v[t] - step * (first[t] - second[t])
        v[t] = x
        rising[t] = x + up[t]
        falling[t] = down[t] - x


@compiled(fastmath=_FAST, error_model="numpy")
def weigh_pairs(falling: Any, diagonal: Any, first: Any, best: Any, own: Any, flat: Any, gains: Any) -> None:
    """What a step with each row would gain; negative where it would lose."""
    for t in range(len(falling)):
        room, eta = best + falling[t], own + diagonal[t] - 2.0 * first[t]
        gains[t] = room * abs(room) / (0.5 * (eta + abs(eta)) + flat)


@compiled(error_model="numpy")
def smo(
    K: Any,
    rows: Any,
    values: Any,
    known: Any,
    v: Any,
    beta: Any,
    low: Any,
    high: Any,
    tol: Any,
    max_iter: Any,
) -> tuple[Any, Any]:
    """(steps, violation left); `v` and `beta` are changed in place. Stops when no pair violates by more than `tol`.

    `rows` (q,) of K are the machine's, in `values` (q, q) where `known`.
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
    flat = max(FLAT * largest, 1e-300)
    move_scores(v, up, down, diagonal, diagonal, 0.0, rising, falling)
    steps = 0
    while True:
        i = largest_place(rising.view(np.int64), places)
        best = rising[i]
        violation = best + falling[largest_place(falling.view(np.int64), places)]
        if not violation > tol or steps >= max_iter:
            return steps, violation
        need(i, K, rows, values, known)
        first = values[i]
        weigh_pairs(falling, diagonal, first, best, diagonal[i], flat, gains)
        j = largest_place(gains.view(np.int64), places)
        if not gains[j] > 0.0:
            return steps, violation
        need(j, K, rows, values, known)
        second = values[j]
        step = (v[i] - v[j]) / max(diagonal[i] + diagonal[j] - 2.0 * first[j], flat)
        above, below = high[i] - beta[i], beta[j] - low[j]
        full_up, full_down = step >= above and above <= below, step >= below and below <= above
        step = min(step, above, below)
        # A variable that reaches its bound is put there exactly: whether it is free is decided by equality.
        beta[i] = high[i] if full_up else beta[i] + step
        beta[j] = low[j] if full_down else beta[j] - step
        for t in (i, j):
            up[t] = 0.0 if beta[t] < high[t] else -np.inf
            down[t] = 0.0 if beta[t] > low[t] else -np.inf
        move_scores(v, up, down, first, second, step, rising, falling)
        steps += 1
