"""Which model is best on rows that it has not seen, which are as good, and which to take.

Of two candidates d is the mean over the k folds of their differences within each, since a hard fold is hard for every model,
and e = c·s/√k its error, s their standard deviation, c² = 1 + k/(k − 1): folds learn from rows that they share, so that their
differences vary less than those of fresh tables would. m is the margin, a share of what guessing loses (measures.py).

    ahead of another        d > max(m, min(e, the error of its own mean), u)  shown to be better, and by enough to matter
    tied with the best      the best is not ahead of it
    as good as another      d + e + u ≤ m                                     shown to be worse by nothing that matters

min(e, ·) is for a model that fails in one fold: a difference D there makes a mean D/k with the error D/k.

u is for a model that is sure of itself and happened to be right. Where log-losses rank, it is by how much more than the other
one it would pay for one row more, among the n, that is of the class each of them holds to be the second: Laplace's rule of
succession, (0 + 1)/n, for mistakes that no fold has seen. In a few hundred rows folds cannot tell that they are rarer.

The recommendation starts from a reference, the better of the two logistic regressions that shrink: they assume nothing about
how columns are distributed, and go to the class shares where these say nothing. It moves to a candidate that is ahead, and
again, until none is. The class shares take its place where it gains no more than the error; for a regression that shrinks, and
for what is ahead of it, a gain above the margin is enough, since in noise there is none, and so is an association of columns
and classes that chance does not explain (association.py), unless the shares are ahead by more than e. At last a simpler one
that is as good takes its place. Both only where they are tied with the best. A lower score alone moves nothing: the least of
ten means is least by chance where all are alike, and a family is not safer for being simple, since few parameters are paid for
with assumptions. Without the reference the start is the best linear rule.

Where probabilities rank, models that have none of their own are ranked by calibrated scores and not recommended.
Reference: Nadeau and Bengio, Machine Learning 52, 2003 (c, their corrected variance, with n₂/n₁ = 1/(k − 1)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from separatrix.comparison.families import FIRST_CURVED, SHRUNK
from separatrix.comparison.inspection import CoefficientIntervals, Outliers
from separatrix.comparison.measures import GREATER_IS_BETTER, OF_PROBABILITIES, SCORE_LABELS, Score, standard_error
from separatrix.comparison.planes import PlaneModel
from separatrix.comparison.stages.association import LEVEL
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
    mistake: float | None = (
        None  # what one more row would add to its log-loss, if it were of the class held to be the second
    )
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
    """How much worse one candidate is than another, the error of that, and whether it is a tie by either rule."""

    mean: float
    error: float
    by_error: bool
    by_margin: bool
    by_mistake: bool

    @property
    def tied(self) -> bool:
        return self.by_error or self.by_margin or self.by_mistake

    def __str__(self) -> str:
        return f"{self.mean:.2g} ± {self.error:.2g}"


def _behind(candidate: Candidate, other: Candidate, by: str, n_folds: int, margin: float = 0.0) -> _Distance:
    own, its = candidate.scores[by], other.scores[by]
    differences = _sign(by) * (own.folds - its.folds)
    wider = float(np.sqrt(1.0 + n_folds / (n_folds - 1.0)))
    mean, error = float(differences.mean()), wider * standard_error(differences, n_folds)
    by_error = mean <= max(min(error, wider * its.standard_error), _negligible(own, its, by))
    return _Distance(mean, error, by_error, mean <= margin, 0.0 < mean <= _unseen(other, candidate, by))


def _unseen(candidate: Candidate, other: Candidate, by: str) -> float:
    """u: by how much more than the other a candidate would pay for a mistake that no fold has seen."""
    if by != "log_loss" or candidate.mistake is None or other.mistake is None:
        return 0.0
    return max(0.0, candidate.mistake - other.mistake)


def _negligible(one: Score, other: Score, by: str) -> float:
    """A difference of no importance; costs have any unit, the other scores that of 1."""
    return _NEGLIGIBLE * max(abs(one.mean), abs(other.mean), 0.0 if by == "cost" else 1.0)


def _level(candidate: Candidate) -> int:
    """0 for the class shares, 1 for the linear rules, 2 for the curved ones."""
    return 0 if candidate.family == "baseline" else 1 if candidate.simplicity < FIRST_CURVED else 2


def _reference(judged: list[Candidate]) -> Candidate:
    """Where a recommendation starts, of candidates in the order of their scores: see the head of the file."""
    shrunk = [one for one in judged if one.family in SHRUNK]
    linear = [one for one in judged if _level(one) == 1]
    return (shrunk or linear or [one for one in judged if one.family != "baseline"] or judged)[0]


def _leader(judged: list[Candidate], start: Candidate, by: str, n_folds: int, margin: float) -> Candidate:
    """From the start to the best of those ahead, until none is."""
    here = start
    while ahead := [one for one in judged if _level(one) and not _behind(here, one, by, n_folds, margin).tied]:
        here = ahead[0]
    return here


def _nothing_found(shares: Candidate, leader: Candidate, shrinks: bool, by: str, n_folds: int, margin: float) -> bool:
    """Whether the leader gains no more over the class shares than chance may give."""
    behind = _behind(shares, leader, by, n_folds, max(margin, _negligible(shares.scores[by], leader.scores[by], by)))
    return behind.by_error and (behind.by_margin or not shrinks)


def _within_error(candidate: Candidate, other: Candidate, by: str, n_folds: int) -> bool:
    """Whether a candidate is behind another by no more than the error of the difference, be it that of one fold."""
    behind = _behind(candidate, other, by, n_folds)
    return behind.mean <= behind.error


def _as_good(candidate: Candidate, leader: Candidate, by: str, n_folds: int, margin: float) -> bool:
    """Whether a candidate is shown to be worse by nothing that matters."""
    behind = _behind(candidate, leader, by, n_folds)
    most = max(margin, _negligible(candidate.scores[by], leader.scores[by], by))
    return behind.mean + behind.error + _unseen(candidate, leader, by) <= most


def recommend(
    ordered: list[Candidate], by: str, n_folds: int, margin: float = 0.0, chance: float | None = None
) -> tuple[Candidate, str]:
    """The candidate to take, and why, in sentences: see the head of the file.

    `chance` is the probability of the association of columns and classes by chance, where it is known.
    """
    judged = [one for one in _eligible(ordered, by) if by in one.scores] or ordered
    reference = _reference(judged)
    chosen = leader = _leader(judged, reference, by, n_folds, margin)
    shares = next((one for one in judged if one.family == "baseline"), None)
    shrinks = reference.family in SHRUNK
    # "Not ahead" does not carry over from one to the next: what takes the leader's place is itself tied with the best.
    stands = shares is not None and shares is not leader and shares.tied
    unsure = shares is not None and stands and _nothing_found(shares, leader, shrinks, by, n_folds, margin)
    associated = shrinks and chance is not None and chance < LEVEL
    if shares is not None and unsure and not (associated and _within_error(leader, shares, by, n_folds)):
        chosen = shares
    else:
        simpler = [one for one in judged if _level(one) and one.tied and one.simplicity < leader.simplicity]
        chosen = min(
            (one for one in simpler if _as_good(one, leader, by, n_folds, margin)),
            key=lambda one: one.simplicity,
            default=leader,
        )
    sentences = list(_reasons(judged, reference, leader, chosen, by, n_folds, margin))
    if unsure and chosen is not shares:
        sentences.append(
            "Folds do not tell it from the class shares, but columns and classes are associated (a test of all columns "
            f"together, {_p(chance)})."
        )
    if judged[0] is not ordered[0]:
        sentences.append(f"{_first(ordered[0])} is ahead of it, but gives no probabilities of its own.")
    if chosen.family == "baseline" and len(ordered) > 1:
        sentences.append(_of_the_class_shares(chosen, ordered, by, n_folds))
    return chosen, " ".join(sentences)


def _p(chance: float | None) -> str:
    """A probability of chance, as it is written."""
    return f"p = {chance:.2g}" if chance is not None and chance >= 1e-3 else "p < 0.001"


def _first(candidate: Candidate) -> str:
    """The label of a candidate, as a sentence begins."""
    return f"{candidate.label[0].upper()}{candidate.label[1:]}"


def _reasons(
    judged: list[Candidate],
    reference: Candidate,
    leader: Candidate,
    chosen: Candidate,
    by: str,
    n_folds: int,
    margin: float,
) -> Iterator[str]:
    """Why the chosen one, in sentences: how it stands to the best, to the reference, and to what is simpler or ahead of it."""
    best, score = judged[0], SCORE_LABELS[by]
    and_margin = f" and the margin of {margin:.2g}" if margin > 0.0 else ""
    enough = f"the error{and_margin}"
    if chosen is best:
        yield f"{_first(chosen)} has the {'highest' if by in GREATER_IS_BETTER else 'lowest'} {score}, {best.scores[by]}."
    else:
        yield (
            f"{_first(chosen)} has a {score} of {chosen.scores[by]}; that of the best, {best.label}, is {best.scores[by]}, and "
            f"the difference over the folds {_behind(chosen, best, by, n_folds)}."
        )
    if chosen.family == "baseline" and chosen is not leader:
        if leader is not best:
            gain = _behind(chosen, leader, by, n_folds)
            yield f"{_first(leader)} gains {gain}." if gain.mean > 0.0 else f"{_first(leader)} gains nothing ({gain})."
        return
    if leader is not reference:
        ahead_by = _behind(reference, leader, by, n_folds)
        passed = enough if ahead_by.mean > ahead_by.error else f"the error of its own {score}{and_margin}"
        yield f"{_first(leader)} is ahead of {reference.label} by {ahead_by}, more than {passed}."
    if chosen is not leader:
        behind = _behind(chosen, leader, by, n_folds)
        how = f"behind by {behind}, which hardly matters"
        if behind.mean < 0.0:
            how = f"ahead by {-behind.mean:.2g} ± {behind.error:.2g}"
        yield f"{_first(chosen)} is simpler than {leader.label} and as good: {how}."
    else:
        ahead = [one for one in judged[: judged.index(chosen)] if _level(one)]
        distances = [_behind(chosen, one, by, n_folds, margin) for one in ahead]
        unsure = [one.label for one, d in zip(ahead, distances, strict=True) if d.by_error or d.by_margin]
        if unsure:
            yield f"Nothing is shown to be better, by more than {enough}: not {', '.join(unsure)}."
        for one, distance in zip(ahead, distances, strict=True):
            if one.label not in unsure:
                yield (
                    f"{_first(one)} is ahead by {distance}, but so sure of its answers that one wrong one more, in as many "
                    "rows, would undo it."
                )
        for one in (
            one
            for one in judged
            if _level(one) and one.simplicity < chosen.simplicity and one.tied and one not in ahead
        ):
            yield f"{_first(one)} is simpler, but behind by {_behind(one, chosen, by, n_folds)}."
        others = [one for one in judged if _level(one) and not one.tied]
        if chosen is best and others and others[0] is judged[1]:
            behind = _behind(others[0], best, by, n_folds)
            more = ", more than the error of the best" if behind.mean <= behind.error else ""
            yield f"The next, {others[0].label}, is behind by {behind} over the folds{more}."


def _of_the_class_shares(baseline: Candidate, ordered: list[Candidate], by: str, n_folds: int) -> str:
    """What it means that nothing better is recommended; a candidate may have the better accuracy all the same."""
    best = max(ordered, key=lambda candidate: candidate.scores["accuracy"].mean)
    gains = best.scores["accuracy"].folds - baseline.scores["accuracy"].folds
    if gains.mean() <= 2.0 * standard_error(
        gains, n_folds
    ):  # the best of many accuracies is one standard error ahead by chance
        return "So nothing in these columns is shown to tell the classes apart."
    return (
        f"But the accuracy of {best.label} is {best.scores['accuracy']}, that of the class shares "
        f"{baseline.scores['accuracy']}: the scores disagree. {_WHY_ACCURACY_DISAGREES.get(by, '')}".rstrip()
    )


def tie_rule(by: str, margin: float, share: float, chance: float | None = None) -> str:
    """Which candidates count as good as the best, in a sentence for under the table."""
    score = SCORE_LABELS[by]
    guess = f"what guessing falls short of 1 in {score}" if by in GREATER_IS_BETTER else f"the {score} of guessing"
    rule = "As good as the best: behind by no more than the error of the difference over the folds, which share rows"
    if margin > 0.0:
        rule += f", or by no more than {margin:.2g}, which is {100 * share:g} % of {guess} (--margin)"
    mistake = " and than one confident mistake more would cost" if by == "log_loss" else ""
    beside = "the margin" if margin > 0.0 else "rounding"
    tested = "" if chance is None else f" and columns and classes are associated no more than by chance ({_p(chance)})"
    return (
        f"{rule}. Recommended is logistic regression, unless another is ahead of it by more than both{mistake}; the class "
        f"shares, if it gains no more than {beside} and the error{tested}; or a simpler one that is behind by no more than "
        f"{beside}, error included."
    )
