"""A known model of Gaussian classes: what a fitted rule can be compared with.

    p(x|k) = N(μ_k, Σ_k),      p(k|x) = π_k p(x|k) / Σ_l π_l p(x|l)
    boundary of k and l:  log π_k p(x|k) = log π_l p(x|l),   a plane if Σ_k = Σ_l, else a quadric

Reference: Hastie, Tibshirani, Friedman (2009), The Elements of Statistical Learning, section 4.3; Duda, Hart, Stork (2001),
Pattern Classification, section 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, ndtr, softmax
from sklearn.utils import check_random_state

from separatrix.data.block import Codes, Float
from separatrix.data.labels import listed
from separatrix.decide.empirical_risk import Risk
from separatrix.decide.intervals import bounded_interval
from separatrix.decide.line_risk import GaussianLine, thresholds
from separatrix.decide.losses import Loss, expected_losses, loss_table
from separatrix.decide.prior_shift import check_priors
from separatrix.geometry import Hyperplane, Quadric
from separatrix.statistics.gaussian_rows import gaussian_rows
from separatrix.statistics.metric import DenseMetric, Metric
from separatrix.statistics.scatter import Scatter

_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class GaussianClasses:
    """A known model: Gaussian classes with given means, covariances and priors.

    It draws rows, knows its densities, posteriors and boundaries, and can be shown where a fitted classifier can. `bayes_risk`
    is the risk of its own rule, the least there is; `risk_of` that of any other.

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
    >>> unequal = GaussianClasses(means=[[0.0], [0.0]], covariance=[[[1.0]], [[4.0]]])
    >>> unequal.thresholds()[0].round(4).tolist(), round(bayes_risk(unequal).estimate, 4)
    ([-1.3596, 1.3596], 0.3387)
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

    def class_log_density(self, X: ArrayLike) -> Float:
        """(n_samples, n_classes) log p(x | k)."""
        volumes = np.array([metric.log_det + self.means_.shape[1] * np.log(2.0 * np.pi) for metric in self._metrics])
        return -0.5 * (self.mahalanobis(X) + volumes)

    def log_density(self, X: ArrayLike) -> Float:
        """(n_samples,) log p(x), of a row of any class."""
        with np.errstate(divide="ignore"):  # a class of prior 0
            return np.asarray(logsumexp(np.log(self.priors_) + self.class_log_density(X), axis=1))

    def predict_proba(self, X: ArrayLike) -> Float:
        """Posterior of every class, for every row."""
        with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
            return np.asarray(softmax(np.log(self.priors_) + self.class_log_density(X), axis=1))

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """The likeliest class of every row: no rule has fewer errors."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def boundary(self, k: int = 1, l: int = 0) -> Hyperplane | Quadric:  # noqa: E741  # names of the formulas
        """Where two classes are equally likely, positive on the side of the first: a plane if they share a covariance.

        Where one of more than two classes is likelier than both, it is no boundary of the rule.
        """
        (A, b, c), (A_, b_, c_) = self._quadric(k), self._quadric(l)
        if self._metrics[k] is self._metrics[l]:
            return Hyperplane(b - b_, c - c_)
        return Quadric(A - A_, b - b_, c - c_)

    def _quadric(self, k: int) -> tuple[Float, Float, float]:
        """log π_k p_k(x) = xᵀAx + bᵀx + c."""
        metric, mean = self._metrics[k], self.means_[k]
        precision = metric.solve(np.eye(len(mean)))
        linear = precision @ mean
        with np.errstate(divide="ignore"):  # a class of prior 0 is −∞ everywhere
            constant = float(np.log(self.priors_[k])) - 0.5 * metric.log_det - 0.5 * float(linear @ mean)
        return -0.5 * precision, linear, constant

    def thresholds(self) -> tuple[Float, list[int]]:
        """For one column: where the likeliest class changes, and the class below, between and above these points."""
        if self.means_.shape[1] != 1:
            raise ValueError(
                f"Thresholds are those of one column, and there are {self.means_.shape[1]}: see boundary(k, l)."
            )
        variances = 1.0 / np.diagonal(self.mahalanobis(self.means_ + 1.0))
        return thresholds(GaussianLine(self.means_[:, 0], variances, self.priors_))

    def risk_of(
        self,
        rule: Any,
        loss: Loss = "zero-one",
        *,
        n_samples: int = 100_000,
        level: float = 0.95,
        random_state: Any = None,
    ) -> Risk:
        """The risk of a fitted classifier on rows of this model; never below `bayes_risk`.

        Parameters
        ----------
        rule : fitted classifier
            Its labels are those of this model, 0…K−1.
        loss : "zero-one", array-like of shape (n_classes, n_classes) or callable, default="zero-one"
        n_samples : int, default=100000
            Draws, where there is no closed form.
        level : float, default=0.95
        random_state : int, RandomState or None

        Returns
        -------
        Risk
            With method "closed form" for a linear rule of two classes (no error): Σ_k π_k L[k, a] Φ(±(wᵀμ_k + b)/√wᵀΣ_kw); else
            "Monte Carlo", in which the expected loss of a row counts, not that of a drawn label.

        Examples
        --------
        >>> import numpy as np
        >>> from separatrix import GaussianClasses, LinearDiscriminantAnalysis, bayes_risk
        >>> truth = GaussianClasses([[0.0, 0.0], [2.0, 0.0]], np.eye(2))
        >>> found = truth.risk_of(LinearDiscriminantAnalysis().fit(*truth.sample(50, random_state=0)))
        >>> found.method, bool(found.estimate >= bayes_risk(truth).estimate)
        ('closed form', True)
        """
        labels = np.asarray(rule.classes_)
        if not np.isin(labels, self.classes_).all():
            raise ValueError(
                f"The classes of the rule are {listed(labels)}, and those of the model 0…{len(self.classes_) - 1}."
            )
        matrix, _ = loss_table(loss, self.classes_, None)
        if np.array_equal(labels, [0, 1]) and len(self.classes_) == 2 and hasattr(rule, "linear_form"):
            W, b = rule.linear_form()
            w, constant = (W[0], float(b[0])) if len(W) == 1 else (W[1] - W[0], float(b[1] - b[0]))
            spread = np.sqrt([float(w @ scatter.matrix() @ w) for scatter, _ in self._covariances])
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(spread > 0, (self.means_ @ w + constant) / spread, np.copysign(np.inf, constant))
            value = float(self.priors_ @ (matrix[:, 1] * ndtr(ratio) + matrix[:, 0] * ndtr(-ratio)))
            return Risk(value, value, value, 0.0, 0, "closed form")
        rng, parts = check_random_state(random_state), []
        for done in range(0, n_samples, _ROWS_AT_ONCE):
            X, _ = self.sample(min(_ROWS_AT_ONCE, n_samples - done), random_state=rng)
            expected = expected_losses(self.predict_proba(X), matrix)
            parts.append(expected[np.arange(len(X)), np.searchsorted(self.classes_, rule.predict(X))])
        values = np.concatenate(parts)
        low, high = bounded_interval(values, np.ones(len(values)), float(matrix.min()), float(matrix.max()), level)
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
        return Risk(float(values.mean()), low, high, error, len(values), "Monte Carlo")
