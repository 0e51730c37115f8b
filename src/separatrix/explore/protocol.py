"""What the page and the library say to each other: JSON objects, one request, one answer.

    request   {"kind": "hello"}                                       the families with their controls, the data sets, the table
              {"kind": "dataset", "name", "columns"?, "seed"?}         points to begin with
              {"kind": "fit", STATE}                                   regions, boundary, status, measures, extras
              {"kind": "film", STATE}                                  the steps of the fit, one boundary for each
              {"kind": "probe", "panel", "at": [x, y]}                 what the last fit of a panel says about a place
              {"kind": "code", STATE}                                  the Python code of the same fit

    STATE     panel      0 or 1
              points     {"x": [...], "y": [...], "label": [...], "weight": [...]}, labels as places in `classes`;
              moved      or only [[place, x, y], ...]: those of the last points that are elsewhere now
              classes    names; axes  two names
              view       {"x": [low, high], "y": [low, high]}: the part of the plane that is drawn
              grid       points of the grid along each axis
              model      {"family", "parameters": {...}}
              decision   null or {"loss": [[...]], "reject": number or null, "priors": [...] or null}
              truth      null or {"means", "covariance", "priors"}: Gaussians from which the points were drawn

Every request may have an "id", which its answer repeats. An answer to what cannot be done has a sentence in "error" and
nothing else. Infinity is the word "inf", as JSON has no number for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from separatrix.data.block import Codes, Float
from separatrix.data.text import for_html

MOST_POINTS, MOST_CLASSES, MOST_GRID = 50_000, 12, 240


class BadRequest(ValueError):
    """A message that is not understood; its sentence is the answer."""


@dataclass(frozen=True)
class PlaneView:
    """The part of the plane that is drawn."""

    x: tuple[float, float]
    y: tuple[float, float]

    def axes(self, size: int) -> tuple[Float, Float]:
        """Coordinates of a grid over it."""
        return np.linspace(*self.x, size), np.linspace(*self.y, size)

    def grid(self, size: int) -> Float:
        """Its points, row by row from the bottom."""
        x, y = self.axes(size)
        return np.column_stack([np.tile(x, size), np.repeat(y, size)])


@dataclass(frozen=True)
class PlanePoints:
    """The rows: two coordinates, a class and a weight each."""

    X: Float
    codes: Codes
    weights: Float

    @property
    def counted(self) -> Float | None:
        """The weights, or None where all rows count once."""
        return None if (self.weights == 1.0).all() else self.weights

    def moved(self, changes: Sequence[Any]) -> PlanePoints:
        """The same points, but for some that are elsewhere."""
        X = self.X.copy()
        for change in changes:
            place, x, y = _numbers(change, "moved", 3)
            if not 0 <= place < len(X) or place != int(place):
                raise BadRequest(f"There is no point {place:g} to be moved: there are {len(X)}.")
            X[int(place)] = x, y
        return PlanePoints(X, self.codes, self.weights)


@dataclass(frozen=True)
class DecisionRequest:
    """What mistakes and rejections cost, and how frequent the classes are where the rule is used."""

    loss: list[list[float]]
    reject: float | None = None
    priors: list[float] | None = None


@dataclass(frozen=True)
class ExplorerState:
    """All that one panel shows."""

    points: PlanePoints
    classes: tuple[str, ...]
    axes: tuple[str, str]
    view: PlaneView
    grid: int
    family: str
    parameters: dict[str, Any] = field(default_factory=dict)
    decision: DecisionRequest | None = None
    truth: dict[str, Any] | None = None
    panel: int = 0
    order: int = 0  # of the messages of a page


def read_points(given: Any, n_classes: int) -> PlanePoints:
    """The points of a message, checked."""
    if not isinstance(given, Mapping):
        raise BadRequest("The points are missing: give x, y, label and weight.")
    x = _numbers(given.get("x"), "x")
    n = len(x)
    if n > MOST_POINTS:
        raise BadRequest(f"There are {n} points, and the explorer draws at most {MOST_POINTS}.")
    y, labels = _numbers(given.get("y"), "y", n), _numbers(given.get("label"), "label", n)
    weights = _numbers(given["weight"], "weight", n) if given.get("weight") is not None else np.ones(n)
    codes = labels.astype(np.intp)
    if ((codes != labels) | (codes < 0) | (codes >= n_classes)).any():
        raise BadRequest(f"A label is none of the {n_classes} classes.")
    if (weights < 0.0).any():
        raise BadRequest("A weight is negative; give every point a weight of 0 or more.")
    return PlanePoints(np.column_stack([x, y]), codes, weights)


def read_state(message: Mapping[str, Any], last: PlanePoints | None = None, order: int = 0) -> ExplorerState:
    """The state of a message; `last` are the points that `moved` refers to."""
    names = message.get("classes")
    if not isinstance(names, list) or not 1 <= len(names) <= MOST_CLASSES:
        raise BadRequest(f"classes must be a list of 1 to {MOST_CLASSES} names.")
    if message.get("points") is not None:
        points = read_points(message["points"], len(names))
    elif last is not None:
        points = last.moved(message.get("moved") or [])
    else:
        raise BadRequest("The points are missing: none were sent before.")
    model, grid, panel = message.get("model"), message.get("grid", 81), message.get("panel", 0)
    if not isinstance(model, Mapping) or not isinstance(model.get("family"), str):
        raise BadRequest("The model is missing: give its family and parameters.")
    if not isinstance(grid, int) or not 8 <= grid <= MOST_GRID:
        raise BadRequest(f"The grid must have 8 to {MOST_GRID} points along each axis.")
    if panel not in (0, 1):
        raise BadRequest("The panel is 0 or 1.")
    axes = message.get("axes") or ["x", "y"]
    parameters, decision, truth = model.get("parameters") or {}, message.get("decision"), message.get("truth")
    if not isinstance(parameters, Mapping):
        raise BadRequest("The parameters of the model must have names.")
    return ExplorerState(
        points,
        tuple(for_html(str(name)) for name in names),
        (str(axes[0]), str(axes[1])),
        _view(message.get("view")),
        grid,
        model["family"],
        dict(parameters),
        None if decision is None else _decision(decision, len(names)),
        truth if isinstance(truth, dict) else None,
        int(panel),
        order,
    )


def _view(given: Any) -> PlaneView:
    ranges = [tuple(_numbers((given or {}).get(name), name, 2).tolist()) for name in ("x", "y")]
    if any(not low < high for low, high in ranges):
        raise BadRequest("The view is empty: its low ends must be below its high ends.")
    return PlaneView(ranges[0], ranges[1])


def _decision(given: Any, n_classes: int) -> DecisionRequest:
    rows = given.get("loss") if isinstance(given, Mapping) else None
    if not isinstance(rows, list) or len(rows) != n_classes:
        raise BadRequest("The loss needs one row per class.")
    loss = [_numbers(row, "loss", n_classes).tolist() for row in rows]
    reject, priors = given.get("reject"), given.get("priors")
    shares = None if priors is None else _numbers(priors, "priors", n_classes).tolist()
    return DecisionRequest(loss, None if reject is None else _numbers([reject], "reject", 1)[0].item(), shares)


def _numbers(given: Any, name: str, length: int | None = None) -> Float:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.zeros((0, 0))
    if values.ndim != 1 or not np.isfinite(values).all() or (length is not None and len(values) != length):
        raise BadRequest(f"{name} must be a list of {'' if length is None else f'{length} '}finite numbers.")
    return values


def plain(value: Any) -> Any:
    """A value as JSON can hold it: NumPy's as Python's, what is not finite as a word, text without what a page cannot hold."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        if value and type(value[0]) is float and set(map(type, value)) == {float} and all(map(math.isfinite, value)):
            return value  # long paths: nothing to be changed
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return for_html(value) if isinstance(value, str) else value
