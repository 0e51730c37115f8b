"""All families on one table: the same folds for all, one ranking, one recommendation.

Read the table once; in every fold, learn encoding and penalty from its training part and predict what was left out; rank by
what mistakes cost, or by the log-loss; fit all rows again with every family. The measures and the rule of one standard error
are in scores.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.comparison.candidate import finished
from separatrix.comparison.costs import as_loss, rule_in_words
from separatrix.comparison.evaluation import ModelEvaluation, evaluate
from separatrix.comparison.families import families_of, ordered_families
from separatrix.comparison.fitting import Steps, stoppable
from separatrix.comparison.folds import FOLDS, Related, draw_folds
from separatrix.comparison.inputs import read_for_comparison
from separatrix.comparison.inspection import Outliers, discriminating_columns
from separatrix.comparison.listing import as_html, as_text, ranking
from separatrix.comparison.measures import OF_PROBABILITIES, check_metric, practical_margin
from separatrix.comparison.planes import Plane
from separatrix.comparison.scores import Candidate, rank, recommend, tie_rule
from separatrix.comparison.separation import beside_the_baseline, examine
from separatrix.comparison.stages.learning import LEARNING_SHARES, learning_curve
from separatrix.comparison.stages.words import steps_of_words, with_words
from separatrix.comparison.streamed import StreamedComparison, compare_stream
from separatrix.comparison.table_model import TableModel
from separatrix.comparison.validation import Task, cross_validate, start_trials
from separatrix.comparison.why.evidence import outliers_of, plane_of
from separatrix.comparison.why.explanation import RowExplanation, explain_rows
from separatrix.comparison.why.nonlinear import NonLinear, judge_non_linear, with_curved
from separatrix.data.block import Codes, Float
from separatrix.data.dispatch import is_elsewhere
from separatrix.data.labels import as_names
from separatrix.data.source import Source
from separatrix.tables.columns import ColumnSchema
from separatrix.tables.encoder import TableEncoder
from separatrix.tables.preparation import RareClass
from separatrix.tables.rows import TableRows
from separatrix.tables.scan_engines import table_of
from separatrix.tables.schema import TableSchema

STAGE_SECONDS = 60.0
"""How long each family, and each other stage, may take unless more is asked for."""
_SEPARABILITY_SECONDS = 10.0


@dataclass
class Comparison:
    """What `compare` found. Printing it gives the ranked table and the reasons.

    Parameters
    ----------
    rows : TableRows
        The columns that were learnt from, rows with a target only.
    schema : TableSchema
        What each column means, and the findings about the data.
    codes : ndarray of shape (n,)
        The class of every row, as a place in `classes`.
    classes : ndarray of shape (n_classes,)
    folds : ndarray of shape (n,)
        The fold that leaves out each row (in the first repeat).
    candidates : list of Candidate
        The best first.
    failures : dict
        Families that were left out, each with the reason.
    recommended : Candidate
        Logistic regression, unless another is shown to be better, or a simpler one to be as good (scores.py).
    reason : str
        Why, with the figures.
    ranked_by : {"cost", "log_loss", "accuracy", "auc", "balanced_accuracy", "f1", "brier"}
    loss : ndarray of shape (n_classes, n_actions) or None
    actions : list or None
        Names of the columns of the loss.
    separability : str
        Whether a linear rule separates the classes, in a sentence.
    learning_curve : dict
        Of the recommended family: "score" (its name), "sizes", lists of "train_mean", "train_error", "test_mean",
        "test_error", and "given_up", a sentence where it took too long.
    encoder : TableEncoder
        Learnt from all rows.
    encoded : ndarray of shape (n, n_features)
        All rows as numbers, as the encoder gives them.
    columns : tuple of ColumnSchema
        The columns to show of a row: those in which the classes differ most, where there are many.
    plane : Plane or str
        The encoded rows in the plane in which the classes differ most, or a sentence why there is none.
    outliers : Outliers or str
        The rows farthest from every class under the pooled covariance, or a sentence why there are none.
    table_name : str
        The name of the file, if there was one.
    notes : list of str
        What else should be known.
    tie_rule : str
        Which candidates count as good as the best.
    holdout : ModelEvaluation or None
        The recommended model on rows that were set aside.
    nonlinear : NonLinear or None
        Gradient boosting on the same folds, when all families are compared: whether linear is enough.
    weights : ndarray of shape (n,) or None
        How often each row counts.
    fold_kind : {"stratified", "forward"}
        Forward in time, each fold is predicted from those before it; rows that none predicts are not among `rows`.
    explained : list of (str, int, RowExplanation)
        The surest mistake and the most doubtful row: what, its place in `rows`, and why the recommended model decides so.
    """

    rows: TableRows
    schema: TableSchema
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    folds: NDArray[np.intp]
    candidates: list[Candidate]
    failures: dict[str, str]
    recommended: Candidate
    reason: str
    ranked_by: str
    loss: Float | None
    actions: list[Any] | None
    separability: str
    learning_curve: dict[str, Any]
    encoder: TableEncoder
    encoded: Float
    columns: tuple[ColumnSchema, ...]
    plane: Plane | str
    outliers: Outliers | str
    table_name: str
    notes: list[str] = field(default_factory=list)
    tie_rule: str = ""
    holdout: ModelEvaluation | None = None
    nonlinear: NonLinear | None = None
    weights: Float | None = None
    fold_kind: str = "stratified"
    explained: list[tuple[str, int, RowExplanation]] = field(default_factory=list)

    @property
    def best(self) -> TableModel:
        """The recommended model, fitted to all rows."""
        return self.recommended.model

    @property
    def n_rows(self) -> int:
        """Rows with a class."""
        return len(self.codes)

    @property
    def n_folds(self) -> int:
        """Of each repeat."""
        return int(self.folds.max()) + 1

    @property
    def class_counts(self) -> Codes:
        """(n_classes,) rows of every class."""
        return np.bincount(self.codes, minlength=len(self.classes))

    def table(self) -> list[dict[str, Any]]:
        """One dictionary of plain values per candidate, the best first.

        Returns
        -------
        list of dict
        """
        return ranking(self)

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)


def compare(
    data: Any,
    target: Any,
    *,
    families: Sequence[str] | str | None = None,
    loss: Any = None,
    actions: Iterable[Any] | None = None,
    cv: int | None = None,
    n_repeats: int = 1,
    random_state: int = 0,
    drop: Iterable[str] = (),
    use: Iterable[str] = (),
    types: Mapping[str, str] | None = None,
    group: str | None = None,
    weight: str | None = None,
    time: str | None = None,
    rare_class: RareClass | None = None,
    ordered: Sequence[Any] | str | None = None,
    stage_seconds: float = STAGE_SECONDS,
    margin: float = 0.01,
    metric: str | None = None,
    holdout: Any = None,
    unfit: Callable[[TableModel], str | None] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Comparison | StreamedComparison:
    """Compare all families of linear classifiers on a table, and recommend one.

    Parameters
    ----------
    data : pandas, polars or pyarrow table, path of a file, or array X; data frame of Dask or Spark, or source of a table
        Numbers, flags, categories, and holes. Tables of Dask and Spark, and sources (`scan_parquet`), are never held: folds are
        drawn by a hash of the row, sums by fold are merged where the rows are, and what is about single rows is left out.
    target : str or array-like of shape (n,)
        The column to predict, or the labels of the rows of X. Rows without one do not count.
    families : sequence of str, or names in a string with commas between them, optional
        Some of `separatrix.comparison.families.FAMILIES`; all by default.
    loss : array-like of shape (n_classes, n_actions), mapping, table or path, optional
        What an action costs, given the true class: a matrix in the order of the sorted classes, or, matched by label,
        {class: {action: cost}}, a Series of one cost per class, or a table or file with the class in its index or first column
        and the actions in the others. Candidates are then ranked by cost.
    actions : iterable, optional
        Names of the columns of a loss given as a matrix; by default they are the classes.
    cv : int, optional
        Stratified folds, fewer where a class has fewer rows. By default 5, and up to 10 for fewer than 100 rows, of which 5
        would leave too few to learn from.
    n_repeats : int, default=1
        How often all folds are drawn.
    random_state : int, default=0
        Everything random depends on it alone.
    drop, use : iterable of str, optional
        Columns that are not learnt from, or the only ones that are.
    types : dict of str to {"numeric", "categorical", "target", "text", "boolean", "date"}, optional
        What columns are, where that is known better than it can be seen; of a date its parts are used, and "target" is
        categorical with each category encoded by the classes of its training rows, as columns of more than 51 are; of "text"
        the words are read, as they are of a column of sentences.
    group : str, optional
        A column that says which rows belong together, such as a patient: they share a fold, and it is not learnt from.
    weight : str, optional
        A column that says how often each row counts, and is not learnt from: in fits, penalties and scores a row of weight 2 is
        the row twice, both in one fold. Fills, importances, and which categories have features, are by rows.
    time : str, optional
        A column of numbers or dates, which is not learnt from: every fold is predicted from the rows before it. The first rows
        are predicted by none, and the comparison is of the others.
    rare_class : {"drop", "merge"}, optional
        What becomes of classes with fewer rows than folds: their rows are not used, or they are one class "(other)".
    ordered : sequence of labels, optional
        The classes from the lowest to the highest, if they have an order: ordered logistic regression is a candidate then.
    stage_seconds : float, default=60
        How long each family may take over all folds, and again over all rows, and each other stage; what is given up is named.
    margin : float, default=0.01
        A difference that does not matter in practice: a share of what guessing loses by the score that ranks. A candidate
        within it of the best is as good, and a simpler one that surely is within it is recommended.
    metric : {"log_loss", "accuracy", "auc", "balanced_accuracy", "f1", "brier"}, optional
        What ranks the candidates; by default the cost where a loss is given, else the log-loss.
    holdout : float, table or path, optional
        Rows on which nothing is learnt or chosen, for a last look at the recommended model: a share of every class, of whole
        groups where rows have some, or another table.
    unfit : callable, optional
        Of a fitted model the reason not to use it, or None; such families are left out, with the reason.
    progress : callable, optional
        Called often as ``progress(label, fraction)``.

    Returns
    -------
    Comparison, or StreamedComparison of a table that is never held

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import compare
    >>> iris = load_iris(as_frame=True).frame
    >>> found = compare(iris, "target", families=["baseline", "lda", "qda"])
    >>> [candidate.family for candidate in found.candidates]
    ['lda', 'qda', 'baseline']
    >>> found.recommended.family, found.best.predict(iris.head(2)).tolist()
    ('lda', [0, 0])
    """
    columns: dict[str, Any] = {"drop": drop, "use": use, "types": types, "group": group, "rare_class": rare_class}
    columns |= {"weight": weight, "time": time}
    if isinstance(data, Source) or is_elsewhere(data):
        if holdout is not None:
            raise ValueError("A table that is never held has no rows set aside; evaluate the model on another table.")
        if asked := next((name for name, value in {**columns, "ordered": ordered}.items() if value), None):
            raise ValueError(
                f"{asked} is for tables that are held; choose columns and rows before the table is scanned."
            )
        if n_repeats != 1:
            raise ValueError(f"n_repeats={n_repeats}: the folds of a table that is never held are drawn once.")
        options: dict[str, Any] = {"loss": loss, "actions": actions, "cv": cv or FOLDS, "random_state": random_state}
        options |= {"margin": margin, "metric": metric}
        return compare_stream(table_of(data, target), families=families, progress=progress, **options)
    wanted = families_of(families)
    if not (isinstance(random_state, Integral) and 0 <= random_state <= 2**32 - n_repeats):
        raise ValueError(
            f"random_state={random_state!r}: give a whole number from 0 to {2**32 - n_repeats}, to have the same folds again."
        )
    check_metric(metric)
    with warnings.catch_warnings(record=True) as caught, stoppable() as check:
        warnings.simplefilter("always")
        read = read_for_comparison(data, target, fewest=cv or FOLDS, holdout=holdout, seed=int(random_state), **columns)
        schema, rows, codes = read.schema, read.rows, read.codes
        classes, seed = as_names(schema.classes), int(random_state)
        matrix, names = as_loss(loss, classes, actions)
        if time is not None and isinstance(holdout, float):
            raise ValueError("Rows are not set aside at random beside folds forward in time; another table may be.")
        numbers, notes = draw_folds(codes, classes, cv, n_repeats, seed, read.groups, read.times)
        if weight is not None:
            aside = "" if read.aside is None else " The rows that were set aside count once each."
            notes.append(f"A row counts as often as column {weight!r} says, in fits and scores alike.{aside}")
        given = (numbers, matrix, names, seed, stage_seconds, read.weights, Related(read.groups, read.times))
        task = Task(rows, schema, codes, classes, *given)
        if ordered is not None:
            wanted += ordered_families(ordered, classes.tolist())
            notes.append("Coefficients of ordered logistic regression are those of being in a higher class.")
        trials, failures, substituted = start_trials(wanted, task)
        fits = task.folds.shape[0] * task.n_folds * len(trials) + len(trials) + (families is None) * task.n_folds
        steps = Steps(progress, check, fits + len(LEARNING_SHARES) * task.n_folds + 1 + steps_of_words(task))
        task, given_up = with_words(task, steps)
        notes += given_up
        steps("separability")
        verdict, sentence = examine(task, min(stage_seconds, _SEPARABILITY_SECONDS))
        failures |= cross_validate(task, trials, steps)
        candidates = []
        for trial in trials.values():
            steps(f"all rows: {trial.family.label}")
            candidates += finished(task, trial, verdict, failures, unfit)
        if not candidates:
            reasons = " ".join(f"{name}: {reason}" for name, reason in failures.items())
            raise ValueError(f"No family could be fitted to these data. {reasons}")
        by = metric or ("cost" if task.loss is not None else "log_loss")
        if by in ("cost", *OF_PROBABILITIES) and all(candidate.proba is None for candidate in candidates):
            by = "accuracy"
            if task.loss is not None:
                notes.append(
                    "The loss is not used: expected costs need probabilities, which no candidate has. Add a family that has "
                    "them, such as logistic."
                )
        judged = task.judged
        counts = np.bincount(judged.codes, judged.weights, minlength=len(classes))
        least = practical_margin(margin, counts / counts.sum(), by, task.loss)
        ordered = rank(candidates, by, task.n_folds, least)
        reference = None
        if families is None:
            reference, curved, failed = judge_non_linear(task, ordered, by, least, steps)
            failures |= failed
            if reference is not None and curved is not None and unfit is None:
                trials[curved.family.name] = curved
                if more := finished(task, curved, verdict, failures):
                    reference = with_curved(reference, more[0], by)
                    ordered = rank(candidates + more, by, task.n_folds, least)
        chosen, reason = recommend(ordered, by, task.n_folds, least, task.chance)
        curve = learning_curve(task, trials[chosen.family], steps)
        plane, outliers = plane_of(task), outliers_of(task, candidates)
        steps.end()
    return Comparison(
        rows=judged.rows,
        schema=task.schema,
        codes=judged.codes,
        classes=task.classes,
        folds=judged.folds[0],
        candidates=ordered,
        failures=failures,
        recommended=chosen,
        reason=reason,
        ranked_by=by,
        loss=task.loss,
        actions=task.actions,
        separability=beside_the_baseline(verdict, sentence) if chosen.family == "baseline" else sentence,
        learning_curve=curve,
        encoder=task.encoder,
        encoded=judged.encoded,
        columns=discriminating_columns(task.schema, judged.encoded, task.encoder.origin_, judged.codes),
        plane=plane,
        outliers=outliers,
        table_name=read.name,
        notes=[
            *filter(None, [rule_in_words(task.loss, task.actions, task.classes)]),
            *read.notes,
            *notes,
            *substituted,
            *filter(None, [curve["given_up"]]),
            *dict.fromkeys(str(one.message) for one in caught),
        ],
        tie_rule=tie_rule(by, least, margin, task.chance),
        nonlinear=reference,
        explained=explain_rows(chosen, judged.rows, judged.codes),
        weights=judged.weights,
        fold_kind="forward" if task.forward else "stratified",
        holdout=None if read.aside is None else evaluate(chosen.model, read.aside),
    )
