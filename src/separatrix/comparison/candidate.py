"""A family that went through the folds, as a candidate: its scores, and its model of all rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from separatrix.bayes.importance import HEAVY
from separatrix.comparison.costs import class_costs
from separatrix.comparison.fitting import by_name, certificate_of, gathered, in_words, train
from separatrix.comparison.measures import measure, one_mistake
from separatrix.comparison.scores import Candidate
from separatrix.comparison.table_model import TableModel
from separatrix.comparison.validation import Task, Trial, aligned_coefs
from separatrix.comparison.why.evidence import inspect_candidate
from separatrix.decide.losses import best_actions


def finished(
    task: Task,
    trial: Trial,
    verdict: str,
    failures: dict[str, str],
    unfit: Callable[[TableModel], str | None] | None = None,
) -> list[Candidate]:
    """A trial as a candidate with what is kept for those who want to see why; none where that fails, and then the reason."""
    try:
        candidate = candidate_of(task, trial, verdict)
    except Exception as error:  # whatever it is, the other families go on
        failures[trial.family.name] = in_words(error, task.classes)
        return []
    inspect_candidate(task, candidate, trial.family)
    if unfit is not None and (reason := unfit(candidate.model)) is not None:
        failures[trial.family.name] = reason
        return []
    return [candidate]


def candidate_of(task: Task, trial: Trial, verdict: str) -> Candidate:
    """The scores of a trial, and its model of all rows."""
    family, loss = trial.family, None if trial.proba is None else task.loss
    X = task.whole.of(family)[0]
    given: dict[str, Any] = {"limit": task.stage_seconds, "weights": task.weights, "related": task.related}
    trained = train(family, trial.build, X, task.codes, task.seed, **given)
    judged, at = task.judged, task.predicted
    predicted = trial.predicted[:, at]
    probas, decision_scores = (None if one is None else one[:, at] for one in (trial.proba, trial.decision_scores))
    found = (predicted, probas, class_costs(task.loss, task.actions, task.classes) if loss is None else loss)
    scores = measure(judged.codes, judged.folds, *found, decision_scores, len(task.classes), judged.weights)
    proba = None if probas is None else probas[0]
    model = TableModel(
        task.schema,
        task.whole.encoder_of(family),
        trained.estimator,
        family=family.name,
        loss=loss,
        actions=None if loss is None else task.actions,
        scores={name: {"mean": score.mean, "error": score.standard_error} for name, score in scores.items()},
    )
    model.training = task.profile
    return Candidate(
        family=family.name,
        label=family.label,
        simplicity=family.simplicity,
        scores=scores,
        fit_seconds=trained.seconds,
        tuned=trained.parameters,
        model=model,
        certificate=certificate_of(trained.estimator, X, task.codes),
        separability=verdict,
        predicted=predicted[0],
        proba=proba,
        decision_scores=None if decision_scores is None else decision_scores[0],
        calibrated=proba is None and decision_scores is not None,
        mistake=None if proba is None else one_mistake(proba, judged.weights),
        taken=None if proba is None or loss is None else best_actions(proba, loss),
        fold_models=trial.models,
        fold_coefs=aligned_coefs(trial.models, task.encoder.feature_names_),
        notes=[
            *task.whole.remarks(family),
            *(by_name(note, task.classes) for note in gathered(trial.notes + trained.notes)),
            *_of_the_posterior(trained.estimator),
        ],
    )


def _of_the_posterior(estimator: Any) -> list[str]:
    """What a posterior is where Laplace's Gaussian is not near it, as for classes that a plane separates."""
    return [str(estimator.fit_.detail)] if getattr(estimator, "pareto_k_", 0.0) > HEAVY else []
