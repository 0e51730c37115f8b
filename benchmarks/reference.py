"""High-accuracy answers, from class moments taken in two passes and summed in extended precision.

    Σ_k(α, γ) = γ S + (1−γ)(tr S / d) I,   S = α Σ_k + (1−α) Σ,   Σ = Σ_k π_k Σ_k      (Friedman 1989)
    δ_k(x)    = −½ log|Σ_k| − ½ (x−μ_k)ᵀ Σ_k⁻¹ (x−μ_k) + log π_k

α = 0, γ = 1 is LDA; α = γ = 1 is QDA; α = 1 is scikit-learn's QDA with shrinkage 1 − γ. Covariances are the maximum
likelihood ones (1/n), as in scikit-learn. A score is only defined up to a term common to all classes, so
scores are compared with each row's mean taken out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Data

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Rows, mean and covariance of each class."""

    counts: Array
    means: Array
    covariances: Array

    @property
    def priors(self) -> Array:
        priors: Array = self.counts / self.counts.sum()
        return priors

    @property
    def pooled(self) -> Array:
        pooled: Array = np.tensordot(self.priors, self.covariances, axes=1)
        return pooled


def class_moments(data: Data) -> Moments:
    """Two passes: means first, then products of centred rows, added up block by block in extended precision."""
    labels = np.unique(data.y)
    columns = data.X.shape[1]
    means = np.empty((len(labels), columns))
    covariances = np.empty((len(labels), columns, columns))
    counts = np.empty(len(labels))
    for k, label in enumerate(labels):
        members = data.X[data.y == label]
        mean = members.mean(axis=0, dtype=np.longdouble)
        total = np.zeros((columns, columns), dtype=np.longdouble)
        for start in range(0, len(members), 2_000):
            centred = (members[start : start + 2_000] - mean).astype(np.float64)
            total += centred.T @ centred
        counts[k], means[k], covariances[k] = len(members), mean, total / len(members)
    return Moments(counts, means, covariances)


def discriminant_scores(moments: Moments, alpha: float, gamma: float, rows: Array) -> Array:
    """δ(x) for each of `rows`, each row's mean taken out."""
    columns = rows.shape[1]
    scores = np.empty((len(rows), len(moments.counts)))
    for k, (mean, own) in enumerate(zip(moments.means, moments.covariances, strict=True)):
        mixed = alpha * own + (1 - alpha) * moments.pooled
        covariance = gamma * mixed + (1 - gamma) * np.trace(mixed) / columns * np.eye(columns)
        root = np.linalg.cholesky(covariance)
        distances = np.square(np.linalg.solve(root, (rows - mean).T)).sum(axis=0)
        scores[:, k] = np.log(moments.priors[k]) - np.log(np.diag(root)).sum() - distances / 2
    return centred_scores(scores)


def ridge_scores(moments: Moments, penalty: float, rows: Array) -> Array:
    """x·W + b of the least-squares fit to targets ±1 with penalty ‖W‖², intercept free.

    W = (S + λI)⁻¹ 2 n_k (μ_k − μ), S the scatter about the overall mean μ; b = 2π_k − 1 − μᵀW.
    """
    mean = moments.priors @ moments.means
    apart = moments.means - mean
    scatter = moments.counts.sum() * moments.pooled + (apart.T * moments.counts) @ apart
    right = 2 * (apart.T * moments.counts)
    weights = np.linalg.solve(scatter + penalty * np.eye(len(mean)), right)
    scores: Array = (rows - mean) @ weights + (2 * moments.priors - 1)
    return scores


def centred_scores(scores: Any) -> Array:
    """Scores with each row's mean taken out."""
    values = np.asarray(scores, dtype=np.float64)
    centred: Array = values - values.mean(axis=1, keepdims=True)
    return centred


def relative_error(answer: Any, reference: Array) -> float:
    """max |answer − reference| / max |reference|; infinite when the shapes differ, NaN stays NaN."""
    answer = np.asarray(answer, dtype=np.float64)
    if answer.shape != reference.shape:
        return float("inf")
    return float(np.abs(answer - reference).max() / np.abs(reference).max())
