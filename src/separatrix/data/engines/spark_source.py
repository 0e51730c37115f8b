"""A Spark data frame as a source: the rows stay in Spark; functions go there, and results come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from separatrix.data.block import Block
from separatrix.data.checks import check_rows, nearest_name
from separatrix.data.dispatch import source_of
from separatrix.data.engines.partition import Failed, Reading, Size, TargetFacts, names_of, rows_of
from separatrix.data.engines.remote import Part, PartitionedSource, by_partition, pick
from separatrix.data.engines.spark_engine import SparkEngine, checked, in_words, rows_of_table
from separatrix.data.source import Source

_FEW_LABELS, _FEW_ROWS = 10_000, 1 << 20
FEW_BYTES = 1 << 26
"""Rows that take no more are brought here: a pass over them takes less than a job of Spark."""


def in_session() -> bool:
    """Whether a Spark session is active."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


def session_table(frame: Any) -> Any:
    """A Spark data frame, or the table of the current session that has this name."""
    if not isinstance(frame, str):
        return frame
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        raise ValueError(f"There is no active Spark session that could have a table {frame!r}; start one first.")
    if not session.catalog.tableExists(frame):
        names = ", ".join(repr(table.name) for table in session.catalog.listTables()[:10])
        raise ValueError(f"The Spark session has no table {frame!r}; {f'it has {names}' if names else 'it has none'}.")
    return session.table(frame)


def numeric_columns(frame: Any, names: Sequence[str]) -> bool:
    """Whether columns are numbers, booleans or one column of vectors of them."""
    from pyspark.sql.types import BooleanType, NumericType

    kinds = [frame.schema[name].dataType for name in names]
    return _vector(frame, names) is not None or all(isinstance(one, NumericType | BooleanType) for one in kinds)


def scan_columns(
    frame: Any, target: str | None, weight: str | None, features: Sequence[str] | None = None, numeric: bool = True
) -> Source:
    """Columns of a Spark data frame as a source: here where they are few numbers, else kept by Spark while it is there."""
    apart = [name for name in (target, weight) if name is not None]
    wanted = [name for name in frame.columns if name not in apart] if features is None else list(features)
    for name in (*wanted, *apart):
        if name not in frame.columns:
            raise ValueError(f"there is no column {name!r}; {nearest_name(name, frame.columns)}")
    vector = _vector(frame, wanted)
    rows, there = _with_arrays(frame, vector).select(*wanted, *apart), frame.storageLevel
    cached = there.useMemory or there.useDisk
    rows = rows if cached else rows.persist()
    if numeric and _are_few(rows, frame, wanted, vector):
        found = _here(rows, Reading(0, 1, 0, target, weight), vector)
        found.from_spark = True
        if not cached:
            rows.unpersist()
        return found
    rows = rows.persist()
    count = rows.rdd.getNumPartitions()
    blank = [Reading(i, count, 0, target, weight) for i in range(count)]
    asked = SparkEngine(rows, blank, vector).ask(_size_and_labels)
    source = SparkSource(rows, [checked(size) for size, _ in asked], target, weight, vector, numeric)
    labels = [facts for _, facts in asked]
    source.labels = None if any(isinstance(facts, Failed) for facts in labels) else labels
    return source


def _are_few(rows: Any, frame: Any, wanted: Sequence[str], vector: str | None) -> bool:
    """Whether the rows are to be brought here; they are counted by Spark alone, without a Python worker."""
    with in_words():
        count = rows.count()
        width = len(wanted) if vector is None or not count else _length(rows, frame, vector)
    if not count:
        raise ValueError("The data have no rows: at least one is needed.")
    return bool(count <= _FEW_ROWS and 8 * count * width <= FEW_BYTES)


def _length(rows: Any, frame: Any, vector: str) -> int:
    """Features in a column of vectors, as whoever made it has written down, or as its first row has them."""
    known = frame.schema[vector].metadata.get("ml_attr", {}).get("num_attrs")
    return int(known) if known else len(rows.select(vector).first()[0] or ())


def _here(rows: Any, reading: Reading, vector: str | None) -> Source:
    """All rows as a source in memory: Spark hands them over as Arrow batches, in the order of the partitions."""
    with in_words():
        table = rows.toArrow()
    X, y, weights = reading.parts(*rows_of_table(table, reading, vector))
    return source_of(check_rows(X), y, weights)


def spark_source(frame: Any, y: Any, sample_weight: Any) -> Source:
    """`as_source` of a Spark data frame: target and weights are names of its columns."""
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        if given is not None and not isinstance(given, str):
            raise TypeError(
                f"X is a Spark data frame, so {name} is the name of one of its columns; it is {type(given).__name__}."
            )
    return scan_columns(frame, y, sample_weight)


class SparkSource(PartitionedSource):
    """Rows of a Spark data frame with their targets and weights, cached by Spark while the source is there."""

    place = "spark"
    from_spark = True
    labels: list[TargetFacts | Failed | None] | None = None
    """What the partitions know of their labels, if they have been asked, and these are few and in order."""

    def __init__(
        self,
        rows: Any,
        sizes: Sequence[Size],
        target: str | None,
        weight: str | None,
        vector: str | None,
        numeric: bool,
    ) -> None:
        there = [size for size in sizes if size.rows]
        if not there:
            raise ValueError("The data have no rows: at least one is needed.")
        starts = np.cumsum([0, *(size.rows for size in sizes)])
        names = there[0].names
        readings = [Reading(i, len(sizes), int(starts[i]), target, weight, names, numeric) for i in range(len(sizes))]
        self.n_rows, self.n_features = int(starts[-1]), there[0].columns
        self.dtype = np.dtype(np.float32 if all(size.single for size in there) else np.float64)
        self.feature_names = None if names is None else np.asarray(names, dtype=object)
        self._engine, self._drawn = SparkEngine(rows, readings, vector), {}
        self._target_ndim = None if target is None else 1

    def blocks(self) -> Iterator[Block]:
        """The rows, brought here all at once: for what cannot be computed where they are."""
        for part in self._engine.ask(_rows_here):
            if checked(part) is not None:
                yield from part.blocks()

    def _label_facts(self) -> list[TargetFacts | Failed | None]:
        return super()._label_facts() if self.labels is None else self.labels

    def matrix(self) -> Any:
        return np.concatenate([block.dense() for block in self.blocks()])

    def _picked(self, which: NDArray[np.intp]) -> list[Part | Failed | None]:
        own = by_partition(self._engine.readings, which)

        def picked(reading: Reading, X: Any, y: Any, weights: Any) -> Part | Failed | None:
            if not len(own[reading.number]):
                return None
            codes = reading.codes(X, y, weights) if reading.role == "labels" else None
            return pick(reading, X, y, weights, codes, own[reading.number])

        return self._engine.ask(picked)


def _rows_here(reading: Reading, X: Any, y: Any, weights: Any) -> Any:
    codes = reading.codes(X, y, weights) if reading.role == "labels" else None
    return reading.rows(X, y, weights, codes)


def _size(reading: Reading, X: Any, y: Any, weights: Any) -> Size:
    held, y, _ = reading.parts(X, y, weights)
    single = hasattr(held, "schema") and all(str(kind) == "float" for kind in held.schema.types)
    columns = held.num_columns if hasattr(held, "num_columns") else int(held.shape[1])
    return Size(rows_of(held), columns, names_of(held), single, 0, None if y is None else y.ndim)


def _size_and_labels(reading: Reading, X: Any, y: Any, weights: Any) -> tuple[Size, TargetFacts | Failed | None]:
    """Both in one pass, each of which costs a job of Spark; targets of many values stay where they are."""
    facts = replace(reading, role="labels").facts(X, y, weights)
    many = isinstance(facts, TargetFacts) and len(facts.known) > _FEW_LABELS
    return _size(reading, X, y, weights), Failed(ValueError("many labels")) if many else facts


def _vector(frame: Any, wanted: Sequence[str]) -> str | None:
    """The one column that holds all features, if it is one of vectors or arrays."""
    if len(wanted) != 1:
        return None
    kind = frame.schema[wanted[0]].dataType.simpleString()
    return wanted[0] if kind == "vector" or kind.startswith("array<") else None


def _with_arrays(frame: Any, vector: str | None) -> Any:
    if vector is None or frame.schema[vector].dataType.simpleString() != "vector":
        return frame
    from pyspark.ml.functions import vector_to_array

    return frame.withColumn(vector, vector_to_array(frame[vector]))


def scored(method: Callable[[Any], Any], frame: Any, model_columns: Any, names: Sequence[str]) -> Any:
    """The data frame with columns of answers beside its own, computed by the workers when they are asked for.

    The features are the columns of the model, by name; those of a model without names the one column of vectors.
    """
    from pyspark.sql.types import StructField, StructType

    vector = None if model_columns is not None else _one_vector(frame)
    wanted = [vector] if vector is not None else list(model_columns)
    for name in wanted:
        if name not in frame.columns:
            raise ValueError(f"there is no column {name!r}; {nearest_name(name, frame.columns)}")
    for name in names:
        if name in frame.columns:
            raise ValueError(f"The data frame has a column {name!r} already; rename or drop it first.")
    own = _with_arrays(frame, vector)
    like = [_spark_type(np.asarray(method(_one_row(frame, vector, wanted))))] * len(names)
    fields = [StructField(name, kind) for name, kind in zip(names, like, strict=True)]

    def of_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch])
            X, _, _ = rows_of_table(table.select(wanted), Reading(0, 1, 0), vector)
            answers = np.asarray(method(X))
            for name, column in zip(names, answers.reshape(len(answers), -1).T, strict=True):
                table = table.append_column(name, pa.array(column))
            yield from table.to_batches()

    return own.mapInArrow(of_batches, StructType([*own.schema.fields, *fields]))


def _one_vector(frame: Any) -> str:
    """The column of vectors or arrays that a model without column names was fitted to."""
    found = [name for name in frame.columns if _vector(frame, [name]) is not None]
    if len(found) != 1:
        raise ValueError(
            "The model was fitted to rows without column names, so the data frame must have one column of vectors; it has "
            f"{len(found)}. Fit the model to named columns."
        )
    return found[0]


def _one_row(frame: Any, vector: str | None, wanted: Sequence[str]) -> Any:
    """A row of ones, or of holes where the columns are not all numbers, for the type of an answer."""
    if vector is None:
        return pa.table({name: [1.0 if numeric_columns(frame, wanted) else None] for name in wanted})
    first = _with_arrays(frame, vector).select(vector).head()
    return np.ones((1, 1 if first is None else len(first[0])))


def _spark_type(like: NDArray[Any]) -> Any:
    from pyspark.sql.types import BooleanType, DoubleType, FloatType, LongType, StringType

    kinds = {"f": DoubleType(), "i": LongType(), "u": LongType(), "b": BooleanType()}
    return FloatType() if like.dtype == np.float32 else kinds.get(like.dtype.kind, StringType())
