"""`separatrix predict`: a model over a table of any size, one batch of rows in memory at a time."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyarrow.types import is_nested

from separatrix.cli.progress import ProgressLine
from separatrix.cli.standard_input import given_table
from separatrix.cli.writers import DELIMITERS, SUFFIXES, table_writer
from separatrix.comparison.costs import read_loss
from separatrix.comparison.drift import DriftCounter
from separatrix.comparison.table_model import TableModel
from separatrix.data.arrow_columns import decoded, plain
from separatrix.data.checks import nearest_name
from separatrix.data.readers import TEXT
from separatrix.data.writing import destination, replacing
from separatrix.decide.losses import best_actions
from separatrix.export.model_file import load_model
from separatrix.tables.findings import few
from separatrix.tables.reading import table_batches
from separatrix.tables.rows import TableRows


def run(model: Path, data: Path, output: str, keep: str | None, loss: Path | None, quiet: bool) -> None:
    """Write the prediction and the probabilities of every row of `data`."""
    suffix = ".csv" if output == "-" else Path(output).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{output} does not say what to write; end its name in one of {', '.join(SUFFIXES)}.")
    path = None if output == "-" else destination(output)
    if path == data.resolve():
        raise ValueError(f"{data} is the table to read; write the predictions to another file.")
    prediction = Prediction(_with_loss(load(model), loss), next(csv.reader([keep])) if keep else [])
    with given_table(data) as data, ProgressLine(quiet) as progress:
        batches = (prediction.of(batch) for batch in followed(table_batches(data), data, progress))
        if path is None:
            _write(batches, sys.stdout.buffer, suffix)
        else:
            with replacing(path) as part, part.open("wb") as file:
                _write(batches, file, suffix)
    for note in prediction.notes():
        print(note, file=sys.stderr)
    if path is not None:
        print(f"Wrote {prediction.n_rows} predictions to {output}.")


def load(path: Path) -> TableModel:
    """The model of a file, if it is one that reads tables."""
    model = load_model(path)
    if not isinstance(model, TableModel):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, which reads arrays; make a model of tables with separatrix fit."
        )
    return model


def _with_loss(model: TableModel, loss: Path | None) -> TableModel:
    """The model with another rule: the action of least expected cost by the losses of a file."""
    if loss is None:
        return model
    costs, actions = read_loss(loss, model.schema.classes)
    more: dict[str, Any] = {"family": model.family, "loss": costs, "actions": actions, "scores": model.scores}
    other = TableModel(model.schema, model.encoder, model.estimator, **more)
    other.training = model.training
    return other


def followed(batches: Iterator[Any], path: Path, progress: ProgressLine) -> Iterator[Any]:
    """The batches, with their share of the file shown as they pass: of its rows where these are known, else of its text."""
    total = _size(path)
    rows = done = 0
    for batch in batches:
        if rows:  # the last batch is shown when it is done, below
            progress(f"{rows} rows", None if total is None else min(done / total, 1.0))
        yield batch
        rows += batch.num_rows
        done += _text_bytes(batch) if path.suffix.lower() in TEXT else batch.num_rows
    progress(f"{rows} rows", 1.0)


def _size(path: Path) -> int | None:
    """TableRows of a Parquet file, bytes of a text file; None for the others."""
    if path.suffix.lower() == ".parquet":
        return int(parquet.read_metadata(path).num_rows)
    return path.stat().st_size if path.suffix.lower() in TEXT else None


def _text_bytes(batch: Any) -> int:
    """About how much of a file this batch was: its values, and a delimiter behind each."""
    return sum((pc.sum(pc.binary_length(column)).as_py() or 0) + batch.num_rows for column in batch.columns)


def _write(batches: Iterator[Any], sink: BinaryIO, suffix: str) -> None:
    first = next(batches)
    nested = next((field.name for field in first.schema if suffix in DELIMITERS and is_nested(field.type)), None)
    if nested is not None:
        raise ValueError(f"Column {nested!r} holds lists or records, which {suffix} cannot; write .parquet instead.")
    with table_writer(sink, suffix, first.schema) as write:
        write(first)
        for batch in batches:
            write(batch)


class Prediction:
    """Batches of a table in, batches of predictions out; counts the values that the model had to do without."""

    def __init__(self, model: TableModel, keep: list[str]) -> None:
        self._model, self._keep, self.n_rows = model, keep, 0
        self._labels = pa.array((model.classes_ if model.actions is None else model.actions).tolist())
        classes = model.classes_.tolist() if model.has_probabilities else []
        self._names = [*keep, "prediction", *(f"prob_{label}" for label in classes)]
        if twice := next((name for name, count in Counter(self._names).items() if count > 1), None):
            raise ValueError(f"The output would have two columns {twice!r}; leave it out of --keep.")
        texts = [c for c in model.schema.columns if c.kind == "categorical"]
        self._known = {
            c.name: None if c.encoding == "text" else frozenset(c.categories) for c in texts
        }  # any text is new
        self._flags = {c.name: c for c in model.schema.columns if c.kind == "boolean"}
        self._drift = DriftCounter(model.training or {})
        self._missing: Counter[str] = Counter()
        self._unseen: Counter[str] = Counter()
        self._example: dict[str, str] = {}

    def of(self, batch: Any) -> Any:
        """The kept columns, the prediction and the probabilities of a batch."""
        kept = [self._kept(batch, name) for name in self._keep]
        rows = self._model.schema.read(batch)
        self.n_rows += len(rows)
        self._count(rows, batch)
        self._drift.add(rows)
        labels, proba = self._decide(rows)
        return pa.record_batch([*kept, labels, *(pa.array(column) for column in proba)], names=self._names)

    def notes(self) -> list[str]:
        """What was missing or new, a sentence per column."""
        unseen = (
            f"Column {name!r}: {_counted(n)} of no category that the model has, such as {self._example[name]!r}"
            f"{', read as missing' if name in self._flags else ''}."
            for name, n in self._unseen.items()
        )
        missing = (f"Column {name!r}: {_counted(n)} missing." for name, n in self._missing.items() if n)
        notes = [*few(missing), *few(unseen), *few(one.sentence for one in self._drift.found())]
        if not self._model.has_probabilities:
            notes.append(
                f"The family {self._model.family!r} gives no probabilities, so only the predictions were written."
            )
        return notes

    def _decide(self, rows: TableRows) -> tuple[Any, Any]:
        """The labels, and the probabilities class by class; the table is encoded once for both."""
        model = self._model
        if not model.has_probabilities:
            return pa.array(model.predict(rows).tolist(), self._labels.type), ()
        proba = model.predict_proba(rows)
        codes = proba.argmax(axis=1) if model.loss is None else best_actions(proba, model.loss)
        return self._labels.take(pa.array(codes)), proba.T

    def _count(self, rows: TableRows, batch: Any) -> None:
        for name, values in rows.columns.items():
            if name not in self._known:
                holes = np.isnan(values)
                # A flag that is a hole in the rows but not in the batch is neither of its two values.
                strange = plain(batch.column(name)).filter(pa.array(holes)).drop_null() if name in self._flags else []
                self._missing[name] += int(holes.sum()) - len(strange)
                if len(strange):
                    self._unseen[name] += len(strange)
                    self._example.setdefault(name, str(strange[0]))
                continue
            self._missing[name] += int(values.missing.sum())
            known = self._known[name]
            for level, n in values.counts().items():
                if known is not None and level not in known:
                    self._unseen[name] += n
                    self._example.setdefault(name, level)

    @staticmethod
    def _kept(batch: Any, name: str) -> Any:
        if name not in batch.schema.names:
            raise ValueError(f"There is no column {name!r} to keep; {nearest_name(name, batch.schema.names)}")
        return decoded(batch.column(name))  # one schema for all batches


def _counted(n: int) -> str:
    return f"{n} value{'' if n == 1 else 's'}"
