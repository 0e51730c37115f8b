"""The least-squares classifier: regress the class codes on x, predict the largest.

    min_{W,b}  Σ sᵢ‖tᵢ − Wxᵢ − b‖² + α‖W‖²,      t = ±1 (one column for two classes, else one per class)

With α = 0 and two classes W is Fisher's direction. With three or more classes a class between others can be masked: its
score is nowhere the largest. Reference: ESL 2nd ed., section 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain, islice
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import compute_sample_weight

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.checks import check_unmasked
from separatrix.data.device.tensors import vector_or_host
from separatrix.data.source import cut_finer
from separatrix.data.views import Coded, Signed
from separatrix.errors import Message
from separatrix.geometry import ScoreForm
from separatrix.models.base import FitCall
from separatrix.models.class_weights import class_counts, class_factors
from separatrix.models.counted_classes import check_class_weight, check_some_class, check_two_classes, warn_of_one_class
from separatrix.models.generative import MomentEstimator, labelled_by_all
from separatrix.models.least_squares.task import (
    NO_STATISTIC,
    SOLVERS,
    LeastSquaresTask,
    StepCount,
    describe,
    fit_by_cg,
    method_for,
    polish,
    verdict,
)
from separatrix.models.linear_rule import LinearRule
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.models.stopwatch import Stopwatch
from separatrix.result import Fit, Status
from separatrix.settings import one_blas_thread
from separatrix.solvers.least_squares.normal_equations import LeastSquaresSolution
from separatrix.statistics.gram import Gram, NormalEquations, class_normal_equations
from separatrix.statistics.moments import Form
from separatrix.statistics.triangular import Triangular

# Entries that are looked at together for a class that is predicted, and rows for each class that are looked at first.
_LOOKED_AT = 1 << 19
_FIRST_ROWS = 32


class RidgeClassifier(StepCount, LinearRule, MomentEstimator):
    """Least-squares classifier with a ridge penalty or a norm constraint, from one pass over the data.

    Drop-in for scikit-learn's, with `partial_fit`, `merge`, files, `max_norm` and the diagnosis of masked classes on top.
    `fit` also takes several labels per row: y is then a matrix of zeros and ones, (n_samples, n_labels), scores have one column
    per label, and the labels with a positive score are predicted.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty; 0 is plain least squares.
    fit_intercept : bool, default=True
        The intercept is never penalised.
    copy_X : bool, default=True
        Kept for compatibility: X is never changed and never copied.
    max_iter : int, optional
        Limit on the steps of "cg"; 1000 by default.
    tol : float, default=1e-4
        For "cg": the fit stops when the gap is proven to be at most tol² times the objective. The closed form is exact.
    class_weight : dict or "balanced", optional
        Factors of the weights of each class; "balanced" makes all classes weigh the same.
    solver : str, default="auto"
        "gram", "cg" or "auto", as in `Ridge`. scikit-learn's names are accepted and mean "auto".
    positive : bool, default=False
        Whether all coefficients must be ≥ 0.
    random_state : optional
        Kept for compatibility: nothing here is random.
    max_norm : float, optional
        The norm-ball form: least squares under ‖W‖ ≤ max_norm (Frobenius) instead of a penalty. `alpha` is then not used; the
        multiplier that was found is ``alpha_``.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    alpha_ : float
        The penalty, given or found.
    masked_classes_ : ndarray
        Classes that the fitted rule never predicts on its training data (after `fit`).
    classes_ : ndarray
    solver_ : str
        What solved it: "gram" or "cg".
    fit_ : Fit

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from separatrix import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RidgeClassifier().fit(X, y)
    >>> round(model.score(X, y), 4)
    0.9596
    """

    alpha_: float
    masked_classes_: NDArray[Any]
    _multi_label = False

    _keeps_single = True
    _parameter_constraints: dict[str, list[Any]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "copy_X": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "solver": [StrOptions(SOLVERS)],
        "positive": ["boolean"],
        "random_state": ["random_state"],
        "max_norm": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        max_norm: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.max_norm = max_norm

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    _of_some_fits: ClassVar[tuple[str, ...]] = ("_moments", "masked_classes_")

    def _read_rows(self, call: FitCall) -> Source:
        check_unmasked(call.y, "y")
        X, y = call.X, None if call.y is None else vector_or_host(call.y)
        if isinstance(X, Source) and y is None and X.target_ndim == 2:
            y = X.valued().targets()
        self._multi_label = y is not None and y.ndim == 2 and y.shape[1] > 1
        if y is not None and self._multi_label:
            return self._read_indicator(X, y, call.sample_weight)
        return super()._read_rows(replace(call, y=y))

    def _label(self, source: Source) -> Source:
        return source.valued() if self._multi_label else labelled_by_all(source)

    def _solve(self, source: Source, call: FitCall) -> None:
        if self._multi_label:
            self._solve_labels(source, call.watch)
        elif not (self._iterates(source) and self._solve_by_cg(source, call.watch)):
            super()._solve(source, call)

    def _add_rows(self, call: FitCall) -> None:
        if hasattr(self, "fit_") and not hasattr(self, "_moments"):
            raise ValueError(NO_STATISTIC.format(verb="add to"))
        super()._add_rows(call)

    def _check_statistic(self) -> None:
        super()._check_statistic()
        if not hasattr(self, "_moments"):
            raise ValueError(NO_STATISTIC.format(verb="merge"))

    def reads_statistic(self, X: Any) -> bool:
        """Whether a fit to X is one pass and algebra on what it adds up: not where conjugate gradients are used."""
        return super().reads_statistic(X) and not self._iterates(X)

    def _iterates(self, X: Any) -> bool:
        if self.positive or self.max_norm is not None:
            return False
        classes = getattr(X, "classes", None)  # of a labelled source
        n_targets = 1 if classes is None or len(classes) == 2 else len(classes)
        return method_for(self.solver, X, self.alpha > 0, n_targets) != "gram"

    @property
    def solver_(self) -> str:
        """What solved it: "gram" or "cg"."""
        if not hasattr(self, "fit_"):
            raise AttributeError("solver_ is there after fit.")
        return "gram" if hasattr(self, "_moments") else "cg"

    def _form(self) -> Form:
        return "pooled" if self.class_weight is None else "per_class"

    def _second_pass_parameter(self) -> str:
        return "solver='cg'" if self.solver == "cg" else ""

    def _factors(self, counts: Float) -> Float | None:
        check_class_weight(self.class_weight, self.classes_)
        return class_factors(self.class_weight, self.classes_, counts)

    def _weights_of_classes(self) -> Float:
        counts: Float = self._moments.counts
        factors = self._factors(counts)
        return counts if factors is None else counts * factors

    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        factors = self._factors(self._moments.counts)
        equations = class_normal_equations(self._moments, factors)
        coded = None if source is None else Coded(source, self._code_table(), factors)
        solution = self._solve_equations(equations, coded)
        self._certificate = solution.certificate
        self._leave_out(self._weights_of_classes() > 0)
        if source is not None:
            self.masked_classes_ = self._find_masked(source)
        elif hasattr(self, "masked_classes_"):
            del self.masked_classes_  # of the rows so far only the statistic is left
        status, detail = verdict(solution)
        return status, Message.joined(detail, self._masking_note())

    def _penalty(self) -> float:
        return float(self.alpha)

    def _code_table(self) -> Float:
        """Targets ±1 of every class: one column for two classes, else one per class."""
        table = 2.0 * np.eye(len(self.classes_)) - 1.0
        return table[:, 1:] if len(self.classes_) == 2 else table

    def _solve_equations(self, equations: NormalEquations, coded: Source | None) -> LeastSquaresSolution:
        """Read the statistic, or, where that does not resolve the columns, the rows again with their coded targets."""
        if self.max_norm is not None and self.positive:
            raise ValueError("max_norm cannot be combined with positive=True.")
        penalties = np.full(equations.cross.shape[1], self._penalty())
        task = LeastSquaresTask(penalties, self.fit_intercept, self.positive, self.max_norm, self._dtype)
        centre = np.concatenate([equations.x_mean, equations.y_mean])
        if not self.fit_intercept:
            equations = equations.without_intercept()
        solution = task.solve(equations)
        if coded is not None and not solution.resolved:
            if not equations.scatter.thin:
                equations = task.read(Triangular.of_source(coded, centre))
                solution = task.solve(equations)
            solution = polish(task, solution, equations, coded)
        self.alpha_ = self._penalty() if self.max_norm is None else solution.multiplier
        self._set(solution.coef, solution.intercept)
        return solution

    def _set(self, coef: Float, intercept: Float) -> None:
        self.coef_ = coef.astype(self._dtype, copy=False)
        self.intercept_ = (intercept if self.fit_intercept else np.zeros(len(coef))).astype(self._dtype, copy=False)

    def _leave_out(self, counted: NDArray[np.bool_]) -> None:
        """Intercepts by which a class without weight is never chosen."""
        self._chosen_from = counted
        if counted.all():
            return
        if len(counted) == 2:
            self.coef_ = np.zeros_like(self.coef_)
            self.intercept_ = np.full_like(self.intercept_, np.inf if counted[1] else -np.inf)
        else:
            self.coef_ = np.where(counted[:, None], self.coef_, 0.0).astype(self._dtype, copy=False)
            self.intercept_ = np.where(counted, self.intercept_, -np.inf).astype(self._dtype, copy=False)

    def _solve_by_cg(self, source: Source, watch: Stopwatch) -> bool:
        """Whether conjugate gradients did it: where they are only tried, an ill-conditioned problem is left to the rest."""
        coded, factors, counts = self._coded(source)
        self.alpha_ = float(self.alpha)
        penalties = np.full(self._code_table().shape[1], self.alpha_)
        found = fit_by_cg(
            coded, penalties, self.fit_intercept, self.tol**2, self.max_iter, watch, self._dtype, self.solver
        )
        if found is not None:
            self._take(found, source, counts if factors is None else counts * factors)
        return found is not None

    def _coded(self, source: Source) -> tuple[Source, Float | None, Float]:
        """Labelled rows with coded targets, the factors of the weights of the classes, and these weights without them."""
        assert source.classes is not None
        check_two_classes(source.classes)
        self.classes_, self._dtype, self._pending = source.classes, source.dtype, ""
        counts = class_counts(source)
        factors = self._factors(counts)
        counted = self.classes_[(counts if factors is None else counts * factors) > 0]
        check_some_class(counted)
        warn_of_one_class(counted)
        return Coded(source, self._code_table(), factors), factors, counts

    def _take(self, found: tuple[Float, Float, Fit], source: Source, weights: Float) -> None:
        """Publish the answer for coded targets, for classes of these weights."""
        coef, intercept, fit = found
        self._set(coef, intercept)
        self._leave_out(weights > 0)
        self.masked_classes_ = self._find_masked(source)
        self.fit_ = replace(fit, detail=self._masking_note())

    def _read_indicator(self, X: Any, y: NDArray[Any], sample_weight: ArrayLike | None) -> Source:
        """Rows with several labels each, as a matrix of zeros and ones."""
        if not np.isin(y, (0, 1)).all():
            raise ValueError("y has several columns, so it must be a label indicator of zeros and ones.")
        carried = isinstance(X, Source)  # with its own targets and weights
        if self.class_weight is not None:
            if carried:
                raise ValueError(
                    "class_weight for several labels per row needs arrays; give the source weights instead."
                )
            weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
            sample_weight = weights * self._label_factors(y, weights)
        self.classes_ = np.arange(y.shape[1])
        return self._read(X, None if carried else y, sample_weight, reset=True, multi_output=True)

    def _solve_labels(self, source: Source, watch: Stopwatch) -> None:
        self._dtype, self._pending = source.dtype, ""
        signed = Signed(source)
        solution = self._solve_equations(Gram.of_source(signed).normal_equations(), signed)
        self.fit_ = describe(solution, source.passes, watch)

    def _label_factors(self, y: NDArray[Any], weights: Float) -> Float:
        """Product over the labels of the factor of having it or not."""
        if not isinstance(self.class_weight, str):
            return np.asarray(compute_sample_weight(self.class_weight, y))
        factors = np.ones(len(y))
        for label in y.T:
            shares = np.bincount(label.astype(np.intp), weights, 2)
            factors *= (shares.sum() / ((shares > 0).sum() * np.where(shares > 0, shares, 1.0)))[label.astype(np.intp)]
        return factors

    def _find_masked(self, source: Source) -> NDArray[Any]:
        """Classes never predicted on the rows; stops reading as soon as every class has been."""
        unseen = self._chosen_from.copy()
        W, b = self.coef_.T.astype(np.float64), self.intercept_
        stored = source.n_features if source.entries is None else 1 + source.entries // max(1, source.n_rows or 1)
        rows = min(4096, max(32, _LOOKED_AT // stored))
        first = islice(cut_finer(source.blocks(), min(rows, _FIRST_ROWS * len(unseen))), 1)  # most often enough
        for block in chain(first, cut_finer(source.blocks(), rows)):
            with one_blas_thread():
                scores = block.counted().matvec(W) + b
            codes = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
            unseen[codes] = False
            if not unseen.any():
                return self.classes_[unseen]
        source.passes += 1
        return self.classes_[unseen]

    def _masking_note(self) -> str:
        masked = getattr(self, "masked_classes_", ())
        if len(masked) == 0:
            return ""
        return Message.of(
            "The rule never predicts ",
            Message.listing(masked[:5], " …" if len(masked) > 5 else "", plain=True),
            " on its training data: least squares masks classes that lie between others. Use LinearDiscriminantAnalysis, or "
            "add quadratic terms.",
        )

    def score_form(self) -> ScoreForm:
        form = super().score_form()
        return replace(form, link="labels") if getattr(self, "_multi_label", False) else form

    def decision_function(self, X: Any) -> Float:
        if self._multi_label:
            return self._as_given(X, self._scores(X))
        return super().decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        if self._multi_label:
            return (self._scores(X) > 0).astype(np.intp)
        return super().predict(X)
