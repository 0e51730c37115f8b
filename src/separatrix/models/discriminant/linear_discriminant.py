"""Linear discriminant analysis.

    δ_k(x) = xᵀΣ⁻¹μ_k − ½ μ_kᵀΣ⁻¹μ_k + log π_k,      posterior = softmax(δ)

Classes share Σ, so the quadratic terms cancel and every boundary is a hyperplane. For two classes
w = Σ⁻¹(μ₁−μ₀) and b = −½ μ₁ᵀΣ⁻¹μ₁ + ½ μ₀ᵀΣ⁻¹μ₀ + log π₁/π₀. Reference: Hastie, Tibshirani, Friedman, ESL 2nd ed., eq. 4.10.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data import Source
from separatrix.data.affine import Standardised
from separatrix.data.block import Float
from separatrix.geometry import Linear, ScoreForm
from separatrix.models.class_priors import class_priors
from separatrix.models.counted_classes import Undetermined
from separatrix.models.discriminant.canonical import CanonicalAxes, CanonicalTransformer
from separatrix.models.discriminant.covariance import (
    average,
    check_one_regulariser,
    class_covariances,
    estimated_covariances,
    full_matrix,
    second_pass_parameter,
)
from separatrix.models.discriminant.gaussian_classifier import GaussianClassifier
from separatrix.models.linear_rule import LinearRule, nan_where_infinite
from separatrix.models.scikit_learn import HasMethods, Interval, StrOptions
from separatrix.result import Certificate, Status
from separatrix.statistics.metric import Metric, metric_of, row_lengths
from separatrix.statistics.moments import Form
from separatrix.statistics.scatter import Scatter, combine
from separatrix.statistics.shrinkage import Covariance, shrunk

_NEAR = 1e4
# Eight digits of the objective: what "exact" promises.
_EXACT = 1e-8
# Of the size of a column: what rounding leaves of a constant.
_SAME = 1e-10


class LinearDiscriminantAnalysis(CanonicalTransformer, LinearRule, GaussianClassifier):
    """Linear discriminant analysis: Gaussian classes with one covariance, from one pass over the data.

    Drop-in for scikit-learn's, with weights, `partial_fit`, `merge`, sparse input and files on top.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        As in scikit-learn. All three read the same statistic. "svd" leaves out directions without variance (`tol`);
        "lsqr" and "eigen" take shrinkage; "svd" and "eigen" give `transform`.
    shrinkage : {"auto", "oas"}, float in [0, 1] or None, default=None
        (1−λ)Σ + λ(tr Σ/d)I. "auto" is Ledoit–Wolf on standardised columns, class by class, as in scikit-learn (a second
        pass); "oas" is the oracle approximating shrinkage, class by class.
    priors : array-like of shape (n_classes,), optional
        Class probabilities; by default their shares in the data.
    n_components : int, optional
        Number of coordinates of `transform`.
    store_covariance : bool, default=False
        Whether solver="svd" exposes ``covariance_`` too.
    tol : float, default=1e-4
        For "svd": a direction of standard deviation ≤ tol, in columns standardised within classes, has no variance.
    covariance_estimator : estimator, optional
        For "lsqr" and "eigen": an object with `fit` and ``covariance_``, applied to the rows of each class.
    covariance : {"mle", "unbiased"}, default="mle"
        Divide the pooled scatter by n (scikit-learn 1.9, R's method="mle") or by n − K (R's method="moment").

    Attributes
    ----------
    coef_, intercept_ : ndarray
        The linear rule; see `linear_form`.
    means_ : ndarray of shape (n_classes, n_features)
    priors_ : ndarray of shape (n_classes,)
    covariance_ : ndarray of shape (n_features, n_features)
        Formed when first asked for.
    scalings_ : ndarray of shape (n_features, rank)
        Canonical directions ("svd" and "eigen"), with scikit-learn's signs for up to 512 columns.
    explained_variance_ratio_ : ndarray
        Share of the between-class variance of each.
    xbar_ : ndarray of shape (n_features,)
        Mean of the class means under the priors.
    classes_ : ndarray
    fit_ : Fit
        Status, passes, seconds and certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> lda = LinearDiscriminantAnalysis().fit(X, y)
    >>> lda.score(X, y), lda.fit_.passes
    (0.98, 1)
    """

    _keeps_single = True
    _parameter_constraints: dict[str, list[Any]] = {
        "solver": [StrOptions({"svd", "lsqr", "eigen"})],
        "shrinkage": [StrOptions({"auto", "oas"}), Interval(Real, 0, 1, closed="both"), None],
        "priors": ["array-like", None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_estimator": [HasMethods("fit"), None],
        "covariance": [StrOptions({"mle", "unbiased"})],
    }

    def __init__(
        self,
        solver: Literal["svd", "lsqr", "eigen"] = "svd",
        shrinkage: float | Literal["auto", "oas"] | None = None,
        priors: ArrayLike | None = None,
        n_components: int | None = None,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        covariance: Literal["mle", "unbiased"] = "mle",
    ) -> None:
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.n_components = n_components
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator
        self.covariance = covariance

    def _form(self) -> Form:
        if self.solver == "svd":
            if self.shrinkage is not None:
                raise NotImplementedError(
                    "shrinkage not supported with 'svd' solver. Use solver='lsqr' or 'eigen'; all three cost the same here."
                )
            if self.covariance_estimator is not None:
                raise ValueError("covariance estimator is not supported with svd solver. Try another solver")
            return "pooled"
        check_one_regulariser(self)
        # scikit-learn weights the class covariances by the priors here; with empirical priors that is the pooled one.
        return "per_class" if self.priors is not None or isinstance(self.shrinkage, str) else "pooled"

    _second_pass_parameter = second_pass_parameter

    def _pooled_covariance(self, source: Source | None) -> Covariance:
        """The common covariance."""
        moments, d = self._moments, self.n_features_in_
        if self.covariance_estimator is not None:
            assert source is not None
            estimated = estimated_covariances(self.covariance_estimator, source, len(self.classes_))
            return average(estimated, self.priors_, d)
        if moments.form == "per_class":
            return average(class_covariances(moments, self.shrinkage, self.covariance, source), self.priors_, d)
        covariance = combine([(1.0 / moments.pooled_divisor(self.covariance), moments.pooled())], d)
        return shrunk(covariance, float(self.shrinkage or 0.0), "trace")

    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        moments, counts = self._moments, self._moments.counts
        n_classes = int((counts > 0).sum())
        if moments.total <= n_classes and moments.pooled().trace() == 0.0:
            raise Undetermined("The number of samples must be more than the number of classes.")
        if moments.pooled_divisor(self.covariance) <= 0:
            raise Undetermined(
                f"covariance='unbiased' divides by n − K, but the total weight is {moments.total:g} for {n_classes} "
                "classes; give more rows or use covariance='mle'."
            )
        self._max_components = self._number_of_components()
        self.priors_ = class_priors(self.priors, counts, self.classes_, source is None)
        scatter, floor = self._pooled_covariance(source)
        metric = metric_of(scatter, floor, tol=self.tol if self.solver == "svd" else 0.0)
        if metric.rank == 0:
            raise Undetermined(
                "No column varies inside any class, so there is no within-class covariance to learn; add rows, or columns "
                "that vary."
            )
        self._scatter, self._floor = scatter, floor
        self._metrics = [metric] * len(self.classes_)
        means = moments.means
        offsets = moments.offsets()
        offsets = np.where((counts > 0)[:, None], offsets - self.priors_ @ offsets, 0.0)
        xbar = self.priors_ @ means
        self._set_rule(offsets, xbar)
        if self.solver != "lsqr":
            weights = moments.total * self.priors_ / max(1, n_classes - 1)
            away = np.sqrt(counts / moments.total)[:, None] * moments.offsets() if self.solver == "eigen" else None
            self._axes = CanonicalAxes(offsets, weights, metric, (scatter, floor), self.tol, away)
        self.means_, self.xbar_ = means.astype(self._dtype, copy=False), xbar.astype(self._dtype, copy=False)
        if not metric.singular:
            return self._exactness(metric), ""
        return Status.PSEUDO, self._unused(metric.rank, scatter.diagonal(), means[counts > 0])

    def _unused(self, rank: int, variances: Float, means: Float) -> str:
        """In how many directions the rows vary, and which columns would separate the classes if they did not lack variance."""
        said = f"The rows vary within classes in {rank} of {self.n_features_in_} directions."
        size = np.abs(means).max(axis=0)
        differ = means.max(axis=0) - means.min(axis=0) > _SAME * size
        alone = np.flatnonzero((variances <= np.square(_SAME * size)) & differ)
        if not len(alone):
            return said
        names = getattr(self, "feature_names_in_", None)
        listed = ", ".join(str(j) if names is None else repr(str(names[j])) for j in alone[:5])
        more = f" and {len(alone) - 5} more" if len(alone) > 5 else ""
        return (
            f"{said} Not used, though constant within every class and different between classes, so that they separate them: "
            f"column{'' if len(alone) == 1 else 's'} {listed}{more}."
        )

    def _exactness(self, metric: Metric) -> Status:
        """The status by the certificate of the published rule, for a covariance without null directions."""
        certificate = self._certificate
        if not metric.complete:
            return Status.UNPROVEN
        if certificate.gap <= _EXACT * abs(certificate.objective) or not certificate.objective:
            return Status.EXACT
        return Status.STALLED if self._dtype == np.float64 else Status.ROUNDED

    def _set_rule(self, offsets: Float, xbar: Float) -> None:
        metric = self._metrics[0]
        coef = metric.solve(offsets)
        lengths = np.einsum("ij,ij->i", coef, offsets)
        with np.errstate(divide="ignore"):  # a class of prior 0 gets −inf: it is never chosen
            constant = -0.5 * lengths + np.log(self.priors_)
            intercept = constant - coef @ xbar
        # The rule minimises ½wᵀΣw − wᵀ(μ_k−μ): half the squared residual in its own metric is the gap.
        product = self._scatter.times(coef)
        residual = offsets - product - (0.0 if self._floor is None else coef * self._floor)
        size = np.abs(offsets) + np.sqrt(np.abs(lengths))[:, None] * np.sqrt(self._scatter.diagonal()) + np.abs(product)
        unit = float(np.finfo(self._dtype).eps) * (32.0 + 2.0 * np.sqrt(self._moments.total))
        proven = row_lengths(metric.half(residual)) + metric.half_bound(unit * size)
        where = "" if metric.complete else ", inside the directions in which the rows vary"
        self._certificate = Certificate(
            0.5 * float(np.square(proven).sum()),
            -0.5 * float(lengths.sum()),
            f"residual of ΣW = M − x̄ in the metric of Σ{where}",
            stationarity=float(np.abs(residual).max(initial=0.0)),
            kind="proven" if metric.complete or metric.singular else "estimated",
        )
        two = len(self.classes_) == 2
        if two:
            coef, intercept, constant = coef[1:] - coef[:1], intercept[1:] - intercept[:1], constant[1:] - constant[:1]
        # Scores are taken from the mean, (x − x̄)ᵀw + c: xᵀw + b loses digits far from the origin.
        self._centred, self._common = (coef, constant, xbar), None
        if not two and self.solver != "svd":  # scikit-learn measures from the origin: the same number for every class
            common = metric.solve(xbar[None, :])
            self._common = (common[0], -0.5 * float(common[0] @ xbar))
            intercept = intercept + self._common[1]
            coef = np.where((self._moments.counts > 0)[:, None], coef + common, coef)
        self.coef_ = coef.astype(self._dtype, copy=False)
        self.intercept_ = intercept.astype(self._dtype, copy=False)

    def _map_scores(self, X: Any, function: Callable[[Float], Float]) -> Float:
        self._check_ready()
        coef, constant, centre = self._centred
        if float((np.abs(coef) @ np.abs(centre)).max(initial=0.0)) < _NEAR:  # at most four digits of sixteen to lose
            shifted = constant - coef @ centre
            return self._map_rows(X, lambda block: nan_where_infinite(function, block.matvec(coef.T), shifted))
        return self._map_rows(
            X, lambda block: nan_where_infinite(function, Standardised.block(block, centre).matvec(coef.T), constant)
        )

    def decision_function(self, X: Any) -> Float:
        scores = super().decision_function(X)
        if self._common is None:
            return scores
        slope, constant = self._common
        shift = self._map_rows(X, lambda block: block.matvec(slope)) + constant
        return self._as_given(X, scores + shift[:, None])

    @property
    def _covariances(self) -> list[tuple[Scatter, Float | None]]:  # type: ignore[override]  # one for all classes
        return [(self._scatter, self._floor)] * len(self.classes_)

    def score_form(self) -> ScoreForm:
        self._check_ready()
        return Linear(*self._centred)

    @property
    def scalings_(self) -> Float:  # type: ignore[override]  # read only: found when it is asked for
        """The directions of `transform`, by falling share of the variance between classes."""
        return self._found_axes()[0].astype(self._dtype, copy=False)

    @property
    def explained_variance_ratio_(self) -> Float:  # type: ignore[override]  # as above
        """The shares of the variance between classes."""
        return self._found_axes()[1][: self._max_components].astype(self._dtype, copy=False)

    def _found_axes(self) -> tuple[Float, Float]:
        if self.solver == "lsqr" or not hasattr(self, "_axes"):
            raise AttributeError(
                "scalings_ and explained_variance_ratio_ are there after fit, for solver='svd' and 'eigen'."
            )
        return self._axes.found()

    @property
    def covariance_(self) -> Float:
        """The common covariance matrix."""
        if not hasattr(self, "_scatter") or (self.solver == "svd" and not self.store_covariance):
            raise AttributeError("covariance_ is there after fit, with solver='svd' only for store_covariance=True.")
        return full_matrix((self._scatter, self._floor)).astype(self._dtype, copy=False)

    def _projection(self) -> tuple[Float, Float | None]:
        if self.solver == "lsqr":
            raise NotImplementedError("transform not implemented for 'lsqr' solver (use 'svd' or 'eigen').")
        self._check_ready()
        directions = self.scalings_[:, : self._max_components].astype(np.float64)
        return directions, None if self.solver == "eigen" else self._centred[2]  # from the origin, as in scikit-learn

    @property
    def _n_features_out(self) -> int:
        return int(self._max_components)
