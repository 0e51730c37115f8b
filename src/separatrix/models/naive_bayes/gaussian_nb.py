"""Gaussian naive Bayes: independent Gaussian features in every class.

    log p(x|k) = −½ Σ_j [ log 2πσ²_kj + (x_j − μ_kj)²/σ²_kj ],      σ² floored by var_smoothing · max_j Var(x_j)

With variances shared by the classes the quadratic terms cancel and the rule is linear.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data import Block, Source
from separatrix.data.block import Codes, Float
from separatrix.data.checks import real_numbers
from separatrix.errors import ClassName, Message
from separatrix.geometry import Hyperplane, Quadratic, Quadric, ScoreForm
from separatrix.models.class_priors import class_priors
from separatrix.models.counted_classes import Undetermined
from separatrix.models.linear_rule import Boundaries, Boundary, SignedDistance
from separatrix.models.naive_bayes.naive_bayes import JointScores
from separatrix.models.scikit_learn import Interval
from separatrix.result import Status
from separatrix.statistics.moments import Form


class GaussianNB(SignedDistance, Boundaries, JointScores):
    """Gaussian naive Bayes from one pass over the data.

    Drop-in for scikit-learn's, with `merge`, sparse input, files, shared variances and the generative extras on top.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), optional
        Class probabilities; by default their shares in the data.
    var_smoothing : float, default=1e-9
        Share of the largest variance of all features that is added to every variance.
    shared_variance : bool, default=False
        Whether the classes share the variance of each feature (pooled within classes): the rule is then linear.

    Attributes
    ----------
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Means and variances.
    class_count_, class_prior_ : ndarray of shape (n_classes,)
    epsilon_ : float
        What was added to every variance.
    classes_ : ndarray
    fit_ : Fit

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> GaussianNB().fit(X, y).score(X, y)
    0.96
    """

    theta_: Float
    var_: Float
    class_count_: Float
    class_prior_: Float
    epsilon_: float

    _keeps_single = True
    _parameter_constraints: dict[str, list[Any]] = {
        "priors": ["array-like", None],
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
        "shared_variance": ["boolean"],
    }

    def __init__(
        self, *, priors: ArrayLike | None = None, var_smoothing: float = 1e-9, shared_variance: bool = False
    ) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.shared_variance = shared_variance

    def _form(self) -> Form:
        return "diagonal"

    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        moments = self._moments
        counts = moments.counts
        if self.priors is not None:
            given = real_numbers(self.priors, "priors")
            if given.shape != counts.shape:
                raise ValueError(
                    f"Number of priors must match number of classes: {given.size} given for {len(counts)}."
                )
            if (given < 0).any():
                raise ValueError("Priors must be non-negative.")
            if not np.isclose(given.sum(), 1.0):
                raise ValueError("The sum of the priors should be 1.")
        self.priors_ = self.class_prior_ = class_priors(self.priors, counts, self.classes_, source is None)
        self.class_count_, self.theta_ = counts, moments.means
        variances = moments.variances()
        within = variances * counts[:, None]
        total = (within.sum(axis=0) + counts @ np.square(moments.offsets())) / moments.total
        self.epsilon_ = self.var_smoothing * float(total.max())
        if self.shared_variance:
            variances = np.broadcast_to(within.sum(axis=0) / moments.total, variances.shape).copy()
        self.var_ = variances + self.epsilon_
        flat = (self.var_ <= 0) & (counts > 0)[:, None]
        if flat.any():
            k, j = np.argwhere(flat)[0]
            raise Undetermined(
                Message.of(
                    f"{self._column(int(j))} does not vary in class ",
                    ClassName(self.classes_[k]),
                    ", so it has no density there; give more rows, leave the column out, or raise var_smoothing.",
                )
            )
        self.var_[counts == 0] = 1.0
        return Status.EXACT, ""

    def _log_joint(self, X: Any) -> Float:
        self._check_ready()
        means, scales = self.theta_, np.sqrt(self.var_)
        with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
            constants = np.log(self.priors_) - 0.5 * np.log(2.0 * np.pi * self.var_).sum(axis=1)

        def scored(rows: Any) -> Float:
            scores = np.empty((len(rows), len(constants)))
            with np.errstate(invalid="ignore", over="ignore"):  # bad input is reported by the caller, by column
                for k, (mean, scale) in enumerate(zip(means, scales, strict=True)):
                    standard = (rows - mean) / scale
                    scores[:, k] = constants[k] - 0.5 * np.einsum("ij,ij->i", standard, standard)
            return scores

        def of_block(block: Block) -> Float:
            rows = block.dense()
            scores = scored(rows)
            far = np.isinf(scores).all(axis=1) & np.isfinite(rows).all(axis=1)
            if far.any():  # squares overflow beyond 1e154: the same rows nearer by, in the same direction
                away = rows[far] / np.abs(rows[far]).max(axis=1, keepdims=True)
                scores[far] = scored(away * (1e100 / (np.abs(away) / scales.min(axis=0)).max(axis=1, keepdims=True)))
            return scores

        return self._map_rows(X, of_block)

    def score_form(self) -> ScoreForm:
        self._check_ready()
        with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
            constants = np.log(self.priors_) - 0.5 * np.log(2.0 * np.pi * self.var_).sum(axis=1)
        return Quadratic(self.theta_, list(1.0 / np.sqrt(self.var_)), constants)

    def linear_form(self) -> tuple[Float, Float]:
        self._check_ready()
        if not self.shared_variance:
            raise ValueError("The rule is quadratic when each class has its own variances; set shared_variance=True.")
        variance = self.var_[int(np.argmax(self.class_count_))]
        centre = self.priors_ @ self.theta_
        W = (self.theta_ - centre) / variance
        with np.errstate(divide="ignore"):  # a class of prior 0 gets −inf: it is never chosen
            b = np.log(self.priors_) - 0.5 * np.einsum("ij,ij->i", W, self.theta_ - centre) - W @ centre
        return (W[1:] - W[:1], b[1:] - b[:1]) if len(b) == 2 else (W, b)

    def _between(self, first: int, second: int) -> Boundary:
        A, b, c = (one - two for one, two in zip(self._terms(first), self._terms(second), strict=True))
        return Hyperplane(b, float(c)) if self.shared_variance else Quadric(np.diag(A), b, float(c))

    def _terms(self, k: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        precision, mean = 1.0 / self.var_[k], self.theta_[k]
        with np.errstate(divide="ignore"):  # a class of prior 0 is −∞ everywhere
            constant = np.log(self.priors_[k]) + 0.5 * (np.log(precision).sum() - precision @ np.square(mean))
        return -0.5 * precision, precision * mean, np.asarray(constant)

    def _draw_rows(self, codes: Codes, rng: Any) -> Any:
        return self.theta_[codes] + np.sqrt(self.var_[codes]) * rng.standard_normal((len(codes), self.n_features_in_))
