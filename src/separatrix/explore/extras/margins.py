"""Scores of the points themselves: losses of the margin, the mistakes of the perceptron, the masking of least squares.

m = ỹ f(x)      the margin of a row; a mistake where it is negative
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from separatrix.explore.drawing import chart, fact, series
from separatrix.explore.fitting import FittedRule
from separatrix.explore.surfaces import Contours
from separatrix.plots import MarginLossDisplay
from separatrix.result import Status

# The loss that each family minimises, where it is one of the margin.
_LOSSES = {
    "least-squares": "squared",
    "logistic": "logistic",
    "perceptron": "perceptron",
    "svm": "hinge",
    "linear-svm": "hinge",
    "passive-aggressive": "hinge",
}


def margin_loss(fitted: FittedRule, _: Contours) -> Iterator[dict[str, Any]]:
    """The loss as a function of the margin, beside the others, and where the points are on it."""
    points = fitted.state.points
    scores = fitted.binary_scores(points.X)
    if scores is None:
        return
    own = fitted.parameters.get("loss") if fitted.family.name == "margin-losses" else _LOSSES[fitted.family.name]
    counted = np.isin(points.codes, fitted.classes)
    margins = np.where(points.codes == fitted.classes[1], scores, -scores)[counted]
    if fitted.family.name == "perceptron":  # its length means nothing: in units of the mean
        margins = margins / (float(np.abs(margins).mean()) or 1.0)
    display = MarginLossDisplay.from_losses(margins=np.linspace(-3.0, 3.0, 121))
    drawn = [
        series(display.margins, values, name.replace("_", " "), kind="line" if name == own else "thin")
        for name, values in display.values.items()
    ]
    edges = np.linspace(-3.0, 3.0, 31)
    counts = np.histogram(np.clip(margins, -3.0, 3.0), edges, weights=points.weights[counted])[0]
    heights = 1.2 * counts / (counts.max() or 1.0)
    note = "Bars: the points, by their margin; those beyond ±3 are at the ends. Left of 0 they are on the wrong side."
    drawn.insert(0, series(edges, heights, "", kind="bars"))
    yield chart("Loss of the margin", "margin", "loss", drawn, note=note, ylim=[0.0, 4.0], marks=[0.0])


def mistakes(fitted: FittedRule, _: Contours) -> Iterator[dict[str, Any]]:
    """How many mistakes were made on the way, against Novikoff's bound."""
    model, points = fitted.final, fitted.state.points
    if not hasattr(model, "n_mistakes_"):
        return
    made = np.asarray(model.n_mistakes_)
    yield fact("mistakes", ", ".join(f"{count}" for count in made))
    if fitted.record is not None and fitted.record.status is Status.SEPARATES:
        bound = model.mistake_bound(points.X, points.codes, points.counted)
        yield fact("bound (D/δ)²", ", ".join(f"{limit:.4g}" for limit in bound))
    else:
        yield fact("bound (D/δ)²", "none known: some points are still on the wrong side")
    yield fact("epochs", str(model.n_iter_))


def masking(fitted: FittedRule, _: Contours) -> Iterator[dict[str, Any]]:
    """The fitted scores along the line of the outermost class means: a masked class is (almost) nowhere the largest."""
    state = fitted.state
    points, codes = state.points, fitted.classes
    means = np.array([points.X[points.codes == code].mean(axis=0) for code in codes])
    gaps = np.linalg.norm(means[:, None] - means, axis=2)
    one, two = np.unravel_index(int(gaps.argmax()), gaps.shape)
    t = np.linspace(-0.4, 1.4, 91)
    scores = fitted.scores(means[one] + t[:, None] * (means[two] - means[one])) if not fitted.decides else None
    if scores is None:
        return
    drawn = [series(t, scores[:, k], state.classes[code], action=int(code)) for k, code in enumerate(codes)]
    yield chart("Scores along the outermost means", "from one mean (0) to the other (1)", "score", drawn)
    predicted = fitted.predict(points.X)
    shares = {code: float(np.mean(predicted[points.codes == code] == code)) for code in codes.tolist()}
    masked = [
        f"{state.classes[code]}: {100 * share:.0f} % of its points" for code, share in shares.items() if share < 0.2
    ]
    yield fact("masked", ", ".join(masked) + " are given to it" if masked else "no class")
