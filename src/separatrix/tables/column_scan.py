"""What columns of a table too large for memory are, and what the encoder needs of them: one pass, merged by runs of rows.

A column of text may turn out to be numbers, flags or categories, and only its last row decides: until then its numbers and its
different texts are both kept, the texts as long as they are few enough to be categories.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrow_columns import UnreadableValue, kind, numbers, plain
from separatrix.data.number_text import Mark, NumberText, is_padded, number_form
from separatrix.tables.columns import (
    ColumnSchema,
    InferredColumn,
    describe_numbers,
    describe_text,
    mostly_numbers,
    of_time,
)
from separatrix.tables.encoding.encoding_sums import CategorySums, NumberSums
from separatrix.tables.facts import NumberFacts, TextFacts
from separatrix.tables.quantiles import Marks, QuantileSketch, Reached
from separatrix.tables.rows import CodedText, check_finite, coded_text, flags_of, text_places

MOST_TEXTS = 20_000
"""Different texts beyond which a column is no category."""
_ODD = 100  # different texts among numbers beyond which a column is no column of numbers
_ENOUGH = 0.8
_FEW_TEXTS = 1000  # whose numbers are remembered


@dataclass(frozen=True)
class _Numbers:
    facts: NumberFacts
    sums: NumberSums
    odd: Counter[str] = field(default_factory=Counter)
    """Texts among the numbers."""
    padded: bool = False

    def merge(self, after: _Numbers) -> _Numbers | None:
        odd = self.odd + after.odd
        if len(odd) > _ODD:
            return None
        return _Numbers(self.facts.merge(after.facts), self.sums.merge(after.sums), odd, self.padded or after.padded)

    def absent(self) -> str | None:
        """The text that stands for a hole among the numbers, empty where there is none; None: these are not numbers."""
        if self.padded:
            return None
        if not self.odd:
            return ""
        (text, count), *more = self.odd.items()
        observed = self.facts.n - self.facts.missing + count
        lone = not more and 2 <= count <= (1 - _ENOUGH) * observed and not any(sign.isdigit() for sign in text)
        return text if lone else None


@dataclass(frozen=True)
class _Texts:
    facts: TextFacts
    sums: CategorySums

    def merge(self, after: _Texts) -> _Texts | None:
        facts = self.facts.merge(after.facts)
        return None if len(facts.counts) > MOST_TEXTS else _Texts(facts, self.sums.merge(after.sums))


@dataclass(frozen=True)
class ColumnScan:
    """A run of rows of one column. `what` is the kind of its type; a column of nulls is of any kind."""

    name: str
    what: str
    n: int
    missing: int
    numbers: _Numbers | None = None
    texts: _Texts | None = None
    whole: bool = True
    """Whether the type is one of whole numbers, as text may be."""

    @property
    def holds_bits(self) -> bool:
        """Whether the column is one of whole numbers that are all 0 or 1."""
        facts = None if self.numbers is None or self.what == "boolean" else self.numbers.facts
        return facts is not None and self.whole and facts.whole and 0.0 <= facts.low <= facts.high <= 1.0

    @classmethod
    def of(
        cls,
        name: str,
        column: Any,
        decimal: Mark,
        known: NDArray[np.bool_] | slice,
        marks: Marks,
        deep: bool = False,
        reached: Reached | None = None,
    ) -> ColumnScan:
        """The rows of an Arrow array; the encoder learns from the `known` ones, and `marks` are hashes of their places.

        Rows `deep` inside a long column are read by compiled loops.
        """
        from pyarrow.types import is_integer

        if kind(column.type) == "text":
            text = text_places(column) if deep else coded_text(column)
            texts = _texts(text, known, marks.marks, deep)
            found = _numbers_in(text, decimal, known, marks, deep, reached)
            return cls(name, "text", len(text), int(text.tally[0]), found, texts)
        values = plain(column)
        what, missing = kind(values.type), values.null_count
        scan = cls(name, what, len(values), missing)
        if what in ("numeric", "boolean", "empty"):
            x = numbers(values.cast("uint8") if what == "boolean" else values)
            read = _Numbers(*_facts_and_sums(x, known, marks, deep, reached))
            return replace(scan, numbers=read, whole=what == "empty" or is_integer(values.type))
        return scan

    def merge(self, after: ColumnScan) -> ColumnScan:
        """The rows of both, these first."""
        kinds = {self.what, after.what} - {"empty"}
        if len(kinds) > 1:
            raise UnreadableValue("", 0, f"is {after.what} here and {self.what} in the rows before")
        what = kinds.pop() if kinds else "empty"
        return ColumnScan(
            self.name,
            what,
            self.n + after.n,
            self.missing + after.missing,
            None if self.numbers is None or after.numbers is None else self.numbers.merge(after.numbers),
            None if self.texts is None or after.texts is None else self.texts.merge(after.texts),
            self.whole and after.whole,
        )

    def described(self) -> tuple[InferredColumn, NumberSums | CategorySums | None]:
        """What the column is, and the sums that the encoder needs if it is used."""
        if self.what == "boolean" and self.numbers is not None:
            return self._flags(self.numbers)
        if self.what in ("numeric", "empty") and self.numbers is not None:
            return describe_numbers(self.name, self.numbers.facts), self.numbers.sums
        if self.what != "text":
            why = (
                of_time(self.what)
                if _is_time(self.what)
                else f"It is of type {self.what}, which is neither numbers nor text."
            )
            return self._left_out(why), None
        absent = None if self.numbers is None else self.numbers.absent()
        if self.numbers is not None and absent is not None:
            inferred = describe_numbers(self.name, self.numbers.facts)
            remarks = inferred.remarks
            if absent:
                count = self.numbers.odd[absent]
                remarks += (
                    f"Column {self.name!r} holds numbers, and {absent!r} in {count} rows, which is read as missing.",
                )
            return replace(inferred, schema=replace(inferred.schema, absent=absent), remarks=remarks), self.numbers.sums
        if self.texts is None:
            why = f"It has more than {MOST_TEXTS} different texts in {self.n - self.missing} rows: free text."
            odd = () if self.numbers is None or self.numbers.padded else self.numbers.odd
            return replace(
                self._left_out(why), remarks=tuple(mostly_numbers(self.name, one) for one in list(odd)[:1])
            ), None
        inferred = describe_text(self.name, self.texts.facts)
        if inferred.schema.kind == "boolean":
            return inferred, _flag_sums(self.texts.sums, inferred.schema)
        return inferred, self.texts.sums

    def _flags(self, found: _Numbers) -> tuple[InferredColumn, NumberSums | None]:
        if self.missing == self.n:
            return self._left_out("It has no value in any row."), None
        if not self.missing and found.facts.low == found.facts.high:
            return self._left_out(f"It is constant: always {str(bool(found.facts.low)).lower()}."), None
        schema = ColumnSchema(self.name, "boolean", "It holds booleans.", ("false", "true"), self.missing, "true")
        return InferredColumn(schema), found.sums

    def _left_out(self, why: str) -> InferredColumn:
        return InferredColumn(ColumnSchema(self.name, "left_out", why, missing=self.missing))


def _is_time(what: str) -> bool:
    return what.startswith(("timestamp", "date", "time", "duration"))


def _facts_and_sums(
    x: NDArray[np.float64], known: NDArray[np.bool_] | slice, marks: Marks, deep: bool, reached: Reached | None
) -> tuple[NumberFacts, NumberSums]:
    """Facts of all rows, and sums of those that are known."""
    if not deep:
        check_finite(x)
        return NumberFacts.of(x), NumberSums.of(x[known], marks, reached)
    facts = NumberFacts.of_run(x)
    if facts.missing < facts.n and not np.isfinite([facts.low, facts.high]).all():
        check_finite(x)
    learnt = x[known]
    same = len(learnt) == len(x)
    return facts, NumberSums.of_run(learnt, marks, facts if same else NumberFacts.of_run(learnt), reached)


def _texts(text: CodedText, known: NDArray[np.bool_] | slice, marks: NDArray[np.uint64], deep: bool) -> _Texts | None:
    learnt = text if isinstance(known, slice) else text[known]
    if deep:
        sums = CategorySums.of_run(learnt, marks)
        counts = text.counts_in_order()
        if len(counts) > MOST_TEXTS:
            return None
        return _Texts(TextFacts.of_run(text.levels, text.places, int(text.tally[0]), counts), sums)
    if len(text.levels) > MOST_TEXTS:
        return None
    return _Texts(TextFacts.of(text.levels, text.places, text.tally), CategorySums.of(learnt, marks))


@dataclass(frozen=True)
class _Parsed:
    """Texts read as numbers, NaN for those that are none."""

    values: NDArray[np.float64]
    odd: NDArray[np.intp]
    """Which are none."""
    padded: bool


def _parsed(levels: tuple[str, ...], decimal: Mark) -> _Parsed | None:
    """Different texts as numbers; None where what looks like a number is none after all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, odd = pa.array(levels, pa.string()), np.empty(0, dtype=np.intp)
    column = NumberText(texts)
    found = column.parsed(decimal)
    if found is None:
        fits = pc.match_substring_regex(column.bare, number_form(decimal))
        odd = np.flatnonzero(~np.array(fits.to_pylist(), dtype=bool))
        found = NumberText(pc.if_else(fits, texts, pa.scalar(None, texts.type))).parsed(decimal)
        if found is None:
            return None
    return _Parsed(np.array(numbers(found)), odd, is_padded(texts))


_parsed_before = lru_cache(maxsize=64)(_parsed)


def _numbers_in(
    text: CodedText,
    decimal: Mark,
    known: NDArray[np.bool_] | slice,
    marks: Marks,
    deep: bool,
    reached: Reached | None,
) -> _Numbers | None:
    """The numbers of a column of text, what is none a hole; None where most of it is none. Each different text is read once."""
    levels: list[Any] = text.levels
    order = np.flatnonzero(text.tally[1:])
    if len(order) <= _FEW_TEXTS:  # one batch after another has the same texts, in another order
        order = np.array(sorted(order, key=levels.__getitem__), dtype=np.intp)
        parsed = _parsed_before(tuple(levels[at] for at in order), decimal)
    else:
        parsed = _parsed(tuple(levels[at] for at in order), decimal)
    if parsed is None:
        return None
    odd = Counter[str]()
    if len(parsed.odd):
        counts, none = text.tally[1:], order[parsed.odd]
        if counts[none].sum() > (1 - _ENOUGH) * max(10, counts.sum()) or len(none) > _ODD:
            return None
        odd.update({levels[at]: int(counts[at]) for at in none})
    values = np.full(len(levels) + 1, np.nan)
    values[order] = parsed.values
    return _Numbers(*_facts_and_sums(values[text.places], known, marks, deep, reached), odd, parsed.padded)


def _flag_sums(sums: CategorySums, schema: ColumnSchema) -> NumberSums:
    """The sums of flags, from how often each text occurs."""
    levels = list(sums.counts)
    flags = flags_of(levels, np.arange(len(levels)), schema.categories, schema.true)
    ones = sum(sums.counts[level] for level, flag in zip(levels, flags, strict=True) if flag == 1)
    n = sums.counts.total()
    share = ones / max(1, n)
    median = QuantileSketch.of(np.array([0.5 * np.sign(2 * ones - n) + 0.5]), Marks(np.zeros(1, dtype=np.uint64)))
    spread = sqrt(n * share * (1.0 - share))
    return NumberSums(
        n, sums.missing, sums.holes, share, spread, float(ones == n), float(ones > 0), median, sums.values
    )
