"""How Dask collections become a source, and answers for their rows collections again."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.checks import nearest_name
from separatrix.data.dispatch import is_elsewhere
from separatrix.data.engines.partition import Reading, Size, size_of
from separatrix.data.frames import FrameSource

if TYPE_CHECKING:
    from separatrix.data.engines.dask_source import DaskSource


def dask_source(X: Any, y: Any = None, sample_weight: Any = None, numeric: bool = True) -> DaskSource:
    """A Dask collection with its targets and weights as a source.

    Parameters
    ----------
    X : dask array, dask data frame, list or bag of delayed blocks
        A block is an array, a sparse matrix, a data frame, or a tuple (X, y) or (X, y, weights) of them.
    y, sample_weight : collection, array-like or str, optional
        One per row, in the same partitions or in others; or the name of a column of X.
    """
    from separatrix.data.engines.dask_engine import DaskEngine
    from separatrix.data.engines.dask_source import DaskSource

    target, weight = (values if isinstance(values, str) else None for values in (y, sample_weight))
    y, weights = (None if isinstance(values, str) else values for values in (y, sample_weight))
    apart = [name for name in (target, weight) if name is not None]
    if hasattr(X, "chunks"):
        blocks, sizes = _of_array(X)
    else:
        if hasattr(X, "columns"):  # a data frame: columns that are not numbers are refused before any is read
            from dask.dataframe.dispatch import make_meta

            FrameSource(_without(make_meta(X), apart), None, None, numeric)
        blocks = list(X) if isinstance(X, list) else list(X.to_delayed()) if hasattr(X, "to_delayed") else [X]
        sizes = _measured(Reading(0, len(blocks), 0, target, weight), blocks, y)
    there = [size for size in sizes if size.rows] or sizes
    starts = np.cumsum([0, *(size.rows for size in sizes)])
    readings = [
        Reading(i, len(blocks), int(starts[i]), target, weight, there[0].names, numeric) for i in range(len(blocks))
    ]
    lengths = [size.rows for size in sizes]
    ys, ws = _per_row(y, lengths, "y"), _per_row(weights, lengths, "sample_weight")
    ndim = there[0].target_ndim if y is None or (is_elsewhere(y) and isinstance(y, list)) else np.ndim(y)
    names = there[0].names
    return DaskSource(
        DaskEngine(list(zip(blocks, ys, ws, strict=True)), readings, [None] * len(blocks)),
        (int(starts[-1]), there[0].columns),
        np.float32 if all(size.single for size in there) else np.float64,
        np.asarray(names, dtype=object) if names is not None and all(isinstance(name, str) for name in names) else None,
        ndim,
        float(sum(size.bytes for size in sizes)),
    )


def _without(frame: Any, names: list[Any]) -> Any:
    for name in names:
        if name not in frame.columns:
            raise ValueError(f"there is no column {name!r}; {nearest_name(name, map(str, frame.columns))}")
    return frame.drop(columns=names)


def _of_array(X: Any) -> tuple[list[Any], list[Size]]:
    """Delayed runs of rows of a Dask array, and their sizes; chunks of unknown sizes are measured once."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead (shape {X.shape}). Reshape your data: one row per "
            "sample, one column per feature."
        )
    if np.isnan(X.shape[1]):
        raise ValueError("The number of columns of X is not known: call X.compute_chunk_sizes() first.")
    if X.numblocks[1] > 1:  # rows are brought together by the workers
        X = X.rechunk({1: -1})
    if np.isnan(X.shape[0]):
        X = copy(X)
        X.compute_chunk_sizes()
    single, d = X.dtype == np.float32, int(X.shape[1])
    row = X.dtype.itemsize * d
    sizes = [Size(int(rows), d, None, single, int(rows) * row, None) for rows in X.chunks[0]]
    return list(X.to_delayed().ravel()), sizes


def _measured(blank: Reading, blocks: list[Any], y: Any) -> list[Size]:
    """Sizes of blocks that only loading them tells."""
    from dask import delayed

    from separatrix.data.engines.dask_engine import DaskEngine

    ys = y if isinstance(y, list) and is_elsewhere(y) and len(y) == len(blocks) else [None] * len(blocks)
    readings = [replace(blank, number=i) for i in range(len(blocks))]
    parts = [
        (block if hasattr(block, "dask") else delayed(block), own, None) for block, own in zip(blocks, ys, strict=True)
    ]
    sizes: list[Any] = DaskEngine(parts, readings, [None] * len(parts)).ask(size_of)
    return sizes


def _per_row(values: Any, lengths: list[int], name: str) -> list[Any]:
    """Targets or weights as delayed runs that fit those of the rows."""
    from dask import delayed

    if values is None:
        return [None] * len(lengths)
    if isinstance(values, list) and values and is_elsewhere(values):
        if len(values) != len(lengths):
            raise ValueError(f"There are {len(lengths)} blocks of rows and {len(values)} of {name}; give one for each.")
        return values
    if hasattr(values, "to_dask_array"):  # a column, or several, of a data frame
        own = [int(n) for n in values.map_partitions(len).compute()]
        if own == lengths:
            return list(values.to_delayed())
        values = values.to_dask_array(lengths=own)
    total = sum(lengths)
    if hasattr(values, "chunks"):
        if any(np.isnan(n) for n in values.shape):
            values = copy(values)
            values.compute_chunk_sizes()
        _check_length(int(values.shape[0]), total, name)
        return list(values.rechunk((tuple(lengths), *((-1,) * (values.ndim - 1)))).to_delayed().ravel())
    given = np.asarray(values)
    if given.ndim == 0 and name == "sample_weight":
        given = np.full(total, float(given))
    _check_length(len(given), total, name)
    cuts = np.split(given, np.cumsum(lengths)[:-1])
    return [delayed(own, traverse=False) for own in cuts]


def _check_length(found: int, rows: int, name: str) -> None:
    if found != rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {rows} rows and {name} has {found}; "
            "give one per row."
        )


def answered(method: Callable[..., Any], X: Any) -> Any:
    """method(rows) for every partition of a Dask collection, lazily: a Dask array."""
    import dask.array as da

    if hasattr(X, "chunks"):
        X = X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
        like = method(np.ones((1, X.shape[1]), dtype=X.dtype))
        if like.ndim == 1:
            return X.map_blocks(method, dtype=like.dtype, drop_axis=1, meta=like[:0])
        return X.map_blocks(method, dtype=like.dtype, chunks=(X.chunks[0], like.shape[1:]), meta=like[:0])
    from dask import delayed

    if hasattr(X, "columns"):
        from dask.dataframe.dispatch import make_meta, meta_nonempty

        meta = make_meta(X)
        numeric = all(getattr(dtype, "kind", "O") in "iufb" for dtype in meta.dtypes)
        like, blocks = (
            method(meta_nonempty(meta) if numeric else meta.reindex([0])),
            X.to_delayed(),
        )  # else a row of holes
    else:
        blocks = X if isinstance(X, list) else X.to_delayed() if hasattr(X, "to_delayed") else [X]
        like = method(blocks[0].compute())
    work = delayed(_or_nothing, pure=False)
    shape = (np.nan, *like.shape[1:])
    parts = [da.from_delayed(work(method, block, like[:0]), shape, like.dtype) for block in blocks]
    return da.concatenate(parts)


def _or_nothing(method: Callable[..., Any], block: Any, nothing: NDArray[Any]) -> NDArray[Any]:
    """An answer for a block that may be empty."""
    return np.asarray(method(block)) if len(block) else nothing
