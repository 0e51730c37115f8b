"""Losses of the margin: two classes, one score.

    m = ỹη, ỹ = 2y − 1 ∈ {−1, +1}
    logistic        log(1 + e⁻ᵐ)              ℓ' = p − y,   ℓ'' = p(1−p),   p = σ(η)
    squared         ½(1 − m)²
    hinge           max(0, 1 − m)
    squared hinge   max(0, 1 − m)²
    perceptron      max(0, −m)
    Huberised       max(0, 1 − m)² for m ≥ −1, else −4m
    exponential     e⁻ᵐ                        ℓ* = u log u − u,   u = −ỹa ≥ 0
    sigmoid         1/(1 + eᵐ)                                                            not convex, no conjugate
    sigmoid squared (σ(η) − y)² = σ(−m)²       ℓ'' = 2q²(1−q)(2−3q),   q = σ(−m)          not convex, no conjugate
    zero-one        [m ≤ 0]                                                               to compare with, not to minimise

For the logistic loss with u = −ỹa ∈ [0, 1] the conjugate is u log u + (1−u) log(1−u). To add a loss: a class here or in a
file of its own, and its name in MARGIN_LOSSES.

Reference: Hastie, Tibshirani, Friedman (2009), The Elements of Statistical Learning, table 10.1.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, xlogy

from separatrix.data.block import Codes, Float
from separatrix.objectives.losses import Loss

_STEEP = -200.0


class Margin(Loss):
    """A function of the margin m = ỹη.

    Examples
    --------
    >>> from separatrix.objectives import MARGIN_LOSSES
    >>> hinge, exponential = MARGIN_LOSSES["hinge"], MARGIN_LOSSES["exponential"]
    >>> hinge.loss([-1.0, 0.0, 2.0]).tolist(), hinge.derivative([-1.0, 0.0, 2.0]).tolist()
    ([2.0, 1.0, 0.0], [-1.0, -1.0, 0.0])
    >>> float(exponential.second_derivative(0.0))
    1.0
    """

    def loss(self, m: ArrayLike) -> Float:
        """ℓ(m)."""
        return self._of(np.asarray(m, dtype=np.float64))

    def derivative(self, m: ArrayLike) -> Float:
        """ℓ'(m); one of the slopes where there is a kink."""
        return self._slope(np.asarray(m, dtype=np.float64))

    def second_derivative(self, m: ArrayLike) -> Float:
        """ℓ''(m), 0 at a kink; negative where the loss is not convex, which `curvature` never is."""
        return self._bend(np.asarray(m, dtype=np.float64))

    def value(self, codes: Codes, eta: Float) -> Float:
        return self._of(_signs(codes) * eta[:, 0])

    def gradient(self, codes: Codes, eta: Float) -> Float:
        signs = _signs(codes)
        return (signs * self._slope(signs * eta[:, 0]))[:, None]

    def curvature(self, codes: Codes, eta: Float) -> Float:
        return self._bend(_signs(codes) * eta[:, 0])[:, None]

    def conjugate(self, codes: Codes, a: Float) -> Float:
        return self._dual(_signs(codes) * a[:, 0])

    def flows(self, sums: Float) -> Float | None:
        # Slopes of a loss that falls with the margin are positive in class 0 and negative in class 1.
        flows = np.array([[0.0, sums[0, 0]], [-sums[1, 0], 0.0]])
        return flows if (flows >= 0).all() else None

    def errors(self, codes: Codes, eta: Float) -> Float:
        return ((eta[:, 0] > 0) != (codes == 1)).astype(np.float64)

    @abstractmethod
    def _of(self, m: Float) -> Float: ...

    @abstractmethod
    def _slope(self, m: Float) -> Float: ...

    @abstractmethod
    def _bend(self, m: Float) -> Float: ...

    @abstractmethod
    def _dual(self, a: Float) -> Float: ...


def _signs(codes: Codes) -> Float:
    signs: Float = codes.astype(np.float64) * 2.0 - 1.0
    return signs


def _inside(a: Float, low: float, high: float, values: Float) -> Float:
    """`values` where low ≤ a ≤ high up to rounding, else infinity."""
    slack = 1e-12 * (1.0 + np.abs(a))
    return np.where((a >= low - slack) & (a <= high + slack), values, np.inf)


class Logistic(Margin):
    """log(1 + e⁻ᵐ)."""

    concordance = 1.0
    steepest = 0.25

    def at(self, codes: Codes, eta: Float, curved: bool) -> tuple[Float, Float, Float | None]:
        signs = _signs(codes)
        m = signs * eta[:, 0]
        small = np.exp(-np.abs(m))
        high = 1.0 / (1.0 + small)
        slope = np.where(m > 0, small, 1.0) * high
        value: Float = np.log1p(small) + np.maximum(-m, 0.0)
        return value, (-signs * slope)[:, None], (small * high * high)[:, None] if curved else None

    def _of(self, m: Float) -> Float:
        return np.log1p(np.exp(-np.abs(m))) + np.maximum(-m, 0.0)

    def _slope(self, m: Float) -> Float:
        small = np.exp(-np.abs(m))
        return -np.where(m > 0, small, 1.0) / (1.0 + small)

    def _bend(self, m: Float) -> Float:
        small = np.exp(-np.abs(m))
        return small / np.square(1.0 + small)

    def _dual(self, a: Float) -> Float:
        u = np.clip(-a, 0.0, 1.0)
        entropy: Float = xlogy(u, u) + xlogy(1.0 - u, 1.0 - u)
        return _inside(-a, 0.0, 1.0, entropy)


class Squared(Margin):
    """½(1 − m)²."""

    concordance = 0.0
    steepest = 1.0

    def _of(self, m: Float) -> Float:
        return 0.5 * np.square(1.0 - m)

    def _slope(self, m: Float) -> Float:
        return m - 1.0

    def _bend(self, m: Float) -> Float:
        return np.ones_like(m)

    def _dual(self, a: Float) -> Float:
        return 0.5 * np.square(a) + a


class Hinge(Margin):
    """max(0, 1 − m)."""

    smooth = False

    def _of(self, m: Float) -> Float:
        return np.maximum(1.0 - m, 0.0)

    def _slope(self, m: Float) -> Float:
        return np.where(m < 1.0, -1.0, 0.0)

    def _bend(self, m: Float) -> Float:
        return np.zeros_like(m)

    def _dual(self, a: Float) -> Float:
        return _inside(a, -1.0, 0.0, a)


class SquaredHinge(Margin):
    """max(0, 1 − m)²."""

    steepest = 2.0

    def _of(self, m: Float) -> Float:
        return np.square(np.maximum(1.0 - m, 0.0))

    def _slope(self, m: Float) -> Float:
        return -2.0 * np.maximum(1.0 - m, 0.0)

    def _bend(self, m: Float) -> Float:
        return np.where(m < 1.0, 2.0, 0.0)

    def _dual(self, a: Float) -> Float:
        return _inside(a, -np.inf, 0.0, a + 0.25 * np.square(a))


class PerceptronLoss(Margin):
    """max(0, −m)."""

    smooth = False

    def _of(self, m: Float) -> Float:
        return np.maximum(-m, 0.0)

    def _slope(self, m: Float) -> Float:
        return np.where(m < 0.0, -1.0, 0.0)

    def _bend(self, m: Float) -> Float:
        return np.zeros_like(m)

    def _dual(self, a: Float) -> Float:
        return _inside(a, -1.0, 0.0, np.zeros_like(a))


class Huberised(Margin):
    """max(0, 1 − m)² for m ≥ −1, −4m below: the squared hinge with a straight tail."""

    steepest = 2.0

    def _of(self, m: Float) -> Float:
        return np.where(m >= -1.0, np.square(np.maximum(1.0 - m, 0.0)), -4.0 * m)

    def _slope(self, m: Float) -> Float:
        return np.where(m >= -1.0, -2.0 * np.maximum(1.0 - m, 0.0), -4.0)

    def _bend(self, m: Float) -> Float:
        return np.where((m < 1.0) & (m >= -1.0), 2.0, 0.0)

    def _dual(self, a: Float) -> Float:
        return _inside(a, -4.0, 0.0, a + 0.25 * np.square(a))


class SmoothedHinge(Margin):
    """The hinge with a parabola of width h in place of its kink; four times that of width 2 is the Huberised loss."""

    def __init__(self, width: float) -> None:
        self.width, self.steepest = width, 1.0 / width

    def _of(self, m: Float) -> Float:
        z = np.maximum(1.0 - m, 0.0)
        return np.where(z < self.width, np.square(z) / (2.0 * self.width), z - 0.5 * self.width)

    def _slope(self, m: Float) -> Float:
        return -np.clip((1.0 - m) / self.width, 0.0, 1.0)

    def _bend(self, m: Float) -> Float:
        return np.where((m <= 1.0) & (m >= 1.0 - self.width), 1.0 / self.width, 0.0)

    def _dual(self, a: Float) -> Float:
        return np.where((a >= -1.0) & (a <= 0.0), a + 0.5 * self.width * np.square(a), np.inf)


class Sigmoid(Margin):
    """1/(1 + eᵐ), a smooth count of errors. It is not convex and has no conjugate."""

    convex = False
    steepest = 1.0 / (6.0 * 3.0**0.5)

    def _of(self, m: Float) -> Float:
        result: Float = expit(-m)
        return result

    def _slope(self, m: Float) -> Float:
        result: Float = -expit(m) * expit(-m)
        return result

    def _bend(self, m: Float) -> Float:
        return np.maximum(self.second_derivative(m), 0.0)  # where it is positive: steps lead downhill

    def second_derivative(self, m: ArrayLike) -> Float:
        """ℓ'' = p(1−p)(2p−1), p = σ(m)."""
        m = np.asarray(m, dtype=np.float64)
        result: Float = expit(m) * expit(-m) * np.tanh(0.5 * m)
        return result

    def _dual(self, a: Float) -> Float:
        return np.full_like(a, np.inf)


class SigmoidSquared(Margin):
    """(σ(η) − y)² = σ(−m)², the squared error of the probability. It is not convex and has no conjugate."""

    convex = False
    steepest = 0.1541  # a little above the largest ℓ'', which is at q = (15 − √33)/24

    def _of(self, m: Float) -> Float:
        result: Float = np.square(expit(-m))
        return result

    def _slope(self, m: Float) -> Float:
        result: Float = -2.0 * np.square(expit(-m)) * expit(m)
        return result

    def _bend(self, m: Float) -> Float:
        return np.maximum(self.second_derivative(m), 0.0)  # where it is positive: steps lead downhill

    def second_derivative(self, m: ArrayLike) -> Float:
        """ℓ'' = 2q²(1−q)(2−3q), q = σ(−m)."""
        m = np.asarray(m, dtype=np.float64)
        q: Float = expit(-m)
        result: Float = 2.0 * np.square(q) * expit(m) * (2.0 - 3.0 * q)
        return result

    def _dual(self, a: Float) -> Float:
        return np.full_like(a, np.inf)


class Exponential(Margin):
    """e⁻ᵐ, the loss of boosting; its tangent below m = −200, where no minimiser has a row and sums would overflow."""

    concordance = 1.0

    def _of(self, m: Float) -> Float:
        return np.exp(-np.maximum(m, _STEEP)) * (1.0 + np.maximum(_STEEP - m, 0.0))

    def _slope(self, m: Float) -> Float:
        return -np.exp(-np.maximum(m, _STEEP))

    def _bend(self, m: Float) -> Float:
        return np.where(m >= _STEEP, np.exp(-np.maximum(m, _STEEP)), 0.0)

    def _dual(self, a: Float) -> Float:
        u = np.maximum(-a, 0.0)
        entropy: Float = xlogy(u, u) - u
        return _inside(-a, 0.0, float(np.exp(-_STEEP)), entropy)


class ZeroOne(Margin):
    """[m ≤ 0], the misclassification: flat wherever it has a slope, so that nothing can be minimised by it."""

    convex = False
    smooth = False

    def _of(self, m: Float) -> Float:
        return (m <= 0.0).astype(np.float64)

    def _slope(self, m: Float) -> Float:
        return np.zeros_like(m)

    def _bend(self, m: Float) -> Float:
        return np.zeros_like(m)

    def _dual(self, a: Float) -> Float:
        return np.full_like(a, np.inf)


MARGIN_LOSSES: dict[str, Margin] = {
    "logistic": Logistic(),
    "squared": Squared(),
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "perceptron": PerceptronLoss(),
    "huberised": Huberised(),
    "exponential": Exponential(),
    "sigmoid": Sigmoid(),
    "sigmoid_squared": SigmoidSquared(),
}
