"""One registry of storages: the same rows as every kind of source that a model can be fitted to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import scipy.sparse as sp
from dask import delayed
from numpy.typing import NDArray

from separatrix import as_source, scan_csv, scan_parquet
from separatrix.data import Source

Array = NDArray[Any]


def _frame(X: Array, y: Array, weights: Array | None) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y)
    return frame if weights is None else frame.assign(w=weights)


def _uneven(n: int) -> tuple[int, ...]:
    """Chunks of different sizes, one of them of one row."""
    return (n // 3, 1, n // 4, n - n // 3 - 1 - n // 4)


def _dask_array(X: Array, y: Array, weights: Array | None, folder: Path) -> Source:
    chunks = _uneven(len(X))
    own = None if weights is None else da.from_array(weights, chunks=(len(X) // 2,))
    return as_source(da.from_array(X, chunks=(chunks, (X.shape[1],))), da.from_array(y, chunks=(chunks,)), own)


def _dask_frame(X: Array, y: Array, weights: Array | None, folder: Path) -> Source:
    frame = dd.from_pandas(_frame(X, y, weights), npartitions=3)
    empty = dd.from_pandas(_frame(X[:1], y[:1], None if weights is None else weights[:1]), npartitions=1)
    whole = dd.concat([empty.loc[empty.x0 != empty.x0], frame])
    return as_source(whole, "y", None if weights is None else "w")


def _delayed(X: Array, y: Array, weights: Array | None, folder: Path) -> Source:
    ends = np.cumsum((0, *_uneven(len(X))))
    cuts = [slice(a, b) for a, b in pairwise(ends)]
    own = np.ones(len(y)) if weights is None else weights
    return as_source([delayed((sp.csr_array(X[cut]), y[cut], own[cut])) for cut in cuts])


def _parquet(X: Array, y: Array, weights: Array | None, folder: Path) -> Source:
    _frame(X, y, weights).to_parquet(folder / "rows.parquet", index=False)
    return scan_parquet(folder / "rows.parquet", target="y", weight=None if weights is None else "w")


def _csv(X: Array, y: Array, weights: Array | None, folder: Path) -> Source:
    _frame(X, y, weights).to_csv(folder / "rows.csv", index=False)
    return scan_csv(folder / "rows.csv", target="y", weight=None if weights is None else "w")


STORAGES: dict[str, Callable[[Array, Array, Array | None, Path], Source]] = {
    "array": lambda X, y, weights, folder: as_source(X, y, weights),
    "sparse": lambda X, y, weights, folder: as_source(sp.csr_array(X), y, weights),
    "parquet": _parquet,
    "csv": _csv,
    "dask array": _dask_array,
    "dask data frame": _dask_frame,
    "dask blocks": _delayed,
}
