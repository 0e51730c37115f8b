"""What is drawn of a rule in the plane, from its scores on a grid.

    z_k(x) = s_k(x) − max_{j≠k} s_j(x)        the region of action k is z_k > 0, its edge z_k = 0

Edges are interpolated between the points of the grid: exact for a linear rule of two classes, within a part of a cell else.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np
from contourpy import FillType, LineType, contour_generator

from separatrix.data.block import Float
from separatrix.explore.drawing import LinePath, lines
from separatrix.explore.fitting import FittedRule
from separatrix.explore.protocol import PlaneView

_LEVELS = (0.6, 0.75, 0.9, 0.99)


class Contours:
    """Lines and areas of a surface on a grid over the view."""

    def __init__(self, view: PlaneView, size: int) -> None:
        self.view, self.size = view, size
        self.x, self.y = view.axes(size)
        self.grid = view.grid(size)

    def _generator(self, values: Float) -> Any:
        z = np.clip(np.asarray(values, dtype=np.float64).reshape(self.size, self.size), -1e300, 1e300)
        return contour_generator(self.x, self.y, z, line_type=LineType.Separate, fill_type=FillType.OuterOffset)

    def level(self, values: Float, at: float = 0.0) -> list[LinePath]:
        """The lines on which a surface has a value."""
        return [self._flat(path) for path in self._generator(values).lines(at)]

    def above(self, values: Float, at: float = 0.0) -> list[list[LinePath]]:
        """The area in which a surface exceeds a value: polygons, each an outline and its holes."""
        highest = float(np.max(values))
        if not highest > at:
            return []
        points, offsets = self._generator(values).filled(at, highest + max(1.0, abs(highest)))
        return [
            [self._flat(part) for part in np.split(shape, cuts[1:-1])]
            for shape, cuts in zip(points, offsets, strict=True)
        ]

    def _flat(self, path: Float) -> LinePath:
        """x0, y0, x1, y1, … rounded to a hundred-thousandth of the view."""
        width, height = self.view.x[1] - self.view.x[0], self.view.y[1] - self.view.y[0]
        digits = [max(0, int(5 - np.floor(np.log10(span)))) for span in (width, height)]
        return np.column_stack([path[:, 0].round(digits[0]), path[:, 1].round(digits[1])]).ravel().tolist()


def line_of(view: PlaneView, normal: Float, offset: float) -> list[LinePath]:
    """The line normalᵀx + offset = 0 within the view: a segment between two of its sides, or nothing."""
    ends = []
    for along, across, sides, limits in ((0, 1, view.x, view.y), (1, 0, view.y, view.x)):
        if normal[across] == 0.0:
            continue
        for side in sides:
            other = -(offset + normal[along] * side) / normal[across]
            if limits[0] <= other <= limits[1]:
                ends.append((side, other) if along == 0 else (other, side))
    if len(ends) < 2:
        return []
    first, last = min(ends), max(ends)
    return [[float(value) for value in (*first, *last)]]


def leads(scores: Float) -> Float:
    """z_k of every row and action: by how much it leads the others, or is behind."""
    order = np.sort(scores, axis=1)
    best, second = order[:, [-1]], order[:, [-2]]
    first = scores == best
    alone = first.sum(axis=1, keepdims=True) == 1
    return np.where(first, np.where(alone, best - second, 0.0), scores - best)


def draw(fitted: FittedRule) -> dict[str, Any]:
    """Regions with their shading, boundary and levels."""
    state = fitted.state
    contours = Contours(state.view, state.grid)
    scores = fitted.scores(contours.grid)
    probabilities = fitted.probabilities(contours.grid)
    z = leads(scores)
    regions = [
        {"action": int(action), "shapes": contours.above(z[:, k])} for k, action in enumerate(fitted.actions.tolist())
    ]
    edges = [z[:, 1]] if z.shape[1] == 2 else z.T
    shade = _shade(fitted, scores, probabilities)
    return {
        "regions": regions,
        "shade": base64.b64encode((255.0 * shade).round().astype(np.uint8).tobytes()).decode(),
        "grid": state.grid,
        "view": {"x": state.view.x, "y": state.view.y},
        "boundary": [path for edge in edges for path in contours.level(edge)],
        "levels": list(_levels(contours, fitted, probabilities)),
    }


def _shade(fitted: FittedRule, scores: Float, probabilities: Float | None) -> Float:
    """From 0 on a boundary to 1: by the largest probability, else by how far the margin of 1 is reached."""
    if probabilities is not None:
        K = probabilities.shape[1]
        return np.clip((probabilities.max(axis=1) * K - 1.0) / (K - 1.0), 0.0, 1.0)
    lead = np.partition(scores, -2, axis=1)
    ahead = lead[:, -1] - lead[:, -2]
    unit = 2.0 if scores.shape[1] == 2 else 1.0
    if "mistakes" in fitted.family.extras:  # the length of the vector means nothing
        unit = float(ahead.max()) or 1.0
    return np.clip(ahead / unit, 0.0, 1.0)


def _levels(contours: Contours, fitted: FittedRule, probabilities: Float | None) -> Iterable[dict[str, Any]]:
    """Lines of equal probability (of the second of two classes, of the most probable one of more), or of equal score."""
    if probabilities is not None:
        two = probabilities.shape[1] == 2
        surface = probabilities[:, 1] if two else probabilities.max(axis=1)
        at = [*(1.0 - level for level in reversed(_LEVELS)), *_LEVELS] if two else list(_LEVELS)
        for level in at:
            yield lines("level", contours.level(surface, level), label=f"{level:.2g}")
        return
    scores = fitted.binary_scores(contours.grid)
    if scores is not None and "mistakes" not in fitted.family.extras:
        for level in (-2.0, -1.0, 1.0, 2.0):
            yield lines("level", contours.level(scores, level), label=f"{level:+.2g}")
