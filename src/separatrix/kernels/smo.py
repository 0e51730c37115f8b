"""Sequential minimal optimisation on a small dense matrix of kernel values.

    max_β  Σ yᵢβᵢ − ½βᵀKβ,   Σ βᵢ = Σ βᵢ⁰,   lowᵢ ≤ βᵢ ≤ highᵢ          v = y − Kβ
    i = argmax v over β < high,   j = argmax (vᵢ − vⱼ)²/η over β > low,   η = Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ
    βᵢ += t,  βⱼ −= t,  v −= t(Kᵢ − Kⱼ),      t = (vᵢ − vⱼ)/η, cut at the bounds

Reference: Fan, Chen, Lin (2005), Working set selection using second order information, JMLR 6, WSS 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

# A curvature below this share of the diagonal is rounding: the step goes to a bound.
_FLAT = 1e-14


@compiled(fastmath={"reassoc", "contract", "nsz"})
def smo(K: Any, v: Any, beta: Any, low: Any, high: Any, tol: Any, max_iter: Any) -> tuple[Any, Any]:
    """(steps, violation left); `v` and `beta` are changed in place. Stops when no pair violates by more than `tol`."""
    q = len(v)
    up, down, diagonal = np.empty(q), np.empty(q), np.empty(q)
    for t in range(q):
        up[t] = 0.0 if beta[t] < high[t] else -np.inf
        down[t] = 0.0 if beta[t] > low[t] else np.inf
        diagonal[t] = K[t, t]
    flat = max(_FLAT * np.abs(diagonal).max(), 1e-300)
    violation = 0.0
    for steps in range(max_iter + 1):
        best, i = -np.inf, 0
        for t in range(q):
            candidate = v[t] + up[t]
            if candidate > best:
                best, i = candidate, t
        worst, top, j = np.inf, -1.0, -1
        for t in range(q):
            candidate = v[t] + down[t]
            worst = min(worst, candidate)
            room = best - candidate
            if room > 0.0:
                gain = room * room / max(diagonal[i] + diagonal[t] - 2.0 * K[i, t], flat)
                if gain > top:
                    top, j = gain, t
        violation = best - worst
        if not violation > tol or j < 0 or steps == max_iter:
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
            down[t] = 0.0 if beta[t] > low[t] else np.inf
        for t in range(q):
            v[t] -= step * (K[i, t] - K[j, t])
    return max_iter, violation
