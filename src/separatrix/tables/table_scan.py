"""A run of rows of a table with all its columns and the target: merged over all runs, it is the schema and the encoding.

    TableScan(A) ⊕ TableScan(B) = TableScan(A followed by B)

What the table is does not depend on how it is cut. Quantiles are rough beyond 2¹⁴ rows, and the same for every cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from separatrix.data.arrow_columns import NUMERIC, UnreadableValue, coded, kind, plain
from separatrix.data.number_text import Mark
from separatrix.tables.coded.coded_rows import RowCoding
from separatrix.tables.column_scan import MOST_TEXTS, ColumnScan
from separatrix.tables.columns import ColumnSchema, InferredColumn
from separatrix.tables.drawn_rows import DrawnRows
from separatrix.tables.encoder import TableEncoder
from separatrix.tables.encoding.encoding_sums import EncodingSums, hashed_places
from separatrix.tables.findings import class_findings, column_findings, few, spelling_findings
from separatrix.tables.quantiles import Marks, Reached
from separatrix.tables.reading import FIRST_ROW
from separatrix.tables.rows import CodedText, text_places
from separatrix.tables.schema import TableSchema
from separatrix.tables.target import classes_of, is_no_label, label_codes

LONG = 1 << 18
"""Rows from this one on are read by compiled loops."""


@dataclass(frozen=True)
class TableScan:
    """What is known of a table after some of its rows."""

    target: str
    what: str  # the kind of the target's type
    n: int
    known: int  # rows with a label
    labels: Counter[Any]
    columns: dict[str, ColumnScan]
    drawn: DrawnRows = field(default_factory=DrawnRows)

    @classmethod
    def of(
        cls,
        batch: Any,
        target: str,
        names: Sequence[str],
        decimal: Mark,
        start: int,
        share: float = 0.0,
        reached: Mapping[str, Reached] | None = None,
    ) -> TableScan:
        """The rows of an Arrow record batch, the first of which is row `start` of the table; a share of them is drawn.

        `reached` is shared by all runs of a scan that are looked at in one process.
        """
        column = batch.column(target)
        what = kind(column.type)
        if what not in ("text", *NUMERIC):
            raise ValueError(f"The target {target!r} is of type {column.type}; a class is text, a number or a boolean.")
        text = text_places(column, ()) if what == "text" else CodedText(*coded(plain(column, ())))
        levels, places, counts = text.levels, text.places, text.tally[1:]
        labelled = np.array([not is_no_label(level) for level in levels], dtype=bool)
        n_known = int(counts[labelled].sum())
        known: Any = slice(None) if n_known == batch.num_rows else np.append(labelled, False)[places]
        marks = Marks(hashed_places(start, batch.num_rows)[known])
        reached = {} if reached is None else reached
        columns = {}
        for name in names:
            try:
                columns[name] = ColumnScan.of(
                    name, batch.column(name), decimal, known, marks, start >= LONG, reached.get(name)
                )
            except UnreadableValue as error:
                before = int((batch.schema.metadata or {}).get(FIRST_ROW, start))
                raise ValueError(error.sentence(name, before)) from None
        labels = Counter({levels[at]: int(counts[at]) for at in text.order})
        drawn = DrawnRows.of(batch, marks.marks, known, share)
        return cls(target, what, batch.num_rows, n_known, labels, columns, drawn)

    def merge(self, after: TableScan) -> TableScan:
        """The rows of both, these first."""
        kinds = {self.what, after.what} - {"empty"}
        if len(kinds) > 1:
            raise ValueError(
                f"The target {self.target!r} is {after.what} in some rows and {self.what} in those before."
            )
        columns = {}
        for name, column in self.columns.items():
            try:
                columns[name] = column.merge(after.columns[name])
            except UnreadableValue as error:
                raise ValueError(f"column {name!r} {error.what}; use one type.") from None
        what = kinds.pop() if kinds else "empty"
        counts, known = self.labels + after.labels, self.known + after.known
        if len(counts) > MOST_TEXTS:  # these are no classes: it is enough to know that
            counts = Counter(dict(islice(counts.items(), MOST_TEXTS + 1)))
        rows = self.drawn.followed_by(after.drawn, self.known)
        return TableScan(self.target, what, self.n + after.n, known, counts, columns, rows)

    def _classes(self) -> tuple[tuple[Any, ...], Counter[str], str]:
        """The classes, the texts taken for no label, and why the target has no classes if that is so."""
        if len(self.labels) > MOST_TEXTS:
            why = f"The target {self.target!r} has more than {MOST_TEXTS} different values: these are no classes."
            return (), Counter(), why
        try:
            return *classes_of(self.target, self.labels, self.what), ""
        except ValueError as error:  # a regression needs none
            return (), Counter(), str(error)

    @property
    def is_complete(self) -> bool:
        """Whether every row has one of the classes."""
        classes, unlabelled, _ = self._classes()
        return bool(classes) and self.known == self.n and not unlabelled

    def encoding(self, decimal: Mark, standardise: bool = True) -> TableEncoding:
        """The schema of the table, and the encoder that its rows with a label teach."""
        classes, unlabelled, no_classes = self._classes()
        described = {name: column.described() for name, column in self.columns.items()}
        copies = _copies({name: sums for name, (inferred, sums) in described.items() if _is_used(inferred)})
        columns: list[ColumnSchema] = []
        remarks: list[str] = []
        for name, (inferred, _) in described.items():
            if first := copies.get(name):
                why = f"It repeats column {first!r} in every row."
                columns.append(ColumnSchema(name, "left_out", why, missing=inferred.schema.missing))
            else:
                columns.append(inferred.schema)
                remarks += inferred.remarks
        schema = TableSchema(tuple(columns), self.target, classes, decimal)
        if not schema.used:
            why = " ".join(f"Column {column.name!r}: {column.reason}" for column in columns[:5])
            raise ValueError(f"No column is left to learn {self.target!r} from. {why}")
        sums = {column.name: described[column.name][1] for column in schema.used}
        rows = Counter[Any]()
        for label, count in self.labels.items():
            if classes and not is_no_label(label):
                rows[label_codes([label], classes)[0]] += count
        counts = np.array([rows[k] for k in range(len(classes))])
        holes = {column.name: column.missing for column in schema.used}
        findings = [
            *(class_findings(self.target, classes, counts, self.n, unlabelled) if classes else []),
            *few(spelling_findings(self.target, classes, schema.columns)),
            *column_findings(schema.columns, holes, self.n),
            *few(remarks),
        ]
        schema = replace(schema, findings=tuple(findings))
        encoder = TableEncoder(schema, standardise=standardise).learn(EncodingSums(self.known, sums))  # type: ignore[arg-type]  # used columns have sums
        flags = tuple(column.name for column in schema.used if self.columns[column.name].holds_bits)
        return TableEncoding(schema, encoder, no_classes, flags)


@dataclass(frozen=True)
class TableEncoding:
    """How the columns of a table are read and encoded: what a model that was fitted to it needs to read another."""

    schema: TableSchema
    encoder: TableEncoder
    no_classes: str = ""
    """Why the target has no classes, if that is so."""
    bits: tuple[str, ...] = ()
    """Columns of whole numbers that are all 0 or 1."""

    def coding(self) -> RowCoding:
        """The encoder as arrays; made anew, so that a fitted model is plain values."""
        return RowCoding(self.encoder)

    @classmethod
    def of_columns(cls, columns: tuple[ColumnSchema, ...], classes: tuple[Any, ...]) -> TableEncoding:
        """Columns that are read and not encoded."""
        schema = TableSchema(columns, "", classes)
        encoder = TableEncoder(schema)
        encoder.features_ = []
        return cls(schema, encoder)


def _is_used(inferred: InferredColumn) -> bool:
    return inferred.schema.kind != "left_out"


def _copies(sums: dict[str, Any]) -> dict[str, str]:
    """The columns that repeat an earlier one, by the hash of their values and places."""
    first: dict[Any, str] = {}
    keys = {name: (type(one), one.missing, one.holes, one.values) for name, one in sums.items()}
    return {name: before for name, key in keys.items() if (before := first.setdefault(key, name)) != name}
