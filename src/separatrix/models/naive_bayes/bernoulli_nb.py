"""Naive Bayes for flags.

log p(x|k) = Σ_j x_j log θ_kj + (1−x_j) log(1−θ_kj),      θ_kj = (N_kj + α_j) / (n_k + 2α_j)
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from separatrix.data import Block, Source
from separatrix.data.block import Float
from separatrix.data.views import Binarised
from separatrix.models.naive_bayes.naive_bayes import COUNT_PARAMETERS, LinearNaiveBayes, draw_classes
from separatrix.result import Status
from separatrix.statistics.counts import ClassCounts


class BernoulliNB(LinearNaiveBayes):
    """Naive Bayes for flags: each feature is there or not.

    Drop-in for scikit-learn's, with `merge`, files and the generative extras on top.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
    force_alpha : bool, default=True
    binarize : float or None, default=0.0
        A value above it is a flag that is set; None takes X as zeros and ones.
    fit_prior : bool, default=True
    class_prior : array-like of shape (n_classes,), optional

    Attributes
    ----------
    class_count_, feature_count_ : ndarray
    class_log_prior_, feature_log_prob_ : ndarray
    classes_ : ndarray
    fit_ : Fit

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import BernoulliNB
    >>> X = np.array([[1, 0], [1, 1], [0, 1], [0, 1]])
    >>> BernoulliNB().fit(X, [0, 0, 1, 1]).predict([[0, 1]])
    array([1])
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **COUNT_PARAMETERS,
        "binarize": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _measure(self, source: Source) -> Any:
        if self.binarize is None:
            return super()._measure(source)
        return ClassCounts.of_source(Binarised(source, self.binarize))

    def _see(self, block: Block) -> Block:
        return block if self.binarize is None else Binarised.block(block, self.binarize)

    def _check_counts(self, counts: ClassCounts) -> None:
        beyond = np.flatnonzero((counts.sums > counts.counts[:, None] * (1 + 1e-9)).any(axis=0))
        if len(beyond):
            raise ValueError(
                f"{self._column(int(beyond[0]))} is not made of zeros and ones; set binarize, or use MultinomialNB or "
                "GaussianNB."
            )

    def _rates(self) -> tuple[Float, Float]:
        alpha = self._smoothing()
        size = self.class_count_[:, None] + 2.0 * alpha
        on = (self.feature_count_ + alpha) / np.where(size > 0, size, 1.0)
        off = (self.class_count_[:, None] - self.feature_count_ + alpha) / np.where(size > 0, size, 1.0)
        return on, np.maximum(off, 0.0)

    def _weights(self) -> tuple[Float, Float]:
        on, off = self._rates()
        with np.errstate(divide="ignore"):  # α = 0: log 0 marks what is impossible
            return np.log(on), np.log(off)

    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        counts: ClassCounts = self._moments
        self._check_counts(counts)
        self._set_priors(counts.counts, source is None)
        self.feature_count_ = counts.sums
        log_on, log_off = self._weights()
        self.feature_log_prob_ = log_on
        never, always = np.isneginf(log_on), np.isneginf(log_off)
        # A flag that has the same value in every row of every class is impossible otherwise in all: no evidence.
        never_seen, always_seen = never.all(axis=0), always.all(axis=0)
        on, off = np.where(never, 0.0, log_on), np.where(always, 0.0, log_off)
        self._never = np.where(never_seen, False, never).astype(np.float64)
        self._always = np.where(always_seen, False, always).astype(np.float64)
        self._impossible = self._never if (self._never.any() or self._always.any()) else None
        finite, constants = on - off, off.sum(axis=1)
        self._finite, self._constants = finite, constants
        scores = constants + self.class_log_prior_
        self.coef_ = finite[1:] - finite[:1] if len(finite) == 2 else finite
        with np.errstate(invalid="ignore"):  # −inf − (−inf) between two classes without rows
            self.intercept_ = scores[1:] - scores[:1] if len(finite) == 2 else scores
        return Status.EXACT, ""

    def _log_likelihood(self, X: Any) -> Float:
        self._check_ready()
        weights, constants = self._finite.T, self._constants
        never, always, strict = self._never.T, self._always.T, self._impossible is not None
        expected = self._always.sum(axis=1)

        def of_block(block: Block) -> Float:
            seen = self._see(block)
            scores = seen.matvec(weights) + constants
            if strict:
                scores[(seen.matvec(never) > 0) | (seen.matvec(always) < expected - 0.5)] = -np.inf
            return scores

        return self._map_rows(X, of_block)

    def _log_joint(self, X: Any) -> Float:
        return self._log_likelihood(X) + self.class_log_prior_

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Float, Any]:
        """Draw rows of the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
        """
        codes, rng = draw_classes(self, n_samples, random_state)
        rows = rng.random_sample((n_samples, self.n_features_in_)) < np.exp(self.feature_log_prob_)[codes]
        return rows.astype(np.float64), self.classes_[codes]
