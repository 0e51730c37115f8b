"""The least-squares classifier that chooses its own penalty, by leaving out one row at a time or by folds.

α = argmin Σᵢ sᵢ ‖t − prediction without row i‖²,      t = ±1 (one column for two classes, else one per class)
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.models.base import FitCall
from separatrix.models.least_squares.penalty_choice import GRID_PARAMETERS, PenaltyChoice
from separatrix.models.least_squares.ridge_classifier import RidgeClassifier
from separatrix.models.least_squares.task import fit_few_rows
from separatrix.models.scikit_learn import StrOptions
from separatrix.models.stopwatch import Stopwatch
from separatrix.result import Status
from separatrix.solvers.least_squares.few_rows_left_out import are_few
from separatrix.solvers.least_squares.normal_equations import LeastSquaresSolution
from separatrix.statistics.gram import NormalEquations


class ScoredRows(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier whose rows are its scores: what a scorer is given for rows that were left out."""

    def __init__(self, classes: NDArray[Any], several: bool) -> None:
        self.classes_, self.several = classes, several

    def decision_function(self, X: Any) -> Any:
        """The rows."""
        return X

    def predict(self, X: Any) -> Any:
        """The class with the largest score; where rows have several labels, whether each score is positive."""
        if self.several:
            return (X > 0).astype(np.intp)
        return self.classes_[(X > 0).astype(np.intp) if X.ndim == 1 else X.argmax(axis=1)]


class RidgeClassifierCV(PenaltyChoice, RidgeClassifier):
    """Least-squares classifier with the penalty chosen by exact leave-one-out, or by folds.

    Drop-in for scikit-learn's, with files and other sources, a certificate and the diagnosis of masked classes on top. The
    model of the chosen penalty is that of `RidgeClassifier`.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,) or float, default=(0.1, 1.0, 10.0)
        The grid. Leaving out rows in turn needs positive penalties.
    fit_intercept : bool, default=True
        The intercept is never penalised.
    scoring : str or callable, optional
        By default minus the mean squared error of the codes ±1 for leave-one-out, accuracy for folds.
    cv : int, cross-validation generator or iterable, optional
        By default every row is left out in turn. A number of folds is drawn by the contents of the rows: equal rows share a
        fold, and neither the order of the rows nor their weights change the folds, so that a weight of 2 is the row twice. A
        splitter or a list of splits has scikit-learn's meaning. Folds take the rows of a source into memory.
    class_weight : dict or "balanced", optional
        Factors of the weights of each class; "balanced" makes all classes weigh the same.
    store_cv_results : bool, default=False
        Whether to keep what leaving out every row gave (`cv_results_`).

    Attributes
    ----------
    alpha_ : float
        The chosen penalty.
    best_score_ : float
        Its score.
    cv_results_ : ndarray of shape (n_samples, n_targets, n_alphas)
        Squared errors times weights or, with `scoring`, scores of every row by the model without it; two classes are one
        target.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    masked_classes_ : ndarray
        Classes that the fitted rule never predicts on its training data.
    classes_ : ndarray
    fit_ : Fit

    Notes
    -----
    Whole weights count repetitions, as in `RidgeCV`. With leave-one-out `scoring` sees the labels of y; for two classes
    scikit-learn shows it one label, so that every row is right and the first penalty wins.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from separatrix import RidgeClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RidgeClassifierCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y)
    >>> model.alpha_, round(model.score(X, y), 4)
    (0.01, 0.9631)
    """

    positive = False
    max_norm = None
    solver = "gram"
    _usual_scoring = "accuracy"
    _choosing: tuple[Source, FitCall]
    _of_some_fits: ClassVar[tuple[str, ...]] = ("_moments", "masked_classes_", "cv_results_")

    _parameter_constraints: dict[str, list[Any]] = {
        **GRID_PARAMETERS,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        alphas: ArrayLike = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        store_cv_results: bool = False,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.class_weight = class_weight
        self.store_cv_results = store_cv_results

    def _iterates(self, X: Any) -> bool:
        return False

    def _solve(self, source: Source, call: FitCall) -> None:
        if not self._multi_label and self._solve_by_rows(source, call):
            return
        self._choosing = source, call  # for `_solve_equations`
        super()._solve(source, call)
        del self._choosing

    def _solve_by_rows(self, source: Source, call: FitCall) -> bool:
        """Whether the products of few rows did it."""
        if not are_few(source):
            return False
        coded, factors, counts = self._coded(source)
        rows = self._choose_by_rows(coded, call, factors)
        if rows is None:
            return False
        penalties = np.full(rows.targets.shape[1], self._penalty())
        found = fit_few_rows(rows, penalties, self.fit_intercept, call.watch, self._dtype)
        if found is not None:
            self._take(found, source, counts if factors is None else counts * factors)
        return found is not None

    def _solve_equations(self, equations: NormalEquations, coded: Source | None) -> LeastSquaresSolution:
        source, call = self._choosing
        assert coded is not None
        if self._multi_label:
            self._choose(coded, equations, call)
        else:
            codes = np.concatenate([block.codes for block in source.blocks()])
            self._choose(coded, equations, call, self._factors(self._moments.counts), codes)
        return super()._solve_equations(equations, coded)

    def _penalty(self) -> float:
        return float(self.alpha_)

    def _one_vector(self) -> bool:
        return False

    def _given(self, targets: Float) -> NDArray[Any]:
        if self._multi_label:
            return (targets > 0).astype(np.intp)
        codes = targets.argmax(axis=1) if targets.shape[1] > 1 else (targets[:, 0] > 0).astype(np.intp)
        return self._labels()[codes]

    def _labels(self) -> NDArray[Any]:
        """The classes in a dtype that scorers know."""
        return np.array(self.classes_.tolist()) if self.classes_.dtype.kind == "O" else self.classes_

    def _of_predictions(self, predictions: Float) -> tuple[Any, Float]:
        return ScoredRows(self._labels(), self._multi_label), predictions[:, 0] if predictions.shape[
            1
        ] == 1 else predictions

    def _of_rule(self, coef: Float, intercept: Float) -> Any:
        model = copy(self)
        model.__dict__.pop("feature_names_in_", None)
        model.fit_ = Stopwatch().fit(Status.EXACT, 0)
        model.classes_ = self._labels()
        model.coef_, model.intercept_ = coef, intercept
        return model
