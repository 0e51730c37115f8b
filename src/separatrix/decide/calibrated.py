"""A classifier calibrated on rows left out of its fit, with a weight of 2 meaning the row twice and 0 no row.

scikit-learn's `CalibratedClassifierCV` does the work, on the rows that count, in folds by row identity (see data/folds.py). A
class whose rows all have weight 0 keeps its place with probability 0; where one class is left there is nothing to calibrate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from separatrix.data.block import Codes, Float
from separatrix.data.folds import different_rows, number_of_folds, row_keys, splits, stratified_folds
from separatrix.data.labels import as_target, as_weights, encode, known_labels, shown
from separatrix.geometry.combined_forms import shares_among_all
from separatrix.models.counted_classes import check_two_classes, warn_of_one_class
from separatrix.models.scikit_learn import check_method_params, num_samples, routing_enabled, safe_indexing


class AllClasses(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A fitted classifier among more (sorted) classes than it was fitted to: these have probability 0."""

    def __init__(self, estimator: Any, classes: NDArray[Any]) -> None:
        self.estimator = estimator
        self.classes = classes
        self.estimator_, self.classes_ = estimator, classes

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the estimator."""
        return int(self.estimator.n_features_in_)

    def predict_proba(self, X: Any) -> Float:
        """(n, K) probabilities of all classes."""
        places = np.searchsorted(self.classes, self.estimator.classes_)
        return shares_among_all(self.estimator.predict_proba(X), places, len(self.classes))


def calibrated(estimator: Any, method: str, cv: Any) -> Any:
    """A `CalibratedClassifierCV`, not fitted, which takes weights under metadata routing too."""
    from sklearn.calibration import CalibratedClassifierCV  # a slow import that a plain rule does not need

    made = CalibratedClassifierCV(estimator, method=method, cv=cv)
    return made.set_fit_request(sample_weight=True) if routing_enabled() else made


def fit_clone(model: Any, X: Any, y: Any, params: dict[str, Any], calibration: str | None) -> Any:
    """A fitted clone of a classifier, which is a `CalibratedClassifierCV` where there is a calibration.

    `params` are those of its `fit`, `sample_weight` among them.
    """
    return clone(model).fit(X, y, **params) if calibration is None else _fit_calibrated(model, X, y, params)


def _fit_calibrated(model: Any, X: Any, y: Any, params: dict[str, Any]) -> Any:
    n_rows = num_samples(X)
    target, weights = as_target(y, n_rows), as_weights(params.get("sample_weight"), n_rows)
    classes, codes = encode(target, None, weights)
    known = known_labels(target, classes, weights)
    check_two_classes(known)
    if len(classes) == 1:
        from sklearn.dummy import DummyClassifier  # seldom needed

        warn_of_one_class(classes)
        return DummyClassifier(strategy="prior").fit(X, y, sample_weight=weights)
    kept = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
    if len(kept) < n_rows:
        X = X.tocsr() if sp.issparse(X) else X
        params = check_method_params(X, params, kept)
        X, target = safe_indexing(X, kept), target[kept]
    fitted = clone(model)
    fitted.set_params(cv=_splits(model.cv, X, codes[kept], classes, kept, n_rows)).fit(X, target, **params)
    fitted.set_params(cv=model.cv)  # as it was given: the splits are its meaning
    return fitted if len(known) == len(classes) else AllClasses(fitted, known)


def _splits(cv: Any, X: Any, codes: Codes, classes: NDArray[Any], kept: NDArray[np.intp], n_rows: int) -> Any:
    number = number_of_folds(cv)
    if number is None:
        return cv if hasattr(cv, "split") else list(splits(cv, X, codes, kept, n_rows))
    if getattr(X, "shape", (0,))[1:] == (0,):  # for the estimator to refuse
        return cv
    keys = row_keys(X)
    different = different_rows(keys, codes, len(classes))
    if number < 2 or different.min() < number:
        raise ValueError(
            f"Requesting {number}-fold cross-validation but provided less than {number} different rows of class "
            f"{shown(classes[int(different.argmin())])}, which has {different.min()}; give fewer folds, at least two, or rows."
        )
    folds = stratified_folds(keys, codes, number)
    return [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in range(number)]
