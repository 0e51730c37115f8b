"""A model on φ(x) that never stores φ(X).

    scores(x) = f(φ(x)),     φ applied to a block of rows, used, and thrown away

A boundary that is not linear in x may be linear in φ(x). Equal to a scikit-learn Pipeline of the same two, in a fraction of
its memory and on files too; boundaries stay in x.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.frames import is_frame
from separatrix.data.views import Mapped, native_rows
from separatrix.geometry import ScoreForm, Surface
from separatrix.geometry.combined_forms import Composition
from separatrix.models.base import Estimator, FitCall, OptionalArray
from separatrix.models.classifier import class_pair
from separatrix.models.docstrings import described
from separatrix.result import Fit
from separatrix.settings import one_blas_thread


def _delegate(name: str) -> Any:
    def check(self: FeatureMap) -> bool:
        return hasattr(getattr(self, "estimator_", self.estimator), name)

    return available_if(check)


def _of_mapped_rows(name: str, summary: str, shape: str) -> Any:
    """The estimator's method of that name, given φ(X) block by block; there where the estimator has it."""

    def method(self: FeatureMap, X: Any) -> Any:
        self._check_ready()
        with one_blas_thread():
            return getattr(self.estimator_, name)(self._view(self._read(X, reset=False, numeric=False)))

    method.__name__, method.__qualname__ = name, f"FeatureMap.{name}"
    method.__doc__ = f"{summary}\n\nReturns\n-------\nndarray of shape {shape}\n"
    return _delegate(name)(described(method))


def _first_targets(source: Source) -> Any:
    """The labels or values of the first block of a file, as they were given."""
    block = next(source.blocks())
    if source.known_classes is not None:
        return np.asarray(source.known_classes)[block.codes]
    assert block.y is not None
    return block.y[:, 0] if block.y.ndim == 2 and block.y.shape[1] == 1 else block.y


class FeatureMap(MetaEstimatorMixin, Estimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A model of this library on transformed rows, expanded block by block.

    Parameters
    ----------
    transformer : transformer
        Any scikit-learn transformer of rows: polynomial, spline, RBF or Fourier features, a ColumnTransformer, a Pipeline of
        them. It is fitted on X (on the first rows of a file), then applied to a block at a time.
    estimator : estimator of this library
        What is fitted on the transformed rows.

    Attributes
    ----------
    transformer_, estimator_ : fitted clones
    classes_ : ndarray
        For a classifier.
    fit_ : Fit
        Of the estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from separatrix import FeatureMap, LinearDiscriminantAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 2))
    >>> y = (X**2).sum(axis=1) > 1.5
    >>> straight = LinearDiscriminantAnalysis().fit(X, y)
    >>> curved = FeatureMap(PolynomialFeatures(2), LinearDiscriminantAnalysis()).fit(X, y)
    >>> round(straight.score(X, y), 2), round(curved.score(X, y), 2)
    (0.59, 0.86)
    """

    transformer_: Any
    estimator_: Any

    def __init__(self, transformer: Any, estimator: Any) -> None:
        self.transformer = transformer
        self.estimator = estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags.sparse = get_tags(self.transformer).input_tags.sparse and inner.input_tags.sparse
        return tags

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes."""
        return self.estimator_.classes_

    @property
    def fit_(self) -> Fit:  # type: ignore[override]  # the estimator's record, not a second one
        """The record of the estimator's fit."""
        return self.estimator_.fit_

    def _view(self, source: Source) -> Mapped:
        return Mapped(source, self.transformer_.transform, self._n_mapped)

    def _fit_transformer(self, X: Any, y: Any, source: Source, sample_weight: ArrayLike | None) -> None:
        first = next(source.blocks(), None)
        if first is None:
            raise ValueError("The data have no rows: at least one is needed.")
        # A transformer learns from the rows as they stand; of a file from the first block.
        in_memory, rows = isinstance(X, np.ndarray) or sp.issparse(X) or is_frame(X), native_rows(first)
        weights = sample_weight if in_memory else first.weights
        weighted = {"sample_weight": weights} if has_fit_parameter(self.transformer, "sample_weight") else {}
        targets = y
        if not in_memory:
            targets = _first_targets(source.labelled() if is_classifier(self.estimator) else source.valued())
        self.transformer_ = clone(self.transformer).fit(X if in_memory else rows, targets, **weighted)
        self._n_mapped = int(self.transformer_.transform(rows[:1]).shape[1])

    def _check_parameters(self) -> None:
        if not isinstance(self.estimator, Estimator):
            raise TypeError(
                f"FeatureMap works with the estimators of separatrix, which read rows block by block; "
                f"{type(self.estimator).__name__} is not one. Use sklearn.pipeline.make_pipeline for it."
            )

    def _read_rows(self, call: FitCall, *, reset: bool = True) -> Source:
        self._check_target(call.X, call.y)
        single = is_classifier(self.estimator) and not get_tags(self.estimator).classifier_tags.multi_label
        return self._read(call.X, call.y, call.sample_weight, reset=reset, multi_output=not single, numeric=False)

    def _solve(self, source: Source, call: FitCall) -> None:
        self._fit_transformer(call.X, call.y, source, call.sample_weight)
        self.estimator_ = clone(self.estimator).fit(self._view(source))

    @_delegate("partial_fit")
    @described
    def partial_fit(
        self, X: Any, y: OptionalArray = None, classes: OptionalArray = None, sample_weight: OptionalArray = None
    ) -> Self:
        """Add rows; the transformer is fitted on the first part. `classes` are not needed.

        Returns
        -------
        self
        """
        return self._fit_part(X, y, sample_weight, **({} if classes is None else {"classes": classes}))

    def _add_rows(self, call: FitCall) -> None:
        first = not hasattr(self, "estimator_")
        source = self._read_rows(call, reset=first)
        if first:
            self._fit_transformer(call.X, call.y, source, call.sample_weight)
            self.estimator_ = clone(self.estimator)
        self.estimator_.partial_fit(self._view(source), **call.options)

    predict = _of_mapped_rows("predict", "Prediction for every row.", "(n_samples,)")
    decision_function = _of_mapped_rows(
        "decision_function", "Scores of every row.", "(n_samples,) or (n_samples, n_classes)"
    )
    predict_proba = _of_mapped_rows("predict_proba", "Posterior probabilities of every row.", "(n_samples, n_classes)")
    predict_log_proba = _of_mapped_rows(
        "predict_log_proba", "Logarithms of the posterior probabilities of every row.", "(n_samples, n_classes)"
    )
    log_density = _of_mapped_rows(
        "log_density", "Log density of φ(x) under the estimator, for every row.", "(n_samples,)"
    )

    @_delegate("score_form")
    def score_form(self) -> ScoreForm:
        """The scores as a formula of the transformed columns.

        Returns
        -------
        Composition
            Of ``form``, that of the estimator, and ``transform``, from x to the rows it takes.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.preprocessing import PolynomialFeatures
        >>> from separatrix import FeatureMap, LinearDiscriminantAnalysis
        >>> X = np.random.default_rng(0).standard_normal((500, 2))
        >>> model = FeatureMap(PolynomialFeatures(2), LinearDiscriminantAnalysis()).fit(X, (X**2).sum(axis=1) > 1.5)
        >>> model.score_form().form.weights.shape
        (1, 6)
        """
        self._check_ready()
        return Composition(self.estimator_.score_form(), self.transformer_.transform)

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of a classifier, R² of a regressor.

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score, r2_score  # a slow import that fitting does not need

        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    @_delegate("boundary")
    @described
    def boundary(self, k: Any = None, l: Any = None) -> Surface:  # noqa: E741  # names of the formulas
        """The surface in x between two classes; positive on the side of the first.

        Returns
        -------
        Surface
        """
        self._check_ready()
        first, second = class_pair(self.estimator_, k, l)

        def difference(X: Any) -> Float:
            scores = self.decision_function(X)
            if scores.ndim == 1:
                return scores if first == 1 else -scores
            return scores[:, first] - scores[:, second]

        return Surface(difference)
