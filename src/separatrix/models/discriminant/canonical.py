"""Canonical variates: the directions in which the class means differ most, in units of the within-class spread.

    max_v  vᵀBv / vᵀΣv,   B = Σ_k c_k (m_k − m)(m_k − m)ᵀ,   vᵀΣv = 1
    half(√c_k (m_k − m)) = U diag(s) Vᵀ   ⇒   v = back(V),   share of between-class variance s²/Σs²

At most min(K−1, d) directions. No d×d eigenproblem: the singular values are those of a K-row matrix.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Float
from separatrix.statistics.metric import Metric


def canonical_directions(offsets: Float, weights: Float, metric: Metric, tol: float) -> tuple[Float, Float]:
    """Directions (d, r), by falling share of the between-class variance, and the shares.

    Parameters
    ----------
    offsets : ndarray of shape (K, d)
        Class means less the overall mean.
    weights : ndarray of shape (K,)
        Weight of each class in the between-class scatter.
    metric : Metric
        Of the within-class covariance.
    tol : float
        Directions whose singular value is below `tol` times the largest are dropped.
    """
    white = metric.half(np.sqrt(weights)[:, None] * offsets)
    _, singular, right = np.linalg.svd(white, full_matrices=False)
    largest = float(singular.max(initial=0.0))
    kept = singular > max(tol, np.finfo(np.float64).eps * max(white.shape)) * largest
    squares = np.square(singular)
    shares = squares / squares.sum() if largest > 0 else squares
    directions = metric.back(right[kept]).T
    # A direction and its negative are the same variate: the later classes lie on the positive side.
    order = np.linspace(-1.0, 1.0, len(offsets))
    sides = order @ (offsets @ directions)
    return directions * np.where(sides < 0, -1.0, 1.0), shares
