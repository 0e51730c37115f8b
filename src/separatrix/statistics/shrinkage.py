"""Shrinkage of a covariance towards a simple target, and how strongly.

    Σ(λ) = (1−λ) Σ + λ T,     T = I  (identity),  (tr Σ/d) I  (trace),  diag Σ  (diagonal)

    Ledoit–Wolf:  λ = min(1, b²/d²),  d² = ‖Σ − μI‖²_F / d,  b² = (Σᵢ sᵢ‖zᵢ‖⁴/n − ‖Σ‖²_F) / (d n),  μ = tr Σ/d
    OAS:          λ = min(1, (a + μ²) / ((n+1)(a − μ²/d))),  a = ‖Σ‖²_F / d²

References: Ledoit and Wolf (2004), J. Multivariate Analysis 88, lemma 3.4; Chen, Wiesel, Eldar and Hero (2010),
IEEE Trans. Signal Processing 58, eq. 23. Ledoit–Wolf needs fourth moments about the means: a second pass.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.statistics.moments import ClassMoments
from separatrix.statistics.scatter import Scatter, combine

Target = Literal["identity", "trace", "diagonal"]
Covariance = tuple[Scatter, Float | None]
"""A matrix and a diagonal to add to it: the form in which more columns than rows stay cheap."""


def shrunk(covariance: Scatter, intensity: float, target: Target) -> Covariance:
    """(1−λ)Σ + λT; the covariance itself where λ = 0."""
    d = covariance.n_features
    if intensity == 0.0:
        return covariance, None
    if target == "identity":
        diagonal = np.ones(d)
    elif target == "trace":
        diagonal = np.full(d, covariance.trace() / d)
    else:
        diagonal = covariance.diagonal()
    return combine([(1.0 - intensity, covariance)], d), intensity * diagonal


def squared_norm(scatter: Scatter) -> float:
    """‖S‖²_F, on whichever side is smaller."""
    inner = scatter.rows @ scatter.rows.T if scatter.thin else scatter.matrix()
    return float(np.einsum("ij,ij->", inner, inner))


def standardised(scatter: Scatter, scale: Float) -> Scatter:
    """D⁻¹ S D⁻¹."""
    if scatter.thin:
        return Scatter(rows=scatter.rows / scale)
    return Scatter(matrix=scatter.matrix() / scale / scale[:, None])


def oas_intensity(scatter: Scatter, count: float) -> float:
    """Oracle approximating shrinkage of the covariance scatter / count."""
    d = scatter.n_features
    mean_square = squared_norm(scatter) / (count * d) ** 2
    mu_squared = (scatter.trace() / (count * d)) ** 2
    denominator = (count + 1.0) * (mean_square - mu_squared / d)
    return 1.0 if denominator <= 0.0 else min(1.0, (mean_square + mu_squared) / denominator)


def ledoit_wolf_intensity(scatter: Scatter, count: float, fourth: float) -> float:
    """Ledoit–Wolf shrinkage of the covariance scatter / count, with fourth = Σ s‖z‖⁴."""
    d = scatter.n_features
    norm = squared_norm(scatter) / count**2
    mu = scatter.trace() / (count * d)
    distance = norm / d - mu**2
    spread = (fourth / count - norm) / (d * count)
    return 0.0 if min(spread, distance) <= 0.0 else min(1.0, spread / distance)


def fourth_moments(source: Source, means: Float, scales: Float) -> Float:
    """(K,) sums s‖(x − m_k)/scale_k‖⁴ over the rows of each class: one pass over a labelled source."""
    n_classes = len(means)

    def of_block(block: Block) -> Float:
        block = block.counted()
        rows, codes = block.dense(), block.codes
        weights = block.row_weights
        deviations = (rows - means[codes]) / scales[codes]
        lengths = np.einsum("ij,ij->i", deviations, deviations)
        return np.bincount(codes, weights * np.square(lengths), minlength=n_classes).astype(np.float64, copy=False)

    return source.reduce(of_block, np.add)


def class_scales(moments: ClassMoments) -> Float:
    """(K, d) standard deviations, 1 where a feature does not vary in a class."""
    deviations = np.sqrt(moments.variances())
    return np.where(deviations > 0, deviations, 1.0)
