"""The rows in the plane in which their classes differ most, and where a family of models would divide it.

    z₁, z₂: the two leading canonical variates of the encoded rows (Fisher)

Two classes have one canonical variate only; z₂ is then the first principal component of what z₁ leaves unexplained. A boundary
in d columns has no shape in this plane, so what is drawn is the same family, with the tuned parameters, fitted to z₁ and z₂.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from separatrix.data.block import Float
from separatrix.decide.regions import plane_regions
from separatrix.models.discriminant.fisher import FisherDiscriminant
from separatrix.plots import style
from separatrix.plots.decision_boundary import DecisionBoundaryDisplay
from separatrix.report.figures import Drawing, hide_legend, new_axes
from separatrix.report.svg import INK, inline_svg
from separatrix.report.tables import count, percent

MOST_FITTED = 2_000
GRID = 150


@dataclass(frozen=True)
class Plane:
    """Two coordinates of every row, and what they are."""

    points: Float
    codes: NDArray[np.intp]
    axes: tuple[str, str]
    sentence: str

    def sample(self, most: int) -> NDArray[np.intp]:
        """At most so many rows, evenly spaced."""
        n = len(self.codes)
        return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def discriminant_plane(X: Float, codes: NDArray[np.intp]) -> Plane | str:
    """The plane of two leading canonical variates, or a sentence why there is none.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Encoded rows.
    codes : ndarray of shape (n_samples,)
    """
    if X.shape[1] < 2:
        return "There is one encoded column only, so there is no plane to draw a boundary in."
    try:
        fisher = FisherDiscriminant().fit(X, codes)
    except ValueError as error:
        return f"There is no plane to draw a boundary in: {error}"
    scores, shares = fisher.transform(X), fisher.explained_variance_ratio_
    if not scores.shape[1]:
        return "The class means do not differ, so there is no plane to draw a boundary in."
    first = f"first canonical variate ({percent(shares[0])} of the differences between classes)"
    if scores.shape[1] > 1:
        axes = ("first canonical variate", "second canonical variate")
        kept = percent(float(shares[:2].sum()))
        sentence = f"The two leading canonical variates hold {kept} of the differences between classes."
        return Plane(scores[:, :2], codes, axes, sentence)
    centred = X - X.mean(axis=0)
    rest = centred - np.outer(scores[:, 0], scores[:, 0] @ centred / (scores[:, 0] @ scores[:, 0]))
    _, values, directions = np.linalg.svd(rest, full_matrices=False)
    second = rest @ directions[0]
    spread = second.std()
    if values[0] <= 1e-9 * max(np.abs(centred).max(), 1.0) * len(X) ** 0.5 or spread == 0:
        return "The encoded columns vary along one line only, so there is no plane to draw a boundary in."
    axes = ("canonical variate", "first principal component of the rest")
    sentence = f"Across: the {first}. Up: the first principal component of what it leaves, where the class means agree."
    return Plane(np.column_stack([scores[:, 0], second / spread]), codes, axes, sentence)


def boundary(
    name: str, plane: Plane, estimator: Any, mistakes: NDArray[np.bool_], classes: Sequence[str], most: int
) -> Drawing | str:
    """Regions of the family refitted in the plane, some of the rows, and the mistakes of the real model among them.

    Parameters
    ----------
    name : str
        Prefix of the ids in the picture.
    plane : Plane
    estimator : classifier
        What is cloned and refitted.
    mistakes : ndarray of shape (n_samples,)
        Rows that the real model got wrong.
    classes : sequence of str
    most : int
        How many rows to draw.

    Returns
    -------
    Drawing, or a sentence why there is none
    """
    some, shown = plane.sample(MOST_FITTED), plane.sample(most)
    flat = clone(estimator)
    try:
        flat.fit(plane.points[some], plane.codes[some])
        regions = plane_regions(lambda grid: _scores(flat, grid, len(classes)).argmax(axis=1), plane.points, GRID)
    except ValueError as error:  # a family that cannot be fitted to two columns is no reason to have no report
        return f"No boundary is drawn, since this family could not be fitted to the two coordinates: {error}"
    grid = np.column_stack([np.tile(regions.x, GRID), np.repeat(regions.y, GRID)])
    figure, ax = new_axes(3.9)
    DecisionBoundaryDisplay(
        regions,
        list(range(len(classes))),
        _scores(flat, grid, len(classes)).reshape(GRID, GRID, -1),
        points=plane.points[shown],
        labels=plane.codes[shown],
        xlabel=plane.axes[0],
        ylabel=plane.axes[1],
    ).plot(ax)
    hide_legend(ax)
    ax.grid(False)
    wrong = plane.points[shown[mistakes[shown]]]
    ax.plot(*wrong.T, "o", markerfacecolor="none", markeredgecolor=INK, markeredgewidth=0.8, markersize=7.5)
    right = percent(float((flat.predict(plane.points) == plane.codes).mean()))
    words = f"Fitted to the two coordinates alone, the same family puts {right} of the rows on the right side."
    drawn = "" if len(shown) == len(plane.codes) else f" {count(len(shown), 'row')} of {len(plane.codes)} are drawn."
    if len(classes) > len(style.COLOURS):
        drawn += f" Colours repeat after {len(style.COLOURS)} classes; a row's marker tells its class."
    wrongs = count(int(mistakes.sum()), "mistake")
    return Drawing(
        inline_svg(
            figure, name, f"Rows in two coordinates, with decision regions. {words} {wrongs} of the real model."
        ),
        f"{plane.sentence} {words} Rings: rows the real model gets wrong, out of fold.{drawn}",
        classes,
        points=True,
    )


def _scores(model: Any, points: Float, n_classes: int) -> Float:
    """(n, K) scores whose largest is the prediction."""
    if hasattr(model, "predict_proba"):
        scores = np.log(np.maximum(model.predict_proba(points), 1e-300))
    else:
        scores = model.decision_function(points)
        scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    every: Float = np.full((len(points), n_classes), -np.inf)
    every[:, model.classes_] = scores  # a class may have no row among those it was fitted to
    return every
