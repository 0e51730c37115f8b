"""How far two runs of a script are apart: in what they printed, and in their figures."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any

NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|[-+]?\.\d+(?:[eE][-+]?\d+)?")
# Of the full range of a colour: pixels that differ by less look the same.
VISIBLE = 0.1


def number_difference(one: str, other: str) -> float | None:
    """The largest |a − b| / max(1, |a|, |b|) of printed numbers; None where the words, or how many numbers, differ."""
    if NUMBER.sub("#", one).split() != NUMBER.sub("#", other).split():
        return None
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return max(
        (abs(a - b) / max(1.0, abs(a), abs(b)) for a, b in ((float(x), float(y)) for x, y in pairs)), default=0.0
    )


def pixel_difference(one: str, other: str) -> float:
    """The share of pixels that differ visibly, of the pair of figures in two folders that differs most."""
    pairs = zip_longest(sorted(Path(one).glob("*.png")), sorted(Path(other).glob("*.png")))
    return max((_share(*pair) for pair in pairs), default=0.0)


def _share(one: Path | None, other: Path | None) -> float:
    if one is None or other is None:
        return 1.0
    read: Any = import_module("matplotlib.image").imread
    first, second = read(one), read(other)
    if first.shape != second.shape:
        return 1.0
    return float((abs(first - second).max(axis=2) > VISIBLE).mean())
