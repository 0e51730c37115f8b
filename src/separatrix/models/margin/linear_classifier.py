"""One linear classifier for every margin loss and penalty.

    min  C Σ sᵢ ℓ(ỹᵢ(wᵀxᵢ + b)) + (1−ρ)/2 ‖w‖² + ρ‖w‖₁         ỹ = ±1;  ρ = 0 for "l2", 1 for "l1", l1_ratio for "elasticnet"

    logistic  log(1 + e⁻ᵐ)        hinge  max(0, 1−m)          squared hinge  max(0, 1−m)²       squared  ½(1−m)²
    Huberised  squared hinge with a straight tail below −1     perceptron  max(0, −m)            exponential  e⁻ᵐ
    sigmoid  1/(1 + eᵐ)           sigmoid squared  1/(1 + eᵐ)² = (σ(η) − y)²

The intercept is never penalised. More than two classes have one such problem each, the class against the rest.
Reference: Hastie, Tibshirani, Friedman (2009), The Elements of Statistical Learning, section 10.6 and table 12.1.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import check_random_state

from separatrix.data import Source
from separatrix.data.affine import Intercept
from separatrix.data.block import Float
from separatrix.data.labels import shown
from separatrix.data.views import Regrouped, Reweighted
from separatrix.errors import Message
from separatrix.models.base import FitCall
from separatrix.models.class_weights import ClassWeight, class_counts, class_factors
from separatrix.models.logistic.logistic_regression import SeparationWarning
from separatrix.models.objective_values import ObjectiveValues
from separatrix.models.progress import Progress
from separatrix.models.scikit_learn import Interval, RegisteredName, StrOptions
from separatrix.models.sparse_coefficients import SparseCoefficients
from separatrix.models.stopwatch import Stopwatch
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.margin_losses import MARGIN_LOSSES
from separatrix.objectives.solution import Solution
from separatrix.result import Certificate, Fit, Status
from separatrix.settings import outside, threads_of
from separatrix.solvers.registry import method_names, minimise

# Scores beyond this mean probabilities that data rarely support: time to ask whether the classes are separable.
_SUSPICIOUS = 10.0
# Losses that are positive everywhere: without a penalty, classes that can be separated leave them without an optimum.
_UNBOUNDED = ("logistic", "exponential")
# Scores of about this size are drawn where a fit begins anew.
_DRAWN = 3.0


class LinearClassifier(SparseCoefficients, ObjectiveValues):
    """A linear rule by any margin loss under any of the usual penalties, with a proof of optimality.

    Parameters
    ----------
    loss : {"logistic", "hinge", "squared_hinge", "squared", "perceptron", "huberised", "exponential", "sigmoid", \
"sigmoid_squared"}, default="squared_hinge"
        "sigmoid" and "sigmoid_squared" are not convex: they get the stationary point next to the optimum of "logistic", or the
        best of those from `n_init` starts, and no proof.
        "perceptron" vanishes at w = 0, which is therefore its exact optimum under any penalty.
    penalty : {"l2", "l1", "elasticnet", None}, default="l2"
        ½‖w‖², ‖w‖₁, or l1_ratio ‖w‖₁ + (1 − l1_ratio) ½‖w‖².
    C : float, default=1.0
        Inverse strength of the penalty; ``np.inf`` is the same as penalty=None.
    l1_ratio : float, default=0.5
        For "elasticnet": the share of the absolute values.
    fit_intercept : bool, default=True
        Whether to fit an intercept, without a penalty.
    class_weight : dict or "balanced", optional
        Factors of the weights of the rows of each class.
    tol : float, default=1e-4
        The fit stops when the proven gap to the optimum is at most `tol` times the objective (or `tol`, when the
        objective is below 1). The logistic loss without a penalty is never fitted to less than 1e-10.
    max_iter : int, default=1000
        Limit on the number of steps, of each machine when there are several.
    solver : {"auto", "newton", "lbfgs", "newton-cg", "prox_newton", "gradient", "sgd"}, default="auto"
        What minimises the smooth problems; another takes its place where the loss or the penalty is not smooth enough for it.
    warm_start : bool, default=False
        Start from the previous coefficients.
    verbose : int, default=0
        Positive: report every step.
    n_jobs : int, optional
        Threads; by default those of `separatrix.config`.
    random_state : optional
        Of the starts beyond the first; nothing else depends on chance.
    n_init : int, default=1
        For losses that are not convex: so many starts, the first at the optimum of "logistic", the others at random. The
        lowest objective is kept, and ``fit_.detail`` says how they ended.
    record : bool, default=False
        Whether to keep the coefficients of every step in ``history`` of the records in ``machines_``, and for two classes in
        ``fit_.history``.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : ndarray of shape (1,) or (n_classes,)
        Steps of each machine.
    solver_ : str
        The solver that was used.
    machines_ : list of Fit
        The record of each machine: one for two classes, else one per class.
    fit_ : Fit
        Status, passes over the data, and the certificate. For several machines the worst status, and the sums of their
        objectives and of their gaps.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from separatrix import LinearClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearClassifier("hinge", "l1", C=0.1).fit(X / X.std(axis=0), y)
    >>> bool(model.fit_.certificate.relative_gap <= 1e-4), int((model.coef_ == 0).sum()) > 15
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [RegisteredName(lambda: set(MARGIN_LOSSES))],
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "C": [Interval(Real, 0, None, closed="right")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "solver": [RegisteredName(method_names)],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "record": ["boolean"],
    }

    def __init__(
        self,
        loss: str = "squared_hinge",
        penalty: Literal["l2", "l1", "elasticnet"] | None = "l2",
        *,
        C: float = 1.0,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        solver: str = "auto",
        warm_start: bool = False,
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: Any = None,
        n_init: int = 1,
        record: bool = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.n_init = n_init
        self.record = record

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.loss == "perceptron"  # a constant rule
        return tags

    def _solve(self, source: Source, call: FitCall) -> None:
        self.machines_: list[Fit] = []
        self._starts = ""
        if len(self.classes_) == 1:
            self.n_iter_, self.solver_ = np.zeros(1, dtype=np.int32), "closed form"
            self._constant(source, call.watch)
            return
        factors = class_factors(self.class_weight, self.classes_, class_counts(source))
        if factors is not None:
            source = Reweighted(source, factors)
        several = len(self.classes_) > 2
        m, d = len(self.classes_) if several else 1, self.n_features_in_
        starts: list[tuple[Float, Float] | None] = [None] * m
        before = call.before
        if before is not None and before[1].shape == (m, d) and np.array_equal(before[0], self.classes_):
            starts = list(zip(before[1][:, None], before[2][:, None], strict=True))
        self.coef_, self.intercept_ = np.zeros((m, d)), np.zeros(m)
        with threads_of(self.n_jobs):
            for k in range(m):
                machine = Regrouped.one_against_rest(source, k) if several else source
                self.coef_[k], self.intercept_[k], fit = self._machine(machine, starts[k], m)
                self.machines_.append(fit)
        self.n_iter_ = np.maximum([fit.iterations for fit in self.machines_], 1).astype(np.int32)
        self.fit_ = self._joined(call.watch, source.passes)
        self._place_classes(source)

    def _strength(self) -> tuple[float, float]:
        """(C, share of the absolute values)."""
        if self.penalty is None:
            return np.inf, 0.0
        return float(self.C), {"l2": 0.0, "l1": 1.0}.get(self.penalty, float(self.l1_ratio))

    def _machine(self, source: Source, start: tuple[Float, Float] | None, m: int) -> tuple[Float, float, Fit]:
        """Coefficients, intercept and record of one of m problems of two classes."""
        watch = Stopwatch()
        watch.start_at(source.passes)
        C, ratio = self._strength()
        problem = self._problem(source, C, ratio)
        # Gaps below tol/2 · max(1/m, F) sum to less than tol · max(1, ΣF).
        problem = problem.with_objective(unit=problem.objective.unit / m)
        interrupted = bool(self.machines_) and self.machines_[-1].status is Status.INTERRUPTED
        tol = self.tol / min(m, 2)
        solution = self._minimise(problem, problem.start(*start or ()), tol, interrupted)
        if interrupted:
            solution = replace(solution, status=Status.INTERRUPTED)
        published = problem.publish(solution, tol)
        status, detail = self._verdict(replace(solution, status=published.status), source)
        detail = Message.joined(detail, problem.detail)
        fit = watch.fit(status, source.passes, detail, published.certificate, solution.iterations)
        fit.trace.extend(solution.trace)
        fit = replace(fit, history=problem.history(solution, published.coef, published.intercept))
        coef, intercept = published.coef[0], float(published.intercept[0])
        return (coef[:-1], float(coef[-1]), fit) if len(coef) > self.n_features_in_ else (coef, intercept, fit)

    def _intercept_scaling(self) -> float | None:
        """The intercept is penalised as the weight of a column of this value; ``None``: it is free."""
        return None

    def _problem(self, source: Source, C: float, ratio: float) -> LinearProblem:
        scaling, loss = self._intercept_scaling(), MARGIN_LOSSES[self.loss]
        if scaling is None or not self.fit_intercept:
            intercept = bool(self.fit_intercept)
            return LinearProblem.of(source, loss, C=C, l1_ratio=ratio, fit_intercept=intercept, pivoted=True)
        # ½(b/s)² and |b/s|: a column of ones whose weight b has its own factor of the penalty.
        factors = np.append(np.ones(source.n_features), scaling ** (-1.0 if ratio else -2.0))
        factored: dict[str, Any] = {"fit_intercept": False, "penalty_factors": factors}
        return LinearProblem.of(Intercept(source), loss, C=C, l1_ratio=ratio, **factored)

    def _problem_of(self, source: Source) -> LinearProblem:
        if len(self._counted) != 2:
            raise ValueError(
                "Each class has a problem of its own: the objective is known at any coefficients for two classes."
            )
        factors = class_factors(self.class_weight, self.classes_, class_counts(source))
        return self._problem(source if factors is None else Reweighted(source, factors), *self._strength())

    def _minimise(self, problem: LinearProblem, theta: Float, tol: float, interrupted: bool) -> Solution:
        max_iter = 0 if interrupted else int(self.max_iter)
        if self.loss == "perceptron":
            self.solver_ = "closed form"
            zero = problem.evaluate(np.zeros_like(theta))  # finds NaN and infinity in X
            certificate = Certificate(0.0, zero.value, "a loss that is nowhere negative vanishes at w = 0")
            return Solution(np.zeros_like(theta), Status.EXACT, certificate, 0, total=zero.total)
        if self.loss in _UNBOUNDED and np.isinf(self._strength()[0]):
            tol = min(tol, 1e-10)  # as LogisticRegression: so far out that separable classes show
        progress = Progress(type(self).__name__, int(self.verbose))
        try:
            limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "record": bool(self.record)}
            found = minimise(problem, self.solver, theta, callback=progress, **limits)
            if self.n_init > 1 and not MARGIN_LOSSES[self.loss].convex:
                found = self._best_of_starts(problem, found, progress, **limits)
        finally:
            progress.close()
        self.solver_ = found.solver
        return found

    def _best_of_starts(self, problem: LinearProblem, first: Solution, callback: Any, **limits: Any) -> Solution:
        """The lowest of the solutions from several starts."""
        random, (m, p) = check_random_state(self.random_state), problem.shape
        size = np.where(problem.sizes > 0, problem.sizes, 1.0) * np.sqrt(p)
        found = [first]
        while len(found) < self.n_init and found[-1].status is not Status.INTERRUPTED:
            start = _DRAWN * random.standard_normal((m, p)) / size
            found.append(minimise(problem, self.solver, start, callback=callback, **limits))
        ends = np.array([one.certificate.objective for one in found]) * problem.units
        least, most = float(ends.min()), float(ends.max())
        near = int((ends <= least + 1e2 * self.tol * max(1.0, abs(least))).sum())
        others = "" if near == len(ends) else f", the others above it, up to {most:.6g}"
        self._starts = f"Of {len(ends)} starts {near} ended at an objective of about {least:.6g}{others}."
        return replace(found[int(ends.argmin())], iterations=sum(one.iterations for one in found))

    def _verdict(self, solution: Solution, source: Source) -> tuple[Status, str]:
        """Why the fit ended, and what that means for these data."""
        if self.loss == "perceptron":
            return Status.EXACT, "The optimum is w = 0, a constant rule, since the perceptron loss vanishes there."
        unbounded = self.loss in _UNBOUNDED and np.isinf(self._strength()[0]) and solution.steepest > _SUSPICIOUS
        if unbounded and solution.status is not Status.INTERRUPTED:
            from separatrix.geometry.recession import ProgrammeFailed
            from separatrix.geometry.separation import separability

            try:
                verdict = separability(source, fit_intercept=bool(self.fit_intercept))
            except ProgrammeFailed as reason:
                return solution.status, f"Whether the classes can be separated is not known. {reason}"
            if verdict.verdict != "overlap":
                return Status.SEPARATED, verdict.message()
        return solution.status, self._starts

    def _joined(self, watch: Stopwatch, passes: int) -> Fit:
        """One record for all machines."""
        fits, labels = self.machines_, self.classes_[-len(self.machines_) :].tolist()
        worst = Status.worst(fit.status for fit in fits)
        named = [label for label, fit in zip(labels, fits, strict=True) if fit.status is worst]
        detail = next(fit.detail for fit in fits if fit.status is worst)
        if len(named) < len(fits):
            more = f" and {len(named) - 5} more" if len(named) > 5 else ""
            which = Message.of("This is so for ", Message.listing(named[:5], more), " against the rest.")
            detail = Message.joined(which, detail)
        proofs = [fit.certificate for fit in fits if fit.certificate is not None]
        certificate = Certificate.together(proofs)
        if len(proofs) > 1:
            certificate = replace(certificate, method=f"sum of {len(proofs)} machines: {certificate.method}")
        joined = watch.fit(worst, passes, detail, certificate, sum(fit.iterations for fit in fits))
        for label, fit in zip(labels, fits, strict=True):
            joined.trace.extend({**entry, "machine": shown(label)} for entry in fit.trace)
        return replace(joined, history=fits[0].history) if len(fits) == 1 else joined

    def _warn(self) -> None:
        if self.fit_.status is Status.SEPARATED:
            warnings.warn(self.fit_.detail, SeparationWarning, stacklevel=outside())
        self._warn_if_short()
