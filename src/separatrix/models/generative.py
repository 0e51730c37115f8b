"""Classifiers that are algebra on class moments: fitting, fitting in parts, merging, densities.

log p(x) = log Σ_k π_k p(x | k)          the density of a row, and minus it the outlier score
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from separatrix.data import Source
from separatrix.data.block import Codes, Float
from separatrix.data.labels import listed, merged_classes, shown
from separatrix.models.base import FitCall, OptionalArray
from separatrix.models.classifier import Classifier, Probabilities
from separatrix.models.counted_classes import (
    Undetermined,
    check_some_class,
    check_two_classes,
    only_class,
    warn_of_one_class,
)
from separatrix.models.docstrings import described
from separatrix.models.in_parts import InParts, in_parts
from separatrix.models.stopwatch import Stopwatch
from separatrix.result import Status
from separatrix.settings import one_blas_thread
from separatrix.statistics.moments import ClassMoments, Form


def labelled_by_all(source: Source) -> Source:
    """Rows under the labels of all of them: a class without weight has the moments of no rows."""
    found = source.labelled()
    assert found.classes is not None and found.known_classes is not None
    return found if len(found.classes) == len(found.known_classes) else source.labelled(found.known_classes)


class MomentEstimator(InParts):
    """A model read from class moments: `fit`, `partial_fit` and `merge` differ only in where these come from."""

    classes_: NDArray[Any]
    _moments: Any
    """The `Statistic` that the model reads: class moments, or another."""

    def _form(self) -> Form:
        """Which moments the model reads."""
        raise NotImplementedError  # a model defines this, or `statistic_of`

    def reads_statistic(self, X: Any) -> bool:
        """Whether a fit to X is one pass and algebra on what it adds up: `statistic_of`, then `fit_statistic`."""
        self._validate_params()
        # A subclass with a fit of its own is fitted by it.
        names = ("reads_statistic", "fit")
        definers = [next(kind for kind in type(self).__mro__ if name in vars(kind)) for name in names]
        return issubclass(*definers) and not self._second_pass_parameter()

    def statistic_of(self, source: Source, *, separable: bool = False) -> Any:
        """The statistic that the model reads, of a labelled source: one pass.

        With `separable` classes can be taken out of it: pooled moments are then kept by class.
        """
        form = self._form()
        return ClassMoments.of_source(source, "per_class" if separable and form == "pooled" else form)

    def fit_statistic(
        self,
        statistic: Any,
        classes: ArrayLike,
        *,
        feature_names: NDArray[Any] | None = None,
        dtype: DTypeLike = np.float64,
    ) -> Self:
        """Fit the model to a statistic of rows that were read before, and keep it.

        It is as `statistic_of` gives it, or made of such by `merge`, `take` and `regroup`; `classes` are its labels, sorted,
        `dtype` that of the coefficients, where the model has some in the type of the rows.
        """
        self._validate_params()
        watch = Stopwatch()
        self.n_features_in_ = statistic.n_features
        self.__dict__.pop("feature_names_in_", None)
        if feature_names is not None:
            self.feature_names_in_ = feature_names
        self.classes_, self._dtype, self._pending = np.asarray(classes), np.dtype(dtype), ""
        self._moments = statistic.in_form(self._form()) if isinstance(statistic, ClassMoments) else statistic
        self._finish(watch, None)
        return self

    @abstractmethod
    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        """Set the fitted attributes from the moments; `source` is there for second passes, in `fit` only."""

    _of_some_fits: ClassVar[tuple[str, ...]] = ("_moments",)

    def _solve(self, source: Source, call: FitCall) -> None:
        assert source.classes is not None
        check_two_classes(source.classes)
        self.classes_, self._dtype, self._pending = source.classes, source.dtype, ""
        self._moments = self.statistic_of(source)
        self._finish(call.watch, source)

    def _label(self, source: Source) -> Source:
        return labelled_by_all(source)

    def _weights_of_classes(self) -> Float:
        """(K,) total weight of every class."""
        return self._moments.counts

    @available_if(in_parts)
    @described
    def partial_fit(
        self, X: Any, y: OptionalArray = None, classes: OptionalArray = None, sample_weight: OptionalArray = None
    ) -> Self:
        """Add rows to what has been learned; the result equals one `fit` on all rows so far.

        `classes` are not needed: new ones may appear in any part.

        Returns
        -------
        self
        """
        return self._fit_part(X, y, sample_weight, classes=classes)

    def _add_rows(self, call: FitCall) -> None:
        self._check_target(call.X, call.y)
        first, classes = not hasattr(self, "_moments"), call.options["classes"]
        source = labelled_by_all(self._read(call.X, call.y, call.sample_weight, reset=first))
        assert source.classes is not None
        part, labels = self.statistic_of(source), source.classes
        if classes is not None:
            known = np.unique(np.asarray(classes))
            strange = np.setdiff1d(labels, known)
            if len(strange):
                raise ValueError(f"The label {shown(strange[0])} in y is not among classes={listed(known)}.")
            labels, _, _ = merged_classes(known, labels)
            part = part.regroup(np.searchsorted(labels, source.classes), len(labels))
        if first:
            self.classes_, self._moments, self._dtype = labels, part, np.dtype(np.float64)
        else:
            self._merge_moments(self._moments.copy(), self.classes_, part, labels)
        self._finish_or_wait(call.watch)

    def _check_statistic(self) -> None:
        if not hasattr(self, "_moments"):
            self._check_ready()

    def _merge_statistics(self, one: Any, other: Any, watch: Stopwatch) -> None:
        self._merge_moments(one._moments.copy(), one.classes_, other._moments, other.classes_)
        self._finish_or_wait(watch)

    def _merge_moments(self, mine: Any, my_classes: NDArray[Any], theirs: Any, their_classes: NDArray[Any]) -> None:
        union, my_places, their_places = merged_classes(my_classes, their_classes)
        if len(union) > len(my_classes):
            mine = mine.regroup(my_places, len(union))
        if len(union) > len(their_classes):
            theirs = theirs.regroup(their_places, len(union))
        self.classes_, self._moments = union, mine.merge(theirs)

    def _finish_or_wait(self, watch: Stopwatch) -> None:
        """After a part of the data: solve when they determine the model, else remember what is missing."""
        try:
            self._finish(watch, None)
            self._pending = ""
        except Undetermined as reason:
            self._pending = str(reason)

    def _finish(self, watch: Stopwatch, source: Source | None) -> None:
        counted = self.classes_[self._weights_of_classes() > 0]
        if source is None or not isinstance(self, Classifier):  # other classes may still come; directions need two
            check_two_classes(counted)
        check_some_class(counted)
        warn_of_one_class(counted)
        with one_blas_thread():  # the answer does not depend on the number of BLAS threads
            status, detail = self._unpack(source)
        detail = only_class(counted[0]) if len(counted) == 1 else detail
        self.fit_ = watch.fit(
            status, 0 if source is None else source.passes, detail, getattr(self, "_certificate", None)
        )


class GenerativeClassifier(Probabilities, MomentEstimator):
    """A classifier with a density for every class: posteriors, log density, outlier scores.

    Subclasses give ``_log_joint``: log p(x | k) + log π_k.
    """

    priors_: Float
    outlier_threshold_: float
    _label = MomentEstimator._label

    @abstractmethod
    def _log_joint(self, X: Any) -> Float:
        """(n, K) log p(x | k) + log π_k."""

    def _scores(self, X: Any) -> Float:
        return self._log_joint(X)

    def log_density(self, X: Any) -> Float:
        """log p(x) under the fitted mixture of the classes.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return logsumexp(self._log_joint(X), axis=1)

    def outlier_score(self, X: Any) -> Float:
        """Minus the log density: the larger, the less any class explains the row.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return -self.log_density(X)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, Any]:
        """Draw rows of the fitted model, complete ones.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Of objects where some column is not numeric.
        y : ndarray of shape (n_samples,)
        """
        codes, rng = self._draw_classes(n_samples, random_state)
        return self._draw_rows(codes, rng), self.classes_[codes]

    def _draw_classes(self, n_samples: int, random_state: Any) -> tuple[Codes, Any]:
        """Codes drawn from the priors, and the generator to go on with."""
        self._check_ready()
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}; draw at least one row.")
        rng, priors = check_random_state(random_state), np.asarray(self.priors_)
        return rng.choice(len(priors), size=n_samples, p=priors / priors.sum()), rng

    def _draw_rows(self, codes: Codes, rng: Any) -> Any:
        """A row of each of these classes."""
        raise NotImplementedError  # every density of the library draws its own

    def fit_outlier_threshold(self, X: Any, quantile: float = 0.99) -> Self:
        """Set the score above which a row is an outlier: a quantile of the scores of the training rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
            The training rows: the model does not keep them.
        quantile : float, default=0.99
            Share of these rows that shall not be outliers.

        Returns
        -------
        self
        """
        if not 0.0 <= quantile <= 1.0:
            raise ValueError(f"quantile is {quantile!r}; it must lie between 0 and 1.")
        self.outlier_threshold_ = float(np.quantile(self.outlier_score(X), quantile))
        return self

    def is_outlier(self, X: Any) -> NDArray[np.bool_]:
        """Whether a row's score exceeds ``outlier_threshold_``.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
        """
        if not hasattr(self, "outlier_threshold_"):
            raise ValueError("No threshold is set: call fit_outlier_threshold with the training rows first.")
        return self.outlier_score(X) > self.outlier_threshold_
