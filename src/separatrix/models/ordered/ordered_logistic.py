"""Logistic regression of ordered classes: the cumulative logit, or proportional odds.

    log P(y ≤ k | x)/P(y > k | x) = θ_k − wᵀx,     θ_0 < θ_1 < …         one vector w, a threshold between neighbours
    min  C Σ sᵢ ℓᵢ + ½‖w‖²                                                C = ∞ is maximum likelihood

Thresholds are not penalised. Two classes make it `LogisticRegression`, with θ_0 = −b.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data import Source
from separatrix.data.block import Block, Codes, Float
from separatrix.data.checks import real_numbers
from separatrix.data.labels import listed
from separatrix.data.views import Regrouped, Reweighted
from separatrix.geometry import Linear, ScoreForm
from separatrix.geometry.cumulative_form import Cumulative, log_shares
from separatrix.inference.ordered import OrderedSummary, ProportionalityTest, brant_test, gather_ordered
from separatrix.inference.summary import check_options, coefficient_rows, wald_limits
from separatrix.models.base import FitCall
from separatrix.models.checkpoint import Checkpoint
from separatrix.models.class_weights import ClassWeight, class_counts, class_factors
from separatrix.models.classifier import Probabilities
from separatrix.models.counted_classes import among_all, check_two_classes, only_class
from separatrix.models.formula import FromFormula
from separatrix.models.logistic.logistic_regression import SeparationWarning
from separatrix.models.ordered.separated import ordered_separation
from separatrix.models.progress import Progress
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.objectives.cumulative_problem import CumulativeProblem
from separatrix.objectives.parameters import checked_offset
from separatrix.result import Certificate, Status
from separatrix.settings import outside, threads_of
from separatrix.solvers.ordered.cumulative import minimise_cumulative

_SUSPICIOUS = 10.0


class OrderedLogisticRegression(FromFormula, Probabilities):
    """Logistic regression of classes that have an order, with a proof of optimality.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty on the coefficients; ``np.inf`` for maximum likelihood.
    order : list of labels, optional
        The classes from the lowest to the highest; by default that of an ordered pandas Categorical, else as they are sorted.
    tol : float, default=1e-4
        The fit stops when the proven gap to the optimum is at most `tol` times the objective (or `tol`, when the
        objective is below 1). Maximum likelihood (C=inf) is never fitted to less than 1e-10.
    class_weight : dict or "balanced", optional
        Factors of the weights of the rows of each class.
    max_iter : int, default=100
        Limit on the number of steps.
    verbose : int, default=0
        Positive: report every step.
    n_jobs : int, optional
        Threads; by default those of `separatrix.config`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Positive where a larger value makes higher classes likelier.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Between neighbours in the order, rising.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels: the columns of `predict_proba`.
    order_ : ndarray of shape (n_classes,)
        The labels from the lowest to the highest.
    n_iter_ : int
    fit_ : Fit
        Status, passes over the data, and the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import OrderedLogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["low", "low", "mid", "low", "mid", "high"]
    >>> model = OrderedLogisticRegression(order=["low", "mid", "high"]).fit(X, y)
    >>> bool(model.coef_[0] > 0), model.predict([[0.0], [9.0]]).tolist()
    (True, ['low', 'high'])
    """

    coef_: Float
    thresholds_: Float
    order_: NDArray[Any]
    _inference: Any
    _of_some_fits: ClassVar[tuple[str, ...]] = ("_inference",)

    _parameter_constraints: dict[str, list[Any]] = {
        "C": [Interval(Real, 0, None, closed="right")],
        "order": ["array-like", None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "verbose": ["verbose"],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        order: ArrayLike | None = None,
        tol: float = 1e-4,
        class_weight: ClassWeight = None,
        max_iter: int = 100,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.order = order
        self.tol = tol
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.verbose = verbose
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on classes that lie in no order
        return tags

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
        y : array-like of shape (n_samples,)
            Class labels; an ordered pandas Categorical brings their order.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as the row standing twice, 0 the same as its not being there.
        offset : array-like of shape (n_samples,), optional
            Added to the score wᵀx of the rows while fitting; predictions are made without it.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, checkpoint, offset=offset)

    def _solve(self, source: Source, call: FitCall) -> None:
        assert source.known_classes is not None and source.classes is not None
        self.order_ = self._ordered(source.known_classes, call.y)
        if len(self.classes_) == 1:
            source.refuse_non_finite()
            self.coef_, self.thresholds_, self.n_iter_ = np.zeros(self.n_features_in_), np.zeros(0), 0
            proof = Certificate(0.0, 0.0, "there is one class to choose from")
            self.fit_ = call.watch.fit(Status.EXACT, source.passes, only_class(self.classes_[0]), proof)
            self._place_classes(source)
            return
        source = self._weighted(source)
        ranks = self._ranks(self.classes_)
        with threads_of(self.n_jobs), Progress(type(self).__name__, int(self.verbose)) as progress:
            problem = self._problem(source, call.options["offset"])
            tol = float(self.tol) if np.isfinite(self.C) else min(float(self.tol), 1e-10)
            solution = minimise_cumulative(
                problem, problem.start(), tol=tol, max_iter=int(self.max_iter), callback=progress
            )
            published = problem.publish(solution, tol)
            self.coef_, self.thresholds_, self.n_iter_ = published.coef, published.thresholds, solution.iterations
            fit = call.watch.fit(
                published.status, source.passes, "", published.certificate, iterations=solution.iterations
            )
            fit.trace.extend(solution.trace)
            suspicious = np.isinf(self.C) and solution.steepest > _SUSPICIOUS
            if suspicious and fit.status is not Status.INTERRUPTED:
                fit = ordered_separation(fit, source, ranks)
            labels = self._counted_order()
            self._inference = gather_ordered(problem, solution.theta, labels, source.feature_names, fit)
            self.fit_ = replace(fit, passes=max(fit.passes, source.passes))
        self._place_classes(source)

    def _problem(self, source: Source, offset: Any) -> CumulativeProblem:
        shift = None if offset is None else checked_offset(real_numbers(offset, "offset"), source, 1)
        return CumulativeProblem.of(source, class_counts(source), self._ranks(self.classes_), float(self.C), shift)

    def _weighted(self, source: Source) -> Source:
        assert source.classes is not None
        factors = class_factors(self.class_weight, source.classes, class_counts(source))
        return source if factors is None else Reweighted(source, factors)

    def _ordered(self, known: NDArray[Any], y: Any) -> NDArray[Any]:
        """All labels from the lowest to the highest."""
        given = self.order
        dtype = getattr(y, "dtype", None)
        if given is None and getattr(dtype, "ordered", False):
            present = set(known.tolist())
            given = [label for label in dtype.categories.tolist() if label in present]  # type: ignore[union-attr]  # pandas
        if given is None:
            return known
        labels = list(np.asarray(given, dtype=known.dtype if known.dtype.kind != "O" else object).tolist())
        if sorted(map(str, labels)) != sorted(map(str, known.tolist())):
            raise ValueError(f"order has {listed(np.array(labels))}, but y has {listed(known)}; name every class once.")
        return known[[known.tolist().index(label) for label in labels]]

    def _counted_order(self) -> list[Any]:
        """The labels that have weight, from the lowest to the highest."""
        counted = set(self._counted.tolist())
        return [label for label in self.order_.tolist() if label in counted]

    def _ranks(self, labels: NDArray[Any]) -> Codes:
        """The rank of each of the labels that have weight, among them."""
        place = {label: rank for rank, label in enumerate(self._counted_order())}
        return np.array([place[label] for label in labels.tolist()], dtype=np.intp)

    def _warn(self) -> None:
        if self.fit_.status is Status.SEPARATED:
            warnings.warn(self.fit_.detail, SeparationWarning, stacklevel=outside())
        self._warn_if_short()

    def _scores(self, X: Any) -> Float:
        self._check_ready()
        w, thresholds = self.coef_, self.thresholds_
        ranks = self._ranks(self._counted) if len(thresholds) else None
        sign = 1.0 if ranks is None or ranks[-1] else -1.0

        def of_block(block: Block) -> Float:
            eta = block.matvec(w)
            if ranks is None:
                return eta[:, None]
            if len(thresholds) == 1:
                return sign * (eta - thresholds[0])[:, None]
            shares = log_shares(eta, thresholds, ranks)
            return np.where(np.isfinite(eta)[:, None], shares, np.nan)

        scores = self._map_rows(X, of_block)
        return scores if self._places is None else among_all(scores, self._places, len(self.classes_), halved=True)

    def score_form(self) -> ScoreForm:
        self._check_ready()
        if not len(self.thresholds_):
            form: ScoreForm = Linear.of(np.zeros((1, self.n_features_in_)), np.zeros(1))
        elif len(self.thresholds_) == 1:
            sign = 1.0 if self._ranks(self._counted)[-1] else -1.0
            form = Linear.of(sign * self.coef_[None, :], -sign * self.thresholds_)
        else:
            form = Cumulative(self.coef_, self.thresholds_, self._ranks(self._counted))
        return self._placed(form, halved=True)

    def summary(self, *, level: float = 0.95) -> OrderedSummary:
        """Standard errors, tests and Wald intervals of the coefficients and the thresholds, after maximum likelihood.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals.

        Returns
        -------
        OrderedSummary
            A table: `str()` and notebooks show it, `rows` and `to_frame()` give its numbers.

        Raises
        ------
        ValueError
            When there are no valid standard errors: after a penalty, for separable classes or linearly dependent columns.
        """
        self._check_ready()
        check_two_classes(self._counted)
        check_options(self._inference, level, "wald", "model", False)
        rows = coefficient_rows(self._inference, *wald_limits(self._inference, level))
        return OrderedSummary(rows, self._inference, level)

    def vcov(self) -> Float:
        """Covariance of the coefficients and the thresholds, in the order of `summary`.

        Returns
        -------
        ndarray of shape (n_features + n_classes - 1, n_features + n_classes - 1)
        """
        return self.summary().inference.covariance

    def conf_int(self, *, level: float = 0.95) -> Float:
        """Wald limits of the coefficients and the thresholds, in the order of `summary`.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        ndarray of shape (n_features + n_classes - 1, 2)
        """
        return np.array([[row.lower, row.upper] for row in self.summary(level=level).rows])

    def proportionality_test(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> ProportionalityTest:
        """Brant's test of whether one vector of coefficients does for all thresholds.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            The rows that were fitted, or others.

        Returns
        -------
        ProportionalityTest
            With `statistic`, `degrees`, `p_value`, and the same for each of its `columns`; a small p-value speaks against the
            model. `coef` has the coefficients of the separate logistic regressions of [y > k].
        """
        self._check_ready()
        check_two_classes(self._counted)
        self._check_target(X, y)
        source = self._read(X, y, sample_weight, reset=False).labelled(self.classes_)
        source = source if self._places is None else Regrouped.only(source, self._places)
        given = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(self.n_features_in_)] if given is None else list(map(str, given))
        with threads_of(self.n_jobs):
            return brant_test(self._weighted(source), self._ranks(self._counted), names)
