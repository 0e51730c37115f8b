"""The least risk that any rule can have, if a generative model is the truth.

    R = E_x min_a Σ_k L[k,a] p(k|x)

Two Gaussian classes with one covariance: the log likelihood ratio Λ = log p(x|1)/p(x|0) is N(∓Δ²/2, Δ²) in class 0 and 1, with
Δ² = (μ₁−μ₀)ᵀΣ⁻¹(μ₁−μ₀). The rule takes each action in an interval of Λ, so R is a sum of normal probabilities; for the 0–1 loss
and equal priors it is Φ(−Δ/2). Reference: McLachlan, Discriminant Analysis and Statistical Pattern Recognition, sect. 3.1.

One column: Gaussian classes of any variances have intervals of x for their actions, whose ends are roots of quadratics, and R
is again a sum of normal probabilities (see `line_risk`).

Everything else by Monte Carlo: x is drawn from the model and the expected loss averaged, not the loss of a drawn label, which
has the same mean and a larger variance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from separatrix.data.block import Float
from separatrix.decide.empirical_risk import Risk
from separatrix.decide.gaussian_classes import GaussianClasses
from separatrix.decide.intervals import bounded_interval
from separatrix.decide.line_risk import GaussianLine, between, line_risk
from separatrix.decide.losses import REJECTED, Loss, expected_losses, loss_table
from separatrix.decide.regions import envelope, reject
from separatrix.models.discriminant.gaussian_classifier import GaussianClassifier
from separatrix.models.generative import GenerativeClassifier
from separatrix.models.naive_bayes.gaussian_nb import GaussianNB

_ROWS_AT_ONCE = 1 << 14


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
        With method "closed form" (no error: two Gaussians with one covariance; Gaussian classes of one column, if there are two
        of them or the loss is 0–1), "quadrature" (other losses on one column; the error is that of the integral) or
        "Monte Carlo".

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
    line = _line(model)
    if line is not None:
        value, error = line_risk(line, matrix, reject_cost, reject_below)
        return Risk(value, value - error, value + error, error, 0, "quadrature" if error else "closed form")
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


def _line(model: Any) -> GaussianLine | None:
    """Gaussian classes of one column; None for other models."""
    if isinstance(model, GaussianNB):
        return GaussianLine(model.theta_[:, 0], model.var_[:, 0], model.priors_) if model.theta_.shape[1] == 1 else None
    if not isinstance(model, GaussianClasses | GaussianClassifier) or model.means_.shape[1] != 1:
        return None
    means = np.asarray(model.means_, dtype=np.float64)
    away = np.diagonal(model.mahalanobis(means + 1.0))  # 1/σ²
    return GaussianLine(means[:, 0], 1.0 / away, np.asarray(model.priors_)) if (away > 0).all() else None


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
    intervals = np.stack([between(ends + 0.5 * distance), between(ends - 0.5 * distance)])
    return float(priors @ (intervals * losses).sum(axis=1))
