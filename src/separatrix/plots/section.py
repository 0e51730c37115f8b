"""A line or a plane through a table, along which a model is evaluated.

The columns that do not vary are held at their means, or at their most frequent value if they are no numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from separatrix.data.block import Float
from separatrix.data.frames import as_table, is_frame

NUMBERS_AT_ONCE = 1 << 22


class Section:
    """A line or a plane through a table: some columns vary, the others are held."""

    def __init__(self, X: Any, features: Sequence[int | str] | None, n: int) -> None:
        self._table: Any = nw.from_native(as_table(X), eager_only=True) if is_frame(X) else None
        self._rows: Any = None
        if self._table is None:
            self._rows = dense(X)
            if self._rows.ndim != 2:
                raise ValueError(f"X has shape {self._rows.shape}; give rows and columns.")
        columns = [f"x{j}" for j in range(self._rows.shape[1])] if self._table is None else list(self._table.columns)
        self._width, self.at = len(columns), _places(features, columns, n)
        self.names = [str(columns[j]) for j in self.at]
        self.shown = np.column_stack([self._numbers(j) for j in self.at])
        self.ends = np.stack([np.nanmin(self.shown, axis=0), np.nanmax(self.shown, axis=0)])
        for name, (low, high) in zip(self.names, self.ends.T, strict=True):
            if not -np.inf < low < high < np.inf:
                raise ValueError(
                    f"Column {name!r} does not vary over a finite range: there is nothing to show along it."
                )

    def _numbers(self, j: int) -> Float:
        if self._table is None:
            return self._rows[:, j]
        column = self._table[:, j]
        if not column.dtype.is_numeric():
            raise ValueError(f"Column {column.name!r} is of type {column.dtype}; give numeric columns in features.")
        return column.cast(nw.Float64).to_numpy()

    def evaluate(self, response: Callable[[Any], Any], varied: Float) -> Any:
        """The response at points of the section."""
        return in_parts(lambda part: response(self._points(part)), varied, self._width)

    def surface(self, response: Callable[[Any], Any], x: Float, y: Float) -> Any:
        """The response on a grid, (len(y), len(x), …)."""
        plane = np.stack(np.meshgrid(x, y), axis=-1)
        answers = np.asarray(self.evaluate(response, plane.reshape(-1, 2)))
        return answers.reshape(*plane.shape[:2], *answers.shape[1:])

    def frame(self, eps: float | None) -> Float:
        """(2, d) ends of what is shown: so far beyond the rows, by default a twentieth of their range."""
        beyond = 0.05 * np.ptp(self.ends, axis=0) if eps is None else np.full(self.ends.shape[1], float(eps))
        return self.ends + np.outer([-1.0, 1.0], beyond)

    def grid(self, eps: float | None, n: int) -> tuple[Float, Float]:
        """n points along each of the two columns shown."""
        low, high = self.frame(eps)
        return np.linspace(low[0], high[0], n), np.linspace(low[1], high[1], n)

    def _points(self, varied: Float) -> Any:
        n = len(varied)
        if self._table is None:
            points = np.tile(np.nanmean(self._rows, axis=0), (n, 1))
            points[:, self.at] = varied
            return points
        columns = []
        for j, column in enumerate(self._table.iter_columns()):
            if column.dtype.is_numeric():
                values = varied[:, self.at.index(j)] if j in self.at else np.full(n, np.nanmean(self._numbers(j)))
                columns.append(nw.new_series(column.name, values, nw.Float64, backend=self._table.implementation))
            else:
                known = column.to_list()
                columns.append(column[[known.index(Counter(known).most_common(1)[0][0])] * n])
        return self._table[[0] * n].with_columns(*columns).to_native()


def _places(features: Sequence[int | str] | None, columns: list[Any], n: int) -> list[int]:
    """Positions of the columns that are meant."""
    how_many = {1: "one column", 2: "two columns"}[n]
    if features is None and len(columns) != n:
        raise ValueError(f"X has {len(columns)} columns: name the {how_many} to show with features=….")
    wanted = list(range(n)) if features is None else list(features)
    places: list[int] = []
    for one in wanted:
        if one in columns:
            places.append(columns.index(one))
        elif isinstance(one, int | np.integer) and -len(columns) <= one < len(columns):
            places.append(int(one) % len(columns))
        else:
            raise ValueError(f"features names {one!r}, which is not one of the {len(columns)} columns of X.")
    if len(places) != n or len(set(places)) != n:
        raise ValueError(f"features is {wanted}; give {how_many}, by position or name.")
    return places


def in_parts(response: Callable[[Float], Any], points: Float, width: int) -> Any:
    """The response at many points, so many at a time that rows of this width stay small in memory."""
    step = max(1, NUMBERS_AT_ONCE // width)
    parts = [response(points[start : start + step]) for start in range(0, len(points), step)]
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))
    return np.concatenate(parts)


def dense(X: Any) -> Float:
    """A sparse matrix or an array as numbers."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
