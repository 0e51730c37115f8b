"""Class frequencies that differ between training and use.

    p'(k|x) ∝ p(k|x) π'_k / π_k                              π in training, π' in use; p(x|k) is the same in both

Without labels from the place of use, π' maximises the likelihood of its rows, Σᵢ log Σ_k π'_k rᵢₖ with r = p/π. That is
concave, and EM (average the posteriors, re-weight, repeat) climbs to its maximum:

    π'_k ← mean_i p'(k|xᵢ) = π'_k g_k,      g_k = mean_i rᵢₖ / Σ_l π'_l rᵢₗ,      max − now ≤ n (max_k g_k − 1)

The last inequality, from concavity, bounds how far the maximum can be: the rule for stopping. References: Saerens, Latinne,
Decaestecker, Neural Computation 14, 2002; Lindsay, Annals of Statistics 11, 1983.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.checks import real_numbers
from separatrix.data.labels import as_weights
from separatrix.decide.loss_labels import by_class
from separatrix.decide.losses import check_proba, class_codes
from separatrix.settings import outside


def check_priors(priors: ArrayLike, n_classes: int, name: str = "priors", classes: NDArray[Any] | None = None) -> Float:
    """Priors as an array that sums to 1; those of a Series or dictionary are matched to the classes by their labels."""
    given = real_numbers(by_class(priors, classes, name), name)
    if given.shape != (n_classes,):
        raise ValueError(
            f"{name} has shape {given.shape}, but there are {n_classes} classes: give one prior per class."
        )
    if not np.isfinite(given).all() or (given < 0).any() or abs(given.sum() - 1.0) > 1e-6:
        raise ValueError(f"{name} must be non-negative and sum to 1, got {given.tolist()}.")
    return given / given.sum()


def _ratios(proba: Float, training_priors: Float, priors: Float | None = None) -> Float:
    """p(k|x)/π_k, proportional to p(x|k); 0 for a class that neither training nor use has."""
    unknown = training_priors == 0
    if priors is not None and (unknown & (priors > 0)).any():
        k = int(np.flatnonzero(unknown & (priors > 0))[0])
        raise ValueError(
            f"Class number {k} had prior 0 in training, so its rows cannot be recognised: give it prior 0 here."
        )
    return np.where(unknown, 0.0, proba / np.where(unknown, 1.0, training_priors))


def shift_priors(y_prob: ArrayLike, priors: ArrayLike, *, training_priors: ArrayLike) -> Float:
    """Posteriors for other class frequencies than those of the training data.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes)
        Posteriors under the training frequencies.
    priors : array-like of shape (n_classes,)
        Class frequencies where the posteriors are used.
    training_priors : array-like of shape (n_classes,)
        Class frequencies behind `y_prob`.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        A row that the new priors make impossible (all its mass on classes of prior 0) gets the priors themselves.

    Examples
    --------
    >>> from separatrix import shift_priors
    >>> shift_priors([[0.5, 0.5]], [0.9, 0.1], training_priors=[0.5, 0.5])
    array([[0.9, 0.1]])
    """
    given = check_proba(y_prob)
    n_classes = given.shape[1]
    target = check_priors(priors, n_classes)
    joint = _ratios(given, check_priors(training_priors, n_classes, "training_priors"), target) * target
    total = joint.sum(axis=1, keepdims=True)
    return np.where(total > 0, joint / np.where(total > 0, total, 1.0), target)


@dataclass(frozen=True)
class PriorEstimate:
    """Class frequencies found in rows without labels.

    Parameters
    ----------
    priors : ndarray of shape (n_classes,)
    standard_error : ndarray of shape (n_classes,)
        From the curvature of the likelihood; NaN where the rows do not tell the classes apart. Valid away from 0 and 1, and
        given that the posteriors are right.
    iterations : int
    gap : float
        The log likelihood of a row can be at most this much higher, on average.
    """

    priors: Float
    standard_error: Float = field(repr=False)
    iterations: int
    gap: float


def estimate_priors(
    y_prob: ArrayLike,
    *,
    training_priors: ArrayLike,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-9,
    max_iter: int = 10_000,
) -> PriorEstimate:
    """Class frequencies of unlabelled rows from their posteriors, by EM.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes)
        Posteriors of the unlabelled rows under the training frequencies. They should be calibrated.
    training_priors : array-like of shape (n_classes,)
        Class frequencies behind `y_prob`.
    sample_weight : array-like of shape (n_samples,), optional
    tol : float, default=1e-9
        Stop when the mean log likelihood of a row is proven to be this near its maximum.
    max_iter : int, default=10000

    Returns
    -------
    PriorEstimate

    Examples
    --------
    >>> from separatrix import estimate_priors
    >>> found = estimate_priors([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], training_priors=[0.5, 0.5])
    >>> found.priors
    array([0.75, 0.25])
    """
    given = check_proba(y_prob)
    weights = as_weights(sample_weight, len(given))
    if weights is not None:
        given, weights = given[weights > 0], weights[weights > 0]
    total = float(len(given)) if weights is None else float(weights.sum())
    shares = np.full(len(given), 1.0 / total) if weights is None else weights / total
    start = check_priors(training_priors, given.shape[1], "training_priors")
    ratios = _ratios(given, start)
    ratios /= ratios.max(
        axis=1, keepdims=True
    )  # a factor of a row moves no maximum, and keeps tiny densities from underflow
    priors, gap, iteration = start, np.inf, 0
    for iteration in range(1, max_iter + 1):  # noqa: B007  # the number of the last one is reported
        density = ratios @ priors
        growth = (shares / density) @ ratios
        gap = float(growth.max() - 1.0)
        if gap <= tol:
            break
        priors = priors * growth
        priors = priors / priors.sum()
    else:
        warnings.warn(
            f"EM stopped after {max_iter} iterations with a log likelihood up to {gap:.2g} per row below its maximum: raise "
            "max_iter, or raise tol to accept this.",
            ConvergenceWarning,
            stacklevel=outside(),
        )
    return PriorEstimate(priors, _standard_errors(ratios / (ratios @ priors)[:, None], shares * total), iteration, gap)


def _standard_errors(slopes: Float, weights: Float) -> Float:
    """Roots of the diagonal of the inverse information, inside the plane on which priors sum to 1."""
    n_classes = slopes.shape[1]
    plane = np.linalg.svd(np.ones((1, n_classes)))[2][1:].T
    information = (slopes.T * weights) @ slopes
    values, vectors = np.linalg.eigh(plane.T @ information @ plane)
    if values[0] <= np.finfo(np.float64).eps * n_classes * information.trace():
        return np.full(n_classes, np.nan)
    return np.sqrt(np.square(plane @ vectors) @ (1.0 / values))


def priors_in_use(priors: ArrayLike | None, training_priors: Float, classes: NDArray[Any]) -> Float:
    """Priors as given, or those of the training; 0 for a class that had no weight there, which cannot be recognised."""
    if priors is None:
        return training_priors
    given = check_priors(priors, len(training_priors), classes=classes)
    left = np.where(training_priors > 0, given, 0.0)
    if not left.any():
        raise ValueError("priors are 0 for every class that has rows; give at least one a positive prior.")
    return given if (left == given).all() else left / left.sum()


def priors_behind(estimator: Any, classes: NDArray[Any], count: Callable[[], Float]) -> Float:
    """The class frequencies that a fitted estimator's posteriors refer to.

    A generative model has them as an attribute. Others learn the shares of the classes in their data, multiplied by
    class_weight; only for these are the rows of the classes counted.
    """
    model = estimator
    while model is not None:
        stated = getattr(model, "priors_", getattr(model, "class_prior_", None))
        if stated is None and hasattr(model, "class_log_prior_"):
            stated = np.exp(model.class_log_prior_)
        if stated is not None and np.shape(stated) == classes.shape:
            return np.asarray(stated, dtype=np.float64) / np.sum(stated)
        if getattr(model, "class_weight", None) is not None:
            break
        model = _inside(model)
    counts = count()
    class_weight = getattr(model, "class_weight", None)
    if isinstance(class_weight, str):  # "balanced"
        counts = (counts > 0).astype(np.float64)
    elif class_weight is not None:
        counts = counts * np.array([class_weight.get(label, 1.0) for label in classes.tolist()])
    return counts / counts.sum()


def _inside(model: Any) -> Any:
    """The model that a fitted Pipeline, search or wrapper hands its rows to."""
    steps = getattr(model, "steps", None)
    if steps:
        return steps[-1][1]
    return getattr(model, "best_estimator_", getattr(model, "estimator_", None))


def class_counts(X: Any, y: Any, sample_weight: ArrayLike | None, classes: NDArray[Any]) -> Float:
    """(K,) total weight of every class."""
    if isinstance(X, Source):
        source, K = X.labelled(classes), len(classes)
        return source.reduce(lambda block: np.bincount(block.codes, block.weights, K).astype(np.float64), np.add)
    weights = as_weights(sample_weight, len(y))
    _, codes = class_codes(y, classes, weights)
    return np.bincount(codes, weights, len(classes)).astype(np.float64)
