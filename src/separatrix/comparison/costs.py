"""A loss in a file beside the data; what is in memory is read by `decide.losses.loss_table`, and so are the labels of a file.

costs.csv     truth, send home, call back        L[k, a]: one row per class, one column per action
              benign, 0, 1
              malignant, 50, 0

Costs may have a decimal comma where fields are not separated by one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float
from separatrix.data.labels import as_names, shown
from separatrix.decide.loss_labels import as_number, place_of
from separatrix.decide.losses import best_actions, loss_table
from separatrix.tables.reading import DELIMITER, read_table


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
    source = os.fspath(path)
    rows, actions = _costs(read_table(path), source)
    matrix, names = loss_table(rows, as_names(classes), None, source)
    order = np.array([place_of(action, names.tolist()) for action in actions], dtype=np.intp)
    return matrix[:, order], names[order].tolist()


def as_loss(loss: Any, classes: NDArray[Any], actions: Iterable[Any] | None) -> tuple[Float | None, list[Any] | None]:
    """The matrix and the names of the actions of anything that `compare` takes as a loss; None of None."""
    if loss is None:
        if actions is not None:
            raise ValueError("actions names the columns of a loss; give the loss too.")
        return None, None
    named = None if actions is None else list(actions)
    if isinstance(loss, str | os.PathLike) and loss != "zero-one":
        loss, named = read_loss(loss, classes.tolist())
    matrix, names = loss_table(loss, classes, named)
    return matrix, names.tolist()


def class_costs(loss: Float | None, actions: list[Any] | None, classes: NDArray[Any]) -> Float | None:
    """What each class costs as an answer, for models whose answers are classes; None where some class is no action."""
    if loss is None or actions is None or not set(classes.tolist()) <= set(actions):
        return None
    return loss[:, [actions.index(label) for label in classes.tolist()]]


def decided_classes(proba: Float, loss: Float | None, actions: list[Any] | None, classes: NDArray[Any]) -> Codes:
    """The class that a model answers with: of least expected loss where actions are classes, else the most probable one."""
    if loss is None or actions is None or not set(actions) <= set(classes.tolist()):
        return proba.argmax(axis=1)
    places = [classes.tolist().index(action) for action in actions]
    return np.array(places, dtype=np.intp)[best_actions(proba, loss)]


def rule_in_words(loss: Float | None, actions: list[Any] | None, classes: NDArray[Any]) -> str:
    """What the losses make of probabilities: for two classes and two actions the threshold; "" without losses.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.costs import rule_in_words
    >>> print(rule_in_words(np.array([[0.0, 1.0], [4.0, 0.0]]), ["no", "yes"], np.array(["no", "yes"])))
    Decisions are those of least expected cost: 'yes' where the probability of class 'yes' is above 0.2, else 'no'.
    """
    if loss is None or actions is None:
        return ""
    said = "Decisions are those of least expected cost"
    if loss.shape == (2, 2):
        # The second action wins where (1 − p)(L00 − L01) + p(L10 − L11) > 0.
        first, second = float(loss[0, 0] - loss[0, 1]), float(loss[1, 0] - loss[1, 1])
        if first < 0.0 < second:
            at = f"the probability of class {shown(classes[1])} is above {-first / (second - first):.3g}"
            said += f": {shown(actions[1])} where {at}, else {shown(actions[0])}"
    if not set(actions) <= set(classes.tolist()):
        return (
            f"{said}; accuracy and confusion are those of the most probable class, since not all actions are classes."
        )
    return f"{said}."


def _costs(table: Any, source: str) -> tuple[dict[Any, dict[str, float]], list[str]]:
    """{truth: {action: cost}} of a table whose first column is the truth, and the actions as they stand in its head."""
    truth, *actions = table.column_names
    if not actions:
        raise ValueError(f"{source} has one column only; give the true class in the first and one column per action.")
    listed = table.to_pylist()
    texts = [row[action] for row in listed for action in actions if isinstance(row[action], str)]
    comma = any("," in text for text in texts) and (table.schema.metadata or {}).get(DELIMITER) != b","
    rows: dict[Any, dict[str, float]] = {}
    for row in listed:
        if row[truth] in rows:
            raise ValueError(f"{source} has more than one row of a class in column {truth!r}; give one row per class.")
        rows[row[truth]] = {
            action: _number(
                row[action], f"{source}: the cost of {action!r} when the truth is {shown(row[truth])}", comma
            )
            for action in actions
        }
    return rows, actions


def _number(value: Any, name: str, decimal_comma: bool) -> float:
    text = value
    if decimal_comma and isinstance(value, str):
        if "." in value or re.fullmatch(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*", value):
            raise ValueError(
                f"{name} is {value!r}, which can be read in two ways: write thousands without a separator, and decimals "
                "with a point everywhere."
            )
        text = value.replace(",", ".")
    try:
        return as_number(text, name)
    except ValueError:
        raise ValueError(f"{name} is {value!r}; give a number.") from None
