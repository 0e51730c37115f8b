"""Losses, costs and priors that carry the labels they belong to, put in the order of the classes and actions.

    {truth: {action: cost}}          {(truth, action): cost}          a data frame: index or first column the truth
    {truth: cost}                    the cost of every wrong action:  L[k, a] = cost_k where a ≠ k, else 0

A pandas Series is read as a dictionary of its index. Tables without an index (polars, pyarrow, files) hold the true class in
their first column. A label that is missing, unknown or there twice is an error: no order is ever guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.data.frames import as_table, is_frame
from separatrix.data.labels import as_label, shown


@dataclass(frozen=True)
class LabelledLoss:
    """Costs as they were written, with one label per row and one per column.

    `actions` is None when there is one cost per class, that of every wrong action; `hint` is where the labels of the rows were
    looked for, when that may surprise.
    """

    truths: list[Any]
    actions: list[Any] | None
    values: list[list[Any]]
    hint: str = ""


def labels_of(
    loss: Any, classes: NDArray[Any] | None, actions: NDArray[Any] | None, name: str = "loss"
) -> LabelledLoss | None:
    """The labels and costs of a loss that has labels; None for a bare array, a function or a name."""
    if is_frame(loss):
        return _of_frame(loss, classes, [] if actions is None else actions.tolist(), name)
    loss = _without_index(loss, name, "row")
    return _of_mapping(loss, name) if isinstance(loss, Mapping) else None


def _is_series(value: Any) -> bool:
    """A pandas Series, or what behaves as one: one axis, with an index."""
    return getattr(value, "ndim", None) == 1 and hasattr(value, "index") and hasattr(value, "items")


def _without_index(value: Any, name: str, what: str) -> Any:
    """A Series as a dictionary; anything else as it is."""
    if not _is_series(value):
        return value
    _refuse_twice(list(value.index), name, what)
    return dict(value.items())


def _of_mapping(rows: Mapping[Any, Any], name: str) -> LabelledLoss:
    if not rows:
        raise ValueError(f"{name} is empty: write it as {{class: {{action: cost, …}}, …}}.")
    parts = [dict(row.items()) if _is_series(row) else row for row in rows.values()]
    if all(isinstance(row, Mapping) for row in parts):
        (first, *_), (actions, *_) = rows, parts
        for truth, row in zip(rows, parts, strict=True):
            if row.keys() != actions.keys():
                raise ValueError(f"{name} has other actions for class {shown(truth)} than for {shown(first)}.")
        return LabelledLoss(list(rows), list(actions), [[row[action] for action in actions] for row in parts])
    if any(isinstance(row, Mapping) or not np.isscalar(row) for row in parts):
        raise ValueError(
            f"{name} gives no actions: write it as {{class: {{action: cost, …}}, …}}, or {{class: cost}} for one cost of every "
            "mistake about that class."
        )
    if all(isinstance(key, tuple) and len(key) == 2 for key in rows):
        truths, columns = list(dict.fromkeys(key[0] for key in rows)), list(dict.fromkeys(key[1] for key in rows))
        for truth, action in product(truths, columns):
            if (truth, action) not in rows:
                raise ValueError(f"{name} has no cost of action {shown(action)} when the truth is {shown(truth)}.")
        return LabelledLoss(truths, columns, [[rows[truth, action] for action in columns] for truth in truths])
    return LabelledLoss(list(rows), None, [[cost] for cost in parts])


def _of_frame(table: Any, classes: NDArray[Any] | None, actions: list[Any], name: str) -> LabelledLoss:
    import narwhals.stable.v1 as nw

    _refuse_twice(list(getattr(table, "column_names", None) or table.columns), name, "column")
    frame = nw.from_native(as_table(table), eager_only=True)
    columns, index = list(frame.columns), nw.maybe_get_index(frame)
    values = [list(row) for row in zip(*(column.to_list() for column in frame.iter_columns()), strict=True)]
    if index is not None and _index_is_truth(list(index), columns, values, classes, actions, name):
        return LabelledLoss(list(index), columns, values)
    if len(columns) < 2:
        raise ValueError(f"{name} has one column only; give the true class in the first and one column per action.")
    truths, first = [row[0] for row in values], shown(columns[0])
    hint = f"{name} has no index of labels, so its first column, {first}, was taken for the true class."
    if any(place_of(truth, columns[:1]) is not None for truth in truths):
        raise ValueError(
            f"{name} is a table without an index, so it is not known which class its rows belong to: put the true class in a "
            "first column of its own, whose name is not a class, or give a dictionary {class: {action: cost}}."
        )
    return LabelledLoss(truths, columns[1:], [row[1:] for row in values], hint)


def _index_is_truth(
    labels: list[Any],
    columns: list[Any],
    values: list[list[Any]],
    classes: NDArray[Any] | None,
    actions: list[Any],
    name: str,
) -> bool:
    """Whether the index of a frame holds the true classes; one that merely counts the rows may stand for nothing."""
    counted = labels == list(range(len(labels))) and not any(isinstance(label, bool | np.bool_) for label in labels)
    if not counted:
        return True
    if classes is not None and any(place_of(label, classes.tolist()) is None for label in labels):
        return False
    unknown = [place_of(column, [*labels, *actions]) is None for column in columns]
    if any(unknown[1:]) and not all(place_of(row[0], columns[1:]) is not None for row in values):
        raise ValueError(
            f"{name} has rows 0 to {len(labels) - 1} and columns {_listed(columns)}: it is not clear whether its index or its "
            "first column is the true class. Make it the index with set_index, or name the actions."
        )
    return not any(unknown)


def _refuse_twice(labels: list[Any], name: str, what: str) -> None:
    for i, label in enumerate(labels):
        if label in labels[:i]:
            raise ValueError(f"{name} has more than one {what} of {shown(label)}; give one {what} each.")


def place_of(label: Any, known: list[Any]) -> int | None:
    """Where a label stands in a list; text also stands for the number or boolean that it spells, as files have no types."""
    for place, other in enumerate(known):
        if isinstance(label, str) == isinstance(other, str) and label == other:
            return place
    if not known or isinstance(label, tuple):
        return None
    like = next((other for other in known if not isinstance(other, str)), known[0])
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, str) == isinstance(like, str):
        return None
    spelt = as_label(label, like)
    return next((place for place, other in enumerate(known) if spelt is not None and spelt == other), None)


def aligned(
    labelled: LabelledLoss, classes: NDArray[Any], actions: NDArray[Any] | None, name: str = "loss"
) -> tuple[Float, list[Any]]:
    """The K×A matrix in the order of the classes, and the names of its columns.

    Columns named like the classes come in the order of the classes, others behind them as they were written; `actions`,
    where they are given, are the columns that there must be, in their order.
    """
    labels = classes.tolist()
    rows = _places(labelled.truths, labels, name, "row", "class", "which is not a class; these are", labelled.hint)
    if labelled.actions is None:
        return _by_mistake(labelled, rows, labels, actions, name), labels
    wanted = _wanted(labelled.actions, labels, name) if actions is None else actions.tolist()
    columns = _places(labelled.actions, wanted, name, "column", "action", "which is not an action; these are")
    matrix = np.empty((len(labels), len(wanted)))
    for k, label in enumerate(labels):
        for a, action in enumerate(wanted):
            what = f"{name}: the cost of {shown(action)} when the truth is {shown(label)}"
            matrix[k, a] = as_number(labelled.values[rows[k]][columns[a]], what)
    return matrix, wanted


def _by_mistake(
    labelled: LabelledLoss, rows: list[int], labels: list[Any], actions: NDArray[Any] | None, name: str
) -> Float:
    if actions is not None and actions.tolist() != labels:
        raise ValueError(
            f"{name} has one cost per class, that of every wrong class, so the actions are the classes: leave out actions, or "
            "give a cost for every class and action."
        )
    costs = [
        as_number(labelled.values[rows[k]][0], f"{name} of class {shown(label)}") for k, label in enumerate(labels)
    ]
    return np.asarray(costs)[:, None] * (1.0 - np.eye(len(labels)))


def _wanted(columns: list[Any], labels: list[Any], name: str) -> list[Any]:
    """What the columns of a loss stand for when nobody named them: the classes and what else there is, or no class at all."""
    found = [place_of(column, labels) for column in columns]
    others = [column for column, place in zip(columns, found, strict=True) if place is None]
    if all(place is None for place in found):
        return others
    for k, label in enumerate(labels):
        if k not in found:
            unknown = f" and {shown(others[0])} is not a class" if others else ""
            raise ValueError(
                f"{name} has no column for class {shown(label)}{unknown}; its columns are {_listed(columns)}. Give one column "
                "per class, or name the actions that there are with actions=[…]."
            )
    return [*labels, *others]


def _places(
    given: list[Any], wanted: list[Any], name: str, what: str, kind: str, unknown: str, hint: str = ""
) -> list[int]:
    """Where each wanted label stands among those given; an error unless they are the same labels."""
    places: dict[int, int] = {}
    for place, label in enumerate(given):
        code = place_of(label, wanted)
        if code is None:
            raise ValueError(
                f"{name} has a {what} for {shown(label)}, {unknown} {_listed(wanted)}. "
                f"{hint or 'An array without labels is read in the order of these.'}"
            )
        if code in places:
            raise ValueError(f"{name} has more than one {what} of {kind} {shown(wanted[code])}; give one {what} each.")
        places[code] = place
    for code, label in enumerate(wanted):
        if code not in places:
            raise ValueError(f"{name} has no {what} for {kind} {shown(label)}; it has {what}s for {_listed(given)}.")
    return [places[code] for code in range(len(wanted))]


def _listed(labels: Iterable[Any]) -> str:
    listed = [str(label) for label in labels]
    return ", ".join(listed if len(listed) <= 20 else [*listed[:20], f"{len(listed) - 20} more"])


def as_number(value: Any, name: str) -> float:
    """A cost as a float; an error with its name where it is no number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; give a number.") from None


def columns_by_name(values: Any, names: list[Any], name: str, kind: str = "action") -> Any:
    """A table of one column per action (or class), its columns in the order of the names; anything else as it is."""
    if is_frame(values):
        import narwhals.stable.v1 as nw

        frame = nw.from_native(as_table(values), eager_only=True)
        columns, numbers = list(frame.columns), [column.to_numpy() for column in frame.iter_columns()]
    elif isinstance(values, Mapping):
        columns, numbers = list(values), list(values.values())
    else:
        return values
    unknown = f"which is not one of the {'classes' if kind == 'class' else 'actions'}"
    places = _places(columns, names, name, "column", kind, unknown)
    return np.column_stack([np.asarray(numbers[place], dtype=np.float64) for place in places])


def by_class(values: Any, classes: NDArray[Any] | None, name: str) -> Any:
    """One number per class in the order of the classes (sorted, where they are not known); a bare array as it is."""
    values = _without_index(values, name, "value")
    if not isinstance(values, Mapping):
        return values
    given, listed = list(values), list(values.values())
    wanted = np.unique(np.asarray(given)).tolist() if classes is None else classes.tolist()
    places = _places(given, wanted, name, "value", "class", "which is not a class; these are")
    return np.array([as_number(listed[place], f"{name} of class {shown(wanted[k])}") for k, place in enumerate(places)])
