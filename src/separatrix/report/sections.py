"""The section of one model: its fit, its mistakes, its doubts, and the figures that show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.comparison.fitting import by_name, fit_sentence, proven_gap
from separatrix.comparison.inspection import N_LISTED, Outliers
from separatrix.comparison.measures import SCORE_LABELS, counted
from separatrix.comparison.planes import MOST_CURVES
from separatrix.comparison.scores import Candidate
from separatrix.data.block import Float
from separatrix.report import figures
from separatrix.report.coefficient_section import coefficient_table, forest
from separatrix.report.figures import Drawing
from separatrix.report.tables import PageTable, count, fixed, number, percent, row_table
from separatrix.report.why_section import importance_drawing
from separatrix.tables.findings import joined

if TYPE_CHECKING:
    from separatrix.comparison.comparison import Comparison
    from separatrix.comparison.streamed import StreamedComparison

CONFUSED = 0.2
UNDECIDED = 0.05
MOST_CLASSES = 30
_VERDICTS = {
    "complete": "separable by a linear rule",
    "quasi": "separable by a linear rule but for rows on the boundary",
    "overlap": "not separable by a linear rule",
}


def outlier_table(comparison: Comparison, far: Outliers, metric: str) -> PageTable:
    """The rows farthest from every class."""
    names = class_names(comparison)
    caption = (
        f"The {len(far.rows)} rows farthest from every class, by {metric}. The tail is how often a row of the nearest class "
        f"would lie so far out if the classes were Gaussian (χ², {count(far.degrees, 'degree')} of freedom)."
    )
    facts = [
        ("true class", [names[k] for k in comparison.codes[far.rows]], False),
        ("nearest class", [names[k] for k in far.nearest], False),
        ("distance", [fixed(d, 2) for d in far.distances], True),
        ("tail", [number(tail, 2) for tail in far.tails], True),
    ]
    return row_table(comparison, caption, far.rows.tolist(), facts)


def class_names(comparison: Comparison) -> list[str]:
    """The classes as text."""
    return [str(name) for name in comparison.classes]


@dataclass
class ModelSection:
    """One model, ready for the page."""

    anchor: str
    label: str
    scores: str
    tuned: list[tuple[str, str]]
    fit: list[tuple[str, str]]
    drawings: list[Drawing]
    leading: list[Drawing]  # those shown beside the confusion matrix of the recommended model
    confusion: PageTable | None
    actions: PageTable | None
    coefficients: PageTable | None
    mistakes: PageTable | None
    outliers: PageTable | None
    notes: list[str] = field(default_factory=list)
    of_rows: bool = True
    """Whether single rows were looked at."""


def model_section(comparison: Comparison, candidate: Candidate, most_points: int) -> ModelSection:
    """Everything about one candidate; its scatter plot draws at most so many rows."""
    codes, classes = comparison.codes, class_names(comparison)
    actions = classes if comparison.actions is None else [str(name) for name in comparison.actions]
    anchor, found = f"model-{candidate.family}", candidate.coefficients
    drawings, notes = _drawings(comparison, candidate, anchor, classes, most_points)
    best = candidate is comparison.recommended
    leading = [one for one in drawings if best and one.leading]
    taken = candidate.taken
    # Actions that are the predictions of the confusion matrix need no table of their own.
    same = taken is not None and actions == classes and bool((taken == candidate.predicted).all())
    metric, far = "the Mahalanobis distance of this model", candidate.outliers
    return ModelSection(
        anchor,
        candidate.label[:1].upper() + candidate.label[1:],
        _scores(candidate),
        [(str(name), _setting(given)) for name, given in candidate.tuned.items()],
        _fit_facts(candidate, comparison.classes),
        [one for one in drawings if one not in leading],
        leading,
        cross_table(codes, candidate.predicted, classes, classes, "predicted", comparison.weights),
        None if taken is None or same else cross_table(codes, taken, classes, actions, "do", comparison.weights),
        None if found is None else coefficient_table(found, classes),
        mistake_table(comparison, candidate),
        # Those of linear discriminant analysis are in the section on the data, for all models.
        None if far is None or candidate.family == "lda" else outlier_table(comparison, far, metric),
        _doubts(comparison, candidate) + candidate.notes + notes,
    )


def streamed_section(comparison: StreamedComparison, candidate: Candidate) -> ModelSection:
    """What is known of one candidate where no rows were kept."""
    classes = [str(name) for name in comparison.classes]
    confusion = (
        None if candidate.confusion is None else _count_table(candidate.confusion, classes, classes, "predicted")
    )
    return ModelSection(
        f"model-{candidate.family}",
        candidate.label[:1].upper() + candidate.label[1:],
        _scores(candidate),
        [],
        _fit_facts(candidate, comparison.classes),
        [],
        [],
        confusion,
        None,
        None,
        None,
        None,
        candidate.notes,
        of_rows=False,
    )


def _scores(candidate: Candidate) -> str:
    given = candidate.scores.items()
    return "; ".join(f"{SCORE_LABELS[name]} {fixed(s.mean)} ± {fixed(s.standard_error)}" for name, s in given)


def _drawings(
    comparison: Comparison, candidate: Candidate, anchor: str, classes: list[str], most_points: int
) -> tuple[list[Drawing], list[str]]:
    """The figures of one candidate, and notes on those that there are none of."""
    codes, scores, drawings, notes = comparison.codes, candidate.left_out_scores, [], []
    if candidate.importance and candidate is not comparison.recommended:
        drawings.append(importance_drawing(f"{anchor}-i", candidate.importance, candidate.proba is not None))
    if candidate.coefficients is not None:
        drawings.append(forest(f"{anchor}-c", candidate.coefficients, classes))
    few = len(classes) <= MOST_CURVES
    if not few:
        notes.append(f"With {len(classes)} classes, figures that show each of them are left out.")
    constant = scores is not None and _constant(scores, comparison.folds)
    if constant:
        notes.append(
            "Its scores are the same for every row of a fold, so there is nothing to draw curves or histograms of."
        )
    if scores is not None and few and not constant:
        drawings.append(figures.roc(f"{anchor}-r", codes, scores, classes))
        drawings.append(figures.precision_recall(f"{anchor}-p", codes, scores, classes))
        drawings.append(figures.score_distribution(f"{anchor}-s", codes, scores, classes, candidate.proba is not None))
    if candidate.reliability is not None:
        drawings.append(figures.reliability(f"{anchor}-l", candidate.reliability, classes))
    else:
        notes.append("This model gives no probabilities, so it has no log-loss and no reliability diagram.")
    plane, regions = comparison.plane, candidate.plane_model
    if isinstance(plane, str) or isinstance(regions, str):
        notes.append(str(plane if isinstance(plane, str) else regions))
    elif regions is not None:
        wrong = candidate.predicted != codes
        given = (codes, wrong, classes, most_points, candidate.predicted)
        drawings.append(figures.boundary(f"{anchor}-b", plane, regions, *given, number_of=comparison.rows.number_of))
    return drawings, notes


def _constant(scores: Float, folds: NDArray[np.intp]) -> bool:
    """Whether the scores depend on the fold alone: pooled over folds, curves of such scores show how the folds differ."""
    return all(bool((np.ptp(scores[folds == k], axis=0) <= 1e-12).all()) for k in np.unique(folds))


def cross_table(
    codes: NDArray[np.intp],
    given: NDArray[np.intp],
    classes: Sequence[str],
    answers: Sequence[str],
    verb: str,
    weights: NDArray[np.float64] | None = None,
) -> PageTable | None:
    """True classes by what was predicted or done, out of fold; None where there are so many that nobody would read it."""
    return _count_table(counted(codes, given, len(classes), len(answers), weights), classes, answers, verb)


def _count_table(counts: NDArray[Any], classes: Sequence[str], answers: Sequence[str], verb: str) -> PageTable | None:
    if max(len(classes), len(answers)) > MOST_CLASSES:
        return None
    rows, columns, square = counts.sum(axis=1), counts.sum(axis=0), verb == "predicted"
    shades = np.zeros((len(classes) + 1 + square, len(answers) + 1 + square))
    shades[: len(classes), : len(answers)] = counts / np.where(rows > 0, rows, 1)[:, None]
    cells = [[name, *map(_number, row), _number(total)] for name, row, total in zip(classes, counts, rows, strict=True)]
    cells.append(["all", *map(_number, columns), _number(counts.sum())])
    head = ["true class", *answers, "rows"]
    tips = {}
    if square:
        found = np.diag(counts)
        for k, row in enumerate(cells[:-1]):
            row.append(_share(found[k], rows[k]))
        cells[-1].append(_share(found.sum(), counts.sum()))
        cells.append(["precision", *(_share(n, total) for n, total in zip(found, columns, strict=True)), "", ""])
        head.append("recall")
        tips = {"recall": "Of the rows of this class, the share that was found. In the last row but one: of all rows."}
    what = "Confusion matrix" if square else "What is done at least expected cost"
    return PageTable(
        f"{what}, out of fold: a row for each true class, shaded by the share of its rows.",
        head,
        cells,
        [False, *[True] * (len(head) - 1)],
        shades.tolist(),
        totals=frozenset(range(len(classes), len(cells))),
        group=[("", 1), ("predicted" if square else "done", len(answers)), ("", len(head) - 1 - len(answers))],
        tips=tips,
        square=square,
    )


def _number(count: float) -> str:
    """A number of rows, or the sum of their weights."""
    return str(count) if isinstance(count, np.integer) else f"{count:.6g}"


def _share(part: float, whole: float) -> str:
    return percent(part / whole) if whole else "–"


def mistake_table(comparison: Comparison, candidate: Candidate) -> PageTable | None:
    """The mistakes with the largest wrong scores, out of fold; None if there are none."""
    codes, predicted, scores = comparison.codes, candidate.predicted, candidate.left_out_scores
    names = class_names(comparison)
    wrong = np.flatnonzero(predicted != codes)
    if not len(wrong):
        return None
    named = [("true class", codes), ("predicted", predicted)]
    if scores is None:
        worst, facts = wrong[:N_LISTED], []
        caption = f"The first {len(worst)} of {count(len(wrong), 'mistake')}, out of fold."
    else:
        behind = scores[wrong, codes[wrong]] - scores[wrong, predicted[wrong]]
        worst = wrong[np.argsort(behind, kind="stable")[:N_LISTED]]
        kind = "score" if candidate.proba is None else "probability"
        facts = [(f"{kind} of {what}", [fixed(s) for s in scores[worst, of[worst]]], True) for what, of in named]
        caption = (
            f"The {len(worst)} largest of {count(len(wrong), 'mistake')}, out of fold: those in which the {kind} of the "
            "predicted class was farthest above that of the true one."
        )
    both = [(what, [names[k] for k in of[worst]], False) for what, of in named]
    return row_table(comparison, caption, worst.tolist(), both + facts)


def _doubts(comparison: Comparison, candidate: Candidate) -> list[str]:
    """Masked classes, confused pairs, undecided rows: sentences."""
    codes, predicted, classes = comparison.codes, candidate.predicted, class_names(comparison)
    notes = []
    masked = [classes[k] for k in np.unique(codes) if not (predicted == k).any()]
    if masked:
        notes.append(
            f"Never predicted: {joined(masked)}. Where a linear rule masks a class between others, linear discriminant "
            "analysis or quadratic terms may bring it back."
        )
    for k in np.unique(codes):
        members = predicted[codes == k]
        for other in np.unique(members):
            share = float((members == other).mean())
            if other != k and share > CONFUSED:
                notes.append(
                    f"Confused: {int((members == other).sum())} of {count(len(members), 'row')} of {classes[k]} are predicted "
                    f"as {classes[other]} ({percent(share)})."
                )
    if candidate.proba is not None:
        two = np.sort(candidate.proba, axis=1)[:, -2:]
        undecided = np.flatnonzero(two[:, 1] - two[:, 0] <= UNDECIDED)
        if len(undecided):
            numbers = [str(comparison.rows.number_of(i)) for i in undecided[:N_LISTED]]
            listed = ", ".join(numbers) + (", …" if len(undecided) > N_LISTED else ".")
            notes.append(
                f"Undecided: in {count(len(undecided), 'row')} ({percent(len(undecided) / len(codes))}) the two largest "
                f"probabilities are within {UNDECIDED} of each other: {listed}"
            )
    return notes


def _setting(given: Any) -> str:
    return number(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else str(given)


def _fit_facts(candidate: Candidate, classes: NDArray[Any]) -> list[tuple[str, str]]:
    """Status, certificate and cost of the fit to all rows."""
    fit = getattr(candidate.model.estimator, "fit_", None)
    facts = [("classes", _VERDICTS.get(candidate.separability, candidate.separability))]
    if fit is None:
        return [("fit", candidate.certificate), *facts]
    facts = [("fit", by_name(fit_sentence(fit), classes)), *facts]
    if fit.certificate is not None:
        bound = "nothing bounds the distance to the optimum"
        if math.isfinite(fit.certificate.gap):
            relative = "" if proven_gap(fit) is None else f"; {candidate.certificate}"
            bound = f"{fit.certificate}{relative}"
        facts.append(("certificate", bound))
    cost = count(fit.passes, "pass", "passes") + " over the data"
    facts.append(("cost", cost + (f", {count(fit.iterations, 'iteration')}" if fit.iterations else "")))
    seconds = f"{number(fit.seconds)} for this fit, {number(candidate.fit_seconds)} with the choice of its parameters"
    return [*facts, ("seconds", seconds)]
