"""Boundaries between classes; linear rules: scores XWᵀ + b, their hyperplanes, and distances from them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.geometry import Hyperplane, Linear, Quadric, ScoreForm, Surface
from separatrix.geometry.score_form import Link
from separatrix.models.classifier import Classifier, Probabilities
from separatrix.models.counted_classes import only_class, rule_among_all
from separatrix.models.sparse_coefficients import dense
from separatrix.models.stopwatch import Stopwatch
from separatrix.result import Certificate, Status

Boundary = Hyperplane | Quadric | Surface


def nan_where_infinite(function: Callable[[Float], Float], products: Float, constant: Float) -> Float:
    """A function of scores Wx + b, in the place of Wx; NaN if a product is not finite, since a finite probability would hide
    NaN or ∞ in X.
    """
    finite = bool(np.isfinite(products).all())
    products += constant
    result = function(products)
    return result if finite else np.full_like(result, np.nan)


class Boundaries(Classifier):
    """A classifier with a boundary between any two classes."""

    @abstractmethod
    def _between(self, first: int, second: int) -> Boundary:
        """The boundary of two classes by their codes, positive on the side of the first."""

    def boundary(self, k: Any = None, l: Any = None) -> Boundary:  # noqa: E741  # names of the formulas
        """Where two classes have the same score; positive on the side of the first.

        Returns
        -------
        Hyperplane, Quadric or Surface
            A hyperplane where the rule is linear, a quadric for Gaussian classes that share no covariance.
        """
        self._check_ready()
        return self._between(*self._pair(k, l))


class SignedDistance(Classifier):
    """A classifier that is a linear rule, always or for some of its parameters."""

    @abstractmethod
    def linear_form(self) -> tuple[Float, Float]:
        """The rule as (W, b): scores are XWᵀ + b; b is −inf for a class none of whose rows has weight.

        An error where the parameters of the model make it another rule than a linear one.

        Returns
        -------
        W : ndarray of shape (1, n_features) for two classes, else (n_classes, n_features)
        b : ndarray of shape (1,) or (n_classes,)
        """

    def signed_distance(self, X: Any) -> Float:
        """f(x)/‖w‖: how far, and on which side, a row is from where its score vanishes.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        W, _ = self.linear_form()
        lengths = np.linalg.norm(W, axis=1)
        if (lengths == 0).any():
            raise ValueError("A class has a constant score, so there is no hyperplane to measure a distance to.")
        scores = self._linear_scores(X)
        return scores[:, 0] / lengths[0] if len(W) == 1 else scores / lengths

    def _linear_scores(self, X: Any) -> Float:
        W, b = self.linear_form()
        return self._map_rows(X, lambda block: block.matvec(W.T) + b)


class LinearRule(SignedDistance, Boundaries):
    """A classifier with scores XWᵀ + b."""

    coef_: Float
    intercept_: Float

    def _scores(self, X: Any) -> Float:
        return self._map_scores(X, lambda scores: scores)

    def _map_scores(self, X: Any, function: Callable[[Float], Float]) -> Float:
        if type(self)._scores is not LinearRule._scores:  # a model with scores of its own
            return super()._map_scores(X, function)
        # In the workers: beyond two classes the exponentials cost more than the products.
        self._check_ready()
        weights, constant = dense(self.coef_).T.astype(np.float64), np.asarray(self.intercept_, dtype=np.float64)
        return self._map_rows(X, lambda block: nan_where_infinite(function, block.matvec(weights), constant))

    def _place_among(self, known: NDArray[Any]) -> None:
        super()._place_among(known)
        if self._places is not None:
            size, halved = len(self.classes_), isinstance(self, Probabilities)
            self.coef_, self.intercept_ = rule_among_all(self.coef_, self.intercept_, self._places, size, halved=halved)

    def _constant(self, source: Source, watch: Stopwatch) -> None:
        """The rule where a single class has weight: that class."""
        source.refuse_non_finite()
        self.coef_, self.intercept_ = np.zeros((1, self.n_features_in_)), np.zeros(1)
        proof = Certificate(0.0, 0.0, "there is one class to choose from")
        self.fit_ = watch.fit(Status.EXACT, source.passes, only_class(self.classes_[0]), proof)
        self._place_classes(source)

    def linear_form(self) -> tuple[Float, Float]:
        self._check_ready()
        return dense(self.coef_), np.atleast_1d(self.intercept_)

    def score_form(self) -> ScoreForm:
        self._check_ready()
        link: Link = "softmax" if isinstance(self, Probabilities) else "none"
        return Linear.of(dense(self.coef_), self.intercept_, link)

    def _linear_scores(self, X: Any) -> Float:
        scores = self._scores(X)  # a model may know a way that keeps more digits
        return scores if len(self.linear_form()[0]) == scores.shape[1] else scores[:, 1:] - scores[:, :1]

    def _between(self, first: int, second: int) -> Boundary:
        return Hyperplane.between(*self.linear_form(), first, second)
