"""One sweep of dual coordinate ascent for the logistic loss.

    α_i ∈ [0, s_i]:   min_z  ½ Q_ii z² + m_i z + (α+z) log(α+z) + (s−α−z) log(s−α−z),   m_i = ỹ_i(θᵀx_i + o_i)
    θ ← θ + z ỹ_i x_i / q                         q the quadratic terms, the intercept's among them; Q_ii = Σ_j x_ij²/q_j

In t = log(α/(s−α)) the derivative is f(t) = m + Q(sσ(t) − α) + t: increasing, convex below 0 and concave above. Newton's
method from 0 therefore runs to the root without passing it. It starts nearer, and from there may not: the root lies in
−m − Q(s−α) ≤ t ≤ −m + Qα, every point tightens this bracket, and a step that leaves it, or is not half as long as the one
before, goes to its middle instead.

Reference: Press et al. (2007), Numerical Recipes, section 9.4, for Newton's method inside a bracket.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled, row_entry, row_span

_EPS = float(np.finfo(np.float64).eps)


@compiled()
def new_alpha(alpha: Any, s: Any, margin: Any, curvature: Any) -> Any:
    """The minimiser over one α in [0, s]: margin + curvature·(α' − α) + log(α'/(s − α')) = 0."""
    low, high = -margin - curvature * (s - alpha), -margin + curvature * alpha
    t = 0.0
    if alpha > 0.0 and s > alpha:
        t = np.log(alpha) - np.log(s - alpha)
    t = min(max(t, low), high)
    a, before = s, high - low
    for _ in range(200):
        e = np.exp(-abs(t))
        a = s / (1.0 + e) if t >= 0.0 else s * e / (1.0 + e)
        value = margin + curvature * (a - alpha) + t
        if value > 0.0:
            high = t
        elif value < 0.0:
            low = t
        else:
            break
        fresh = t - value / (curvature * a * (1.0 / (1.0 + e) if t < 0.0 else e / (1.0 + e)) + 1.0)
        if not (low < fresh < high and abs(fresh - t) <= 0.5 * before):
            fresh = 0.5 * (low + high)
        before = abs(fresh - t)
        if before <= 2.0 * _EPS * (1.0 + abs(t)):
            break
        t = fresh
    return a


@compiled()
def sweep(
    data: Any, indices: Any, indptr: Any, signs: Any, s: Any, shift: Any, order: Any, inverse: Any, alpha: Any, w: Any
) -> None:
    """Every row of a block once, in `order`; `inverse` is 1/q and `shift` the rest of the score.

    Rows are the three arrays of a CSR matrix (the first as one row), or dense ones without the other two. A last entry of `w`
    and `inverse` beyond the columns is the intercept's.
    """
    d = len(w) - 1
    for i in order:
        if s[i] <= 0.0:
            continue
        score, curvature = shift[i] + w[d], inverse[d]
        first, last = row_span(indptr, i, d)
        for p in range(first, last):
            j, x = row_entry(data, indices, None, i, p)
            score += w[j] * x
            curvature += x * x * inverse[j]
        fresh = new_alpha(alpha[i], s[i], signs[i] * score, curvature)
        change = (fresh - alpha[i]) * signs[i]
        alpha[i] = fresh
        w[d] += change * inverse[d]
        for p in range(first, last):
            j, x = row_entry(data, indices, None, i, p)
            w[j] += change * x * inverse[j]
