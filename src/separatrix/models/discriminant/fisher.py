"""Fisher's discriminant coordinates (canonical variates): an embedding, not a rule.

    S_W⁻¹ S_B v = λ v,   S_B = Σ_k n_k (μ_k−μ)(μ_k−μ)ᵀ,   within-class covariance of the scores = I

Without the counts, S_B = Σ_k (μ_k−μ̄)(μ_k−μ̄)ᵀ about the mean μ̄ of the class means: small classes count as much as large
ones. For balanced classes the two are the same.

For two classes v ∝ S_W⁻¹(μ₁−μ₀), and a threshold of the one coordinate makes a rule of it: halfway between the projected means,
or where Gaussian classes with this covariance and some priors are equally likely,

    t = ½(vᵀμ₀ + vᵀμ₁) − vᵀx̄ + log(π₀/π₁) / vᵀ(μ₁−μ₀)

Reference: Fisher (1936); Mardia, Kent and Bibby, section 12.5.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.models.class_priors import class_priors
from separatrix.models.counted_classes import Undetermined
from separatrix.models.discriminant.canonical import CanonicalTransformer, canonical_directions
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.result import Status
from separatrix.statistics.metric import metric_of
from separatrix.statistics.moments import Form
from separatrix.statistics.scatter import combine
from separatrix.statistics.shrinkage import shrunk


class FisherDiscriminant(CanonicalTransformer):
    """Fisher's discriminant coordinates: where the class means differ most, in units of the within-class spread.

    Parameters
    ----------
    n_components : int, optional
        Number of coordinates; by default all, min(K − 1, d) at most.
    shrinkage : float in [0, 1], default=0.0
        (1−λ)Σ + λ(tr Σ/d)I for the within-class covariance.
    tol : float, default=1e-4
        A direction of standard deviation ≤ tol, in columns standardised within classes, has no variance and is left out.
    covariance : {"mle", "unbiased"}, default="mle"
        Divide the within-class scatter by n, or by n − K: the scale in which the scores have unit variance.
    class_means : {"weighted", "unweighted"}, default="weighted"
        Whether the scatter of the class means counts each with its rows, or all alike.

    Attributes
    ----------
    scalings_ : ndarray of shape (n_features, n_components)
        Directions.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of the between-class variance along each.
    means_ : ndarray of shape (n_classes, n_features)
    xbar_ : ndarray of shape (n_features,)
        Mean of all rows; the scores are measured from it.
    classes_ : ndarray
    fit_ : Fit

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import FisherDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> fisher = FisherDiscriminant().fit(X, y)
    >>> fisher.transform(X).shape
    (150, 2)
    >>> fisher.explained_variance_ratio_.round(4)
    array([0.9912, 0.0088])
    """

    means_: Float

    _parameter_constraints: dict[str, list[Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "shrinkage": [Interval(Real, 0, 1, closed="both")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance": [StrOptions({"mle", "unbiased"})],
        "class_means": [StrOptions({"weighted", "unweighted"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        shrinkage: float = 0.0,
        tol: float = 1e-4,
        covariance: Literal["mle", "unbiased"] = "mle",
        class_means: Literal["weighted", "unweighted"] = "weighted",
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.tol = tol
        self.covariance = covariance
        self.class_means = class_means

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _form(self) -> Form:
        return "pooled"

    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        moments, d = self._moments, self.n_features_in_
        divisor = moments.pooled_divisor(self.covariance)
        if divisor <= 0 or moments.pooled().trace() == 0.0:
            raise Undetermined(
                "No column varies inside any class: the number of samples must be more than the number of classes."
            )
        kept = self._number_of_components()
        covariance = combine([(1.0 / divisor, moments.pooled())], d)
        metric = metric_of(*shrunk(covariance, self.shrinkage, "trace"), tol=self.tol)
        offsets, counts = moments.offsets(), moments.counts
        if self.class_means == "unweighted":
            present = counts > 0
            offsets = np.where(present[:, None], offsets - offsets[present].mean(axis=0), 0.0)
            counts = present.astype(np.float64)
        directions, shares = canonical_directions(offsets, counts, metric, self.tol)
        self.scalings_, self.explained_variance_ratio_ = directions[:, :kept], shares[:kept]
        self.means_, self.xbar_ = moments.means, moments.mean()
        if not metric.singular:
            return Status.EXACT, ""
        return Status.PSEUDO, f"The rows vary within classes in {metric.rank} of {d} directions."

    def threshold(self, priors: ArrayLike | Literal["data"] | None = None) -> float:
        """Of two classes: the coordinate above which a row is given to the second.

        Parameters
        ----------
        priors : array-like of shape (2,) or "data", optional
            Equal by default, which is halfway between the projected means. "data" are the shares of the classes: with it, and
            without shrinkage, this is the rule of `LinearDiscriminantAnalysis`.

        Returns
        -------
        float

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from separatrix import FisherDiscriminant
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> fisher = FisherDiscriminant().fit(X, y)
        >>> float(((fisher.transform(X)[:, 0] > fisher.threshold()) == y).mean().round(3))
        0.968
        """
        self._check_ready()
        counts = self._moments.counts
        if len(self.classes_) != 2 or not (counts > 0).all():
            raise ValueError(f"A threshold is that between two classes, and there are {int((counts > 0).sum())}.")
        first, second = (np.asarray(self.means_, dtype=np.float64) - self.xbar_) @ self.scalings_[:, 0]
        if isinstance(priors, str) and priors != "data":
            raise ValueError(f"priors is {priors!r}; give two numbers, 'data', or None for equal ones.")
        given = (0.5, 0.5) if priors is None else None if isinstance(priors, str) else priors
        shares = class_priors(given, counts, self.classes_, waiting=False)
        with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
            return float(0.5 * (first + second) + np.diff(np.log(shares[::-1]))[0] / (second - first))
