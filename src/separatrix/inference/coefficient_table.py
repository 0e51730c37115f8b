"""The layout of a table of coefficients: printed, shown in a notebook, made a data frame; statistics and notes below.

A subclass names the columns and what each of its cells holds; this is the only place where such a table is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import Any, ClassVar

import numpy as np


def number(value: float) -> str:
    """Five digits, also of what is not finite."""
    return f"{value:#.5g}" if np.isfinite(value) else str(value)


def probability(log_p: float) -> str:
    """A probability from its logarithm, however small: 0.0313, 4.2e-05, 1.7e-1234.

    Examples
    --------
    >>> from separatrix.inference.coefficient_table import probability
    >>> probability(-3.5), probability(-2000.0)
    ('0.0302', '2.6e-869')
    """
    if np.isnan(log_p):
        return "nan"
    if log_p > np.log(1e-4):
        return f"{np.exp(log_p):.4f}"
    if not np.isfinite(log_p):
        return "0"
    power = int(np.floor(log_p / np.log(10.0)))
    digits = f"{10.0 ** (log_p / np.log(10.0) - power):.1f}"
    return f"1.0e{power + 1:03d}" if digits == "10.0" else f"{digits}e{power:03d}"


@dataclass(frozen=True)
class SummaryColumn:
    """One column: an attribute of the rows, its heading ("{low}" and "{high}" are the levels), and how it is printed."""

    attribute: str
    heading: str
    format: Callable[[Any], str] = number
    printed: str = ""
    """The attribute that is printed where it is another one."""


LIMITS = (SummaryColumn("lower", "{low}"), SummaryColumn("upper", "{high}"))
ODDS = (
    SummaryColumn("odds_ratio", "Odds ratio"),
    SummaryColumn("odds_lower", "{low}"),
    SummaryColumn("odds_upper", "{high}"),
)


class OddsRatio:
    """Odds ratios e^β of a row that has an estimate and limits."""

    lower: float
    upper: float

    @property
    def log_odds_ratio(self) -> float:
        """The estimate."""
        raise NotImplementedError  # every row defines its estimate

    @property
    def odds_ratio(self) -> float:
        """By how much the odds are multiplied when the column grows by 1."""
        return _exp(self.log_odds_ratio)

    @property
    def odds_lower(self) -> float:
        """Lower limit of the odds ratio."""
        return _exp(self.lower)

    @property
    def odds_upper(self) -> float:
        """Upper limit of the odds ratio."""
        return _exp(self.upper)


def _exp(value: float) -> float:
    """e^value, infinite where that is too large for a float."""
    with np.errstate(over="ignore"):
        return float(np.exp(value))


class CoefficientTable:
    """Rows with a `score` (the class they are about) and a `name`."""

    rows: Sequence[Any]
    level: float
    headline: ClassVar[str]

    @property
    def columns(self) -> tuple[SummaryColumn, ...]:
        """What is shown of every row."""
        raise NotImplementedError  # every table defines its columns, scores, titles and facts

    @property
    def scores(self) -> list[Any]:
        """The classes that the rows are about."""
        raise NotImplementedError

    def _title(self, score: Any) -> str:
        raise NotImplementedError

    def _facts(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def _notes(self) -> list[str]:
        """Sentences under the table."""
        return []

    def _headings(self) -> list[str]:
        low, high = f"{50 * (1 - self.level):.4g} %", f"{50 * (1 + self.level):.4g} %"
        return ["", *(column.heading.format(low=low, high=high) for column in self.columns)]

    def _cells(self, row: Any) -> list[str]:
        return [row.name, *(one.format(getattr(row, one.printed or one.attribute)) for one in self.columns)]

    def to_frame(self) -> Any:
        """The rows as a pandas data frame, indexed by the names (and the classes, for more than two)."""
        pd: Any = import_module("pandas")
        names = [row.name for row in self.rows]
        index = pd.Index(names, name="coefficient")
        if len(self.scores) > 1:
            labels = [row.score for row in self.rows]
            index = pd.MultiIndex.from_arrays([labels, names], names=["class", "coefficient"])
        numbers = {column.attribute: [getattr(row, column.attribute) for row in self.rows] for column in self.columns}
        return pd.DataFrame(numbers, index=index)

    def __str__(self) -> str:
        headings, cells = self._headings(), [self._cells(row) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]

        def line(row: list[str]) -> str:
            first, *numbers = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            return "  ".join([row[0].ljust(len(first)), *numbers]).rstrip()

        out = [self.headline]
        for score in self.scores:
            own = [c for c, row in zip(cells, self.rows, strict=True) if row.score == score]
            out += ["", self._title(score), line(headings), *map(line, own)]
        facts = self._facts()
        width = max(len(name) for name, _ in facts)
        out += ["", *(f"{name.ljust(width)}  {value}" for name, value in facts)]
        return "\n".join([*out, "", *self._notes()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        headings = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in self._headings())
        parts = []
        for score in self.scores:
            lines = []
            for row in (row for row in self.rows if row.score == score):
                name, *numbers = map(escape, self._cells(row))
                lines.append(f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in numbers)}</tr>')
            head = f"<caption>{escape(self._title(score))}</caption><thead><tr>{headings}</tr></thead>"
            parts.append(f"<table>{head}<tbody>{''.join(lines)}</tbody></table>")
        facts = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in self._facts()
        )
        notes = "".join(f"<p>{escape(text)}</p>" for text in self._notes())
        return f"<div>{''.join(parts)}<table><tbody>{facts}</tbody></table>{notes}</div>"
