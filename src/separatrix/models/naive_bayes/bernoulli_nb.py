"""Naive Bayes for flags.

log p(x|k) = Σ_j x_j log θ_kj + (1−x_j) log(1−θ_kj),      θ_kj = (N_kj + α_j) / (n_k + 2α_j)
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data import Block, Source
from separatrix.data.block import Codes, Float
from separatrix.data.views import Binarised
from separatrix.geometry import Linear, ScoreForm
from separatrix.geometry.additive_form import Additive, TableTerm
from separatrix.geometry.combined_forms import Composition
from separatrix.geometry.score_form import dense_rows
from separatrix.models.naive_bayes.naive_bayes import SMOOTHING_CONSTRAINTS, LinearNaiveBayes
from separatrix.models.scikit_learn import Interval
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
        **SMOOTHING_CONSTRAINTS,
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
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.binarize = binarize

    def statistic_of(self, source: Source, *, separable: bool = False) -> ClassCounts:
        """Numbers of flags by class."""
        if self.binarize is None:
            return super().statistic_of(source)
        return ClassCounts.of_source(Binarised(source, self.binarize))

    def _features(self, block: Block) -> Block:
        return block if self.binarize is None else Binarised.block(block, self.binarize)

    def _weights(self) -> tuple[Float, Float | None]:
        total, flags = self.class_count_[:, None], self.feature_count_
        beyond = np.flatnonzero((flags > total * (1 + 1e-9)).any(axis=0))
        if len(beyond):
            raise ValueError(
                f"{self._column(int(beyond[0]))} is not made of zeros and ones; set binarize, or use MultinomialNB or "
                "GaussianNB."
            )
        alpha = self._smoothing()
        size = total + 2.0 * alpha
        size = np.where(size > 0, size, 1.0)
        with np.errstate(divide="ignore"):  # α = 0: log 0 marks what is impossible
            return np.log((flags + alpha) / size), np.log(np.maximum((total - flags + alpha) / size, 0.0))

    def _draw_rows(self, codes: Codes, rng: Any) -> Any:
        rows = rng.random_sample((len(codes), self.n_features_in_)) < np.exp(self.feature_log_prob_)[codes]
        return rows.astype(np.float64)

    def score_form(self) -> ScoreForm:
        self._check_ready()
        threshold = self.binarize
        if self._never is None and self._always is None:
            form = Linear.of(self._finite, self._constants + self.class_log_prior_)
            return form if threshold is None else replace(form, above=threshold)
        # Without smoothing a flag may be impossible where it is not set, which no weight expresses.
        log_on, log_off = self._weights()
        assert log_off is not None
        names = [f"x{j}" for j in range(self.n_features_in_)]
        terms = [
            TableTerm(name, [0, 1], np.stack(logs), np.zeros(len(logs[0])))
            for name, *logs in zip(names, log_off.T, log_on.T, strict=True)
        ]
        table = Additive(list(terms), self.class_log_prior_, dict.fromkeys(names, "flag"))
        return table if threshold is None else Composition(table, lambda X: dense_rows(X) > threshold)
