"""The labels of a target: text, numbers or booleans, whichever the column holds."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

from separatrix.data.labels import as_plain_number
from separatrix.data.number_text import is_padded
from separatrix.tables.columns import FEW, MOST_LEVELS
from separatrix.tables.rows import NO_LABEL, is_boolean, is_number, is_text, plain

_NUMBER = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"


def _sorted_numbers(values: list[Any]) -> list[Any]:
    """Whole numbers if all are, else all as floats; text stays text where a whole number is too long for an array."""
    labels = {as_plain_number(value) for value in values}
    if all(isinstance(label, int) and -(2**63) <= label < 2**63 for label in labels):
        return sorted(labels)
    if all(isinstance(value, str) for value in values) and all(isinstance(label, int) for label in labels):
        return sorted(set(values))
    return sorted({float(label) for label in labels})


def classes_of(target: str, column: Any) -> tuple[Any, ...]:
    """The labels in a column, sorted."""
    values = plain(column, NO_LABEL)
    if not (is_text(values.type) or is_number(values.type) or is_boolean(values.type)):
        raise ValueError(f"The target {target!r} is of type {values.type}; a class is text, a number or a boolean.")
    observed = values.drop_null()
    distinct = [value for value in observed.unique().to_pylist() if value == value]
    numeric = not is_boolean(values.type)
    if is_text(values.type):
        numeric = all(re.match(_NUMBER, value) for value in distinct) and not is_padded(observed)
    labels = _sorted_numbers(distinct) if numeric else sorted(set(distinct))
    numeric = numeric and not isinstance(labels[0] if labels else "", str)
    many = len(labels) > MOST_LEVELS or (len(labels) > FEW and not all(isinstance(x, int) for x in labels))
    if numeric and many:
        raise ValueError(
            f"The target {target!r} holds {len(labels)} different numbers: that looks like a quantity, which is regression. "
            "Name a column of classes, or cut this one into classes first."
        )
    if len(labels) > MOST_LEVELS and len(labels) > len(observed) / 2:
        raise ValueError(
            f"The target {target!r} has {len(labels)} different values in {len(observed)} rows: that looks like an identifier "
            "or free text. Name a column of classes."
        )
    if len(labels) < 2:
        only = f"only one class, {labels[0]!r}" if labels else "no value at all"
        raise ValueError(f"The target {target!r} has {only}; a classifier needs rows of at least two classes.")
    infinite = [label for label in labels if isinstance(label, float) and not np.isfinite(label)]
    if infinite:
        raise ValueError(f"The target {target!r} holds {infinite[0]}; a class is a finite number.")
    return tuple(labels)


def unlabelled(column: Any) -> Counter[str]:
    """The texts in a target that are taken for no label, each with its number of rows."""
    import pyarrow.compute as pc

    if not is_text(column.type):
        return Counter()
    stripped = plain(column, ())
    taken = stripped.filter(pc.and_(pc.is_null(plain(column, NO_LABEL)), pc.not_equal(stripped, "")))
    return Counter({found["values"]: found["counts"] for found in taken.value_counts().to_pylist() if found["values"]})
