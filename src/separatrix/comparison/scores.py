"""Which model is best on rows that it has not seen, and which are as good.

A candidate is tied with the best when the mean of its differences from the best, fold by fold, is at most the standard error
of that mean, and at most that of the best's own mean. Differences are taken within folds because a hard fold is hard for every
model. The second bound is for a model that fails in one fold: a difference D there makes a mean D/k with the error D/k.
It is also tied when the difference does not matter in practice: when it is at most the margin, a share of what guessing loses
(measures.py).

The rule of one standard error chooses how flexible the model is, from three levels: class shares, linear rules, curved rules.
The lowest level with a tied candidate is taken. Within a level it would choose badly: on a small table the error is so large
that an unpenalised model is tied with a penalised one, and that the class shares are tied with everything. So a logistic
regression that is ahead of the class shares by the margin rules them out, and the simplest of those within the
margin of the level's best is recommended. What is behind a simpler candidate never is. Where probabilities rank, models that
have none of their own are ranked by calibrated scores and not recommended. Reference: Breiman et al., Classification and
Regression Trees, 1984, sect. 3.4.3 (the rule of one standard error).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from separatrix.comparison.families import FIRST_CURVED, SHRUNK
from separatrix.comparison.inspection import CoefficientIntervals, Outliers
from separatrix.comparison.measures import GREATER_IS_BETTER, OF_PROBABILITIES, SCORE_LABELS, Score, standard_error
from separatrix.comparison.planes import PlaneModel
from separatrix.comparison.table_model import TableModel
from separatrix.comparison.why.importance import ColumnImportance, PartialEffect
from separatrix.data.block import Codes, Float
from separatrix.decide.calibration import Reliability

# Smaller differences, in parts, are rounding errors.
_NEGLIGIBLE = 1e-6
_WHY_ACCURACY_DISAGREES = {
    "log_loss": "A few confident mistakes, often on outliers, ruin a log-loss and hardly change an accuracy.",
    "cost": "What mistakes cost is not how many there are.",
}


@dataclass
class Candidate:
    """A family, what it scored on rows that were left out, and its model of all rows."""

    family: str
    label: str
    simplicity: int  # the smaller the simpler
    scores: dict[str, Score]  # by the names of `SCORE_LABELS`; cost where a loss was given
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
    importance: list[ColumnImportance] = field(default_factory=list)  # of the columns, the largest first
    effects: list[PartialEffect] = field(default_factory=list)  # of its most important columns
    calibrated: bool = False  # whether it has no probabilities, and its log-loss is that of calibrated scores
    tied: bool = False  # whether it is as good as the best
    rank: int = 0  # 1 for the best

    @property
    def left_out_scores(self) -> Float | None:
        """Probabilities of the rows left out, or scores where there are none: the largest is the prediction."""
        return self.decision_scores if self.proba is None else self.proba


def rank(candidates: list[Candidate], by: str, n_folds: int, margin: float = 0.0) -> list[Candidate]:
    """The candidates best first, with `rank` and `tied` set; those without the score come last, by accuracy."""

    def key(candidate: Candidate) -> tuple[bool, float, int]:
        judged = by in candidate.scores
        value = _sign(by) * candidate.scores[by].mean if judged else -candidate.scores["accuracy"].mean
        return not judged, value, candidate.simplicity

    ordered = sorted(candidates, key=key)
    best = _eligible(ordered, by)[0]
    for place, candidate in enumerate(ordered):
        candidate.rank = place + 1
        candidate.tied = by in candidate.scores and _behind(candidate, best, by, n_folds, margin).tied
    return ordered


def _eligible(ordered: list[Candidate], by: str) -> list[Candidate]:
    """Those that may be recommended: where probabilities rank, those that have some."""
    return [one for one in ordered if not (one.calibrated and by in OF_PROBABILITIES)] or ordered


def _sign(by: str) -> float:
    return -1.0 if by in GREATER_IS_BETTER else 1.0


@dataclass(frozen=True)
class _Distance:
    """How much worse one candidate is than another, the standard error of that, and whether it is a tie by either rule."""

    mean: float
    error: float
    by_error: bool
    by_margin: bool

    @property
    def tied(self) -> bool:
        return self.by_error or self.by_margin

    def __str__(self) -> str:
        return f"{self.mean:.2g} ± {self.error:.2g}"


def _behind(candidate: Candidate, other: Candidate, by: str, n_folds: int, margin: float = 0.0) -> _Distance:
    own, its = candidate.scores[by], other.scores[by]
    differences = _sign(by) * (own.folds - its.folds)
    mean, error = float(differences.mean()), standard_error(differences, n_folds)
    by_error = mean <= max(min(error, its.standard_error), _negligible(own, its, by))
    return _Distance(mean, error, by_error, mean <= margin)


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


def _level(candidate: Candidate) -> int:
    """0 for the class shares, 1 for the linear rules, 2 for the curved ones."""
    return 0 if candidate.family == "baseline" else 1 if candidate.simplicity < FIRST_CURVED else 2


def _simplest_within_the_margin(tied: list[Candidate], by: str, n_folds: int, margin: float) -> Candidate:
    """Of the lowest level that these have, which are in order of their scores."""
    level = min(_level(one) for one in tied)
    own = [one for one in tied if _level(one) == level]
    least = [max(margin, _negligible(one.scores[by], own[0].scores[by], by)) for one in own]
    near = [one for one, most in zip(own, least, strict=True) if _behind(one, own[0], by, n_folds).mean <= most]
    return min(near, key=lambda one: one.simplicity)


def _nothing_found(shares: Candidate, allowed: list[Candidate], by: str, n_folds: int, margin: float) -> bool:
    """Whether the class shares are within one standard error of the best, and no shrunk one is ahead by the margin.

    In noise a shrunk linear rule is not ahead of the shares, so that being ahead by the margin is evidence even
    where a small table makes the error large. For other rules, and for a gain within the margin, it takes the error.
    """
    if not _behind(shares, allowed[0], by, n_folds).by_error:
        return False
    linear = [one for one in allowed if one.family in SHRUNK and by in one.scores]
    least = [max(margin, _negligible(shares.scores[by], one.scores[by], by)) for one in linear]
    gains = [_behind(shares, one, by, n_folds).mean for one in linear]
    return all(gain <= most for gain, most in zip(gains, least, strict=True))


def recommend(ordered: list[Candidate], by: str, n_folds: int, margin: float = 0.0) -> tuple[Candidate, str]:
    """The simplest of those as good as the best of the lowest level that is tied with the best, and why, in sentences."""
    allowed = _eligible(ordered, by)
    best, score = allowed[0], SCORE_LABELS[by]
    tied = [candidate for candidate in allowed if candidate.tied]
    of_use = [one for one in tied if one.family != "baseline" or _nothing_found(one, allowed, by, n_folds, margin)]
    eligible = [candidate for candidate in of_use if _simpler_and_ahead(candidate, allowed, by) is None]
    chosen = _simplest_within_the_margin(eligible, by, n_folds, margin)
    passed = [one for one in of_use if one.simplicity < chosen.simplicity and one not in eligible]
    simpler = [one for one in eligible if one.simplicity < chosen.simplicity]
    if chosen is not best:
        distance = _behind(chosen, best, by, n_folds, margin)
        near = "within one standard error of" if distance.by_error else "as good, for practical purposes, as"
        which = "simplest" if not simpler else "best linear one, for practical purposes,"
        reason = (
            f"{chosen.label} is the {which} of the {len(of_use) - len(passed)} candidates {near} the "
            f"best: its {score} is {chosen.scores[by]}, that of the best, {best.label}, {best.scores[by]}, and the difference "
            f"over the folds {distance}"
        )
        reason += "." if distance.by_error else f", which is less than the margin of {margin:.2g}."
    else:
        extreme = "highest" if by in GREATER_IS_BETTER else "lowest"
        as_good = "comes within the margin" if simpler else "is as good"
        reason = f"{best.label} has the {extreme} {score}, {best.scores[by]}, and no simpler candidate {as_good}"
        others = [candidate for candidate in allowed[1:] if by in candidate.scores and not candidate.tied]
        if less_simple := [candidate for candidate in tied if candidate.simplicity > best.simplicity]:
            by_error = all(_behind(one, best, by, n_folds).by_error for one in less_simple)
            words = "within one standard error of it" if by_error else "as good for practical purposes"
            reason += f" ({words}, but less simple: {', '.join(one.label for one in less_simple)})."
        elif others:
            distance = _behind(others[0], best, by, n_folds)
            more = ", more than the standard error of the best" if distance.mean <= distance.error else ""
            reason += f": the next, {others[0].label}, is behind by {distance} over the folds{more}."
        else:
            reason += "."
    for candidate in simpler:
        distance = _behind(candidate, chosen, by, n_folds)
        reason += (
            f" {candidate.label[0].upper()}{candidate.label[1:]} is simpler, but behind by {distance} over the folds."
        )
    for candidate in passed:
        ahead = _simpler_and_ahead(candidate, allowed, by)
        assert ahead is not None
        reason += f" Not {candidate.label}, which is within it too: {ahead.label} is simpler still and ahead of it."
    if best is not ordered[0]:
        reason += f" {ordered[0].label[0].upper()}{ordered[0].label[1:]} is ahead of it, but gives no probabilities of its own."
    if chosen.family == "baseline" and len(ordered) > 1:
        reason += f" {_of_the_class_shares(chosen, ordered, by, n_folds)}"
    return chosen, reason[0].upper() + reason[1:]


def _of_the_class_shares(baseline: Candidate, ordered: list[Candidate], by: str, n_folds: int) -> str:
    """What it means that nothing better is recommended; a candidate may have the better accuracy all the same."""
    best = max(ordered, key=lambda candidate: candidate.scores["accuracy"].mean)
    behind = _behind(baseline, best, "accuracy", n_folds)
    if behind.mean <= 2.0 * behind.error:  # the best of many accuracies is one standard error ahead by chance
        return "So nothing in these columns is shown to tell the classes apart."
    return (
        f"But the accuracy of {best.label} is {best.scores['accuracy']}, that of the class shares "
        f"{baseline.scores['accuracy']}: the scores disagree. {_WHY_ACCURACY_DISAGREES.get(by, '')}".rstrip()
    )


def tie_rule(by: str, margin: float, share: float) -> str:
    """Which candidates count as good as the best, in a sentence for under the table."""
    score = SCORE_LABELS[by]
    guess = f"what guessing falls short of 1 in {score}" if by in GREATER_IS_BETTER else f"the {score} of guessing"
    rule = "As good as the best: behind by no more than one standard error of the difference over the folds"
    if margin > 0.0:
        rule += f", or by no more than {margin:.2g}, which is {100 * share:g} % of {guess} (--margin)"
    beside = "the margin" if margin > 0.0 else "rounding"
    return (
        f"{rule}. Recommended are the class shares if they are as good and no logistic regression is ahead by more than "
        f"{beside}, else a linear rule if one is as good, else a curved one: the simplest within {beside} of the best of "
        "its kind."
    )
