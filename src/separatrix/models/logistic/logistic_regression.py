"""Logistic regression: log-odds that are linear in x.

    log p(k|x)/p(l|x) = (w_k − w_l)ᵀx + b_k − b_l
    min  C Σ sᵢ ℓᵢ + (1−ρ)/2 ‖W‖² + ρ‖W‖₁         ρ = l1_ratio;  C = ∞ is maximum likelihood

The intercept is not penalised, unless asked. Two classes have one score, more have one per class ("softmax") or one per class
but the baseline ("reference"). `fit_.certificate` proves how far the answer can be from the optimum of exactly this objective.

    glmnet's λ is 1/(nC);  a Gaussian prior of variance v on each coefficient is C = v with l1_ratio = 0
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.checks import real_numbers
from separatrix.data.views import Reweighted
from separatrix.models.base import FitCall
from separatrix.models.checkpoint import Checkpoint
from separatrix.models.class_weights import ClassWeight, class_counts, class_factors
from separatrix.models.classifier import Probabilities
from separatrix.models.formula import FromFormula
from separatrix.models.logistic.effects import WithEffects
from separatrix.models.logistic.empty_columns import with_zeros, without_empty_columns
from separatrix.models.logistic.firth import FirthPenalty
from separatrix.models.logistic.held_intercept import joined, split, with_column_of_ones
from separatrix.models.objective_values import ObjectiveValues
from separatrix.models.progress import Progress
from separatrix.models.scikit_learn import Interval, RegisteredName, StrOptions
from separatrix.models.sparse_coefficients import SparseCoefficients
from separatrix.models.stopwatch import Stopwatch
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.solution import Solution
from separatrix.result import Status
from separatrix.settings import outside, threads_of
from separatrix.solvers.registry import method_names, minimise

# Scores beyond this mean probabilities that data rarely support: time to ask whether the classes are separable.
_SUSPICIOUS = 10.0
PARAMETERS: dict[str, Any] = {
    "penalty": [StrOptions({"auto", "l1", "l2", "elasticnet", "firth"}), None],
    "C": [Interval(Real, 0, None, closed="right")],
    "l1_ratio": [Interval(Real, 0, 1, closed="both"), None],
    "dual": ["boolean"],
    "tol": [Interval(Real, 0, None, closed="left")],
    "fit_intercept": ["boolean"],
    "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "random_state": ["random_state"],
    "solver": [RegisteredName(method_names)],
    "max_iter": [Interval(Integral, 0, None, closed="left")],
    "verbose": ["verbose"],
    "warm_start": ["boolean"],
    "n_jobs": [None, Integral],
    "multi_class": [StrOptions({"softmax", "reference", "auto", "multinomial"})],
    "baseline": "no_validation",
    "prior": "no_validation",
    "penalty_factors": ["array-like", None],
    "bounds": "no_validation",
    "penalize_intercept": ["boolean"],
    "eta0": [Interval(Real, 0, None, closed="neither"), None],
    "record": ["boolean"],
}


class SeparationWarning(ConvergenceWarning):  # type: ignore[misc]  # scikit-learn ships no types
    """The likelihood has no maximum: some coefficients are infinite."""


class LogisticRegression(FromFormula, FirthPenalty, WithEffects, Probabilities, SparseCoefficients, ObjectiveValues):
    """Logistic regression with a proof of optimality, for two and more classes.

    Parameters
    ----------
    penalty : {"auto", "l2", "l1", "elasticnet", "firth", None}, default="auto"
        "auto" lets `C` and `l1_ratio` decide. "l2" and "l1" set l1_ratio to 0 and 1, ``None`` sets C to infinity.
        "firth" is Jeffreys' prior: finite coefficients even for separable data (two classes, no C).
    C : float, default=1.0
        Inverse strength of the penalty; ``np.inf`` for maximum likelihood.
    l1_ratio : float, default=0.0
        Share of the absolute values in the penalty: 0 is L2, 1 is L1.
    dual : bool, default=False
        Accepted for compatibility with scikit-learn; the optimum is the same.
    tol : float, default=1e-4
        The fit stops when the proven gap to the optimum is at most `tol` times the objective (or `tol`, when the
        objective is below 1). Maximum likelihood (C=inf) is never fitted to less than 1e-10.
    fit_intercept : bool, default=True
        Whether to fit an intercept, without a penalty unless `penalize_intercept` asks for one.
    intercept_scaling : float, default=1
        With `penalize_intercept`: the penalty is on the intercept divided by this.
    class_weight : dict or "balanced", optional
        Factors of the weights of the rows of each class.
    random_state : optional
        Accepted for compatibility with scikit-learn; no result depends on chance.
    solver : str, default="auto"
        "newton", "irls", "lbfgs", "newton-cg", "prox_newton", "gradient", "sgd" or "dual"; "auto" takes the one that
        `separatrix.solvers.choose.choose_solver` names. scikit-learn's other names are understood.
    max_iter : int, default=100
        Limit on the number of steps.
    verbose : int, default=0
        Positive: report every step.
    warm_start : bool, default=False
        Start from the previous coefficients.
    n_jobs : int, optional
        Threads; by default those of `separatrix.config`.
    multi_class : {"softmax", "reference"}, default="softmax"
        For more than two classes: one vector per class, or one for every class but the baseline.
    baseline : label, optional
        The class whose score is 0 when multi_class="reference"; the first one by default.
    prior : (mean, covariance), optional
        A Gaussian prior on the coefficients in place of `C`: numbers, one per column, or a full covariance matrix.
    penalty_factors : array-like of shape (n_features,), optional
        Factors of the penalty of each column; 0 leaves a column without one.
    bounds : (lower, upper), optional
        Limits of the coefficients: numbers, or one per column.
    penalize_intercept : bool, default=False
        Whether the intercept is penalised, as in scikit-learn's "liblinear"; a `prior` of arrays then has its entry at the end.
    eta0 : float, optional
        For solver="gradient" and "sgd": plain steps w ← w + eta0 (Σ (y − p) x − w/C) of this fixed rate in the units of the
        columns, over all rows or one at a time; too large a rate ends with the status DIVERGED. Without it both are scaled.
    record : bool, default=False
        Whether to keep the coefficients of every step in ``fit_.history``; with solver="sgd" and `eta0` those after every row.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : ndarray of shape (1,)
        Steps of the solver.
    solver_ : str
        The solver that was used.
    fit_ : Fit
        Status, passes over the data, and the certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(tol=1e-8).fit(X, y)
    >>> model.fit_.certificate.relative_gap < 1e-8
    True
    """

    class_names: NDArray[Any] | None = None
    """Names of the classes in messages, where a reduction from more classes fits this model on 0 and 1."""
    _of_some_fits: ClassVar[tuple[str, ...]] = ("separability_",)

    _keeps_single = True
    _parameter_constraints = PARAMETERS

    def __init__(
        self,
        penalty: Literal["auto", "l1", "l2", "elasticnet", "firth"] | None = "auto",
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        dual: bool = False,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: ClassWeight = None,
        random_state: Any = None,
        solver: str = "auto",
        max_iter: int = 100,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        multi_class: str = "softmax",
        baseline: Any = None,
        prior: tuple[ArrayLike, ArrayLike] | None = None,
        penalty_factors: ArrayLike | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        penalize_intercept: bool = False,
        eta0: float | None = None,
        record: bool = False,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.multi_class = multi_class
        self.baseline = baseline
        self.prior = prior
        self.penalty_factors = penalty_factors
        self.bounds = bounds
        self.penalize_intercept = penalize_intercept
        self.eta0 = eta0
        self.record = record

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        checkpoint: Checkpoint = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
            A source (see `separatrix.scan_parquet`) carries its own targets and weights.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as the row standing twice, 0 the same as its not being there.
        offset : array-like of shape (n_samples,) or (n_samples, n_classes), optional
            Added to the scores of the rows while fitting; predictions are made without it.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, checkpoint, offset=offset)

    def _solve(self, source: Source, call: FitCall) -> None:
        if len(self.classes_) == 1:
            self.n_iter_, self.solver_ = np.zeros(1, dtype=np.int32), "closed form"
            self._constant(source, call.watch)
            return
        offset = call.options["offset"]
        shift = None if offset is None else real_numbers(offset, "offset")
        limits: dict[str, Any] = {"tol": self._tolerance(), "max_iter": int(self.max_iter), "record": bool(self.record)}
        source, columns = without_empty_columns(source) if self._leaves_zeros(call) else (source, None)
        with threads_of(self.n_jobs), Progress(type(self).__name__, int(self.verbose)) as progress:
            if self.penalty == "firth":
                problem = self._problem(source, shift, np.inf)
                solution = self._maximise_firth(problem, source)
            else:
                problem = self._problem(source, shift)
                limits["rate"] = None if self.eta0 is None else float(self.eta0)
                solution = minimise(problem, self.solver, self._start(problem, call), callback=progress, **limits)
            self._unpack(solution, problem, call.watch, source)
            self._diagnose(source)
            read, self._inference = source.passes, self._gathered(solution.theta, problem, source)
            if columns is not None:
                self.coef_ = with_zeros(self.coef_, columns, self.n_features_in_)
                every = with_zeros(self._inference.coef, columns, self.n_features_in_)
                self._inference = replace(self._inference, coef=every)
            self.fit_ = replace(self.fit_, passes=self.fit_.passes + source.passes - read)
        self._place_classes(source)

    def _leaves_zeros(self, call: FitCall) -> bool:
        """Whether columns without entries certainly have coefficients of 0, and nobody looks at the way there."""
        plain = all(one is None for one in (self.prior, self.bounds, self.penalty_factors, call.before))
        plain = plain and self.solver == "auto" and self.penalty != "firth" and np.isfinite(self._strength()[0])
        return bool(plain and not (self.record or self._held_intercept))

    def _label(self, source: Source) -> Source:
        return self._weighted(super()._label(source))

    def _weighted(self, source: Source) -> Source:
        if self.class_weight is None:
            return source
        assert source.classes is not None
        factors = class_factors(self.class_weight, source.classes, class_counts(source))
        assert factors is not None
        return Reweighted(source, factors)

    def _strength(self) -> tuple[float, float]:
        """(C, l1_ratio) as the older parameter `penalty` may overrule them."""
        ratio = 0.0 if self.l1_ratio is None else float(self.l1_ratio)
        ratio = {"l1": 1.0, "l2": 0.0}.get(self.penalty or "", ratio)
        return (np.inf if self.penalty is None else float(self.C)), ratio

    def _baseline(self) -> int | None:
        if self.multi_class != "reference":
            if self.baseline is not None:
                raise ValueError("baseline names the class of multi_class='reference'; set that too.")
            return None
        if self.baseline is None:
            return 0
        self._code(self.baseline)
        found = np.flatnonzero(self._counted == self.baseline)
        if not len(found):
            raise ValueError(f"baseline={self.baseline!r} names a class without rows of positive weight; name another.")
        return int(found[0])

    def _problem(self, source: Source, offset: Float | None, C: float | None = None) -> LinearProblem:
        strength, ratio = self._strength()
        options: dict[str, Any] = {
            "C": strength if C is None else C,
            "l1_ratio": ratio,
            "fit_intercept": bool(self.fit_intercept),
            "baseline": self._baseline(),
            "penalty_factors": self.penalty_factors,
            "prior": self.prior,
            "bounds": self.bounds,
            "offset": offset,
            "pivoted": self.penalty != "firth" and self.eta0 is None,
            "as_given": self.eta0 is not None,
        }
        if self._held_intercept:
            source, options = with_column_of_ones(source, options, float(self.intercept_scaling))
        return LinearProblem.of(source, **options)

    @property
    def _held_intercept(self) -> bool:
        """Whether the intercept is one more coefficient under the penalty."""
        penalised = self.prior is not None or not np.isinf(self._strength()[0])
        return bool(self.penalize_intercept and self.fit_intercept and penalised and self.penalty != "firth")

    def _problem_of(self, source: Source) -> LinearProblem:
        if self.penalty == "firth" or len(self._counted) == 1:
            raise ValueError("The objective is known for two or more classes and penalties other than 'firth'.")
        return self._problem(self._weighted(source), None)

    def _points_of(self, coef: Float, intercept: Float) -> tuple[Float, Float]:
        found = self._scores_of(coef, intercept)
        return joined(*found, float(self.intercept_scaling)) if self._held_intercept else found

    def _start(self, problem: LinearProblem, call: FitCall) -> Float:
        """θ of the model before, where it was of the same columns and classes; zeros else."""
        if call.before is None:
            return problem.start()
        classes, coef, intercept = call.before
        if coef.shape[1] != self.n_features_in_ or not np.array_equal(classes, self.classes_):
            return problem.start()
        return problem.start(*self._points_of(coef, intercept))

    def _tolerance(self) -> float:
        """`tol`, and less for maximum likelihood, whose coefficients are read beside their standard errors."""
        return float(self.tol) if not np.isinf(self._strength()[0]) or self.prior is not None else min(self.tol, 1e-10)

    def _rule_of(self, coef: Float, intercept: Float) -> tuple[Float, Float]:
        """Coefficients and intercepts of the classes, from those of the problem: the inverse of `_points_of`."""
        if self._held_intercept:
            coef, intercept = split(coef, float(self.intercept_scaling))
        return self._expand(coef, intercept)

    def _expand(self, coef: Float, intercept: Float) -> tuple[Float, Float]:
        """One row a class: the baseline's is zero."""
        code = self._baseline()
        if code is None or len(self.classes_) == 2:
            return coef, intercept
        return np.insert(coef, code, 0.0, axis=0), np.insert(intercept, code, 0.0)

    def _scores_of(self, coef: Float, intercept: Float) -> tuple[Float, Float]:
        """Coefficients of the scores that are fitted: with a baseline, differences from its own."""
        code = self._baseline()
        if code is None or len(coef) == 1:
            return coef, intercept
        return np.delete(coef - coef[code], code, axis=0), np.delete(intercept - intercept[code], code)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class &= self.penalty != "firth"
        return tags

    def _unpack(self, solution: Solution, problem: LinearProblem, watch: Stopwatch, source: Source) -> None:
        published = problem.publish(solution, self._tolerance())
        self.coef_, self.intercept_ = self._rule_of(published.coef, published.intercept)
        self.n_iter_, self.solver_ = np.array([solution.iterations], dtype=np.int32), solution.solver
        self._steepest = solution.steepest
        fit = watch.fit(published.status, source.passes, problem.detail, published.certificate, solution.iterations)
        fit.trace.extend(solution.trace)
        path = problem.history(solution, published.coef, published.intercept)
        if path is not None:
            every = [self._rule_of(*point) for point in zip(path.coef, path.intercept, strict=True)]
            path = replace(path, coef=np.stack([w for w, _ in every]), intercept=np.stack([b for _, b in every]))
        self.fit_ = replace(fit, history=path)

    def _warn(self) -> None:
        if self.fit_.status is Status.SEPARATED:
            warnings.warn(self.fit_.detail, SeparationWarning, stacklevel=outside())
        self._warn_if_short()

    def _diagnose(self, source: Source) -> None:
        """On scores that grow without bound: are the classes separable?"""
        C, _ = self._strength()
        unpenalised = np.isinf(C) and self.prior is None and self.bounds is None and self.penalty != "firth"
        if unpenalised and self._steepest > _SUSPICIOUS and self.fit_.status is not Status.INTERRUPTED:
            from separatrix.models.logistic.diagnosis import diagnosed  # a linear programme, which few fits need

            self.fit_, verdict = diagnosed(self.fit_, source, bool(self.fit_intercept), self.class_names)
            if verdict is not None:
                self.separability_ = verdict
