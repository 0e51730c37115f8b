"""The few kinds of things that the page draws beside regions and points.

lines     paths in the plane, flat lists x0, y0, x1, y1, …; their role chooses the stroke
area      polygons in the plane, hatched
rings     circles around some of the points, wider for larger values
chart     a small diagram: series of lines, steps or bars, marks on the axis
table     heads and rows
fact      a name and a value
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

LinePath = list[float]


def lines(role: str, paths: Sequence[LinePath], *, action: int | None = None, label: str = "") -> dict[str, Any]:
    """Paths in the plane, in the colour of an action if there is one."""
    return {"type": "lines", "role": role, "paths": list(paths), "action": action, "label": label}


def area(role: str, shapes: list[list[LinePath]], label: str) -> dict[str, Any]:
    """Part of the plane."""
    return {"type": "area", "role": role, "shapes": shapes, "label": label}


def rings(role: str, places: ArrayLike, sizes: ArrayLike | None, label: str) -> dict[str, Any]:
    """Marks around points, by their places."""
    return {"type": "rings", "role": role, "places": places, "sizes": sizes, "label": label}


def series(
    x: ArrayLike, y: ArrayLike, name: str = "", *, kind: str = "line", action: int | None = None
) -> dict[str, Any]:
    """One line, step function or set of bars of a chart; "bars" have one more x, their edges."""
    return {"x": x, "y": y, "name": name, "kind": kind, "action": action}


def chart(title: str, xlabel: str, ylabel: str, drawn: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A diagram; `more` are a note below it, marks (x positions) and limits."""
    return {"type": "chart", "title": title, "xlabel": xlabel, "ylabel": ylabel, "series": drawn, **more}


def table(title: str, heads: list[str], rows: list[list[Any]], note: str = "") -> dict[str, Any]:
    """Words and numbers."""
    return {"type": "table", "title": title, "heads": heads, "rows": rows, "note": note}


def fact(name: str, value: str) -> dict[str, Any]:
    """One thing worth knowing."""
    return {"type": "fact", "name": name, "value": value}
