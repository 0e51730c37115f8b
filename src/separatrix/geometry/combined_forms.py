"""Score forms made of others: machines for two sides, transformed rows, classes without weight.

OneVsRest     s_k = f_k(x), one machine f_k for each class;   p_k = q_k/Σq of the machines' probabilities q
PairVote      s_k = votes_k + c_k/(3(|c_k| + 1)),   c_k the sum of the scores of the machines for class k
Composition   s(φ(x))
Placed        s_k = −∞ and p_k = 0 for the classes without weight
Integrated    s = log E p over a posterior: a function of rows, no algebra
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from separatrix.data.block import Codes, Float
from separatrix.geometry.score_form import Linear, Link, ScoreForm, ShiftedLink, link_shifted, probabilities_of
from separatrix.geometry.votes import tally, vote_scores


@dataclass(frozen=True)
class Machines(ScoreForm):
    """Machines for two sides, a column for each: its score, or p − `threshold` of the second side where that is given."""

    machines: tuple[ScoreForm, ...]
    threshold: float | None = None

    def scores(self, X: Any) -> Float:
        if self.threshold is not None:
            return self.second_sides(X) - self.threshold
        each = (machine.scores(X) for machine in self.machines)
        return np.column_stack([s[:, 0] if s.shape[1] == 1 else s[:, 1] - s[:, 0] for s in each])

    def second_sides(self, X: Any) -> Float:
        """(n, machines) probabilities of the second side of each."""
        return np.column_stack([machine.probabilities(X)[:, 1] for machine in self.machines])


@dataclass(frozen=True)
class OneVsRest(ScoreForm):
    """A machine for every class against the rest; with `deduced` the last class has none, and the score 0."""

    machines: Machines
    deduced: bool = False

    def scores(self, X: Any) -> Float:
        scores = self.machines.scores(X)
        return np.pad(scores, ((0, 0), (0, 1))) if self.deduced else scores

    def probabilities(self, X: Any) -> Float:
        if self.link == "none":
            return super().probabilities(X)
        shares = one_vs_rest_probabilities(self.machines.second_sides(X), self.deduced)
        return link_shifted(shares, self.link) if isinstance(self.link, ShiftedLink) else shares


def one_vs_rest(machines: Machines, deduced: bool) -> ScoreForm:
    """The form of machines against the rest: linear itself where all of them are, each with one score."""
    forms = [form for form in machines.machines if isinstance(form, Linear) and form.plain]
    scores_only = all(form.link == "none" for form in machines.machines)
    if deduced or machines.threshold is not None or len(forms) < len(machines.machines):
        return OneVsRest(machines, deduced, link="none" if scores_only else "shares")
    constants = [float(form.constants[0] - form.weights[0] @ form.centre) for form in forms]
    link: Link = "none" if scores_only else "softmax" if len(forms) == 1 else "shares"
    return Linear.of(np.vstack([form.weights for form in forms]), constants, link)


def one_vs_rest_probabilities(own: Float, deduced: bool) -> Float:
    """(n, K) probabilities of the classes from those of the machines; of a single machine, of its two sides."""
    if own.shape[1] == 1:
        return np.hstack([1.0 - own, own])
    if deduced:
        # p_k Π_{j≠k}(1 − p_j) over Π_j(1 − p_j) is the odds of k.
        with np.errstate(divide="ignore"):
            odds = np.log(own) - np.log(np.maximum(1.0 - own, np.finfo(np.float64).tiny))
        return softmax(np.pad(odds, ((0, 0), (0, 1))), axis=1)
    total = own.sum(axis=1, keepdims=True)
    # Where every machine is sure of the rest the classes are equally likely.
    return np.divide(own, total, out=np.full_like(own, 1.0 / own.shape[1]), where=total > 0)


@dataclass(frozen=True)
class PairVote(ScoreForm):
    """A machine for every pair of classes (0,1), (0,2), …, (1,2), …, and their vote.

    `pairs` is positive for the first class of each pair, or for the second where `second` is set. Where `confidences` are
    given, laid out alike, these are summed instead of the scores.
    """

    pairs: ScoreForm
    n_classes: int
    second: bool = False
    confidences: ScoreForm | None = None

    def scores(self, X: Any) -> Float:
        sign = -1.0 if self.second else 1.0
        scores = sign * self.pairs.scores(X)
        confidences = scores if self.confidences is None else sign * self.confidences.scores(X)
        result = pair_votes(scores, self.n_classes, confidences)
        return result[:, 1:] if self.n_classes == 2 else result

    def probabilities(self, X: Any) -> Float:
        return probabilities_of(self.link, self.pairs.scores(X))


def pair_votes(scores: Float, n_classes: int, confidences: Float | None = None) -> Float:
    """(n, K) votes with the sums of the scores squeezed below one vote; a score of exactly 0 is for the first class."""
    confidences = scores if confidences is None else confidences
    return vote_scores(*tally(((f >= 0, c) for f, c in zip(scores.T, confidences.T, strict=True)), n_classes))


@dataclass(frozen=True)
class WrappedForm(ScoreForm):
    """A form around another, whose link it has."""

    form: ScoreForm

    def __post_init__(self) -> None:
        object.__setattr__(self, "link", self.form.link)

    def with_priors(self, priors: Float, training_priors: Float) -> Self:
        return replace(self, form=self.form.with_priors(priors, training_priors))


@dataclass(frozen=True)
class Composition(WrappedForm):
    """s(φ(x)): a form of transformed rows."""

    transform: Callable[[Any], Any]

    def scores(self, X: Any) -> Float:
        return self.form.scores(self.transform(X))

    def probabilities(self, X: Any) -> Float:
        return self.form.probabilities(self.transform(X))


@dataclass(frozen=True)
class Placed(WrappedForm):
    """A form of the classes that have weight, at their places among all; `halved` as for `among_all`."""

    places: Codes
    n_classes: int
    halved: bool

    def scores(self, X: Any) -> Float:
        return among_all(self.form.scores(X), self.places, self.n_classes, halved=self.halved)

    def probabilities(self, X: Any) -> Float:
        shares = self.form.probabilities(X) if len(self.places) > 1 or self.link == "none" else None
        shares = np.ones((len(self.form.scores(X)), 1)) if shares is None else shares
        return shares_among_all(shares, self.places, self.n_classes)

    def with_priors(self, priors: Float, training_priors: Float) -> Self:
        return super().with_priors(priors[self.places], training_priors[self.places]) if len(self.places) > 1 else self


@dataclass(frozen=True)
class Integrated(ScoreForm):
    """Logarithms of probabilities, or the log-odds of two, integrated over a posterior by a function of rows."""

    integral: Callable[[Any], Float]

    def scores(self, X: Any) -> Float:
        return self.integral(X)


def among_all(scores: Float, places: Codes, n_classes: int, *, halved: bool, fill: float = -np.inf) -> Float:
    """(n, K) or, for two classes, (n, 1) scores of all classes from those of the k < K that have weight, at their places.

    `halved` is whether one score for two classes is a difference (log-odds), or the second's own; `fill` is for the others.
    """
    if len(places) == 1:
        if n_classes == 2:
            return np.full((len(scores), 1), np.inf if places[0] == 1 else -np.inf)
        scores = np.zeros((len(scores), 1))
    elif scores.shape[1] == 1:
        scores = np.hstack([-scores, scores]) * (0.5 if halved else 1.0)
    result = np.full((len(scores), n_classes), fill)
    result[:, places] = scores
    return result


def shares_among_all(shares: Float, places: Codes | None, n_classes: int) -> Float:
    """(n, K) probabilities of all classes from those of the classes that have weight."""
    if places is None:
        return shares
    result = np.zeros((len(shares), n_classes))
    result[:, places] = shares
    return result
