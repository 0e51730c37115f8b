"""The coefficients of a linear model with intervals: a forest plot of the largest and a table.

Where the intervals come from depends on the family, and is said: the Laplace posterior w ~ N(ŵ, H⁻¹) of the logistic models,
the range over the folds for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.models.bayesian.bayesian_logistic import BayesianLogisticRegression
from separatrix.plots.coefficients import CoefficientDisplay
from separatrix.report.figures import Drawing, label_width, new_axes
from separatrix.report.svg import inline_svg
from separatrix.report.tables import Table, number, short

MOST_DRAWN, MOST_LISTED = 15, 120


@dataclass(frozen=True)
class Coefficients:
    """Coefficients (m, p) with the ends of their intervals, and where these come from."""

    names: Sequence[str]
    estimates: Float
    lower: Float
    upper: Float
    sentence: str

    @property
    def numbers(self) -> tuple[Float, Float, Float]:
        """The estimates and both ends."""
        return self.estimates, self.lower, self.upper


def coefficients(candidate: Any, X: Float, codes: NDArray[np.intp]) -> Coefficients | None:
    """Those of a candidate whose model is linear in encoded columns; None for the others.

    Parameters
    ----------
    candidate : Candidate
    X : ndarray of shape (n_samples, n_features)
        Rows as its model encodes them.
    codes : ndarray of shape (n_samples,)
    """
    estimator = candidate.model.estimator
    if candidate.fold_coefs is None or candidate.model.encoder is None:
        return None
    names, estimates = candidate.model.encoder.feature_names_, np.atleast_2d(estimator.coef_)
    if candidate.family == "bayesian-logistic":
        lower, upper = estimator.coef_interval(0.95)
        return Coefficients(names, estimates, lower, upper, "Intervals: 95 % of the posterior.")
    if candidate.family == "logistic":
        posterior = BayesianLogisticRegression(prior_precision=1.0 / estimator.C).fit(X, codes)
        lower, upper = posterior.coef_interval(0.95)
        sentence = "Intervals: 95 % of the Laplace approximation of the posterior whose prior is the penalty."
        return Coefficients(names, estimates, lower, upper, sentence)
    folds = candidate.fold_coefs
    sentence = f"Intervals: the range over {len(folds)} folds, which is no confidence interval."
    if candidate.family == "perceptron":
        # Every mistake adds to the length of w, which decides nothing and would drown the differences in direction.
        lengths, own = np.linalg.norm(folds, axis=2, keepdims=True), np.linalg.norm(estimates, axis=1, keepdims=True)
        folds = folds * np.divide(own, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        sentence += (
            " Those of a fold are scaled to the length of the estimates: a perceptron fixes their direction alone."
        )
    return Coefficients(names, estimates, folds.min(axis=0), folds.max(axis=0), sentence)


def forest(name: str, given: Coefficients, classes: Sequence[str]) -> Drawing:
    """The largest coefficients as points with their intervals."""
    owners = _owners(len(given.estimates), classes)
    names = [column if len(owners) == 1 else f"{column}, {owner}" for owner in owners for column in given.names]
    estimates, lower, upper = given.estimates.ravel(), given.lower.ravel(), given.upper.ravel()
    drawn = min(MOST_DRAWN, len(names))
    labels = [short(text) for text in names]
    figure, ax = new_axes(0.7 + 0.24 * drawn, left=label_width(labels))
    shown = CoefficientDisplay(labels, estimates, lower, upper).plot(ax, max_rows=MOST_DRAWN, markersize=4)
    ax.set(xlabel="coefficient")
    ax.grid(False, axis="y")
    ax.spines["left"].set_visible(False)
    told = "; ".join(
        f"{names[j]} {number(estimates[j])} from {number(lower[j])} to {number(upper[j])}" for j in shown.order_
    )
    all_of = "" if drawn == len(names) else f" The {drawn} largest of {len(names)}."
    toward = f"Above zero speaks for {classes[1]}." if len(owners) == 1 else "Above zero speaks for the class named."
    return Drawing(
        inline_svg(figure, name, f"Coefficients with intervals, largest first: {told}."),
        f"Coefficients of the encoded columns, each in units of its standard deviation. {toward} {given.sentence}{all_of}",
    )


def coefficient_table(given: Coefficients, classes: Sequence[str]) -> Table:
    """The coefficients as numbers, the columns with the largest first."""
    owners = _owners(len(given.estimates), classes)
    several = len(owners) > 1
    order = np.argsort(-np.abs(given.estimates).max(axis=0), kind="stable")[: max(1, MOST_LISTED // len(owners))]
    cells = [
        [given.names[j], *([owner] if several else []), *(number(part[k, j]) for part in given.numbers)]
        for j in order
        for k, owner in enumerate(owners)
    ]
    head = ["column", *(["class"] if several else []), "coefficient", "lower", "upper"]
    listed = (
        "" if len(order) == len(given.names) else f" The {len(order)} columns with the largest of {len(given.names)}."
    )
    return Table(f"Coefficients. {given.sentence}{listed}", head, cells, [False] * (len(head) - 3) + [True] * 3)


def _owners(rows: int, classes: Sequence[str]) -> Sequence[str]:
    """What each row of coefficients speaks for: the second of two classes, every class, or one class of every pair."""
    if rows == 1:
        return classes[1:]
    return classes if rows == len(classes) else [f"{a} against {b}" for a, b in combinations(classes, 2)]
