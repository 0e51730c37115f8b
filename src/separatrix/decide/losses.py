"""What an action costs: L[k, a] is the loss of action a when the truth is class k.

    E(a|x) = Σ_k L[k,a] p(k|x),      action = argmin_a E(a|x)

Adding a number to a row of L, the same for every action, changes no decision. Decisions are therefore taken from L less the
largest loss of each row: the 0–1 loss becomes −I, so that its decision is argmax_k p(k|x) to the last bit.
Ties go to the first of the tied actions. A bare array is in the order of the classes; what has labels (see `loss_labels`) is
put in that order. Reference: Berger, Statistical Decision Theory and Bayesian Analysis, sect. 4.4.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data.block import Codes, Float
from separatrix.data.frames import is_frame
from separatrix.data.labels import as_names, encode, is_missing, listed, shown, unique_labels
from separatrix.decide.loss_labels import aligned, columns_by_name, labels_of, place_of
from separatrix.settings import outside

Loss = str | Callable[[Any, Any], float] | Mapping[Any, Any] | ArrayLike
REJECTED = -1
"""The code of a rejected row among the codes of actions."""


def loss_table(
    loss: Loss, classes: NDArray[Any], actions: Iterable[Any] | None, name: str = "loss"
) -> tuple[Float, NDArray[Any]]:
    """The K×A matrix of a loss and the names of its A actions; by default the actions are the classes.

    Every loss of the library is read here. Labels of data frames, dictionaries and Series are matched to the classes and
    actions; the rows of a bare array are in the order of the classes.
    """
    named = None if actions is None else _check_names(as_names(actions))
    labelled = labels_of(loss, classes, named, name)
    if isinstance(loss, str):
        if loss != "zero-one":
            raise ValueError(f"loss={loss!r} is not known: give 'zero-one', a matrix or a function of (truth, action).")
        unknown = [] if named is None else [action for action in named.tolist() if action not in classes.tolist()]
        if unknown:
            raise ValueError(
                f"Under the 0–1 loss every action is a class, but {unknown[0]!r} is not one of {listed(classes)}: give the "
                "losses of this action in a matrix or a function."
            )
        loss = _zero_one
    if labelled is not None:
        matrix, columns = aligned(labelled, classes, named, name)
        names = classes if columns == classes.tolist() else _check_names(as_names(columns))
    elif callable(loss):
        names = classes if named is None else named
        matrix = np.array([[float(loss(k, a)) for a in names.tolist()] for k in classes.tolist()])
    else:
        matrix = np.asarray(loss, dtype=np.float64)
        names = _columns(matrix, classes, named)
    if not np.isfinite(matrix).all():
        k, a = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(
            f"The loss of action {shown(names[a])} when the truth is {shown(classes[k])} is {matrix[k, a]}: every loss must "
            "be a finite number. To forbid an action give it a large one."
        )
    _warn_of_costly_truth(matrix, classes, names)
    return matrix, names


def classes_with(loss: Loss, labels: NDArray[Any], name: str = "loss") -> NDArray[Any]:
    """The labels among some rows and those that a labelled loss has besides: a class may have no row in a sample."""
    # An index that counts from 0 may stand for integer classes of which some have no row here, but never for text.
    labelled = labels_of(loss, None if labels.dtype.kind in "iuf" else labels, None, name)
    if labelled is None:
        return labels
    known = labels.tolist()
    absent = [truth for truth in labelled.truths if place_of(truth, known) is None]
    if not absent or len({isinstance(label, str) for label in [*known, *absent]}) > 1:
        return labels  # labels of another type are no classes: `loss_table` refuses them
    return unique_labels(as_names([*known, *absent]))


def _zero_one(truth: Any, action: Any) -> float:
    return float(truth != action)


def _check_names(names: NDArray[Any]) -> NDArray[Any]:
    listed = names.tolist()
    if not listed:
        raise ValueError("actions is empty: name at least one action.")
    for i, name in enumerate(listed):
        if name in listed[:i]:
            raise ValueError(f"The action {name!r} is named twice: give every action its own name.")
    return names


def _columns(matrix: Float, classes: NDArray[Any], named: NDArray[Any] | None) -> NDArray[Any]:
    """The names of the columns of a loss matrix, whose shape is checked."""
    order = classes.tolist()
    if matrix.ndim != 2 or len(matrix) != len(classes) or matrix.shape[1] == 0:
        raise ValueError(
            f"loss has shape {matrix.shape}, but there are {len(classes)} classes: give a matrix with one row per class (the "
            f"truth), in the order {order}, and one column per action."
        )
    if named is None and matrix.shape[1] != len(classes):
        raise ValueError(
            f"loss has {matrix.shape[1]} columns for {len(classes)} classes, so the actions are not the classes {order}: name "
            "the columns with actions=[…]."
        )
    if named is not None and matrix.shape[1] != len(named):
        raise ValueError(
            f"loss has shape {matrix.shape}, but {len(named)} actions are named: {listed(named)}. Give one column per action."
        )
    return classes if named is None else named


def _warn_of_costly_truth(matrix: Float, classes: NDArray[Any], names: NDArray[Any]) -> None:
    """Where an action is named like a class it is the correct one for it, and should be the cheapest."""
    for k, label in enumerate(classes.tolist()):
        correct = [a for a, name in enumerate(names.tolist()) if name == label]
        if not correct:
            continue
        cheapest = int(matrix[k].argmin())
        if matrix[k, cheapest] < matrix[k, correct[0]]:
            warnings.warn(
                f"When the truth is class {label!r} the correct action costs {matrix[k, correct[0]]:g} and the wrong action "
                f"{shown(names[cheapest])} only {matrix[k, cheapest]:g}. Rows of the loss are the truth, columns the action: "
                "check that it is not transposed.",
                UserWarning,
                stacklevel=outside(),
            )


def check_proba(proba: ArrayLike, classes: NDArray[Any] | None = None) -> Float:
    """Posteriors as a float64 array of shape (n, K), checked; columns of a frame that are named like classes in their order."""
    if classes is not None and is_frame(proba):
        columns = list(getattr(proba, "column_names", None) or proba.columns)  # type: ignore[union-attr]  # a frame
        if any(place_of(name, classes.tolist()) is not None for name in columns) and columns != list(
            range(len(columns))
        ):
            proba = columns_by_name(proba, classes.tolist(), "y_prob", "class")
    given = np.asarray(proba, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"Probabilities have shape {given.shape}: give one row per sample and one column per class.")
    wrong = ~((given >= 0) & (given <= 1 + 1e-6)).all(axis=1) | (np.abs(given.sum(axis=1) - 1.0) > 1e-3)
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{int(wrong.sum())} rows of probabilities are not numbers from 0 to 1 that sum to 1 (first: row {i}, "
            f"{listed(given[i])}); give posterior probabilities, not scores."
        )
    return given


def check_rows_of(proba: ArrayLike, classes: NDArray[Any], n_rows: int) -> Float:
    """Posteriors as an array with a row for each of `n_rows` and a column for each class."""
    given = check_proba(proba, classes)
    if given.shape != (n_rows, len(classes)):
        raise ValueError(
            f"proba has shape {given.shape} for {n_rows} rows and the classes {listed(classes)}: give one row per sample and "
            "one column per class, and all classes with classes=[…] if some have no row here."
        )
    return given


def row_losses(matrix: Float, names: NDArray[Any], costs: ArrayLike | None, n_rows: int) -> Float:
    """The losses of every row: the matrix itself, or (n, K, A) when rows have costs of their own.

    Costs of shape (n, K, A) stand for the matrix; costs of shape (n, A), the price of an action whatever the truth, are added.
    The columns of a data frame are matched to the names of the actions.
    """
    if costs is None:
        return matrix
    given = np.asarray(columns_by_name(costs, names.tolist(), "costs"), dtype=np.float64)
    K, A = matrix.shape
    if given.shape not in ((n_rows, K, A), (n_rows, A)):
        raise ValueError(
            f"costs has shape {given.shape}: give {(n_rows, K, A)}, a loss for every row, class and action, or {(n_rows, A)}, "
            "a price for every row and action that is added to the loss."
        )
    if not np.isfinite(given).all():
        bad = int((~np.isfinite(given)).reshape(n_rows, -1).any(axis=1).sum())
        raise ValueError(f"costs contains NaN or infinity in {bad} rows: every cost must be a finite number.")
    return given if given.ndim == 3 else matrix + given[:, None, :]


def expected_losses(proba: Float, losses: Float) -> Float:
    """(n, A) expected loss of every action; an average of losses, which rounding never takes outside their range."""
    return np.clip(_mixed(proba, losses), losses.min(axis=-2), losses.max(axis=-2))


def best_actions(proba: Float, losses: Float) -> Codes:
    """The code of the action of least expected loss, of every row; the first of those that tie."""
    return _mixed(proba, losses - losses.max(axis=-1, keepdims=True)).argmin(axis=1)


def _mixed(proba: Float, losses: Float) -> Float:
    return proba @ losses if losses.ndim == 2 else np.einsum("nk,nka->na", proba, losses)


def suffered_losses(truth: Codes, taken: Codes, losses: Float, reject_cost: float | None) -> Float:
    """(n,) the loss of every row, given the codes of its class and of the action taken."""
    rejected = taken == REJECTED
    if rejected.any() and reject_cost is None:
        raise ValueError(
            f"{int(rejected.sum())} rows were rejected, but a rejection has no price: set reject_cost, or leave these rows out."
        )
    found = losses[truth, taken] if losses.ndim == 2 else losses[np.arange(len(truth)), truth, taken]
    return np.where(rejected, 0.0 if reject_cost is None else reject_cost, found)


def class_codes(y: ArrayLike, classes: ArrayLike | None, weights: Float | None) -> tuple[NDArray[Any], Codes]:
    """The sorted classes, those given or those in y, and the code of every row."""
    target = np.asarray(y)
    known = None if classes is None else unique_labels(np.asarray(classes))
    return encode(target, known, weights)


def action_codes(actions: ArrayLike, names: NDArray[Any], reject_action: Any) -> Codes:
    """The code of every row's action; `REJECTED` for the name of a rejection."""
    taken = np.asarray(actions)
    codes = np.full(len(taken), len(names), dtype=np.intp)
    codes[_equal(taken, reject_action)] = REJECTED
    for a, name in enumerate(names.tolist()):
        codes[_equal(taken, name)] = a
    unknown = np.flatnonzero(codes == len(names))
    if len(unknown):
        raise ValueError(
            f"{shown(taken[unknown[0]])} is not among the actions {listed(names)}, nor does it stand for a rejection "
            f"({reject_action!r}): name all actions, or set reject_action."
        )
    return codes


def distinct_actions(actions: ArrayLike, reject_action: Any) -> NDArray[Any]:
    """The different actions taken, rejection aside, in the order of appearance."""
    taken = np.asarray(actions).tolist()
    missing = sum(map(is_missing, taken))
    if missing and not is_missing(reject_action):
        raise ValueError(
            f"actions contains NaN or None in {missing} rows: if these are rejections, say so by reject_action."
        )
    return as_names(name for name in dict.fromkeys(taken) if name != reject_action and not is_missing(name))


def with_rejection(actions: NDArray[Any], reject_action: Any) -> NDArray[Any]:
    """The names of the actions, and last, where the code `REJECTED` points to, that of a rejection."""
    if reject_action in actions.tolist():
        raise ValueError(
            f"reject_action={shown(reject_action)} is also the name of an action: give rejections another name."
        )
    return as_names([*actions, reject_action])


def _equal(taken: NDArray[Any], name: Any) -> NDArray[np.bool_]:
    if is_missing(name):
        return np.array([is_missing(value) for value in taken.tolist()], dtype=bool)
    return np.broadcast_to(np.asarray(taken == name, dtype=bool), taken.shape)
