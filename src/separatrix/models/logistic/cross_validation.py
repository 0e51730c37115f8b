"""Logistic regression that chooses its own penalty, by folds or by leaving out one row at a time.

Every fold solves the whole grid of C with warm starts (see logistic_path.py). cv="alo" needs no folds: one Newton step from the
fit on all rows stands in for each fit without a row (see solvers/leave_one_out_scores.py).

A fold whose training rows lack a class fits the others and gives that one probability 0. Two classes left of more are fitted as
the softmax would, whose penalty of the two vectors ±w/2 is ¼‖w‖²: with s = (1 + ρ)/2

    C Σℓ + (1−ρ)/4 ‖w‖² + ρ‖w‖₁ = s · [ (C/s) Σℓ + (1−ρ′)/2 ‖w‖² + ρ′‖w‖₁ ],     ρ′ = ρ/s
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer_names
from sklearn.utils.validation import column_or_1d

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.device.tensors import on_device
from separatrix.data.folds import splits
from separatrix.data.labels import as_weights
from separatrix.models.base import FitCall
from separatrix.models.checkpoint import Checkpoint
from separatrix.models.class_weights import ClassWeight, class_counts, class_factors
from separatrix.models.classifier import Probabilities
from separatrix.models.linear_rule import LinearRule
from separatrix.models.logistic.logistic_regression import PARAMETERS
from separatrix.models.logistic.path import RegressionOnGrid, grid_of
from separatrix.models.logistic.path_scores import PathScores, ScoredChoice, labelled_scorer, legacy_attributes
from separatrix.models.scikit_learn import Interval, StrOptions, check_method_params, raise_for_params, safe_indexing
from separatrix.models.sparse_coefficients import SparseCoefficients
from separatrix.models.stopwatch import Stopwatch
from separatrix.objectives.solution import Solution
from separatrix.result import Status
from separatrix.settings import outside
from separatrix.solvers.leave_one_out_scores import leave_one_out_losses

# Parameters of one fit, that a choice among many has none of.
_NOT_SHARED = ("C", "l1_ratio", "warm_start", "prior", "eta0", "record")


@dataclass(frozen=True)
class Folded:
    """Rows that count, which folds are made of, and what the scorer is given with them."""

    X: Any
    y: NDArray[Any]
    weights: Float | None
    class_weight: ClassWeight
    score_params: dict[str, Any]

    def factors_of(self, classes: NDArray[Any]) -> dict[Any, float] | None:
        """Factors of the weights of some of the classes."""
        if not isinstance(self.class_weight, Mapping):
            return None
        return {label: self.class_weight.get(label, 1.0) for label in classes.tolist()}


class LogisticRegressionCV(ScoredChoice, Probabilities, SparseCoefficients, LinearRule):  # type: ignore[misc]  # its score needs y
    """Logistic regression with C, and the share of absolute values, chosen by cross-validation.

    Parameters
    ----------
    Cs : int or array-like, default=10
        The grid; a number means that many values from 1e-4 to 1e4, evenly on a logarithmic scale.
    l1_ratios : array-like, default=(0.0,)
        Shares of the absolute values in the penalty that are tried.
    fit_intercept : bool, default=True
    cv : int, cross-validation generator, iterable or "alo", optional
        A number of folds, by default five, is drawn by the contents of the rows: equal rows share a fold, and neither the
        order of the rows nor their weights change the folds, so that a weight of 2 is the row twice. A splitter or a list of
        splits has scikit-learn's meaning, and sees the rows as they are given; rows of weight zero are left out in any case.
        "alo": approximate leave-one-out, which reads the rows twice more a value of C and works for any source.
    scoring : str or callable, optional
        By default accuracy, as in scikit-learn; with cv="alo" "neg_log_loss" (the default there) or "accuracy". `score` uses
        it too.
    solver, tol, max_iter, class_weight, n_jobs, verbose, penalty, dual, intercept_scaling, random_state
        As in `LogisticRegression`.
    refit : bool, default=True
        Fit all rows with the best parameters; otherwise the coefficients are averages over the folds at their own best.
    multi_class, baseline, penalty_factors, bounds
        As in `LogisticRegression`.
    use_legacy_attributes : bool, default=False
        Whether ``C_``, ``l1_ratio_``, ``scores_``, ``coefs_paths_`` and ``n_iter_`` have the shapes of scikit-learn before
        1.10: arrays with one entry per class, and dicts by label. The default is that of scikit-learn 1.10.

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
        The intercept is −inf for a class that a fold has no row of to learn from.
    n_iter_ : ndarray of shape (n_folds, n_l1_ratios, n_Cs)
        Steps of the solver.
    coef_, intercept_, classes_, fit_
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
        **{name: value for name, value in PARAMETERS.items() if name not in _NOT_SHARED},
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "l1_ratios": ["array-like", None],
        "cv": ["cv_object", StrOptions({"alo"})],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "refit": ["boolean"],
        "use_legacy_attributes": ["boolean"],
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
        use_legacy_attributes: bool = False,
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
        self.use_legacy_attributes = use_legacy_attributes

    def _model(self, C: float = 1.0, l1_ratio: float = 0.0) -> RegressionOnGrid:
        shared = RegressionOnGrid().get_params().keys() & self.get_params().keys() - {"penalty"}
        return RegressionOnGrid(C=C, l1_ratio=l1_ratio, **{name: getattr(self, name) for name in shared})

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: Checkpoint = None,
        **params: Any,
    ) -> Self:
        """Choose the penalty and fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
            A source has no folds to choose from: use cv="alo".
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Counts in the fits and in the scores.
        **params : dict
            Metadata for the splitter and the scorer, such as groups, when scikit-learn's metadata routing is enabled.

        Returns
        -------
        self
        """
        raise_for_params(params, self, "fit")
        return self._fit(X, y, sample_weight, checkpoint, **params)

    def _solve(self, rows: Source, call: FitCall) -> None:
        X, y, sample_weight, watch = call.X, call.y, call.sample_weight, call.watch
        self.Cs_ = grid_of(self.Cs)
        ratios = {"l1": [1.0], "l2": [0.0]}.get(self.penalty, self.l1_ratios if self.l1_ratios is not None else [0.0])
        self.l1_ratios_ = np.asarray(ratios, dtype=np.float64).ravel()
        if not ((self.l1_ratios_ >= 0) & (self.l1_ratios_ <= 1)).all():
            raise ValueError(f"l1_ratios holds {self.l1_ratios_.tolist()}; every share lies between 0 and 1.")
        if self.cv != "alo" and isinstance(X, Source):
            raise ValueError("Folds need rows that can be picked, which a source is not; use cv='alo'.")
        if len(self.classes_) == 1:  # all penalties are alike
            self.C_, self.l1_ratio_ = float(self.Cs_.min()), float(self.l1_ratios_[0])
            found = self._one_class_path()
            self._constant(rows, watch)
        else:
            if self.cv == "alo":
                found = self._leave_one_out(X, y, sample_weight)
            else:
                if not on_device(sample_weight):  # a number stands for all rows, which no scorer knows
                    sample_weight = as_weights(sample_weight, rows.n_rows or 0)
                found = self._folds(X, y, rows, *self._routed(sample_weight, dict(call.options)))
            self._refit(X, y, sample_weight, found, watch)
            self._place_classes(rows)
        self.scores_, self.n_iter_ = found.scores, found.n_iter
        self.coefs_paths_ = found.table(self._places, len(self.classes_), bool(self.fit_intercept))
        if self.use_legacy_attributes:
            legacy_attributes(self, list(self.classes_[1:] if len(self.classes_) == 2 else self.classes_))

    def _one_class_path(self) -> PathScores:
        found = PathScores.empty(1, len(self.l1_ratios_), len(self.Cs_))
        for at in np.ndindex(found.scores.shape):
            found.put(at, np.nan, (np.zeros((1, self.n_features_in_)), np.zeros(1)), None)
        return found

    def _leave_one_out(self, X: Any, y: Any, sample_weight: Any) -> PathScores:
        if self.scoring not in (None, "neg_log_loss", "accuracy"):
            raise ValueError("cv='alo' scores by 'neg_log_loss' or 'accuracy'; choose folds for other scorings.")
        found = PathScores.empty(1, len(self.l1_ratios_), len(self.Cs_))
        for r, ratio in enumerate(self.l1_ratios_):
            model = self._model(l1_ratio=float(ratio))
            source = model.read(X, y, sample_weight)
            for c, problem, solution in model.along(source, self.Cs_):
                if solution.status is Status.INTERRUPTED:
                    found.statuses.append(solution.status)
                    return found.so_far(1)
                loss, errors = leave_one_out_losses(problem.objective, problem.source, solution.theta)
                score = 1.0 - errors if self.scoring == "accuracy" else -loss
                found.put((0, r, c), score, model.rule(*problem.coefficients(solution.theta)), solution)
        return found

    def _folds(self, X: Any, y: Any, rows: Source, for_split: Any, for_score: Any) -> PathScores:
        X = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "shape") else np.asarray(X)
        blocks = [
            (block.codes, np.ones(block.n) if block.weights is None else block.weights) for block in rows.blocks()
        ]
        codes, weights = (np.concatenate(part) for part in zip(*blocks, strict=True))
        kept = np.flatnonzero(weights)
        labels = column_or_1d(y)[kept]
        if labels.dtype.kind == "O":  # scorers know labels by their dtype
            labels = np.array(labels.tolist())
        for_split, for_score = (check_method_params(X, given, kept) for given in (for_split, for_score))
        counted = safe_indexing(X, kept)
        drawn = list(splits(self.cv, counted, codes[kept], kept, len(codes), **for_split))
        uneven = None if (weights[kept] == 1).all() else weights[kept]  # sums without weights are quicker
        fold = Folded(counted, labels, uneven, self._balanced(rows), for_score)
        found = PathScores.empty(len(drawn), len(self.l1_ratios_), len(self.Cs_))
        for f, (train, test) in enumerate(drawn):
            if not len(train) or not len(test):
                raise ValueError(
                    f"Fold {f} learns from {len(train)} rows and tests {len(test)}; give it at least one each."
                )
            for r in range(len(self.l1_ratios_)):
                self._fold(fold, train, test, found, (f, r))
                if found.interrupted:
                    return found.so_far(f)
        return found

    def _balanced(self, rows: Source) -> ClassWeight:
        """Factors of the classes in all rows, which scikit-learn has in every fold too."""
        if not isinstance(self.class_weight, str):
            return self.class_weight
        factors = class_factors(self.class_weight, self.classes_, class_counts(rows))
        assert factors is not None
        return dict(zip(self.classes_.tolist(), factors.tolist(), strict=True))

    def _fold(self, rows: Folded, train: Any, test: Any, found: PathScores, at: tuple[int, int]) -> None:
        """Scores, coefficients and steps of one fold and ratio."""
        ratio, own = float(self.l1_ratios_[at[1]]), np.unique(rows.y[train])
        of_softmax = len(own) == 2 < len(self.classes_) and self.multi_class != "reference"
        share = 0.5 * (1.0 + ratio) if of_softmax else 1.0
        model = self._model(l1_ratio=ratio / share).set_params(class_weight=rows.factors_of(own))
        part, params = safe_indexing(rows.X, train), check_method_params(rows.X, rows.score_params, test)
        left_out, scorer = (safe_indexing(rows.X, test), rows.y[test]), labelled_scorer(self.scoring, self.classes_)

        def put(c: int, rule: tuple[Float, Float], solution: Solution | None) -> None:
            model.take_rule(own, rule, self.classes_, Status.EXACT if solution is None else solution.status)
            score = scorer(model, *left_out, **params)
            found.put((*at, c), score, (model.coef_, model.intercept_), solution)
            model.classes_ = own

        if len(own) == 1:
            model.read(part)
            for c in range(len(self.Cs_)):
                put(c, (np.zeros((1, self.n_features_in_)), np.zeros(1)), None)
            return
        source = model.read(part, rows.y[train], None if rows.weights is None else rows.weights[train])
        for c, problem, solution in model.along(source, self.Cs_ / share):
            if solution.status is Status.INTERRUPTED:  # half a fit would be scored as the whole
                found.statuses.append(solution.status)
                return
            put(c, model.rule(*problem.coefficients(solution.theta)), solution)

    def _refit(self, X: Any, y: Any, sample_weight: Any, found: PathScores, watch: Stopwatch) -> None:
        ratio, at = found.best()
        self.C_, self.l1_ratio_ = float(self.Cs_[at]), float(self.l1_ratios_[ratio])
        best = self._model(self.C_, self.l1_ratio_).fit(X, y, sample_weight)
        self.coef_, self.intercept_ = best.counted_rule()
        if not self.refit and self.cv != "alo":
            chosen, self.coef_, self.intercept_ = found.averaged()
            self.C_ = float(np.mean([self.Cs_[c] for _, c in chosen]))
            self.l1_ratio_ = float(np.mean([self.l1_ratios_[r] for r, _ in chosen]))
        status = Status.INTERRUPTED if found.interrupted else best.fit_.status
        short = found.shortfall()
        self.fit_ = watch.fit(status, best.fit_.passes, short, best.fit_.certificate, best.fit_.iterations)
        if short:
            warnings.warn(f"{type(self).__name__}: {short}", ConvergenceWarning, stacklevel=outside())
        else:
            self._warn_if_short()
