"""The labels of a target: text, numbers or booleans, whichever the column holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.arrow_columns import NO_LABEL, NUMERIC, coded, kind, plain
from separatrix.data.block import Codes
from separatrix.data.labels import as_label, as_plain_number, is_missing
from separatrix.tables.columns import FEW, MOST_LEVELS

_NUMBER = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"


@dataclass(frozen=True)
class Labels:
    """The sorted classes of a target, the code of every row (−1 without a label), and the texts taken for no label."""

    classes: tuple[Any, ...]
    codes: Codes
    unlabelled: Counter[str]


def infer_labels(target: str, column: Any) -> Labels:
    """The classes of a column, and the class of every row."""
    values = plain(column, ())
    what = kind(values.type)
    if what not in ("text", *NUMERIC):
        raise ValueError(f"The target {target!r} is of type {values.type}; a class is text, a number or a boolean.")
    levels, places = coded(values)
    counts = np.bincount(places[places >= 0], minlength=len(levels)).tolist()
    classes, unlabelled = classes_of(target, dict(zip(levels, counts, strict=True)), what)
    codes = np.array([*label_codes(levels, classes), -1], dtype=np.intp)[places]
    return Labels(classes, codes, unlabelled)


def classes_of(target: str, counts: Mapping[Any, int], what: str) -> tuple[tuple[Any, ...], Counter[str]]:
    """The sorted classes of a target with these values, and the texts that were taken for no label."""
    labels = {level: n for level, n in counts.items() if not is_no_label(level)}
    absent = {level: n for level, n in counts.items() if level not in labels and level and what == "text"}
    return _checked_classes(target, list(labels), sum(labels.values()), what), Counter(absent)


def is_no_label(level: Any) -> bool:
    """Whether a value of the target stands for no class."""
    return is_missing(level) or level in NO_LABEL


def label_codes(levels: list[Any], classes: tuple[Any, ...]) -> list[int]:
    """The code of each label, −1 for one that is missing, −2 for one that is no class."""
    place = {label: code for code, label in enumerate(classes)}
    return [-1 if is_no_label(level) else place.get(as_label(level, classes[0]), -2) for level in levels]


def _checked_classes(target: str, values: list[Any], n_rows: int, what: str) -> tuple[Any, ...]:
    """The different labels, sorted, if they can be classes."""
    numeric = what != "boolean"
    if what == "text":
        padded = any(re.fullmatch("0[0-9]+", value) for value in values)
        numeric = not padded and all(re.fullmatch(_NUMBER, value) for value in values)
    labels = _sorted_numbers(values) if numeric else sorted(values)
    numeric = numeric and not isinstance(labels[0] if labels else "", str)
    many = len(labels) > MOST_LEVELS or (len(labels) > FEW and not all(isinstance(x, int) for x in labels))
    if numeric and many:
        raise ValueError(
            f"The target {target!r} holds {len(labels)} different numbers: that looks like a quantity, which is regression. "
            "Name a column of classes, or cut this one into classes first."
        )
    if len(labels) > MOST_LEVELS and len(labels) > n_rows / 2:
        raise ValueError(
            f"The target {target!r} has {len(labels)} different values in {n_rows} rows: that looks like an identifier or "
            "free text. Name a column of classes."
        )
    if len(labels) < 2:
        only = f"only one class, {labels[0]!r}" if labels else "no value at all"
        raise ValueError(f"The target {target!r} has {only}; a classifier needs rows of at least two classes.")
    infinite = [label for label in labels if isinstance(label, float) and not np.isfinite(label)]
    if infinite:
        raise ValueError(f"The target {target!r} holds {infinite[0]}; a class is a finite number.")
    return tuple(labels)


def _sorted_numbers(values: list[Any]) -> list[Any]:
    """Whole numbers if all are, else all as floats; text stays text where a whole number is too long for an array."""
    labels = {as_plain_number(value) for value in values}
    if all(isinstance(label, int) and -(2**63) <= label < 2**63 for label in labels):
        return sorted(labels)
    if all(isinstance(value, str) for value in values) and all(isinstance(label, int) for label in labels):
        return sorted(set(values))
    return sorted({float(label) for label in labels})
