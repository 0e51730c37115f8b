"""A column of dates as numbers: a line for the trend, circles for what comes back.

days                    days since 1970, with their fraction
month, weekday, hour    sin and cos of 2π · (place in the year, the week, the day): December is next to January
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrow_columns import UnreadableValue, kind, plain

PARTS = ("days", "month sin", "month cos", "weekday sin", "weekday cos", "hour sin", "hour cos")
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d")
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M:%SZ")
_FORMS = tuple(day + time for day in _DAYS for time in _TIMES)
_SECONDS = 86_400.0


def date_form(name: str, column: Any) -> str:
    """How the dates of a column of text are written, "" for a type of dates; an error where no way fits, or two do."""
    from pyarrow import types

    values = plain(column)
    if types.is_temporal(values.type) and not types.is_time(values.type) and not types.is_duration(values.type):
        return ""
    if kind(values.type) != "text":
        raise ValueError(f"Column {name!r} is declared a date, and is of type {values.type}.")
    given = values.drop_null().unique()
    fitting = [form for form in _FORMS if not _parsed(given, form).null_count]
    if not fitting:
        raise ValueError(
            f"Column {name!r} is declared a date, and not all of it is written in one of the ways that are read, such as "
            f"2024-12-31 or 31.12.2024 18:30; its first text is {str(given[0]) if len(given) else ''!r}."
        )
    if len(fitting) > 1:
        raise ValueError(
            f"Column {name!r} is declared a date, and can be read in two ways, {fitting[0]} and {fitting[1]}: write it as "
            "2024-12-31."
        )
    return fitting[0]


def date_part(column: Any, part: str, form: str) -> NDArray[np.float64]:
    """One part of the dates of an Arrow array, NaN where there is none."""
    import pyarrow as pa

    values = plain(column)
    if kind(values.type) == "text":
        parsed = _parsed(values, form or "%Y-%m-%d")
        strange = np.flatnonzero(np.asarray(parsed.is_null()) & ~np.asarray(values.is_null()))
        if len(strange):
            at = int(strange[0])
            raise UnreadableValue(values[at].as_py(), at, f"is no date written as {form or '%Y-%m-%d'}")
        values = parsed
    stamps = values.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    days = np.asarray(stamps.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)) / (1e3 * _SECONDS)
    if part == "days":
        return days
    what, wave = part.split()
    turns = days % 1.0 if what == "hour" else np.floor(days + 3.0) % 7.0 / 7.0 if what == "weekday" else _of_year(days)
    return (np.sin if wave == "sin" else np.cos)(2.0 * np.pi * turns)


def _of_year(days: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of its year that has passed on a day."""
    known = ~np.isnan(days)
    found = np.full(len(days), np.nan)
    date = np.floor(days[known]).astype("datetime64[D]")
    year = date.astype("datetime64[Y]")
    passed, length = (
        (date - year.astype("datetime64[D]")),
        ((year + 1).astype("datetime64[D]") - year.astype("datetime64[D]")),
    )
    found[known] = passed.astype(float) / length.astype(float)
    return found


def _parsed(text: Any, form: str) -> Any:
    import pyarrow.compute as pc

    return pc.strptime(text, format=form, unit="s", error_is_null=True)
