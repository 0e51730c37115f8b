"""A model on rows that it has never seen and whose classes are known.

    accuracy                   Wilson's interval
    log-loss, Brier, cost      means over the rows: m ± 1.96 s/√n
    AUC                        the same of its influence function (DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988)
    balanced accuracy, F1      quantiles over redrawn confusion matrices

All at 95 %. The rule is the one that the model has: with a loss, the action of least expected cost.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import log_loss

from separatrix.comparison.drift import ColumnDrift, DriftCounter
from separatrix.comparison.measures import (
    SCORE_LABELS,
    accuracy_of,
    auc,
    balanced_accuracy,
    brier,
    by_guessing,
    f1,
)
from separatrix.comparison.planes import score_columns
from separatrix.comparison.table_model import TableModel
from separatrix.data.block import Codes, Float
from separatrix.decide.calibration import Reliability, reliability_diagram
from separatrix.decide.intervals import wilson_interval
from separatrix.decide.losses import best_actions
from separatrix.tables.reading import read_table
from separatrix.tables.rows import TableRows, as_arrow
from separatrix.tables.schema import TableSchema

_DRAWS, _Z = 1_000, 1.959963984540054


@dataclass(frozen=True)
class Measured:
    """A score with the ends of its 95 % interval."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.lower:.3f} to {self.upper:.3f})"


@dataclass(frozen=True)
class ModelEvaluation:
    """What `evaluate` found.

    Parameters
    ----------
    n_rows : int
        Rows with a class.
    classes, answers : ndarray
        The rows of the confusion matrix, and its columns: classes, or actions where the model has a loss.
    scores : dict of str to Measured
        By the names of `SCORE_LABELS`.
    by_guessing : float
        The accuracy of the likeliest class of these rows for all of them.
    confusion : ndarray of shape (n_classes, n_answers)
        Rows of every true class by the answer they got.
    reliability : Reliability or None
        Predicted probabilities and observed shares.
    drift : list of ColumnDrift
        Columns whose values are not distributed as in training.
    notes : list of str
        What else should be known: rows without a class, scores that differ from those promised.
    """

    n_rows: int
    classes: NDArray[Any]
    answers: NDArray[Any]
    scores: dict[str, Measured]
    by_guessing: float
    confusion: Codes
    reliability: Reliability | None = None
    drift: list[ColumnDrift] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def as_sentence(found: ModelEvaluation) -> str:
    """An evaluation of rows that were set aside, in a sentence."""
    right = found.scores["accuracy"]
    ends = f"95 % interval {100 * right.lower:.0f} to {100 * right.upper:.0f} %"
    more = "".join(
        f", {SCORE_LABELS[name]} {found.scores[name]}" for name in ("cost", "log_loss") if name in found.scores
    )
    return f"On {found.n_rows} rows set aside: {100 * right.value:.0f} % right ({ends}){more}."


def evaluate(model: TableModel, data: Any) -> ModelEvaluation:
    """Judge a model on a table that holds the true classes.

    Parameters
    ----------
    model : TableModel
        From `compare`, `TableModel.fit` or a model file.
    data : pandas, polars or pyarrow table, or path of a file
        With the columns of the training table, the target among them.

    Returns
    -------
    ModelEvaluation

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import compare
    >>> from separatrix.comparison.evaluation import evaluate
    >>> iris = load_iris(as_frame=True).frame
    >>> found = evaluate(compare(iris[::2], "target", families=["lda"]).best, iris[1::2])
    >>> print(found.scores["accuracy"])
    0.960 (0.889 to 0.989)
    """
    table = read_table(data) if isinstance(data, str | os.PathLike) else as_arrow(data)
    schema = model.schema
    rows, codes = judged_rows(schema, table)
    unknown = table.num_rows - len(rows)
    notes = [f"{unknown} of {table.num_rows} rows have no class and do not count."] if unknown else []
    proba = model.predict_proba(rows) if model.has_probabilities else None
    taken, answers = _answers(model, rows, proba)
    confusion: Codes = np.zeros((len(schema.classes), len(answers)), dtype=np.intp)
    np.add.at(confusion, (codes, taken), 1)
    scores = _scores(model, rows, codes, taken, proba)
    reliability = None if proba is None else reliability_diagram(codes, proba, classes=np.arange(proba.shape[1]))
    counter = DriftCounter(model.training or {})
    counter.add(rows)
    shares = np.bincount(codes, minlength=len(schema.classes)) / len(codes)
    guess = by_guessing(shares, "accuracy")
    notes += list(_promised(model, scores))
    return ModelEvaluation(
        len(codes), model.classes_, answers, scores, guess, confusion, reliability, counter.found(), notes
    )


def judged_rows(schema: TableSchema, table: Any) -> tuple[TableRows, Codes]:
    """The rows of a table that have a class, and their classes."""
    rows = schema.read(table)
    codes, known = schema.read_target(table)
    if not known.any():
        raise ValueError(f"No row has a value in the target {schema.target!r}, so there is nothing to judge by.")
    return rows.take(known), codes[known]


def _answers(model: TableModel, rows: Any, proba: Float | None) -> tuple[Codes, NDArray[Any]]:
    """What the model answers to every row, as places among its possible answers."""
    if proba is None:
        return np.asarray(model.estimator.predict(model.encode(rows)), dtype=np.intp), model.classes_
    if model.loss is None or model.actions is None:
        return proba.argmax(axis=1), model.classes_
    return best_actions(proba, model.loss), model.actions


def _scores(model: TableModel, rows: Any, codes: Codes, taken: Codes, proba: Float | None) -> dict[str, Measured]:
    scores: dict[str, Measured] = {}
    classes, k = model.classes_.tolist(), len(model.classes_)
    predicted: Codes = taken
    if model.loss is not None and model.actions is not None and proba is not None:
        scores["cost"] = _mean(model.loss[codes, taken], least=float(model.loss.min()))
        place = {label: at for at, label in enumerate(classes)}
        named = [place.get(action, -1) for action in model.actions.tolist()]
        # Answers that are classes are judged as they are given; with others among them, the likeliest class is.
        predicted = np.array(named, dtype=np.intp)[taken] if min(named) >= 0 else proba.argmax(axis=1)
    counts: Codes = np.zeros((k, k), dtype=np.intp)
    np.add.at(counts, (codes, predicted), 1)
    if proba is not None:
        own = np.clip(proba[np.arange(len(codes)), codes], np.finfo(np.float64).eps, 1.0)
        scores["log_loss"] = _mean(-np.log(own), float(log_loss(codes, proba, labels=np.arange(k))))
    right = accuracy_of(counts)
    low, high = wilson_interval(np.array([right]), np.array([float(len(codes))]))
    scores["accuracy"] = Measured(right, float(low[0]), float(high[0]))
    given = proba
    if given is None and hasattr(model.estimator, "decision_function"):
        given = np.zeros((len(codes), k))
        given[:, model.estimator.classes_] = score_columns(model.decision_function(rows))
    if given is not None and len(np.unique(codes)) > 1:
        scores["auc"] = _area(codes, given)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(codes), counts.ravel() / counts.sum(), size=_DRAWS).reshape(_DRAWS, k, k)
    for name, of in (("balanced_accuracy", balanced_accuracy), ("f1", f1)):
        ends = np.quantile([of(one) for one in drawn], [0.025, 0.975])
        scores[name] = Measured(of(counts), float(ends[0]), float(ends[1]))
    if proba is not None:
        squares = ((proba - np.eye(k)[codes]) ** 2).sum(axis=1) / (2.0 if k == 2 else 1.0)
        scores["brier"] = _mean(squares, brier(codes, proba))
    return scores


def _mean(values: Float, value: float | None = None, least: float = 0.0) -> Measured:
    mean = float(values.mean()) if value is None else value
    half = _Z * float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else float("inf")
    return Measured(mean, max(least, mean - half), mean + half)


def _area(codes: Codes, scores: Float) -> Measured:
    """The mean area of `auc`, with the error of the mean of its influence function over the rows."""
    value, n, judged = auc(codes, scores), len(codes), [1] if scores.shape[1] == 2 else range(scores.shape[1])
    influence, used = np.zeros(n), 0
    for k in judged:
        inside = codes == k
        m = int(inside.sum())
        if not 0 < m < n:
            continue
        ranks, own, others = rankdata(scores[:, k]), rankdata(scores[inside, k]), rankdata(scores[~inside, k])
        area = (ranks[inside].sum() - m * (m + 1) / 2.0) / (m * (n - m))
        influence[inside] += ((ranks[inside] - own) / (n - m) - area) * n / m
        influence[~inside] += (1.0 - (ranks[~inside] - others) / m - area) * n / (n - m)
        used += 1
    half = _Z * float(np.std(influence / max(used, 1), ddof=1)) / np.sqrt(n)
    return Measured(value, max(0.0, value - half), min(1.0, value + half))


def _promised(model: TableModel, scores: dict[str, Measured]) -> list[str]:
    """Where these rows contradict what the comparison found."""
    found = []
    for name in ("cost", "log_loss", "accuracy"):
        before, here = model.scores.get(name), scores.get(name)
        if not isinstance(before, dict) or here is None:
            continue
        mean, error = float(before["mean"]), float(before["error"])
        sign = -1.0 if name == "accuracy" else 1.0
        half = (here.upper - here.lower) / 2.0 / _Z
        if sign * (here.value - mean) > 3.0 * np.hypot(error, half):
            found.append(
                f"The {SCORE_LABELS[name]} is worse than the comparison promised: {here}, against {mean:.3f} ± {error:.3f}."
            )
    return found
