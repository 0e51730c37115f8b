"""Why naive Bayes decides as it does about one row: it reads columns as they are, and adds up what each says.

    s_a(x) − s_b(x) = s_a − s_b + Σ_j [log p(x_j|a) − log p(x_j|b)]        s_a − s_b: of a row of which nothing is known

A column adds nothing where its value is missing, so its term is the lead with the value less the lead without it. The nearest
change is that of one number, of those that say most, within the range learnt from, by the least multiple of its spread (the
median deviation from the median); categories, flags and holes stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from separatrix.comparison.table_model import TableModel
from separatrix.data.block import Codes, Float
from separatrix.geometry.additive_form import Additive
from separatrix.tables.rows import CodedText, TableRows

_MOST = 30  # columns
_TRIED = 401  # values of a number between the ends of its range, and again between the two that differ


def is_additive(model: TableModel) -> bool:
    """Whether a model adds up what columns say."""
    form = getattr(model.estimator, "score_form", None)
    return model.encoder is None and form is not None and isinstance(form(), Additive)


def terms_of(model: TableModel, one: TableRows) -> tuple[Float, Float, dict[str, Float]]:
    """(K,) scores of a row, of one of which nothing is known, and by column what it adds; classes of the estimator."""
    names = [name for name in one.columns if name not in model.schema.prose]
    n = len(names) + 2
    hidden = {name: np.isin(np.arange(n), [j, n - 1]) for j, name in enumerate(names, 1)}
    hidden |= {name: np.ones(n, dtype=bool) for name in one.columns if name not in hidden}
    rows = one.take(np.zeros(n, dtype=np.intp))
    columns = {name: _without(values, hidden[name]) for name, values in rows.columns.items()}
    scores = _scores(model, TableRows(columns, one.booleans, n))
    return scores[0], scores[-1], {name: scores[0] - scores[j] for j, name in enumerate(names, 1)}


def _scores(model: TableModel, rows: TableRows) -> Float:
    """(n, K) up to a constant for each row, which differences of classes do not have."""
    return np.asarray(model.estimator.predict_log_proba(model.encode(rows)))


def _without(values: Any, at: Any) -> Any:
    if isinstance(values, CodedText) or values.dtype == object:
        text = CodedText.of(values)
        return CodedText(text.levels, np.where(at, -1, text.places), text.memo)
    return np.where(at, np.nan, values)


def nearest_number(model: TableModel, one: TableRows, by_column: Mapping[str, float]) -> tuple[str, float, int] | None:
    """The column, its value and the class of the nearest change of one number; None where there is none.

    Of the columns that add most to the lead.
    """
    here = int(_scores(model, one)[0].argmax())
    found: list[tuple[float, str, float, int]] = []
    for name in sorted(by_column, key=lambda name: -abs(by_column[name]))[:_MOST]:
        values = one.columns[name]
        known = (model.training or {}).get(name, {})
        if known.get("kind") != "numeric" or not known["range"] or np.isnan(values[0]):
            continue
        x, (low, high) = float(values[0]), known["range"]
        spread = known["spread"] or high - low or 1.0
        for end in (low, high):
            if (end - x) * (1.0 if end == high else -1.0) <= 0.0:
                continue
            before, after = x, end
            for _ in range(2):  # a grid, and a finer one where it changes
                tried = np.linspace(before, after, _TRIED)
                classes = _classes_of(model, one, name, tried)
                changed = np.flatnonzero(classes != here)
                if not len(changed):
                    break
                at = int(changed[0])
                before, after = float(tried[max(at - 1, 0)]), float(tried[at])
            else:
                found.append((abs(after - x) / spread, name, after, int(classes[at])))
    return min(found)[1:] if found else None


def _classes_of(model: TableModel, one: TableRows, name: str, values: Float) -> Codes:
    """The places of the classes of the row with other values of one of its numbers."""
    rows = one.take(np.zeros(len(values), dtype=np.intp))
    return _scores(model, replace(rows, columns={**rows.columns, name: values})).argmax(axis=1)
