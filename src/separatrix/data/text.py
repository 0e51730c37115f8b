"""Text that comes from data, made safe to show: names of columns and classes may hold any character.

Markup is escaped by what writes it: Jinja2 and markupsafe for HTML, matplotlib for SVG.
"""

from __future__ import annotations

import re
from typing import Any

# What XML or HTML cannot hold; one such character in a name would spoil the page.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str, mark: str | None = None) -> str:
    r"""The text with escapes, or a mark, for what would move a cursor, colour a terminal or turn the direction of reading.

    Examples
    --------
    >>> from separatrix.data.text import printable
    >>> print(printable("red: \x1b[31m"), printable("red: \x1b[31m", "·"))
    red: \x1b[31m red: ·[31m
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] if mark is None else mark for c in text)


def one_line(name: Any, longest: int = 40) -> str:
    """A name on one line: spaces for line breaks, dots for what cannot be printed, an ellipsis for what is too long."""
    text = printable(" ".join(str(name).split()), "·")
    return text if len(text) <= longest else text[: longest - 1] + "…"


def for_html(text: str) -> str:
    """The text with a mark in the place of every character that a page cannot hold."""
    return _FORBIDDEN.sub("\ufffd", text)
