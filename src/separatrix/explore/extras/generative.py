"""Densities of the classes: ellipses of equal Mahalanobis distance, the two densities of naive Bayes, Fisher's projection.

(x−μ_k)ᵀΣ_k⁻¹(x−μ_k) = r²,  r = 1, 2

μ_k and Σ_k are those that the model uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import norm

from separatrix.explore.drawing import chart, fact, lines, series
from separatrix.explore.fitting import FittedRule
from separatrix.explore.surfaces import Contours, line_of


def ellipses(fitted: FittedRule, contours: Contours) -> Iterator[dict[str, Any]]:
    """One and two standard deviations of every class, as the model sees them."""
    squared = fitted.final.mahalanobis(contours.grid)
    for k, code in enumerate(fitted.classes.tolist()):
        for radius in (1.0, 2.0):
            yield lines("ellipse", contours.level(squared[:, k], radius**2), action=code)
    shared = bool(fitted.final.shares_covariance_)
    yield fact("covariance", "one for all classes: linear boundaries" if shared else "one for each class: conics")


def densities(fitted: FittedRule, contours: Contours) -> Iterator[dict[str, Any]]:
    """p(x_j | k) of both columns, and the axis-parallel ellipses they make."""
    model, state = fitted.final, fitted.state
    means, deviations = model.theta_, np.sqrt(model.var_)
    for k, code in enumerate(fitted.classes.tolist()):
        squared = (((contours.grid - means[k]) / deviations[k]) ** 2).sum(axis=1)
        for radius in (1.0, 2.0):
            yield lines("ellipse", contours.level(squared, radius**2), action=code)
    for j, values in enumerate((contours.x, contours.y)):
        drawn = [
            series(values, norm.pdf(values, means[k, j], deviations[k, j]), state.classes[code], action=code)
            for k, code in enumerate(fitted.classes.tolist())
        ]
        yield chart(f"Density of {state.axes[j]} within each class", state.axes[j], "density", drawn)


def projection(fitted: FittedRule, contours: Contours) -> Iterator[dict[str, Any]]:
    """Fisher's first direction, and the rows projected on it."""
    fisher, state = fitted.model[0], fitted.state
    scores = fisher.transform(state.points.X)[:, 0]
    direction = fisher.scalings_[:, 0]
    across = np.array([-direction[1], direction[0]])
    yield lines("direction", line_of(state.view, across, -float(across @ fisher.xbar_)), label="Fisher's direction")
    edges = np.linspace(scores.min(), scores.max() + 1e-12, 25)
    drawn = [
        series(
            edges,
            np.histogram(scores[own], edges, weights=state.points.weights[own])[0],
            state.classes[code],
            kind="bars",
            action=code,
        )
        for code in fitted.classes.tolist()
        for own in [state.points.codes == code]
    ]
    yield chart("Projection on the first coordinate", "discriminant coordinate", "points", drawn)
    shares = fisher.explained_variance_ratio_
    yield fact("between-class variance", ", ".join(f"{100 * share:.3g} %" for share in shares))
