"""Regions of the plane as they are drawn: smooth edges, hatched where a rule does not decide, rows by class.

    lead_k(x) = f_k(x) − max_{j≠k} f_j(x)            region of k = {x : lead_k(x) > 0}

Regions are filled, and their edges drawn, where a lead is 0 between the points of a grid: exact for linear scores. A rule
without scores has the indicators of its regions instead, smoothed over a cell: its edges lie within a cell of the truth.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from separatrix.data.block import Codes, Float
from separatrix.plots import style

HATCHES = ("////", "....", "xxxx", "\\\\\\\\")


def class_codes(values: NDArray[Any], classes: Sequence[Any]) -> Codes:
    """Positions of values among the classes."""
    place = {label: k for k, label in enumerate(classes)}
    return np.array([place[value] for value in values.ravel().tolist()], dtype=np.intp).reshape(values.shape)


def leads(codes: Codes, n_classes: int, scores: Float | None = None) -> list[Float]:
    """One surface per class, positive within its region."""
    if scores is not None and scores.ndim == 2:
        return [-scores, scores]
    if scores is None:
        scores = np.stack([_smoothed(codes == k) for k in range(n_classes)], axis=-1)
    if n_classes == 1:
        return [np.ones(codes.shape)]
    return [scores[..., k] - np.delete(scores, k, axis=2).max(axis=2) for k in range(n_classes)]


def _smoothed(mask: NDArray[np.bool_]) -> Float:
    return gaussian_filter(mask.astype(np.float64), 0.8, mode="nearest")


def fill_region(ax: Any, x: Float, y: Float, lead: Float, colour: str, **kwargs: Any) -> Any:
    """Colour where a surface is positive; None where it nowhere is."""
    top = float(lead.max())
    if not top > 0.0:
        return None
    return ax.contourf(x, y, lead, levels=[0.0, 2.0 * top], **{"colors": [colour], "alpha": 0.25, **kwargs})


def fill_cells(ax: Any, x: Float, y: Float, codes: Codes, n_classes: int, **kwargs: Any) -> Any:
    """Colour the points of the grid one by one."""
    from matplotlib.colors import ListedColormap

    colours = ListedColormap([style.colour(k) for k in range(n_classes)])
    look = {"cmap": colours, "vmin": -0.5, "vmax": n_classes - 0.5, "alpha": 0.25, "shading": "nearest"}
    return ax.pcolormesh(x, y, codes, **{**look, **kwargs})


def draw_edges(ax: Any, x: Float, y: Float, surfaces: Sequence[Float], **kwargs: Any) -> None:
    """Lines where the surfaces are 0."""
    look = {"colors": style.INK, "linewidths": 1.5, **kwargs}
    for surface in surfaces:
        if surface.min() < 0.0 < surface.max():
            ax.contour(x, y, surface, levels=[0.0], **look)


def hatch(ax: Any, x: Float, y: Float, parts: Mapping[str, NDArray[np.bool_]]) -> None:
    """Hatch parts of the plane, each in its own way, with their names for the legend."""
    for (name, mask), lines in zip(parts.items(), HATCHES, strict=False):
        part = _smoothed(mask)
        if part.max() > 0.5:
            drawn = ax.contourf(x, y, part, levels=[0.5, 2.0], colors="none", hatches=[lines])
            drawn.set(edgecolor=style.INK, linewidth=0.0)
            ax.fill([], [], facecolor="none", edgecolor=style.INK, hatch=lines, linewidth=0.5, label=style.label(name))


def draw_classes(
    ax: Any,
    points: Float | None,
    labels: Codes | None,
    classes: Sequence[Any],
    without: Collection[str] = (),
    **kwargs: Any,
) -> None:
    """Rows by class; of a class without rows, its colour for the legend."""
    for k, name in enumerate(classes):
        if str(name) in without:
            continue
        own = np.zeros((0, 2)) if points is None or labels is None else points[labels == k]
        look: dict[str, Any] = {"color": style.colour(k), "marker": style.marker(k) if len(own) else "s", "s": 22}
        look |= {"alpha": 0.9, "edgecolors": "white", "linewidths": 0.4}
        ax.scatter(*own.T, **style.with_defaults("PathCollection", kwargs, label=style.label(name), **look))
