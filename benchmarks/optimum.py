"""Objectives of penalised logistic models, and lower bounds on their optima.

    f(W, b) = C Σ_i ℓ(y_i, W x_i + b) + (1−ρ) ½‖W‖² + ρ ‖W‖₁      (scikit-learn's; ρ is 0 or 1, b is free or 0)

ℓ is the log loss, of one score for two classes and of K scores for more. A bound holds at any point, whoever found it:

    ρ = 0   f* ≥ f − ½‖∇_W f‖² − Σ_k g_k² / h_k,  as f is 1-strongly convex in W; g and h are the slope and curvature
            along the intercepts (half the last sum is their own Newton decrement)
    ρ = 1   f* ≥ C Σ_i H(s a_i),  a_i = 1 − p(y_i | x_i), s = min(1, 1 / ‖C Xᵀ(a ∘ ±1)‖∞), H the binary entropy:
            the dual objective at a scaled, hence feasible, point (two classes); with a free intercept Σ ±a_i = 0 besides,
            so the larger of the two sums is first scaled down to the other

The point comes from scikit-learn at a tight tolerance; a bound that is not within 1e-7 of its objective is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit, log_softmax

from benchmarks.contender import construct
from benchmarks.data import Data

Array = NDArray[np.float64]
BLOCK = 20_000
TIGHT = 1e-7


def _blocks(data: Data, coef: Array, intercept: Array) -> Any:
    """For each block of rows: the rows, which class each is of (n × K), their log probabilities (n × K)."""
    labels = np.unique(data.y)
    for start in range(0, data.X.shape[0], BLOCK):
        rows = data.X[start : start + BLOCK]
        scores = rows @ coef.T + intercept
        if len(coef) == 1:  # one score: the log odds of the second class
            scores = np.hstack([np.zeros_like(scores), scores])
        yield rows, data.y[start : start + BLOCK, None] == labels, log_softmax(scores, axis=1)


def objective(data: Data, coef: Any, intercept: Any, C: float, l1_ratio: float = 0.0) -> float:
    """f(W, b); infinite when the coefficients have the wrong shape, NaN when they are not finite."""
    coef = np.asarray(coef, dtype=np.float64)
    intercept = np.asarray(intercept, dtype=np.float64)
    classes = len(np.unique(data.y))
    if coef.shape != (1 if classes == 2 else classes, data.X.shape[1]):
        return math.inf
    losses = [-logs[own].sum() for _, own, logs in _blocks(data, coef, intercept)]
    penalty = (1 - l1_ratio) * np.square(coef).sum() / 2 + l1_ratio * np.abs(coef).sum()
    return float(C * math.fsum(losses) + penalty)


def smooth_bound(data: Data, coef: Array, intercept: Array, C: float, fit_intercept: bool) -> float:
    """A lower bound on the optimum for ρ = 0."""
    slope = coef.astype(np.float64)
    along, curvature = np.zeros(len(coef)), np.zeros(len(coef))
    for rows, own, logs in _blocks(data, coef, intercept):
        p = np.exp(logs)[:, -len(coef) :]
        residuals = C * (p - own[:, -len(coef) :])
        slope += (rows.T @ residuals).T
        along += residuals.sum(axis=0)
        curvature += C * (p * (1 - p)).sum(axis=0)
    free = (np.square(along) / curvature).sum() if fit_intercept else 0.0
    return objective(data, coef, intercept, C) - float(np.square(slope).sum() / 2 + free)


def l1_bound(data: Data, coef: Array, C: float, intercept: float | None = None) -> float:
    """A lower bound on the optimum for ρ = 1, two classes; `intercept` is None where there is none."""
    signs = signs_of(data.y)
    a = expit(-signs * (data.X @ coef[0] + (intercept or 0.0)))
    if intercept is not None:
        above, below = a[signs > 0].sum(), a[signs < 0].sum()
        a *= np.where(signs > 0, min(1.0, below / above), min(1.0, above / below))
    reach = C * np.abs(data.X.T @ (a * signs)).max()
    a *= min(1.0, 1.0 / reach)
    return float(C * (entr(a) + entr(1 - a)).sum())


def signs_of(y: Any) -> Array:
    """±1 for two classes."""
    return np.where(y == np.max(y), 1.0, -1.0)


def strongest(X: Any, y: Any, fit_intercept: bool = False) -> float:
    """λ_max = ‖Xᵀ(y − p)‖∞: at C = 1/λ_max and below the L1 model of two classes is 0; p is ½, or the share of a class."""
    share = np.mean(y == np.max(y)) if fit_intercept else 0.5
    return float(np.abs(X.T @ (np.where(y == np.max(y), 1.0, 0.0) - share)).max())


def smooth_optimum(data: Data, C: float, solver: str, fit_intercept: bool = True) -> float:
    """The optimum for ρ = 0, from below; `solver` is scikit-learn's."""
    point = _tight(data, C=C, solver=solver, tol=1e-9, max_iter=1000, fit_intercept=fit_intercept)
    bound = smooth_bound(data, point.coef_, point.intercept_, C, fit_intercept)
    return _proven(objective(data, point.coef_, point.intercept_, C), bound)


def l1_optimum(data: Data, C: float, fit_intercept: bool = False) -> float:
    """The optimum for ρ = 1, two classes, from below; LIBLINEAR solves it more tightly until it is proven.

    Without an intercept it is scikit-learn's, which penalises the intercept: with one it is that of LIBLINEAR's own package.
    """
    value, bound = math.inf, -math.inf
    for tol in (1e-6, 1e-7, 1e-8, 1e-9, 1e-10):
        if value - bound <= TIGHT * value < math.inf:
            break
        if fit_intercept:
            parameters = {"solver": 6, "tol": tol, "C": C, "intercept": "free"}
            point = construct("benchmarks.peers.liblinear:Linear", parameters).fit(data.X, data.y)
        else:
            options = {"l1_ratio": 1.0, "solver": "liblinear", "max_iter": 200, "random_state": 0}
            point = _tight(data, C=C, tol=tol, fit_intercept=False, **options)
        value = min(value, objective(data, point.coef_, point.intercept_, C, 1.0))
        intercept = float(np.ravel(point.intercept_)[0]) if fit_intercept else None
        bound = max(bound, l1_bound(data, point.coef_, C, intercept))
    return _proven(value, bound)


def relative_gap(data: Data, optimum: float, C: float, l1_ratio: float = 0.0) -> Callable[[Any], float]:
    """The function from a fitted model to (f − f*) / f*."""
    return lambda model: objective(data, model.coef_, model.intercept_, C, l1_ratio) / optimum - 1.0


def _tight(data: Data, **parameters: Any) -> Any:
    return construct("sklearn.linear_model:LogisticRegression", parameters).fit(data.X, data.y)


def _proven(value: float, bound: float) -> float:
    """`bound`, if it is close enough to the objective of the point it comes from."""
    if not value - bound <= TIGHT * value:
        raise ArithmeticError(f"the reference is only known to {(value - bound) / value:.1e}")
    return bound
