"""A loss from wherever it is written down: a matrix, a mapping, a table, or a file beside the data.

costs.csv     truth, send home, call back        L[k, a]: one row a class, one column an action
              benign, 0, 1
              malignant, 50, 0

Costs may have a decimal comma where fields are not separated by one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.comparison.findings import joined
from separatrix.comparison.rows import as_arrow
from separatrix.comparison.schema import TableSchema
from separatrix.data.block import Float
from separatrix.data.labels import shown
from separatrix.data.tables import DELIMITER, read_table
from separatrix.decide.losses import loss_table


def read_loss(path: str | os.PathLike[str], classes: Iterable[Any]) -> tuple[Float, list[Any]]:
    r"""The loss in a file whose first column is the true class and whose other columns are the actions.

    Parameters
    ----------
    path : path
        Any table that `read_table` reads.
    classes : iterable of labels
        In the order that the rows of the matrix shall have.

    Returns
    -------
    loss : ndarray of shape (n_classes, n_actions)
    actions : list
        The names of the columns; those that are names of classes are the labels themselves.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from separatrix.comparison.costs import read_loss
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "costs.csv"
    >>> _ = path.write_text("truth,no,yes\nyes,50,0\nno,0,1\n")
    >>> read_loss(path, ["no", "yes"])
    (array([[ 0.,  1.], [50.,  0.]]), ['no', 'yes'])
    """
    return _of_frame(read_table(path), list(classes), f"{os.fspath(path)}")


def as_loss(loss: Any, classes: NDArray[Any], actions: Iterable[Any] | None) -> tuple[Float | None, list[Any] | None]:
    """The matrix and the names of the actions of anything that `compare` takes as a loss; None of None."""
    if loss is None:
        if actions is not None:
            raise ValueError("actions names the columns of a loss; give the loss too.")
        return None, None
    named = None if actions is None else list(actions)
    if isinstance(loss, str | os.PathLike) and loss != "zero-one":
        loss, named = read_loss(loss, classes.tolist())
    elif isinstance(loss, Mapping):
        loss, named = _of_mapping(loss, classes.tolist(), "loss")
    elif hasattr(loss, "columns") or hasattr(loss, "column_names"):
        loss, named = _of_frame(loss, classes.tolist(), "loss")
    matrix, names = loss_table(loss, classes, named)
    return matrix, names.tolist()


def _of_frame(table: Any, classes: list[Any], said: str) -> tuple[Float, list[Any]]:
    table = as_arrow(table)
    truth, *actions = table.column_names
    if not actions:
        raise ValueError(f"{said} has one column only; give the true class in the first and one column an action.")
    listed = table.to_pylist()
    rows = {row[truth]: {action: row[action] for action in actions} for row in listed}
    if len(rows) < len(listed):
        raise ValueError(f"{said} has more than one row of a class in column {truth!r}; give one row a class.")
    costs = [cost for row in rows.values() for cost in row.values()]
    commas = any(isinstance(cost, str) and "," in cost for cost in costs)
    return _of_mapping(rows, classes, said, commas and (table.schema.metadata or {}).get(DELIMITER) != b",")


def _of_mapping(
    rows: Mapping[Any, Any], classes: list[Any], said: str, decimal_comma: bool = False
) -> tuple[Float, list[Any]]:
    """Rows and actions are matched to the classes as the target itself is read: text files have no types."""
    by_class: dict[Any, Any] = {}
    for given, row in rows.items():
        label = _class_of(given, classes)
        if label is None:
            known = joined(list(map(str, classes)))
            raise ValueError(f"{said} has a row for {str(given)!r}, which is not a class; these are {known}.")
        if label in by_class:
            raise ValueError(f"{said} has more than one row of class {shown(label)}; give one row a class.")
        by_class[label] = row
    for label in classes:
        if label not in by_class:
            known = joined(list(map(str, rows)))
            raise ValueError(f"{said} has no row for class {shown(label)}; it has rows for {known}.")
    if not all(isinstance(row, Mapping) for row in by_class.values()):
        raise ValueError(f"{said} gives no actions: write it as {{class: {{action: cost, …}}, …}}.")
    actions = [str(action) for action in by_class[classes[0]]]
    matrix = np.empty((len(classes), len(actions)))
    for k, label in enumerate(classes):
        row = {str(action): cost for action, cost in by_class[label].items()}
        if row.keys() != set(actions):
            raise ValueError(f"{said} has other actions for class {shown(label)} than for {shown(classes[0])}.")
        for a, action in enumerate(actions):
            what = f"{said}: the cost of {action!r} when the truth is {shown(label)}"
            matrix[k, a] = _number(row[action], what, decimal_comma)
    labels = [_class_of(action, classes) for action in actions]
    return matrix, [action if label is None else label for action, label in zip(actions, labels, strict=True)]


def _class_of(value: Any, classes: list[Any]) -> Any:
    """The class that a value stands for in a column of the target; None when it is none of them."""
    import pyarrow as pa

    try:
        codes, known = TableSchema((), "class", tuple(classes)).read_target(pa.table({"class": [value]}))
    except (ValueError, TypeError, pa.ArrowException):  # no class, or of a type that no class has
        return None
    return classes[codes[0]] if known[0] else None


def _number(value: Any, said: str, decimal_comma: bool) -> float:
    text = value
    if decimal_comma and isinstance(value, str):
        if "." in value or re.fullmatch(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*", value):
            raise ValueError(
                f"{said} is {value!r}, which can be read in two ways: write thousands without a separator, and decimals "
                "with a point everywhere."
            )
        text = value.replace(",", ".")
    try:
        return float(text)
    except (TypeError, ValueError):
        raise ValueError(f"{said} is {value!r}; give a number.") from None
