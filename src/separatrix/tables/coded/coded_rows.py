"""Rows of a table as a model's encoder reads them, before their categories are spread out: few bytes, quickly encoded.

    numbers     (p, n) float64, NaN for a hole
    places      (q, n) int32, the feature that is 1 for the category of each row, −1 for none

`RowCoding.matrix` gives the same bits as the encoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.tables.encoder import TableEncoder
from separatrix.tables.rows import CodedText, TableRows


@dataclass(frozen=True)
class CodedRows:
    """Numbers and places of categories."""

    numbers: Float
    places: NDArray[np.int32]


class RowCoding:
    """How rows are coded, and the code turned into features: what an encoder has learnt, as arrays."""

    def __init__(self, encoder: TableEncoder) -> None:
        levels: dict[str, dict[Any, int]] = {}
        value_at, hole_at, fill = dict[str, int](), dict[str, int](), dict[str, float]()
        text = {column.name for column in encoder.schema.used if column.kind == "categorical"}
        if by_target := next((one.column for one in encoder.features_ if one.what in ("target", "text")), None):
            raise ValueError(
                f"Column {by_target!r} is encoded by the classes of its categories or words, for which rows are held; a stream "
                "has indicators."
            )
        for j, feature in enumerate(encoder.features_):
            if feature.column in text:
                levels.setdefault(feature.column, {})[feature.level if feature.what == "level" else None] = j
            elif feature.what == "value":
                value_at[feature.column], fill[feature.column] = j, feature.fill
            else:
                hole_at[feature.column] = j
        self._names, self._levels = list(value_at), levels
        self.value_at = np.array(list(value_at.values()), dtype=np.intp)
        self.hole_at = np.array([hole_at.get(name, -1) for name in value_at], dtype=np.intp)
        self.fill = np.array(list(fill.values()))
        self.centre, self.scale = encoder.centres_, encoder.scales_

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return len(self.centre)

    def coded(self, rows: TableRows) -> CodedRows:
        """The rows in short."""
        numbers = np.empty((len(self._names), len(rows)))
        for row, name in zip(numbers, self._names, strict=True):
            row[:] = rows.columns[name]
        places = np.empty((len(self._levels), len(rows)), dtype=np.int32)
        for q, (name, at) in enumerate(self._levels.items()):
            text = CodedText.of(rows.columns[name])
            found = [at.get(level, -1) for level in [*text.levels, None]]
            np.take(np.array(found, dtype=np.int32), text.places, out=places[q], mode="wrap")  # −1: the last
        return CodedRows(numbers, places)

    def matrix(self, code: CodedRows) -> Float:
        """(n, d) features, row by row, by compiled loops."""
        from separatrix.kernels.table_columns import encode_rows  # numba takes a while to import

        out = np.empty((code.numbers.shape[1] if len(code.numbers) else code.places.shape[1], self.n_features))
        at = self.value_at, self.hole_at, self.fill, self.centre, self.scale
        encode_rows(code.numbers, code.places, *at, out)
        return out

    def scaled_numbers(self, numbers: Float) -> Float:
        """(n, p) features of numbers (p, n) alone."""
        filled = np.where(np.isnan(numbers), self.fill[:, None], numbers).T
        return np.ascontiguousarray((filled - self.centre[self.value_at]) / self.scale[self.value_at])

    def features(self, arrays: Mapping[str, NDArray[Any]]) -> Float:
        """The same of numbers and places by row as they were kept, or of features that were kept themselves."""
        return arrays["X"] if "X" in arrays else self.matrix(CodedRows(arrays["numbers"].T, arrays["places"].T))
