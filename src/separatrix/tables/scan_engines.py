"""Frames of Dask and Spark as sources: numbers as they are, tables of mixed columns as `compare` reads and encodes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from separatrix.data.checks import nearest_name
from separatrix.data.dispatch import as_source, is_spark
from separatrix.data.source import Source
from separatrix.tables.frame_table import FrameTable, frame_table
from separatrix.tables.table_source import TableSource


def scan_dask(
    frame: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    encode: bool | None = None,
) -> Source:
    """A Dask data frame as a source of rows, which stay on the workers.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    target, weight : str, optional
        The columns of the target and of the weights.
    features : sequence of str, optional
        The columns of the features; all others if left out.
    encode : bool, optional
        As for `scan_parquet`: whether columns are encoded as `compare` does it, what that takes being learnt by one pass on the
        workers. By default they are where one of them is neither numbers nor booleans.

    Returns
    -------
    Source
        To be given to ``fit``, ``predict`` or `compare` in the place of the rows.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from separatrix import LogisticRegression
    >>> from separatrix.tables import scan_dask
    >>> people = pd.DataFrame({"age": [20, 25, 33, 47, None, 61], "sex": list("fmfmfm"), "ill": list("nnynyy")})
    >>> source = scan_dask(dd.from_pandas(people, npartitions=2), "ill")
    >>> model = LogisticRegression().fit(source)
    >>> model.feature_names_in_.tolist(), model.predict(source).tolist()
    (['age', 'age is missing', 'sex = m'], ['n', 'n', 'y', 'n', 'y', 'y'])
    """
    names, apart = _columns(list(frame.columns), target, weight, features)
    frame = frame[[*names, *apart]]
    numeric = all(getattr(dtype, "kind", "O") in "iufb" for dtype in frame.dtypes[names])
    if numeric if encode is None else not encode:
        return as_source(frame, target, weight)
    return frame_table(as_source(frame, numeric=False), target, weight, names)


def scan_spark(
    frame: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    features: Sequence[str] | str | None = None,
    encode: bool | None = None,
) -> Source:
    """A Spark data frame, or a table of the current session by its name, as a source of rows, which stay in Spark.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame or str
        The data frame, or the name of a table.
    target, weight : str, optional
        The columns of the target and of the weights.
    features : str or sequence of str, optional
        The columns of the features, or the one column of vectors (or arrays) that holds them; all others if left out.
    encode : bool, optional
        As for `scan_dask`.

    Returns
    -------
    Source
    """
    from separatrix.data.engines.spark_source import numeric_columns, scan_columns, session_table

    frame = session_table(frame)
    names, apart = _columns(frame.columns, target, weight, [features] if isinstance(features, str) else features)
    if numeric_columns(frame, names) if encode is None else not encode:
        return scan_columns(frame, target, weight, names)
    rows = scan_columns(frame.select(*names, *apart), None, None, numeric=False)
    return frame_table(rows, target, weight, names)


def scan_elsewhere(frame: Any, target: Any, weight: Any) -> FrameTable:
    """A frame of Dask or Spark as a table; target and weight are names of its columns."""
    for name, given in (("y", target), ("sample_weight", weight)):
        if given is not None and not isinstance(given, str):
            raise TypeError(
                f"X is a table of Dask or Spark, so {name} is the name of one of its columns; it is {type(given).__name__}."
            )
    if not hasattr(frame, "columns"):
        raise TypeError("A model of mixed columns reads a data frame: these rows have no named columns.")
    scan: Any = scan_spark if is_spark(frame) else scan_dask
    return scan(frame, target, weight=weight, encode=True)


def table_of(data: Any, target: str) -> TableSource:
    """A source, or a frame of Dask or Spark, as the table of which a column is the target."""
    if not isinstance(data, Source):
        return scan_elsewhere(data, target, None)
    table = data.table()
    assert isinstance(table, TableSource)
    if table.columns.target != target:
        raise ValueError(f"The source was scanned with target={table.columns.target!r}, and {target!r} is asked for.")
    return table


def _columns(
    given: list[str], target: str | None, weight: str | None, features: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """The columns of the features, and those of target and weight."""
    apart = [name for name in (target, weight) if name is not None]
    names = [name for name in given if name not in apart] if features is None else list(features)
    for name in (*names, *apart):
        if name not in given:
            raise ValueError(f"there is no column {name!r}; {nearest_name(name, given)}")
    if not names:
        raise ValueError("no column is left for the features; name them with features=.")
    return names, apart
