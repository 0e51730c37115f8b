"""Why a linear model decides as it does about one row, and what would have to be different.

    s_a(x) − s_b(x) = Σ_j (w_a − w_b)_j z_j + const       a: the class decided for, b: the runner-up, z: the encoded row

Encoded columns are centred, so a term is what the row has beyond the average row; the terms of one column of the table are
added up. The nearest change that flips the decision is the shortest in standard deviations over the numbers of the row, within
the range that was learnt from (`geometry.counterfactual`); categories, flags and holes stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.comparison.table_model import TableModel
from separatrix.geometry.counterfactuals import counterfactual
from separatrix.geometry.regions import linear_rule
from separatrix.tables.findings import joined
from separatrix.tables.rows import TableRows

_NEGLIGIBLE = 0.02


@dataclass(frozen=True)
class RowExplanation:
    """One row: what it is decided to be, against what, what pushed it there, and what would flip it."""

    decided: Any
    against: Any
    lead: float  # of the scores; of two classes the log-odds for models that have some
    pushes: list[tuple[str, Any, float]]  # column, its value in the row, its part of the lead, the largest first
    typical: float  # the lead of the average row
    flip: str  # the nearest change, in a sentence


def explain_row(model: TableModel, table_or_rows: Any, row: int = 0) -> RowExplanation:
    """Explain the decision about one row of a table.

    Parameters
    ----------
    model : TableModel
        Of a linear model.
    table_or_rows : pandas, polars or pyarrow table, or TableRows
    row : int, default=0
        Which one.

    Returns
    -------
    RowExplanation

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import compare
    >>> from separatrix.comparison.why.explanation import explain_row
    >>> iris = load_iris(as_frame=True).frame
    >>> found = explain_row(compare(iris, "target", families=["lda"]).best, iris, 70)
    >>> found.decided, found.against, found.pushes[0][0]
    (2, 1, 'petal width (cm)')
    """
    given = table_or_rows if isinstance(table_or_rows, TableRows) else model.schema.read(table_or_rows)
    if not 0 <= row < len(given):
        raise ValueError(f"There is no row {row}; the table has {len(given)}, counted from 0.")
    if model.encoder is None:
        raise ValueError(
            f"The model {model.family!r} is not linear in the columns; its rows cannot be explained by parts."
        )
    try:
        classes, W, b = linear_rule(model.estimator)
    except (TypeError, AttributeError) as error:  # the second of a machine with a kernel
        raise ValueError(f"The rows of the model {model.family!r} cannot be explained by parts: {error}") from None
    one = given.take(np.array([row]))
    z = model.encoder.transform(one)[0]
    scores = W @ z + b
    order = np.argsort(-scores, kind="stable")
    first, second = int(order[0]), int(order[1])
    parts = (W[first] - W[second]) * z
    by_column: dict[str, float] = {}
    for origin, part in zip(model.encoder.origin_, parts, strict=True):
        by_column[origin] = by_column.get(origin, 0.0) + float(part)
    pushes = [
        (name, _plain(model, one, name), by_column[name])
        for name in sorted(by_column, key=lambda n: -abs(by_column[n]))
    ]
    names = model.classes_.tolist()
    lead = float(scores[first] - scores[second])
    return RowExplanation(
        names[classes[first]], names[classes[second]], lead, pushes, float(b[first] - b[second]), _flip(model, one, z)
    )


def _plain(model: TableModel, one: TableRows, name: str) -> Any:
    """The value of a column, None where it is missing."""
    value = next(iter(one.columns[name]))
    column = next(column for column in model.schema.columns if column.name == name)
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    if column.kind == "boolean":
        false = next((text for text in column.categories if text != column.true), "false")
        return (column.true or "true") if value else false
    return float(value) if column.kind == "numeric" else str(value)


def _flip(model: TableModel, one: TableRows, z: Any) -> str:
    """The nearest change that makes the decision another one, in a sentence."""
    encoder, flags = model.encoder, one.booleans
    assert encoder is not None
    free = [
        j
        for j, feature in enumerate(encoder.features_)
        if feature.what == "value" and feature.column not in flags and not np.isnan(one.columns[feature.column][0])
    ]
    if not free:
        return "No number of this row could be changed."
    low, high = np.full(len(z), -np.inf), np.full(len(z), np.inf)
    for j in free:
        feature, seen = encoder.features_[j], (model.training or {}).get(encoder.features_[j].column, {}).get("range")
        if seen:
            ends = [(end - feature.centre) / feature.scale for end in seen]
            low[j], high[j] = min(ends[0], z[j]), max(ends[1], z[j])
    fixed = sorted(set(range(len(z))) - set(free))
    found = counterfactual(model.estimator, z, bounds=(low, high), fixed=fixed)
    if found.change is None:
        return "No change of its numbers, within the range learnt from, leads to another class."
    change = found.change
    changed = sorted(
        (j for j in free if abs(change[j]) > _NEGLIGIBLE * np.abs(change).max()), key=lambda j: -abs(change[j])
    )
    words = []
    for j in changed:
        feature = encoder.features_[j]
        before = float(one.columns[feature.column][0])
        after = before + float(change[j]) * feature.scale
        digits = next(d for d in (4, 6, 9, 17) if f"{after:.{d}g}" != f"{before:.{d}g}" or d == 17)
        words.append(f"{feature.column} {after:.{digits}g} instead of {before:.{digits}g}")
    return f"The nearest change that makes it {model.classes_[found.target]}: {joined(words, 4)}."
