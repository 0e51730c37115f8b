"""Confidence intervals of the mean of something bounded: a proportion, or losses between a and b.

Two values, k of n at the larger one: Wilson's interval, of all p with |k/n − p| ≤ z √(p(1−p)/n). Where 0 < k ≤ 3 its lower end
is too high and is moved to λ/n, P(Gamma(k) ≤ λ) = 1 − level (Brown, Cai and DasGupta), and so is the upper end where
n − k ≤ 3. Its coverage at level 95 % is 95 % on average at every n, and nowhere below 91 %.

More values: the upper end is the quantile of Σ wᵢlᵢ + w₀b, the lower end that of Σ wᵢlᵢ + w₀a, with w drawn from the
Dirichlet distribution of parameters 1 (a loss of weight s has the parameter s). One further row at the end of the range
stands for all losses that did not occur, so that the interval has a length when all losses are equal. For two values this is
the interval of Clopper and Pearson; for more its coverage is at least the level in every case known, though not proven so.
Nothing is drawn. With independent gamma variables and K(t) = −Σ αᵢ log(1 − λᵢt), whose derivative is 0 at τ,

    P(Σ wᵢlᵢ > r) = P(Σ λᵢGᵢ > 0) ≈ Φ(−a) + φ(a)(1/b − 1/a),     Gᵢ ~ Gamma(αᵢ),   λᵢ = lᵢ − r,   a² = −2K(τ),   b = τ√K''(τ)

(Lugannani and Rice): within a tenth of the tail, mostly far closer and on the side of a longer interval.

References: Wilson, JASA 22, 1927; Brown, Cai and DasGupta, Statistical Science 16, 2001, sect. 4.1.1; Clopper and Pearson,
Biometrika 26, 1934; Gaffke, Contributions to Mathematics and Statistics (Magdeburg), 2005; Learned-Miller and Thomas,
arXiv 1905.06208; Lugannani and Rice, Advances in Applied Probability 12, 1980.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainccinv, gammaincinv, ndtr, ndtri

from separatrix.data.block import Float

_RARE = 3.0
_MOST_VALUES = 2001


def wilson_interval(share: Float, n: Float, level: float = 0.95) -> tuple[Float, Float]:
    """Limits of a probability, from the share of n rows in which it came true; n need not be whole.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.decide.intervals import wilson_interval
    >>> low, high = wilson_interval(np.array([0.0, 0.5]), np.array([20.0, 20.0]))
    >>> low.round(3), high.round(3)
    (array([0.   , 0.299]), array([0.161, 0.701]))
    """
    z, missed = float(ndtri(0.5 + level / 2.0)), 1.0 - level
    centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n)
    half = z / (1.0 + z * z / n) * np.sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n))
    low = np.where(share > 0, np.minimum(centre - half, _rare(share * n, n, missed)), 0.0)
    high = np.where(share < 1, np.maximum(centre + half, 1.0 - _rare((1.0 - share) * n, n, missed)), 1.0)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def _rare(k: Float, n: Float, missed: float) -> Float:
    """The lower limit of what happened at most three times in n rows; no limit otherwise."""
    few = (k > 0) & (k <= _RARE * (1.0 + 1e-9))  # three rows in a share of n may come back as a little more
    return np.where(few, gammaincinv(np.where(few, k, 1.0), missed) / n, np.inf)


def bounded_interval(values: Float, counts: Float, low: float, high: float, level: float = 0.95) -> tuple[float, float]:
    """Limits of a mean, from the values that occurred, how often each did, and the range they must lie in.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.decide.intervals import bounded_interval
    >>> bounded_interval(np.array([0.0, 1.0, 50.0]), np.array([70.0, 29.0, 1.0]), 0.0, 50.0)
    (0.277..., 3.00...)
    """
    low, high = min(low, float(values.min())), max(high, float(values.max()))
    kept = counts > 0
    values, counts, tail = values[kept], counts[kept], (1.0 - level) / 2.0
    if low == high:
        return low, high
    scaled = (values - low) / (high - low)
    if len(values) > _MOST_VALUES:
        scaled, counts = _on_a_grid(scaled, counts)
    upper = _upper(scaled, counts, tail)
    lower = 1.0 - _upper(1.0 - scaled, counts, tail)
    return max(low, low + (high - low) * lower), min(high, low + (high - low) * upper)


def _on_a_grid(values: Float, counts: Float) -> tuple[Float, Float]:
    """Each value shared out between the two points of a grid about it: the same mean, and a spread no smaller."""
    grid = np.linspace(values.min(), values.max(), _MOST_VALUES)
    place = np.clip(np.searchsorted(grid, values, side="right") - 1, 0, _MOST_VALUES - 2)
    share = (values - grid[place]) / (grid[place + 1] - grid[place])
    shared = np.zeros(_MOST_VALUES)
    np.add.at(shared, place, counts * (1.0 - share))
    np.add.at(shared, place + 1, counts * share)
    return grid[shared > 0], shared[shared > 0]


def _upper(values: Float, counts: Float, tail: float) -> float:
    """The point that Σ wᵢlᵢ + w₀ exceeds with probability `tail`; values between 0 and 1."""
    if values.min() >= 1.0:
        return 1.0
    if ((values == 0.0) | (values == 1.0)).all():
        ones = float(counts @ values)
        return float(betainccinv(ones + 1.0, float(counts.sum()) - ones, tail))
    values, alpha = np.append(values, 1.0), np.append(counts, 1.0)
    return float(brentq(lambda r: _exceeds(values - r, alpha) - tail, float(values.min()), 1.0, xtol=1e-12))


def _exceeds(differences: Float, alpha: Float) -> float:
    """P(Σ λᵢGᵢ > 0)."""
    least, most = float(differences.min()), float(differences.max())
    if most <= 0.0 or least >= 0.0:
        return float(least >= 0.0)

    def slope(t: float) -> float:
        return float((alpha * differences / (1.0 - differences * t)).sum())

    inside = 1.0 - 1e-14
    tau = float(brentq(slope, inside / least, inside / most, xtol=1e-13 / max(-least, most), rtol=1e-12, maxiter=1000))
    ratios = differences / (1.0 - differences * tau)
    second = float(alpha @ np.square(ratios))
    a = float(np.sign(tau) * np.sqrt(max(0.0, 2.0 * float(alpha @ np.log1p(-differences * tau)))))
    if abs(a) < 1e-4:  # both fractions are infinite at the mean; this is what is left of their difference
        return 0.5 - float(alpha @ ratios**3) / (3.0 * second**1.5 * np.sqrt(2.0 * np.pi))
    density = np.exp(-0.5 * a * a) / np.sqrt(2.0 * np.pi)
    return float(ndtr(-a) + density * (1.0 / (tau * np.sqrt(second)) - 1.0 / a))
