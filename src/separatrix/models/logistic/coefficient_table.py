"""How a table of coefficients is printed, shown in a notebook, and made a data frame: score by score, facts and words below."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import Any, ClassVar

import numpy as np


class CoefficientTable:
    """Rows with a `score` and a `name`, and what a subclass says of them."""

    rows: Sequence[Any]
    level: float
    headline: ClassVar[str]
    numbers: ClassVar[tuple[str, ...]]
    """Attributes of a row, the columns of the data frame."""

    @property
    def scores(self) -> list[Any]:
        """The classes that the rows are about."""
        raise NotImplementedError  # every table defines its scores

    def _title(self, score: Any) -> str:
        raise NotImplementedError  # every table defines these four

    def _heads(self) -> list[str]:
        raise NotImplementedError

    def _cells(self, row: Any) -> list[str]:
        raise NotImplementedError

    def _facts(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def _words(self) -> list[str]:
        """Sentences under the table."""
        return []

    def _limits(self) -> tuple[str, str]:
        """Heads of the two limits of an interval."""
        return f"{50 * (1 - self.level):.4g} %", f"{50 * (1 + self.level):.4g} %"

    def to_frame(self) -> Any:
        """The rows as a pandas data frame, indexed by the names (and the classes, for more than two)."""
        pd: Any = import_module("pandas")
        names = [row.name for row in self.rows]
        index = pd.Index(names, name="coefficient")
        if len(self.scores) > 1:
            labels = [row.score for row in self.rows]
            index = pd.MultiIndex.from_arrays([labels, names], names=["class", "coefficient"])
        return pd.DataFrame({name: [getattr(row, name) for row in self.rows] for name in self.numbers}, index=index)

    def __str__(self) -> str:
        heads, cells = self._heads(), [self._cells(row) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]

        def line(row: list[str]) -> str:
            first, *numbers = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            return "  ".join([row[0].ljust(len(first)), *numbers]).rstrip()

        out = [self.headline]
        for score in self.scores:
            own = [c for c, row in zip(cells, self.rows, strict=True) if row.score == score]
            out += ["", self._title(score), line(heads), *map(line, own)]
        facts = self._facts()
        width = max(len(name) for name, _ in facts)
        out += ["", *(f"{name.ljust(width)}  {value}" for name, value in facts)]
        return "\n".join([*out, "", *self._words()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in self._heads())
        parts = []
        for score in self.scores:
            lines = []
            for row in (row for row in self.rows if row.score == score):
                name, *numbers = map(escape, self._cells(row))
                lines.append(f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in numbers)}</tr>')
            head = f"<caption>{escape(self._title(score))}</caption><thead><tr>{heads}</tr></thead>"
            parts.append(f"<table>{head}<tbody>{''.join(lines)}</tbody></table>")
        facts = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in self._facts()
        )
        words = "".join(f"<p>{escape(text)}</p>" for text in self._words())
        return f"<div>{''.join(parts)}<table><tbody>{facts}</tbody></table>{words}</div>"


def number(value: float) -> str:
    """Five digits, also of what is not finite."""
    return f"{value:#.5g}" if np.isfinite(value) else str(value)


def odds(log_odds: float) -> float:
    """e to the power of it, infinite where that is too large for a float."""
    with np.errstate(over="ignore"):
        return float(np.exp(log_odds))
