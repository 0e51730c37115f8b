"""What the naive Bayes models for counts and flags share: priors, smoothing, and what zero counts mean.

With α = 0 (pure maximum likelihood) a word that a class never had makes the class impossible; a word that no class ever had
carries no evidence; where every class is impossible the prior decides. Never NaN.
"""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from separatrix.data import Block, Source
from separatrix.data.block import Float
from separatrix.data.checks import real_numbers
from separatrix.models.generative import GenerativeClassifier
from separatrix.models.linear_rule import LinearRule
from separatrix.result import Status
from separatrix.statistics.counts import ClassCounts

_TINY_ALPHA = 1e-10
COUNT_PARAMETERS: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
    "force_alpha": ["boolean"],
    "fit_prior": ["boolean"],
    "class_prior": ["array-like", None],
}


class NaiveBayesClassifier(GenerativeClassifier):
    """What the discrete naive Bayes models share: priors, smoothing, impossible rows."""

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: ArrayLike | None
    class_count_: Float
    class_log_prior_: Float

    _parameter_constraints = COUNT_PARAMETERS

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
        """α as a scalar array or one a feature, checked."""
        alpha = real_numbers(self.alpha, "alpha")
        if not np.isfinite(alpha).all() or (alpha < 0).any():
            raise ValueError("alpha must be finite and ≥ 0.")
        if alpha.ndim > 1 or (alpha.ndim == 1 and len(alpha) != self.n_features_in_):
            raise ValueError(
                f"When alpha is an array, it should contains `n_features` numbers: {self.n_features_in_} needed, "
                f"got shape {alpha.shape}."
            )
        return alpha if self.force_alpha else np.maximum(alpha, _TINY_ALPHA)

    @abstractmethod
    def _log_likelihood(self, X: Any) -> Float:
        """(n, K) log p(x | k) up to a term that no class changes; −inf where a class is impossible."""

    def predict_joint_log_proba(self, X: Any) -> Float:
        """Unnormalised log posterior: log prior plus log likelihood of every class.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._scores(X)

    def _scores(self, X: Any) -> Float:
        likelihood = self._log_likelihood(X)
        # Where the row is impossible in every class the likelihood says nothing, and the prior decides.
        likelihood[np.isneginf(likelihood).all(axis=1)] = 0.0
        return likelihood + self._prior_scores()

    def _prior_scores(self) -> Float:
        return self.class_log_prior_


class LinearNaiveBayes(LinearRule, NaiveBayesClassifier):
    """Naive Bayes whose scores are linear in x: XWᵀ + b."""

    feature_count_: Float
    feature_log_prob_: Float
    _impossible: Float | None

    def _measure(self, source: Source) -> Any:
        counts = ClassCounts.of_source(source)
        if counts.least < 0:
            j = ClassCounts.negative_column(source)
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__} (input X): {self._column(j)} has values as low as "
                f"{counts.least:g}. Counts are never negative; use GaussianNB for measurements."
            )
        return counts

    def _check_counts(self, counts: ClassCounts) -> None:
        """Refuse sums that the family cannot have."""

    @abstractmethod
    def _weights(self) -> tuple[Float, Float]:
        """(K, d) weights, −inf where a class never had a feature, and (K,) constants."""

    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        counts: ClassCounts = self._moments
        self._check_counts(counts)
        self._set_priors(counts.counts, source is None)
        self.feature_count_ = counts.sums
        weights, constants = self._weights()
        self.feature_log_prob_ = weights
        impossible = np.isneginf(weights)
        unseen = impossible.all(axis=0)  # a word never seen in training carries no evidence
        self._impossible = impossible.astype(np.float64) if impossible.any() else None
        if self._impossible is not None:
            self._impossible[:, unseen] = 0.0
        finite = np.where(impossible, 0.0, weights)
        self._finite, self._constants = finite, constants
        with np.errstate(invalid="ignore"):  # −inf − (−inf) between two classes without rows
            scores = constants + self._prior_scores()
            self.coef_ = finite[1:] - finite[:1] if len(finite) == 2 else finite
            self.intercept_ = scores[1:] - scores[:1] if len(finite) == 2 else scores
        return Status.EXACT, ""

    def linear_form(self) -> tuple[Float, Float]:
        """The rule as (W, b): scores are XWᵀ + b.

        Returns
        -------
        W : ndarray of shape (1, n_features) for two classes, else (n_classes, n_features)
        b : ndarray of shape (1,) or (n_classes,)
        """
        self._check_ready()
        if self._impossible is not None:
            raise ValueError(
                "With alpha=0 some classes never had some feature and are impossible where it occurs, which no finite "
                "linear form can say; set alpha > 0."
            )
        return super().linear_form()

    def _see(self, block: Block) -> Block:
        return block

    def _log_likelihood(self, X: Any) -> Float:
        self._check_ready()
        weights, constants, impossible = self._finite.T, self._constants, self._impossible

        def of_block(block: Block) -> Float:
            seen = self._see(block)
            scores = seen.matvec(weights) + constants
            if impossible is not None:
                scores[seen.matvec(impossible.T) > 0] = -np.inf
            return scores

        return self._map_rows(X, of_block)

    def _scores(self, X: Any) -> Float:
        return NaiveBayesClassifier._scores(self, X)


def draw_classes(model: GenerativeClassifier, n_samples: int, random_state: Any) -> tuple[Any, Any]:
    """Codes drawn from the priors, and the generator to go on with."""
    model._check_ready()
    if n_samples < 1:
        raise ValueError(f"n_samples is {n_samples}; draw at least one row.")
    rng = check_random_state(random_state)
    priors = np.asarray(model.priors_)
    return rng.choice(len(priors), size=n_samples, p=priors / priors.sum()), rng
