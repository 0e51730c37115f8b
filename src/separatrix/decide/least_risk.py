"""The least risk that any rule can have, if a generative model is the truth.

    R = E_x min_a Σ_k L[k,a] p(k|x)

Two Gaussian classes with one covariance: the log likelihood ratio Λ = log p(x|1)/p(x|0) is N(∓Δ²/2, Δ²) in class 0 and 1, with
Δ² = (μ₁−μ₀)ᵀΣ⁻¹(μ₁−μ₀). The rule takes each action in an interval of Λ, so R is a sum of normal probabilities; for the 0–1 loss
and equal priors it is Φ(−Δ/2). Reference: McLachlan, Discriminant Analysis and Statistical Pattern Recognition, sect. 3.1.

Everything else by Monte Carlo: x is drawn from the model and the expected loss averaged, not the loss of a drawn label, which
has the same mean and a larger variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit, ndtr, softmax
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from separatrix.data.block import Codes, Float
from separatrix.decide.empirical_risk import Risk
from separatrix.decide.intervals import bounded_interval
from separatrix.decide.losses import REJECTED, Loss, expected_losses, loss_table
from separatrix.decide.prior_shift import check_priors
from separatrix.decide.regions import envelope, reject
from separatrix.models.generative import GenerativeClassifier
from separatrix.models.naive_bayes.gaussian_nb import GaussianNB
from separatrix.statistics.gaussian_rows import gaussian_rows
from separatrix.statistics.metric import DenseMetric, Metric
from separatrix.statistics.scatter import Scatter

_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class GaussianClasses:
    """A known model: Gaussian classes with given means, covariances and priors.

    Parameters
    ----------
    means : array-like of shape (n_classes, n_features)
    covariance : array-like of shape (n_features, n_features) or (n_classes, n_features, n_features)
        One for all classes, or one each; positive definite.
    priors : array-like of shape (n_classes,), optional
        Equal by default.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import GaussianClasses, bayes_risk
    >>> truth = GaussianClasses(means=[[0.0, 0.0], [2.0, 0.0]], covariance=np.eye(2))
    >>> round(bayes_risk(truth).estimate, 4)
    0.1587
    """

    means: ArrayLike
    covariance: ArrayLike
    priors: ArrayLike | None = None

    @cached_property
    def means_(self) -> Float:
        """The means, checked."""
        means = np.asarray(self.means, dtype=np.float64)
        if means.ndim != 2 or not np.isfinite(means).all():
            raise ValueError(f"means has shape {means.shape}: give finite numbers of shape (n_classes, n_features).")
        return means

    @property
    def classes_(self) -> NDArray[np.intp]:
        """The classes are 0…K−1."""
        return np.arange(len(self.means_))

    @cached_property
    def priors_(self) -> Float:
        """The priors, checked."""
        K = len(self.means_)
        return np.full(K, 1.0 / K) if self.priors is None else check_priors(self.priors, K)

    @cached_property
    def _covariances(self) -> list[tuple[Scatter, None]]:
        K, d = self.means_.shape
        given = np.asarray(self.covariance, dtype=np.float64)
        if given.shape not in ((d, d), (K, d, d)):
            raise ValueError(
                f"covariance has shape {given.shape}: give {(d, d)} for all classes or {(K, d, d)}, one each."
            )
        if given.ndim == 2:
            return [(Scatter(matrix=given), None)] * K
        return [(Scatter(matrix=matrix), None) for matrix in given]

    @cached_property
    def _metrics(self) -> list[Metric]:
        made: dict[int, Metric] = {}
        for k, (scatter, _) in enumerate(self._covariances):
            metric = made.setdefault(id(scatter), DenseMetric(scatter.matrix()))
            if metric.singular:
                raise ValueError(f"The covariance of class {k} is not positive definite.")
        return [made[id(scatter)] for scatter, _ in self._covariances]

    @property
    def shares_covariance_(self) -> bool:
        """Whether one covariance was given for all classes."""
        return all(metric is self._metrics[0] for metric in self._metrics)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Float, Codes]:
        """Rows drawn from the model, and their classes."""
        rng = check_random_state(random_state)
        codes = rng.choice(len(self.priors_), size=n_samples, p=self.priors_ / self.priors_.sum())
        return gaussian_rows(self.means_, self._covariances, codes, rng), codes

    def mahalanobis(self, X: ArrayLike) -> Float:
        """Squared Mahalanobis distance of every row to every class mean."""
        rows = np.asarray(X, dtype=np.float64)
        pairs = zip(self.means_, self._metrics, strict=True)
        return np.column_stack([metric.squared_lengths(rows - mean) for mean, metric in pairs])

    def predict_proba(self, X: ArrayLike) -> Float:
        """Posterior of every class, for every row."""
        log_dets = np.array([metric.log_det for metric in self._metrics])
        with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
            return softmax(np.log(self.priors_) - 0.5 * (self.mahalanobis(X) + log_dets), axis=1)


def bayes_risk(
    model: Any,
    loss: Loss = "zero-one",
    *,
    actions: ArrayLike | None = None,
    reject_cost: float | None = None,
    reject_below: float | None = None,
    n_samples: int = 100_000,
    level: float = 0.95,
    random_state: Any = None,
) -> Risk:
    """The risk of the best rule when a generative model is the truth.

    Parameters
    ----------
    model : fitted generative model of this library, or GaussianClasses
        LDA, QDA, RDA, or any naive Bayes model.
    loss : "zero-one", array-like of shape (n_classes, n_actions) or callable, default="zero-one"
        As for `BayesRule`, with `actions` for the names of its columns.
    actions : array-like of shape (n_actions,), optional
    reject_cost, reject_below : float, optional
        As for `BayesRule`; a rejection must have a cost.
    n_samples : int, default=100000
        Draws, where there is no closed form.
    level : float, default=0.95
    random_state : int, RandomState or None

    Returns
    -------
    Risk
        With method "closed form" (two Gaussians with one covariance; no error) or "Monte Carlo".

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from separatrix import LinearDiscriminantAnalysis, bayes_risk
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = bayes_risk(LinearDiscriminantAnalysis().fit(X, y))
    >>> round(result.estimate, 3), result.method
    (0.027, 'closed form')
    """
    if not isinstance(model, GenerativeClassifier | GaussianClasses):
        raise TypeError(
            f"{type(model).__name__} is not a generative model of this library, so it has no density of the rows: give a "
            "fitted LDA, QDA, RDA or naive Bayes model, or GaussianClasses."
        )
    if isinstance(model, GenerativeClassifier):
        check_is_fitted(model, "classes_")
    if reject_below is not None and reject_cost is None:
        raise ValueError("Rejections by reject_below have no price: set reject_cost too.")
    matrix, _ = loss_table(loss, model.classes_, None if actions is None else np.asarray(actions))
    distance = _shared_distance(model) if len(model.classes_) == 2 else None
    if distance is not None:
        value = _closed_form(matrix, model.priors_, distance, reject_cost, reject_below)
        return Risk(value, value, value, 0.0, 0, "closed form")
    rng = check_random_state(random_state)
    parts = []
    for done in range(0, n_samples, _ROWS_AT_ONCE):
        proba = np.asarray(
            model.predict_proba(model.sample(min(_ROWS_AT_ONCE, n_samples - done), random_state=rng)[0]), np.float64
        )
        least = expected_losses(proba, matrix).min(axis=1)
        rejected = reject(proba, least, reject_cost, reject_below)
        parts.append(np.where(rejected, 0.0 if reject_cost is None else reject_cost, least))
    values = np.concatenate(parts)
    mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    # The best action costs no more than the one whose worst case is least.
    worst = float(matrix.max(axis=0).min())
    least, most = float(matrix.min()), worst if reject_cost is None else max(worst, reject_cost)
    low, high = bounded_interval(values, np.ones(len(values)), least, most, level)
    return Risk(mean, low, high, error, len(values), "Monte Carlo")


def _shared_distance(model: Any) -> float | None:
    """Δ between two Gaussian classes with one covariance; None for other models."""
    if isinstance(model, GaussianNB) and model.shared_variance:
        return float(np.sqrt((np.square(model.theta_[1] - model.theta_[0]) / model.var_[0]).sum()))
    if not getattr(model, "shares_covariance_", False):
        return None
    return float(np.sqrt(model.mahalanobis(model.means_)[0, 1]))


def _closed_form(
    matrix: Float, priors: Float, distance: float, reject_cost: float | None, reject_below: float | None
) -> float:
    """Σ over intervals of Λ and classes: prior × probability of the interval × loss of its action."""
    breakpoints, codes = envelope(matrix, reject_cost, reject_below)
    if distance == 0.0 or priors.min() == 0.0:  # the rows add nothing to the priors
        codes = codes[[np.searchsorted(breakpoints, priors[1])]]
        breakpoints = breakpoints[:0]
    losses = np.where(codes == REJECTED, 0.0 if reject_cost is None else reject_cost, matrix[:, codes])
    if not len(breakpoints):
        return float(priors @ losses[:, 0])
    ratios = logit(breakpoints) - np.log(priors[1] / priors[0])
    ends = np.concatenate([[-np.inf], ratios / distance, [np.inf]])
    intervals = np.stack([_between(ends + 0.5 * distance), _between(ends - 0.5 * distance)])
    return float(priors @ (intervals * losses).sum(axis=1))


def _between(ends: Float) -> Float:
    """Normal probabilities of the intervals between rising ends, accurate in both tails."""
    low, high = ends[:-1], ends[1:]
    return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
