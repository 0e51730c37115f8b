"""Bayesian logistic regression: a distribution over the coefficients, at the price of one fit.

    p(θ | D) ∝ Π p(yᵢ | xᵢ, θ)^sᵢ · N(w | m₀, Λ⁻¹)            the intercept has a flat prior
    p(k | x, D) = ∫ p(k | x, θ) p(θ | D) dθ

`posterior="laplace"` takes the Gaussian with the mode and the curvature of the posterior (bayes/laplace.py), "variational" the
one with the greatest lower bound of the evidence (bayes/variational.py), "auto" the first where it is near the posterior and
else the second, "gibbs" draws from the posterior itself (bayes/gibbs.py). More than two classes have
one score per class with the same prior, so no class is special; what is the same for all of them is held by the prior alone,
and the intercepts, which have none, sum to zero.

Reference: Bishop (2006), Pattern Recognition and Machine Learning, sections 4.4 and 4.5; Polson, Scott and Windle (2013),
J. American Statistical Association 108.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from separatrix.bayes.laplace import FULL_COEFFICIENTS, SINGULAR, STRUCTURES, choose_covariance
from separatrix.bayes.posterior import FullPosterior
from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.labels import UnknownLabel
from separatrix.models.base import FitCall, OptionalArray
from separatrix.models.bayesian.fitting import FittedPosterior, find_posterior, find_prior, sample_posterior
from separatrix.models.bayesian.prediction import PosteriorPrediction
from separatrix.models.bayesian.prior import (
    groups_of,
    log_sizes,
    prior_of,
    problem_after,
    problem_with_prior,
    validated_precision,
)
from separatrix.models.checkpoint import Checkpoint
from separatrix.models.counted_classes import check_two_classes
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.models.stopwatch import Stopwatch
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.settings import threads_of

_EVIDENCE = {
    "laplace": "Laplace's approximation",
    "bound": "a lower bound",
    "none": "not known: it needs a full covariance",
}


class BayesianLogisticRegression(PosteriorPrediction):
    """Logistic regression whose coefficients and probabilities carry their uncertainty.

    Parameters
    ----------
    prior_precision : "evidence", float, array-like or (mean, covariance), default="evidence"
        Of the Gaussian prior of the coefficients. "evidence" chooses one number (one for each of `groups`) that makes the
        data most probable; beyond 2000 coefficients, one that makes left-out rows most probable (cross-validation). A number
        or one for each column are precisions about zero; a tuple gives mean and covariance, each a number, one per column, or
        (covariance) a matrix. The intercept has a flat prior.
    posterior : {"auto", "laplace", "variational", "gibbs"}, default="auto"
        "laplace": the Gaussian at the mode. "variational": the Gaussian with the greatest lower bound of the evidence. "auto":
        Laplace's, unless importance ratios show that it is far from the posterior, as for separable classes; then the other.
        "gibbs": draws from the posterior itself by Pólya–Gamma Gibbs sampling.
    predictive : {"probit", "quadrature", "samples"}, default="probit"
        How probabilities are integrated over the posterior: the probit approximation (within 0.02 for two classes),
        numerically (to rounding for two classes), or as the average over draws.
    covariance : {"auto", "full", "block", "diagonal", "low_rank"}, default="auto"
        Shape of the covariance; "auto" takes the one that `separatrix.bayes.laplace.choose_covariance` names.
    rank : int, default=100
        Directions that covariance="low_rank" keeps.
    groups : array-like of shape (n_features,), optional
        Labels of the columns; prior_precision="evidence" finds one precision for each.
    fit_intercept : bool, default=True
    tol : float, default=1e-4
        The mode is found to within this many posterior standard deviations. (The variational Gaussian: its bound rises by no
        more than some ten-thousandths for every coefficient.)
    max_iter : int, default=100
        Limit on the number of steps.
    n_chains, n_draws, n_warmup : int, default=4, 1000, 250
        Chains of the Gibbs sampler, draws of each that are kept, and draws before them that are not.
    n_samples : int, default=1000
        Draws that predictive="samples" averages over after posterior="laplace".
    random_state : int, RandomState or None, default=None
        Of the Gibbs sampler and of predictive="samples".
    verbose : int, default=0
        Positive: report every step.
    n_jobs : int, optional
        Threads; by default those of `separatrix.config`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The mean of the Gaussian, which for Laplace's is the posterior mode, or of the draws.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    coef_cov_ : ndarray
        Posterior covariance of ``coef_.ravel()``.
    covariance_ : ndarray
        Of all coefficients, score by score, the intercept last within each.
    covariance_structure_ : str
        The shape that was used.
    prior_precision_ : float, ndarray or tuple
        The precision that was used; one for each group after groups were given, in the order of their sorted labels.
    log_evidence_ : float
        Log marginal likelihood; NaN where the covariance is not full, which leaves out some of it.
    log_evidence_is_ : str
        What it is: "Laplace's approximation" or "a lower bound".
    pareto_k_ : float
        k̂ of the importance ratios between the posterior and Laplace's Gaussian: beyond 0.7 it is not near. NaN where they were
        not compared.
    predictive_width_ : float
        Probabilities are averaged over the Gaussian with its covariance times this. 1, or less where posterior="auto" found
        Laplace's Gaussian far from the posterior and averages over all of it predict left-out rows worse than its mean does.
    draws_ : Draws or None
        The chains, with R-hat and effective sample sizes, after posterior="gibbs".
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : ndarray of shape (1,)
    fit_ : Fit
        Status, which posterior it is and why, passes over the data, and the certificate: of the mode, or of the bound.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from separatrix import BayesianLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> model = BayesianLogisticRegression(predictive="quadrature").fit(X, y)
    >>> proba, lower, upper = model.predict_proba(X[541:542], level=0.95)
    >>> proba.round(2), lower.round(2), upper.round(2)
    (array([[0.57, 0.43]]), array([[0.18, 0.1 ]]), array([[0.9 , 0.82]]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "prior_precision": "no_validation",
        "posterior": [StrOptions({"auto", "laplace", "variational", "gibbs"})],
        "predictive": [StrOptions({"probit", "quadrature", "samples"})],
        "covariance": [StrOptions({"auto", *STRUCTURES})],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "groups": ["array-like", None],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 4, None, closed="left")],
        "n_warmup": [Interval(Integral, 0, None, closed="left")],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self,
        prior_precision: Any = "evidence",
        *,
        posterior: Literal["auto", "laplace", "variational", "gibbs"] = "auto",
        predictive: Literal["probit", "quadrature", "samples"] = "probit",
        covariance: Literal["auto", "full", "block", "diagonal", "low_rank"] = "auto",
        rank: int = 100,
        groups: ArrayLike | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        n_chains: int = 4,
        n_draws: int = 1000,
        n_warmup: int = 250,
        n_samples: int = 1000,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.prior_precision = prior_precision
        self.posterior = posterior
        self.predictive = predictive
        self.covariance = covariance
        self.rank = rank
        self.groups = groups
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_samples = n_samples
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: OptionalArray = None,
        sample_weight: OptionalArray = None,
        offset: OptionalArray = None,
        *,
        checkpoint: Checkpoint = None,
    ) -> Self:
        """Find the posterior.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, checkpoint, offset=offset)

    def update(
        self, X: Any, y: OptionalArray = None, sample_weight: OptionalArray = None, offset: OptionalArray = None
    ) -> Self:
        """Learn from more rows, with labels among ``classes_``: the posterior so far is their prior.

        The precision of the Gaussian adds up exactly; what is lost is how the curvature of the earlier rows changes when
        the mode moves on, so the result is close to that of one fit to all rows, the closer the larger the parts.

        Returns
        -------
        self
        """
        self._check_ready()
        with self._unchanged_if_refused(), threads_of(self.n_jobs):
            self._update(X, y, sample_weight, offset)
        self._warn()
        return self

    def _solve(self, source: Source, call: FitCall) -> None:
        if len(self.classes_) == 1:
            self.n_iter_, self.draws_ = np.zeros(1, dtype=np.int32), None
            self._constant(source, call.watch)
            return
        with threads_of(self.n_jobs):
            self._fit_counted(source, call.X, call.y, call.sample_weight, call.options["offset"], call.watch)
        self._place_classes(source)

    def _warn(self) -> None:
        self._warn_if_short(also=self.fit_.status is Status.UNMIXED)

    def _fit_counted(self, source: Source, X: Any, y: Any, sample_weight: Any, offset: Any, watch: Stopwatch) -> None:
        prior = prior_of(self.prior_precision, self.n_features_in_)
        problem = problem_with_prior(source, bool(self.fit_intercept), prior, offset)
        m, p = problem.shape
        chosen = choose_covariance(p, m) if self.covariance == "auto" else self.covariance
        chosen = "full" if chosen == "block" and m == 1 else chosen  # one block is all of it
        if problem.objective.penalty.matrix is not None and chosen == "low_rank":
            raise ValueError(
                "covariance='low_rank' needs a prior with one precision per column; give covariance='full'."
            )
        if self.posterior == "gibbs" and chosen != "full":
            raise ValueError(f"posterior='gibbs' draws all {m * p} coefficients jointly; set covariance='full' for it.")
        self.covariance_structure_ = chosen
        self._scaling = problem.centre, problem.scale
        if isinstance(self.prior_precision, str) and m * p <= FULL_COEFFICIENTS:
            groups = groups_of(self.groups, self.n_features_in_)
            try:
                found = find_prior(self, problem, chosen, groups, log_sizes(problem))
            except np.linalg.LinAlgError:
                raise ValueError(SINGULAR) from None
            precisions = np.exp(cast(Float, found.log_alpha))
            self.prior_precision_: Any = precisions if self.groups is not None else float(precisions[0])
            self._keep(problem, found, watch)
            return
        if self.groups is not None:
            raise ValueError("groups are for prior_precision='evidence' and at most 2000 coefficients; leave them out.")
        note = ""
        if isinstance(self.prior_precision, str):
            if offset is not None:
                raise ValueError(
                    "prior_precision='evidence' with more than 2000 coefficients leaves rows out, which offset does not allow; "
                    "give a number."
                )
            self.prior_precision_ = validated_precision(self, X, y, sample_weight, log_sizes(problem))
            penalty = problem.objective.penalty.scaled(self.prior_precision_)
            problem = replace(problem, objective=replace(problem.objective, penalty=penalty))
            note = " The prior was chosen by five-fold cross-validation: the evidence needs a full covariance."
        else:
            given = self.prior_precision
            self.prior_precision_ = given if isinstance(given, tuple) else np.array(given, dtype=np.float64)[()]
        self._keep(problem, find_posterior(self, problem, chosen), watch, note)

    def _keep(self, problem: LinearProblem, found: FittedPosterior, watch: Stopwatch, note: str = "") -> None:
        self._posterior, self._total, self.draws_ = found.posterior, found.solution.total, None
        self.log_evidence_, self.log_evidence_is_ = found.log_evidence, _EVIDENCE[found.evidence_is]
        self.pareto_k_ = np.nan if found.diagnosis is None else found.diagnosis.k
        self.predictive_width_, self.n_iter_ = found.width, np.array([found.iterations], dtype=np.int32)
        status, detail = found.status, found.detail + note
        if self.posterior == "gibbs" and status is not Status.INTERRUPTED:
            assert isinstance(found.posterior, FullPosterior)
            sampled = sample_posterior(self, found.objective, problem, found.posterior)
            self.draws_, self._posterior, status, detail = sampled
        self.coef_, self.intercept_ = self._finish(self._posterior.mean)
        certificate = found.certificate if self.draws_ is None else None  # means of draws minimise nothing
        self.fit_ = watch.fit(status, problem.source.passes, detail, certificate, found.iterations)
        self.fit_.trace.extend(found.solution.trace)
        self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _update(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> None:
        watch = Stopwatch()
        watch.start_at(X.passes if isinstance(X, Source) else 0)
        check_two_classes(self._counted)
        posterior, before, total, passes = self._posterior, self.log_evidence_, self._total, self.fit_.passes
        try:
            source = self._read(X, y, sample_weight, reset=False).labelled(self._counted)
        except UnknownLabel as error:
            raise ValueError(f"{error.fact}: update learns about the classes that fit has seen.") from None
        problem, gauge = problem_after(posterior, source, bool(self.fit_intercept), offset, *self._scaling)
        found = find_posterior(self, problem, self.covariance_structure_, gauge)
        known, self.classes_, self._places = self.classes_, self._counted, None
        self._keep(problem, replace(found, log_evidence=before + found.log_evidence), watch)
        self._place_among(known)
        self._total += total
        self.fit_ = replace(self.fit_, passes=self.fit_.passes + passes)
