"""B19: bundled data of 150 to 1 797 rows: the fit, and `predict` of one row, of every estimator that scikit-learn has too.

The field and the quality are the atlas's (`atlas/named.py`). A verdict per estimator: its least ratio over the data sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from math import inf, isfinite
from typing import Any

import numpy as np

from benchmarks.atlas.draw import FAMILIES, Problem
from benchmarks.atlas.named import check, contenders, limit, problem
from benchmarks.children import ChildFailed, call
from benchmarks.contender import Contender
from benchmarks.data import Data, bundled
from benchmarks.result import FAILED, OK, Result, Row, Verdict, one_line
from benchmarks.timing import alternate
from benchmarks.workload import Settings

SETS = ("iris", "wine", "breast_cancer", "digits")
BINARY, MANY = {"logistic"}, {"softmax"}
ALONE = "(no peer reaches the quality)"
VARIANTS = {"SVC": "rbf", "Perceptron": "default"}


class OneRow:
    """A fitted model whose `fit(X, y)` predicts one row."""

    def __init__(self, model: Any, row: Any) -> None:
        self.model, self.row = model, row

    def fit(self, X: Any, y: Any) -> OneRow:
        self.label_ = self.model.predict(self.row)
        return self


def cases(estimator: str) -> Iterator[tuple[str, Problem, Data]]:
    """The data sets that the estimator can be given."""
    for name in SETS:
        data = bundled(name)
        classes = len(np.unique(data.y))
        if (estimator in BINARY and classes > 2) or (estimator in MANY and classes == 2):
            continue
        if estimator == "QDA" and name in (
            "breast_cancer",
            "digits",
        ):  # covariances that scikit-learn takes for singular
            continue
        if estimator == "CategoricalNB":
            data = Data(np.rint(data.X / data.X.max(axis=0).clip(1) * 9).astype(np.int64), data.y, data.description)
        if estimator in ("Ridge", "LinearRegression"):
            data = Data(data.X, data.y.astype(np.float64), data.description)
            classes = 2
        more: dict[str, Any] = {"columns": "categories"} if estimator == "CategoricalNB" else {}
        if estimator in VARIANTS:
            more["variant"] = VARIANTS[estimator]
        n, d = data.X.shape
        yield name, problem(estimator, n, d, classes, **more), data


def predictors(entered: tuple[Contender, ...], data: Data) -> list[Contender]:
    """Ours and scikit-learn's first, fitted, to predict the first row."""
    chosen = [entered[0], *[each for each in entered if each.peer.name == "scikit-learn"][:1]]
    fitted = [each.build().fit(data.X, data.y) for each in chosen]
    builds = [partial(OneRow, model, data.X[:1]) for model in fitted]
    return [each.peer.contender("predict", build) for each, build in zip(chosen, builds, strict=True)]


def in_child(estimator: str, repeats: int) -> dict[str, Any]:
    """By what is timed and data set, the rows of all contenders."""
    found: dict[str, dict[str, Any]] = {"fit": {}, "predict": {}}
    for name, posed, data in cases(estimator):
        entered = contenders(posed, ("sag", "glum"))
        rows = alternate(entered, data, check(posed, data), limit(posed), repeats)
        found["fit"][name] = [asdict(row) for row in rows]
        rows = alternate(predictors(entered, data), data, lambda model: 0.0, 1.0, repeats)
        found["predict"][name] = [asdict(row) for row in rows]
    return found


@dataclass(frozen=True)
class SmallWorkload:
    id: str = "B19"
    title: str = "small data: fits, and predictions of one row"

    def run(self, settings: Settings) -> Result:
        result = Result([], data=", ".join(SETS).replace("_", " "), quality="that of the atlas")
        for estimator in FAMILIES:
            try:
                found = call(f"{__name__}:in_child", estimator=estimator, repeats=settings.repeats)
            except ChildFailed as error:
                result.rows.append(Row(estimator, "context", status=FAILED, note=one_line(str(error))))
                result.verdicts.append(Verdict(f"{estimator}: ≥ 1×", one_line(str(error)), False))
                continue
            for what, sets in found.items():
                least: list[tuple[float, str]] = []
                for name, stored in sets.items():
                    part = Result([Row(**row) for row in stored])
                    least.append(_least(part, name))
                    for row in part.rows:
                        row.name, row.role = f"{estimator}, {what}, {name}: {row.name}", "context"
                    result.rows += part.rows
                result.verdicts.append(verdict(f"{estimator}, {what}: ≥ 1× the best peer", least))
        return result


def verdict(goal: str, least: list[tuple[float, str]]) -> Verdict:
    """Whether the least ratio is 1 or more, or no peer is there to compare with; each data set's is shown."""
    shown = ", ".join(f"{text} {ratio:.2f}×" if isfinite(ratio) else f"{text} {ALONE}" for ratio, text in least)
    return Verdict(goal, shown, min(least)[0] >= 1.0)


def _least(part: Result, name: str) -> tuple[float, str]:
    """The ratio to the best peer and the name of the data set; 0 where ours misses the quality, ∞ where all peers do."""
    ours = part.ours
    if ours is None or ours.status != OK:
        return 0.0, f"{name.replace('_', ' ')} (ours: {ours.status if ours else 'not run'})"
    ratios = [ratio for row in part.rows if (ratio := part.ratio(row))]
    return min(ratios, default=inf), name.replace("_", " ")


WORKLOAD = SmallWorkload()
