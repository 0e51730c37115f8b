"""What one column of a table is: numbers, flags, categories, or nothing a classifier should see.

Types decide where a table has them. Text is numbers when all of it is; otherwise its different values decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from separatrix.data.arrow_columns import coded, kind, numbers, plain
from separatrix.data.number_text import Mark, NumberText, is_padded
from separatrix.tables.encoding.text_scores import is_prose
from separatrix.tables.facts import NumberFacts, TextFacts
from separatrix.tables.rows import CodedText, check_finite, flags_of

Kind = Literal["numeric", "boolean", "categorical", "left_out"]
MOST_LEVELS = 50
"""Categories beyond these, the most frequent ones, have no column of their own."""

TURN_DATES = "; declare it a date (--type COLUMN=date), or turn it into numbers such as an age, if it matters."
TURN_TIMES = "; turn it into numbers such as hours, if it matters."
"""Of times of the day, and of spans of time: no date has these."""
_READ_WORDS = "; declare it text (--type COLUMN=text) if its words do."
MOSTLY_NUMBERS = "is read as text, although most of it is numbers"
"""What a finding says of a column that one wrong value takes from the numbers."""
_PAIRS = {("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t")}
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?(Z|[+-]\d{2}:?\d{2}|[AaPp][Mm]))?"
_MONTH = r"(?i:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)\pL*"
_DAY = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})"
    rf"|{_MONTH}[-. ]{{1,2}}(\d{{1,2}},? )?\d{{4}}|\d{{1,2}}[-. ]{{1,2}}{_MONTH}([-. ]{{1,2}}(\d{{4}}|\d{{2}}))?"
)
_DATE = rf"^(({_DAY})([T ]{_TIME})?|{_TIME})$"
_ONLY_TIME = rf"^{_TIME}$"
IDENTIFIER = re.compile(r"(^|[_\W])(id|key|index|no|nr|number)$|[a-z](Id|ID)$", re.IGNORECASE)
MANY_LINES, FEW = 5, 10
"""Newlines beyond which a text is likely to have swallowed rows; rows so few that all being different proves nothing."""


@dataclass(frozen=True)
class ColumnSchema:
    """What one column is."""

    name: str
    kind: Kind
    reason: str  # why, as a sentence
    categories: tuple[str, ...] = ()  # of a categorical column its values, sorted; of a boolean one both
    missing: int = 0  # in how many rows there is no value
    true: str = ""  # of a boolean column the category that is 1
    absent: str = ""  # of a numeric column a text that stands for a missing value there, beyond those that always do
    source: str = ""  # of a part of a date the column of the table that holds it
    part: str = ""  # which part of the date
    form: str = ""  # how the dates are written, where they are text
    encoding: str = (
        ""  # of a categorical column that models see by what classes say: "target" of categories, "text" of words
    )


@dataclass(frozen=True)
class InferredColumn:
    """What a column is, the values it was read as (none if it is left out), and remarks for whoever gave the table."""

    schema: ColumnSchema
    values: Any = None
    remarks: tuple[str, ...] = ()


class ParsedColumn:
    """A column of a table on its way to values: its text is stripped, and converted to numbers, once."""

    def __init__(self, name: str, column: Any) -> None:
        self.name = name
        self.values = plain(column)
        self.text = NumberText(self.values) if kind(self.values.type) == "text" else None

    def left_out(self, reason: str) -> InferredColumn:
        """The column as one that a classifier should not see."""
        return InferredColumn(ColumnSchema(self.name, "left_out", reason, missing=self.values.null_count))


def infer_column(column: ParsedColumn, decimal: Mark, declared: str = "") -> InferredColumn:
    """What a column is, and its values; what it is declared to be, "numeric", "categorical" or "boolean", is not asked."""
    from pyarrow import types

    values = column.values
    if declared:
        return _declared(column, decimal, declared)
    if column.text is not None:
        return _infer_words(column, column.text, decimal)
    what, missing = kind(values.type), values.null_count
    if what in ("numeric", "empty"):
        return _infer_number(column.name, values)
    if missing == len(values):
        return column.left_out("It has no value in any row.")
    if what == "boolean":
        if not missing and len(values.unique()) < 2:
            return column.left_out(f"It is constant: always {str(values[0]).lower()}.")
        schema = ColumnSchema(column.name, "boolean", "It holds booleans.", ("false", "true"), missing, "true")
        return InferredColumn(schema, np.concatenate([numbers(chunk.cast("uint8")) for chunk in values.chunks]))
    if types.is_temporal(values.type):
        return column.left_out(of_time(str(values.type)))
    return column.left_out(f"It is of type {values.type}, which is neither numbers nor text.")


def of_time(what: str) -> str:
    """Why a column of this type of Arrow, of dates or times, is left out."""
    advice = TURN_TIMES if what.startswith(("time32", "time64", "duration")) else TURN_DATES
    return f"It holds dates or times ({what}){advice}"


def _declared(column: ParsedColumn, decimal: Mark, kind_of: str) -> InferredColumn:
    """A column as what it is said to be."""
    import pyarrow as pa

    name, values, why = column.name, column.values, f"It is declared {kind_of}."
    if kind_of == "numeric":
        if column.text is None and kind(values.type) not in ("numeric", "boolean"):
            raise ValueError(f"Column {name!r} is declared numeric, and is of type {values.type}.")
        found = values.cast("uint8") if column.text is None and kind(values.type) == "boolean" else values
        if column.text is not None:
            found = column.text.parsed(decimal)
            if found is None:
                strange = next(
                    x for x, fine in zip(column.text.text, column.text.like_numbers, strict=True) if not fine.as_py()
                )
                raise ValueError(
                    f"Column {name!r} is declared numeric, and holds {strange.as_py()!r}: correct it or leave it empty."
                )
        x = np.concatenate([numbers(chunk) for chunk in found.chunks])
        check_finite(x)
        return InferredColumn(ColumnSchema(name, "numeric", why, missing=int(np.isnan(x).sum())), x)
    levels, places = coded(values if column.text is not None else plain(values.cast(pa.string())))
    missing = int((places < 0).sum())
    if kind_of == "text":
        schema = ColumnSchema(name, "categorical", "It is declared free text.", missing=missing, encoding="text")
        return InferredColumn(schema, CodedText(levels, places))
    if kind_of in ("categorical", "target"):
        encoding = "target" if kind_of == "target" else ""
        why = "It is declared categorical, encoded by the target." if encoding else why
        schema = ColumnSchema(name, "categorical", why, tuple(sorted(levels)), missing, encoding=encoding)
        return InferredColumn(schema, CodedText(levels, places))
    if len(levels) != 2:
        raise ValueError(f"Column {name!r} is declared boolean, and holds {len(levels)} different values, not two.")
    pair = tuple(sorted(levels, key=str.lower))
    return InferredColumn(
        ColumnSchema(name, "boolean", why, pair, missing, pair[1]), flags_of(levels, places, pair, pair[1])
    )


def _infer_words(column: ParsedColumn, text: NumberText, decimal: Mark) -> InferredColumn:
    """A column of text: numbers if all of it is, or all but one text that stands for what is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found, absent = text.parsed(decimal), ""
    if found is None and (absent := text.lone_text()):
        null = pa.scalar(None, text.text.type)
        text = NumberText(pc.if_else(pc.equal(text.text, absent), null, text.text))
        found = text.parsed(decimal)
    if found is None or is_padded(text.text):
        return _infer_text(column)
    inferred = _infer_number(column.name, found)
    if inferred.values is None:
        return inferred
    remarks = list(inferred.remarks)
    if absent:
        n = inferred.schema.missing - column.values.null_count
        remarks.append(f"Column {column.name!r} holds numbers, and {absent!r} in {n} rows, which is read as missing.")
    if remark := text.remark(column.name, found, decimal):
        remarks.append(remark)
    return InferredColumn(replace(inferred.schema, absent=absent), inferred.values, tuple(remarks))


def _infer_number(name: str, values: Any) -> InferredColumn:
    x = np.concatenate([numbers(chunk) for chunk in values.chunks])
    inferred = describe_numbers(name, NumberFacts.of(x, named_identifier=bool(IDENTIFIER.search(name))))
    if inferred.schema.kind == "left_out":
        return inferred
    check_finite(x)
    return replace(inferred, values=x)


def describe_numbers(name: str, facts: NumberFacts) -> InferredColumn:
    """What a column of numbers is, by its facts."""
    all_rows, why = not facts.missing and facts.n > FEW, ""
    if facts.missing == facts.n:
        why = "It has no value in any row."
    elif not facts.missing and facts.low == facts.high:
        why = f"It is constant: always {facts.low:g}."
    elif facts.whole and all_rows and facts.counting:
        why = f"It counts the rows, from {facts.first:.0f} to {facts.last:.0f}."
    if why:
        return InferredColumn(ColumnSchema(name, "left_out", why, missing=facts.missing))
    remarks = []
    if facts.whole and all_rows and IDENTIFIER.search(name) and facts.distinct:
        remarks.append(f"Column {name!r} is different in every row; remove it if it only identifies the row.")
    remarks += _stand_ins(name, facts)
    reason = f"It holds {'whole numbers' if facts.whole else 'numbers'}."
    return InferredColumn(ColumnSchema(name, "numeric", reason, missing=facts.missing), remarks=tuple(remarks))


def _stand_ins(name: str, facts: NumberFacts) -> Iterator[str]:
    """On −999 and its like, repeated and far from all other values."""
    for extreme, count, low, high in (
        (facts.low, facts.n_low, facts.next_low, facts.high),
        (facts.high, facts.n_high, facts.low, facts.next_high),
    ):
        if count < 2 or facts.low == facts.high:  # a count of 0: not a number that stands for something
            continue
        if not 2 * low - high <= extreme <= 2 * high - low:
            yield (
                f"Column {name!r} is {extreme:g} in {count} rows, and between {low:g} and {high:g} in the others: if that "
                "stands for a missing value, leave it empty."
            )


def _infer_text(column: ParsedColumn) -> InferredColumn:
    """A column of text that is not all numbers."""
    levels, places = coded(column.values)
    inferred = describe_text(column.name, TextFacts.of(levels, places), held=True)
    schema = inferred.schema
    if schema.kind == "boolean":
        return replace(inferred, values=flags_of(levels, places, schema.categories, schema.true))
    return inferred if schema.kind == "left_out" else replace(inferred, values=CodedText(levels, places))


def describe_text(name: str, facts: TextFacts, held: bool = False) -> InferredColumn:
    """What a column of text that is not all numbers is; everything is read off its different values.

    Many categories are encoded by the target where the rows are held; a stream has indicators of the most frequent ones.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    missing, observed = facts.missing, facts.n - facts.missing
    levels, counts = list(facts.counts), np.array(list(facts.counts.values()))
    pair = tuple(sorted(levels, key=str.lower))
    if len(levels) == 2 and tuple(level.lower() for level in pair) in _PAIRS:
        schema = ColumnSchema(name, "boolean", f"It holds {pair[0]!r} and {pair[1]!r}.", pair, missing, pair[1])
        return InferredColumn(schema)
    texts = pa.array(levels, pa.string())
    like = np.array(NumberText(texts).like_numbers.to_pylist(), dtype=bool)
    remarks = []
    if is_padded(texts):
        remarks.append(f"Column {name!r} has numbers that start with 0, as codes do: it is read as text.")
    elif 0.8 * observed <= counts[like].sum():
        strange = next((level for level, number in zip(levels, like, strict=True) if not number), levels[0])
        lone = counts[~like].sum() == 1 and facts.first == strange
        remarks.append(mostly_numbers(name, strange, in_first_row=lone))
    lines = max(level.count("\n") for level in levels)
    if lines > MANY_LINES:
        remarks.append(f"Column {name!r} has a text of {lines + 1} lines: is a quotation mark left open before it?")
    words = _READ_WORDS if held else "; words are read of tables that are held."
    why, many = "", f"It has {len(levels)} different texts in {observed} rows, such as {levels[0][:40]!r}"
    if len(levels) == 1 and not missing:
        why = f"It is constant: always {levels[0]!r}."
    elif pc.all(pc.match_substring_regex(texts, _DATE)).as_py():
        only_times = pc.all(pc.match_substring_regex(texts, _ONLY_TIME)).as_py()
        why = f"It holds dates or times such as {levels[0]!r}{TURN_TIMES if only_times else TURN_DATES}"
    elif held and len(levels) > MOST_LEVELS and len(levels) > observed / 2 and is_prose(levels):
        remarks.append(read_by_words(name))
        schema = ColumnSchema(name, "categorical", f"{many}: free text.", missing=missing, encoding="text")
        return InferredColumn(schema, remarks=tuple(remarks))
    elif len(levels) > FEW and len(levels) >= 0.95 * observed:
        why = f"{many}: it names the rows and does not describe them{words}"
    elif len(levels) > MOST_LEVELS and len(levels) > observed / 2:
        why = f"{many}: free text, too varied to be categories{words}"
    if why:
        return InferredColumn(ColumnSchema(name, "left_out", why, missing=missing), remarks=tuple(remarks))
    many_levels = held and len(levels) > MOST_LEVELS + 1
    if many_levels:
        remarks.append(
            f"Column {name!r} has {len(levels)} categories: models see each as what the classes of its training rows say of it "
            f"(target encoding). Declare it categorical (--type COLUMN=categorical) to have indicators of the {MOST_LEVELS} "
            "most frequent ones after the first."
        )
    elif len(levels) > MOST_LEVELS + 1 and not remarks:
        rest = np.sort(counts)[: -MOST_LEVELS - 1].sum() / observed
        remarks.append(
            f"Column {name!r} has {len(levels)} categories: the most frequent one is what {MOST_LEVELS} others are compared "
            f"with, and the rest ({rest:.1%} of the rows) are taken to be like it. Group them if they matter."
        )
    reason = f"It holds text: {len(levels)} categor{'y' if len(levels) == 1 else 'ies'} in {observed} rows."
    encoding = "target" if many_levels else ""
    schema = ColumnSchema(name, "categorical", reason, tuple(sorted(levels)), missing, encoding=encoding)
    return InferredColumn(schema, remarks=tuple(remarks))


def read_by_words(name: str) -> str:
    """What is to be said of a column of free text."""
    return (
        f"Column {name!r} is free text: models see it as what its words, and pairs of them, say of the classes of training "
        "rows (hashed tf-idf). Leave it out (--drop COLUMN) if it is written after the outcome is known."
    )


def mostly_numbers(name: str, strange: str, in_first_row: bool = False) -> str:
    """What is to be said of a column of numbers with texts such as this one among them."""
    units = " (in the first row: is it a second header line?)" if in_first_row else ""
    return (
        f"Column {name!r} {MOSTLY_NUMBERS}, because of values such as {strange!r}{units}: correct them, or leave them empty, "
        "to have it read as numbers."
    )


def without_copies(columns: Iterable[InferredColumn]) -> Iterator[ColumnSchema]:
    """What the columns are, those left out that repeat one before them."""
    seen: dict[tuple[bool, int], list[tuple[str, Any, Any]]] = {}
    for column in columns:
        values, schema = column.values, column.schema
        if values is None:
            yield schema
            continue
        # Texts are coded in the order of their first rows, so that columns with the same texts have the same places.
        text = isinstance(values, CodedText)
        texts, places = (values.levels, values.places) if text else ([], values)
        alike = seen.setdefault((text, hash(places.tobytes())), [])
        same = (name for name, a, b in alike if a == texts and np.array_equal(b, places, equal_nan=not text))
        if first := next(same, None):
            reason = f"It repeats column {first!r} in every row."
            yield ColumnSchema(schema.name, "left_out", reason, missing=schema.missing)
        else:
            alike.append((schema.name, texts, places))
            yield schema
