"""Data frames as a source: pandas, polars and pyarrow tables, a block of rows at a time.

The columns of a frame lie apart in memory. Only one block of rows is ever brought together; the frame itself is
never copied to a matrix.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrays import MemorySource
from separatrix.data.block import Block, Float
from separatrix.data.dense import DenseBlock


def is_frame(X: Any) -> bool:
    """Whether X is a pandas, polars or pyarrow table, without importing any of them."""
    for module, names in (
        ("pandas", ("DataFrame",)),
        ("polars", ("DataFrame",)),
        ("pyarrow", ("Table", "RecordBatch")),
    ):
        loaded = sys.modules.get(module)
        if loaded is not None and any(isinstance(X, getattr(loaded, name)) for name in names):
            return True
    return False


def _not_numeric(name: Any, dtype: Any) -> ValueError:
    return ValueError(
        f"could not convert string to float: column {name!r} is of type {dtype}, not numeric. Encode it (for example with "
        "sklearn.preprocessing.OneHotEncoder) or leave it out."
    )


def _numbers(column: Any, name: Any) -> NDArray[Any]:
    """One column of a block as numbers; nulls become NaN, to be reported with the column's name."""
    try:
        values = np.asarray(column)
        return values if values.dtype.kind in "fiub" else values.astype(np.float64)
    except (TypeError, ValueError):
        raise _not_numeric(name, column.dtype) from None


class FrameSource(MemorySource):
    """A data frame, read through narwhals."""

    def __init__(self, X: Any, y: NDArray[Any] | None, weights: Float | None) -> None:
        import narwhals.stable.v1 as nw

        pyarrow = sys.modules.get("pyarrow")
        if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
            X = pyarrow.Table.from_batches([X])
        self._frame = nw.from_native(X, eager_only=True)
        super().__init__(self._frame.shape, y, weights)
        names, dtypes = list(self._frame.columns), list(self._frame.schema.values())
        if all(isinstance(name, str) for name in names):
            self.feature_names = np.asarray(names, dtype=object)
        for name, dtype in zip(names, dtypes, strict=True):
            # Columns of Python objects may hold numbers: they are tried, block by block.
            if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object, nw.Unknown)):
                raise _not_numeric(name, dtype)
        if all(dtype == nw.Float32 for dtype in dtypes):
            self.dtype = np.dtype(np.float32)

    def _block(self, rows: slice, y: NDArray[Any] | None, weights: Float | None) -> Block:
        part = self._frame[rows.start : rows.stop]
        values = part.to_numpy()
        if values.dtype.kind in "fiu":
            return DenseBlock(values, y, weights, rows.start)
        # Mixed with booleans or objects: column by column, each one contiguous copy.
        X = np.empty(part.shape, dtype=np.float64, order="F")
        for j, name in enumerate(part.columns):
            X[:, j] = _numbers(part[name], name)
        return DenseBlock(X, y, weights, rows.start)
