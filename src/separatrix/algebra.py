"""Small algebra that texts on classification use on every page.

    log Σ_k e^{a_k}                ∇ = softmax a = p,        ∇² = diag p − ppᵀ                     (`logsumexp`, `softmax`)
    ∂p_i/∂a_j = p_i(δ_ij − p_j)                                                                   (`softmax_jacobian`)
    ∂²p_i/∂a_j∂a_k = p_i[(δ_ij − p_j)(δ_ik − p_k) − p_j(δ_jk − p_k)]                               (`softmax_hessian`)
    log p/(1−p), log p_k/p_l                                                                      (`log_odds`)
    m Σ_j (c_j − 1) against m(Π_j c_j − 1) parameters of m classes                                 (`n_parameters`)
    ∫f ≈ f(θ̂)(2π)^{d/2}|S|^{½},   θ̂ = argmax f,   S⁻¹ = −∇² log f(θ̂)       (`laplace_approximation`, `LaplaceApproximation`)

Reference: Bishop (2006), Pattern Recognition and Machine Learning, sections 4.2 to 4.4 (eq. 4.125 to 4.135).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special
from sklearn.utils import check_random_state

__all__ = ["LaplaceApproximation", "laplace_approximation", "log_odds", "logsumexp", "n_parameters"]
__all__ += ["softmax", "softmax_hessian", "softmax_jacobian"]

_Array = NDArray[np.float64]
_NEWTON_STEPS = 30
# Steps of differences in standard deviations of the approximation: a quadratic has no error but rounding.
_STEP = 2e-3


def logsumexp(a: ArrayLike, axis: int = -1) -> Any:
    """log Σ e^a along an axis, without overflow; its gradient is the softmax.

    Examples
    --------
    >>> from separatrix.algebra import logsumexp
    >>> float(logsumexp([1000.0, 1000.0]).round(4))
    1000.6931
    """
    return special.logsumexp(np.asarray(a, dtype=np.float64), axis=axis)


def softmax(a: ArrayLike, axis: int = -1) -> _Array:
    """e^{a_k} / Σ_l e^{a_l} along an axis, without overflow.

    Examples
    --------
    >>> from separatrix.algebra import softmax
    >>> softmax([0.0, 0.0, 1000.0]).tolist()
    [0.0, 0.0, 1.0]
    """
    with np.errstate(over="ignore"):  # a difference beyond the range of double precision is e^{−∞}
        return np.asarray(special.softmax(np.asarray(a, dtype=np.float64), axis=axis))


def softmax_jacobian(a: ArrayLike) -> _Array:
    """∂p_i/∂a_j = p_i(δ_ij − p_j): also the Hessian of log-sum-exp, and of the loss of every class.

    Parameters
    ----------
    a : array-like of shape (..., K)
        Scores.

    Returns
    -------
    ndarray of shape (..., K, K)

    Examples
    --------
    >>> from separatrix.algebra import softmax_jacobian
    >>> softmax_jacobian([0.0, 0.0]).tolist()
    [[0.25, -0.25], [-0.25, 0.25]]
    """
    p = softmax(a)
    return np.asarray(p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :]))


def softmax_hessian(a: ArrayLike) -> _Array:
    """∂²p_i/∂a_j∂a_k.

    Parameters
    ----------
    a : array-like of shape (..., K)
        Scores.

    Returns
    -------
    ndarray of shape (..., K, K, K)
        Entry (i, j, k).

    Examples
    --------
    >>> from separatrix.algebra import softmax_hessian
    >>> softmax_hessian([0.0, 0.0]).shape, float(softmax_hessian([0.0, 0.0]).sum())
    ((2, 2, 2), 0.0)
    """
    p = softmax(a)
    away = np.eye(p.shape[-1]) - p[..., None, :]  # δ_ij − p_j
    outer = away[..., :, :, None] * away[..., :, None, :] - softmax_jacobian(a)[..., None, :, :]
    return np.asarray(p[..., :, None, None] * outer)


def log_odds(p: ArrayLike, baseline: int | None = None) -> _Array:
    """log p/(1−p), or with a `baseline` class log p_k/p_baseline along the last axis.

    Examples
    --------
    >>> from separatrix.algebra import log_odds, softmax
    >>> float(log_odds(0.8).round(4)), log_odds(softmax([3.0, 1.0, 0.5]), baseline=2).round(4).tolist()
    (1.3863, [2.5, 0.5, 0.0])
    """
    given = np.asarray(p, dtype=np.float64)
    if not ((given >= 0.0) & (given <= 1.0)).all():
        raise ValueError("p has values outside [0, 1]; log-odds are those of probabilities.")
    if baseline is None:
        return np.asarray(special.logit(given))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(given) - np.log(given[..., [baseline]]))


def n_parameters(n_classes: int, n_features: int, *, naive: bool = True, levels: int | Sequence[int] = 2) -> int:
    """How many numbers describe p(x | k) of categorical columns, the priors not counted.

    With independence m Σ_j (c_j − 1), which is m·d for binary columns; for the full table m(Π_j c_j − 1), which is m(2^d − 1).

    Parameters
    ----------
    n_classes, n_features : int
    naive : bool, default=True
        Whether the columns are independent within a class.
    levels : int or sequence of int, default=2
        Categories of every column, or of each.

    Examples
    --------
    >>> from separatrix.algebra import n_parameters
    >>> n_parameters(2, 30), n_parameters(2, 30, naive=False)
    (60, 2147483646)
    """
    each = [int(levels)] * n_features if isinstance(levels, int | np.integer) else [int(c) for c in levels]
    if n_classes < 1 or n_features < 1 or len(each) != n_features or min(each) < 1:
        raise ValueError(
            "Give at least one class and one column, and the number of categories, 1 or more, of each column."
        )
    return int(n_classes) * (sum(c - 1 for c in each) if naive else math.prod(each) - 1)


@dataclass(frozen=True, eq=False)
class LaplaceApproximation:
    """The Gaussian with the mode and the curvature of a density.

    Parameters
    ----------
    mode : ndarray of shape (d,)
    covariance : ndarray of shape (d, d)
    log_evidence : float
        log ∫f, as the Gaussian has it.
    """

    mode: _Array
    covariance: _Array
    log_evidence: float

    def log_density(self, x: ArrayLike) -> _Array:
        """log N(x; mode, covariance) of points (n, d)."""
        root = np.linalg.cholesky(self.covariance)
        away = np.linalg.solve(root, (np.atleast_2d(np.asarray(x, dtype=np.float64)) - self.mode).T)
        constant = len(self.mode) * math.log(2.0 * math.pi) + 2.0 * float(np.log(np.diagonal(root)).sum())
        return np.asarray(-0.5 * (np.square(away).sum(axis=0) + constant))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> _Array:
        """(n, d) points drawn from the Gaussian."""
        drawn = check_random_state(random_state).standard_normal((n_samples, len(self.mode)))
        return np.asarray(self.mode + drawn @ np.linalg.cholesky(self.covariance).T)


def laplace_approximation(
    log_density: Callable[[_Array], float],
    start: ArrayLike,
    *,
    gradient: Callable[[_Array], ArrayLike] | None = None,
    hessian: Callable[[_Array], ArrayLike] | None = None,
) -> LaplaceApproximation:
    """Approximate a density by a Gaussian at its mode, and its integral by the Gaussian's. Exact for a Gaussian.

    Parameters
    ----------
    log_density : callable
        log f of a point (d,); f need not integrate to 1.
    start : array-like of shape (d,)
        Where to begin the search for the mode. A density with several modes is approximated at one of them.
    gradient, hessian : callable, optional
        Derivatives of log f; by differences where they are not given.

    Returns
    -------
    LaplaceApproximation

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.algebra import laplace_approximation
    >>> found = laplace_approximation(lambda x: -0.5 * (x[0] - 1.0) ** 2 / 4.0, [0.0])
    >>> found.mode.round(6).tolist(), found.covariance.round(6).tolist(), round(found.log_evidence, 6)
    ([1.0], [[4.0]], 1.612086)
    """
    x = np.atleast_1d(np.asarray(start, dtype=np.float64)).copy()
    if not np.isfinite(log_density(x)):
        raise ValueError(f"log f is {log_density(x)} at the start; give a point where the density is positive.")

    def value(at: _Array) -> float:
        found = float(log_density(at))
        return -found if np.isfinite(found) else np.inf  # outside the support

    slope = None if gradient is None else lambda at: -np.asarray(gradient(at), dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        x = np.asarray(optimize.minimize(value, x, jac=slope, method="BFGS").x)
        steps = 1e-4 * np.maximum(1.0, np.abs(x))
        best, bends = value(x), np.eye(len(x))
        for _ in range(_NEWTON_STEPS):
            bends = _bends(value, x, steps, slope) if hessian is None else -np.asarray(hessian(x), dtype=np.float64)
            if not np.isfinite(bends).all() or np.linalg.eigvalsh(bends)[0] <= 0.0:
                break
            move = np.linalg.solve(bends, _slopes(value, x, steps) if slope is None else slope(x))
            steps = _STEP * np.sqrt(np.diagonal(np.linalg.inv(bends)))
            if not value(x - move) <= best + 1e-12 * (1.0 + abs(best)):
                break
            x, best = x - move, value(x - move)
            if (np.abs(move) <= 1e-9 * steps / _STEP).all():
                break
        bends = _bends(value, x, steps, slope) if hessian is None else -np.asarray(hessian(x), dtype=np.float64)
    bends = 0.5 * (bends + bends.T)
    if not np.isfinite(bends).all() or np.linalg.eigvalsh(bends)[0] <= 0.0:
        raise ValueError(
            f"log f has no maximum with curvature in every direction near {x.tolist()}: start elsewhere, or give a density "
            "that can be integrated."
        )
    determinant = float(np.linalg.slogdet(bends)[1])
    evidence = -value(x) + 0.5 * len(x) * math.log(2.0 * math.pi) - 0.5 * determinant
    return LaplaceApproximation(x, np.asarray(np.linalg.inv(bends), dtype=np.float64), evidence)


def _slopes(value: Callable[[_Array], float], x: _Array, steps: _Array) -> _Array:
    """Central differences."""
    moves = np.diag(steps)
    return np.array([(value(x + e) - value(x - e)) / (2.0 * h) for e, h in zip(moves, steps, strict=True)])


def _bends(value: Callable[[_Array], float], x: _Array, steps: _Array, slope: Any) -> _Array:
    """Second derivatives by central differences, of the slopes where these are known."""
    moves = np.diag(steps)
    if slope is not None:
        rows = [(slope(x + e) - slope(x - e)) / (2.0 * h) for e, h in zip(moves, steps, strict=True)]
        return 0.5 * (np.array(rows) + np.array(rows).T)
    d, middle = len(x), value(x)
    bends = np.empty((d, d))
    for i in range(d):
        bends[i, i] = (value(x + moves[i]) - 2.0 * middle + value(x - moves[i])) / steps[i] ** 2
        for j in range(i):
            both, apart = moves[i] + moves[j], moves[i] - moves[j]
            fourth = value(x + both) + value(x - both) - value(x + apart) - value(x - apart)
            bends[i, j] = bends[j, i] = fourth / (4.0 * steps[i] * steps[j])
    return bends
