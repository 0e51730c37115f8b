"""Ridge regression that chooses its own penalty, by leaving out one row at a time or by folds.

α = argmin Σᵢ sᵢ e₋ᵢ(α)²,      e₋ᵢ = eᵢ/(1 − hᵢ)      exactly, for the whole grid, from one spectrum and one more pass
"""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.models.base import FitCall
from separatrix.models.least_squares.gram_regression import LeastSquaresRegressor
from separatrix.models.least_squares.penalty_choice import GRID_PARAMETERS, PenaltyChoice
from separatrix.models.least_squares.task import fit_few_rows
from separatrix.models.scikit_learn import StrOptions
from separatrix.models.stopwatch import Stopwatch
from separatrix.result import Status
from separatrix.statistics.gram import Gram


class Predicted(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A regression whose rows are its predictions: what a scorer is given for rows that were left out."""

    def predict(self, X: Any) -> Any:
        """The rows."""
        return X


class RidgeCV(PenaltyChoice, LeastSquaresRegressor):
    """Ridge regression with the penalty chosen by exact leave-one-out, or by folds.

    Drop-in for scikit-learn's, with files and other sources, and a certificate, on top. The model of the chosen penalty is
    that of `Ridge`.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,) or float, default=(0.1, 1.0, 10.0)
        The grid. Leaving out rows in turn needs positive penalties.
    fit_intercept : bool, default=True
        The intercept is never penalised.
    scoring : str or callable, optional
        By default minus the mean squared error for leave-one-out, R² for folds.
    cv : int, cross-validation generator or iterable, optional
        By default every row is left out in turn. A number of folds is drawn by the contents of the rows: equal rows share a
        fold, and neither the order of the rows nor their weights change the folds, so that a weight of 2 is the row twice. A
        splitter or a list of splits has scikit-learn's meaning. Folds take the rows of a source into memory.
    gcv_mode : {"auto", "svd", "eigen"}, optional
        Kept for compatibility: sums of squares are decomposed, and rows where these have too few digits.
    store_cv_results : bool, default=False
        Whether to keep what leaving out every row gave (`cv_results_`).
    alpha_per_target : bool, default=False
        Whether every target has a penalty of its own; for leave-one-out only.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        The chosen penalty.
    best_score_ : float or ndarray of shape (n_targets,)
        Its score.
    cv_results_ : ndarray of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)
        Squared errors times weights or, with `scoring`, predictions of every row by the model without it.
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    rank_ : int
        Number of independent columns.
    fit_ : Fit

    Notes
    -----
    Whole weights count repetitions: a row of weight 2 is two rows, and leave-one-out leaves out one of them at a time, where
    scikit-learn leaves out both. If some weight is not a whole number, rows are left out with all of their weight, as there.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from separatrix import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y)
    >>> model.alpha_, round(model.score(X, y), 4)
    (0.01, 0.5166)
    """

    rank_: int
    positive = False
    _usual_scoring = "r2"
    _of_some_fits: ClassVar[tuple[str, ...]] = ("_gram", "_triangle", "cv_results_")

    _parameter_constraints: dict[str, list[Any]] = {
        **GRID_PARAMETERS,
        "gcv_mode": [StrOptions({"auto", "svd", "eigen"}), None],
        "alpha_per_target": ["boolean"],
    }

    def __init__(
        self,
        alphas: ArrayLike = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        gcv_mode: str | None = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.gcv_mode = gcv_mode
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target

    def _solve(self, source: Source, call: FitCall) -> None:
        self._dtype = source.dtype
        rows = self._choose_by_rows(source, call)
        if rows is not None:
            penalties = self._penalties(rows.targets.shape[1])
            found = fit_few_rows(rows, penalties, self.fit_intercept, call.watch, self._dtype)
            if found is not None:
                coef, intercept, self.fit_ = found
                self.rank_ = self.n_features_in_  # of S + αI
                self._set(coef, intercept)
                return
        self._gram = Gram.of_source(source)
        self._choose(source, self._gram.normal_equations(), call)
        self._unpack(call.watch, source, all_rows=True)

    def _penalties(self, n_targets: int) -> Float:
        return np.broadcast_to(np.asarray(self.alpha_, dtype=np.float64), (n_targets,)).copy()

    def _set(self, coef: Float, intercept: Float) -> None:
        super()._set(coef, intercept)
        if len(coef) == 1:  # as in scikit-learn, a single column of targets is a vector
            self.coef_ = self.coef_.ravel()

    def _one_vector(self) -> bool:
        return self._one_target

    def _given(self, targets: Float) -> NDArray[Any]:
        return targets[:, 0] if self._one_target else targets

    def _of_predictions(self, predictions: Float) -> tuple[Any, Float]:
        return Predicted(), predictions[:, 0] if self._one_target or self.alpha_per_target else predictions

    def _of_rule(self, coef: Float, intercept: Float) -> Any:
        model = copy(self)
        model.__dict__.pop("feature_names_in_", None)
        model.fit_ = Stopwatch().fit(Status.EXACT, 0)
        model._set(coef, intercept)
        return model
