"""The mean of σ(a) under a ~ N(μ, v), row by row.

With m = |μ| the smaller of the two probabilities is q(−m) = E σ(a), a ~ N(−m, v), s = √v. As σ(a) = e^a σ(−a), and e^a only
moves the mean of a Gaussian,

    q(−m) = e^{v/2 − m} q(m − v) = e^{v/2 − m} (1 − q(−(m − v)))                      (reflection, exact)

so that q is wanted only near 0 ≤ m ≤ v/2, where no sum below is small against its terms.

    s < 3    q(μ) = Σ_j h φ(jh) σ(μ + s jh)                                          (trapezoidal rule, h s ≤ ½)
    s ≥ 3    q(−m) = Φ(−m/s) + (2/s) φ(m/s) ∫₀^∞ e^{−a²/2v} sinh(am/v) / (1 + e^a) da    (Gauss rule for 1/(1 + e^a))

The first is as exact as the poles of σ at ±iπ allow, 2e^{−2π²/hs}. In the second all terms are positive: the step function
that σ is from afar has been taken out, and what is left is smooth on the scale of s.

Reference: Crouch and Spiegelman (1990), JASA 85, 464–469, on the trapezoidal rule and its poles.
"""

from __future__ import annotations

import math
from typing import Any

from separatrix.kernels import compiled

SWITCH = 3.0
"""The standard deviation s from which the Gauss rule is used."""
# Up to this share of it twice the step will do.
_COARSE = 0.45
# After so many reflections what is left out is below e^(−vr²/2), far below rounding.
_REFLECTIONS = 5


@compiled()
def _trapezoid(mean: float, s: float, step: float, heights: Any) -> float:
    """Σ_j heights[|j|] σ(mean + s·step·j) over whole j; the points ±j together have one division, and no exponential."""
    stride = 2 if s <= _COARSE * SWITCH else 1
    middle, grow, shrink = math.exp(-mean), math.exp(stride * s * step), math.exp(-stride * s * step)
    total, left, right = heights[0] / (1.0 + middle), middle, middle
    for j in range(stride, len(heights), stride):
        left *= grow
        right *= shrink
        total += heights[j] * (2.0 + left + right) / (1.0 + left + right + middle * middle)
    return stride * total


@compiled()
def _scaled_erfc(x: float) -> float:
    """e^{x²} erfc(x) for x ≥ 0; by its asymptotic series where erfc is about to underflow."""
    if x < 25.0:
        return math.exp(x * x) * math.erfc(x)
    u = 0.5 / (x * x)
    return (1.0 - u * (1.0 - 3.0 * u * (1.0 - 5.0 * u * (1.0 - 7.0 * u * (1.0 - 9.0 * u))))) / (x * math.sqrt(math.pi))


@compiled()
def _gauss(m: float, v: float, nodes: Any, weights: Any) -> float:
    """q(−m) e^{m²/2v} for 0 ≤ m ≤ v/2."""
    s, tilt, half = math.sqrt(v), m / v, 0.5 / v
    integral = 0.0
    for j in range(len(nodes)):
        a = nodes[j]
        term = weights[j] * (math.exp(a * (tilt - a * half)) - math.exp(-a * (tilt + a * half)))
        integral += term
        if term < 1e-18 * integral:  # the terms rise, then fall
            break
    return 0.5 * _scaled_erfc(m / s / math.sqrt(2.0)) + integral / (s * math.sqrt(2.0 * math.pi))


@compiled()
def tail(m: float, v: float, step: float, heights: Any, nodes: Any, weights: Any) -> tuple[float, float]:
    """(e, f) with q(−m) = e^e f for m ≥ 0: f is neither tiny nor huge, so that the logarithm of q keeps its digits."""
    if v < SWITCH * SWITCH:
        if m > 0.5 * v:
            return 0.5 * v - m, _trapezoid(m - v, math.sqrt(v), step, heights)
        return 0.0, _trapezoid(-m, math.sqrt(v), step, heights)
    reflections = int(min(m / v, _REFLECTIONS))
    rest = m - reflections * v
    if rest > v:
        power, factor = 0.0, 0.0
    elif rest > 0.5 * v:  # once more, seen from the other side
        far = v - rest
        power, factor = 0.5 * v - rest - 0.5 * far * (far / v), _gauss(far, v, nodes, weights)
    else:
        power, factor = -0.5 * rest * (rest / v), _gauss(rest, v, nodes, weights)
    for r in range(reflections - 1, -1, -1):
        power, factor = 0.5 * v - (m - r * v), 1.0 - math.exp(power) * factor
    return power, factor


@compiled()
def log_mean(mean: float, v: float, step: float, heights: Any, nodes: Any, weights: Any) -> float:
    """log E σ(a), to its last digits in both tails."""
    power, factor = tail(abs(mean), v, step, heights, nodes, weights)
    if mean <= 0.0:
        return power + math.log(factor)
    return math.log1p(-math.exp(power) * factor)


@compiled()
def smaller_tail(mean: Any, variance: Any, step: float, heights: Any, nodes: Any, weights: Any, out: Any) -> None:
    """out[i] = q(−|mean[i]|), at most ½. `heights` are h φ(jh), j = 0, 1, …; nodes and weights are those of the Gauss rule."""
    for i in range(len(mean)):
        power, factor = tail(abs(mean[i]), variance[i], step, heights, nodes, weights)
        out[i] = math.exp(power) * factor


@compiled()
def log_smaller_tail(mean: Any, variance: Any, step: float, heights: Any, nodes: Any, weights: Any, out: Any) -> None:
    """out[i] = log q(−|mean[i]|)."""
    for i in range(len(mean)):
        power, factor = tail(abs(mean[i]), variance[i], step, heights, nodes, weights)
        out[i] = power + math.log(factor)
