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

from separatrix.kernels import compiled

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
def sweep_sparse(
    data: Any, indices: Any, indptr: Any, signs: Any, s: Any, shift: Any, order: Any, inverse: Any, alpha: Any, w: Any
) -> None:
    """Every row of a CSR block once, in `order`; `inverse` is 1/q and `shift` the rest of the score.

    A last entry of `w` and `inverse` beyond the columns is the intercept's.
    """
    d = len(w) - 1
    for i in order:
        if s[i] <= 0.0:
            continue
        score, curvature = shift[i] + w[d], inverse[d]
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            score += w[j] * data[p]
            curvature += data[p] * data[p] * inverse[j]
        fresh = new_alpha(alpha[i], s[i], signs[i] * score, curvature)
        change = (fresh - alpha[i]) * signs[i]
        alpha[i] = fresh
        w[d] += change * inverse[d]
        for p in range(indptr[i], indptr[i + 1]):
            w[indices[p]] += change * data[p] * inverse[indices[p]]


@compiled()
def sweep_dense(X: Any, signs: Any, s: Any, shift: Any, order: Any, inverse: Any, alpha: Any, w: Any) -> None:
    """The same for dense rows."""
    d = len(w) - 1
    for i in order:
        if s[i] <= 0.0:
            continue
        score, curvature = shift[i] + w[d], inverse[d]
        for j in range(d):
            score += w[j] * X[i, j]
            curvature += X[i, j] * X[i, j] * inverse[j]
        fresh = new_alpha(alpha[i], s[i], signs[i] * score, curvature)
        change = (fresh - alpha[i]) * signs[i]
        alpha[i] = fresh
        w[d] += change * inverse[d]
        for j in range(d):
            w[j] += change * X[i, j] * inverse[j]
