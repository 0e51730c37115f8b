"""Classifiers: scores, the class with the largest, and posterior probabilities where scores are log posteriors.

p(k | x) = e^{s_k} / Σ_l e^{s_l}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax
from sklearn.base import ClassifierMixin

from separatrix.data.block import Float
from separatrix.data.labels import listed
from separatrix.models.base import Estimator
from separatrix.models.counted_classes import CountedClasses


class Classifier(CountedClasses, ClassifierMixin, Estimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A rule that gives every class a score; the largest wins."""

    classes_: NDArray[Any]

    def _scores(self, X: Any) -> Float:
        """(n, K) scores, or (n, 1) for two classes: the score of the second over the first."""
        raise NotImplementedError  # every classifier of the library defines its scores

    def _map_scores(self, X: Any, function: Callable[[Float], Float]) -> Float:
        """A function of the scores of all rows, which it may overwrite."""
        return function(self._scores(X))

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
        codes = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

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


def class_pair(model: Classifier, k: Any, l: Any) -> tuple[int, int]:  # noqa: E741  # names of the formulas
    """Codes of the two classes whose boundary is asked for; without names, those of a model of two classes."""
    return model._pair(k, l)


def _posteriors(scores: Float) -> Float:
    """Probabilities of the classes, in the place of their scores where there are several."""
    if scores.shape[1] == 1:
        return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


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
            return -np.logaddexp(0.0, np.column_stack([scores[:, 0], -scores[:, 0]]))
        return self._as_given(X, log_softmax(scores, axis=1))
