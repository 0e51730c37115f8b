"""Predictions from a posterior over the coefficients: probabilities with their intervals; the coefficients and their table.

a = θφ ~ N(θ̂φ, φᵀSφ),     p(k | x, D) = E softmax_k(a)          see bayes/predictive.py
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, logsumexp, ndtr, ndtri
from sklearn.utils import check_random_state

from separatrix.bayes.posterior import Posterior
from separatrix.bayes.predictive import PROBIT, interval, quadrature
from separatrix.bayes.predictive_softmax import softmax_interval, softmax_probit, softmax_quadrature
from separatrix.data.affine import Intercept, Standardised
from separatrix.data.block import Block, Float
from separatrix.data.dense import DenseBlock
from separatrix.data.labels import shown
from separatrix.geometry import Linear, ScoreForm
from separatrix.geometry.combined_forms import Integrated
from separatrix.inference.estimates import check_level
from separatrix.inference.summary import PosteriorRow, PosteriorSummary
from separatrix.models.classifier import Probabilities
from separatrix.models.counted_classes import among_all, check_two_classes, shares_among_all
from separatrix.models.linear_rule import LinearRule

if TYPE_CHECKING:
    from separatrix.bayes.gibbs import Draws

# Rows times draws whose scores are held at once.
_AT_ONCE = 1 << 20
_FAR = 1e100
# Beyond this many coefficients a covariance is not formed.
_LARGEST = 20_000


class PosteriorPrediction(Probabilities, LinearRule):
    """Predictions of a classifier that has a `Posterior` over θ, in the units of its solver."""

    _posterior: Posterior
    _scaling: tuple[Float, Float]
    _seed: int
    _total: float
    predictive_width_: float
    draws_: Draws | None
    if TYPE_CHECKING:  # parameters and attributes of the estimator
        predictive: str
        fit_intercept: bool
        n_samples: int
        prior_precision_: Any
        log_evidence_: float
        log_evidence_is_: str

    def predict_proba(self, X: Any, level: float | None = None) -> Any:
        """Probability of every class, integrated over the posterior.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
        level : float, optional
            A level, such as 0.95: also give the equal-tailed credible interval of the probability of every class.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or three of them (probability, lower, upper)
        """
        proba = super().predict_proba(X)
        if level is None:
            return proba
        check_level(level)
        if len(self._counted) == 1:  # nothing is uncertain
            return proba, proba.copy(), proba.copy()
        sampled = self.draws_ is not None or self.predictive == "samples"
        draws = self._draws() if sampled else None
        limits = self._map_rows(X, lambda block: self._limits(block, level, draws))
        lower, upper = (shares_among_all(part, self._places, proba.shape[1]) for part in np.split(limits, 2, axis=1))
        return proba, lower, upper

    # -- scores of blocks ---------------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> Float:
        """Log-odds of the integrated probability (two classes), or its logarithm for every class."""
        self._check_ready()
        if len(self._counted) == 1:
            return self._linear_scores(X)
        draws = None
        if self.predictive == "samples":
            mean = self._posterior.mean
            draws = mean + np.sqrt(self.predictive_width_) * (self._draws() - mean)
        scores = self._map_rows(X, lambda block: self._score_block(block, draws))
        places = self._places
        return scores if places is None else among_all(scores, places, len(self.classes_), halved=True)

    def score_form(self) -> ScoreForm:
        """The scores of the integrated probabilities: those of the mean over √(1 + πv/8) for two classes and
        predictive="probit", else a function of rows.

        Returns
        -------
        Linear, Integrated, or Placed where classes have no weight

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from separatrix import BayesianLogisticRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> form = BayesianLogisticRegression().fit(X, y == 2).score_form()
        >>> type(form).__name__, form.spread[0].shape
        ('Linear', (4, 5))
        """
        self._check_ready()
        counted = self._counted
        if len(counted) > 2 or (len(counted) == 2 and self.predictive != "probit"):
            return Integrated(self._scores)
        if len(counted) == 1:
            form = Linear.of(np.zeros((1, self.n_features_in_)), np.zeros(1))
        else:
            centre, scale = self._scaling
            mean, d = self._posterior.mean, len(scale)
            values, vectors = np.linalg.eigh(self.predictive_width_ * self._posterior.covariance())
            factor = vectors * np.sqrt(np.maximum(values, 0.0))
            constant, floor = np.zeros(1), np.zeros(len(factor))
            if self.fit_intercept:
                constant, floor = mean[:, -1], factor[-1]
            form = Linear(mean[:, :d] / scale, constant, centre, spread=(factor[:d] / scale[:, None], floor))
        return self._placed(form, halved=True)

    def _linear_scores(self, X: Any) -> Float:
        return super(LinearRule, self)._linear_scores(X)  # those of the coefficients, not integrated

    def _seen(self, block: Block) -> Block:
        centre, scale = self._scaling
        if centre.any() or (scale != 1.0).any():
            block = Standardised.block(block, centre, scale)
        return Intercept.block(block) if self.fit_intercept else block

    def _bounded(self, rows: Block) -> Block:
        """Rows whose squares would overflow, made smaller: far out, probabilities depend on the direction alone."""
        with np.errstate(over="ignore", invalid="ignore"):
            size = rows.row_squares(np.ones(rows.shape[1]))
        if np.isfinite(size).all() and size.max(initial=0.0) < _FAR**2:
            return rows
        dense = rows.dense().copy()
        largest = np.abs(dense).max(axis=1)
        far = np.isfinite(largest) & (largest > _FAR)
        dense[far] *= (_FAR / largest[far])[:, None]
        return DenseBlock(dense, rows.y, rows.weights, rows.start)

    def _activations(self, block: Block) -> tuple[Any, Float, Float]:
        """Which rows are finite, and the means and covariances of their scores."""
        rows = self._seen(block)
        mean, spread = rows.matvec(self._posterior.mean.T), self._posterior.spread(rows)
        if np.isfinite(mean).all() and np.isfinite(spread).all():
            return slice(None), mean, spread
        rows = self._bounded(rows)
        mean, spread = rows.matvec(self._posterior.mean.T), self._posterior.spread(rows)
        known = np.isfinite(mean).all(axis=1) & np.isfinite(spread.sum(axis=(1, 2)))
        return known, mean[known], spread[known]

    def _score_block(self, block: Block, draws: Float | None) -> Float:
        m = len(self._posterior.mean)
        if draws is not None:
            logs = self._over_draws(block, draws, lambda logs: logsumexp(logs, axis=1) - np.log(logs.shape[1]))
            return logs if m > 1 else (logs[:, 1] - logs[:, 0])[:, None]
        known, mean, spread = self._activations(block)
        scores, spread = np.full((block.n, m), np.nan), self.predictive_width_ * spread
        exact = self.predictive == "quadrature"
        if m > 1:
            scores[known] = (softmax_quadrature if exact else softmax_probit)(mean, spread, log=True)
            return scores
        if not exact:  # the log-odds of σ(κμ)
            scores[known, 0] = mean[:, 0] / np.sqrt(1.0 + PROBIT * spread[:, 0, 0])
            return scores
        # The smaller of the two probabilities keeps its digits; the scores of both sides mirror each other.
        small = quadrature(-np.abs(mean[:, 0]), spread[:, 0, 0], log=True)
        scores[known, 0] = np.where(mean[:, 0] > 0, 1.0, -1.0) * (np.log1p(-np.exp(small)) - small)
        return scores

    def _limits(self, block: Block, level: float, draws: Float | None) -> Float:
        """(n, 2K) lower and upper limits."""
        if draws is not None:
            tails = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
            return self._over_draws(
                block, draws, lambda logs: np.concatenate(np.quantile(np.exp(logs), tails, axis=1), axis=1)
            )
        known, mean, spread = self._activations(block)
        limits = np.full((block.n, 2 * max(2, len(self._posterior.mean))), np.nan)
        if len(self._posterior.mean) > 1:
            limits[known] = np.concatenate(softmax_interval(mean, spread, level), axis=1)
        else:
            lower, upper = interval(mean[:, 0], spread[:, 0, 0], level)
            limits[known] = np.column_stack([1.0 - upper, lower, 1.0 - lower, upper])
        return limits

    def _over_draws(self, block: Block, draws: Float, reduce: Callable[[Float], Float]) -> Float:
        """A function of the (n, draws, K) log-probabilities, a few rows at a time; NaN for rows that are not finite."""
        count, m, p = draws.shape
        flat, parts, step = draws.reshape(count * m, p).T, [], max(1, _AT_ONCE // (count * max(2, m)))
        for start in range(0, block.n, step):
            rows = self._bounded(self._seen(block.part(slice(start, min(start + step, block.n)))))
            scores = rows.matvec(flat).reshape(rows.n, count, m)
            if m == 1:
                scores = np.concatenate([np.zeros_like(scores), scores], axis=2)
            with np.errstate(invalid="ignore"):
                parts.append(reduce(log_softmax(scores, axis=2)))
        return np.concatenate(parts)

    def _draws(self) -> Float:
        """(n, m, p) draws of θ: those of the chains, or of the Gaussian."""
        if self.draws_ is not None:
            return self.draws_.theta.reshape(-1, *self._posterior.mean.shape)
        return self._posterior.draw(np.random.default_rng(self._seed), int(self.n_samples))

    # -- the coefficients ---------------------------------------------------------------------------------------------

    def _finish(self, theta: Float) -> tuple[Float, Float]:
        """Coefficients (…, m, d) and intercepts (…, m) in the units of the data, from θ (…, m, p)."""
        centre, scale = self._scaling
        coef = theta[..., : len(scale)] / scale + 0.0  # no negative zeros
        if not self.fit_intercept:
            return coef, np.zeros(theta.shape[:-1])
        intercept = theta[..., -1] - coef @ centre
        if theta.shape[-2] > 1:
            intercept = intercept - intercept.mean(axis=-1, keepdims=True)
        return coef, intercept

    @property
    def coef_cov_(self) -> Float:
        """Posterior covariance of ``coef_.ravel()``."""
        return self._full_covariance(False)

    @property
    def covariance_(self) -> Float:
        """Posterior covariance of all coefficients, score by score, the intercept last within each."""
        return self._full_covariance(bool(self.fit_intercept))

    def _full_covariance(self, intercept: bool) -> Float:
        if not hasattr(self, "_posterior"):
            raise AttributeError("the covariance is known after fit")
        (m, p), (centre, scale) = self._posterior.mean.shape, self._scaling
        if m * p > _LARGEST:
            raise ValueError(f"A covariance of {m * p} coefficients is not formed; use coef_interval or sample_coef.")
        one = np.zeros((len(scale) + intercept, p))  # from θ to the user's units, for one score
        one[: len(scale), : len(scale)] = np.diag(1.0 / scale)
        if intercept:
            one[-1, :-1], one[-1, -1] = -centre / scale, 1.0
        jacobian = np.kron(np.eye(m), one)
        if intercept and m > 1:  # the intercepts sum to zero
            at = np.arange(m) * len(one) + len(one) - 1
            jacobian[at] -= jacobian[at].mean(axis=0)
        return jacobian @ self._posterior.covariance() @ jacobian.T

    def _deviations(self) -> tuple[Float, Float]:
        """Posterior standard deviations of the coefficients (m, d) and of the intercepts (m,)."""
        scale = self._scaling[1]
        coef = np.sqrt(self._posterior.variances()[:, : len(scale)]) / scale
        if not self.fit_intercept:
            return coef, np.zeros(len(coef))
        # An intercept is the score of a row of zeros.
        spread = self._posterior.spread(self._seen(DenseBlock(np.zeros((1, len(scale))), None, None, 0)))[0]
        if len(spread) > 1:
            spread = spread - spread.mean(axis=0)
            spread = spread - spread.mean(axis=1, keepdims=True)
        return coef, np.sqrt(np.maximum(spread.diagonal(), 0.0))

    def _marginals(self, level: float) -> tuple[Float, Float, Float, Float, Float]:
        """Mean, standard deviation, P(> 0), lower and upper limit of all coefficients (m, p), the intercept last."""
        check_two_classes(self._counted)
        check_level(level)
        z = float(ndtri(0.5 + 0.5 * level))
        keep = slice(None) if self.fit_intercept else slice(0, -1)
        if self.draws_ is not None:
            coef, intercept = self._finish(self._draws())
            draws = np.concatenate([coef, intercept[..., None]], axis=-1)[..., keep]
            low, high = np.quantile(draws, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
            return draws.mean(axis=0), draws.std(axis=0, ddof=1), (draws > 0).mean(axis=0), low, high
        mean = np.column_stack(self._finish(self._posterior.mean))[:, keep]
        deviation = np.column_stack(self._deviations())[:, keep]
        positive = ndtr(np.divide(mean, deviation, out=np.zeros_like(mean), where=deviation > 0))
        return mean, deviation, positive, mean - z * deviation, mean + z * deviation

    def coef_interval(self, level: float = 0.95) -> tuple[Float, Float]:
        """Equal-tailed credible intervals of ``coef_``.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        lower, upper : ndarrays of the shape of ``coef_``
        """
        self._check_ready()
        lower, upper = (limits[:, : self.n_features_in_] for limits in self._marginals(level)[-2:])
        return lower, upper

    def sample_coef(self, n_samples: int = 1, random_state: Any = None, return_intercept: bool = False) -> Any:
        """Draws of the coefficients from the posterior.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None
        return_intercept : bool, default=False
            Also give the intercepts that belong to the draws.

        Returns
        -------
        coef : ndarray of shape (n_samples, 1, n_features) or (n_samples, n_classes, n_features)
        intercept : ndarray of shape (n_samples, 1) or (n_samples, n_classes)
            When asked for.
        """
        self._check_ready()
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples is {n_samples!r}; give how many draws you want, a whole number ≥ 1.")
        rng = np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        if self.draws_ is None:
            theta = self._posterior.draw(rng, int(n_samples))
        else:
            known = self._draws()
            theta = known[rng.integers(len(known), size=n_samples)]
        coef, intercept = self._finish(theta)
        return (coef, intercept) if return_intercept else coef

    def summary(self, level: float = 0.95) -> PosteriorSummary:
        """The table of coefficients: mean, standard deviation, probability of being positive, credible interval, odds ratio.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals.

        Returns
        -------
        PosteriorSummary
        """
        self._check_ready()
        numbers = self._marginals(level)
        classes: list[Any] = self._counted.tolist()
        names = list(map(str, getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(self._scaling[1]))])))
        names += ["(intercept)"] * (numbers[0].shape[1] - len(names))
        if len(classes) == 2:
            titles = {classes[1]: f"Log-odds of {shown(classes[1])} against {shown(classes[0])}"}
        else:
            titles = {label: f"Score of {shown(label)}" for label in classes}
        rows = [
            PosteriorRow(label, name, *(float(values[k, j]) for values in numbers))
            for k, label in enumerate(titles)
            for j, name in enumerate(names)
        ]
        value, kind = self.log_evidence_, self.log_evidence_is_
        facts = [
            ("Observations", f"{self._total:.10g}"),
            ("Log evidence", f"{value:.10g} ({kind})" if np.isfinite(value) else kind),
            ("Prior precision", _precision(self.prior_precision_)),
        ]
        limits = "Equal-tailed credible intervals" if self.draws_ is not None else "Credible intervals of the Gaussian"
        method = f"{limits} at level {level:g}. {self.fit_.detail}"
        return PosteriorSummary(rows, titles, level, facts, method)


def _precision(value: ArrayLike | tuple[Any, Any]) -> str:
    if isinstance(value, tuple):
        return "a Gaussian prior was given"
    given = np.asarray(value, dtype=np.float64)
    if given.ndim == 0:
        return f"{float(given):.6g}"
    return f"{len(given)} numbers from {given.min():.4g} to {given.max():.4g}"
