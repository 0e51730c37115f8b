"""A comparison of a table that is never held: folds by a hash of the row, statistics merged, scores added up.

    pass 1          what the columns are and how they are encoded (medians, levels, scales: from all rows, without the classes)
    pass 2          how many rows of every class each fold has
    pass 3          class moments by fold: discriminants and least squares of every fold are algebra on them
    pass 4, 5       the same for the counts of naive Bayes
    more            an iterative family is fitted fold by fold, the fold's rows with weight zero
    last pass       every family scores every row by the model that has not seen it: Σ −log p, Σ cost, Brier's sum, confusion
                    matrices and histograms of log-odds by fold, of which the AUC is: rows of one bin, 1/64 wide, tie

Penalties are not chosen: where rows do not fit into memory, those of the families' defaults hardly matter. What takes single
rows at hand is left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from separatrix.comparison.costs import as_loss
from separatrix.comparison.families import FAMILIES, ModelFamily, find_family
from separatrix.comparison.fitting import (
    Note,
    Steps,
    by_name,
    certificate_of,
    gathered,
    in_words,
    predictions,
    recorded,
    stoppable,
)
from separatrix.comparison.folds import FOLDS
from separatrix.comparison.listing import as_html, as_text, ranking
from separatrix.comparison.measures import (
    METRICS,
    Score,
    accuracy_of,
    balanced_accuracy,
    brier,
    check_metric,
    f1,
    practical_margin,
    standard_error,
)
from separatrix.comparison.scores import Candidate, rank, recommend, tie_rule
from separatrix.comparison.streamed_rows import ROWS_AT_HAND, RowsByFold, TrainingRows, counts_of, fit_shares, folds_of
from separatrix.comparison.table_model import TableModel
from separatrix.data.block import Block, Codes, Float
from separatrix.data.labels import as_names
from separatrix.decide.losses import best_actions
from separatrix.statistics.moments import ClassMoments
from separatrix.tables.schema import TableSchema
from separatrix.tables.table_source import TableBlock, TableSource

_BINS, _BINS_OF_ONE = 4096, 64.0  # of log-odds; beyond ±32, as of 1 − ε, are none
_OF_MOMENTS, _ITERATIVE = ("least-squares", "lda", "qda"), ("logistic-l1", "logistic")
_LEFT_OUT = {
    **ROWS_AT_HAND,
    "bayesian-logistic": "The evidence takes dozens of readings of the table for every fold.",
    "rda": "Its shrinkage is chosen by leaving out single rows.",
}
_NOTES = (
    "The table was read in a stream and never held, so separability, calibration, learning curves, outliers and figures of "
    "single rows are left out, and penalties have their defaults.",
    "Folds are drawn by a hash of the row: rows with the same values share a fold. Medians, levels and scales of the encoding "
    "are those of all rows.",
)


@dataclass(repr=False)
class StreamedComparison:
    """What a comparison of a table that was never held found: a `Comparison` without all that is about single rows."""

    schema: TableSchema
    classes: NDArray[Any]
    counts: Codes
    """(n_folds, n_classes) rows."""
    candidates: list[Candidate]
    failures: dict[str, str]
    recommended: Candidate
    reason: str
    ranked_by: str
    loss: Float | None
    actions: list[Any] | None
    table_name: str
    notes: list[str] = field(default_factory=list)
    separability: str = ""
    tie_rule: str = ""
    fold_kind = "hashed"

    @property
    def n_rows(self) -> int:
        """Rows with a class."""
        return int(self.counts.sum())

    @property
    def n_folds(self) -> int:
        """Of the cross-validation."""
        return len(self.counts)

    @property
    def class_counts(self) -> Codes:
        """(n_classes,) rows of every class."""
        return self.counts.sum(axis=0)

    @property
    def best(self) -> TableModel:
        """The recommended model, fitted to all rows."""
        return self.recommended.model

    def table(self) -> list[dict[str, Any]]:
        """One dictionary of plain values per candidate, the best first."""
        return ranking(self)

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)


@dataclass
class _Trial:
    """A family: its models of every fold and, last, of all rows."""

    family: ModelFamily
    models: list[Any]
    seconds: float
    notes: list[Note]


def compare_stream(
    source: TableSource,
    *,
    families: Sequence[str] | str | None = None,
    loss: Any = None,
    actions: Iterable[Any] | None = None,
    cv: int | None = None,
    random_state: int = 0,
    margin: float = 0.01,
    metric: str | None = None,
    progress: Callable[[str, float], None] | None = None,
    table_name: str = "",
) -> StreamedComparison:
    """`compare` for a table in files, or of Dask or Spark, that is not held: the parameters are those of `compare`."""
    if isinstance(families, str):
        families = [name.strip() for name in families.split(",")]
    wanted = [find_family(name) for name in dict.fromkeys(FAMILIES if families is None else families) if name]
    failures = {family.name: _LEFT_OUT[family.name] for family in wanted if family.name in _LEFT_OUT}
    wanted = [family for family in wanted if family.name not in _LEFT_OUT]
    if not wanted:
        raise ValueError(f"No such family can be compared in a stream; these can: {', '.join(_streamed())}.")
    check_metric(metric, METRICS)
    cv = FOLDS if cv is None else cv
    with stoppable() as check:
        steps = Steps(progress, check, len(wanted) + cv * sum(family.name in _ITERATIVE for family in wanted) + 3)
        steps("what the columns are")
        schema = source.labelled().encoding.schema
        classes = as_names(schema.classes)
        matrix, names = as_loss(loss, classes, actions)
        work = _Work(source, classes, cv, random_state, steps)
        trials = []
        for family in wanted:
            steps(family.label)
            try:
                trials.append(work.trial(family))
            except Exception as error:  # whatever it is, the other families go on
                failures[family.name] = in_words(error, classes)
        if not trials:
            reasons = " ".join(f"{name}: {reason}" for name, reason in failures.items())
            raise ValueError(f"No family could be fitted to these data. {reasons}")
        steps("scores of the rows left out")
        found = work.scored(trials, matrix)
        candidates = [work.candidate(trial, found[trial.family.name], matrix, names) for trial in trials]
        steps.end()
    by = metric or ("cost" if matrix is not None else "log_loss")
    by = by if any(by in candidate.scores for candidate in candidates) else "accuracy"
    counts = work.counts.sum(axis=0)
    least = practical_margin(margin, counts / counts.sum(), by, matrix)
    ordered = rank(candidates, by, cv, least)
    chosen, reason = recommend(ordered, by, cv, least)
    return StreamedComparison(
        schema,
        classes,
        work.counts,
        ordered,
        failures,
        chosen,
        reason,
        by,
        matrix,
        names,
        table_name,
        list(_NOTES),
        tie_rule=tie_rule(by, least, margin),
    )


def _streamed() -> list[str]:
    return [name for name in FAMILIES if name not in _LEFT_OUT]


class _Work:
    """The passes of a comparison; what families share is made once."""

    def __init__(self, source: TableSource, classes: NDArray[Any], n_folds: int, seed: int, step: Steps) -> None:
        if n_folds < 2:
            raise ValueError(f"cv={n_folds}: give at least two folds.")
        self._source, self._n_folds, self._seed, self._step = source, n_folds, seed, step
        self._classes, self._codes = classes, np.arange(len(classes))
        self._by_fold = RowsByFold(source, n_folds, seed)
        self._moments: ClassMoments | None = None
        self._reading = 0.0  # seconds that the moments took
        step("rows of every fold")
        self.counts: Codes = self._by_fold.count().reshape(n_folds, len(classes))
        if not self.counts.sum(axis=1).all():
            raise ValueError(
                f"A fold has no row: the table has too few different rows for {n_folds} folds by a hash. Take fewer folds, "
                "or compare the table in memory."
            )

    def trial(self, family: ModelFamily) -> _Trial:
        """The models of a family, one for every fold and one for all rows."""
        start = perf_counter()
        fit = self._fits(family)
        seconds = self._reading if family.name in _OF_MOMENTS else perf_counter() - start
        done = [recorded(partial(fit, fold), {}) for fold in (*range(self._n_folds), None)]
        notes = [note for one in done for note in one.notes]
        return _Trial(family, [one.estimator for one in done], seconds + done[-1].seconds, notes)

    def _fits(self, family: ModelFamily) -> Callable[[int | None], Any]:
        """How the model without a fold is fitted."""
        if family.name == "baseline":
            kept = np.arange(self._n_folds)
            return lambda fold: fit_shares(family.build(), self.counts[kept != fold].sum(axis=0))
        if family.name in _ITERATIVE:

            def iterate(fold: int | None) -> Any:
                if fold is not None:
                    self._step(f"fold {fold + 1}: {family.label}")
                return family.build().fit(TrainingRows(self._source, fold, self._n_folds, self._seed))

            return iterate
        if family.name in _OF_MOMENTS:
            if self._moments is None:
                start = perf_counter()
                self._moments = ClassMoments.of_source(self._by_fold, "per_class")
                self._reading = perf_counter() - start
            moments, model = self._moments, family.build()
            return lambda fold: deepcopy(model).fit_statistic(self._by_fold.without(moments, fold), self._codes)
        model = family.build().fit(TrainingRows(self._source))
        counted, names = model.statistic_of(self._by_fold), model.feature_names_in_
        return lambda fold: (
            model
            if fold is None
            else deepcopy(model).fit_statistic(self._by_fold.without(counted, fold), self._codes, feature_names=names)
        )

    def scored(self, trials: list[_Trial], loss: Float | None) -> dict[str, _Found]:
        """What every family did on the rows of each fold."""
        n_classes, n_folds, seed = len(self._codes), self._n_folds, self._seed
        models = {one.family.name: (one.models, one.family.encoded) for one in trials}

        def of_block(block: Block) -> dict[str, _Found]:
            assert isinstance(block, TableBlock)
            folds = np.where(counts_of(block), folds_of(block, n_folds, seed), -1)
            found = {name: _Found.nothing(n_folds, n_classes) for name in models}
            for k in np.unique(folds[folds >= 0]):
                at = np.flatnonzero(folds == k)
                codes, rows, frame = block.codes[at], block.X[at], block.rows.take(at).frame()
                for name, (fitted, encoded) in models.items():
                    predicted, proba = predictions(fitted[k], rows if encoded else frame)
                    found[name].add(k, codes, predicted, proba, loss)
            return found

        return self._source.labelled().reduce(of_block, _added)

    def candidate(self, trial: _Trial, found: _Found, loss: Float | None, actions: list[Any] | None) -> Candidate:
        """The scores of a family, and its model of all rows."""
        family, estimator, encoding = trial.family, trial.models[-1], self._source.encoding
        by_fold = found.scores(self.counts, _has_probabilities(estimator), loss is not None)
        scores = {
            name: Score(float(values.mean()), standard_error(values, self._n_folds), values)
            for name, values in by_fold.items()
        }
        loss = loss if _has_probabilities(estimator) else None
        model = TableModel(
            encoding.schema,
            encoding.encoder if family.encoded else None,
            estimator,
            family=family.name,
            loss=loss,
            actions=None if loss is None else actions,
            scores={name: {"mean": score.mean, "error": score.standard_error} for name, score in scores.items()},
        )
        return Candidate(
            family=family.name,
            label=family.label,
            simplicity=family.simplicity,
            scores=scores,
            fit_seconds=trial.seconds,
            tuned={},
            model=model,
            certificate=certificate_of(estimator, None, self._codes),
            separability="not examined",
            predicted=np.empty(0, dtype=np.intp),
            confusion=found.confusion.sum(axis=0),
            notes=[by_name(note, self._classes) for note in gathered(trial.notes)],
        )


def _has_probabilities(estimator: Any) -> bool:
    """Whether the model has probabilities."""
    return hasattr(estimator, "predict_proba")


def _added(one: dict[str, _Found], other: dict[str, _Found]) -> dict[str, _Found]:
    return {name: found + other[name] for name, found in one.items()}


@dataclass
class _Found:
    """What a family did on the rows of each fold, as sums."""

    sums: Float  # (n_folds, 3) of −log p, Brier's distances, costs
    confusion: Codes  # (n_folds, K, K)
    bins: Codes  # (n_folds, K, 2, bins): of the log-odds of each class the rows of others, and its own

    @classmethod
    def nothing(cls, n_folds: int, n_classes: int) -> _Found:
        """Before the first row."""
        confusion = np.zeros((n_folds, n_classes, n_classes), np.intp)
        return cls(np.zeros((n_folds, 3)), confusion, np.zeros((n_folds, n_classes, 2, _BINS), np.intp))

    def __add__(self, other: _Found) -> _Found:
        return _Found(self.sums + other.sums, self.confusion + other.confusion, self.bins + other.bins)

    def add(self, k: int, codes: Codes, predicted: Codes, proba: Float | None, loss: Float | None) -> None:
        """Rows of fold k, in place."""
        np.add.at(self.confusion[k], (codes, predicted), 1)
        if proba is None:
            return
        least = np.finfo(np.float64).eps
        sure = np.clip(proba, least, 1.0 - least)  # as scikit-learn's log_loss
        self.sums[k, 0] -= np.log(sure[np.arange(len(codes)), codes]).sum()
        self.sums[k, 1] += brier(codes, proba) * len(codes)
        if loss is not None:
            self.sums[k, 2] += loss[codes, best_actions(proba, loss)].sum()
        at = np.clip((logit(sure) * _BINS_OF_ONE + _BINS // 2).astype(np.intp), 0, _BINS - 1)
        for j in range(proba.shape[1]):
            np.add.at(self.bins[k, j], ((codes == j).astype(np.intp), at[:, j]), 1)

    def scores(self, counts: Codes, probabilities: bool, cost: bool) -> dict[str, Float]:
        """Every score of each fold."""
        tables = {"accuracy": accuracy_of, "balanced_accuracy": balanced_accuracy, "f1": f1}
        found = {name: np.array([of(table) for table in self.confusion]) for name, of in tables.items()}
        if probabilities:
            means = (self.sums / counts.sum(axis=1)[:, None]).T
            found |= {"log_loss": means[0], "brier": means[1], "auc": np.array([_area(one) for one in self.bins])}
            found |= {"cost": means[2]} if cost else {}
        return found


def _area(bins: Codes) -> float:
    """The mean area of the classes under their curves, of histograms (K, 2, bins); rows of a bin tie."""
    areas = []
    for others, own in (bins[1:] if len(bins) == 2 else bins).astype(np.float64):
        if own.sum() and others.sum():
            below = np.cumsum(others) - 0.5 * others
            areas.append(float(own @ below / (own.sum() * others.sum())))
    return float(np.mean(areas)) if areas else 0.5
