"""Exact draws of Pólya–Gamma variables PG(1, z).

    PG(1, 2t) = X/4,    f(x) ∝ e^{−t²x/2} Σ_n (−1)ⁿ a_n(x)

    a_n(x) = π(n+½) (2/(πx))^{3/2} e^{−2(n+½)²/x}     x ≤ τ
           = π(n+½) e^{−(n+½)²π²x/2}                  x > τ

Both forms of a_n belong to the same series. On its side of τ each falls with n, so that partial sums are bounds from above and
from below in turn, and a uniform number under the first term is compared with them until it is decided: no term is cut off.
The first term times e^{−t²x/2} is an inverse Gaussian of mean 1/t left of τ, an exponential of rate π²/8 + t²/2 right of it;
their masses are

    left  2(e^{−t} Φ((τt−1)/√τ) + e^{t} Φ(−(τt+1)/√τ)),    right  (π/2κ) e^{−κτ},  κ = π²/8 + t²/2

Reference: Polson, Scott and Windle (2013), J. American Statistical Association 108, section 4, after Devroye (2009), Statistics
& Probability Letters 79.
"""

from __future__ import annotations

import math
from typing import Any

from separatrix.kernels import compiled

_TAU = 0.64
# From here on nothing is drawn right of τ: its share is below e^{t − τt²/2} < 1e-280.
_NO_RIGHT = 32.0


@compiled()
def _share_right(t: float, rate: float) -> float:
    """The share of the exponential part."""
    if t > _NO_RIGHT:
        return 0.0
    below = 0.5 * math.erfc((1.0 - _TAU * t) / math.sqrt(2.0 * _TAU))
    above = 0.5 * math.erfc((1.0 + _TAU * t) / math.sqrt(2.0 * _TAU))
    left = 2.0 * (math.exp(-t) * below + math.exp(t) * above)
    right = 0.5 * math.pi / rate * math.exp(-rate * _TAU)
    return right / (left + right)


@compiled()
def _left(t: float, generator: Any) -> float:
    """An inverse Gaussian of mean 1/t and shape 1, given that it is at most τ."""
    if t * _TAU < 1.0:
        # 1/√x has a normal tail beyond 1/√τ when t = 0; what t > 0 changes is a factor below one.
        while True:
            e, other = generator.standard_exponential(), generator.standard_exponential()
            while e * e * _TAU > 2.0 * other:
                e, other = generator.standard_exponential(), generator.standard_exponential()
            x = _TAU / (1.0 + _TAU * e) ** 2
            if generator.random() <= math.exp(-0.5 * t * t * x):
                return x
    while True:
        square = generator.standard_normal() ** 2
        # The smaller root of (xt − 1)² = square·x, in a form that does not cancel.
        half = t + 0.5 * square
        x = 1.0 / (half + math.sqrt(square * (t + 0.25 * square)))
        if generator.random() * (1.0 + t * x) > 1.0:
            x = 1.0 / (t * t * x)
        if x <= _TAU:
            return x


@compiled()
def _term(n: int, x: float) -> float:
    m = n + 0.5
    if x > _TAU:
        return math.pi * m * math.exp(-0.5 * m * m * math.pi * math.pi * x)
    return math.pi * m * (2.0 / (math.pi * x)) ** 1.5 * math.exp(-2.0 * m * m / x)


@compiled()
def unit_polya_gamma(tilts: Any, drawn: Any, generator: Any) -> None:
    """PG(1, z) into drawn (n,) for finite tilts z (n,)."""
    for i in range(len(tilts)):
        t = 0.5 * abs(tilts[i])
        rate = 0.125 * math.pi * math.pi + 0.5 * t * t
        right = _share_right(t, rate)
        decided = False
        while not decided:
            x = _TAU + generator.standard_exponential() / rate if generator.random() < right else _left(t, generator)
            total = _term(0, x)
            height = generator.random() * total
            n = 0
            while True:
                n += 1
                if n % 2:
                    total -= _term(n, x)
                    if height <= total:
                        decided = True
                        break
                else:
                    total += _term(n, x)
                    if height > total:
                        break
            drawn[i] = 0.25 * x
