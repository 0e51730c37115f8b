"""The one number that best stands for a posterior of a real quantity depends on the loss of being off.

    1 unless a = θ                           the mode (zero-one loss)
    (θ−a)²                                   the mean
    |θ−a|                                    the median
    q(θ−a)⁺ + (1−q)(a−θ)⁺                    the q-quantile (pinball loss)

From draws the median and the quantile minimise the average loss over the draws; where a whole interval does, its middle is
taken, as `numpy.median` does. Reference: Berger, Statistical Decision Theory and Bayesian Analysis, sect. 4.4.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from separatrix.data.block import Float
from separatrix.data.labels import check_weights

PointLoss = str | tuple[str, float]
_ROUNDING = 1e-12


def posterior_summary(
    posterior: ArrayLike | tuple[ArrayLike, ArrayLike], loss: PointLoss = "squared", *, weights: ArrayLike | None = None
) -> Float:
    """The point estimate of least expected loss, for every row.

    Parameters
    ----------
    posterior : array-like of shape (n_samples, n_draws), or a tuple (mean, std)
        Draws from the posterior of every row, or the mean and the standard deviation of a Gaussian one.
    loss : "squared", "absolute", "zero-one" or ("pinball", q), default="squared"
        With 0 < q < 1: being too low costs q per unit, being too high 1 − q. Under "zero-one" loss all but the truth cost the
        same: the mode, which is known of a Gaussian posterior and not of draws.
    weights : array-like of shape (n_draws,) or (n_samples, n_draws), optional
        Weights of the draws; a weight of 2 means the same as the draw standing twice.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from separatrix import posterior_summary
    >>> posterior_summary([[1.0, 2.0, 9.0]]), posterior_summary([[1.0, 2.0, 9.0]], "absolute")
    (array([4.]), array([2.]))
    >>> posterior_summary(([0.0, 5.0], [1.0, 2.0]), ("pinball", 0.975)).round(2)
    array([1.96, 8.92])
    """
    if loss == "zero-one":
        if not isinstance(posterior, tuple):
            raise ValueError(
                "The mode, which answers zero-one loss, is not known from draws; give a tuple (mean, std)."
            )
        loss = "squared"  # the mode of a Gaussian is its mean
    quantile = _quantile(loss)
    if isinstance(posterior, tuple):
        if weights is not None:
            raise ValueError("weights belong to draws; a Gaussian posterior (mean, std) has none.")
        return _of_gaussian(posterior, quantile)
    draws = np.asarray(posterior, dtype=np.float64)
    if draws.ndim != 2 or draws.shape[1] == 0:
        raise ValueError(f"Draws have shape {draws.shape}: give (n_samples, n_draws), or a tuple (mean, std).")
    if not np.isfinite(draws).all():
        bad = int((~np.isfinite(draws)).any(axis=1).sum())
        raise ValueError(f"Draws contain NaN or infinity in {bad} rows: the sampler that made them has failed there.")
    shares = _shares(weights, draws.shape)
    return np.einsum("ij,ij->i", draws, shares) if quantile is None else _of_draws(draws, shares, quantile)


def _quantile(loss: PointLoss) -> float | None:
    """The quantile that answers a loss; None for the mean."""
    if loss == "squared":
        return None
    if loss == "absolute":
        return 0.5
    if isinstance(loss, tuple) and len(loss) == 2 and loss[0] == "pinball" and 0.0 < loss[1] < 1.0:
        return float(loss[1])
    raise ValueError(
        f"loss={loss!r} is not known: give 'squared', 'absolute', 'zero-one' or ('pinball', q) with 0 < q < 1."
    )


def _of_gaussian(posterior: tuple[Any, ...], quantile: float | None) -> Float:
    if len(posterior) != 2:
        raise ValueError(f"A Gaussian posterior is a tuple (mean, std), but {len(posterior)} things were given.")
    mean, std = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in posterior))
    if not (np.isfinite(mean).all() and np.isfinite(std).all()) or (std < 0).any():
        raise ValueError("The mean and std of a Gaussian posterior must be finite, and std not negative.")
    return mean.copy() if quantile is None else mean + ndtri(quantile) * std


def _shares(weights: ArrayLike | None, shape: tuple[int, ...]) -> Float:
    """Weights of the draws that sum to 1 in every row."""
    if weights is None:
        return np.full(shape, 1.0 / shape[1])
    given = np.asarray(weights, dtype=np.float64)
    if given.shape not in (shape, shape[1:]):
        raise ValueError(
            f"weights has shape {given.shape}: give one per draw, {shape[1:]}, or one per row and draw, {shape}."
        )
    check_weights(given)
    total = given.sum(axis=-1, keepdims=True)
    if (total == 0).any():
        raise ValueError("The weights of a row are all zero: at least one of its draws must count.")
    return np.broadcast_to(given / total, shape)


def _of_draws(draws: Float, shares: Float, quantile: float) -> Float:
    """The middle of the interval in which the share of the draws below is `quantile`; it is mostly one point."""
    order = np.argsort(draws, axis=1, kind="stable")
    ordered = np.take_along_axis(draws, order, axis=1)
    below = np.cumsum(np.take_along_axis(shares, order, axis=1), axis=1)
    last = draws.shape[1] - 1
    rows = np.arange(len(draws))
    left = np.minimum((below < quantile - _ROUNDING).sum(axis=1), last)
    right = np.minimum((below <= quantile + _ROUNDING).sum(axis=1), last)
    return 0.5 * (ordered[rows, left] + ordered[rows, right])
