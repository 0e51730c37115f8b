"""Classifiers that are algebra on class moments: fitting, fitting in parts, merging, densities.

log p(x) = log Σ_k π_k p(x | k)          the density of a row, and minus it the outlier score
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from separatrix.data import Block, Source
from separatrix.data.block import Float
from separatrix.data.checks import real_numbers
from separatrix.data.labels import listed, merged_classes, shown
from separatrix.errors import ClassName, Message
from separatrix.models.base import Estimator, FitCall, copy_features
from separatrix.models.classifier import Classifier, Probabilities
from separatrix.models.counted_classes import (
    Undetermined,
    check_some_class,
    check_two_classes,
    only_class,
    warn_of_one_class,
)
from separatrix.models.stopwatch import Stopwatch
from separatrix.result import Status
from separatrix.settings import one_blas_thread, outside
from separatrix.statistics.metric import Metric
from separatrix.statistics.moments import ClassMoments, Form

_LOG_2PI = float(np.log(2.0 * np.pi))


def class_priors(priors: ArrayLike | None, counts: Float, classes: NDArray[Any], waiting: bool) -> Float:
    """Priors as given, checked, or the shares of the classes in the data.

    A class without rows has the prior 0, whatever is given for it; or, while `waiting` for more rows, none yet.
    """
    if priors is None:
        shares: Float = counts / counts.sum()
        return shares
    given = real_numbers(priors, "priors").copy()
    if given.shape != (len(classes),):
        raise ValueError(
            f"priors has shape {given.shape}, but there are {len(classes)} classes: give one prior a class, in the order "
            f"{listed(classes)}."
        )
    if not np.isfinite(given).all() or (given < 0).any():
        raise ValueError("priors must be non-negative and finite.")
    if abs(given.sum() - 1.0) > 1e-5:
        if given.sum() == 0:
            raise ValueError("priors are all zero; at least one class must be possible.")
        warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=outside())
        given = given / given.sum()
    empty = np.flatnonzero((counts == 0) & (given > 0))
    if len(empty) and waiting:
        name = ClassName(classes[empty[0]])
        raise Undetermined(Message.of("Class ", name, " has a positive prior but no rows to learn from."))
    if len(empty):
        given = np.where(counts > 0, given, 0.0)
        if not given.any():
            raise ValueError("priors are 0 for every class that has rows; give at least one a positive prior.")
        given = given / given.sum()
    return given


def in_parts(model: Any) -> bool:
    """Whether a model can be fitted in parts: the condition of `partial_fit` and `merge`."""
    parameter = model._second_pass_parameter()
    if parameter:
        raise AttributeError(
            f"{parameter} reads the rows a second time, so {type(model).__name__} has fit but neither partial_fit nor merge."
        )
    return True


def labelled_by_all(source: Source) -> Source:
    """Rows under the labels of all of them: a class without weight has the moments of no rows."""
    found = source.labelled()
    assert found.classes is not None and found.known_classes is not None
    return found if len(found.classes) == len(found.known_classes) else source.labelled(found.known_classes)


class MomentEstimator(Estimator):
    """A model read from class moments: `fit`, `partial_fit` and `merge` differ only in where these come from."""

    classes_: NDArray[Any]
    _moments: Any
    """The statistic: class moments, or another monoid with `counts`, `merge`, `copy` and `reindexed`."""

    def _form(self) -> Form:
        """Which moments the model reads."""
        raise NotImplementedError  # a model defines this, or `_measure`

    def _measure(self, source: Source) -> Any:
        """The statistic of a labelled source: one pass."""
        return ClassMoments.of_source(source, self._form())

    @abstractmethod
    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        """Set the fitted attributes from the moments; `source` is there for second passes, in `fit` only."""

    _of_some_fits: ClassVar[tuple[str, ...]] = ("_moments",)

    def _solve(self, source: Source, call: FitCall) -> None:
        assert source.classes is not None
        check_two_classes(source.classes)
        self.classes_, self._dtype, self._pending = source.classes, source.dtype, ""
        self._moments = self._measure(source)
        self._finish(call.watch, source)

    def _label(self, source: Source) -> Source:
        return labelled_by_all(source)

    def _weights_of_classes(self) -> Float:
        """(K,) total weight of every class."""
        return self._moments.counts

    def _second_pass_parameter(self) -> str:
        """The parameter, if any, that reads the rows twice, so that they cannot come in parts."""
        return ""

    @available_if(in_parts)
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to what has been learned; the result equals one `fit` on all rows so far.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            All labels that will ever come. Not needed: new classes may appear in any part.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        watch = Stopwatch()
        with self._unchanged_if_refused():
            self._check_parameters()
            self._check_target(X, y)
            self._add_rows(X, y, classes, sample_weight)
            self._unpack_or_wait(lambda: self._finish(watch, None))
        return self

    def _add_rows(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        first = not hasattr(self, "_moments")
        given = self._read(X, y, sample_weight, reset=first)
        source = labelled_by_all(given)
        assert source.classes is not None
        part, labels = self._measure(source), source.classes
        if classes is not None:
            known = np.unique(np.asarray(classes))
            strange = np.setdiff1d(labels, known)
            if len(strange):
                raise ValueError(f"The label {shown(strange[0])} in y is not among classes={listed(known)}.")
            labels, _, _ = merged_classes(known, labels)
            part = part.reindexed(np.searchsorted(labels, source.classes), len(labels))
        if first:
            self.classes_, self._moments, self._dtype = labels, part, np.dtype(np.float64)
        else:
            self._merge_moments(self._moments.copy(), self.classes_, part, labels)

    @available_if(in_parts)
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
            if not hasattr(model, "_moments"):
                model._check_ready()
        self._check_mergeable(other)
        watch = Stopwatch()
        merged: Self = clone(self)
        copy_features(merged, self)
        merged._dtype = self._dtype
        merged._merge_moments(self._moments.copy(), self.classes_, other._moments, other.classes_)
        merged._unpack_or_wait(lambda: merged._finish(watch, None))
        return merged

    def _merge_moments(self, mine: Any, my_classes: NDArray[Any], theirs: Any, their_classes: NDArray[Any]) -> None:
        union, my_places, their_places = merged_classes(my_classes, their_classes)
        if len(union) > len(my_classes):
            mine = mine.reindexed(my_places, len(union))
        if len(union) > len(their_classes):
            theirs = theirs.reindexed(their_places, len(union))
        self.classes_, self._moments = union, mine.merge(theirs)

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


class GenerativeClassifier(Probabilities, Classifier, MomentEstimator):
    """A classifier with a density for every class: posteriors, log density, outlier scores.

    Subclasses give ``_log_joint``: log p(x | k) + log π_k.
    """

    priors_: Float
    outlier_threshold_: float
    _label = MomentEstimator._label

    @abstractmethod
    def _log_joint(self, X: Any) -> Float:
        """(n, K) log p(x | k) + log π_k."""

    def log_density(self, X: Any) -> Float:
        """log p(x) under the fitted mixture of the classes.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        result: Float = logsumexp(self._log_joint(X), axis=1)
        return result

    def outlier_score(self, X: Any) -> Float:
        """Minus the log density: the larger, the less any class explains the row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return -self.log_density(X)

    def fit_outlier_threshold(self, X: Any, quantile: float = 0.99) -> Self:
        """Set the score above which `is_outlier` says so: a quantile of the scores of the training rows.

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

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool of shape (n_samples,)
        """
        if not hasattr(self, "outlier_threshold_"):
            raise ValueError("No threshold is set: call fit_outlier_threshold with the training rows first.")
        return self.outlier_score(X) > self.outlier_threshold_


class GaussianClassifier(GenerativeClassifier):
    """Gaussian classes: one mean and one metric each."""

    means_: Float
    _metrics: list[Metric]
    """One a class; the same object where classes share a covariance."""

    def _distances(self, rows: Float) -> Float:
        means, metrics = self.means_.astype(np.float64), self._metrics
        with np.errstate(invalid="ignore", over="ignore"):  # bad input is reported by the caller, by column
            return np.column_stack(
                [metric.squared_lengths(rows - mean) for mean, metric in zip(means, metrics, strict=True)]
            )

    def mahalanobis(self, X: Any) -> Float:
        """Squared Mahalanobis distance of every row to every class mean.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._check_ready()
        return self._map_rows(X, lambda block: self._distances(block.dense()))

    def _log_joint(self, X: Any) -> Float:
        self._check_ready()

        def of_block(block: Block) -> Float:
            rows = block.dense()
            distances = self._distances(rows)
            far = np.isinf(distances).all(axis=1) & np.isfinite(rows).all(axis=1)
            if far.any():  # beyond 1e154 the squares overflow: the same rows nearer by, in the same direction
                distances[far] = self._distances(rows[far] / np.abs(rows[far]).max(axis=1, keepdims=True) * 1e100)
            return distances

        distances = self._map_rows(X, of_block)
        log_dets = np.array([metric.log_det + metric.rank * _LOG_2PI for metric in self._metrics])
        with np.errstate(divide="ignore"):  # a class of prior 0 has log prior −inf: it is never chosen
            return -0.5 * (distances + log_dets) + np.log(self.priors_)
