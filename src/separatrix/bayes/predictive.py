"""The predictive probability of a binary logistic regression: p = E σ(a) for an activation a ~ N(μ, s²).

    probit       σ(κμ),  κ = (1 + πs²/8)^(−½)                  from Φ(√(π/8) a) ≈ σ(a); off by at most 0.019
    quadrature   ∫ σ(a) N(a | μ, s²) da                       to rounding, see `separatrix.kernels.posterior.logistic_normal`
    interval     σ(μ ± zs)                                    exact, since σ is monotone: quantiles of p are σ of those of a

Logarithms of the first two reach far below where the probabilities underflow.

References: Spiegelhalter and Lauritzen (1990), Networks 20, 579–605; MacKay (1992), Neural Computation 4, 720–736; Bishop
(2006), Pattern Recognition and Machine Learning, eq. 4.153.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh_tridiagonal
from scipy.special import expit, log_expit, ndtri

from separatrix.data.block import Float
from separatrix.inference.estimates import check_level

# The trapezoidal rule in standard deviations, and the size of the Gauss rule: rounding is all that is left of their errors.
_STEP, _REACH = 1.0 / 6.0, 9.5
_NODES = 24
PROBIT = math.pi / 8.0
"""κ⁻² = 1 + PROBIT · s²."""


def _activations(mean: ArrayLike, variance: ArrayLike) -> tuple[Float, Float]:
    # Copies: compiled code is made anew for arrays that are strided or cannot be written to.
    mu, v = np.array(mean, dtype=np.float64, order="C"), np.array(variance, dtype=np.float64, order="C")
    if mu.ndim != 1 or v.shape != mu.shape:
        raise ValueError(f"mean has shape {mu.shape} and variance {v.shape}; they must both be (n,).")
    if not (np.isfinite(mu).all() and np.isfinite(v).all()):
        raise ValueError("mean and variance must be finite; they contain NaN or infinity.")
    if (v < 0).any():
        raise ValueError(
            f"variance must not be negative, but row {int(np.flatnonzero(v < 0)[0])} has {v[v < 0][0]:.3g}."
        )
    return mu, v


def probit(mean: ArrayLike, variance: ArrayLike, *, log: bool = False) -> Float:
    """E σ(a) by the probit approximation, σ(κμ): quick, on the same side of ½ as σ(μ), and off by at most 0.019.

    Parameters
    ----------
    mean, variance : array-like of shape (n,)
        Of the activations.
    log : bool, default=False
        Its logarithm, with all digits however small the probability.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from separatrix.bayes.predictive import probit
    >>> probit([0.0, 2.0, 2.0], [4.0, 0.0, 4.0]).round(4)
    array([0.5   , 0.8808, 0.7768])
    >>> probit([-2.0, -5000.0], [4.0, 4.0], log=True).round(2)
    array([-1.50000e+00, -3.11843e+03])
    """
    mu, v = _activations(mean, variance)
    scaled = mu / np.sqrt(1.0 + PROBIT * v)
    return log_expit(scaled) if log else expit(scaled)


def quadrature(mean: ArrayLike, variance: ArrayLike, *, log: bool = False) -> Float:
    """E σ(a) to rounding: its error is below 1e-15, for every mean and every variance.

    Probabilities below ½ are as good relatively, to 1e-13 down to 1e-300; those above are 1 less their mirror image.

    Parameters
    ----------
    mean, variance, log
        As for `probit`.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from separatrix.bayes.predictive import quadrature
    >>> quadrature([0.0, 2.0, 2.0, -100.0], [4.0, 0.0, 4.0, 4.0])
    array([5.00000000e-01, 8.80797078e-01, 7.75200245e-01, 2.74878501e-43])
    >>> quadrature([-2.0, -5000.0], [4.0, 4.0], log=True).round(2)
    array([-1.490e+00, -4.998e+03])
    """
    from separatrix.kernels.posterior.logistic_normal import (
        log_smaller_tail,
        smaller_tail,
    )  # compiled, loaded where it is needed

    mu, v = _activations(mean, variance)
    tail = np.empty(len(mu))
    (log_smaller_tail if log else smaller_tail)(mu, v, *rules(), tail)
    if log:
        return np.where(mu == 0, -math.log(2.0), np.where(mu > 0, np.log1p(-np.exp(tail)), tail))
    return np.where(mu == 0, 0.5, np.where(mu > 0, 1.0 - tail, tail))


def rules() -> tuple[float, Float, Float, Float]:
    """What the compiled integrals need: step and heights of the trapezoidal rule, nodes and weights of the Gauss rule."""
    return _STEP, _heights(), *gauss_rule()


def interval(mean: ArrayLike, variance: ArrayLike, level: float = 0.95) -> tuple[Float, Float]:
    """The equal-tailed interval that holds p = σ(a) with probability `level`; exact.

    Parameters
    ----------
    mean, variance : array-like of shape (n,)
        Of the activations.
    level : float, default=0.95
        Between 0 and 1.

    Returns
    -------
    lower, upper : ndarray of shape (n,)

    Examples
    --------
    >>> from separatrix.bayes.predictive import interval
    >>> lower, upper = interval([0.0, 2.0], [1.0, 0.0], level=0.9)
    >>> lower.round(3), upper.round(3)
    (array([0.162, 0.881]), array([0.838, 0.881]))
    """
    mu, v = _activations(mean, variance)
    check_level(level)
    reach = -ndtri(0.5 * (1.0 - level)) * np.sqrt(v)
    return expit(mu - reach), expit(mu + reach)


@cache
def _heights() -> Float:
    """h φ(jh) for j = 0, 1, …"""
    x = _STEP * np.arange(round(_REACH / _STEP) + 1)
    return _STEP / math.sqrt(2.0 * math.pi) * np.exp(-0.5 * x * x)


@cache
def gauss_rule(n_nodes: int = _NODES) -> tuple[Float, Float]:
    """Nodes and weights of the Gauss rule for ∫₀^∞ f(a) / (1 + e^a) da, f growing no faster than e^{a/2}.

    The polynomials orthogonal under the weight come by Stieltjes' procedure from a fine discretisation of it, the rule from the
    eigenvectors of their Jacobi matrix (Golub and Welsch, 1969). Nodes whose share is below rounding for such f are left out.
    """
    x, w = np.polynomial.legendre.leggauss(32)
    edges = np.arange(0.0, 120.0, 2.0)  # 1/(1 + e^a) has its poles at ±iπ: panels of length 2 are resolved to rounding
    a = (edges[:, None] + 1.0 + x).ravel()
    mass = np.tile(w, len(edges)) * expit(-a)
    centre, spread = np.zeros(n_nodes), np.zeros(n_nodes + 1)
    before, polynomial = np.zeros_like(a), np.full_like(a, 1.0 / math.sqrt(mass.sum()))
    for k in range(n_nodes):
        centre[k] = (mass * a * polynomial**2).sum()
        after = (a - centre[k]) * polynomial - spread[k] * before
        spread[k + 1] = math.sqrt((mass * after**2).sum())
        before, polynomial = polynomial, after / spread[k + 1]
    nodes, vectors = eigh_tridiagonal(centre, spread[1:-1])
    weights = mass.sum() * vectors[0] ** 2
    kept = weights * np.exp(0.5 * nodes) > 1e-18
    return nodes[kept], weights[kept]
