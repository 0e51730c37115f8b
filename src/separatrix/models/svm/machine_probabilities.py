"""Probabilities of a support vector classifier, calibrated on rows that were left out; they never contradict `predict`."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from separatrix.data.block import Codes, Float
from separatrix.geometry.score_form import CalibratedLink, Link
from separatrix.models.counted_classes import shares_among_all
from separatrix.models.svm.score_calibration import Calibrator, agreeing, couple


class _Calibrated:
    """A method that is there when a calibration is asked for; without, the error states how to get it.

    scikit-learn's `available_if` would show its own sentence and hide ours behind it.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__, self.__name__ = method.__doc__, method.__name__

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self._method
        if not model._calibrated:
            raise AttributeError(
                f"This {type(model).__name__} has no {self._method.__name__}: scores of a support vector machine are not "
                "probabilities. Set calibration='sigmoid' or 'isotonic' and fit again."
            )
        return MethodType(self._method, model)


class MachineProbabilities:
    """`predict_proba` for a classifier that has `calibration`, one calibrator per machine, and machine scores."""

    calibration: str | None
    probability: Any
    classes_: NDArray[Any]
    _calibrators: list[Calibrator]
    _counted: NDArray[Any]
    _places: Codes | None

    @property
    def _calibrated(self) -> str | None:
        return self.calibration or ("sigmoid" if self.probability is True else None)

    def _machine_scores(self, X: Any) -> Float:
        raise NotImplementedError  # the classifier has them

    def _codes(self, scores: Float) -> Codes:
        raise NotImplementedError  # the classifier has them

    @property
    def _paired(self) -> bool:
        raise NotImplementedError  # the classifier has it

    @_Calibrated
    def predict_proba(self, X: Any) -> Float:
        """Calibrated probability of every class, for every row; the largest is that of the class `predict` gives.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self._machine_scores(X)
        if not self._calibrators and len(self._counted) > 1:
            raise NotFittedError("These machines were fitted without a calibration: fit again.")
        return shares_among_all(self._shares(scores), self._places, len(self.classes_))

    def _link(self) -> Link:
        """How the scores of the machines become probabilities."""
        if self._calibrators or (self._calibrated and len(self._counted) == 1):
            return CalibratedLink(tuple(self._calibrators), self._shares)
        return "none"

    def _shares(self, scores: Float) -> Float:
        """(n, k) probabilities of the classes that have weight."""
        n_classes = len(self._counted)
        if n_classes == 1:
            return np.ones((len(scores), 1))
        each = np.column_stack([c.probability(scores[:, m]) for m, c in enumerate(self._calibrators)])
        if n_classes == 2:
            return np.column_stack([1.0 - each[:, 0], each[:, 0]])
        p = couple(each, n_classes) if self._paired else each / each.sum(axis=1, keepdims=True)
        return agreeing(p, self._codes(scores))

    @_Calibrated
    def predict_log_proba(self, X: Any) -> Float:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):  # a class without weight has probability 0
            return np.log(self.predict_proba(X))
