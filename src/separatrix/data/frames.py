"""Data frames as a source: pandas, polars and pyarrow tables, a block of rows at a time.

The columns of a frame lie apart in memory. Only one block of rows is ever brought together; the frame itself is
never copied to a matrix.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrays import COPIED_ARRAY, MemorySource
from separatrix.data.block import Block, Float
from separatrix.data.checks import DATES, check_numbers, real_numbers
from separatrix.data.dense import WORTH_COMPILING, DenseBlock
from separatrix.data.source import COPIED_BYTES, rows_per_block


def is_frame(X: Any) -> bool:
    """Whether X is a pandas, polars or pyarrow table, without importing any of them."""
    frames = {"pandas": ("DataFrame",), "polars": ("DataFrame",), "pyarrow": ("Table", "RecordBatch")}
    loaded = {sys.modules[module]: names for module, names in frames.items() if sys.modules.get(module)}
    return any(isinstance(X, getattr(module, name)) for module, names in loaded.items() for name in names)


def as_table(X: Any) -> Any:
    """A pyarrow RecordBatch as a Table; anything else as it is."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([X])
    return X


def _not_numeric(name: Any, dtype: Any) -> ValueError:
    if dtype.is_temporal():
        return ValueError(f"column {name!r} is of type {dtype}, not numeric: it {DATES}")
    return ValueError(
        f"could not convert string to float: column {name!r} is of type {dtype}, not numeric. Encode it (for example with "
        "sklearn.preprocessing.OneHotEncoder) or leave it out."
    )


def _numbers(column: Any, name: Any) -> NDArray[Any]:
    """One column of a block as numbers; nulls become NaN, to be reported with the column's name."""
    try:
        if str(column.dtype) == "Boolean":
            import narwhals.stable.v1 as nw

            column = column.cast(nw.Float64).fill_null(float("nan"))
        values = np.asarray(column)
    except (TypeError, ValueError):
        raise _not_numeric(name, column.dtype) from None
    check_numbers(values, f"column {name!r}")
    if values.dtype.kind == "f":
        return real_numbers(values, f"column {name!r}")
    try:
        return values if values.dtype.kind in "iub" else values.astype(np.float64)
    except (TypeError, ValueError):
        raise _not_numeric(name, column.dtype) from None


class FrameBlock(DenseBlock):
    """Rows of a data frame; they become numbers when they are read."""

    def __init__(self, frame: Any, y: NDArray[Any] | None, weights: Float | None, start: int) -> None:
        self._frame, self.y, self.weights, self.start = frame, y, weights, start
        self._scratch = self._compiled = False

    @property
    def native(self) -> Any:
        """The rows as the frame they came in."""
        return self._frame.to_native()

    def named(self, names: Sequence[Any]) -> Any:
        """Some columns of the rows, in a frame of the kind they came in."""
        return self._frame.select(*names).to_native()

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self._frame.shape
        return rows, columns

    @cached_property
    def X(self) -> NDArray[Any]:  # made on demand
        """The rows as numbers."""
        values = self._frame.to_numpy()
        if values.dtype.kind in "fiu" and values.dtype.itemsize <= 8:
            return np.asarray(values)
        # Mixed with booleans or objects: column by column, each one contiguous copy.
        numbers = np.empty(self._frame.shape, dtype=np.float64, order="F")
        for j, (name, column) in enumerate(zip(self._frame.columns, self._frame.iter_columns(), strict=True)):
            numbers[:, j] = _numbers(column, name)
        return numbers

    def part(self, rows: slice) -> FrameBlock:
        y = None if self.y is None else self.y[rows]
        weights = None if self.weights is None else self.weights[rows]
        return FrameBlock(self._frame[rows.start : rows.stop], y, weights, self.start + rows.start)


class FrameSource(MemorySource):
    """A data frame, read through narwhals. With `numeric=False` columns of any type may be there until they are read."""

    def __init__(self, X: Any, y: NDArray[Any] | None, weights: Float | None, numeric: bool = True) -> None:
        import narwhals.stable.v1 as nw

        self._frame = nw.from_native(as_table(X), eager_only=True)
        super().__init__(self._frame.shape, y, weights)
        self._rows_per_block = rows_per_block(self.n_features, target=COPIED_BYTES)
        names, dtypes = list(self._frame.columns), list(self._frame.schema.values())
        if all(isinstance(name, str) for name in names):
            self.feature_names = np.asarray(names, dtype=object)
        for name, dtype in zip(names, dtypes, strict=True):
            # Columns of Python objects may hold numbers: they are tried, block by block.
            if numeric and not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object, nw.Unknown)):
                raise _not_numeric(name, dtype)
        if all(dtype == nw.Float32 for dtype in dtypes):
            self.dtype = np.dtype(np.float32)
        self._laid: NDArray[Any] | None = None

    def lay_in_rows(self) -> None:
        """A small frame becomes an array once: the same arithmetic as for an array, and no conversion in every pass."""
        if self._laid is None and self.n_rows * self.n_features * 8 <= COPIED_ARRAY:
            whole = FrameBlock(self._frame, None, None, 0).X
            self._laid = np.ascontiguousarray(whole, dtype=self.dtype)

    def _in_rows(self) -> bool:
        return self._laid is not None

    def _block(self, rows: slice, y: NDArray[Any] | None, weights: Float | None) -> Block:
        if self._laid is not None:
            return DenseBlock(self._laid[rows], y, weights, rows.start, compiled=self._laid.size >= WORTH_COMPILING)
        return FrameBlock(self._frame[rows.start : rows.stop], y, weights, rows.start)

    def _rows(self, which: NDArray[np.intp]) -> Self:
        return type(self)(self._frame[which.tolist()].to_native(), None, None)
