"""Classifiers: scores, the class with the largest, and posterior probabilities where scores are log posteriors.

p(k | x) = e^{s_k} / Σ_l e^{s_l}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from separatrix.data import Block, Source, as_source
from separatrix.data.block import Float
from separatrix.data.dispatch import is_spark
from separatrix.data.labels import listed
from separatrix.data.source import in_parallel
from separatrix.models.base import Estimator, OptionalArray
from separatrix.models.counted_classes import CountedClasses
from separatrix.models.source_scores import share_of_right

_ROWS_AT_ONCE = 8192


def _by_rows(function: Callable[[Float], NDArray[Any]], values: Float) -> NDArray[Any]:
    """A function of the rows of an array, which it may overwrite, some of them at a time on the workers."""
    first = function(values[:_ROWS_AT_ONCE])
    if len(values) <= _ROWS_AT_ONCE:
        return first
    result = np.empty((len(values), *first.shape[1:]), dtype=first.dtype)
    result[:_ROWS_AT_ONCE] = first

    def fill(start: int) -> None:
        rows = slice(start, start + _ROWS_AT_ONCE)
        result[rows] = function(values[rows])

    in_parallel(fill, range(_ROWS_AT_ONCE, len(values), _ROWS_AT_ONCE))
    return result


def _fitted_in_spark(model: Any) -> bool:
    """Elsewhere a classifier is no transformer: scikit-learn would take it for one by the name of the method alone."""
    if not model._fitted_in_spark:
        raise AttributeError("it was not fitted to a Spark data frame; predict and predict_proba add columns to one.")
    return True


class Classifier(CountedClasses, ClassifierMixin, Estimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A rule that gives every class a score; the largest wins."""

    classes_: NDArray[Any]

    def _scores(self, X: Any) -> Float:
        """(n, K) scores, or (n, 1) for two classes: the score of the second over the first."""
        raise NotImplementedError  # every classifier of the library defines its scores

    def _map_scores(self, X: Any, function: Callable[[Float], Float]) -> Float:
        """A function of the scores of all rows, which it may overwrite."""
        return _by_rows(function, self._scores(X))

    @available_if(_fitted_in_spark)
    def transform(self, X: Any) -> Any:
        """A Spark data frame with columns of predictions and probabilities beside its own.

        There only for a model that was fitted to Spark's rows: any other is no transformer, and its `predict` and
        `predict_proba` add the same columns to a Spark data frame. Spark's workers compute them when they are asked for.

        Parameters
        ----------
        X : pyspark.sql.DataFrame

        Returns
        -------
        pyspark.sql.DataFrame
            With ``prediction`` and, for classifiers that have them, ``probability_`` and the class.
        """
        if not is_spark(X):
            raise TypeError(f"transform takes a Spark data frame; for {type(X).__name__} use predict or predict_proba.")
        return self._beside(X)

    def decision_function(self, X: Any) -> Float:
        """Score of every row for every class.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one number per row, positive for ``classes_[1]``.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            scores = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        return self._as_given(X, scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest score, for every row.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._scores(X)
        classes = self.classes_

        def winners(part: Float) -> NDArray[Any]:
            return np.take(classes, part[:, 0] > 0 if part.shape[1] == 1 else part.argmax(axis=1))

        return _by_rows(winners, scores)

    def score(self, X: Any, y: OptionalArray = None, sample_weight: OptionalArray = None) -> float:
        """The share of rows whose class is predicted; a source brings its own labels and weights.

        Returns
        -------
        float
        """
        self._check_ready()
        self._check_target(X, y)
        if not isinstance(X, Source):
            return float(super().score(X, y, sample_weight))
        return share_of_right(self.predict, as_source(self._columns_of(X), y, sample_weight).labelled())

    def _code(self, label: Any) -> int:
        found = np.flatnonzero(self.classes_ == label)
        if not len(found):
            raise ValueError(f"{label!r} is not a class of this model; the classes are {listed(self.classes_)}.")
        return int(found[0])

    def _pair(self, k: Any, l: Any) -> tuple[int, int]:  # noqa: E741  # k and l are the names in the formulas
        if k is None and l is None and len(self.classes_) == 2:
            return 1, 0
        if k is None or l is None:
            raise ValueError(f"Name the two classes whose boundary you want, out of {listed(self.classes_)}.")
        first, second = self._code(k), self._code(l)
        if first == second:
            raise ValueError(f"A class has no boundary with itself; name two of {listed(self.classes_)}.")
        for code in (first, second):
            if not self._has_weight(code):
                raise ValueError(
                    f"Class {self.classes_.tolist()[code]!r} has no rows of positive weight, so no boundary."
                )
        return first, second


def _codes_and_weights(block: Block) -> tuple[NDArray[np.intp], Float]:
    return block.codes, np.ones(block.n) if block.weights is None else block.weights


def class_pair(model: Classifier, k: Any, l: Any) -> tuple[int, int]:  # noqa: E741  # names of the formulas
    """Codes of the two classes whose boundary is asked for; without names, those of a model of two classes."""
    return model._pair(k, l)


def _posteriors(scores: Float) -> Float:
    """Probabilities of the classes."""
    if scores.shape[1] == 1:
        small = np.exp(-np.abs(scores[:, 0]))
        high = 1.0 / (1.0 + small)
        small *= high
        result, ahead = np.empty((len(scores), 2)), scores[:, 0] > 0
        result[:, 0], result[:, 1] = np.where(ahead, small, high), np.where(ahead, high, small)
        return result
    by_class = scores.T.copy()  # a class is a row: NumPy is slow along short rows
    by_class -= by_class.max(axis=0)
    np.exp(by_class, out=by_class)
    by_class /= by_class.sum(axis=0)
    return by_class.T


class Probabilities(Classifier):
    """Posterior probabilities for classifiers whose scores are log posteriors up to a constant."""

    def predict_proba(self, X: Any) -> Float:
        """Posterior probability of every class, for every row.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._as_given(X, self._map_scores(X, _posteriors))

    def predict_log_proba(self, X: Any) -> Float:
        """Logarithms of the posterior probabilities, accurate also where these are tiny.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return self._as_given(X, -np.logaddexp(0.0, np.column_stack([scores[:, 0], -scores[:, 0]])))
        return self._as_given(X, log_softmax(scores, axis=1))
