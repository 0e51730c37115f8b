"""One partition, in the process where it lives: its rows as a source in memory, and passes over them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.arrays import MemorySource
from separatrix.data.checks import check_rows, real_numbers
from separatrix.data.dispatch import source_of
from separatrix.data.engines.travel import unpack
from separatrix.data.frames import is_frame
from separatrix.data.labels import check_label_kind, check_weights, encode, is_missing, known_labels, unique_labels
from separatrix.settings import config


@dataclass(frozen=True)
class Failed:
    """An error of a pass, as opposed to one of the storage; it is raised where the fit is."""

    error: Exception


@dataclass(frozen=True)
class Size:
    """What has to be known of a partition before the first pass."""

    rows: int
    columns: int
    names: tuple[Any, ...] | None
    single: bool
    bytes: int
    target_ndim: int | None


@dataclass(frozen=True)
class TargetFacts:
    """What one partition knows of the targets and weights of all."""

    classes: NDArray[Any]
    known: NDArray[Any]
    missing: int
    bad_weights: int
    negative: int
    counts: bool


@dataclass(frozen=True)
class Reading:
    """How a partition is read: the columns of its target and weight where they are in its frame, its own columns."""

    number: int
    total: int
    first: int
    target: Any = None
    weight: Any = None
    names: tuple[Any, ...] | None = None
    numeric: bool = True
    role: str = ""
    classes: NDArray[Any] | None = None

    def parts(self, X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any]:
        """Rows, targets and weights of a partition, which may hold all of them in one."""
        X = _joined(X)
        if isinstance(X, tuple):
            X, *more = X
            y, weights = (*more, None, None)[:2] if y is None and weights is None else (y, weights)
        if is_frame(X) and (self.target is not None or self.weight is not None):
            import narwhals.stable.v1 as nw

            frame = nw.from_native(X, eager_only=True)
            y = y if self.target is None else frame[self.target].to_numpy()
            weights = weights if self.weight is None else frame[self.weight].to_numpy()
            apart = [name for name in (self.target, self.weight) if name is not None]
            X = frame.drop(apart).to_native()
        return X, None if y is None else np.asarray(y), None if weights is None else np.asarray(weights)

    def rows(self, X: Any, y: Any, weights: Any, codes: Any) -> MemorySource | None:
        """The partition as a source; ``None`` if it is empty."""
        X, y, weights = self.parts(X, y, weights)
        if not rows_of(X):
            return None
        self._check(X, y, weights)
        try:
            source = source_of(check_rows(X), numeric=self.numeric)
        except ValueError as error:
            raise ValueError(f"{self}: {error}") from error
        assert isinstance(source, MemorySource)
        if weights is not None:
            weights = real_numbers(weights, "sample_weight")
            check_weights(weights)
        if self.role == "labels":
            y = codes
        source = source.as_part(self.first, y if self.role else None, weights)
        source.classes = self.classes
        return source.valued() if self.role == "values" else source

    def _check(self, X: Any, y: Any, weights: Any) -> None:
        names = names_of(X)
        if self.names is not None and names != self.names:
            raise ValueError(f"{self} has the columns {list(names or ())}, and others have {list(self.names)}.")
        for what, values in (("targets", y), ("weights", weights)):
            if values is not None and len(values) != rows_of(X):
                raise ValueError(
                    "Found input variables with inconsistent numbers of samples: "
                    f"{self} has {rows_of(X)} rows and {len(values)} {what}; give one per row."
                )

    def __str__(self) -> str:
        return f"partition {self.number} of {self.total}"

    def facts(self, X: Any, y: Any, weights: Any) -> TargetFacts | Failed | None:
        """Labels, and what is wrong with them; of targets that are values only the latter."""
        try:
            _, y, weights = self.parts(X, y, weights)
            return None if y is None or not len(y) else _facts(y, weights, self.role == "labels")
        except Exception as error:  # whatever is wrong with the labels is said by the process that fits
            return Failed(error)

    def codes(self, X: Any, y: Any, weights: Any) -> Any:
        """Class codes of the rows."""
        try:
            _, y, weights = self.parts(X, y, weights)
            if y is None or not len(y):
                return np.empty(0, dtype=np.intp)
            return encode(y, self.classes, None if weights is None else real_numbers(weights, "sample_weight"))[1]
        except Exception as error:  # as above
            return Failed(error)


def _facts(y: NDArray[Any], weights: Any, labels: bool) -> TargetFacts:
    weights = None if weights is None else real_numbers(weights, "sample_weight")
    bad = 0 if weights is None else int((~np.isfinite(weights)).sum())
    negative = 0 if weights is None or bad else int((weights < 0).sum())
    counted = y if weights is None or bad or weights.all() else y[weights > 0]
    if y.dtype.kind == "f":
        missing = int((~np.isfinite(y)).reshape(len(y), -1).any(axis=1).sum())
    else:
        missing = sum(map(is_missing, counted.ravel().tolist())) if y.dtype.kind == "O" else 0
    none = np.empty(0, dtype=y.dtype)
    if missing or bad or negative or not labels:
        return TargetFacts(none, none, missing, bad, negative, bool(len(counted)))
    check_label_kind(y)
    classes = unique_labels(counted) if len(counted) else none
    known = known_labels(y, classes, weights) if len(classes) or y.dtype.kind != "O" else classes
    return TargetFacts(classes, known, 0, 0, 0, bool(len(counted)))


def _joined(blocks: Any) -> Any:
    """Blocks of one partition of a bag, one below the other."""
    if not isinstance(blocks, list):
        return blocks
    if not blocks:
        return np.empty((0, 0))
    if isinstance(blocks[0], tuple):
        return tuple(map(_joined, map(list, zip(*blocks, strict=True))))
    if is_frame(blocks[0]):
        import narwhals.stable.v1 as nw

        return nw.concat([nw.from_native(block, eager_only=True) for block in blocks]).to_native()
    return sp.vstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.concatenate(blocks)


def rows_of(X: Any) -> int:
    """How many rows X has."""
    return int(X.num_rows) if hasattr(X, "num_rows") else int(X.shape[0])


def names_of(X: Any) -> tuple[Any, ...] | None:
    """The names of the columns of a frame."""
    return tuple(getattr(X, "column_names", None) or X.columns) if is_frame(X) else None


def size_of(reading: Reading, X: Any, y: Any, weights: Any) -> Size:
    """The size of a partition."""
    from dask.sizeof import sizeof

    size = int(sizeof(X))
    X, y, _ = reading.parts(X, y, weights)
    shape = X.shape
    if len(shape) != 2:
        raise ValueError(f"{reading} has rows of shape {shape}: give two-dimensional blocks.")
    source = source_of(X, numeric=False) if rows_of(X) else None
    single = source is not None and source.dtype == np.float32
    return Size(rows_of(X), int(shape[1]), names_of(X), single, size, None if y is None else y.ndim)


def run(
    packed: bytes,
    reading: Reading,
    X: Any,
    y: Any,
    weights: Any,
    codes: Any,
    known: Sequence[dict[int, Any] | None],
    fills: Sequence[int],
    threads: int,
) -> Any:
    """A pass over one partition: its result, ``None`` without rows; where it fills held values, these with it."""
    found, left = _pass(packed, reading, (X, y, weights, codes), known, fills, threads)
    return (found, left) if fills else found


def _pass(
    packed: bytes, reading: Reading, part: tuple[Any, ...], known: Sequence[Any], fills: Sequence[int], threads: int
) -> tuple[Any, list[dict[int, Any]]]:
    *_, codes = part
    try:
        rows = None if isinstance(codes, Failed) else reading.rows(*part)
        if rows is None:
            return codes if isinstance(codes, Failed) else None, [{} for _ in fills]
        (source, map_fn, merge, finer), held = unpack(packed, rows, known)
        with config(threads=threads):
            found = source.map(map_fn, finer) if merge is None else source.reduce(map_fn, merge, finer)
        return found, [held[at].values for at in fills]
    except Exception as error:  # told apart from errors of the storage, and raised by the process that fits
        return Failed(error), [{} for _ in fills]


def merged(packed: bytes, results: Sequence[Any]) -> Any:
    """Results of neighbours, merged in order; the first error where there is one."""
    there = [result for result in results if result is not None]
    for result in there:
        if isinstance(result, Failed):
            return result
    if len(there) < 2:
        return there[0] if there else None
    merge, _ = unpack(packed, None, ())
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # found in the total, and reported by column
            total = deepcopy(there[0])  # an engine may ask for it again, and `merge` may change it
            for result in there[1:]:
                total = merge(total, result)
                total = deepcopy(total) if total is result else total
        return total
    except Exception as error:  # as above
        return Failed(error)
