"""What may enter at all: asked of every input once, before anything is read of it.

sparse      0 ≤ index < size for every stored entry; pointers that start at 0, never fall and end within the entries
numbers     real, and within the range of double precision
storage     rows that are there: not a query still to be run, not dates
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.errors import shown

_COMPLEX = "holds complex numbers. Complex data not supported: give real numbers (.real, .imag or abs() of them)."
DATES = (
    "holds dates or times: give numbers that mean something to the model, such as days since a "
    "date, the hour or the month, or leave it out."
)
_BEYOND = "holds finite values beyond the range of double precision (±1.8e308): divide it by a power of ten first."
_MASKED = "is a masked array with {} masked values, which are missing: give its filled(), or leave their rows out."
_SCAN = "which is not in memory: give X.to_table(), or scan its files with separatrix.scan_parquet"
# Not loaded yet, and what brings them into memory.
_LAZY = (
    ("polars", "LazyFrame", "a polars LazyFrame, a query that has not been run: give X.collect()"),
    ("pyarrow.dataset", "Dataset", f"a pyarrow dataset, {_SCAN}"),
    ("pyarrow.dataset", "Scanner", f"a pyarrow scanner, {_SCAN}"),
    ("pyarrow", "RecordBatchReader", "a pyarrow reader, whose rows can be read only once: give X.read_all()"),
    ("polars", "Series", "a polars Series, which is one column: give X.to_frame()"),
)


def check_rows(X: Any) -> Any:
    """X, if its rows are there, real and within their bounds; in CSR where its own format cannot be checked in place."""
    if isinstance(X, str | os.PathLike):
        raise ValueError(
            f"Expected 2D array, got the text {os.fspath(X)!r}: scan files with separatrix.scan_csv or "
            "separatrix.scan_parquet, and tables of Spark with separatrix.scan_spark."
        )
    for module, name, sentence in _LAZY:
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(X, getattr(loaded, name, ())):
            raise TypeError(f"X is {sentence}.")
    if sp.issparse(X):
        return _checked_sparse(X)
    check_unmasked(X, "X")
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype):
        check_numbers(np.asarray(X), "X")
        if dtype.kind == "f" and dtype.itemsize > 8:
            return real_numbers(X, "X")
    return X


def nearest_name(name: Any, names: Iterable[str]) -> str:
    """A hint at the end of a sentence on a column that is not there: the name that was probably meant, or those there are."""
    known = list(names)
    near = difflib.get_close_matches(str(name), known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    more = f" and {len(known) - 10} more" if len(known) > 10 else ""
    return f"the columns are {', '.join(map(repr, known[:10]))}{more}."


def real_numbers(values: Any, name: str) -> Float:
    """`values` as float64; complex numbers, dates and what double precision cannot hold are refused in the name given."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    if type(values) is float:
        return np.array(values)
    check_unmasked(values, name)
    given = np.asarray(values)
    check_numbers(given, name)
    try:
        with np.errstate(over="ignore"):
            numbers = given.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} holds {_no_number(given)}, which is no number; give numbers ({error}).") from None
    if given.dtype.kind == "f" and given.dtype.itemsize > 8 and (np.isinf(numbers) & ~np.isinf(given)).any():
        raise ValueError(f"{name} {_BEYOND}")
    return numbers


def check_unmasked(values: Any, name: str) -> None:
    """Refuse masked arrays that hide values: an array of them would read what lies under the mask."""
    if isinstance(values, np.ma.MaskedArray) and (masked := int(np.ma.getmaskarray(values).sum())):
        raise ValueError(f"{name} {_MASKED.format(masked)}")


def _no_number(values: NDArray[Any]) -> str:
    """The first of the values that no number can be made of, as a message shows it."""
    for value in values.ravel().tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            return shown(value) if isinstance(value, str | bytes) else f"a value of type {type(value).__name__}"
    return f"values of type {values.dtype}"


def check_numbers(values: NDArray[Any], name: str) -> None:
    """Refuse complex numbers, dates, and Python's numbers beyond double precision."""
    _check_dtype(values.dtype, name)
    if values.dtype.kind == "O":
        _check_objects(values, name)


def _check_dtype(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind == "c":
        raise ValueError(f"{name} {_COMPLEX}")
    if dtype.kind in "mM":
        raise ValueError(f"{name} {DATES}")


def _check_objects(values: Any, name: str) -> None:
    """Python objects are numbers of their own kinds; the first that cannot be a double is refused."""
    from datetime import date, time, timedelta

    for value in np.asarray(values, dtype=object).ravel().tolist():
        if isinstance(value, complex | np.complexfloating):
            raise ValueError(f"{name} {_COMPLEX}")
        if isinstance(value, date | time | timedelta | np.datetime64 | np.timedelta64):
            raise ValueError(f"{name} {DATES}")
        if isinstance(value, int | np.longdouble) and not isinstance(value, bool):
            try:
                beyond = np.isinf(float(value)) and not np.isinf(value)
            except OverflowError:
                beyond = True
            if beyond:
                raise ValueError(f"{name} {_BEYOND}")


def _checked_sparse(X: Any) -> Any:
    _check_dtype(X.dtype, "X")
    if len(X.shape) != 2:
        return X  # refused later, by its shape
    if X.format not in ("csr", "csc", "bsr", "coo"):
        X = X.tocsr()  # made of Python objects or diagonals: its indices are looked at as they come out
    if X.format == "coo":
        _check_coordinates(X)
    else:
        _check_compressed(X)
    if X.dtype.kind == "f" and X.dtype.itemsize > 8:
        X = X.copy()
        X.data = real_numbers(X.data, "X")
    return X


def _refused(what: str) -> ValueError:
    return ValueError(
        f"The sparse matrix X is damaged: {what}. Build it anew, for example from its rows, columns and values."
    )


def _check_within(indices: NDArray[Any], size: int, what: str) -> None:
    if indices.dtype.kind not in "iu":
        raise _refused(f"its {what} indices are of type {indices.dtype}")
    # As unsigned numbers those below zero are the largest: one reading finds both.
    if len(indices) and int(indices.view(f"u{indices.dtype.itemsize}").max()) >= size:
        bad = indices[(indices < 0) | (indices >= size)]
        raise _refused(f"a {what} index is {int(bad[0])}, and there are {size} {what}s ({len(bad)} such indices)")


def _check_coordinates(X: Any) -> None:
    lengths = {len(X.row), len(X.col), len(X.data)}
    if len(lengths) > 1:
        raise _refused(f"it has {len(X.row)} row indices, {len(X.col)} column indices and {len(X.data)} values")
    _check_within(X.row, X.shape[0], "row")
    _check_within(X.col, X.shape[1], "column")


def _check_compressed(X: Any) -> None:
    by_column = X.format == "csc"
    high, wide = X.blocksize if X.format == "bsr" else (1, 1)
    if X.shape[0] % high or X.shape[1] % wide:
        raise _refused(f"blocks of {high} × {wide} do not fill its shape {X.shape}")
    major, minor = (X.shape[1], X.shape[0]) if by_column else (X.shape[0] // high, X.shape[1] // wide)
    pointers, entries = X.indptr, min(len(X.indices), len(X.data))
    if len(pointers) != major + 1:
        raise _refused(f"it has {len(pointers)} pointers (indptr) where {major + 1} belong")
    if len(X.indices) != len(X.data):
        raise _refused(f"it has {len(X.indices)} indices and {len(X.data)} values")
    if pointers.dtype.kind not in "iu" or pointers[0] != 0 or (pointers[1:] < pointers[:-1]).any():
        raise _refused("its pointers (indptr) do not start at 0 and rise")
    if pointers[-1] > entries:
        raise _refused(f"its pointers (indptr) end at {int(pointers[-1])}, behind its {entries} entries")
    _check_within(X.indices[: pointers[-1]], minor, "block" if X.format == "bsr" else "row" if by_column else "column")
