"""Why a model decides as it does about one row, and what would have to be different.

    s_a(x) − s_b(x) = Σ_j (w_a − w_b)_j z_j + const       a: the class decided for, b: the runner-up, z: the encoded row

Encoded columns are centred, so a term is what the row has beyond the average row; the terms of one column of the table are
added up. The nearest change that flips the decision is the shortest in standard deviations over the numbers of the row, within
the range that was learnt from (`geometry.counterfactual`); categories, flags and holes stay as they are. Naive Bayes is no
linear rule, but adds up what columns say (additive.py); its terms are against a row of which nothing is known.

With a loss the action is not always the most probable class. The terms are those of the probabilities, and the action is named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from separatrix.comparison.scores import Candidate
from separatrix.comparison.table_model import TableModel
from separatrix.comparison.why.additive import is_additive, nearest_number, terms_of
from separatrix.data.block import Codes, Float
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
    typical: float  # the lead of the row that pushes are measured from
    flip: str  # the nearest change, in a sentence
    base: str = "the average row"  # what pushes are measured from
    action: Any = None  # what is done by the losses of the model, if it has some

    def in_words(self, row: str, number: Callable[[float], str] = "{:.3g}".format) -> str:
        """The decision in a sentence, about a row that is called so, with numbers as they are written there."""
        which = "is decided to be" if self.action is None else "is most probably"
        done = "" if self.action is None else f" By the losses the decision is {self.action}."
        return (
            f"{row} {which} {self.decided}, with a lead of {number(self.lead)} over {self.against}; for {self.base} it is "
            f"{number(self.typical)}.{done}"
        )


def explain_rows(best: Candidate, rows: TableRows, codes: Codes) -> list[tuple[str, int, RowExplanation]]:
    """The surest mistake and the most doubtful row out of fold, by the model of all rows; none of a model without parts."""
    if best.proba is None:
        return []
    own, two = best.proba[np.arange(len(codes)), codes], np.sort(best.proba, axis=1)[:, -2:]
    wrong = best.predicted != codes
    wanted = {"The surest mistake": int(np.where(wrong, own, np.inf).argmin())} if wrong.any() else {}
    wanted["The most doubtful row"] = int((two[:, 1] - two[:, 0]).argmin())
    try:
        return [(what, i, explain_row(best.model, rows, i)) for what, i in wanted.items()]
    except ValueError:
        return []


def explain_row(model: TableModel, table_or_rows: Any, row: int = 0) -> RowExplanation:
    """Explain the decision about one row of a table.

    Parameters
    ----------
    model : TableModel
        Of a linear model, or of naive Bayes.
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
    one = given.take(np.array([row]))
    action = None if model.loss is None else model.predict(one)[0]
    if is_additive(model):
        return replace(_of_additive(model, one), action=action)
    if model.encoder is None:
        raise ValueError(
            f"The model {model.family!r} is not linear in the columns; its rows cannot be explained by parts."
        )
    try:
        classes, W, b = linear_rule(model.estimator)
    except (TypeError, AttributeError) as error:  # the second of a machine with a kernel
        raise ValueError(f"The rows of the model {model.family!r} cannot be explained by parts: {error}") from None
    z = model.encoder.transform(one)[0]
    first, second = _two_largest(W @ z + b)
    parts, scores = (W[first] - W[second]) * z, W @ z + b
    by_column: dict[str, float] = {}
    for origin, part in zip(model.encoder.origin_, parts, strict=True):
        by_column[origin] = by_column.get(origin, 0.0) + float(part)
    decided, against = (model.classes_.tolist()[classes[k]] for k in (first, second))
    lead, typical = float(scores[first] - scores[second]), float(b[first] - b[second])
    flip = _flip(model, one, z)
    return RowExplanation(decided, against, lead, _pushes(model, one, by_column), typical, flip, action=action)


def _of_additive(model: TableModel, one: TableRows) -> RowExplanation:
    """A row of a model that adds up what columns say."""
    scores, unknown, terms = terms_of(model, one)
    first, second = _two_largest(scores)
    by_column = {name: float(term[first] - term[second]) for name, term in terms.items()}
    names = model.classes_[model.estimator.classes_].tolist()
    lead, typical = float(scores[first] - scores[second]), float(unknown[first] - unknown[second])
    flip, nearest = (
        "No change of one number, within the range learnt from, leads to another class.",
        nearest_number(model, one, by_column),
    )
    if nearest is not None:
        name, after, k = nearest
        flip = f"The nearest change that makes it {names[k]}: {_instead(name, after, float(one.columns[name][0]))}."
    base = "a row of which nothing is known"
    return RowExplanation(names[first], names[second], lead, _pushes(model, one, by_column), typical, flip, base)


def _two_largest(scores: Float) -> tuple[int, int]:
    order = np.argsort(-scores, kind="stable")
    return int(order[0]), int(order[1])


def _pushes(model: TableModel, one: TableRows, by_column: dict[str, float]) -> list[tuple[str, Any, float]]:
    order = sorted(by_column, key=lambda name: -abs(by_column[name]))
    return [(name, _plain(model, one, name), by_column[name]) for name in order]


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
        words.append(_instead(feature.column, before + float(change[j]) * feature.scale, before))
    return f"The nearest change that makes it {model.classes_[found.target]}: {joined(words, 4)}."


def _instead(name: str, after: float, before: float) -> str:
    """Another number, with as many digits as it takes to see the difference."""
    digits = next(d for d in (4, 6, 9, 17) if f"{after:.{d}g}" != f"{before:.{d}g}" or d == 17)
    return f"{name} {after:.{digits}g} instead of {before:.{digits}g}"
