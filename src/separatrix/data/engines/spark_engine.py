"""Passes over the partitions of a Spark data frame: they run in its Python workers, and results are merged there in a tree.

    partition → Arrow batches → pass over its blocks → result        mapInArrow: one row comes out of each partition
    results of 32 neighbours → merged                                applyInArrow, until there are few enough to bring home

The tree depends on the number of partitions alone. Workers keep nothing from one pass to the next: values held with the blocks
are made again from them (held.py). The rows are cached by Spark for as long as the source is there, so that passes do not
repeat the plan that made them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from separatrix.data.block import Block
from separatrix.data.engines.partition import Failed, Reading, merged, run
from separatrix.data.engines.travel import pack
from separatrix.data.source import Source

Result = TypeVar("Result")
_WIDTH = 32
_SCHEMA = "number int, result binary"


@dataclass(frozen=True)
class SparkEngine:
    """A data frame of features, target and weight, and how each of its partitions is read."""

    frame: Any
    readings: list[Reading]
    vector: str | None = None
    """The one column that holds all features of a row, where there is one."""

    def reading(self, **change: Any) -> SparkEngine:
        """The same partitions, read in another way."""
        return replace(self, readings=[replace(reading, **change) for reading in self.readings])

    def coded(self, n_rows: int) -> SparkEngine:
        """Itself: workers keep nothing, so codes are made in every pass."""
        return self

    def ask(self, question: Callable[..., Any]) -> list[Any]:
        """question(reading, X, y, weights) of every partition."""
        readings, vector = self.readings, self.vector

        def answer(number: int, table: pa.Table) -> Any:
            return question(readings[number], *rows_of_table(table, readings[number], vector))

        return self._collected(self._each(answer))

    def map(self, source: Source, block_fn: Callable[[Block], Result], rows: int | None) -> list[Result]:
        """block_fn of every block of a source that is made of these partitions, in block order."""
        found = self._collected(self._each(self._pass((source, block_fn, None, rows))))
        return [result for part in found for result in checked(part) or []]

    def reduce(
        self,
        source: Source,
        map_fn: Callable[[Block], Result],
        merge: Callable[[Result, Result], Result],
        rows: int | None,
    ) -> Result | None:
        """Merge map_fn of every block; ``None`` where there are no rows."""
        results, count = self._each(self._pass((source, map_fn, merge, rows))), len(self.readings)
        packed, _ = pack(merge)

        def join(table: pa.Table) -> pa.Table:
            order = np.argsort(table["number"].to_numpy())
            parts = [pickle.loads(table["result"][int(at)].as_py()) for at in order]  # our own, just made
            return answered(int(table["number"][int(order[0])].as_py()) // _WIDTH, merged(packed, parts))

        while count > _WIDTH:
            groups = results.selectExpr("number", "result", f"cast(number / {_WIDTH} as int) as neighbours")
            joined = groups.groupBy("neighbours").applyInArrow(_without_group(join), _SCHEMA)
            results, count = joined, -(-count // _WIDTH)
        return checked(merged(packed, self._collected(results)))

    def _pass(self, things: Any) -> Callable[[int, pa.Table], Any]:
        packed, mentioned = pack(things)
        readings, vector, nothing = self.readings, self.vector, [None] * len(mentioned)

        def over(number: int, table: pa.Table) -> Any:
            reading = readings[number]
            part = rows_of_table(table, reading, vector)
            codes = reading.codes(*part) if reading.role == "labels" else None
            return run(packed, reading, *part, codes, nothing, (), 1)

        return over

    def _each(self, answer: Callable[[int, pa.Table], Any]) -> Any:
        """A data frame with the answer of every partition."""

        def of_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None, "partitions are read by Spark's workers"
            found = list(batches)
            number = context.partitionId()
            table = pa.Table.from_batches(found) if found else pa.table({})
            yield from answered(number, answer(number, table)).to_batches()

        return self.frame.mapInArrow(of_partition, _SCHEMA)

    def _collected(self, results: Any) -> list[Any]:
        """Answers in the order of the partitions, with errors of Spark said in words."""
        with in_words():
            rows = results.collect()
        by_number = {row["number"]: row["result"] for row in rows}
        return [pickle.loads(by_number[number]) for number in sorted(by_number)]  # our own, just made


@contextmanager
def in_words() -> Iterator[None]:
    """Errors of a job of Spark, said in one sentence."""
    try:
        yield
    except Exception as error:  # of the plan that makes the rows, or of the cluster
        raise RuntimeError(f"Spark could not run a pass over the rows: {_reason(error)}") from error


def answered(number: int, result: Any) -> pa.Table:
    """One row: the number of a partition, and its pickled result."""
    import cloudpickle  # of the engines

    return pa.table(
        {"number": pa.array([number], pa.int32()), "result": pa.array([cloudpickle.dumps(result)], pa.binary())}
    )


def _without_group(join: Callable[[pa.Table], pa.Table]) -> Callable[[pa.Table], pa.Table]:
    def joined(table: pa.Table) -> pa.Table:
        return join(table.drop_columns(["neighbours"]))

    return joined


def rows_of_table(table: pa.Table, reading: Reading, vector: str | None) -> tuple[Any, Any, Any]:
    """Rows, targets and weights of a partition; the columns of a vector become those of an array."""
    if not table.num_rows:
        return np.empty((0, 0)), None, None
    if vector is None:
        return table, None, None
    held = table[vector].combine_chunks()
    lengths = np.unique(np.diff(np.asarray(held.offsets)))
    if held.null_count or len(lengths) != 1:
        raise ValueError(f"{reading}: the rows of column {vector!r} do not all have as many features.")
    X = np.asarray(held.flatten()).reshape(table.num_rows, int(lengths[0]))
    y, weights = (None if name is None else table[name].to_numpy() for name in (reading.target, reading.weight))
    return X, y, weights


def checked(result: Any) -> Any:
    """A result, or its error raised."""
    if isinstance(result, Failed):
        raise result.error
    return result


def _reason(error: Exception) -> str:
    """The last line that a Python worker wrote, or what Spark says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = [line for line in lines if "Error:" in line or "Exception:" in line]
    reason = (python or lines or [type(error).__name__])[-1]
    if "No module named 'separatrix'" in reason:
        reason += ". Install separatrix where Spark's Python workers run, or name that Python in PYSPARK_PYTHON"
    return reason
