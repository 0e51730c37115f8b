"""The least risk of Gaussian classes of one column, with variances of their own.

    log π_k p_k(x) − log π_l p_l(x) = ½(1/v_l − 1/v_k)x² + …      two classes are equally likely where it is 0: 0, 1 or 2 points
    R = Σ over intervals and classes  π_k P_k(interval) L[k, action of the interval]

Between neighbouring cuts the best action is one and the same. For two classes the cuts are where the posterior passes a
breakpoint of the loss; for more, under the 0–1 loss, where two of them are equally likely. Other losses of more than two
classes have no such cuts: their least expected loss is integrated.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.special import logit, ndtr, softmax

from separatrix.data.block import Float
from separatrix.decide.losses import expected_losses
from separatrix.decide.regions import envelope, reject

# Standard deviations beyond which a class has no probability that double precision would see.
_FAR = 40.0


class GaussianLine(NamedTuple):
    """Classes N(mean, variance) with their priors, (K,) each."""

    means: Float
    variances: Float
    priors: Float

    def posterior(self, x: Float) -> Float:
        """(n, K) posteriors."""
        squares = np.square(x[:, None] - self.means) / self.variances
        with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
            return np.asarray(softmax(np.log(self.priors) - 0.5 * (squares + np.log(self.variances)), axis=1))

    def density(self, x: Float) -> Float:
        """(n,) density of a row of any class."""
        squares = np.square(x[:, None] - self.means) / self.variances
        return np.asarray(np.exp(-0.5 * squares) @ (self.priors / np.sqrt(2.0 * np.pi * self.variances)))

    def crossings(self, k: int, l: int, level: float = 0.0) -> list[float]:  # noqa: E741  # names of the formulas
        """Where log π_k p_k − log π_l p_l passes a level, rising; the quadratic is written about the mean of l."""
        if min(self.priors[k], self.priors[l]) == 0.0:
            return []
        (m, v), (origin, w) = (self.means[k], self.variances[k]), (self.means[l], self.variances[l])
        away = m - origin
        a, b = 0.5 * (1.0 / w - 1.0 / v), away / v
        c = -0.5 * away * away / v + 0.5 * np.log(w / v) + np.log(self.priors[k] / self.priors[l]) - level
        if a == 0.0:
            return [] if b == 0.0 else [float(origin - c / b)]
        under = b * b - 4.0 * a * c
        if under <= 0.0:
            return []
        q = -0.5 * (b + (np.sqrt(under) if b >= 0 else -np.sqrt(under)))  # without cancellation
        return sorted({float(origin + q / a), float(origin + c / q)} if q != 0.0 else {float(origin)})

    def all_crossings(self) -> list[float]:
        """Where any two of the classes are equally likely."""
        pairs = combinations(range(len(self.means)), 2)
        return [x for pair in pairs for x in self.crossings(*pair)]


def thresholds(line: GaussianLine) -> tuple[Float, list[int]]:
    """Where the likeliest class changes, rising, and which it is below the first point, between it and the next, …."""
    cuts = _cuts(line.all_crossings())
    classes = line.posterior(_inside(line, cuts)).argmax(axis=1)
    changes = np.flatnonzero(classes[1:] != classes[:-1])
    return cuts[changes], [int(classes[0]), *(int(k) for k in classes[changes + 1])]


def line_risk(
    line: GaussianLine, matrix: Float, reject_cost: float | None = None, reject_below: float | None = None
) -> tuple[float, float]:
    """R and its error, which is 0 where R has a closed form."""
    n_classes, zero_one = (
        len(line.means),
        matrix.shape[0] == matrix.shape[1] and bool((matrix == 1.0 - np.eye(len(matrix))).all()),
    )
    if n_classes == 2:
        levels = logit(envelope(matrix, reject_cost, reject_below)[0])
        cuts = _cuts([x for level in levels for x in line.crossings(1, 0, float(level))])
    else:
        cuts = _cuts(line.all_crossings())
        if not zero_one or reject_cost is not None:
            return _integrated(line, matrix, reject_cost, reject_below, cuts)
    proba = line.posterior(_inside(line, cuts))
    expected = expected_losses(proba, matrix)
    rejected = reject(proba, expected.min(axis=1), reject_cost, reject_below)
    losses = np.where(rejected, 0.0 if reject_cost is None else reject_cost, matrix[:, expected.argmin(axis=1)])
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    scaled = (ends - line.means[:, None]) / np.sqrt(line.variances)[:, None]
    return float(line.priors @ (between(scaled) * losses).sum(axis=1)), 0.0


def between(ends: Float) -> Float:
    """Normal probabilities of the intervals between rising ends, along the last axis; accurate in both tails."""
    low, high = ends[..., :-1], ends[..., 1:]
    return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def _cuts(points: list[float]) -> Float:
    return np.unique(np.asarray(points, dtype=np.float64))


def _inside(line: GaussianLine, cuts: Float) -> Float:
    """A point inside each of the intervals that the cuts make."""
    step = float(np.sqrt(line.variances.max()))
    if not len(cuts):
        return np.array([float(line.means[0])])
    return np.concatenate([[cuts[0] - step], 0.5 * (cuts[1:] + cuts[:-1]), [cuts[-1] + step]])


def _integrated(
    line: GaussianLine, matrix: Float, reject_cost: float | None, reject_below: float | None, cuts: Float
) -> tuple[float, float]:
    def least(x: float) -> float:
        at = np.array([x])
        proba = line.posterior(at)
        value = expected_losses(proba, matrix).min(axis=1)
        if reject(proba, value, reject_cost, reject_below)[0]:
            value = np.array([reject_cost])
        return float(value[0] * line.density(at)[0])

    spread = np.sqrt(line.variances)
    ends = [line.means + side * spread for side in (-_FAR, -8.0, -3.0, -1.0, 0.0, 1.0, 3.0, 8.0, _FAR)]
    parts = np.unique(np.concatenate([cuts, *ends]))
    found = [quad(least, low, high, limit=200, epsabs=1e-12, epsrel=1e-10) for low, high in pairwise(parts)]
    return float(sum(value for value, _ in found)), max(float(sum(error for _, error in found)), 1e-15)
