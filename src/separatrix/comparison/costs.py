"""A loss from wherever it is written down: a matrix, a mapping, a table, or a file beside the data.

costs.csv     truth, send home, call back        L[k, a]: one row a class, one column an action
              benign, 0, 1
              malignant, 50, 0
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.comparison.rows import as_arrow
from separatrix.data.block import Float
from separatrix.data.labels import shown
from separatrix.data.tables import read_table
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
    listed = as_arrow(table).to_pylist()
    truth, *actions = as_arrow(table).column_names
    if not actions:
        raise ValueError(f"{said} has one column only; give the true class in the first and one column an action.")
    rows = {row[truth]: {action: row[action] for action in actions} for row in listed}
    if len(rows) < len(listed):
        raise ValueError(f"{said} has more than one row of a class in column {truth!r}; give one row a class.")
    return _of_mapping(rows, classes, said)


def _of_mapping(rows: Mapping[Any, Any], classes: list[Any], said: str) -> tuple[Float, list[Any]]:
    """Rows and actions are matched to the classes by what they look like: text files have no types."""
    labels = {str(label): label for label in classes}
    by_text = {str(label).strip(): row for label, row in rows.items()}
    for label in classes:
        if str(label) not in by_text:
            raise ValueError(f"{said} has no row for class {shown(label)}; it has rows for {', '.join(by_text)}.")
    for text in by_text:
        if text not in labels:
            raise ValueError(f"{said} has a row for {text!r}, which is not a class; these are {', '.join(labels)}.")
    if not all(isinstance(row, Mapping) for row in by_text.values()):
        raise ValueError(f"{said} gives no actions: write it as {{class: {{action: cost, …}}, …}}.")
    actions = [str(action) for action in by_text[str(classes[0])]]
    matrix = np.empty((len(classes), len(actions)))
    for k, label in enumerate(classes):
        row = {str(action): cost for action, cost in by_text[str(label)].items()}
        if row.keys() != set(actions):
            raise ValueError(f"{said} has other actions for class {shown(label)} than for {shown(classes[0])}.")
        for a, action in enumerate(actions):
            matrix[k, a] = _number(row[action], f"{said}: the cost of {action!r} when the truth is {shown(label)}")
    return matrix, [labels.get(action.strip(), action) for action in actions]


def _number(value: Any, said: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{said} is {value!r}; give a number.") from None
