"""The predictive probabilities of a softmax regression: p_k = E softmax(a)_k for activations a ~ N(μ, S).

A shift common to all activations, fixed or random, changes nothing: only contrasts a_k − a_l count, so S enters as CSC with
C = I − 11ᵀ/K. With b_k = log Σ_{l≠k} e^{a_l} the probability is a binary one, softmax(a)_k = σ(a_k − b_k).

**Probit.** b_k is replaced by a Gaussian with its moments. Let a_l − a_j have mean δ_lj and variance v_lj, and let
κ_lj = (1 + πv_lj/8)^(−½) as in the binary case. Over the classes other than k,

    r_l ∝ 1 / Σ_j e^{−κ_lj δ_lj},   λ = Σ_{l≠j} r_l r_j / κ_lj / Σ_{l≠j} r_l r_j      (their shares, and a scale for all)
    E b = rᵀμ + λ H(r)                                            (H the entropy)
    Cov(b, ·) = Σ_l r_l Cov(a_l, ·)                               (Stein's lemma: E ∇b is the shares)
    Var b = rᵀSr + ½ Σ_lj r_l r_j T_lj² / λ²,   T_lj = Cov(a_l − rᵀa, a_j − rᵀa)  (Hermite expansion, ∇²b ≈ (diag r − rrᵀ)/λ)

and, c being Gaussian with the moments of a_k − b_k and π = min(1, 2 Σ_{l≠j} r_l r_j),

    log p_k = (1 − π) log E σ(c) + π log σ(κ E c) + const

The integral is right where one other class is all that counts (π = 0), and for sure rows the probit would be too timid: 0.033
instead of 0.021 of log-loss on the penguins. Where many classes compete b is no Gaussian, and the wider tails of the probit do
better. For one other class b is that class, and K = 2 keeps the binary probit; for two E b is the integral of that; for S = 0
it is the softmax. It is continuous, whatever the order of the classes. To scale each class or each pair of classes by its own κ
(MacKay; Lu, Ie and Sha; Daunizeau: p = r over all classes) is simpler, but does not see that a class of large variance wins
more often than its mean suggests: at μ = 0 it answers 1/K whatever S. The largest error over the classes, against long runs of
quasi-Monte Carlo on random μ and S with K from 3 to 20, was on average (and at worst), for the largest standard deviation s of
a contrast:

                     s = 0.7            s = 2             s = 20
    here             0.001 (0.004)      0.009 (0.03)      0.04 (0.09)
    κ of pairs       0.005 (0.02)       0.03 (0.10)       0.14 (0.28)
    κ of classes     0.01  (0.08)       0.06 (0.32)       0.20 (0.65)

**Quadrature.** Sobol' points and their mirror images through the normal quantile, z, along the principal axes a = μ + Az of
CSC. A small probability is made by points far out, which are few: its points are moved to where its integrand is greatest,

    p_k = E_u softmax_k(μ + A(z* + u)) exp(−z*ᵀu − ½ z*ᵀz*),     z* = argmax log softmax_k(μ + Az) − ½ zᵀz     (concave)

References: MacKay (1992), Neural Computation 4, 720–736; Daunizeau (2017), arXiv:1703.00091; Lu, Ie, Sha (2020),
arXiv:2006.07584; Joe and Kuo (2008), SIAM J. Sci. Comput. 30, for the Sobol' numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp, ndtri
from scipy.stats.qmc import Sobol

from separatrix.bayes.predictive import interval, probit, quadrature, rules
from separatrix.data.block import Float
from separatrix.inference.estimates import check_level

# As many Sobol' points (a power of 2) as mirror images.
_POINTS = 4096
# Log-probabilities below this have points of their own; steps to where, halvings of one, and a gain that is none.
_SMALL, _CLIMBS, _HALVED, _LEVEL = -5.0, 12, 12, 1e-3
_SHARPER = (1.0, 4.0, 16.0, 64.0, 256.0)
# Numbers that a block of rows may fill.
_BLOCK = 2**18
# Relative to the largest entry: an asymmetry or a negative eigenvalue that may be rounding.
_ROUNDING = 1e-8
_INDEFINITE = (
    "The covariance of row {} is not positive semi-definite, so it is no covariance matrix; check how it was made."
)


def softmax_probit(mean: ArrayLike, covariance: ArrayLike, *, log: bool = False) -> Float:
    """E softmax(a) in closed form, up to a few hundredths.

    Parameters
    ----------
    mean : array-like of shape (n, K)
        Of the activations. Where one class is the baseline its activation is 0, with variance 0.
    covariance : array-like of shape (n, K, K)
    log : bool, default=False
        Its logarithm, also where the probability underflows.

    Returns
    -------
    ndarray of shape (n, K)
        Every row sums to 1.

    Notes
    -----
    **Complexity** O(nK³).

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.bayes.predictive_softmax import softmax_probit
    >>> softmax_probit([[2.0, 0.0, 0.0]], 4.0 * np.eye(3)[None]).round(3)
    array([[0.591, 0.204, 0.204]])
    >>> softmax_probit([[4000.0, 0.0, 0.0]], 4.0 * np.eye(3)[None], log=True).round(1) + 0.0
    array([[    0., -3996., -3996.]])
    """
    from separatrix.kernels.posterior.softmax_normal import matched_log_probabilities

    mu, S = _contrasts(mean, covariance)
    if mu.shape[1] == 2:
        logs = _of_pair(probit, mu, S)
    else:
        logs = np.empty_like(mu)
        matched_log_probabilities(mu, S, *rules(), logs)
    return logs if log else np.exp(logs)


def softmax_quadrature(mean: ArrayLike, covariance: ArrayLike, *, log: bool = False) -> Float:
    """E softmax(a) by quasi-Monte Carlo with fixed points; exact for two classes.

    Parameters
    ----------
    mean, covariance, log
        As for `softmax_probit`. Logarithms are right to some thousandths where the probability is small, however small.

    Returns
    -------
    ndarray of shape (n, K)
        Every row sums to 1.

    Notes
    -----
    The largest error measured, for K from 3 to 20 and the largest standard deviation s of a contrast: 2e-5 for s = 0.7, 2e-4
    for s = 2, and for s = 20 3e-4 (K = 3) to 3e-3 (K = 20).

    **Complexity** O(nK²) products and O(nK) exponentials per point, of 8192 points; in blocks of a few rows.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.bayes.predictive_softmax import softmax_quadrature
    >>> softmax_quadrature([[2.0, 0.0, 0.0]], 4.0 * np.eye(3)[None]).round(2)
    array([[0.59, 0.21, 0.21]])
    """
    mu, S = _contrasts(mean, covariance)
    if mu.shape[1] == 2:
        found = _of_pair(quadrature, mu, S)
    else:
        found = np.empty_like(mu)
        for rows, axes, logs in _at_points(mu, S):
            own = logsumexp(logs, axis=2) - np.log(logs.shape[2])
            at, k = np.nonzero(own < _SMALL)
            step = max(1, _BLOCK // (logs.shape[1] * len(_sobol(logs.shape[1] - 1)[0])))
            for start in range(0, len(at), step):
                part = slice(start, start + step)
                own[at[part], k[part]] = _moved_points(mu[rows][at[part]], axes[at[part]], k[part])
            found[rows] = log_softmax(own, axis=1)
    return found if log else np.exp(found)


def softmax_interval(mean: ArrayLike, covariance: ArrayLike, level: float = 0.95) -> tuple[Float, Float]:
    """Equal-tailed intervals that hold each softmax(a)_k with probability `level`, one class at a time.

    Parameters
    ----------
    mean : array-like of shape (n, K)
        Of the activations.
    covariance : array-like of shape (n, K, K)
    level : float, default=0.95
        Between 0 and 1.

    Returns
    -------
    lower, upper : ndarray of shape (n, K)
        Quantiles over the points of `softmax_quadrature`; exact for two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.bayes.predictive_softmax import softmax_interval
    >>> lower, upper = softmax_interval([[2.0, 0.0, 0.0]], np.diag([0.0, 1.0, 4.0])[None], level=0.9)
    >>> lower.round(2), upper.round(2)
    (array([[0.21, 0.01, 0.  ]]), array([[0.93, 0.36, 0.75]]))
    """
    mu, S = _contrasts(mean, covariance)
    check_level(level)
    if mu.shape[1] == 2:
        delta, v = _pair(mu, S)
        first, second = interval(-delta, v, level), interval(delta, v, level)
        return np.column_stack([first[0], second[0]]), np.column_stack([first[1], second[1]])
    ends = np.empty((2, *mu.shape))
    for rows, _, logs in _at_points(mu, S):
        ends[:, rows] = np.quantile(np.exp(logs), [0.5 * (1.0 - level), 0.5 * (1.0 + level)], axis=2)
    return ends[0], ends[1]


def _of_pair(rule: Callable[..., Float], mu: Float, S: Float) -> Float:
    """(n, 2) logarithms of the binary probabilities of two classes."""
    delta, v = _pair(mu, S)
    return np.column_stack([rule(-delta, v, log=True), rule(delta, v, log=True)])


def _pair(mu: Float, S: Float) -> tuple[Float, Float]:
    """Mean and variance of the second activation less the first."""
    return mu[:, 1] - mu[:, 0], np.maximum(S[:, 0, 0] + S[:, 1, 1] - 2.0 * S[:, 0, 1], 0.0)


def _at_points(mu: Float, S: Float) -> Iterator[tuple[slice, Float, Float]]:
    """Blocks of rows, their axes A (rows, K, K − 1), and log softmax(a) at every point, (rows, K, points)."""
    K = mu.shape[1]
    points = _sobol(K - 1)
    for rows in _blocks(len(mu), K * points.shape[1]):
        values, axes = np.linalg.eigh(S[rows])
        bad = values[:, 0] < -_ROUNDING * np.abs(values).max(axis=1)
        if bad.any():
            raise ValueError(_INDEFINITE.format(rows.start + int(bad.argmax())))
        # The longest axis takes the first coordinate, whose points are the most even; the last to go is that of the shift.
        # Signs are set by the means, so that neither LAPACK nor the order of the classes chooses them.
        axes = axes[:, :, :0:-1] * np.sqrt(np.maximum(values[:, None, :0:-1], 0.0))
        axes *= np.where(np.einsum("nk,nkj->nj", mu[rows], axes) < 0.0, -1.0, 1.0)[:, None, :]
        yield rows, axes, _log_softmax(axes @ points + mu[rows][:, :, None])


def _log_softmax(a: Float) -> Float:
    """Over the second axis, in place."""
    a -= a.max(axis=1, keepdims=True)
    a -= np.log(np.exp(a).sum(axis=1, keepdims=True))
    return a


def _moved_points(mu: Float, axes: Float, k: NDArray[np.intp]) -> Float:
    """(n,) log E softmax_k(μ + Az) with the points about the maximum z* of the integrand."""
    own = np.arange(len(mu))

    def height(z: Float, sharp: Float) -> tuple[Float, Float]:
        a = sharp[:, None] * (mu + np.einsum("nkj,nj->nk", axes, z))
        logs = _log_softmax(a[:, :, None])[:, :, 0]
        return logs[own, k] - 0.5 * np.square(z).sum(axis=1), np.exp(logs)

    # Newton's steps on a softmax that is made sharp by and by: with large variances it is nearly a step itself. Where they end
    # does not matter much, any centre gives the same integral.
    z, identity = np.zeros((len(mu), axes.shape[2])), np.eye(axes.shape[2])
    size = np.maximum(np.abs(axes).max(axis=(1, 2), initial=0.0), 1.0)
    for degree in _SHARPER:
        sharp = np.minimum(1.0, degree / size)
        scaled = sharp[:, None, None] * axes
        value, p = height(z, sharp)
        for _ in range(_CLIMBS):
            middle = np.einsum("nkj,nk->nj", scaled, p)
            slope = scaled[own, k] - middle - z
            centred = scaled - middle[:, None, :]
            bend = np.einsum("nki,nk,nkj->nij", centred, p, centred) + identity
            step = np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
            gain, length = np.einsum("nj,nj->n", slope, step), np.ones(len(mu))
            if gain.max(initial=0.0) < _LEVEL:
                break
            for _ in range(_HALVED):
                after, there = height(z + length[:, None] * step, sharp)
                short = after < value + 0.1 * length * gain
                if not short.any():
                    break
                length = np.where(short, 0.5 * length, length)
            z, value, p = z + length[:, None] * step, after, there
    points = _sobol(axes.shape[2])
    logs = _log_softmax(axes @ (points + z[:, :, None]) + mu[:, :, None])[own, k]
    logs -= np.einsum("nj,jp->np", z, points) + 0.5 * np.square(z).sum(axis=1)[:, None]
    return logsumexp(logs, axis=1) - np.log(logs.shape[1])


@lru_cache(maxsize=4)
def _sobol(dimension: int) -> Float:
    """(dimension, points) standard normal points that are evenly spread, each with its mirror image."""
    uniform = Sobol(dimension, scramble=False).random(_POINTS) + 0.5 / _POINTS
    z = ndtri(uniform).T
    return np.hstack([z, -z])


def _contrasts(mean: ArrayLike, covariance: ArrayLike) -> tuple[Float, Float]:
    """μ less the largest of its row, and CSC."""
    mu, S = np.asarray(mean, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    if mu.ndim != 2 or mu.shape[1] < 2 or S.shape != (*mu.shape, mu.shape[1]):
        raise ValueError(
            f"mean has shape {mu.shape} and covariance {S.shape}; they must be (n, K) and (n, K, K), for K ≥ 2 classes."
        )
    if not (np.isfinite(mu).all() and np.isfinite(S).all()):
        raise ValueError("mean and covariance must be finite; they contain NaN or infinity.")
    if (np.abs(S - S.swapaxes(1, 2)) > _ROUNDING * np.abs(S).max(axis=(1, 2), keepdims=True)).any():
        raise ValueError("covariance is not symmetric; give a covariance matrix for every row.")
    S = S - S.mean(axis=1, keepdims=True)
    S = S - S.mean(axis=2, keepdims=True)
    variances = np.einsum("nkk->nk", S)
    bad = (variances < -_ROUNDING * np.abs(variances).max(axis=1, keepdims=True)).any(axis=1)
    if bad.any():
        raise ValueError(_INDEFINITE.format(int(bad.argmax())))
    return mu - mu.max(axis=1, keepdims=True), S


def _blocks(n: int, width: int) -> Iterator[slice]:
    """Blocks of rows that fill some megabytes at `width` numbers per row."""
    size = max(1, _BLOCK // width)
    return (slice(start, start + size) for start in range(0, n, size))
