"""Machines: margin, support vectors and slacks of one of two classes, and where several machines contradict each other.

slack  ξ = max(0, 1 − ỹ f(x))           width of the margin  2/‖w‖
rest   ambiguous where not exactly one machine claims x:       min(s₍₁₎, −s₍₂₎) < 0
pairs  ambiguous where no class wins all its pairs:            max_k min_l f_kl < 0

s₍₁₎ ≥ s₍₂₎ are the largest scores of the machines, f_kl that of a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from separatrix.explore.drawing import area, fact, lines, rings
from separatrix.explore.fitting import FittedRule
from separatrix.explore.surfaces import Contours


def margin(fitted: FittedRule, contours: Contours) -> Iterator[dict[str, Any]]:
    """The lines f = ±1, the support vectors, and by how much points fall short of their margin."""
    model, points = fitted.final, fitted.state.points
    support = np.asarray(model.support_)
    yield rings("support", support, None, "support vectors")
    yield fact("support vectors", f"{len(support)} of {len(points.X)}")
    scores = fitted.binary_scores(points.X)
    if scores is None:
        return
    on_grid = fitted.binary_scores(contours.grid)
    assert on_grid is not None
    for level, code in ((-1.0, fitted.classes[0]), (1.0, fitted.classes[1])):
        yield lines("margin", contours.level(on_grid, level), action=int(code))
    slack = np.maximum(0.0, 1.0 - np.where(points.codes == fitted.classes[1], scores, -scores))
    short = np.flatnonzero(slack > 1e-3)
    yield rings("slack", short, slack[short], "slack")
    yield fact("slack in all", f"{slack @ points.weights:.4g}")
    if model.kernel == "linear":
        yield fact("width of the margin", f"{2.0 / np.linalg.norm(model.coef_):.4g}")


def ambiguity(fitted: FittedRule, contours: Contours) -> Iterator[dict[str, Any]]:
    """Where the machines of two sides do not agree on one class; and the line of each of them."""
    model, codes = fitted.final, fitted.classes.tolist()
    if len(codes) < 3:
        yield fact("ambiguous", "nowhere: there are only two classes")
        return
    if fitted.parameters["scheme"] == "softmax":
        yield fact("ambiguous", "nowhere: one model has a probability for every class")
        return
    rest = fitted.parameters["scheme"] == "rest"
    scores = np.asarray(model.decision_function(contours.grid)) if rest else fitted.pair_scores(contours.grid)
    for column in scores.T:
        yield lines("machine", contours.level(column))
    if rest:
        order = np.sort(scores, axis=1)
        clear = np.minimum(order[:, -1], -order[:, -2])
    else:
        clear = fitted.led_by(contours.grid).max(axis=1)
    yield area("ambiguous", contours.above(-clear), "ambiguous")
    yield fact("ambiguous", f"{100.0 * np.mean(clear < 0.0):.3g} % of the picture")
