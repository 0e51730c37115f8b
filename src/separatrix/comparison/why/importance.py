"""Which columns a model leans on, and what each of them does: for every family, from predictions alone.

    importance of column j    loss with the values of j shuffled among the left-out rows − loss as they are
    effect of column j at v   mean over rows of p(k | x with xⱼ = v)

The loss is −log p of the true class, or a mistake for models without probabilities. Every fold gives one importance, of its own
model on the rows it left out; intervals are those of the mean of the folds (Student's t, 95 %). Columns that say the same stand
in for one another: shuffled alone, each may look unimportant. Bands of effects are the range over the models of the folds.
References: Breiman, Machine Learning 45, 2001, sect. 10; Friedman, Annals of Statistics 29, 2001, sect. 8.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from separatrix.comparison.table_model import TableModel
from separatrix.data.block import Codes, Float
from separatrix.tables.columns import ColumnSchema
from separatrix.tables.rows import CodedText, TableRows

_SHUFFLES, _MOST_LEVELS, _POINTS = 2, 8, 15
MOST_ROWS, MOST_COLUMNS = 400, 40


@dataclass(frozen=True)
class ColumnImportance:
    """How much worse the predictions are without what a column says, with the ends of the 95 % interval."""

    column: str
    mean: float
    lower: float
    upper: float


@dataclass(frozen=True)
class PartialEffect:
    """Mean predictions (n_values, n_classes) where a column has each of some values, and their range over the folds."""

    column: str
    numeric: bool
    values: list[Any]
    shares: Float
    lower: Float
    upper: Float


def permutation_importance(
    models: Sequence[TableModel], rows: TableRows, codes: Codes, folds: Codes, seed: int = 0, most_rows: int = MOST_ROWS
) -> list[ColumnImportance]:
    """The importance of every column, the largest first.

    Parameters
    ----------
    models : sequence of TableModel
        One for every fold, which has not seen its rows.
    rows : TableRows
    codes, folds : ndarray of shape (n,)
        Classes of the rows, and the fold that leaves out each.
    seed : int, default=0
    most_rows : int, default=400
        Of every fold at most so many rows are used.

    Returns
    -------
    list of ColumnImportance

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import compare
    >>> from separatrix.comparison.why.importance import permutation_importance
    >>> found = compare(load_iris(as_frame=True).frame, "target", families=["qda"])
    >>> models = found.recommended.fold_models
    >>> [one.column for one in permutation_importance(models, found.rows, found.codes, found.folds)][:2]
    ['petal length (cm)', 'petal width (cm)']
    """
    names = list(rows.columns)[:MOST_COLUMNS]
    found = np.zeros((len(models), len(names)))
    for k, model in enumerate(models):
        rng = np.random.default_rng([seed, k])
        at = rng.permutation(np.flatnonzero(folds == k))[:most_rows]
        view = _View(model, rows.take(at))
        y = codes[at]
        before = _loss(view.predictions(), y)
        for j, name in enumerate(names):
            orders = [rng.permutation(len(at)) for _ in range(_SHUFFLES)]
            found[k, j] = np.mean([_loss(view.shuffled(name, order), y) for order in orders]) - before
    means = found.mean(axis=0)
    half = student.ppf(0.975, max(len(models) - 1, 1)) * found.std(axis=0, ddof=1) / np.sqrt(len(models))
    order = np.argsort(-means, kind="stable")
    return [
        ColumnImportance(names[j], float(means[j]), float(means[j] - half[j]), float(means[j] + half[j])) for j in order
    ]


class _View:
    """Rows as a model sees them, with columns shuffled; what is encoded is encoded once."""

    def __init__(self, model: TableModel, rows: TableRows) -> None:
        self._model, self._rows = model, rows
        self._X = None if model.encoder is None else model.encoder.transform(rows)

    def predictions(self, X: Any = None) -> Float:
        given = X if X is not None else self._model.schema.plain_frame(self._rows) if self._X is None else self._X
        return predicted_shares(self._model, given)

    def shuffled(self, name: str, order: Codes) -> Float:
        if self._X is None:
            columns = {**self._rows.columns, name: self._rows.columns[name][order]}
            rows = TableRows(columns, self._rows.booleans, len(self._rows))
            return self.predictions(self._model.schema.plain_frame(rows))
        X = self._X.copy()
        assert self._model.encoder is not None
        features = np.flatnonzero(np.array(self._model.encoder.origin_) == name)
        X[:, features] = self._X[np.ix_(order, features)]
        return self.predictions(X)


def predicted_shares(model: TableModel, given: Any) -> Float:
    """(n, n_classes) probabilities of rows as the estimator sees them; of a model without any, 1 for the class predicted."""
    shares = np.zeros((len(given), len(model.classes_)))
    if model.has_probabilities:
        shares[:, model.estimator.classes_] = model.estimator.predict_proba(given)
    else:
        shares[np.arange(len(given)), np.asarray(model.estimator.predict(given), dtype=np.intp)] = np.nan
        shares = np.isnan(shares).astype(np.float64)
    return shares


def _loss(shares: Float, codes: Codes) -> float:
    """Mean −log p, or the share of mistakes where every share is 0 or 1."""
    own = shares[np.arange(len(codes)), codes]
    if ((shares == 0.0) | (shares == 1.0)).all():
        return float(1.0 - own.mean())
    return float(-np.log(np.maximum(own, 1e-15)).mean())


def partial_effects(
    model: TableModel,
    fold_models: Sequence[TableModel],
    rows: TableRows,
    columns: Sequence[ColumnSchema],
    seed: int = 0,
    most_rows: int = 150,
) -> list[PartialEffect]:
    """What each of some columns does to the predictions of a model, averaged over rows of the table.

    Parameters
    ----------
    model : TableModel
        Of all rows.
    fold_models : sequence of TableModel
        For the bands.
    rows : TableRows
    columns : sequence of ColumnSchema
    seed, most_rows
        The rows averaged over are drawn by the seed.

    Returns
    -------
    list of PartialEffect
    """
    at = np.random.default_rng(seed).permutation(len(rows))[:most_rows]
    some, found = rows.take(np.sort(at)), []
    for column in columns:
        values = _grid(column, rows.columns[column.name])
        if len(values) < 2:
            continue
        tiled = _tiled(some, column, values)
        curves = []
        for one in (model, *fold_models):
            shares = predicted_shares(one, one.encode(tiled))
            curves.append(shares.reshape(len(values), len(some), -1).mean(axis=1))
        others = np.stack(curves[1:] or curves)
        names = _named(column, values)
        numeric = column.kind == "numeric"
        found.append(PartialEffect(column.name, numeric, names, curves[0], others.min(axis=0), others.max(axis=0)))
    return found


def _grid(column: ColumnSchema, values: Any) -> list[Any]:
    if column.kind == "numeric":
        given = values[~np.isnan(values)]
        return np.unique(np.quantile(given, np.linspace(0.03, 0.97, _POINTS))).tolist() if len(given) else []
    if column.kind == "boolean":
        return [0.0, 1.0]
    if column.encoding == "text":
        return []
    counts = CodedText.of(values).counts()
    return sorted(sorted(counts, key=lambda level: -counts[level])[:_MOST_LEVELS])


def _named(column: ColumnSchema, values: list[Any]) -> list[Any]:
    if column.kind != "boolean":
        return values
    false = next((name for name in column.categories if name != column.true), "false")
    return [false, column.true or "true"]


def _tiled(rows: TableRows, column: ColumnSchema, values: list[Any]) -> TableRows:
    """The rows once for every value, with that value in the column."""
    n, m = len(rows), len(values)
    columns: dict[str, Any] = {}
    for name, given in rows.columns.items():
        if name == column.name:
            places = np.repeat(np.arange(m), n)
            columns[name] = CodedText(list(values), places) if column.kind == "categorical" else np.repeat(values, n)
        elif given.dtype == object:
            text = CodedText.of(given)
            columns[name] = CodedText(text.levels, np.tile(text.places, m))
        else:
            columns[name] = np.tile(given, m)
    return TableRows(columns, rows.booleans, n * m)
