"""Conditioning a Gaussian on some of its coordinates.

    (X, Y) ~ N(μ, Σ)   ⇒   Y | X=x ~ N( μ_Y + Σ_YX Σ_XX⁻¹ (x − μ_X),  Σ_YY − Σ_YX Σ_XX⁻¹ Σ_XY )

The mean is the regression of Y on X, so it agrees with `LinearRegression` on the population moments.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Float
from separatrix.statistics.metric import DenseMetric


def condition_gaussian(mean: ArrayLike, cov: ArrayLike, given: Mapping[int, float]) -> tuple[Float, Float]:
    """Mean and covariance of a Gaussian's other coordinates, given some of them.

    Parameters
    ----------
    mean : array-like of shape (d,)
        Mean of the joint distribution.
    cov : array-like of shape (d, d)
        Its covariance, symmetric and positive semi-definite.
    given : mapping from coordinate to value
        The observed coordinates.

    Returns
    -------
    mean : ndarray
        Conditional mean of the coordinates that are not given, in their order.
    covariance : ndarray
        Their conditional covariance.

    Examples
    --------
    >>> from separatrix import condition_gaussian
    >>> mean, covariance = condition_gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], given={0: 2.0})
    >>> mean, covariance
    (array([1.]), array([[0.75]]))
    """
    mu, sigma = np.asarray(mean, dtype=np.float64), np.asarray(cov, dtype=np.float64)
    d = mu.shape[0] if mu.ndim == 1 else -1
    if sigma.shape != (d, d):
        raise ValueError(f"mean has shape {mu.shape} and cov {sigma.shape}; they must be (d,) and (d, d).")
    if not (np.isfinite(mu).all() and np.isfinite(sigma).all()):
        raise ValueError("mean and covariance must be finite; they contain NaN or infinity.")
    size = np.sqrt(np.abs(np.outer(sigma.diagonal(), sigma.diagonal())))
    if (np.abs(sigma - sigma.T) > 1e-10 * size).any():
        raise ValueError("covariance is not symmetric; give a covariance matrix.")
    scale = np.sqrt(np.where(sigma.diagonal() > 0, sigma.diagonal(), 1.0))
    if d and np.linalg.eigvalsh((sigma + sigma.T) / 2 / scale / scale[:, None])[0] < -1e-10 * d:
        raise ValueError(
            "covariance is not positive semi-definite: it has a negative eigenvalue, so it is no covariance matrix."
        )
    fractions = [index for index in given if index != int(index)]
    if fractions:
        raise ValueError(f"given names coordinate {fractions[0]}; coordinates are whole numbers.")
    known = np.array([int(index) for index in given], dtype=np.intp)
    outside = known[(known < -d) | (known >= d)]
    if len(outside):
        raise ValueError(f"given names coordinate {outside[0]}, but there are only {d}.")
    known %= d
    if len(np.unique(known)) < len(known):
        raise ValueError("given names a coordinate twice; give each once.")
    values = np.array([float(value) for value in given.values()])
    if not np.isfinite(values).all():
        raise ValueError("given holds NaN or infinity; leave unobserved coordinates out of it.")
    free = np.setdiff1d(np.arange(d), known)
    if len(known) == 0:
        return mu.copy(), sigma.copy()
    metric = DenseMetric(sigma[np.ix_(known, known)])
    gain = metric.half(sigma[np.ix_(free, known)])
    shift = metric.half((values - mu[known])[None, :])[0]
    return mu[free] + gain @ shift, sigma[np.ix_(free, free)] - gain @ gain.T
