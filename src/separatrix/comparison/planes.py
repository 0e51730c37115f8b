"""The rows in the plane in which their classes differ most, and where a family of models would divide it.

    z₁, z₂: the two leading canonical variates of the encoded rows (Fisher)

Two classes have one canonical variate only; z₂ is then the first principal component of what z₁ leaves unexplained. A boundary
in d columns has no shape in this plane, so what is kept is the same family, with the tuned parameters, fitted to z₁ and z₂.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from separatrix.data.block import Codes, Float
from separatrix.decide.regions import PlaneRegions, plane_regions
from separatrix.models.discriminant.fisher import FisherDiscriminant

MOST_FITTED, GRID = 2_000, 150
# Of how many classes each is shown in a figure of its own colours.
MOST_CURVES = 12


@dataclass(frozen=True)
class Plane:
    """Two coordinates of every row."""

    points: Float  # (n_samples, 2)
    shares: Float  # of the between-class variance along the one or two canonical variates shown; z₂ may be another

    def sample(self, most: int) -> Codes:
        """At most so many rows, evenly spaced."""
        n = len(self.points)
        return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


@dataclass(frozen=True)
class PlaneModel:
    """A family fitted to the two coordinates: its regions and scores (n, n, K) on a grid, and its accuracy."""

    regions: PlaneRegions
    scores: Float
    accuracy: float


def discriminant_plane(X: Float, codes: Codes) -> Plane | str:
    """The plane of two leading canonical variates of encoded rows, or a sentence why there is none."""
    if X.shape[1] < 2:
        return "There is one encoded column only, so there is no plane to draw a boundary in."
    try:
        fisher = FisherDiscriminant().fit(X, codes)
    except ValueError as error:
        return f"There is no plane to draw a boundary in: {error}"
    scores, shares = fisher.transform(X), fisher.explained_variance_ratio_
    if not scores.shape[1]:
        return "The class means do not differ, so there is no plane to draw a boundary in."
    if scores.shape[1] > 1:
        return Plane(scores[:, :2], shares[:2])
    centred = X - X.mean(axis=0)
    rest = centred - np.outer(scores[:, 0], scores[:, 0] @ centred / (scores[:, 0] @ scores[:, 0]))
    _, values, directions = np.linalg.svd(rest, full_matrices=False)
    second = rest @ directions[0]
    spread = second.std()
    if values[0] <= 1e-9 * max(np.abs(centred).max(), 1.0) * len(X) ** 0.5 or spread == 0:
        return "The encoded columns vary along one line only, so there is no plane to draw a boundary in."
    return Plane(np.column_stack([scores[:, 0], second / spread]), shares[:1])


def fit_in_plane(plane: Plane, codes: Codes, estimator: Any, n_classes: int) -> PlaneModel | str:
    """A clone of the estimator fitted to the two coordinates, or a sentence why there is none."""
    some, flat = plane.sample(MOST_FITTED), clone(estimator)
    on_grid: list[Float] = []

    def predict(grid: Float) -> Codes:
        on_grid.append(_scores(flat, grid, n_classes))
        return on_grid[0].argmax(axis=1)

    try:
        flat.fit(plane.points[some], codes[some])
        regions = plane_regions(predict, plane.points, GRID)
        accuracy = float((flat.predict(plane.points) == codes).mean())
    except Exception as error:  # a picture that cannot be drawn is no reason to have no comparison
        return f"No boundary is drawn, since this family could not be fitted to the two coordinates: {error}"
    return PlaneModel(regions, on_grid[0].reshape(GRID, GRID, -1), accuracy)


def _scores(model: Any, points: Float, n_classes: int) -> Float:
    """(n, K) scores whose largest is the prediction."""
    if hasattr(model, "predict_proba"):
        scores = np.log(np.maximum(model.predict_proba(points), 1e-300))
    else:
        scores = score_columns(model.decision_function(points))
    every: Float = np.full((len(points), n_classes), -np.inf)
    every[:, model.classes_] = scores  # a class may have no row among those it was fitted to
    return every


def score_columns(scores: Float) -> Float:
    """A decision function as one column per class: of two classes the scores are opposite."""
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
