"""Rounding in sums: what it can amount to, and an inner product that is rounded once."""

from __future__ import annotations

import math

import numpy as np

from separatrix.data.block import Float

EPS = float(np.finfo(np.float64).eps)
# Relative error of sums over rows, which are added in pieces.
ROUNDING = 32.0 * EPS
_SPLIT = float(2**27 + 1)


def score_rounding(p: int) -> float:
    """Relative error of a sum of p products: compiled loops and BLAS add runs of at most 256 terms, then the runs."""
    return (4.0 + min(p, 256 + p // 256)) * EPS


def exact_dot(v: Float, c: Float, start: float) -> float:
    """start + vᵀc, rounded once."""
    return math.fsum([start, *exact_terms(v, c).tolist()])


def exact_terms(v: Float, c: Float) -> Float:
    """(…, 2d) numbers whose sum is vᵀc without rounding, for v (…, d)."""
    product = v * c
    with np.errstate(over="ignore", invalid="ignore"):
        v_high, c_high = _high(v), _high(c)
        v_low, c_low = v - v_high, c - c_high
        error = ((v_high * c_high - product) + v_high * c_low + v_low * c_high) + v_low * c_low
    return np.concatenate([product, np.where(np.isfinite(error), error, 0.0)], axis=-1)


def _high(v: Float) -> Float:
    """The upper 26 bits."""
    shifted = _SPLIT * v
    return shifted - (shifted - v)
