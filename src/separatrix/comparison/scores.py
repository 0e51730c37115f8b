"""What is measured on rows that a model has not seen, which model is best, and which are as good.

    log-loss     −(1/n) Σ log p(yᵢ|xᵢ)            accuracy   share of right classes
    cost         (1/n) Σ L[yᵢ, a(xᵢ)],  a(x) = argmin_a Σ_k L[k,a] p(k|x)
    calibration  Σ_b (n_b/n)|observed_b − predicted_b|, of all left-out rows together

The error of a mean over k folds is s/√k, s the standard deviation of the folds. Repeating the folds steadies the mean but adds
no rows, so k stays. The calibration error is no mean over folds (it grows as a fold shrinks): it is that of all rows, with the
error of the jackknife, which leaves out a fold at a time and for a mean gives s/√k again.

A candidate is tied with the best when the mean of its differences from the best, fold by fold, is at most the standard error
of that mean, and at most that of the best's own mean. Differences are taken within folds because a hard fold is hard for every
model. The second bound is for a model that fails in one fold: a difference D there makes a mean D/k with the error D/k. The
simplest of the tied is recommended, unless a still simpler one is ahead of it. Reference: Breiman et al., Classification and
Regression Trees, 1984, sect. 3.4.3 (the rule of one standard error); Efron and Tibshirani, An Introduction to the Bootstrap,
1993, eq. 11.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from separatrix.comparison.inspection import CoefficientIntervals, Outliers
from separatrix.comparison.planes import PlaneModel
from separatrix.comparison.table_model import TableModel
from separatrix.data.block import Codes, Float
from separatrix.decide.calibration import Reliability, expected_calibration_error
from separatrix.decide.losses import best_actions

SCORE_LABELS = {
    "cost": "cost",
    "log_loss": "log-loss",
    "accuracy": "accuracy",
    "calibration_error": "calibration error",
}
# Smaller figures are rounding errors and shown as 0; smaller differences, in parts, are of no importance.
_ROUNDING, _NEGLIGIBLE = 1e-12, 1e-6
_WHY_ACCURACY_DISAGREES = {
    "log_loss": "A few confident mistakes, often on outliers, ruin a log-loss and hardly change an accuracy.",
    "cost": "What mistakes cost is not how many there are.",
}


def plus_minus(mean: float, error: float) -> str:
    """A mean with its standard error, as text."""
    mean, error = (0.0 if abs(value) < _ROUNDING else value for value in (mean, error))
    return f"{mean:.4g} ± {error:.2g}"


@dataclass
class Score:
    """One measure of one candidate."""

    mean: float  # over the folds; for the calibration error that of all left-out rows together
    standard_error: float  # of the mean
    folds: Float  # the value in every fold, repeat after repeat

    def __str__(self) -> str:
        return plus_minus(self.mean, self.standard_error)


@dataclass
class Candidate:
    """A family, what it scored on rows that were left out, and its model of all rows."""

    family: str
    label: str
    simplicity: int  # the smaller the simpler
    scores: dict[
        str, Score
    ]  # accuracy; with probabilities log_loss and calibration_error, and cost where a loss was given
    fit_seconds: float  # to choose the penalty and to fit all rows
    tuned: dict[str, Any]  # what was chosen from all rows
    model: TableModel  # fitted to all rows
    certificate: str  # how far the fit can be from its optimum
    separability: str  # whether a linear rule separates the classes: of the data, hence the same for all
    predicted: Codes  # (n,), each row left out (in the first repeat); so are the next four
    proba: Float | None = None  # (n, n_classes)
    decision_scores: Float | None = None  # (n, n_classes), of a model without probabilities
    taken: Codes | None = None  # (n,) actions of least expected loss; None without a loss or without probabilities
    fold_models: list[TableModel] = field(default_factory=list)  # repeat after repeat
    fold_coefs: Float | None = None  # (folds, m, p) in the columns of `model`; 0 for a column that a fold did not have
    reliability: Reliability | None = None  # predicted probabilities and observed frequencies of the rows left out
    coefficients: CoefficientIntervals | None = None  # of a model that is linear in the encoded columns
    outliers: Outliers | None = None  # the rows farthest from every class, by a model that has densities
    plane_model: PlaneModel | str | None = None  # a sentence where that failed; None where there is no plane
    confusion: Codes | None = None  # (n_classes, n_classes) counts, where the predictions of single rows are not kept
    notes: list[str] = field(default_factory=list)  # what the fits warned of
    tied: bool = False  # whether it is as good as the best
    rank: int = 0  # 1 for the best

    @property
    def left_out_scores(self) -> Float | None:
        """Probabilities of the rows left out, or scores where there are none: the largest is the prediction."""
        return self.decision_scores if self.proba is None else self.proba


def standard_error(values: Float, n_folds: int) -> float:
    """s/√k of the values of every fold, for any number of repeats of the k folds."""
    return float(np.std(values, ddof=1) / np.sqrt(n_folds))


def measure(codes: Codes, folds: Codes, predicted: Codes, proba: Float | None, loss: Float | None) -> dict[str, Score]:
    """All scores of left-out predictions: for true classes (n,), folds and predicted classes (repeats, n), and probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.scores import measure
    >>> scores = measure(np.array([0, 1, 0, 1]), np.array([[0, 0, 1, 1]]), np.array([[0, 1, 1, 1]]), None, None)
    >>> print(scores["accuracy"])
    0.75 ± 0.25
    """
    n_folds = int(folds.max()) + 1
    parts = [(r, np.flatnonzero(folds[r] == k)) for r in range(len(folds)) for k in range(n_folds)]

    def over_folds(values: list[float]) -> Score:
        found = np.array(values)
        return Score(float(found.mean()), standard_error(found, n_folds), found)

    scores = {"accuracy": over_folds([float((predicted[r, at] == codes[at]).mean()) for r, at in parts])}
    if proba is None:
        return scores
    labels = np.arange(proba.shape[2])
    scores["log_loss"] = over_folds([float(log_loss(codes[at], proba[r, at], labels=labels)) for r, at in parts])
    scores["calibration_error"] = _calibration(codes, folds, proba, parts)
    if loss is not None:
        scores["cost"] = over_folds(
            [float(loss[codes[at], best_actions(proba[r, at], loss)].mean()) for r, at in parts]
        )
    return scores


def _calibration(codes: Codes, folds: Codes, proba: Float, parts: list[tuple[int, Codes]]) -> Score:
    labels = np.arange(proba.shape[2])

    def error(r: int, at: Any) -> float:
        return expected_calibration_error(codes[at], proba[r, at], classes=labels)

    n_folds = int(folds.max()) + 1
    pooled = np.mean([error(r, slice(None)) for r in range(len(folds))])
    without = np.array([[error(r, folds[r] != k) for k in range(n_folds)] for r in range(len(folds))])
    jackknife = np.sqrt((n_folds - 1) * without.var(axis=1).mean())
    return Score(float(pooled), float(jackknife), np.array([error(r, at) for r, at in parts]))


def rank(candidates: list[Candidate], by: str, n_folds: int) -> list[Candidate]:
    """The candidates best first, with `rank` and `tied` set; those without the score come last, by accuracy."""

    def key(candidate: Candidate) -> tuple[bool, float, int]:
        judged = by in candidate.scores
        value = _sign(by) * candidate.scores[by].mean if judged else -candidate.scores["accuracy"].mean
        return not judged, value, candidate.simplicity

    ordered = sorted(candidates, key=key)
    for place, candidate in enumerate(ordered):
        candidate.rank = place + 1
        candidate.tied = by in candidate.scores and _behind(candidate, ordered[0], by, n_folds)[2]
    return ordered


def _sign(by: str) -> float:
    return -1.0 if by == "accuracy" else 1.0


def _behind(candidate: Candidate, other: Candidate, by: str, n_folds: int) -> tuple[float, float, bool]:
    """How much worse than another, the standard error of that, and whether it is a tie."""
    own, its = candidate.scores[by], other.scores[by]
    differences = _sign(by) * (own.folds - its.folds)
    mean, error = float(differences.mean()), standard_error(differences, n_folds)
    return mean, error, mean <= max(min(error, its.standard_error), _negligible(own, its, by))


def _negligible(one: Score, other: Score, by: str) -> float:
    """A difference of no importance; costs have any unit, the other scores that of 1."""
    return _NEGLIGIBLE * max(abs(one.mean), abs(other.mean), 0.0 if by == "cost" else 1.0)


def _simpler_and_ahead(candidate: Candidate, ordered: list[Candidate], by: str) -> Candidate | None:
    """The best of the simpler candidates, where it has the better mean."""
    own = candidate.scores[by]
    for other in ordered:
        if other.simplicity < candidate.simplicity and by in other.scores:
            its = other.scores[by]
            return other if _sign(by) * (own.mean - its.mean) > _negligible(own, its, by) else None
    return None


def recommend(ordered: list[Candidate], by: str, n_folds: int) -> tuple[Candidate, str]:
    """The simplest of those tied with the best that no simpler one is ahead of, and why, in sentences."""
    best, score = ordered[0], SCORE_LABELS[by]
    tied = [candidate for candidate in ordered if candidate.tied]
    eligible = [candidate for candidate in tied if _simpler_and_ahead(candidate, ordered, by) is None]
    chosen = min(eligible, key=lambda candidate: candidate.simplicity)
    passed = [candidate for candidate in tied if candidate.simplicity < chosen.simplicity]
    if chosen is not best:
        mean, error, _ = _behind(chosen, best, by, n_folds)
        reason = (
            f"{chosen.label} is the simplest of the {len(tied) - len(passed)} candidates within one standard error of the "
            f"best: its {score} is {chosen.scores[by]}, that of the best, {best.label}, {best.scores[by]}, and the difference "
            f"over the folds {mean:.2g} ± {error:.2g}."
        )
    else:
        extreme = "highest" if by == "accuracy" else "lowest"
        reason = f"{best.label} has the {extreme} {score}, {best.scores[by]}, and no simpler candidate is as good"
        others = [candidate for candidate in ordered[1:] if by in candidate.scores and not candidate.tied]
        if less_simple := [candidate.label for candidate in tied if candidate.simplicity > best.simplicity]:
            reason += f" (within one standard error of it, but less simple: {', '.join(less_simple)})."
        elif others:
            mean, error, _ = _behind(others[0], best, by, n_folds)
            more = ", more than the standard error of the best" if mean <= error else ""
            reason += f": the next, {others[0].label}, is behind by {mean:.2g} ± {error:.2g} over the folds{more}."
        else:
            reason += "."
    for candidate in passed:
        ahead = _simpler_and_ahead(candidate, ordered, by)
        assert ahead is not None
        reason += f" Not {candidate.label}, which is within it too: {ahead.label} is simpler still and ahead of it."
    if chosen.family == "baseline" and len(ordered) > 1:
        reason += f" {_of_the_class_shares(chosen, ordered, by, n_folds)}"
    return chosen, reason[0].upper() + reason[1:]


def _of_the_class_shares(baseline: Candidate, ordered: list[Candidate], by: str, n_folds: int) -> str:
    """What it means that nothing better is recommended; a candidate may have the better accuracy all the same."""
    best = max(ordered, key=lambda candidate: candidate.scores["accuracy"].mean)
    behind, error, _ = _behind(baseline, best, "accuracy", n_folds)
    if behind <= 2.0 * error:  # the best of many accuracies is one standard error ahead by chance
        return "So nothing in these columns is shown to tell the classes apart."
    return (
        f"But the accuracy of {best.label} is {best.scores['accuracy']}, that of the class shares "
        f"{baseline.scores['accuracy']}: the scores disagree. {_WHY_ACCURACY_DISAGREES[by]}"
    )
