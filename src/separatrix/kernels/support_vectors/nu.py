"""Sequential minimal optimisation where each of two sides keeps its own sum.

    min_β  ½βᵀKβ,   Σ₊β and Σ₋β as they are,   lowᵢ ≤ βᵢ ≤ highᵢ          v = −Kβ
    i = argmax v over β < high,   j = argmax (vᵢ − vⱼ)²/η over β > low, both of one side,   η = Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ
    βᵢ += t,  βⱼ −= t,  v −= t(Kᵢ − Kⱼ),      t = (vᵢ − vⱼ)/η, cut at the bounds

The pair of the two sides' that gains more is taken.

Reference: Chang and Lin (2001), Training ν-support vector classifiers, Neural Computation 13.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

# A curvature below this share of the diagonal is rounding: the step goes to a bound.
_FLAT = 1e-14


@compiled(error_model="numpy")
def side_smo(K: Any, positive: Any, v: Any, beta: Any, low: Any, high: Any, tol: Any, max_iter: Any) -> tuple[Any, Any]:
    """(steps, violation left); `v` and `beta` are changed. Stops when no pair of a side violates by more than `tol`."""
    q, steps, largest = len(v), 0, 0.0
    for t in range(q):
        largest = max(largest, abs(K[t, t]))
    flat = max(_FLAT * largest, 1e-300)
    while True:
        tops, bottoms, firsts = np.full(2, -np.inf), np.full(2, np.inf), np.full(2, -1)
        for t in range(q):
            side = 1 if positive[t] else 0
            if beta[t] < high[t] and v[t] > tops[side]:
                tops[side], firsts[side] = v[t], t
            if beta[t] > low[t]:
                bottoms[side] = min(bottoms[side], v[t])
        violation = max(tops[0] - bottoms[0], tops[1] - bottoms[1])
        if not violation > tol or steps >= max_iter:
            return steps, violation
        gain, i, j = 0.0, -1, -1
        for t in range(q):
            side = 1 if positive[t] else 0
            first = firsts[side]
            if first < 0 or not beta[t] > low[t]:
                continue
            room = tops[side] - v[t]
            if room > 0.0:
                worth = room * room / max(K[first, first] + K[t, t] - 2.0 * K[first, t], flat)
                if worth > gain:
                    gain, i, j = worth, first, t
        if i < 0:
            return steps, violation
        step = (v[i] - v[j]) / max(K[i, i] + K[j, j] - 2.0 * K[i, j], flat)
        above, below = high[i] - beta[i], beta[j] - low[j]
        full_up, full_down = step >= above and above <= below, step >= below and below <= above
        step = min(step, above, below)
        # A variable that reaches its bound is put there exactly: whether it is free is decided by equality.
        beta[i] = high[i] if full_up else beta[i] + step
        beta[j] = low[j] if full_down else beta[j] - step
        one, two = K[i], K[j]
        for t in range(q):
            v[t] -= step * (one[t] - two[t])
        steps += 1
