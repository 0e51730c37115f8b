"""How SQL is spelt: names and texts in quotes, sums as trees, and what the dialects say differently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


def identifier(name: str) -> str:
    """A name in double quotes."""
    if "\x00" in name:
        raise ValueError(f"The name {name!r} holds a zero byte, which no database takes; rename the column.")
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string in single quotes."""
    if "\x00" in value:
        raise ValueError(f"The text {value!r} holds a zero byte, which no database takes; rename the category.")
    return "'" + value.replace("'", "''") + "'"


def total(terms: Sequence[str]) -> str:
    """The sum of expressions as a balanced tree."""
    if len(terms) <= 8:
        return " + ".join(terms)
    half = len(terms) // 2
    return f"({total(terms[:half])}) + ({total(terms[half:])})"


@dataclass(frozen=True)
class Words:
    """What the dialects say differently.

    The fence keeps a step apart from the next. Without it PostgreSQL and SQLite put expressions in the place of their names,
    each as often as the name occurs, and do so step after step.
    """

    double: str
    string: str
    greatest: str
    least: str
    number: Callable[[float], str]
    nan: bool = True
    fence: tuple[str, str] = ("", "")
    booleans: tuple[str, str] = ("FALSE", "TRUE")


def _digits(value: float) -> str:
    shown = repr(float(value))
    return shown if "e" in shown else f"{shown}e0"


DIALECTS = {
    "duckdb": Words("DOUBLE", "VARCHAR", "GREATEST", "LEAST", _digits),
    "postgresql": Words(
        *("DOUBLE PRECISION", "TEXT", "GREATEST", "LEAST"),
        lambda value: f"'{float(value)!r}'::float8",
        fence=("", "\n  OFFSET 0"),
    ),
    "sqlite": Words("REAL", "TEXT", "MAX", "MIN", _digits, False, (" MATERIALIZED", ""), ("0", "1")),
}
