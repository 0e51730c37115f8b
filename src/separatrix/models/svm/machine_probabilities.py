"""Probabilities of a support vector classifier, calibrated on rows that were left out; they never contradict `predict`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from types import MethodType
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import NotFittedError

from separatrix.data.block import Codes, Float
from separatrix.geometry.combined_forms import pair_votes
from separatrix.geometry.score_form import CalibratedLink, Link
from separatrix.models.classifier import Classifier
from separatrix.models.counted_classes import shares_among_all
from separatrix.models.docstrings import described
from separatrix.models.svm.machines import votes
from separatrix.models.svm.score_calibration import Calibrator, agreeing, couple


class _Calibrated:
    """A method that is there when a calibration is asked for; without, the error states how to get it.

    scikit-learn's `available_if` would show its own sentence and hide ours behind it.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = described(method)
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


class MachineProbabilities(Classifier):
    """A classifier made of machines: from their scores to its classes, and to probabilities by one calibrator per machine."""

    multi_class: Literal["ovo", "ovr"]
    break_ties: bool
    calibration: str | None
    probability: Any
    _calibrators: list[Calibrator]

    @property
    def _calibrated(self) -> str | None:
        return self.calibration or ("sigmoid" if self.probability is True else None)

    @abstractmethod
    def _machine_scores(self, X: Any) -> Float:
        """(n, machines) scores, positive for the first class of a pair."""

    @property
    def _paired(self) -> bool:
        return len(self._counted) > 2 and self.multi_class == "ovo"

    def _codes(self, scores: Float) -> Codes:
        if len(self._counted) == 2:
            return (scores[:, 0] > 0).astype(np.intp)
        if self._paired:
            scores = (pair_votes if self.break_ties else votes)(scores, len(self._counted))
        return scores.argmax(axis=1)

    @_Calibrated
    def predict_proba(self, X: Any) -> Float:
        """Calibrated probability of every class, for every row; the largest is that of the class `predict` gives.

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

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):  # a class without weight has probability 0
            return np.log(self.predict_proba(X))
