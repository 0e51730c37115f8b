"""What a classifier computes, as a small algebra: the scores of the classes, and how they become probabilities.

    Linear             s_k = w_k·(z − c) + b_k                       z = x, or [x > t]
                       with a spread: s/√(1 + πv/8),  v = ‖Gᵀ(z − c) + g‖² the variance of the score
    Quadratic          s_k = b_k − ½‖F_kᵀ(x − m_k)‖²
    KernelExpansion    s_m = b_m + Σ_i β_im k(x, x_i)
    Additive           s_k = b_k + Σ_j t_jk(x_j)                     additive_form.py
    OneVsRest          a machine for every class                     combined_forms.py
    PairVote           votes of a machine for every pair of classes
    Composition        s(φ(x))
    Placed             −∞ for classes without weight
    Integrated         s = log E p over a posterior

    softmax            p_k = e^{s_k}/Σe^s;   of a single score s: 1/(1 + e^{−s}) for the second class
    shares             p_k = q_k/Σq,   q_k = 1/(1 + e^{−s_k})        one machine for every class
    labels             every label for itself: it is given where s_k > 0
    none               scores only: the largest wins, or the sign of a single one

Two classes have one score, that of the second against the first, or one each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax

from separatrix.data.block import Float
from separatrix.data.frames import is_frame
from separatrix.dual.points import Points

if TYPE_CHECKING:  # kernels import scikit-learn's distances, which most models do not need
    from separatrix.dual.kernels import Kernel


class Curve(Protocol):
    """The probability of the second side as a function of the score, such as Platt's."""

    def probability(self, scores: Float) -> Float:
        """(n,) in (0, 1)."""


@dataclass(frozen=True)
class CalibratedLink:
    """Probabilities from one curve for each machine; `shares` makes those of the classes from the scores of all machines."""

    curves: tuple[Curve, ...]
    shares: Callable[[Float], Float]


@dataclass(frozen=True)
class ShiftedLink:
    """p_k ∝ r_k p_k, p by another link: (K,) ratios of the priors in use to those of the training."""

    link: Link
    ratios: Float


Link = Literal["softmax", "shares", "labels", "none"] | CalibratedLink | ShiftedLink


def probabilities_of(link: Link, scores: Float) -> Float:
    """(n, K) probabilities of the classes from their scores."""
    if isinstance(link, CalibratedLink):
        return link.shares(scores)
    if isinstance(link, ShiftedLink):
        return link_shifted(probabilities_of(link.link, scores), link)
    if link == "softmax" and scores.shape[1] == 1:
        return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
    if link == "softmax":
        return softmax(scores, axis=1)
    if link == "shares":
        each: Float = expit(scores)
        return each / each.sum(axis=1, keepdims=True)
    raise ValueError("The model has scores and no probabilities.")


def link_shifted(shares: Float, link: ShiftedLink) -> Float:
    """(n, K) probabilities under other priors."""
    joint = shares * link.ratios
    return joint / joint.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class ScoreForm(ABC):
    """The scores of a fitted classifier as a formula of the columns.

    Attributes
    ----------
    link : str, CalibratedLink or ShiftedLink
        How scores become probabilities: the head of `separatrix.geometry.score_form` lists the names.
    """

    link: Link = field(default="softmax", kw_only=True)

    @abstractmethod
    def scores(self, X: Any) -> Float:
        """(n_samples, n_classes) scores of rows, an array, a sparse matrix or a data frame; (n_samples, 1) for two classes."""

    def probabilities(self, X: Any) -> Float:
        """(n_samples, n_classes) probabilities of the classes, for every row; a ValueError where the link has none."""
        return probabilities_of(self.link, self.scores(X))

    def with_priors(self, priors: Float, training_priors: Float) -> Self:
        """The form where the classes have other frequencies, (n_classes,), than those of the training."""
        ratios = np.divide(priors, training_priors, out=np.zeros_like(priors), where=training_priors > 0)
        return replace(self, link=ShiftedLink(self.link, ratios))


class LogPosteriors(ScoreForm):
    """Scores that are log posteriors up to what all classes share: other priors are other constants."""

    constants: Float
    spread: tuple[Float, Float] | None = None

    def with_priors(self, priors: Float, training_priors: Float) -> Self:
        if self.link != "softmax" or self.spread is not None:
            return super().with_priors(priors, training_priors)
        with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
            shift = np.log(priors) - np.log(np.where(training_priors > 0, training_priors, 1.0))
        moved = self.constants + (shift[1:] - shift[:1] if len(self.constants) == 1 else shift)
        return replace(self, constants=moved)  # type: ignore[call-arg]  # every such form has constants


@dataclass(frozen=True)
class Linear(LogPosteriors):
    """w_k·(z − c) + b_k: (m, p) weights, (m,) constants, (p,) centre; with `above` the features are [x > above].

    With `spread` = (G, g), of shapes (p, q) and (q,), v = ‖Gᵀ(z − c) + g‖² is the variance of the score. A weight of −∞ makes a
    class impossible where its column is positive; where all classes are impossible the constants decide.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.geometry import Linear
    >>> form = Linear(np.array([[1.0, -1.0]]), np.array([0.5]), np.zeros(2))
    >>> form.scores([[2.0, 1.0]]).tolist()
    [[1.5]]
    """

    weights: Float
    constants: Float
    centre: Float
    above: float | None = None
    spread: tuple[Float, Float] | None = None

    @classmethod
    def of(cls, weights: Any, constants: Any, link: Link = "softmax") -> Linear:
        """Xwᵀ + b, from numbers of any precision."""
        W = np.asarray(weights, dtype=np.float64)
        return cls(W, np.atleast_1d(np.asarray(constants, dtype=np.float64)), np.zeros(W.shape[1]), link=link)

    @property
    def plain(self) -> bool:
        """Whether it is one score of the columns themselves, and no more: with the probability 1/(1 + e^{−s}), or none."""
        bare = self.above is None and self.spread is None
        return bare and len(self.weights) == 1 and self.link in ("softmax", "none")

    def scores(self, X: Any) -> Float:
        z = dense_rows(X)
        z = (z if self.above is None else (z > self.above).astype(np.float64)) - self.centre
        impossible = np.isneginf(self.weights)
        scores = z @ np.where(impossible, 0.0, self.weights).T + self.constants
        if self.spread is not None:
            slopes, constants = self.spread
            scores /= np.sqrt(1.0 + np.pi / 8.0 * np.square(z @ slopes + constants).sum(axis=1, keepdims=True))
        if impossible.any():
            excluded = z @ impossible.T.astype(np.float64) > 0
            scores[excluded & ~excluded.all(axis=1, keepdims=True)] = -np.inf
        return scores


@dataclass(frozen=True)
class Quadratic(LogPosteriors):
    """b_k − ½‖F_kᵀ(x − m_k)‖²: (K, p) means, K factors of shape (p, r), or (p,) for a diagonal, and (K,) constants."""

    means: Float
    factors: list[Float]
    constants: Float

    def scores(self, X: Any) -> Float:
        rows = dense_rows(X)
        scores = np.empty((len(rows), len(self.constants)))
        for k, (mean, factor, constant) in enumerate(zip(self.means, self.factors, self.constants, strict=True)):
            away = rows - mean
            white = away * factor if factor.ndim == 1 else away @ factor
            scores[:, k] = constant - 0.5 * np.einsum("ij,ij->i", white, white)
        return scores


@dataclass(frozen=True)
class KernelExpansion(ScoreForm):
    """b_m + Σ_i β_im k(x, x_i): points x_i, (n, m) coefficients, (m,) constants, and the kernel."""

    points: Points
    coefficients: Float
    constants: Float
    kernel: Kernel

    def scores(self, X: Any) -> Float:
        rows = Points(X.tocsr() if sp.issparse(X) else dense_rows(X), self.points.centre)
        return self.kernel.between(rows, self.points) @ self.coefficients + self.constants


class NoScoreForm(TypeError):
    """An `estimator` whose scores are not known as algebra: one of another library, or one that answers `at_random`."""

    def __init__(self, estimator: Any, at_random: bool = False) -> None:
        self.estimator, self.at_random = estimator, at_random
        super().__init__(f"{type(estimator).__name__} has no score_form; give a model of separatrix.")


def score_form_of(estimator: Any) -> ScoreForm:
    """The score form of a fitted estimator; scikit-learn's constant classifiers are linear with weights 0."""
    if hasattr(estimator, "score_form"):
        return estimator.score_form()
    from sklearn.dummy import DummyClassifier  # seldom needed

    if not isinstance(estimator, DummyClassifier) or estimator.strategy in ("stratified", "uniform"):
        raise NoScoreForm(estimator, at_random=isinstance(estimator, DummyClassifier))
    p = estimator.predict_proba(np.zeros((1, 1)))[0]
    with np.errstate(divide="ignore"):  # a class of share 0 is never chosen
        return Linear.of(np.zeros((len(p), estimator.n_features_in_)), np.log(p))


def dense_rows(X: Any) -> Float:
    """Rows as an array of doubles."""
    if is_frame(X):
        import narwhals as nw

        X = nw.from_native(X, eager_only=True).to_numpy()
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
