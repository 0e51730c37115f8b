"""What the naive Bayes models for counts and flags share: priors, smoothing, and what zero counts mean.

With α = 0 (pure maximum likelihood) a word that a class never had makes the class impossible; a word that no class ever had
carries no evidence; where every class is impossible the prior decides. Never NaN.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data import Block, Source
from separatrix.data.block import Float
from separatrix.data.checks import real_numbers
from separatrix.geometry import Linear, ScoreForm
from separatrix.models.generative import GenerativeClassifier
from separatrix.models.linear_rule import LinearRule
from separatrix.models.scikit_learn import Interval
from separatrix.result import Status
from separatrix.settings import outside
from separatrix.statistics.counts import ClassCounts

_TINY_ALPHA = 1e-10
SMOOTHING_CONSTRAINTS: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
    "force_alpha": ["boolean"],
    "fit_prior": ["boolean"],
    "class_prior": ["array-like", None],
}
"""What the parameters of smoothing and of the priors may be."""


class JointScores(GenerativeClassifier):
    """Scores that are the unnormalised log posterior."""

    def predict_joint_log_proba(self, X: Any) -> Float:
        """Unnormalised log posterior: log prior plus log likelihood of every class.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._as_given(X, self._scores(X))


class CountFeatures(GenerativeClassifier):
    """Features that are never negative, and no `decision_function`, as in scikit-learn."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    @property
    def decision_function(self) -> Any:
        """Not there, as in scikit-learn: see `predict_joint_log_proba`."""
        raise AttributeError("Naive Bayes for counts has predict_joint_log_proba instead of decision_function.")


class NaiveBayesClassifier(JointScores):
    """What the discrete naive Bayes models share: priors, smoothing, impossible rows."""

    class_count_: Float
    class_log_prior_: Float

    _parameter_constraints: dict[str, list[Any]] = SMOOTHING_CONSTRAINTS

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on data that are neither counts nor flags
        return tags

    def _set_priors(self, counts: Float, waiting: bool) -> None:
        """The priors, given or found; 0 for a class without rows unless the model is `waiting` for more."""
        self.class_count_ = counts
        n_classes = len(counts)
        if self.class_prior is not None:
            given = real_numbers(self.class_prior, "class_prior").copy()
            if given.shape != (n_classes,):
                raise ValueError(f"Number of priors must match number of classes: {given.size} given for {n_classes}.")
            if not np.isfinite(given).all() or (given < 0).any() or given.sum() == 0:
                raise ValueError("class_prior must be finite, non-negative and not all zero.")
            self.priors_ = given
        elif self.fit_prior:
            self.priors_ = counts / counts.sum()
        else:
            self.priors_ = np.full(n_classes, 1.0 / n_classes)
        if not waiting and (counts == 0).any():
            self.priors_ = np.where(counts > 0, self.priors_, 0.0)
            self.priors_ = self.priors_ / self.priors_.sum()
        with np.errstate(divide="ignore"):  # a class without rows has prior 0: it is never chosen
            self.class_log_prior_ = np.log(self.priors_)

    def _smoothing(self) -> Float:
        """α as a scalar array or one per feature, checked."""
        alpha = real_numbers(self.alpha, "alpha")
        if not np.isfinite(alpha).all() or (alpha < 0).any():
            raise ValueError("alpha must be finite and ≥ 0.")
        if alpha.ndim > 1 or (alpha.ndim == 1 and len(alpha) != self.n_features_in_):
            raise ValueError(
                f"When alpha is an array, it should contains `n_features` numbers: {self.n_features_in_} needed, "
                f"got shape {alpha.shape}."
            )
        if self.force_alpha or (alpha >= _TINY_ALPHA).all():
            return alpha
        sentence = f"alpha too small will result in numeric errors, setting alpha = {_TINY_ALPHA:.1e}."
        warnings.warn(f"{sentence} Use `force_alpha=True` to keep alpha unchanged.", stacklevel=outside())
        return np.maximum(alpha, _TINY_ALPHA)

    @abstractmethod
    def _log_likelihood(self, X: Any) -> Float:
        """(n, K) log p(x | k) up to a term that no class changes; −inf where a class is impossible."""

    def _log_joint(self, X: Any) -> Float:
        return self._log_likelihood(X) + self.class_log_prior_

    def _scores(self, X: Any) -> Float:
        likelihood = self._log_likelihood(X)
        # Where the row is impossible in every class the prior decides.
        likelihood[np.isneginf(likelihood).all(axis=1)] = 0.0
        return likelihood + self._prior_scores()

    def _prior_scores(self) -> Float:
        return self.class_log_prior_


class LinearNaiveBayes(LinearRule, NaiveBayesClassifier):
    """Naive Bayes whose scores are linear in x: XWᵀ + b."""

    feature_count_: Float
    feature_log_prob_: Float

    def statistic_of(self, source: Source, *, separable: bool = False) -> ClassCounts:
        """Sums of the features by class, which must not be negative."""
        counts = ClassCounts.of_source(source)
        if counts.least < 0:
            j = ClassCounts.negative_column(source)
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__} (input X): {self._column(j)} has values as low as "
                f"{counts.least:g}. Counts are never negative; use GaussianNB for measurements."
            )
        return counts

    @abstractmethod
    def _weights(self) -> tuple[Float, Float | None]:
        """(K, d) weights of a feature that is there, and of one that is not, if that counts; −inf for what is impossible."""

    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        self._set_priors(self._moments.counts, source is None)
        self.feature_count_ = self._moments.sums
        self.feature_log_prob_, absent = self._weights()
        self._finite, self._never = _possible(self.feature_log_prob_)
        self._constants, self._always = np.zeros(len(self._finite)), None
        if absent is not None:
            absent, self._always = _possible(absent)
            self._finite, self._constants = self._finite - absent, absent.sum(axis=1)
        two = len(self._finite) == 2
        with np.errstate(invalid="ignore"):  # −inf − (−inf) between two classes without rows
            scores = self._constants + self._prior_scores()
            self.coef_ = self._finite[1:] - self._finite[:1] if two else self._finite
            self.intercept_ = scores[1:] - scores[:1] if two else scores
        return Status.EXACT, ""

    def linear_form(self) -> tuple[Float, Float]:
        self._check_ready()
        if self._never is not None or self._always is not None:
            raise ValueError(
                "With alpha=0 some classes never had some feature and are impossible where it occurs, which no finite "
                "linear form can say; set alpha > 0."
            )
        return super().linear_form()

    def score_form(self) -> ScoreForm:
        self._check_ready()
        weights = self._finite if self._never is None else np.where(self._never > 0, -np.inf, self._finite)
        return Linear.of(weights, self._constants + self._prior_scores())

    def _features(self, block: Block) -> Block:
        """The features of a block as the model counts them."""
        return block

    def _log_likelihood(self, X: Any) -> Float:
        self._check_ready()
        weights, constants, never, always = self._finite.T, self._constants, self._never, self._always

        def of_block(block: Block) -> Float:
            features = self._features(block)
            scores = features.matvec(weights) + constants
            if never is not None:
                scores[features.matvec(never.T) > 0] = -np.inf
            if always is not None:
                scores[features.matvec(always.T) < always.sum(axis=1) - 0.5] = -np.inf
            return scores

        return self._map_rows(X, of_block)

    _scores = NaiveBayesClassifier._scores


def _possible(logs: Float) -> tuple[Float, Float | None]:
    """Weights with 0 for log 0, and (K, d) ones where log 0 makes a class impossible, or None where nothing does.

    What no class ever had carries no evidence.
    """
    if logs.min(initial=0.0) > -np.inf:
        return logs, None
    zero = np.isneginf(logs)
    impossible = zero & ~zero.all(axis=0)
    return np.where(zero, 0.0, logs), impossible.astype(np.float64) if impossible.any() else None
