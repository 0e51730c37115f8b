"""Quadratic discriminant analysis.

    δ_k(x) = −½ log|Σ_k| − ½ (x−μ_k)ᵀΣ_k⁻¹(x−μ_k) + log π_k,      posterior = softmax(δ)

Reference: Hastie, Tibshirani, Friedman, ESL 2nd ed., eq. 4.12.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.errors import ClassName, Message
from separatrix.geometry import Quadric
from separatrix.models.class_priors import class_priors
from separatrix.models.counted_classes import Undetermined
from separatrix.models.discriminant.covariance import (
    check_one_regulariser,
    class_covariances,
    estimated_covariances,
    full_matrix,
    second_pass_parameter,
)
from separatrix.models.discriminant.gaussian_classifier import GaussianClassifier
from separatrix.models.linear_rule import Boundaries, Boundary
from separatrix.models.scikit_learn import HasMethods, Interval, StrOptions
from separatrix.result import Status
from separatrix.statistics.metric import metrics_of
from separatrix.statistics.moments import Form
from separatrix.statistics.shrinkage import Covariance, shrunk


class SingularCovariance(Undetermined, np.linalg.LinAlgError):
    """A class covariance without an inverse."""


class QuadraticRule(Boundaries, GaussianClassifier):
    """Gaussian classes each with its own covariance: scores, boundaries and the eigenvectors scikit-learn exposes."""

    _covariances: list[Covariance]

    def _between(self, first: int, second: int) -> Boundary:
        one, two = self._quadric(first), self._quadric(second)
        return Quadric(one[0] - two[0], one[1] - two[1], one[2] - two[2])

    def _quadric(self, k: int) -> tuple[Float, Float, float]:
        metric, mean = self._metrics[k], self.means_[k]
        precision = metric.solve(np.eye(self.n_features_in_))
        linear = precision @ mean
        with np.errstate(divide="ignore"):  # a class of prior 0 is −∞ everywhere
            log_prior = float(np.log(self.priors_[k]))
        return -0.5 * precision, linear, -0.5 * float(linear @ mean) - 0.5 * metric.log_det + log_prior

    @property
    def covariance_(self) -> list[Float]:
        """Covariance matrix of every class."""
        if not hasattr(self, "_covariances"):
            raise AttributeError("covariance_ is there after fit.")
        return [full_matrix(covariance) for covariance in self._covariances]


class QuadraticDiscriminantAnalysis(QuadraticRule):
    """Quadratic discriminant analysis: Gaussian classes, each with its own covariance, from one pass over the data.

    Drop-in for scikit-learn's, with weights, `partial_fit`, `merge`, sparse input and files on top.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        As in scikit-learn; both read the same statistic. "svd" takes `reg_param`, "eigen" takes `shrinkage`.
    shrinkage : {"auto", "oas"}, float in [0, 1] or None, default=None
        (1−λ)Σ_k + λ(tr Σ_k/d)I; "auto" is Ledoit–Wolf on standardised columns, as in scikit-learn (a second pass).
    priors : array-like of shape (n_classes,), optional
        Class probabilities; by default their shares in the data.
    reg_param : float in [0, 1], default=0.0
        (1−r)Σ_k + rI.
    store_covariance : bool, default=False
        Whether ``covariance_`` is exposed.
    tol : float, default=1e-4
        A class covariance is singular when some direction has standard deviation ≤ tol in standardised columns.
        Unlike scikit-learn's absolute threshold it does not depend on the units of the columns.
    covariance_estimator : estimator, optional
        For "eigen": an object with `fit` and ``covariance_``, applied to the rows of each class.
    covariance : {"mle", "unbiased"}, default="mle"
        Divide the scatter of class k by n_k, or by n_k − 1 (as R's qda does).
    singular : {"error", "pseudo"}, default="error"
        What to do about a singular class covariance: refuse and name the class, or use the pseudo-inverse and
        pseudo-determinant (directions without variance carry no evidence).

    Attributes
    ----------
    means_ : ndarray of shape (n_classes, n_features)
    priors_ : ndarray of shape (n_classes,)
    covariance_ : list of ndarray
        With ``store_covariance=True``.
    scalings_, rotations_ : list of ndarray
        Eigenvalues, falling, and eigenvectors of every class covariance.
    classes_ : ndarray
    fit_ : Fit

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> QuadraticDiscriminantAnalysis().fit(X, y).score(X, y)
    0.98
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "solver": [StrOptions({"svd", "eigen"})],
        "shrinkage": [StrOptions({"auto", "oas"}), Interval(Real, 0, 1, closed="both"), None],
        "priors": ["array-like", None],
        "reg_param": [Interval(Real, 0, 1, closed="both")],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_estimator": [HasMethods("fit"), None],
        "covariance": [StrOptions({"mle", "unbiased"})],
        "singular": [StrOptions({"error", "pseudo"})],
    }

    def __init__(
        self,
        *,
        solver: Literal["svd", "eigen"] = "svd",
        shrinkage: float | Literal["auto", "oas"] | None = None,
        priors: ArrayLike | None = None,
        reg_param: float = 0.0,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        covariance: Literal["mle", "unbiased"] = "mle",
        singular: Literal["error", "pseudo"] = "error",
    ) -> None:
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.reg_param = reg_param
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator
        self.covariance = covariance
        self.singular = singular

    def _form(self) -> Form:
        if self.solver == "svd":
            if self.shrinkage is not None:
                raise NotImplementedError("shrinkage not supported with 'svd' solver. Use solver='eigen'.")
            if self.covariance_estimator is not None:
                raise ValueError("covariance_estimator is not supported with solver='svd'. Try solver='eigen' instead.")
        check_one_regulariser(self)
        return "per_class"

    _second_pass_parameter = second_pass_parameter

    def _class_covariances(self, source: Source | None) -> list[Covariance]:
        if self.covariance_estimator is not None:
            assert source is not None
            return estimated_covariances(self.covariance_estimator, source, len(self.classes_))
        covariances = class_covariances(self._moments, self.shrinkage, self.covariance, source)
        if self.solver == "eigen" or self.reg_param == 0.0:
            return covariances
        return [shrunk(scatter, self.reg_param, "identity") for scatter, _ in covariances]

    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        counts = self._moments.counts
        self.priors_ = class_priors(self.priors, counts, self.classes_, source is None)
        for label, count in zip(self.classes_, counts, strict=True):
            if count <= 1 and (count > 0 or source is None):
                raise Undetermined(
                    Message.of(
                        f"y has only {count:g} sample in class ",
                        ClassName(label, plain=True),
                        ", covariance is ill defined. Give the class more rows, or use RegularizedDiscriminantAnalysis, "
                        "which borrows from the other classes.",
                    )
                )
        covariances = self._class_covariances(source)
        pseudo = self.singular == "pseudo"
        metrics = metrics_of(covariances, tol=self.tol, standardise=not pseudo)
        lacking = [k for k, metric in enumerate(metrics) if metric.singular and counts[k] > 0]
        if lacking and not pseudo:
            k = lacking[0]
            more = len(lacking) - 1
            others = {0: "", 1: " So is that of 1 more class."}.get(more, f" So are those of {more} more classes.")
            raise SingularCovariance(
                Message.of(
                    "The covariance matrix of class ",
                    ClassName(self.classes_[k], plain=True),
                    f" is not full rank: its {counts[k]:g} rows vary in {metrics[k].rank} of {self.n_features_in_} directions."
                    f"{others} Regularise it (reg_param > 0, shrinkage with solver='eigen', or "
                    "RegularizedDiscriminantAnalysis), or set singular='pseudo' to ignore the directions without variance.",
                )
            )
        self._covariances, self._metrics = covariances, metrics
        self.means_ = self._moments.means
        if not lacking:
            return Status.EXACT, ""
        names = Message.listing(self.classes_[lacking[:5]], " …" if len(lacking) > 5 else "", plain=True)
        return Status.PSEUDO, Message.of("Classes with a singular covariance: ", names, ".")

    @property
    def covariance_(self) -> list[Float]:
        """Covariance matrix of every class, with ``store_covariance=True``."""
        if not self.store_covariance:
            raise AttributeError("covariance_ is only there with store_covariance=True.")
        return super().covariance_

    def _eigen(self) -> list[tuple[Float, Float]]:
        if not hasattr(self, "_covariances"):
            raise AttributeError("scalings_ and rotations_ are there after fit.")
        pairs = [np.linalg.eigh(full_matrix(covariance)) for covariance in self._covariances]
        return [(values[::-1], vectors[:, ::-1]) for values, vectors in pairs]

    @property
    def scalings_(self) -> list[Float]:
        """Eigenvalues of every class covariance, falling."""
        return [values for values, _ in self._eigen()]

    @property
    def rotations_(self) -> list[Float]:
        """Eigenvectors of every class covariance, in the order of ``scalings_``."""
        return [vectors for _, vectors in self._eigen()]
