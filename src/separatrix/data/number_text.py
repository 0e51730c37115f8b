"""Numbers in text as people and spreadsheets write them.

    17.978,20 €    10,6 %    −0,35    (7.00)    17 978    $1,234,567

A table has one decimal mark, and the other sign then stands between thousands. A column such as 17,978 and 3,478 fits both
readings and is no evidence for either; a column that fits only one of them is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal
from unicodedata import category

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


def _form(mark: str, groups: bool = True) -> str:
    """The pattern of a number with this decimal mark, with or without the signs that stand between thousands."""
    mark, other = (r"\.", ",") if mark == "." else (",", r"\.")
    grouped = rf"[1-9][0-9]{{0,2}}(?:(?:{other}[0-9]{{3}})+|(?:{_BLANK}[0-9]{{3}})+)|" if groups else ""
    digits = rf"(?:{grouped}[0-9]+)(?:{mark}[0-9]*)?|{mark}[0-9]+"
    return rf"^[+-]?(?:(?:{digits})(?:[eE][+-]?[0-9]+)?|(?i:inf(?:inity)?))$"


def parsed(text: Any, decimal: str) -> Any | None:
    """Stripped text as float64; None when some of it is not a number."""
    import pyarrow.compute as pc

    found = cast_to_numbers(text) if decimal == "." else None  # most columns need no more
    if found is not None:
        return found
    bare = undressed(text)
    if not _all_are(bare, decimal):
        return None
    bare = pc.replace_substring_regex(bare, rf"^\+|{_BLANK}|{',' if decimal == '.' else '[.]'}", "")
    return cast_to_numbers(pc.replace_substring(bare, ",", "."))


def cast_to_numbers(text: Any) -> Any | None:
    """Text that is all numbers in the computer's own way of writing them, as float64; else None."""
    import pyarrow as pa

    try:
        return text.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # the second: dictionaries and views, before they are plain
        return None


def undressed(text: Any) -> Any:
    """Text without the signs of currencies and percent around a number, with an ordinary minus."""
    import pyarrow.compute as pc

    for pattern, instead in _DRESSING:
        text = pc.replace_substring_regex(text, pattern, instead)
    return text


def _all_are(bare: Any, mark: str) -> bool:
    """Whether all texts, those that are null aside, are numbers with this decimal mark."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(bare, _form(mark)), min_count=0).as_py())


def like_numbers(text: Any) -> Any:
    """Which texts are numbers with one decimal mark or the other."""
    return _are_numbers(undressed(text))


def _are_numbers(bare: Any) -> Any:
    import pyarrow.compute as pc

    return pc.or_(*(pc.match_substring_regex(bare, _form(mark)) for mark in _NAMES))


def decimal_mark(columns: Iterable[Any], delimiter: str) -> Mark:
    """The decimal mark of most of the columns of stripped text that show one; `delimiter` stands between the fields."""
    import pyarrow.compute as pc

    sure: Counter[str] = Counter()
    likely: Counter[str] = Counter()
    both = unclear = 0
    for column in columns:
        text = column.drop_null()
        if (shown := _plain_mark(text)) is not None:
            sure.update(shown)
            continue
        bare = undressed(text)
        bare = bare.filter(_are_numbers(bare))
        if not len(bare) or len(bare) < _ENOUGH * len(text):
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


def _plain_mark(text: Any) -> str | None:
    """Of numbers as computers write them the mark, "" where they are whole; None where a closer look is needed."""
    import pyarrow.compute as pc

    # Patterns take long; most columns are done with after a look at some values.
    if cast_to_numbers(text) is not None:
        if not pc.any(pc.match_substring(text, "."), min_count=0).as_py():
            return ""
        return None if _all_are(text[:1000], ",") else "."
    digits = pc.sum(pc.match_substring_regex(text, "[0-9]"), min_count=0).as_py()
    return "" if digits < _ENOUGH * len(text) else None


def _separator(bare: Any) -> str:
    """The first of point and comma that occurs in the texts."""
    import pyarrow.compute as pc

    return next((mark for mark in _NAMES if pc.any(pc.match_substring(bare, mark)).as_py()), "")


def lone_text(text: Any) -> str:
    """The text that stands again and again in a column that is otherwise numbers; "" if there is no such text."""
    import pyarrow.compute as pc

    text = text.drop_null()
    if _plain_mark(text) == "":
        return ""
    rest = text.filter(pc.invert(like_numbers(text)))
    if len(rest) < 2 or len(rest) > (1 - _ENOUGH) * len(text) or len(rest.unique()) > 1:
        return ""
    lone = str(rest[0].as_py())
    return "" if any(sign.isdigit() for sign in lone) else lone  # "10+" and "<5" say something


def is_padded(text: Any) -> bool:
    """Whether some of the numbers start with zeros, as codes do: 01067."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(text, "^0[0-9]+$")).as_py())


def remark_on_writing(name: str, text: Any, found: Any, decimal: Mark) -> str:
    """How a column of text was read as the numbers found, where that is not plain."""
    import pyarrow.compute as pc

    if decimal == "." and _plain_mark(text) is not None:
        return ""
    bare = undressed(text)
    separator = _separator(bare)
    fits_both = all(_all_are(bare, mark) for mark in _NAMES)
    unclear = bool(separator) and fits_both
    plain = pc.match_substring_regex(text, _form(decimal, groups=False))
    at = pc.index(pc.match_substring(bare, separator) if unclear else pc.invert(plain), True).as_py()
    if at < 0:
        return ""
    said = [f"{text[at].as_py()!r} as {found[at].as_py():.15g}"]
    signs = sorted({sign for sign in "".join(text.drop_null().unique().to_pylist()) if category(sign) == "Sc"})
    if signs:
        different = "; make sure that they are amounts of one currency" if len(signs) > 1 else ""
        said.append(f"without the sign {' or '.join(signs)}{different}")
    if pc.any(pc.ends_with(text, "%")).as_py():
        some = "" if pc.all(pc.ends_with(text, "%")).as_py() else ", also where the sign is missing"
        said.append(f"in percent points{some}")
    sentence = f"Column {name!r} is read as numbers: {', '.join(said)}."
    if unclear:
        how = f"a decimal {_NAMES[decimal]}" if separator == decimal else "a sign between thousands"
        sentence += f" The {_NAMES[separator]} is taken for {how}; correct the column if it is not."
    return sentence
