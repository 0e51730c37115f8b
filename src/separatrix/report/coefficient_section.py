"""The coefficients of a linear model with their intervals: a forest plot of the largest, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from separatrix.comparison.inspection import CoefficientIntervals
from separatrix.data.block import Float
from separatrix.plots.coefficients import CoefficientDisplay, score_names
from separatrix.report.figures import Drawing, label_width, new_axes, tips_at
from separatrix.report.svg import inline_svg
from separatrix.report.tables import PageTable, number, short

MOST_DRAWN, MOST_LISTED = 15, 120
# So many times the next coefficient is too large for one picture.
OUTLYING = 4.0
_SOURCES = {
    "posterior": "Intervals: 95 % of the posterior.",
    "laplace": (
        "Intervals: 95 % of the posterior whose prior is the penalty: Laplace's approximation or, where that is far off, "
        "a better Gaussian."
    ),
    "folds": "Intervals: the range over {} folds, which is no confidence interval.",
    "directions": "Intervals: the range over {} folds, which is no confidence interval. Those of a fold are scaled to the "
    "length of the estimates: a perceptron fixes their direction alone.",
}


def forest(name: str, given: CoefficientIntervals, classes: Sequence[str]) -> Drawing:
    """The largest coefficients as points with their intervals."""
    owners = score_names(classes, len(given.estimates))
    names = [column if len(owners) == 1 else f"{column}, {owner}" for owner in owners for column in given.names]
    estimates, lower, upper = given.estimates.ravel(), given.lower.ravel(), given.upper.ravel()
    drawn = min(MOST_DRAWN, len(names))
    labels = [short(text) for text in names]
    figure, ax = new_axes(0.7 + 0.24 * drawn, left=label_width(labels))
    shown = CoefficientDisplay(labels, estimates, lower, upper).plot(ax, max_rows=MOST_DRAWN, markersize=4)
    ax.set(xlabel="coefficient")
    beyond = _keep_readable(ax, estimates[shown.order_], lower[shown.order_], upper[shown.order_])
    ax.grid(False, axis="y")
    ax.spines["left"].set_visible(False)
    told = [f"{names[j]} {number(estimates[j])} from {number(lower[j])} to {number(upper[j])}" for j in shown.order_]
    described = "; ".join(told)
    all_of = "" if drawn == len(names) else f" The {drawn} largest of {len(names)}."
    one = classes[1] if len(classes) == 2 else "higher classes"  # one line for many classes: that of an order
    toward = f"Above zero speaks for {one if len(owners) == 1 else 'the class named'}."
    return Drawing(
        inline_svg(figure, name, f"Coefficients with intervals, largest first: {described}."),
        "Coefficients of the encoded columns: of numbers for one standard deviation, of categories for half the step to them. "
        f"{toward} {_source(given)}{all_of}"
        + (" An arrow stands for one that would lie far outside the picture." if beyond else ""),
        tips=tips_at(ax, np.clip(estimates[shown.order_], *ax.get_xlim()), range(drawn), told),
    )


def _keep_readable(ax: Any, estimates: Float, lower: Float, upper: Float) -> bool:
    """Leave out of the picture, with an arrow and the number, the few coefficients beside which the others would be dots."""
    sizes = np.abs(estimates)  # the largest first
    n_beyond = next((k for k in range(min(3, len(sizes) - 1), 0, -1) if sizes[k - 1] > OUTLYING * sizes[k] > 0), 0)
    if not n_beyond:
        return False
    ends = np.abs(np.concatenate([estimates[n_beyond:], lower[n_beyond:], upper[n_beyond:]]))
    limit = 1.15 * float(np.minimum(ends, OUTLYING * sizes[n_beyond]).max())
    ax.set_xlim(-limit, limit)
    for place in range(n_beyond):
        right = estimates[place] > 0
        text = f"{number(estimates[place])} →" if right else f"← {number(estimates[place])}"
        ax.text(limit if right else -limit, place, text, ha="right" if right else "left", va="center", fontsize=9)
    return True


def coefficient_table(given: CoefficientIntervals, classes: Sequence[str]) -> PageTable:
    """The coefficients as numbers, the columns with the largest first."""
    owners = score_names(classes, len(given.estimates))
    several = len(owners) > 1
    order = np.argsort(-np.abs(given.estimates).max(axis=0), kind="stable")[: max(1, MOST_LISTED // len(owners))]
    parts = (given.estimates, given.lower, given.upper)
    cells = [
        [given.names[j], *([owner] if several else []), *(number(part[k, j]) for part in parts)]
        for j in order
        for k, owner in enumerate(owners)
    ]
    head = ["column", *(["class"] if several else []), "coefficient", "lower", "upper"]
    listed = (
        "" if len(order) == len(given.names) else f" The {len(order)} columns with the largest of {len(given.names)}."
    )
    numeric = [False] * (len(head) - 3) + [True] * 3
    return PageTable(f"Coefficients. {_source(given)}{listed}", head, cells, numeric)


def _source(given: CoefficientIntervals) -> str:
    return _SOURCES[given.kind].format(given.n_folds)
