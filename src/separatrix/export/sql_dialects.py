"""How SQL is spelt: names and texts in quotes, sums as trees, and what differs between the dialects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# What Python and Arrow strip from a text; the TRIM of a database takes spaces only.
WHITESPACE = (*range(9, 14), *range(28, 33), 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288)


def identifier(name: str) -> str:
    """A name in double quotes."""
    if not name:
        raise ValueError("A name is empty, which no database takes; name the column or the table.")
    if "\x00" in name:
        raise ValueError(f"The name {name!r} holds a zero byte, which no database takes; rename the column.")
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string in single quotes."""
    if "\x00" in value:
        raise ValueError(f"The text {value!r} holds a zero byte, which no database takes; rename the category.")
    return "'" + value.replace("'", "''") + "'"


def distinct(names: Sequence[str]) -> list[str]:
    """Names that differ in more than capitals, which most databases ignore: the second "a" is "a_2"."""
    found: dict[str, str] = {}
    for name in names:
        own, occurrence = name, 1
        while own.lower() in found:
            occurrence += 1
            own = f"{name}_{occurrence}"
        found[own.lower()] = own
    return list(found.values())


def total(terms: Sequence[str]) -> str:
    """The sum of expressions as a balanced tree; of none it is 0."""
    if not terms:
        return "0"
    if len(terms) <= 8:
        return " + ".join(terms)
    half = len(terms) // 2
    return f"({total(terms[:half])}) + ({total(terms[half:])})"


@dataclass(frozen=True)
class SqlDialect:
    """What differs between the dialects.

    The fence keeps a step apart from the next. Without it PostgreSQL and SQLite put expressions in the place of their names,
    each as often as the name occurs, and do so step after step. `stripped`, `read` and `read_any` are templates around a
    column: its text without white space at its ends, its number, and its number where it may also be a boolean. Where a column
    of numbers may hold text, `read_text` tells whether a text is a number, and `fail` is an expression that stops the query.
    """

    double: str
    string: str
    greatest: str
    least: str
    number: Callable[[float], str]
    stripped: str
    nan: bool = True
    fence: tuple[str, str] = ("", "")
    booleans: tuple[str, str] = ("FALSE", "TRUE")
    read: str = "CAST({0} AS DOUBLE)"
    read_any: str = "CAST({0} AS DOUBLE)"
    read_text: str = ""
    fail: str = ""


def _digits(value: float) -> str:
    shown = repr(float(value))
    return shown if "e" in shown else f"{shown}e0"


_STRIPPED = f"TRIM({{0}}, {' || '.join(f'CHR({code})' for code in WHITESPACE)})"
# PostgreSQL casts no boolean to a double, and looks at the type of a column before it looks at a CASE: only through text can
# one expression read both. (A real goes through its own type: as text it is shorter than the double that it is.)
_POSTGRESQL_ANY = (
    "CASE CAST({0} AS TEXT) WHEN 'true' THEN '1'::float8 WHEN 'false' THEN '0'::float8 ELSE CASE CAST(pg_typeof({0}) AS TEXT) "
    "WHEN 'real' THEN CAST(CAST(CAST({0} AS TEXT) AS REAL) AS DOUBLE PRECISION) "
    "ELSE CAST(CAST({0} AS TEXT) AS DOUBLE PRECISION) END END"
)
# SQLite's CAST makes 0 of "abc" and 12 of "12,5". A comparison with a REAL turns a text into a number only if all of it is
# one, and any other text is greater than every number.
_SQLITE_NUMBER = "CASE WHEN CAST(9e999 AS REAL) >= {0} THEN CAST({0} AS REAL) END"

DIALECTS = {
    "duckdb": SqlDialect("DOUBLE", "VARCHAR", "GREATEST", "LEAST", _digits, _STRIPPED),
    "postgresql": SqlDialect(
        *("DOUBLE PRECISION", "TEXT", "GREATEST", "LEAST"),
        lambda value: f"'{float(value)!r}'::float8",
        _STRIPPED,
        fence=("", "\n  OFFSET 0"),
        read="CAST({0} AS DOUBLE PRECISION)",
        read_any=_POSTGRESQL_ANY,
    ),
    "sqlite": SqlDialect(
        *("REAL", "TEXT", "MAX", "MIN"),
        _digits,
        f"TRIM({{0}}, CHAR({', '.join(map(str, WHITESPACE))}))",
        nan=False,
        fence=(" MATERIALIZED", ""),
        booleans=("0", "1"),
        read=_SQLITE_NUMBER,
        read_text="CAST(9e999 AS REAL) >= {0}",
        fail="ABS(-9223372036854775807 - 1 + 0 * LENGTH({0}))",
        read_any=_SQLITE_NUMBER,
    ),
}


def number_in_text(own: str, decimal: str, absent: Sequence[str], dialect: SqlDialect) -> str:
    """A number of a column that may hold text all the same: one that is neither a number nor a hole stops the query."""
    stripped, fail = dialect.stripped.format(own), dialect.fail.format(own)
    plain = f"REPLACE({stripped}, ',', '.')" if decimal == "," else stripped
    # Of a decimal comma a point would be one of thousands, which no replacement can tell from a decimal point.
    strange = f" WHEN INSTR({own}, '.') > 0 THEN {fail}" if decimal == "," else ""
    holes = ", ".join(map(text, dict.fromkeys(absent)))
    return (
        f"CASE WHEN TYPEOF({own}) <> 'text' THEN {dialect.read.format(own)} WHEN {stripped} IN ({holes}) THEN NULL{strange} "
        f"WHEN {dialect.read_text.format(plain)} THEN CAST({plain} AS {dialect.double}) ELSE {fail} END"
    )
