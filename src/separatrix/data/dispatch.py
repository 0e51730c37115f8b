"""`as_source`: whatever the user has, as a source."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from separatrix.data.arrays import ArraySource, SparseSource
from separatrix.data.checks import check_rows, real_numbers
from separatrix.data.device.tensors import is_sparse, moved, on_device, to_host
from separatrix.data.frames import FrameSource, is_frame
from separatrix.data.labels import as_target, as_weights
from separatrix.data.source import Source


def as_source(
    X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *, numeric: bool = True
) -> Source:
    """Rows, targets and weights as a source of blocks, without copying X where its layout allows.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, Dask collection or Source
        NumPy arrays of any real dtype and order (memory-mapped ones too), SciPy sparse matrices, pandas, polars
        and pyarrow tables; Dask arrays, data frames, and lists or bags of delayed blocks, and Spark data frames, whose rows
        stay on the workers; the name of a table of the current Spark session.
        A source is returned as it is; it then has its own targets and weights.
    y : array-like, optional
        Targets, one per row; the name of a column where X is a Dask or Spark data frame.
    sample_weight : array-like, optional
        Weights ≥ 0, one per row; 2 means the same as the row standing twice, 0 the same as its not being there.
    numeric : bool, default=True
        Whether columns of a data frame that are not numbers are refused at once, or only when they are read as such.

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import as_source
    >>> source = as_source(np.eye(3), y=["a", "b", "a"])
    >>> source.n_rows, source.n_features
    (3, 3)
    """
    if isinstance(X, Source):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "X is a source, which carries its own targets and weights; leave y and sample_weight out, or name them "
                "where the source is made (target=, weight=)."
            )
        return X
    X = named_table(X)
    if is_spark(X):
        from separatrix.data.engines.spark_source import spark_source

        return spark_source(X, y, sample_weight)
    if is_elsewhere(X):
        from separatrix.data.engines.collections import dask_source

        return dask_source(X, y, sample_weight, numeric)
    return source_of(X if on_device(X) else check_rows(X), y, sample_weight, numeric=numeric)


def is_elsewhere(X: Any) -> bool:
    """Whether X is a Dask array, data frame or bag, a delayed block, a list of these, or a Spark data frame."""
    if is_spark(X):
        return True
    if "dask" not in sys.modules:
        return False
    first = X[0] if isinstance(X, list) and X else X
    return hasattr(first, "__dask_graph__")


def is_spark(X: Any) -> bool:
    """Whether X is a Spark data frame; pyspark is not imported for the question."""
    return "pyspark" in sys.modules and type(X).__module__.startswith("pyspark.sql") and hasattr(X, "mapInArrow")


def named_table(X: Any) -> Any:
    """The data frame of a table of the current Spark session, where pyspark is in use and X is a name; else X."""
    if not isinstance(X, str) or "pyspark" not in sys.modules:
        return X
    from separatrix.data.engines.spark_source import in_session, session_table

    return session_table(X) if in_session() else X  # without a session a name is as likely that of a file


def answered_elsewhere(method: Callable[[Any], Any], X: Any, model_columns: Any, names: Sequence[str]) -> Any:
    """method(rows) of rows that an engine has, computed when asked for.

    For a Dask collection it is one of the same partitions, for a Spark data frame the frame with columns of these names.
    """
    if is_spark(X):
        from separatrix.data.engines.spark_source import scored

        return scored(method, X, model_columns, names)
    from separatrix.data.engines.collections import answered

    return answered(method, X)


def source_of(
    X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *, numeric: bool = True
) -> Source:
    """`as_source` of rows that `check_rows` has checked."""
    return next(kind for kind in KINDS if kind.matches(X)).build(X, y, sample_weight, numeric)


class Kind(NamedTuple):
    """A kind of storage: which rows are of it, and how they become a source."""

    matches: Callable[[Any], bool]
    build: Callable[[Any, Any, Any, bool], Source]
    """(X, y, sample_weight, whether columns that are not numbers are refused)."""


def _device(X: Any, y: Any, sample_weight: Any, numeric: bool) -> Source:
    # With their kernels they take a while to import.
    if is_sparse(X):
        from separatrix.data.device.sparse_source import sparse_device_source

        return sparse_device_source(X, y, sample_weight)
    from separatrix.data.device.source import device_source

    return device_source(X, y, sample_weight)


def moved_source(X: Any, y: Any, sample_weight: Any, device: str) -> Source:
    """The rows of an array or a sparse matrix on a device; an array that is too large for it is read piece by piece."""
    from separatrix.data.device.streamed import StreamedSource, too_large

    if sp.issparse(X):
        from separatrix.data.device.sparse_source import moved_sparse_source

        return moved_sparse_source(check_rows(X), y, sample_weight, device)
    if not too_large(X.nbytes, device):
        return _device(moved(X, device), y, sample_weight, True)
    target = None if y is None else as_target(to_host(y), len(X))
    return StreamedSource(
        X, target, None if sample_weight is None else as_weights(to_host(sample_weight), len(X)), device
    )


def files_there(source: Source, device: str | None) -> Source:
    """Files of numbers with their blocks on a device, where one is asked for; other sources as they are."""
    from separatrix.data.files import FileSource

    if device is None or not isinstance(source, FileSource):
        return source
    from separatrix.data.device.files import DeviceFiles

    return DeviceFiles(source, device)


def _sparse(X: Any, y: Any, sample_weight: Any, numeric: bool) -> Source:
    return SparseSource(X, *_per_row(y, sample_weight, X.shape[0]))


def _frame(X: Any, y: Any, sample_weight: Any, numeric: bool) -> Source:
    n_rows = X.num_rows if hasattr(X, "num_rows") else X.shape[0]
    return FrameSource(X, *_per_row(y, sample_weight, n_rows), numeric)


def array_source(X: Any, y: Any, sample_weight: Any, numeric: bool = True) -> Source:
    """`source_of` of what is, or becomes, a dense array."""
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead (shape {X.shape}). Reshape your data: one row per "
            "sample, one column per feature."
        )
    if X.dtype.kind not in "fiub" or X.dtype.itemsize > 8:
        X = real_numbers(X, "X")
    return ArraySource(X, *_per_row(y, sample_weight, X.shape[0]))


def _per_row(y: Any, sample_weight: Any, n_rows: int) -> tuple[Any, Any]:
    return (None if y is None else as_target(y, n_rows)), as_weights(sample_weight, n_rows)


# To add a kind of storage, write a file with its Source and name it here; the first that matches is taken.
KINDS = [
    Kind(on_device, _device),
    Kind(sp.issparse, _sparse),
    Kind(is_frame, _frame),
    Kind(lambda X: True, array_source),
]
