"""A soft-margin machine at a given β: its intercept, and the terms of its duality gap (dual/duality_gap.py has the formulas).

    v = ỹ − f,   slackᵢ = max(0, ỹᵢ(vᵢ − b)),      P = ½βᵀf + ΣCᵢslackᵢ
    gap = Σ Cᵢslackᵢ − βᵢ(vᵢ − b) + what Σβ ≠ 0 costs + rounding

Sums carry what each addition loses (Neumaier 1974): their error is that of the last rounding, however many terms there are.
Exact only without contraction into fused operations, so never `fastmath`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from separatrix.kernels import compiled

_EPS = float(np.finfo(np.float64).eps)
# Sums of multipliers leave rounding errors of this size relative to the bound.
_ROUNDING = 1e-13


@compiled(inline="always")
def _plus(total: Any, lost: Any, x: Any) -> tuple[Any, Any]:
    """total + x, and what all additions so far have lost."""
    after = total + x
    return after, lost + ((total - after) + x if abs(total) >= abs(x) else (x - after) + total)


@compiled()
def margin_intercept(beta: Any, v: Any, low: Any, high: Any) -> Any:
    """The mean over the margin vectors, or the middle of its interval where there are none."""
    total, count, top, bottom = 0.0, 0, -np.inf, np.inf
    for t in range(len(beta)):
        # A multiplier that rounding keeps from its bound does not fix the intercept, which may be anywhere in an interval.
        room = _ROUNDING * (high[t] - low[t])
        rises, falls = beta[t] < high[t] - room, beta[t] > low[t] + room
        if rises and falls:
            total, count = total + v[t], count + 1
        if rises:
            top = max(top, v[t])
        if falls:
            bottom = min(bottom, v[t])
    if count:
        return total / count
    return 0.5 * (top + bottom) if np.isfinite(top + bottom) else (top if np.isfinite(top) else bottom)


@compiled()
def soft_gap(
    signs: Any, bound: Any, beta: Any, scores: Any, errors: Any, intercept: Any, largest: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """(gap, primal objective, |Σβ|, largest product of a multiplier and its slack, βᵀf); `errors` are of the scores."""
    n = len(signs)
    gap, gap_lost, price, price_lost, length, length_lost = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    excess, excess_lost, heavy, unsure, sizes, complementary = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        near, alpha = signs[i] - scores[i] - intercept, abs(beta[i])
        slack = max(0.0, signs[i] * near)
        cost = bound[i] * slack
        gap, gap_lost = _plus(gap, gap_lost, cost - beta[i] * near)
        price, price_lost = _plus(price, price_lost, cost)
        length, length_lost = _plus(length, length_lost, beta[i] * scores[i])
        excess, excess_lost = _plus(excess, excess_lost, beta[i])
        off = errors[i] + 2.0 * _EPS * (1.0 + abs(scores[i]) + abs(intercept))
        unsure += (bound[i] + alpha) * off
        sizes += cost + alpha * (abs(near) + abs(scores[i]))
        heavy += alpha
        outside = max(0.0, -signs[i] * near)
        complementary = max(complementary, max(alpha * outside, (bound[i] - alpha) * slack))
    left_over, length = excess + excess_lost, length + length_lost
    # What carried sums may still lose is of second order.
    total = abs(left_over) + n * n * _EPS * _EPS * heavy
    side, taken = 0.0, 0.0
    for i in range(n):
        if beta[i] * left_over > 0.0:
            side += abs(beta[i])
            taken += beta[i] * (signs[i] - scores[i] - intercept)
    share = total / side if side > 0.0 else 0.0
    rounded = 1.0 + 2.0 * n * _EPS
    unsure = (2.0 * unsure + 2.0 * _EPS * (4.0 + math.log2(n)) * sizes) * rounded
    primal = 0.5 * length + price + price_lost
    gap = max(0.0, gap + gap_lost) + share * abs(taken) * rounded + 0.5 * total * (total * largest) + unsure
    return min(gap, primal + unsure), primal, abs(left_over), complementary, length  # β' = 0 has the dual value 0
