"""Naive Bayes for documents: multinomial and complement.

multinomial   log p(x|k) = log n!/Πx_j! + Σ_j x_j log θ_kj,      θ_kj = (N_kj + α_j) / Σ_j(N_kj + α_j)
complement    weights −log θ̃_kj, θ̃ the multinomial of all other classes     (Rennie et al. 2003, eq. 6)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from separatrix.data import Block
from separatrix.data.block import Float
from separatrix.models.counted_classes import Undetermined
from separatrix.models.naive_bayes.naive_bayes import SMOOTHING_CONSTRAINTS, CountFeatures, LinearNaiveBayes


class MultinomialNB(CountFeatures, LinearNaiveBayes):
    """Naive Bayes for documents: counts of words, from one pass over the data.

    Drop-in for scikit-learn's, with `merge`, files and the generative extras on top.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Dirichlet smoothing, one number or one per feature; 0 is pure maximum likelihood.
    force_alpha : bool, default=True
        If False, alpha below 1e-10 is set to 1e-10.
    fit_prior : bool, default=True
        Whether priors are the shares of the classes, or all equal.
    class_prior : array-like of shape (n_classes,), optional
        Priors to use instead.

    Attributes
    ----------
    class_count_, feature_count_ : ndarray
        Weighted counts of rows and of features in each class.
    class_log_prior_, feature_log_prob_ : ndarray
        log π_k and log θ_kj.
    classes_ : ndarray
    fit_ : Fit

    Examples
    --------
    Class 1 has the words a, b, c 3, 4 and 5 times; without smoothing θ is 3/12, 4/12, 5/12.

    >>> import numpy as np
    >>> from separatrix import MultinomialNB
    >>> X = np.array([[1, 2, 2], [2, 2, 3], [4, 1, 0]])
    >>> model = MultinomialNB(alpha=0).fit(X, [1, 1, 0])
    >>> np.exp(model.feature_log_prob_[1]) * 12
    array([3., 4., 5.])
    """

    def _weights(self) -> tuple[Float, Float | None]:
        smoothed = self.feature_count_ + self._smoothing()
        totals = smoothed.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):  # α = 0: log 0 marks what is impossible
            return np.log(smoothed / np.where(totals > 0, totals, 1.0)), None

    def _log_joint(self, X: Any) -> Float:
        def coefficient(block: Block) -> Float:
            stored = block.stored_entries()
            logs = gammaln(np.asarray(stored.values, dtype=np.float64) + 1.0)
            per_row = np.bincount(stored.rows, logs, block.n) if stored.implicit_zeros else logs.sum(axis=1)
            return gammaln(block.matvec(np.ones(block.shape[1])) + 1.0) - per_row

        return super()._log_joint(X) + self._map_rows(X, coefficient)[:, None]

    def sample(  # type: ignore[override]  # documents have a length
        self, n_samples: int = 1, length: int | None = None, random_state: Any = None
    ) -> tuple[Float, Any]:
        """Draw documents of the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
        length : int, optional
            Words in a document; by default the mean length of the documents of its class, rounded.
        random_state : int, RandomState or None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
        """
        codes, rng = self._draw_classes(n_samples, random_state)
        theta = np.exp(self.feature_log_prob_)
        mean_length = self.feature_count_.sum(axis=1) / np.where(self.class_count_ > 0, self.class_count_, 1.0)
        lengths = np.rint(mean_length).astype(int) if length is None else np.full(len(theta), length)
        rows = np.stack([rng.multinomial(lengths[k], theta[k] / theta[k].sum()) for k in codes])
        return rows.astype(np.float64), self.classes_[codes]


class ComplementNB(CountFeatures, LinearNaiveBayes):
    """Naive Bayes whose weights come from the other classes: better for uneven class sizes.

    Drop-in for scikit-learn's. It is a rule, not a density: no `log_density`.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
    force_alpha : bool, default=True
    fit_prior : bool, default=True
        Only matters with a single class, as in scikit-learn.
    class_prior : array-like of shape (n_classes,), optional
    norm : bool, default=False
        Whether the weights of each class are normalised to sum one.

    Attributes
    ----------
    class_count_, feature_count_, feature_all_ : ndarray
    class_log_prior_, feature_log_prob_ : ndarray
    classes_ : ndarray
    fit_ : Fit

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import ComplementNB
    >>> X = np.array([[3, 0, 1], [2, 1, 0], [0, 4, 1]])
    >>> ComplementNB().fit(X, ["a", "a", "b"]).predict([[0, 2, 1]])
    array(['b'], dtype='<U1')
    """

    feature_all_: Float

    _parameter_constraints: dict[str, list[Any]] = {**SMOOTHING_CONSTRAINTS, "norm": ["boolean"]}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
        norm: bool = False,
    ) -> None:
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.norm = norm

    def _prior_scores(self) -> Float:
        # The complement's weights compare classes without their priors; a class that is never chosen has none.
        return np.where(self.priors_ > 0, 0.0, -np.inf)

    def _weights(self) -> tuple[Float, Float | None]:
        self.feature_all_ = self.feature_count_.sum(axis=0)
        others = self.feature_all_ + self._smoothing() - self.feature_count_
        totals = others.sum(axis=1, keepdims=True)
        if (totals <= 0).any():
            raise Undetermined(
                "Some class is the only one with any counts; set alpha > 0 to compare it with the others."
            )
        with np.errstate(divide="ignore"):  # α = 0: a word only this class has
            logged = np.log(others / totals)
        if logged.min() == -np.inf:
            logged = np.where(np.isneginf(logged), _floor(logged), logged)
        return logged / logged.sum(axis=1, keepdims=True) if self.norm else -logged, None

    @property
    def sample(self) -> Any:
        """Not there: ComplementNB is a rule without class densities."""
        raise AttributeError("ComplementNB is a rule without class densities; use MultinomialNB to draw documents.")

    def _log_joint(self, X: Any) -> Float:
        raise AttributeError("ComplementNB is a rule without class densities; use MultinomialNB for log_density.")


def _floor(logged: Float) -> float:
    """Stands for log 0 in a complement: as far below the least finite weight as that is below zero."""
    finite = logged[np.isfinite(logged)]
    return 2.0 * float(finite.min()) if len(finite) else -1.0
