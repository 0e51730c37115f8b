"""Sequential minimal optimisation where each of two sides keeps its own sum.

    min_β  ½βᵀKβ,   Σ₊β and Σ₋β as they are,   lowᵢ ≤ βᵢ ≤ highᵢ          v = −Kβ
    i = argmax v over β < high,   j = argmax (vᵢ − vⱼ)²/η over β > low, both of one side,   η = Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ
    βᵢ += t,  βⱼ −= t,  v −= t(Kᵢ − Kⱼ),      t = (vᵢ − vⱼ)/η, cut at the bounds

The pair of the two sides' that gains more is taken. The rows of one side come before those of the other: the loops are then
those of smo.py.

Reference: Chang and Lin (2001), Training ν-support vector classifiers, Neural Computation 13.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.support_vectors.smo import FLAT, largest_place, move_scores, weigh_pairs


@compiled(error_model="numpy")
def side_smo(K: Any, split: Any, v: Any, beta: Any, low: Any, high: Any, tol: Any, max_iter: Any) -> tuple[Any, Any]:
    """(steps, violation left); `v` and `beta` are changed. Stops when no pair of a side violates by more than `tol`.

    Rows before `split` are of one side, the others of the other.
    """
    q, bits, largest, steps = len(v), 0, 0.0, 0
    while (1 << bits) < q:
        bits += 1
    places = np.int64((1 << bits) - 1)
    up, down, diagonal = np.empty(q), np.empty(q), np.empty(q)
    rising, falling, gains = np.empty(q), np.empty(q), np.empty(q)
    for t in range(q):
        up[t] = 0.0 if beta[t] < high[t] else -np.inf
        down[t] = 0.0 if beta[t] > low[t] else -np.inf
        diagonal[t] = K[t, t]
        largest = max(largest, abs(diagonal[t]))
        rising[t], falling[t] = v[t] + up[t], down[t] - v[t]
    flat = max(FLAT * largest, 1e-300)
    while True:
        violation, gain, i, j = 0.0, 0.0, -1, -1
        for side in range(2):
            start, stop = (0, split) if side == 0 else (split, q)
            if start == stop:
                continue
            first = start + largest_place(rising[start:stop].view(np.int64), places)
            best = rising[first]
            left = best + falling[start + largest_place(falling[start:stop].view(np.int64), places)]
            violation = max(violation, left)
            if not left > tol:
                continue
            own = gains[start:stop]
            weigh_pairs(falling[start:stop], diagonal[start:stop], K, first, start, best, diagonal[first], flat, own)
            second = largest_place(own.view(np.int64), places)
            if own[second] > gain:
                gain, i, j = own[second], first, start + second
        if i < 0 or steps >= max_iter:
            return steps, violation
        step = (v[i] - v[j]) / max(diagonal[i] + diagonal[j] - 2.0 * K[i, j], flat)
        above, below = high[i] - beta[i], beta[j] - low[j]
        full_up, full_down = step >= above and above <= below, step >= below and below <= above
        step = min(step, above, below)
        # A variable that reaches its bound is put there exactly: whether it is free is decided by equality.
        beta[i] = high[i] if full_up else beta[i] + step
        beta[j] = low[j] if full_down else beta[j] - step
        for t in (i, j):
            up[t] = 0.0 if beta[t] < high[t] else -np.inf
            down[t] = 0.0 if beta[t] > low[t] else -np.inf
        move_scores(v, up, down, K, i, j, step, rising, falling)
        steps += 1
