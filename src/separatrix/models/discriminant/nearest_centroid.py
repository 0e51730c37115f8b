"""The class with the nearest centroid, from class moments; centroids may be shrunken to the mean of all rows.

    d_kj = (c_kj − x̄_j) / (m_k (s_j + s₀)),   m_k² = 1/n_k − 1/n,   s_j² = Σ_k Σ_{i in k} (x_ij − c_kj)² / (n − K)
    s₀ = median of s_j
    shrunken:  d′ = sign(d)(|d| − Δ)₊,   c′_kj = x̄_j + m_k (s_j + s₀) d′_kj
    δ_k(x) = −Σ_j (x_j − c_kj)²/s_j² + 2 log π_k

Centroids are class means (Euclidean distances) or medians (Manhattan distances). Squares about medians are those about means
and n_k(m_kj − c_kj)². References: Tibshirani, Hastie, Narasimhan, Chu (2002), PNAS 99; ESL 2nd ed., eqs. 18.2 to 18.5.
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from separatrix.data import Block, Source
from separatrix.data.block import Float
from separatrix.data.checks import real_numbers
from separatrix.geometry import Quadratic, ScoreForm
from separatrix.models.class_priors import class_priors
from separatrix.models.classifier import Probabilities
from separatrix.models.counted_classes import Undetermined
from separatrix.models.generative import MomentEstimator, labelled_by_all
from separatrix.models.memory_rows import memory_rows
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.result import Status
from separatrix.settings import outside
from separatrix.statistics.moments import Form

# Entries that are sorted together.
_AT_ONCE = 1 << 22
# Sums of squares of numbers up to this are finite.
_FAR = 1e140


def _euclidean(model: Any) -> bool:
    return bool(model.metric == "euclidean")


def _has_form(model: Any) -> bool:
    """Not where `predict` and `decision_function` are two rules: with equal priors, given so or found in the data."""
    if hasattr(model, "class_prior_"):
        return _euclidean(model) and not model._equal_priors()
    return _euclidean(model) and not (isinstance(model.priors, str) and model.priors == "uniform")


class NearestCentroid(Probabilities, MomentEstimator):
    """The class whose centroid is nearest, from one pass over the data; shrunken centroids.

    Drop-in for scikit-learn's, with weights, `partial_fit`, `merge`, sparse rows throughout and files on top.

    Parameters
    ----------
    metric : {"euclidean", "manhattan"}, default="euclidean"
        Distances to class means, or to class medians, which take the rows into memory and cannot be merged.
    shrink_threshold : float, optional
        How far centroids are moved towards the mean of all rows, in standard errors of their differences; columns in which all
        classes arrive there have no part in the rule.
    priors : {"uniform", "empirical"} or array-like of shape (n_classes,), default="uniform"
        Class probabilities: all the same, their shares in the data, or given.

    Attributes
    ----------
    centroids_ : ndarray of shape (n_classes, n_features)
        Shrunken if asked for. The mean of all rows for a class none of whose rows has weight, which is never chosen.
    deviations_ : ndarray of shape (n_classes, n_features)
        Of the centroids from the mean of all rows, in standard errors; shrunken if asked for.
    within_class_std_dev_ : ndarray of shape (n_features,)
        Pooled standard deviations within the classes.
    class_prior_ : ndarray of shape (n_classes,)
    classes_ : ndarray
    fit_ : Fit

    Notes
    -----
    As in scikit-learn, `predict` takes distances in the units of the columns while all priors are the same, and the class with
    the largest `decision_function`, whose distances are in standard deviations within the classes, where they are not.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import NearestCentroid
    >>> X, y = load_iris(return_X_y=True)
    >>> round(NearestCentroid(shrink_threshold=0.5).fit(X, y).score(X, y), 4)
    0.9333
    """

    centroids_: Float
    deviations_: Float
    within_class_std_dev_: Float
    class_prior_: Float

    _parameter_constraints: dict[str, list[Any]] = {
        "metric": [StrOptions({"euclidean", "manhattan"})],
        "shrink_threshold": [Interval(Real, 0, None, closed="neither"), None],
        "priors": ["array-like", StrOptions({"empirical", "uniform"})],
    }

    def __init__(
        self,
        metric: str = "euclidean",
        *,
        shrink_threshold: float | None = None,
        priors: str | ArrayLike = "uniform",
    ) -> None:
        self.metric = metric
        self.shrink_threshold = shrink_threshold
        self.priors = priors

    def _label(self, source: Source) -> Source:
        return labelled_by_all(source)

    def _form(self) -> Form:
        return "diagonal"

    def _second_pass_parameter(self) -> str:
        return "" if _euclidean(self) else "metric='manhattan'"

    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        moments, counts = self._moments, self._moments.counts
        counted, size = counts > 0, float(counts.sum())
        self.class_prior_ = self._priors(counts, source is None)
        offsets, mean = moments.offsets(), moments.mean()
        squares = (moments.variances() * counts[:, None]).sum(axis=0)
        if not (squares + counts @ np.square(offsets)).any():
            raise Undetermined("All features have zero variance, so that no centroid is nearer than another.")
        if not _euclidean(self):
            assert source is not None
            medians = _class_medians(source, len(counts))
            squares = squares + counts @ np.square(np.where(counted[:, None], mean + offsets - medians, 0.0))
            offsets = np.where(counted[:, None], medians - mean, 0.0)
        freedom = size - float(counted.sum())
        spread = self.within_class_std_dev_ = np.sqrt(squares / (freedom if freedom > 0 else size))
        errors = np.sqrt(1.0 / np.where(counted, counts, size) - 1.0 / size)[:, None] * (spread + np.median(spread))
        with np.errstate(divide="ignore", invalid="ignore"):
            self.deviations_ = np.where(offsets == 0, 0.0, offsets / errors)  # infinite where nothing varies in a class
        if self.shrink_threshold is not None:
            left = np.maximum(np.abs(self.deviations_) - self.shrink_threshold, 0.0)
            self.deviations_ = np.sign(self.deviations_) * left
            offsets = np.sign(offsets) * np.maximum(np.abs(offsets) - errors * self.shrink_threshold, 0.0)
        self._centre, self._offsets = mean, offsets
        self.centroids_ = mean + offsets
        flat = int((spread == 0).sum())
        return Status.EXACT, f"{flat} columns do not vary within the classes." if flat else ""

    def _priors(self, counts: Float, waiting: bool) -> Float:
        if isinstance(self.priors, str):
            shares = counts if self.priors == "empirical" else (counts > 0).astype(np.float64)
            return shares / shares.sum()
        given = real_numbers(self.priors, "priors")
        if given.shape == counts.shape and (given >= 0).all() and given.any() and not np.isclose(given.sum(), 1.0):
            warnings.warn(
                "The priors do not sum to 1. Normalizing such that it sums to one.", UserWarning, stacklevel=outside()
            )
            given = given / given.sum()
        return class_priors(given, counts, self.classes_, waiting)

    def _closeness(self, X: Any, scale: Float, constants: Float) -> Float:
        """(n, K) constants less squared distances to the centroids, in units of `scale` of each column."""
        centre, offsets, euclidean = self._centre, self._offsets / scale, _euclidean(self)
        lengths = np.square(offsets).sum(axis=1)

        def of_block(block: Block) -> Float:
            stored = block.stored_rows() if euclidean else None
            with np.errstate(invalid="ignore", over="ignore"):  # bad input is reported by the caller, by column
                if isinstance(stored, tuple):  # Σ(x − c)² = Σ(x² − 2xc + c²): rows stay sparse
                    rows = sp.csr_array(stored, shape=block.shape)
                    centroids = offsets + centre / scale
                    products = rows @ (centroids / scale).T
                    squares = rows.power(2) @ (1.0 / np.square(scale))
                    return constants - (squares[:, None] - 2.0 * products + np.square(centroids).sum(axis=1))
                away = (block.dense() - centre) / scale
                largest = np.abs(away).max(axis=1, initial=0.0, keepdims=True)
                if (largest > _FAR).any():  # squares overflow: the same rows nearer by, in the same direction
                    away *= np.where((largest > _FAR) & np.isfinite(largest), _FAR / largest, 1.0)
                if euclidean:
                    squares = np.einsum("ij,ij->i", away, away)
                    return constants - (squares[:, None] - 2.0 * (away @ offsets.T) + lengths)
                return np.column_stack(
                    [
                        constant - np.square(np.abs(away - offset).sum(axis=1))
                        for offset, constant in zip(offsets, constants, strict=True)
                    ]
                )

        return self._map_rows(X, of_block)

    def _scores(self, X: Any) -> Float:
        self._check_ready()
        with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
            return self._closeness(X, self._scale(), 2.0 * np.log(self.class_prior_))

    def _scale(self) -> Float:
        return np.where(self.within_class_std_dev_ > 0, self.within_class_std_dev_, 1.0)

    def _equal_priors(self) -> bool:
        """Of two classes or more: where there is one, every rule chooses it."""
        possible = self.class_prior_[self.class_prior_ > 0]
        return len(possible) > 1 and bool(np.allclose(possible, 1.0 / (self._moments.counts > 0).sum()))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the nearest centroid, for every row; with priors that differ, of the largest score.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        self._check_ready()
        if not self._equal_priors():
            return np.take(self.classes_, self._scores(X).argmax(axis=1))
        constants = np.where(self.class_prior_ > 0, 0.0, -np.inf)
        closeness = self._closeness(X, np.ones(self.n_features_in_), constants)
        return np.take(self.classes_, closeness.argmax(axis=1))

    @available_if(_has_form)
    def score_form(self) -> ScoreForm:
        """The rule as a formula of the columns; there only where the priors differ, so that there is one rule."""
        self._check_ready()
        with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
            constants = 2.0 * np.log(self.class_prior_)
        return Quadratic(self.centroids_, [np.sqrt(2.0) / self._scale()] * len(constants), constants)

    decision_function = available_if(_euclidean)(Probabilities.decision_function)
    predict_proba = available_if(_euclidean)(Probabilities.predict_proba)
    predict_log_proba = available_if(_euclidean)(Probabilities.predict_log_proba)


def _class_medians(source: Source, n_classes: int) -> Float:
    """(K, d) medians of the columns in every class; a weight counts repetitions. NaN for a class without rows."""
    rows = memory_rows(source, None)
    source.count_pass()
    medians = np.full((n_classes, source.n_features), np.nan)
    X = rows.X.tocsr() if sp.issparse(rows.X) else rows.X
    for k in np.unique(rows.codes):
        own = np.flatnonzero(rows.codes == k)
        part, weights = X[own], rows.weights[own]
        part = part.tocsc() if sp.issparse(part) else part
        step = max(1, _AT_ONCE // len(own))
        for start in range(0, source.n_features, step):
            columns = part[:, start : start + step]
            columns = np.asarray(columns.toarray() if sp.issparse(columns) else columns, dtype=np.float64)
            medians[k, start : start + step] = _medians(columns, weights)
    return medians


def _medians(columns: Float, weights: Float) -> Float:
    """The mean of the least and the largest value with at most half of the weight on either side."""
    order = np.argsort(columns, axis=0, kind="stable")
    values = np.take_along_axis(columns, order, axis=0)
    below = np.cumsum(weights[order], axis=0)
    half = 0.5 * below[-1]
    low, high = (below < half).sum(axis=0), (below <= half).sum(axis=0)
    at = np.arange(columns.shape[1])
    return 0.5 * (values[low, at] + values[np.minimum(high, len(values) - 1), at])
