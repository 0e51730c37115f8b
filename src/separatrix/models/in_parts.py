"""Models that keep a statistic of their rows: two of them merge into the model of both data sets."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from separatrix.data.labels import listed
from separatrix.models.base import Estimator
from separatrix.models.stopwatch import Stopwatch
from separatrix.settings import one_blas_thread


def in_parts(model: Any) -> bool:
    """Whether a model can be fitted in parts: the condition of `partial_fit` and `merge`."""
    parameter = model._second_pass_parameter()
    if parameter:
        raise AttributeError(
            f"{parameter} reads the rows a second time, so {type(model).__name__} has fit but neither partial_fit nor merge."
        )
    return True


class InParts(Estimator):
    """A model that is read from a statistic, of all rows at once or of parts that were merged."""

    _dtype: np.dtype[Any]

    def _second_pass_parameter(self) -> str:
        """The parameter, if any, that reads the rows twice, so that they cannot come in parts."""
        return ""

    @abstractmethod
    def _check_statistic(self) -> None:
        """Refuse a model without a statistic."""

    @abstractmethod
    def _merge_statistics(self, one: Self, other: Self, watch: Stopwatch) -> None:
        """Fit this model to the statistics of two others."""

    @available_if(in_parts)
    @one_blas_thread()
    def merge(self, other: Self) -> Self:
        """The model of both data sets.

        Parameters
        ----------
        other : fitted estimator of the same kind and parameters

        Returns
        -------
        A new fitted estimator; neither of the two is changed.
        """
        for model in (self, other):
            model._check_statistic()
        self._check_mergeable(other)
        watch = Stopwatch()
        merged: Self = clone(self)
        merged._adopt_features(self)
        merged._merge_statistics(self, other, watch)
        return merged

    def _check_mergeable(self, other: Any) -> None:
        if type(other) is not type(self):
            raise TypeError(
                f"Cannot merge {type(self).__name__} with {type(other).__name__}: give the same kind of model."
            )
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        for name, value in mine.items():
            if repr(value) != repr(theirs[name]):
                raise ValueError(
                    f"Cannot merge models with different parameters: {name} is {value!r} here and {theirs[name]!r} there."
                )
        if self.n_features_in_ != other.n_features_in_:
            raise ValueError(
                f"Cannot merge a model of {self.n_features_in_} features with one of {other.n_features_in_} features."
            )
        if not self._same_encoding(other):
            raise ValueError(
                "Cannot merge models of tables that were encoded differently: fit one model to both, or the second with "
                "partial_fit of the first."
            )
        names = [list(getattr(model, "feature_names_in_", [])) for model in (self, other)]
        if all(names) and names[0] != names[1]:
            raise ValueError(
                f"Cannot merge models of different features: {listed(names[0])} here and {listed(names[1])} there."
            )

    def _same_encoding(self, other: Any) -> bool:
        """Whether the features of both models mean the same, where they come from tables."""
        mine, theirs = self._encoding, other._encoding
        if mine is None or theirs is None:
            return mine is theirs
        return bool(mine.encoder.features_ == theirs.encoder.features_)

    def _adopt_features(self, other: Any) -> None:
        self.n_features_in_, self._dtype, self._encoding = other.n_features_in_, other._dtype, other._encoding
        if hasattr(other, "feature_names_in_"):
            self.feature_names_in_ = other.feature_names_in_
