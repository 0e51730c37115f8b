"""Points to begin with: shapes on which classifiers differ, and tables that scikit-learn brings along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_circles, make_moons

from separatrix.data.block import Codes, Float
from separatrix.decide import GaussianClasses
from separatrix.explore.plane_table import PlaneTable
from separatrix.explore.protocol import BadRequest

Drawn = tuple[Float, Codes]
_DIGITS = 4
_OVERLAP = {
    "means": [[-1.0, -0.3], [1.0, 0.3]],
    "covariance": [[[1.0, 0.5], [0.5, 0.8]], [[0.6, -0.2], [-0.2, 1.2]]],
    "priors": [0.5, 0.5],
}


@dataclass(frozen=True)
class Shape:
    """Points that are drawn at random.

    Parameters
    ----------
    title : str
    draw : callable
        PlanePoints and codes, from a generator.
    truth : dict, optional
        The Gaussians they come from, if they are known.
    """

    title: str
    draw: Callable[[np.random.Generator], Drawn]
    truth: dict[str, Any] | None = None


def _blobs(rng: np.random.Generator, *centres: tuple[float, float], each: int = 60, spread: float = 0.7) -> Drawn:
    codes = np.repeat(np.arange(len(centres)), each)
    return rng.normal(np.asarray(centres)[codes], spread), codes


def _xor(rng: np.random.Generator) -> Drawn:
    X, codes = _blobs(rng, (-1, -1), (1, 1), (-1, 1), (1, -1), each=35, spread=0.45)
    return X, codes // 2


def _rings(rng: np.random.Generator) -> Drawn:
    return make_circles(160, noise=0.08, factor=0.45, random_state=int(rng.integers(2**31)))


def _moons(rng: np.random.Generator) -> Drawn:
    return make_moons(160, noise=0.16, random_state=int(rng.integers(2**31)))


def _outlier(rng: np.random.Generator) -> Drawn:
    X, codes = _blobs(rng, (-1.2, 0.0), (1.2, 0.0), each=40, spread=0.45)
    return np.vstack([X, [[7.0, 5.0], [7.3, 4.6], [6.8, 5.4]]]), np.append(codes, [1, 1, 1])


def _overlap(rng: np.random.Generator) -> Drawn:
    return gaussians(_OVERLAP).sample(240, random_state=int(rng.integers(2**31)))


def gaussians(truth: dict[str, Any]) -> GaussianClasses:
    """The classes with known densities of a message."""
    try:
        return GaussianClasses(truth["means"], truth["covariance"], truth["priors"])
    except KeyError as error:
        raise BadRequest(f"The truth has no {error.args[0]}.") from None


SHAPES: dict[str, Shape] = {
    "blobs": Shape("Two blobs", lambda rng: _blobs(rng, (-1.1, -0.6), (1.1, 0.6))),
    "three": Shape("Three blobs", lambda rng: _blobs(rng, (-1.6, -1.0), (1.6, -1.0), (0.0, 1.6), each=50)),
    "masking": Shape(
        "Three in a line (masking)", lambda rng: _blobs(rng, (-3, -3), (0, 0), (3, 3), each=50, spread=0.6)
    ),
    "overlap": Shape("Overlapping Gaussians, Bayes rule known", _overlap, _OVERLAP),
    "xor": Shape("XOR", _xor),
    "rings": Shape("Rings", _rings),
    "moons": Shape("Moons", _moons),
    "outlier": Shape("An outlier", _outlier),
    "separable": Shape("Separable", lambda rng: _blobs(rng, (-2.0, 0.0), (2.0, 0.5), each=40, spread=0.5)),
}
_LOADERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "iris": ("Iris (table)", load_iris),
    "wine": ("Wine (table)", load_wine),
    "cancer": ("Breast cancer (table)", load_breast_cancer),
}


@cache
def bundled_table(name: str) -> PlaneTable:
    """A table of scikit-learn's."""
    found = _LOADERS[name][1]()
    names = [str(column) for column in found.feature_names]
    return PlaneTable(
        found.data, names, found.target.astype(np.intp), [str(one) for one in found.target_names], "class"
    )


def titles() -> list[dict[str, Any]]:
    """All data sets, for the page; tables have columns to choose from."""
    shapes = [{"name": name, "title": shape.title, "columns": None} for name, shape in SHAPES.items()]
    return shapes + [{"name": name, "title": title, "columns": True} for name, (title, _) in _LOADERS.items()]


def shape_points(name: str, seed: int) -> dict[str, Any]:
    """The points of a shape, for the page."""
    shape = SHAPES[name]
    X, codes = shape.draw(np.random.default_rng(seed))
    classes = ["blue", "orange", "green"][: int(codes.max()) + 1]
    return {**points_message(np.asarray(X), codes), "classes": classes, "axes": ["x", "y"], "truth": shape.truth}


def points_message(X: Float, codes: Codes) -> dict[str, Any]:
    """Points as the page wants them, rounded to what a screen can show, and the view that holds them."""
    rounded = np.array([_rounded(column) for column in X.T])
    view = {}
    for name, column in zip(("x", "y"), rounded, strict=True):
        low, high = float(column.min()), float(column.max())
        margin = 0.12 * (high - low) or 1.0
        view[name] = [low - margin, high + margin]
    weights = np.ones(len(codes))
    return {"points": {"x": rounded[0], "y": rounded[1], "label": codes, "weight": weights}, "view": view}


def _rounded(column: Float) -> Float:
    span = float(np.ptp(column)) or 1.0
    return column.round(max(0, int(np.ceil(_DIGITS - np.log10(span)))))


def dataset(name: Any, columns: Any, seed: int, own: PlaneTable | None) -> dict[str, Any]:
    """The answer to a request for points."""
    if name in SHAPES:
        return shape_points(name, seed)
    table = own if name == "table" else bundled_table(name) if name in _LOADERS else None
    if table is None:
        raise BadRequest(f"There is no data set {name!r}.")
    X, axes = table.plane(columns)
    codes = table.codes
    return {
        **points_message(X, codes),
        "classes": table.classes,
        "axes": axes,
        "truth": None,
        "columns": table.names,
        "chosen": columns if isinstance(columns, list) else "discriminant",
        "left_out": table.left_out,
    }
