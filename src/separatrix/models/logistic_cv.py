"""Logistic regression that chooses its own penalty, by folds or by leaving out one row at a time.

Every fold solves the whole grid of C with warm starts (see logistic_path.py). cv="alo" needs no folds: one Newton step from the
fit on all rows stands in for each fit without a row (see solvers/leave_one_out_scores.py).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import column_or_1d

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.labels import encode
from separatrix.models.base import LinearRule, Probabilities, SparseCoefficients, Stopwatch
from separatrix.models.class_weights import ClassWeight
from separatrix.models.logistic import LogisticRegression
from separatrix.models.logistic_path import grid_of, solve_along
from separatrix.solvers.leave_one_out_scores import leave_one_out_losses


class LogisticRegressionCV(Probabilities, SparseCoefficients, LinearRule):
    """Logistic regression with C, and the share of absolute values, chosen by cross-validation.

    Parameters
    ----------
    Cs : int or array-like, default=10
        The grid; a number means that many values from 1e-4 to 1e4, evenly on a logarithmic scale.
    l1_ratios : array-like, default=(0.0,)
        Shares of the absolute values in the penalty that are tried.
    fit_intercept : bool, default=True
    cv : int, cross-validation generator, iterable or "alo", optional
        Folds as in scikit-learn, by default five. "alo": approximate leave-one-out, which reads the rows twice more a
        value of C and works for any source.
    scoring : str or callable, optional
        By default accuracy, as in scikit-learn; with cv="alo" "neg_log_loss" (the default there) or "accuracy".
    solver, tol, max_iter, class_weight, n_jobs, verbose, penalty, dual, intercept_scaling, random_state
        As in `LogisticRegression`.
    refit : bool, default=True
        Fit all rows with the best parameters; otherwise the coefficients are averages over the folds at their own best.
    multi_class, baseline, penalty_factors, bounds
        As in `LogisticRegression`.

    Attributes
    ----------
    C_ : float
        The chosen C.
    l1_ratio_ : float
        The chosen share.
    Cs_, l1_ratios_ : ndarray
        The grids.
    scores_ : ndarray of shape (n_folds, n_l1_ratios, n_Cs)
        One fold for cv="alo".
    coefs_paths_ : ndarray of shape (n_folds, n_l1_ratios, n_Cs, n_scores, n_features + intercept)
    coef_, intercept_, classes_, n_iter_, fit_
        As in `LogisticRegression`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import LogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegressionCV(cv="alo").fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: value
            for name, value in LogisticRegression._parameter_constraints.items()
            if name not in ("C", "l1_ratio", "warm_start", "prior")
        },
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "l1_ratios": ["array-like", None],
        "cv": ["cv_object", StrOptions({"alo"})],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "refit": ["boolean"],
        "penalty": [StrOptions({"auto", "l1", "l2", "elasticnet"})],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 10,
        l1_ratios: ArrayLike | None = (0.0,),
        fit_intercept: bool = True,
        cv: Any = None,
        dual: bool = False,
        penalty: str = "auto",
        scoring: Any = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 100,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        refit: bool = True,
        intercept_scaling: float = 1.0,
        random_state: Any = None,
        multi_class: str = "softmax",
        baseline: Any = None,
        penalty_factors: ArrayLike | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.dual = dual
        self.penalty = penalty
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.refit = refit
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.multi_class = multi_class
        self.baseline = baseline
        self.penalty_factors = penalty_factors
        self.bounds = bounds

    def _model(self, C: float = 1.0, l1_ratio: float = 0.0) -> LogisticRegression:
        shared = LogisticRegression().get_params().keys() & self.get_params().keys() - {"penalty"}
        return LogisticRegression(C=C, l1_ratio=l1_ratio, **{name: getattr(self, name) for name in shared})

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the penalty and fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
            A source has no folds to choose from: use cv="alo".
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Counts in the fits and in the scores.

        Returns
        -------
        self
        """
        self._validate_params()
        watch = Stopwatch()
        self._read(X, y, sample_weight, reset=True)
        self.Cs_ = grid_of(self.Cs)
        ratios = {"l1": [1.0], "l2": [0.0]}.get(self.penalty, self.l1_ratios if self.l1_ratios is not None else [0.0])
        self.l1_ratios_ = np.asarray(ratios, dtype=np.float64).ravel()
        if not ((self.l1_ratios_ >= 0) & (self.l1_ratios_ <= 1)).all():
            raise ValueError(f"l1_ratios holds {self.l1_ratios_.tolist()}; every share lies between 0 and 1.")
        whole = self._model()
        labels = whole._labelled(X, y, sample_weight).classes
        assert labels is not None
        self.classes_ = labels
        if self.cv == "alo":
            scores, paths = self._leave_one_out(X, y, sample_weight)
        else:
            scores, paths = self._folds(X, y, sample_weight)
        self.scores_, self.coefs_paths_ = scores, paths
        self._choose(X, y, sample_weight)
        self.fit_ = watch.fit(
            self._best.fit_.status,
            self._best.fit_.passes,
            certificate=self._best.fit_.certificate,
            iterations=self._best.fit_.iterations,
        )
        del self._best
        return self

    def _leave_one_out(self, X: Any, y: Any, sample_weight: Any) -> tuple[Float, Float]:
        if self.scoring not in (None, "neg_log_loss", "accuracy"):
            raise ValueError("cv='alo' scores by 'neg_log_loss' or 'accuracy'; choose folds for other scorings.")
        scores, paths = [], []
        for ratio in self.l1_ratios_:
            model = self._model(l1_ratio=float(ratio))
            source = model._labelled(X, y, sample_weight)
            row, found = np.empty(len(self.Cs_)), {}
            for at, problem, solution in solve_along(model, source, self.Cs_):
                loss, errors = leave_one_out_losses(problem.objective, problem.source, solution.theta)
                row[at] = 1.0 - errors if self.scoring == "accuracy" else -loss
                found[at] = self._joined(*model._expand(*problem.finish(solution.theta)))
            scores.append(row)
            paths.append(np.stack([found[at] for at in range(len(self.Cs_))]))
        return np.stack(scores)[None], np.stack(paths)[None]

    def _joined(self, coef: Float, intercept: Float) -> Float:
        return np.column_stack([coef, intercept]) if self.fit_intercept else coef

    def _folds(self, X: Any, y: Any, sample_weight: Any) -> tuple[Float, Float]:
        if isinstance(X, Source):
            raise ValueError("Folds need rows that can be picked, which a source is not; use cv='alo'.")
        X = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "shape") else np.asarray(X)
        target = column_or_1d(y)
        if target.dtype.kind == "O":  # scorers know labels by their dtype
            target = np.array(target.tolist())
        weights = None if sample_weight is None else np.broadcast_to(np.asarray(sample_weight, float), len(target))
        codes = encode(target, None, weights)[1]
        splitter = check_cv(self.cv, codes, classifier=True)
        scores, paths = [], []
        for train, test in splitter.split(X, codes):
            by_ratio = [self._fold(X, target, weights, train, test, float(ratio)) for ratio in self.l1_ratios_]
            scores.append([score for score, _ in by_ratio])
            paths.append([path for _, path in by_ratio])
        return np.array(scores), np.array(paths)

    def _fold(self, X: Any, y: Any, weights: Any, train: Any, test: Any, ratio: float) -> tuple[Float, Float]:
        model = self._model(l1_ratio=ratio)
        inner = None if weights is None else weights[train]
        source = model._labelled(_safe_indexing(X, train), y[train], inner)
        if len(model.classes_) != len(self.classes_):
            raise ValueError(
                f"A fold has {len(model.classes_)} of the {len(self.classes_)} classes; use fewer or stratified folds."
            )
        X_test, y_test = _safe_indexing(X, test), y[test]
        scorer = check_scoring(model, scoring=self.scoring)
        outer = {} if weights is None else {"sample_weight": weights[test]}
        scores, paths = np.empty(len(self.Cs_)), {}
        for at, problem, solution in solve_along(model, source, self.Cs_):
            model.coef_, model.intercept_ = model._expand(*problem.finish(solution.theta))
            model.fit_ = Stopwatch().fit(solution.status, 0)
            scores[at] = scorer(model, X_test, y_test, **outer)
            paths[at] = self._joined(model.coef_, model.intercept_)
        return scores, np.stack([paths[at] for at in range(len(self.Cs_))])

    def _choose(self, X: Any, y: Any, sample_weight: Any) -> None:
        mean = self.scores_.mean(axis=0)
        # Among equals the strongest penalty, as in scikit-learn: the first of the largest.
        ratio, at = np.unravel_index(int(np.argmax(mean)), mean.shape)
        best = self._model(float(self.Cs_[at]), float(self.l1_ratios_[ratio]))
        best.fit(X, y, sample_weight)
        self.C_, self.l1_ratio_ = float(self.Cs_[at]), float(self.l1_ratios_[ratio])
        self.coef_, self.intercept_, self.n_iter_ = best.coef_, best.intercept_, best.n_iter_
        if not self.refit and self.cv != "alo":
            chosen = [np.unravel_index(int(np.argmax(fold)), fold.shape) for fold in self.scores_]
            average = np.mean([path[i, j] for path, (i, j) in zip(self.coefs_paths_, chosen, strict=True)], axis=0)
            self.C_ = float(np.mean([self.Cs_[j] for _, j in chosen]))
            self.l1_ratio_ = float(np.mean([self.l1_ratios_[i] for i, _ in chosen]))
            self.coef_ = average[:, : self.n_features_in_]
            self.intercept_ = average[:, -1] if self.fit_intercept else np.zeros(len(average))
        self._best = best
