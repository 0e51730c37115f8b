"""Probabilities from the scores of a machine, and from the scores of pairs of classes.

    Platt      p(f) = 1/(1 + e^{Af + B}), A ≤ 0, fitted to scores of rows that were left out, targets (n₊+1)/(n₊+2) and 1/(n₋+2)
    isotonic   p(f) the best non-decreasing function
    coupling   min_p Σ_{k≠l} (r_lk p_k − r_kl p_l)²,  Σp = 1,   r_kl = p(k | k or l): a linear system
    agreement  the nearest p whose largest entry is the class that is predicted

Reference: Platt (1999); Lin, Lin, Weng (2007), Machine Learning 68; Wu, Lin, Weng (2004), JMLR 5, eq. 21.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from separatrix.data.block import Codes, Float

_LEAST = 1e-7
# Scores this close, relative to the largest, are the same: a machine that cannot separate its classes gives rounding errors.
_SAME_SCORE = 1e-9


def without_rounding(scores: Float) -> Float:
    """Scores of which those that differ by rounding alone are one."""
    unit = _SAME_SCORE * (float(np.abs(scores).max(initial=0.0)) or 1.0)
    return np.round(scores / unit) * unit


class Calibrator(ABC):
    """The probability of the positive side, given the score."""

    @classmethod
    @abstractmethod
    def fitted(cls, scores: Float, positive: Codes, weights: Float) -> Calibrator:
        """The curve of best fit to rows that were left out."""

    @abstractmethod
    def probability(self, scores: Float) -> Float:
        """(n,) in (0, 1), above ½ exactly where the score is positive."""

    @staticmethod
    def _agreeing(p: Float, scores: Float) -> Float:
        # A row at p = ½ is as close to the fitted value as agreement with the sign allows.
        low, high = np.nextafter(0.5, 0.0), np.nextafter(0.5, 1.0)
        return np.clip(np.where(scores > 0, np.maximum(p, high), np.minimum(p, low)), _LEAST, 1.0 - _LEAST)


@dataclass(frozen=True)
class Platt(Calibrator):
    """A logistic curve of the score."""

    slope: float
    constant: float

    @classmethod
    def fitted(cls, scores: Float, positive: Codes, weights: Float) -> Platt:
        """By Newton's method with halved steps; the targets keep the slope finite."""
        up, down = float(weights @ positive), float(weights @ (1 - positive))
        target = np.where(positive > 0, (up + 1.0) / (up + 2.0), 1.0 / (down + 2.0))
        scores = without_rounding(scores)
        scale = float(np.abs(scores).max(initial=0.0)) or 1.0
        X = np.column_stack([scores / scale, np.ones_like(scores)])

        def value(at: Float) -> float:
            eta = X @ at
            return float(weights @ (np.logaddexp(0.0, eta) - target * eta))

        theta = np.array([0.0, float(np.log((up + 1.0) / (down + 1.0)))])
        here = value(theta)
        for _ in range(100):
            p = expit(X @ theta)
            gradient = X.T @ (weights * (p - target))
            hessian = (X * (weights * p * (1.0 - p))[:, None]).T @ X + 1e-12 * np.eye(2)
            step = -np.linalg.solve(hessian, gradient)
            length = 1.0
            while value(theta + length * step) > here and length > 1e-10:
                length *= 0.5
            theta = theta + length * step
            before, here = here, value(theta)
            if before - here <= 1e-14 * max(1.0, abs(here)):
                break
        if theta[0] <= 0.0:
            # A falling curve would mean that the scores are worse than chance: they then carry no information. Beside a slope
            # of 0 another constant is best than beside a falling one, far from it where all scores are nearly alike.
            mean = float(weights @ target) / (up + down)
            return cls(0.0, -float(logit(mean)))
        return cls(-float(theta[0]) / scale, -float(theta[1]))

    def probability(self, scores: Float) -> Float:
        return self._agreeing(expit(-(self.slope * scores + self.constant)), scores)


@dataclass(frozen=True)
class Isotonic(Calibrator):
    """A non-decreasing step function of the score, joined by lines."""

    scores: Float
    values: Float

    @classmethod
    def fitted(cls, scores: Float, positive: Codes, weights: Float) -> Isotonic:
        """By pooling neighbours that are out of order."""
        scores = without_rounding(scores)
        model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(scores, positive, weights)
        return cls(model.X_thresholds_, model.y_thresholds_)

    def probability(self, scores: Float) -> Float:
        return self._agreeing(np.interp(scores, self.scores, self.values), scores)


CALIBRATORS: dict[str, type[Calibrator]] = {"sigmoid": Platt, "isotonic": Isotonic}


def couple(pairs: Float, n_classes: int) -> Float:
    """(n, K) posteriors from (n, K(K−1)/2) probabilities of the first class of each pair (0,1), (0,2), …, (1,2), …"""
    n, K = len(pairs), n_classes
    r = np.zeros((n, K, K))
    first, second = np.triu_indices(K, 1)
    r[:, first, second], r[:, second, first] = pairs, 1.0 - pairs
    system = np.zeros((n, K + 1, K + 1))
    system[:, :K, :K] = -r * r.transpose(0, 2, 1)
    own = np.square(r).sum(axis=1)  # Σ_l r_lk²
    system[:, np.arange(K), np.arange(K)] = own
    system[:, :K, K] = system[:, K, :K] = 1.0
    right = np.zeros((n, K + 1, 1))
    right[:, K] = 1.0
    p = np.clip(np.linalg.solve(system, right)[:, :K, 0], _LEAST, None)
    return p / p.sum(axis=1, keepdims=True)


def agreeing(p: Float, predicted: Codes) -> Float:
    """The nearest (n, K) posteriors whose largest entry is at `predicted`: it is pooled with those above it."""
    rows = np.arange(len(p))
    bad = np.flatnonzero(p.argmax(axis=1) != predicted)
    if not len(bad):
        return p
    p = p.copy()
    part, own = p[bad], predicted[bad]
    mine = part[rows[: len(bad)], own].copy()
    part[rows[: len(bad)], own] = -np.inf
    order = np.argsort(-part, axis=1)
    others = np.take_along_axis(part, order, axis=1)
    # The pool takes the largest others for as long as the next is above the mean of the pool.
    level, size = mine, np.ones(len(bad))
    for k in range(p.shape[1] - 1):
        grows = others[:, k] > level
        level = np.where(grows, (level * size + others[:, k]) / (size + 1.0), level)
        size = size + grows
    part[rows[: len(bad)], own] = mine
    pooled = (part > level[:, None]) | (np.arange(p.shape[1]) == own[:, None])
    part = np.where(pooled, level[:, None], part)
    # Of equal entries the first would be taken: the predicted one is ahead by a little.
    part[rows[: len(bad)], own] = np.nextafter(level, 1.0)
    p[bad] = part
    return p
