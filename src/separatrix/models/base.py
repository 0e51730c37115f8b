"""What all estimators share: reading input, scikit-learn's conventions, prediction block by block."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isfunction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from separatrix.data import Block, Source, as_source
from separatrix.data.block import Float
from separatrix.data.checks import check_rows, real_numbers
from separatrix.data.dispatch import source_of
from separatrix.data.frames import as_table, is_frame
from separatrix.data.labels import listed
from separatrix.data.source import COPIED_BYTES, rows_per_block
from separatrix.geometry import Hyperplane, Linear, Quadric, ScoreForm, Surface
from separatrix.geometry.score_form import Link
from separatrix.models.counted_classes import CountedClasses, only_class, rule_among_all
from separatrix.models.counted_classes import Undetermined as Undetermined
from separatrix.models.counted_classes import check_two_classes as check_two_classes
from separatrix.models.sparse_coefficients import dense
from separatrix.models.stopwatch import Stopwatch as Stopwatch
from separatrix.result import Certificate, Fit, Status
from separatrix.settings import one_blas_thread

Boundary = Hyperplane | Quadric | Surface


class Estimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Reading rows from anything and describing the fit."""

    n_features_in_: int
    feature_names_in_: NDArray[Any]
    fit_: Fit
    # scikit-learn's estimator of the same name answers rows of float32 in float32 if it was fitted on such rows. The
    # coefficients that a certificate is about stay as they were found, in float64.
    _keeps_single = False
    _fitted_on_single = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Public methods and properties compute on one BLAS thread: their bits do not depend on the number of threads."""
        super().__init_subclass__(**options)
        for name, held in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isfunction(held):
                setattr(cls, name, one_blas_thread()(held))
            elif type(held) is property and held.fget is not None:
                setattr(cls, name, held.getter(one_blas_thread()(held.fget)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        reset: bool,
        min_rows: int = 1,
        multi_output: bool = False,
        numeric: bool = True,
    ) -> Source:
        """Any input as a source, checked by scikit-learn's rules for shapes and feature names. X is not copied."""
        if isinstance(X, Source):
            self._check_source(X, reset)
            return as_source(X, y, sample_weight)
        X = as_table(check_rows(X))
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            rows, columns = (X.num_rows, X.num_columns) if hasattr(X, "num_rows") else X.shape
            if rows < min_rows or columns < 1:
                raise ValueError(f"Found a table with {rows} sample(s) and {columns} feature(s); more are required.")
        else:
            # NaN and infinity are found in the result of the pass, at no cost, and reported by column.
            X = validate_data(
                self, X, reset=reset, accept_sparse=True, ensure_all_finite=False, ensure_min_samples=min_rows
            )
        if y is not None and getattr(getattr(y, "dtype", None), "kind", "") == "c":
            real_numbers(y, "y")
        if y is not None and not multi_output:
            y = column_or_1d(y, warn=True)
        source = source_of(X, y, sample_weight, numeric=numeric)
        if reset and self._keeps_single:
            self._fitted_on_single = source.dtype == np.float32
        return source

    def _as_given(self, X: Any, answer: Float) -> Float:
        """An answer in single precision where scikit-learn gives it so; it was computed in double precision."""
        if not (self._keeps_single and self._fitted_on_single):
            return answer
        with np.errstate(over="ignore", under="ignore"):
            return answer.astype(np.float32) if is_single(X) else answer

    def _check_source(self, source: Source, reset: bool) -> None:
        names = source.feature_names
        if reset:
            self.n_features_in_ = source.n_features
            if names is not None:
                self.feature_names_in_ = names
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return
        if source.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {source.n_features} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )
        expected = getattr(self, "feature_names_in_", None)
        if names is not None and expected is not None and list(names) != list(expected):
            raise ValueError(
                "The feature names should match those that were passed during fit, in the same order: expected "
                f"{listed(expected)}, got {listed(names)}."
            )

    def _map_rows(self, X: Any, block_fn: Callable[[Block], Float]) -> Float:
        """block_fn of all rows, joined; NaN and infinity in X are refused by column name."""
        self._check_ready()
        source = self._read(X, reset=False)
        parts = list(source.map(block_fn, rows_per_block(source.n_features, target=COPIED_BYTES)))
        if not parts:
            raise ValueError("The data have no rows: at least one is needed.")
        result: Float = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if not np.isfinite(result).all():
            sentence = source.explain_non_finite()
            if sentence:
                raise ValueError(sentence)
        return result

    def _check_ready(self) -> None:
        pending = getattr(self, "_pending", "")
        if pending:
            raise NotFittedError(f"This {type(self).__name__} has seen too little data to predict: {pending}")
        check_is_fitted(self, "fit_")

    def _unpack_or_wait(self, unpack: Callable[[], None]) -> None:
        """After a part of the data: solve when they determine the model, else remember what is missing."""
        try:
            unpack()
            self._pending = ""
        except Undetermined as reason:
            self._pending = str(reason)

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
        names = [list(getattr(model, "feature_names_in_", [])) for model in (self, other)]
        if all(names) and names[0] != names[1]:
            raise ValueError(
                f"Cannot merge models of different features: {listed(names[0])} here and {listed(names[1])} there."
            )

    def _adopt_features(self, other: Estimator) -> None:
        self.n_features_in_ = other.n_features_in_
        if hasattr(other, "feature_names_in_"):
            self.feature_names_in_ = other.feature_names_in_

    def _column(self, j: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"column {j}" if names is None else f"column {names[j]!r}"


def is_single(X: Any) -> bool:
    """Whether all values of X are float32."""
    dtypes = {X.dtype} if hasattr(X, "dtype") else set(getattr(X, "dtypes", ()))
    return {str(dtype).lower() for dtype in dtypes} == {"float32"}


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

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one number a row, positive for ``classes_[1]``.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            scores = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        return self._as_given(X, scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest score, for every row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

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


def openly(function: Callable[[Float], Float], products: Float, constant: Float) -> Float:
    """A function of scores Wx + b; NaN when a product is infinite, whose finite probability would hide what X holds."""
    finite = bool(np.isfinite(products).all())
    result = function(products + constant)
    return result if finite else np.full_like(result, np.nan)


def _posteriors(scores: Float) -> Float:
    """Probabilities of the classes, in the place of their scores where there are several."""
    if scores.shape[1] == 1:
        return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


class Probabilities:
    """Posterior probabilities for classifiers whose scores are log posteriors up to a constant."""

    def predict_proba(self, X: Any) -> Float:
        """Posterior probability of every class, for every row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        result: Float = self._map_scores(X, _posteriors)  # type: ignore[attr-defined]  # mixed into a Classifier
        return self._as_given(X, result)  # type: ignore[attr-defined]

    def predict_log_proba(self, X: Any) -> Float:
        """Logarithms of the posterior probabilities, accurate also where these are tiny.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self._scores(X)  # type: ignore[attr-defined]  # mixed into a Classifier
        if scores.shape[1] == 1:
            return -np.logaddexp(0.0, np.column_stack([scores[:, 0], -scores[:, 0]]))
        result: Float = log_softmax(scores, axis=1)
        return self._as_given(X, result)  # type: ignore[attr-defined]


class SignedDistance:
    """Distances for a classifier whose `linear_form` gives (W, b), always or for some of its parameters."""

    def signed_distance(self, X: Any) -> Float:
        """f(x)/‖w‖: how far, and on which side, a row is from where its score vanishes.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        W, _ = self.linear_form()  # type: ignore[attr-defined]  # mixed into a Classifier
        lengths = np.linalg.norm(W, axis=1)
        if (lengths == 0).any():
            raise ValueError("A class has a constant score, so there is no hyperplane to measure a distance to.")
        scores = self._linear_scores(X)
        return scores[:, 0] / lengths[0] if len(W) == 1 else scores / lengths

    def _linear_scores(self, X: Any) -> Float:
        W, b = self.linear_form()  # type: ignore[attr-defined]  # mixed into a Classifier
        result: Float = self._map_rows(X, lambda block: block.matvec(W.T) + b)  # type: ignore[attr-defined]
        return result


class LinearRule(SignedDistance, Classifier):
    """A classifier with scores XWᵀ + b."""

    coef_: Float
    intercept_: Float

    def _scores(self, X: Any) -> Float:
        return self._map_scores(X, lambda scores: scores)

    def _map_scores(self, X: Any, function: Callable[[Float], Float]) -> Float:
        if type(self)._scores is not LinearRule._scores:  # a model with scores of its own
            return super()._map_scores(X, function)
        # In the workers: beyond two classes the exponentials cost more than the products.
        self._check_ready()
        weights, constant = dense(self.coef_).T.astype(np.float64), np.asarray(self.intercept_, dtype=np.float64)
        return self._map_rows(X, lambda block: openly(function, block.matvec(weights), constant))

    def _place_among(self, known: NDArray[Any]) -> None:
        super()._place_among(known)
        if self._places is not None:
            size, halved = len(self.classes_), isinstance(self, Probabilities)
            self.coef_, self.intercept_ = rule_among_all(self.coef_, self.intercept_, self._places, size, halved=halved)

    def _constant(self, source: Source, watch: Stopwatch) -> None:
        """The rule where a single class has weight: that class."""
        source.refuse_non_finite()
        self.coef_, self.intercept_ = np.zeros((1, self.n_features_in_)), np.zeros(1)
        proof = Certificate(0.0, 0.0, "there is one class to choose from")
        self.fit_ = watch.fit(Status.EXACT, source.passes, only_class(self.classes_[0]), proof)
        self._place_classes(source)

    def linear_form(self) -> tuple[Float, Float]:
        """The rule as (W, b): scores are XWᵀ + b; b is −inf for a class none of whose rows has weight.

        Returns
        -------
        W : ndarray of shape (1, n_features) for two classes, else (n_classes, n_features)
        b : ndarray of shape (1,) or (n_classes,)
        """
        self._check_ready()
        return dense(self.coef_), np.atleast_1d(self.intercept_)

    def score_form(self) -> ScoreForm:
        self._check_ready()
        link: Link = "softmax" if isinstance(self, Probabilities) else "none"
        return Linear.of(dense(self.coef_), self.intercept_, link)

    def _linear_scores(self, X: Any) -> Float:
        scores = self._scores(X)  # a model may know a way that keeps more digits
        return scores if len(self.linear_form()[0]) == scores.shape[1] else scores[:, 1:] - scores[:, :1]

    def boundary(self, k: Any = None, l: Any = None) -> Boundary:  # noqa: E741  # names of the formulas
        """The hyperplane between two classes; positive on the side of the first.

        Parameters
        ----------
        k, l : labels, optional
            Two of ``classes_``. May be left out when there are only two: the positive side is then ``classes_[1]``.

        Returns
        -------
        Hyperplane
        """
        return Hyperplane.between(*self.linear_form(), *self._pair(k, l))
