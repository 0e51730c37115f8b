"""A table in the plane: two of its columns, or its first two discriminant coordinates.

    discriminant coordinates   Fisher's, of all columns together (`FisherDiscriminant`)

Two classes have one such coordinate; the second is then the first principal component of what is left within the classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.decomposition import PCA

from separatrix.data.block import Codes, Float
from separatrix.data.labels import encode
from separatrix.explore.protocol import MOST_CLASSES, MOST_POINTS, BadRequest
from separatrix.models import FisherDiscriminant
from separatrix.tables import TableEncoder, TableSchema, read_table


@dataclass(frozen=True)
class PlaneTable:
    """Rows with names and classes, of which two columns are shown at a time.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    names : list of str
        Of the columns.
    codes : ndarray of int
    classes : list of str
    target : str
        Name of the column that is predicted.
    left_out : int
        Rows of the table that are not shown, where it has more than the explorer draws.
    """

    X: Float
    names: list[str]
    codes: Codes
    classes: list[str]
    target: str
    left_out: int = 0

    @classmethod
    def of_table(cls, table: Any, target: str) -> Self:
        """From a file or a table with columns of mixed kinds, encoded as `compare` does, but in their own units."""
        given = read_table(table) if isinstance(table, str | PathLike) else table
        schema, rows, codes = TableSchema.infer_and_read(given, target)
        encoder = TableEncoder(schema, standardise=False)
        X = np.asarray(encoder.fit(rows).transform(rows), dtype=np.float64)
        return cls(X, encoder.feature_names_, codes, [str(one) for one in schema.classes], target)._checked()

    @classmethod
    def of_arrays(cls, X: Any, y: Any) -> Self:
        """From rows of numbers and their labels; a data frame has names."""
        columns = getattr(X, "columns", None)
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] < 2:
            raise ValueError(f"X has shape {rows.shape}; the explorer shows rows of at least two numbers.")
        if not np.isfinite(rows).all():
            raise ValueError("X holds NaN or infinity; the explorer shows rows of finite numbers.")
        labels = np.asarray(y)
        if labels.shape != (len(rows),):
            raise ValueError(f"X has {len(rows)} rows, but y has shape {labels.shape}.")
        classes, codes = encode(labels, None, None)[:2]
        names = [f"x{j}" for j in range(rows.shape[1])] if columns is None else [str(name) for name in columns]
        return cls(rows, names, codes, [str(one) for one in np.asarray(classes).tolist()], "y")._checked()

    def _checked(self) -> Self:
        if len(self.classes) > MOST_CLASSES:
            raise ValueError(
                f"{self.target!r} has {len(self.classes)} classes, and the explorer shows at most {MOST_CLASSES}: join some."
            )
        if len(self.X) <= MOST_POINTS:
            return self
        keep = np.sort(np.random.default_rng(0).permutation(len(self.X))[:MOST_POINTS])
        left = len(self.X) - MOST_POINTS
        return type(self)(self.X[keep], self.names, self.codes[keep], self.classes, self.target, left)

    def plane(self, columns: Any = None) -> tuple[Float, list[str]]:
        """The coordinates and the names of the axes; of the discriminant coordinates unless two columns are named."""
        if isinstance(columns, list):
            unknown = [name for name in columns if name not in self.names]
            if unknown or len(columns) != 2:
                raise BadRequest(f"There is no column {unknown[0]!r}." if unknown else "Name two columns.")
            places = [self.names.index(name) for name in columns]
            return self.X[:, places], [str(name) for name in columns]
        if self.X.shape[1] == 2:
            return self.X, self.names
        fisher = FisherDiscriminant(n_components=None).fit(self.X, self.codes)
        scores = fisher.transform(self.X)[:, :2]
        if scores.shape[1] == 2:
            return scores, ["discriminant coordinate 1", "discriminant coordinate 2"]
        spread = self.X.std(axis=0)
        scaled = (self.X - self.X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        slope = scaled.T @ scores[:, 0] / (scores[:, 0] @ scores[:, 0])
        rest = PCA(1, random_state=0).fit_transform(scaled - np.outer(scores[:, 0], slope))
        return np.column_stack([scores[:, 0], rest[:, 0]]), [
            "discriminant coordinate",
            "principal component of the rest",
        ]
