"""One sweep of dual coordinate ascent for the logistic loss.

    α_i ∈ (0, s_i):   min_z  ½ Q_ii z² + m_i z + (α+z) log(α+z) + (s−α−z) log(s−α−z),   m_i = ỹ_i(wᵀx_i + b + o_i)
    w ← w + z ỹ_i x_i / q

The one-dimensional problem is solved by Newton's method on the derivative in a variable that keeps α inside its interval.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]  # numba ships no types
def new_alpha(alpha: Any, s: Any, margin: Any, curvature: Any) -> Any:
    """The minimiser over one α in (0, s): margin + curvature·(α' − α) + log(α'/(s − α')) = 0."""
    # In t = log(α/(s−α)) the derivative is increasing and nearly linear at both ends.
    t = np.log(alpha / (s - alpha))
    for _ in range(50):
        e = np.exp(-abs(t))
        a = s / (1.0 + e) if t >= 0 else s * e / (1.0 + e)
        value = margin + curvature * (a - alpha) + t
        slope = curvature * a * (s - a) / s + 1.0
        step = value / slope
        t -= step
        if abs(step) <= 1e-14 * (1.0 + abs(t)):
            break
    t = min(max(t, -36.0), 36.0)  # α stays off the ends by more than rounding
    e = np.exp(-abs(t))
    return s / (1.0 + e) if t >= 0 else s * e / (1.0 + e)


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]  # numba ships no types
def sweep_sparse(
    data: Any, indices: Any, indptr: Any, signs: Any, s: Any, shift: Any, order: Any, inverse: Any, alpha: Any, w: Any
) -> None:
    """Every row of a CSR block once, in `order`; `inverse` is 1/q and `shift` the rest of the score."""
    for i in order:
        if s[i] <= 0.0:
            continue
        score, curvature = shift[i], 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            score += w[j] * data[p]
            curvature += data[p] * data[p] * inverse[j]
        fresh = new_alpha(alpha[i], s[i], signs[i] * score, curvature)
        change = (fresh - alpha[i]) * signs[i]
        alpha[i] = fresh
        for p in range(indptr[i], indptr[i + 1]):
            w[indices[p]] += change * data[p] * inverse[indices[p]]


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]  # numba ships no types
def sweep_dense(X: Any, signs: Any, s: Any, shift: Any, order: Any, inverse: Any, alpha: Any, w: Any) -> None:
    """The same for dense rows."""
    for i in order:
        if s[i] <= 0.0:
            continue
        score, curvature = shift[i], 0.0
        for j in range(X.shape[1]):
            score += w[j] * X[i, j]
            curvature += X[i, j] * X[i, j] * inverse[j]
        fresh = new_alpha(alpha[i], s[i], signs[i] * score, curvature)
        change = (fresh - alpha[i]) * signs[i]
        alpha[i] = fresh
        for j in range(X.shape[1]):
            w[j] += change * X[i, j] * inverse[j]
