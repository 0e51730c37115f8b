"""What is kept of every candidate for those who want to see why: reliability, coefficients, importances, outliers, regions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from separatrix.comparison.families import ModelFamily
from separatrix.comparison.inspection import (
    Outliers,
    coefficient_intervals,
    find_outliers,
    pooled_outliers,
    rank_within_classes,
)
from separatrix.comparison.planes import MOST_CURVES, Plane, fit_in_plane
from separatrix.comparison.scores import Candidate
from separatrix.comparison.validation import Task
from separatrix.comparison.why.importance import partial_effects, permutation_importance
from separatrix.decide.calibration import reliability_diagram
from separatrix.geometry.programmes import OutOfTime, aside

MOST_EFFECTS = 6
_Answer = TypeVar("_Answer")
_SECONDS = 20.0  # that pictures of one candidate may take


def inspect_candidate(task: Task, candidate: Candidate, family: ModelFamily) -> None:
    """Keep with a candidate what a report shows of it; what its extra fits warn of concerns the pictures alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            aside(lambda _: _inspect(task, candidate, family), min(task.stage_seconds, _SECONDS))
        except OutOfTime as error:
            candidate.notes.append(f"Its pictures are not complete. {error}")


def _inspect(task: Task, candidate: Candidate, family: ModelFamily) -> None:
    whole, task = task, task.judged
    estimator, codes, n_classes = candidate.model.estimator, task.codes, len(task.classes)
    if candidate.proba is not None:
        candidate.reliability = reliability_diagram(
            codes, candidate.proba, classes=np.arange(n_classes), sample_weight=task.weights
        )
    if candidate.fold_coefs is not None:
        names, folds = task.encoder.feature_names_, candidate.fold_coefs
        given = (whole.encoded, whole.codes, whole.weights)
        candidate.coefficients = coefficient_intervals(candidate.family, estimator, names, folds, *given)
    if candidate.model.encoder is not None and hasattr(estimator, "mahalanobis"):
        X = whole.whole.of(family)[0][whole.predicted]
        rank = task.rank if X.shape == task.encoded.shape else rank_within_classes(X, codes)
        candidate.outliers = find_outliers(estimator, X, rank)
    if isinstance(task.plane, Plane) and n_classes <= MOST_CURVES:
        candidate.plane_model = fit_in_plane(task.plane, codes, estimator, n_classes)
    if candidate.family != "baseline":
        models = candidate.fold_models[: task.n_folds]
        candidate.importance = permutation_importance(models, task.rows, codes, task.folds[0], task.seed)
        listed = {column.name: column for column in task.schema.used}
        wanted = [listed[one.column] for one in candidate.importance[:MOST_EFFECTS] if one.mean > 0.0]
        candidate.effects = partial_effects(candidate.model, models, task.rows, wanted, seed=task.seed)


def plane_of(task: Task) -> Plane | str:
    """The rows in the plane in which the classes differ most, or why there is none."""
    return _in_time(task, lambda: task.judged.plane, "The plane in which the classes differ most was not found.")


def outliers_of(task: Task, candidates: list[Candidate]) -> Outliers | str:
    """The rows farthest from every class under the pooled covariance, or why there are none."""
    known = next((one.outliers for one in candidates if one.family == "lda"), None)
    if known is not None:
        return known
    judged = task.judged
    return _in_time(
        task,
        lambda: pooled_outliers(judged.encoded, judged.codes, judged.rank),
        "Distances between rows and classes were not measured.",
    )


def _in_time(task: Task, work: Callable[[], _Answer], instead: str) -> _Answer | str:
    try:
        return aside(lambda _: work(), min(task.stage_seconds, _SECONDS))
    except OutOfTime as error:
        return f"{instead} {error}"
