"""Whether chains agree, and how many independent draws they are worth.

    z      = Φ⁻¹((r − ⅜)/(S + ¼))                 r the rank of a draw among all S: R-hat and size exist whatever the tails
    W, B   = variance within chains, variance of their means;     var⁺ = (n−1)/n W + B
    R-hat  = √(var⁺ / W)                           of z and of z for |x − median|, the larger: location and scale
    ρ_t    = 1 − (W − mean_c γ_ct) / var⁺          γ_ct the autocovariance of chain c at lag t
    ESS    = S / τ,   τ = −1 + 2 Σ_{t'} P_t',      P_t' = ρ_{2t'} + ρ_{2t'+1} while positive, made monotone

Every chain is cut in two halves first, so that a drift within a chain shows as well.

Reference: Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Bayesian Analysis 16, sections 3 and 4; Geyer (1992),
Statistical Science 7, section 3.3.
"""

from __future__ import annotations

import numpy as np
import scipy.fft
from scipy.special import ndtri
from scipy.stats import rankdata

from separatrix.data.block import Float

# Fewer draws per chain leave halves too short for a variance.
LEAST_DRAWS = 4


def rhat(draws: Float) -> Float:
    """Split R-hat of rank-normalised draws, the larger of that of the draws and that of their distances to the median.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, ...)
        At least 4 draws per chain.

    Returns
    -------
    ndarray of shape (...)
        Near 1 when the chains agree; above 1.01 they should run longer. Infinite for chains that stand still at
        different places, NaN where every draw is the same.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> bool(rhat(draws) < 1.01), bool(rhat(draws + np.arange(4)[:, None]) > 1.5)
    (True, True)
    """
    halves = _halves(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_ratio(_rank_normalised(halves)), _ratio(_rank_normalised(folded)))


def bulk_ess(draws: Float) -> Float:
    """Effective sample size of the bulk: how many independent draws would estimate the centre as well.

    Parameters
    ----------
    draws
        As for `rhat`.

    Returns
    -------
    ndarray of shape (...)
        Over all chains together; chains that alternate may be worth more than their number of draws, and S log₁₀ S is
        the most that is claimed. NaN where every draw is the same.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> bool(1500 < bulk_ess(draws) < 2500)
    True
    """
    z = _rank_normalised(_halves(draws))
    chains, n = z.shape[:2]
    within, pooled = _variances(z)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1.0 - (within - _autocovariance(z).mean(axis=0)) / pooled
    correlation[0] = 1.0
    pairs = correlation[: n - n % 2].reshape(n // 2, 2, *z.shape[2:]).sum(axis=1)
    # Geyer: the sums of neighbours are positive and fall for any reversible chain; what is not so is noise.
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    total = np.where(positive, np.minimum.accumulate(pairs, axis=0), 0.0).sum(axis=0)
    size = chains * n
    tau = np.maximum(2.0 * total - 1.0, 1.0 / np.log10(size))
    return np.where(pooled > 0, size / tau, np.nan)


def _halves(draws: Float) -> Float:
    """(2·chains, draws // 2, ...); the middle one of an odd number of draws is left out."""
    n = draws.shape[1]
    if n < LEAST_DRAWS:
        raise ValueError(f"Each chain has {n} draws; R-hat and the effective sample size need at least {LEAST_DRAWS}.")
    return np.concatenate([draws[:, : n // 2], draws[:, -(n // 2) :]])


def _rank_normalised(draws: Float) -> Float:
    size = draws.shape[0] * draws.shape[1]
    ranks = rankdata(draws.reshape(size, -1), axis=0)
    return ndtri((ranks - 0.375) / (size + 0.25)).reshape(draws.shape)


def _variances(z: Float) -> tuple[Float, Float]:
    """W and var⁺; exactly 0 where all the draws are the same."""
    n = z.shape[1]
    within = z.var(axis=1, ddof=1).mean(axis=0)
    still = (z == z[:, :1]).all(axis=1).all(axis=0)
    within = np.where(still, 0.0, within)
    means = np.where(still, z[:, 0], z.mean(axis=1))
    return within, (n - 1.0) / n * within + means.var(axis=0, ddof=1)


def _ratio(z: Float) -> Float:
    within, pooled = _variances(z)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(pooled / within)


def _autocovariance(z: Float) -> Float:
    """(chains, n, ...) at every lag, divided by n, by the fast Fourier transform."""
    n = z.shape[1]
    length = scipy.fft.next_fast_len(2 * n, real=True)
    spectrum = scipy.fft.rfft(z - z.mean(axis=1, keepdims=True), length, axis=1)
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    return scipy.fft.irfft(power, length, axis=1)[:, :n] / n
