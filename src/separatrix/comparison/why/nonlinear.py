"""Is linear enough? Gradient boosting on the same folds, for comparison and never recommended.

Trees find steps, curves and interactions by themselves. What they gain over the best linear model, fold by fold, is about what
linear rules leave on the table; where that is more than the margin and its error, splines and products are tried as a
candidate (curved.py). Reference: Friedman, Annals of Statistics 29, 2001.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from separatrix.comparison.measures import GREATER_IS_BETTER, SCORE_LABELS, Score, measure, standard_error
from separatrix.comparison.scores import Candidate
from separatrix.comparison.validation import Step, Task, Trial, cross_validate
from separatrix.comparison.why.curved import CURVED
from separatrix.data.block import Codes, Float
from separatrix.geometry.programmes import Deadline, OutOfTime, aside

LABEL = "gradient boosting, for comparison"
LINEAR = frozenset({"least-squares", "lda", "logistic-l1", "logistic", "bayesian-logistic", "perceptron", "linear-svm"})
MOST_ROWS, MOST_CLASSES, FEWEST_ROWS = 100_000, 20, 60
_WORTH_THREADS = 1_000_000  # numbers in the table


@dataclass(frozen=True)
class NonLinear:
    """How gradient boosting scored on the folds of a comparison."""

    scores: dict[str, Score]
    gain: float  # over the best linear model, by the score that ranks
    error: float  # the standard error of that
    worth: bool  # whether it is more than its error and the margin
    sentence: str


def boosted_scores(task: Task, step: Step) -> dict[str, Score] | None:
    """The scores of gradient boosting on the rows left out; None where there are too few or too many."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # a slow import

    n, k = len(task.codes), len(task.classes)
    if not FEWEST_ROWS <= n <= MOST_ROWS or k > MOST_CLASSES:
        return None
    proba = np.zeros((1, n, k))
    few = n * task.encoded.shape[1] < _WORTH_THREADS
    limit = Deadline(task.stage_seconds)
    for fold in range(task.n_folds):
        step(f"fold {fold + 1}: gradient boosting")
        part = task.part_of_fold(fold)
        X, X_left_out = part.of(CURVED)
        y = task.codes[part.inside]
        # Its own validation rows, a tenth, need two of every class.
        early = int(np.bincount(y)[np.unique(y)].min()) >= 20
        model = HistGradientBoostingClassifier(
            max_iter=200 if early else 60, early_stopping=early, random_state=task.seed
        )

        def learnt(
            _: Deadline, model: Any = model, X: Any = X, y: Codes = y, weights: Float | None = part.weights
        ) -> None:
            # Its threads wait for one another thousands of times, each time for long where other programs run.
            with threadpool_limits(1 if few else None, user_api="openmp"):
                model.fit(X, y, sample_weight=weights)

        aside(learnt, limit)
        proba[0][np.ix_(part.outside, model.classes_)] = model.predict_proba(X_left_out)
    judged, proba = task.judged, proba[:, task.predicted]
    answers = proba.argmax(axis=2)
    return measure(judged.codes, judged.folds[:1], answers, proba, task.loss, n_classes=k, weights=judged.weights)


def judged(scores: dict[str, Score], best: Candidate, by: str, n_folds: int, margin: float) -> NonLinear | None:
    """What it gains over the best linear model, in a sentence; None where they have no score in common."""
    if by not in scores or by not in best.scores:
        return None
    own, its = scores[by], best.scores[by]
    sign = -1.0 if by in GREATER_IS_BETTER else 1.0
    differences = sign * (its.folds[: len(own.folds)] - own.folds)
    gain, error = float(differences.mean()), standard_error(differences, n_folds)
    worth = gain > max(margin, error)
    label, figures = SCORE_LABELS[by], f"{gain:.2g} ± {error:.2g}"
    if worth:
        sentence = f"No: a non-linear model (gradient boosting) gains {figures} in {label} over {best.label}."
    elif gain > error:
        sentence = f"Nearly: a non-linear model (gradient boosting) gains {figures} in {label}, less than the margin."
    else:
        sentence = f"Yes: a non-linear model (gradient boosting) gains nothing ({label} {own}, against {its})."
    return NonLinear(scores, gain, error, worth, sentence)


def judge_non_linear(
    task: Task, ordered: list[Candidate], by: str, margin: float, step: Step
) -> tuple[NonLinear | None, Trial | None, dict[str, str]]:
    """What gradient boosting gains; where that is worth it, splines and products; and what failed."""
    try:
        scores = boosted_scores(task, step)
    except (ValueError, OutOfTime) as error:  # a remark on the families that fails must not stop the work
        return None, None, {LABEL: str(error)}
    linear = [one for one in ordered if one.family in LINEAR]
    if scores is None or not linear:
        return None, None, {}
    found = judged(scores, linear[0], by, task.n_folds, margin)
    if found is None or not found.worth:
        return found, None, {}
    trial, failures = curved_trial(task, step)
    return found, trial, failures


def curved_trial(task: Task, step: Step) -> tuple[Trial | None, dict[str, str]]:
    """Splines and products, cross-validated; or why that failed."""
    trial = Trial(CURVED, CURVED.build, np.zeros(task.folds.shape, dtype=np.intp), limit=Deadline(task.stage_seconds))
    failures = cross_validate(task, {CURVED.name: trial}, step)
    return (None if failures else trial), failures


def with_curved(found: NonLinear, candidate: Any, by: str) -> NonLinear:
    """The same, and what splines and products brought."""
    words = f" Splines and products of columns were tried, too: {SCORE_LABELS[by]} {candidate.scores[by]}."
    return replace(found, sentence=found.sentence + words)
