"""A table as columns: each with its own kind and its own missing values, for the models that take a table as it is."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data.block import Codes, Float
from separatrix.data.checks import DATES, check_numbers, real_numbers
from separatrix.data.frames import is_frame
from separatrix.data.labels import as_target, as_weights, encode, is_missing, known_labels
from separatrix.tables.rows import CodedText, TableRows

Kind = Literal["boolean", "integer", "float", "text"]


@dataclass(frozen=True)
class Column:
    """One column: numbers as float64 with NaN for what is missing, anything else as objects with None or coded text."""

    name: Any
    kind: Kind
    values: Any

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Where there is a value."""
        if isinstance(self.values, CodedText):
            return ~self.values.missing
        if self.kind == "text":
            return np.array([value is not None for value in self.values], dtype=bool)
        return ~np.isnan(self.values)

    def levels(self) -> tuple[list[Any], NDArray[np.intp]]:
        """The different values that are observed, and the place among them of every row that has one."""
        if isinstance(self.values, CodedText):
            return self.values.levels, self.values.places[self.observed]
        values = self.values[self.observed]
        distinct, places = np.unique(values.astype(str) if self.kind == "text" else values, return_inverse=True)
        return distinct.tolist(), places

    def __str__(self) -> str:
        return f"column {self.name!r}" if isinstance(self.name, str) else f"column {self.name}"


class ColumnTable:
    """Columns with labels and weights; the counterpart of a source for tables of mixed columns."""

    classes: NDArray[Any] | None = None
    known_classes: NDArray[Any] | None = None
    dtype = np.dtype(np.float64)
    passes = 0

    def __init__(self, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        self.columns = _frame_columns(X) if is_frame(X) else _array_columns(np.asarray(X))
        self.n_rows = len(self.columns[0].values) if self.columns else 0
        self._y = None if y is None else as_target(y, self.n_rows)
        weights = as_weights(sample_weight, self.n_rows)
        self._given_weights = weights
        self.weights: Float = np.ones(self.n_rows) if weights is None else weights

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        """The same table with the target read as class labels."""
        assert self._y is not None, "the estimator asks for y"
        view = copy(self)
        view.classes, view._y = encode(self._y, classes, self._given_weights)
        view.known_classes = (
            view.classes if classes is not None else known_labels(self._y, view.classes, self._given_weights)
        )
        return view

    @property
    def codes(self) -> Codes:
        """Class codes, once labelled."""
        assert self._y is not None, "label the table first"
        return self._y


def columns_of(rows: TableRows) -> list[Column]:
    """Rows that were read by a schema, as columns."""
    columns = []
    for name, values in rows.columns.items():
        kind: Kind = "text" if values.dtype == object else "boolean" if name in rows.booleans else "float"
        columns.append(Column(name, kind, values))
    return columns


def _frame_columns(frame: Any) -> list[Column]:
    import narwhals.stable.v1 as nw

    table = nw.from_native(frame, eager_only=True)
    columns = []
    for name, series in zip(table.columns, table.iter_columns(), strict=True):
        dtype = series.dtype
        if dtype == nw.Boolean or dtype.is_integer() or dtype.is_float() or dtype.is_decimal():
            kind: Kind = "boolean" if dtype == nw.Boolean else "integer" if dtype.is_integer() else "float"
            values = series.cast(nw.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)
            columns.append(Column(name, kind, values))
        elif dtype in (nw.String, nw.Categorical, nw.Enum) or isinstance(dtype, nw.Enum):
            words = series.cast(nw.String).to_list()
            # pandas before version 3 casts what is missing to the word "nan".
            words = [None if missing else word for word, missing in zip(words, series.is_null().to_list(), strict=True)]
            columns.append(Column(name, "text", _objects(words)))
        elif dtype == nw.Object:
            values = np.asarray(series.to_list(), dtype=object)
            check_numbers(values, f"column {name!r}")
            columns.append(_guess(name, values))
        elif dtype.is_temporal():
            raise ValueError(f"column {name!r} is of type {dtype}, not numeric: it {DATES}")
        else:
            values = np.asarray(series)
            check_numbers(values, f"column {name!r}")
            if values.dtype.kind == "f":  # long doubles
                columns.append(Column(name, "float", real_numbers(values, f"column {name!r}")))
                continue
            raise ValueError(
                f"column {name!r} is of type {dtype}, which no family describes; turn it into numbers or categories."
            )
    return columns


def _array_columns(X: NDArray[Any]) -> list[Column]:
    kinds: dict[str, Kind] = {"b": "boolean", "i": "integer", "u": "integer", "f": "float"}
    if X.dtype.kind in kinds:
        kind = kinds[X.dtype.kind]
        return [Column(j, kind, X[:, j].astype(np.float64)) for j in range(X.shape[1])]
    return [_guess(j, X[:, j]) for j in range(X.shape[1])]


def _objects(values: list[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = [None if is_missing(value) else value for value in values]
    return out


def _guess(name: Any, values: NDArray[Any]) -> Column:
    """A column of Python objects: numbers if all are, else text."""
    objects = _objects(values.tolist())
    present = [value for value in objects if value is not None]
    if present and all(isinstance(value, bool | np.bool_) for value in present):
        kind: Kind = "boolean"
    elif present and all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in present):
        kind = "integer"
    elif all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in present):
        kind = "float"
    else:
        return Column(name, "text", np.array([None if v is None else str(v) for v in objects], dtype=object))
    return Column(name, kind, np.array([np.nan if value is None else float(value) for value in objects]))
