"""Numbers in text as people and spreadsheets write them.

    17.978,20 €    10,6 %    −0,35    (7.00)    17 978    $1,234,567

A table has one decimal mark, and the other sign then stands between thousands. A column such as 17,978 and 3,478 fits both
readings and is no evidence for either; a column that fits only one of them is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Literal
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrow_columns import MISSING, UnreadableValue, numbers, plain

Mark = Literal[".", ","]

_BLANK = "[ \u00a0\u202f\u2009'’]"
_CURRENCY = r"(?:\p{Sc}|EUR|USD|GBP|CHF)"
# What stands around the digits, in the order in which it is taken away.
_DRESSING = (
    ("[−–]", "-"),
    (rf"^({_CURRENCY}?{_BLANK}*)\(([^()+-]+)\)({_BLANK}*(?:%|{_CURRENCY})?)$", r"-\1\2\3"),  # (7.00) is −7
    (rf"^([+-]?){_BLANK}*{_CURRENCY}?{_BLANK}*", r"\1"),
    (rf"{_BLANK}*(?:%|{_CURRENCY})$", ""),
)
_NAMES = {".": "point", ",": "comma"}
_ENOUGH = 0.8


def number_form(mark: str, groups: bool = True) -> str:
    """The pattern of a number with this decimal mark, with or without the signs that stand between thousands."""
    mark, other = (r"\.", ",") if mark == "." else (",", r"\.")
    grouped = rf"[1-9][0-9]{{0,2}}(?:(?:{other}[0-9]{{3}})+|(?:{_BLANK}[0-9]{{3}})+)|" if groups else ""
    digits = rf"(?:{grouped}[0-9]+)(?:{mark}[0-9]*)?|{mark}[0-9]+"
    return rf"^[+-]?(?:(?:{digits})(?:[eE][+-]?[0-9]+)?|(?i:inf(?:inity)?))$"


def cast_to_numbers(text: Any, dtype: Any = "float64") -> Any | None:
    """Text that is all numbers (or of another type) in the computer's own way of writing them, cast to it; else None."""
    import pyarrow as pa

    try:
        return text.cast(dtype)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # the second: dictionaries and views, before they are plain
        return None


def _all_are(bare: Any, mark: str) -> bool:
    """Whether all texts, those that are null aside, are numbers with this decimal mark."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(bare, number_form(mark)), min_count=0).as_py())


def _contains(text: Any, sign: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring(text, sign), min_count=0).as_py())


def is_padded(text: Any) -> bool:
    """Whether some of the numbers start with zeros, as codes do: 01067."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(text, "^0[0-9]+$")).as_py())


class NumberText:
    """An Arrow column of stripped text that may hold numbers; each conversion of it is made once and kept."""

    def __init__(self, text: Any) -> None:
        self.text = text
        self.n_observed = len(text) - text.null_count

    @cached_property
    def floats(self) -> Any | None:
        """The text as float64, if all of it is written as computers write numbers."""
        return cast_to_numbers(self.text)

    @cached_property
    def bare(self) -> Any:
        """The text without the signs of currencies and percent around a number, with an ordinary minus."""
        import pyarrow.compute as pc

        text = self.text
        for pattern, instead in _DRESSING:
            text = pc.replace_substring_regex(text, pattern, instead)
        return text

    @cached_property
    def like_numbers(self) -> Any:
        """Which texts are numbers with one decimal mark or the other."""
        import pyarrow.compute as pc

        return pc.or_(*(pc.match_substring_regex(self.bare, number_form(mark)) for mark in _NAMES))

    @cached_property
    def plain_mark(self) -> str | None:
        """Of numbers as computers write them the mark, "" where they are whole; None where a closer look is needed."""
        import pyarrow.compute as pc

        # Patterns take long; most columns are done with after a look at some values.
        if self.floats is not None:
            if not _contains(self.text, "."):
                return ""
            return None if _all_are(self.text.drop_null()[:1000], ",") else "."
        digits = pc.sum(pc.match_substring_regex(self.text, "[0-9]"), min_count=0).as_py()
        return "" if digits < _ENOUGH * self.n_observed else None

    def is_bare(self, decimal: str) -> bool:
        """Whether there are numbers, and nothing but digits, signs, powers of ten and this decimal mark."""
        import pyarrow.compute as pc

        if not self.n_observed or decimal == ".":
            return bool(self.n_observed) and self.floats is not None
        return not _contains(self.text, ".") and cast_to_numbers(pc.replace_substring(self.text, ",", ".")) is not None

    def parsed(self, decimal: str) -> Any | None:
        """The text as float64; None when some of it is not a number with this decimal mark."""
        import pyarrow.compute as pc

        if self.floats is not None and (decimal == "." or self.plain_mark == ""):  # most columns need no more
            return self.floats
        if not _all_are(self.bare, decimal):
            return None
        bare = pc.replace_substring_regex(self.bare, rf"^\+|{_BLANK}|{',' if decimal == '.' else '[.]'}", "")
        return cast_to_numbers(pc.replace_substring(bare, ",", "."))

    def lone_text(self) -> str:
        """The text that stands again and again in a column that is otherwise numbers; "" if there is no such text."""
        import pyarrow.compute as pc

        if self.plain_mark == "":
            return ""
        rest = self.text.filter(pc.invert(self.like_numbers))
        if len(rest) < 2 or len(rest) > (1 - _ENOUGH) * self.n_observed or len(rest.unique()) > 1:
            return ""
        lone = str(rest[0].as_py())
        return "" if any(sign.isdigit() for sign in lone) else lone  # "10+" and "<5" have a meaning

    def remark(self, name: str, found: Any, decimal: Mark) -> str:
        """How column `name` was read as the numbers found, where that is not plain."""
        import pyarrow.compute as pc

        text = self.text
        if decimal == "." and self.plain_mark is not None:
            return ""
        separator = _separator(self.bare)
        unclear = bool(separator) and all(_all_are(self.bare, mark) for mark in _NAMES)
        usual = pc.match_substring_regex(text, number_form(decimal, groups=False))
        at = pc.index(pc.match_substring(self.bare, separator) if unclear else pc.invert(usual), True).as_py()
        if at < 0:
            return ""
        reading = [f"{text[at].as_py()!r} as {found[at].as_py():.15g}"]
        signs = sorted({sign for sign in "".join(text.drop_null().unique().to_pylist()) if category(sign) == "Sc"})
        if signs:
            different = "; make sure that they are amounts of one currency" if len(signs) > 1 else ""
            reading.append(f"without the sign {' or '.join(signs)}{different}")
        if pc.any(pc.ends_with(text, "%")).as_py():
            some = "" if pc.all(pc.ends_with(text, "%")).as_py() else ", also where the sign is missing"
            reading.append(f"in percent points{some}")
        sentence = f"Column {name!r} is read as numbers: {', '.join(reading)}."
        if unclear:
            how = f"a decimal {_NAMES[decimal]}" if separator == decimal else "a sign between thousands"
            sentence += f" The {_NAMES[separator]} is taken for {how}; correct the column if it is not."
        return sentence


def _separator(bare: Any) -> str:
    """The first of point and comma that occurs in the texts."""
    return next((mark for mark in _NAMES if _contains(bare, mark)), "")


def decimal_mark(columns: Iterable[NumberText], delimiter: str) -> Mark:
    """The decimal mark of most of the columns that show one; `delimiter` stands between the fields."""
    import pyarrow.compute as pc

    sure: Counter[str] = Counter()
    likely: Counter[str] = Counter()
    both = unclear = 0
    for column in columns:
        if column.plain_mark is not None:
            sure.update(column.plain_mark)
            continue
        bare = column.bare.filter(column.like_numbers)
        if not len(bare) or len(bare) < _ENOUGH * column.n_observed:
            continue
        fits = [mark for mark in _NAMES if _all_are(bare, mark)]
        if len(fits) == 1:
            sure[fits[0]] += 1
            both += bool(pc.any(pc.match_substring_regex(bare, r"\..*,")).as_py())
        elif fits and (separator := _separator(bare)):
            unclear += 1
            # 1,795 beside 431, and never 1795: a sign that only and always cuts off thousands.
            whole = bare.filter(pc.invert(pc.match_substring(bare, separator)))
            if len(whole) and not pc.any(pc.match_substring_regex(whole, "[0-9]{4}")).as_py():
                likely["," if separator == "." else "."] += 1
    if delimiter == ",":  # "1,5" in quotes is as likely a list as a number, 17.978,20 is not
        return "," if both and not sure["."] else "."
    for votes in (sure, likely):
        if votes[","] != votes["."]:
            return "," if votes[","] > votes["."] else "."
    return "," if delimiter == ";" and unclear else "."


def read_floats(text: Any, decimal: str, missing: tuple[str, ...] = MISSING) -> NDArray[np.float64]:
    """An Arrow array of text as float64, NaN for null and for the codes of what is missing.

    An `UnreadableValue` names the first text that is no number.
    """
    found = cast_to_numbers(text) if decimal == "." else None  # clean columns need no more
    if found is None:
        text = plain(text, missing)
        found = NumberText(text).parsed(decimal)
    if found is None:
        at = first_refused(text, lambda part: NumberText(part).parsed(decimal) is not None)
        mark = "with a decimal comma" if decimal == "," else "with a decimal point"
        raise UnreadableValue(text[at].as_py(), at, f"is not a number ({mark})")
    return np.array(numbers(found))  # a copy, which may be written to


def first_refused(text: Any, readable: Callable[[Any], bool]) -> int:
    """The place of the first value of an array that cannot be read, found by halving."""
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if readable(text[low:middle]) else (low, middle)
    return low
