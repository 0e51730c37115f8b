"""Losses: functions of the class code y and the scores η alone.

    m = ỹη, ỹ = 2y − 1 ∈ {−1, +1}                                                            two classes, one score
    logistic        log(1 + e⁻ᵐ)              ℓ' = p − y,   ℓ'' = p(1−p),   p = σ(η)
    squared         ½(1 − m)²
    hinge           max(0, 1 − m)
    squared hinge   max(0, 1 − m)²
    perceptron      max(0, −m)
    Huberised       max(0, 1 − m)² for m ≥ −1, else −4m
    softmax         log Σ_k e^{η_k} − η_y     ∇ = p − e_y,  ∇² = diag p − ppᵀ,  p = softmax η    (one score a class)
    reference       softmax with the score of a baseline class held at 0                        (K − 1 scores)

The conjugate ℓ*(a) = sup_η aᵀη − ℓ(η) at a = ∇ℓ gives dual bounds. For the logistic loss with u = −ỹa ∈ [0, 1] it is
u log u + (1−u) log(1−u); for the softmax Σ q_k log q_k with q = a + e_y a distribution.

Reference: Hastie, Tibshirani, Friedman (2009), The Elements of Statistical Learning, table 10.1 and section 4.4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from separatrix.data.block import Codes, Float


class Loss(ABC):
    """A convex function of η (n, m) for every class code."""

    n_scores: int = 1
    smooth: ClassVar[bool] = True
    """Whether the second derivative exists almost everywhere and says something."""
    concordance: ClassVar[float | None] = None
    """c with |ℓ'''[u, u, v]| ≤ c ‖v‖ ℓ''[u, u], where there is such a number."""
    steepest: float = np.inf
    """Largest eigenvalue that ∇²ℓ can have."""

    @abstractmethod
    def value(self, codes: Codes, eta: Float) -> Float:
        """(n,) losses."""

    @abstractmethod
    def gradient(self, codes: Codes, eta: Float) -> Float:
        """(n, m) derivatives; a subgradient where there is a kink."""

    @abstractmethod
    def curvature(self, codes: Codes, eta: Float) -> Float:
        """(n, m) what `pair` and `times` need to know of the second derivatives."""

    def at(self, codes: Codes, eta: Float, curved: bool) -> tuple[Float, Float, Float | None]:
        """Value, gradient and, when asked for, curvature."""
        curvature = self.curvature(codes, eta) if curved else None
        return self.value(codes, eta), self.gradient(codes, eta), curvature

    @abstractmethod
    def conjugate(self, codes: Codes, a: Float) -> Float:
        """(n,) ℓ*(a); infinite outside its domain."""

    @abstractmethod
    def flows(self, sums: Float) -> Float | None:
        """(K, K) sums over class c of the slopes for class k, from sums (K, m); ``None`` where one is negative.

        The slopes of a row add up to zero over the classes, so those for its own class, on the diagonal, are left at zero.
        """

    def gauge(self) -> Float | None:
        """(m,) ones where adding a constant to all scores leaves every loss as it is; ``None`` for other losses."""
        return None

    @abstractmethod
    def errors(self, codes: Codes, eta: Float) -> Float:
        """(n,) 1 where another class has the larger score, else 0."""

    def pair(self, curvature: Float, k: int, l: int) -> Float:  # noqa: E741  # names of the formulas
        """(n,) entry (k, l) of the second derivatives."""
        return curvature[:, 0]

    def times(self, curvature: Float, v: Float) -> Float:
        """(n, m) second derivatives times v."""
        return curvature * v

    def total(self, curvature: Float, weights: Float | None) -> Float:
        """(m, m) weighted sum of the second derivatives."""
        return np.array([[curvature.sum() if weights is None else weights @ curvature[:, 0]]])


class Margin(Loss):
    """A function of the margin m = ỹη."""

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


class Softmax(Loss):
    """log Σ_k e^{η_k} − η_y; with a baseline class its score is 0 and has no column in η."""

    concordance = float(np.sqrt(2.0))
    steepest = 0.5

    def __init__(self, n_classes: int, baseline: int | None = None) -> None:
        self.n_classes, self.baseline = n_classes, baseline
        self.n_scores = n_classes - (baseline is not None)
        self._kept = np.arange(n_classes) if baseline is None else np.delete(np.arange(n_classes), baseline)

    def gauge(self) -> Float | None:
        return np.ones(self.n_scores) if self.baseline is None else None

    def _full(self, eta: Float) -> Float:
        return eta if self.baseline is None else np.insert(eta, self.baseline, 0.0, axis=1)

    def _kept_columns(self, whole: Float) -> Float:
        return whole if self.baseline is None else whole[:, self._kept]

    def _posterior(self, eta: Float) -> Float:
        scores = self._full(eta)
        shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
        shifted /= shifted.sum(axis=1, keepdims=True)
        return shifted

    def at(self, codes: Codes, eta: Float, curved: bool) -> tuple[Float, Float, Float | None]:
        # The exponentials cost more than the rest: once for all three.
        scores, rows = self._full(eta), np.arange(len(codes))
        value, p = _log_sum(scores, codes)
        gradient = p.copy() if curved else p
        gradient[rows, codes] -= 1.0
        return value, self._kept_columns(gradient), self._kept_columns(p) if curved else None

    def value(self, codes: Codes, eta: Float) -> Float:
        return _log_sum(self._full(eta), codes)[0]

    def errors(self, codes: Codes, eta: Float) -> Float:
        return (self._full(eta).argmax(axis=1) != codes).astype(np.float64)

    def gradient(self, codes: Codes, eta: Float) -> Float:
        p = self._posterior(eta)
        p[np.arange(len(codes)), codes] -= 1.0
        return self._kept_columns(p)

    def curvature(self, codes: Codes, eta: Float) -> Float:
        return self._kept_columns(self._posterior(eta))

    def flows(self, sums: Float) -> Float | None:
        whole = sums if self.baseline is None else np.insert(sums, self.baseline, -sums.sum(axis=1), axis=1)
        flows = whole.copy()
        np.fill_diagonal(flows, 0.0)
        return flows if (flows >= 0).all() else None

    def pair(self, curvature: Float, k: int, l: int) -> Float:  # noqa: E741  # names of the formulas
        p = curvature
        return p[:, k] * (1.0 - p[:, k]) if k == l else -p[:, k] * p[:, l]

    def times(self, curvature: Float, v: Float) -> Float:
        inner = np.einsum("ij,ij->i", curvature, v)
        return curvature * (v - inner[:, None])

    def total(self, curvature: Float, weights: Float | None) -> Float:
        weighted = curvature if weights is None else curvature * weights[:, None]
        return np.diag(weighted.sum(axis=0)) - curvature.T @ weighted

    def conjugate(self, codes: Codes, a: Float) -> Float:
        # Without a baseline Σ_k a_k must vanish; with one, its own entry is what makes the sum vanish.
        whole = a if self.baseline is None else np.insert(a, self.baseline, -a.sum(axis=1), axis=1)
        q = whole.copy()
        q[np.arange(len(codes)), codes] += 1.0
        # q log q with 0 log 0 = 0, by NumPy's vectorised logarithm
        entropy = (np.maximum(q, 0.0) * np.log(np.maximum(q, np.finfo(np.float64).tiny))).sum(axis=1)
        outside = (q.min(axis=1) < -1e-12) | (np.abs(whole.sum(axis=1)) > 1e-10)
        return np.where(outside, np.inf, entropy)


def _log_sum(scores: Float, codes: Codes) -> tuple[Float, Float]:
    """(n,) log Σ_k e^{η_k} − η_y and (n, K) posteriors. The largest term is left out of the sum: log1p keeps small losses."""
    rows, at = np.arange(len(codes)), scores.argmax(axis=1)
    largest = scores[rows, at]
    p = np.exp(scores - largest[:, None])
    p[rows, at] = 0.0
    others = p.sum(axis=1)
    p[rows, at] = 1.0
    p /= (1.0 + others)[:, None]
    return np.log1p(others) + (largest - scores[rows, codes]), p


MARGIN_LOSSES: dict[str, Margin] = {
    "logistic": Logistic(),
    "squared": Squared(),
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "perceptron": PerceptronLoss(),
    "huberised": Huberised(),
}
