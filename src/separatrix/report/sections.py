"""What the report says of one model: its fit, its mistakes, its doubts, and the figures that show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from sklearn.base import clone

from separatrix.comparison.fitting import by_name, fit_sentence
from separatrix.comparison.scores import SCORE_LABELS
from separatrix.data.block import Float
from separatrix.models.discriminant.linear_discriminant import LinearDiscriminantAnalysis
from separatrix.report import figures
from separatrix.report.coefficient_section import coefficient_table, coefficients, forest
from separatrix.report.figures import Drawing
from separatrix.report.planes import Plane, boundary, discriminant_plane
from separatrix.report.tables import LARGEST, Table, count, fixed, number, percent, row_table, telling_columns
from separatrix.tables.encoder import TableEncoder
from separatrix.tables.findings import joined

CONFUSED = 0.2
UNDECIDED = 0.05
MOST_CLASSES, MOST_CURVES = 30, 12
_VERDICTS = {
    "complete": "separable by a linear rule",
    "quasi": "separable by a linear rule but for rows on the boundary",
    "overlap": "not separable by a linear rule",
}


@dataclass(frozen=True)
class Ground:
    """What all models are shown on: the rows as numbers, their classes by name, the plane, the columns worth showing."""

    comparison: Any
    encoded: Float
    classes: list[str]
    columns: list[Any]
    plane: Plane | str
    rank: int

    @classmethod
    def of(cls, comparison: Any) -> Ground:
        fitted = [candidate.model.encoder for candidate in comparison.candidates if candidate.model.encoder is not None]
        encoder = fitted[0] if fitted else TableEncoder(comparison.schema).fit(comparison.rows)
        X, codes = encoder.transform(comparison.rows), comparison.codes
        columns = telling_columns(comparison.schema, X, encoder.origin_, codes)
        means = np.stack(
            [X[codes == k].mean(axis=0) if (codes == k).any() else X.mean(axis=0) for k in range(codes.max() + 1)]
        )
        rank = int(np.linalg.matrix_rank(X - means[codes]))
        return cls(
            comparison, X, [str(name) for name in comparison.classes], columns, discriminant_plane(X, codes), rank
        )

    @property
    def actions(self) -> list[str]:
        """Names of what can be done, where losses were given."""
        return self.classes if self.comparison.actions is None else [str(name) for name in self.comparison.actions]

    def rows(self, caption: str, at: Sequence[int], facts: Sequence[tuple[str, Sequence[str], bool]]) -> Table:
        """Some rows with their values; says so where columns are left out."""
        used = sum(column.kind != "left_out" for column in self.comparison.schema.columns)
        if len(self.columns) < used:
            caption += f" The {len(self.columns)} of {used} columns in which the classes differ most."
        return row_table(caption, self.comparison.rows, at, self.columns, facts)

    def outliers(self, model: Any, what: str) -> Table:
        """The rows farthest from every class, by the distances of a Gaussian model."""
        squares = model.mahalanobis(self.encoded)
        nearest = squares.min(axis=1)
        far = np.argsort(-nearest, kind="stable")[:LARGEST].tolist()
        tails = chi2.sf(nearest[far], self.rank)
        caption = (
            f"The {len(far)} rows farthest from every class, by {what}. The tail is how often a row of the nearest class would "
            f"lie so far out if the classes were Gaussian (χ², {count(self.rank, 'degree')} of freedom)."
        )
        facts = [
            ("true class", [self.classes[self.comparison.codes[i]] for i in far], False),
            ("nearest class", [self.classes[k] for k in squares[far].argmin(axis=1)], False),
            ("distance", [fixed(d, 2) for d in np.sqrt(nearest[far])], True),
            ("tail", [number(tail, 2) for tail in tails], True),
        ]
        return self.rows(caption, far, facts)

    def pooled_outliers(self) -> Table | str:
        """The rows farthest from every class in the metric of the pooled covariance."""
        try:
            model = LinearDiscriminantAnalysis().fit(self.encoded, self.comparison.codes)
        except ValueError as error:
            return f"Distances between rows and classes could not be measured: {error}"
        return self.outliers(model, "Mahalanobis distance under the pooled covariance of the encoded columns")


@dataclass
class ModelSection:
    """One model, ready for the page."""

    anchor: str
    label: str
    scores: str
    tuned: list[tuple[str, str]]
    fit: list[tuple[str, str]]
    drawings: list[Drawing]
    confusion: Table | None
    actions: Table | None
    coefficients: Table | None
    mistakes: Table | None
    outliers: Table | None
    notes: list[str] = field(default_factory=list)


def model_section(ground: Ground, candidate: Any, most_points: int) -> ModelSection:
    """Everything about one candidate.

    Parameters
    ----------
    ground : Ground
    candidate : Candidate
    most_points : int
        How many rows its scatter plot may draw.
    """
    comparison, codes, classes = ground.comparison, ground.comparison.codes, ground.classes
    anchor, estimator = f"model-{candidate.family}", candidate.model.estimator
    scores = candidate.proba if candidate.proba is not None else out_of_fold_scores(comparison, candidate)
    notes, drawings = _doubts(ground, candidate) + candidate.notes, []
    found = coefficients(candidate, ground.encoded, codes)
    if found is not None:
        drawings.append(forest(f"{anchor}-c", found, classes))
    few = len(classes) <= MOST_CURVES
    if not few:
        notes.append(f"With {len(classes)} classes, figures that show each of them are left out.")
    constant = scores is not None and _constant(scores, comparison.folds)
    if constant:
        notes.append("It says the same of every row of a fold, so there is nothing to draw curves or histograms of.")
    if scores is not None and few and not constant:
        drawings.append(figures.roc(f"{anchor}-r", codes, scores, classes))
        drawings.append(figures.precision_recall(f"{anchor}-p", codes, scores, classes))
        drawings.append(figures.score_distribution(f"{anchor}-s", codes, scores, classes, candidate.proba is not None))
    if candidate.proba is not None:
        drawings.append(figures.reliability(f"{anchor}-l", codes, candidate.proba, classes))
    else:
        notes.append("This model gives no probabilities, so it has no log-loss and no reliability diagram.")
    drawn: Drawing | str = ""
    if isinstance(ground.plane, str):
        drawn = ground.plane
    elif few:
        drawn = boundary(f"{anchor}-b", ground.plane, estimator, candidate.predicted != codes, classes, most_points)
    if isinstance(drawn, Drawing):
        drawings.append(drawn)
    elif drawn:
        notes.append(drawn)
    own = candidate.model.encoder is not None and hasattr(estimator, "mahalanobis")
    return ModelSection(
        anchor,
        candidate.label[:1].upper() + candidate.label[1:],
        "; ".join(f"{SCORE_LABELS[name]} {fixed(s.mean)} ± {fixed(s.error)}" for name, s in candidate.scores.items()),
        [(str(name), _setting(given)) for name, given in candidate.tuned.items()],
        _fit_facts(candidate, comparison.classes),
        drawings,
        cross_table(codes, candidate.predicted, classes, classes, "predicted"),
        None if candidate.taken is None else cross_table(codes, candidate.taken, classes, ground.actions, "do"),
        None if found is None else coefficient_table(found, classes),
        mistake_table(ground, candidate, scores),
        ground.outliers(estimator, "the Mahalanobis distance of this model") if own else None,
        notes,
    )


def _constant(scores: Float, folds: NDArray[np.intp]) -> bool:
    """Whether the scores depend on the fold alone: pooled over folds, curves of such scores show how the folds differ."""
    return all(bool((np.ptp(scores[folds == k], axis=0) <= 1e-12).all()) for k in np.unique(folds))


def out_of_fold_scores(comparison: Any, candidate: Any) -> Float | None:
    """Scores (n, K) of rows held out, of a model that has no probabilities; None if it has no scores either."""
    model, codes = candidate.model, comparison.codes
    if model.encoder is None or not hasattr(model.estimator, "decision_function"):
        return None
    scores = np.zeros((len(codes), len(comparison.classes)))
    for fold in np.unique(comparison.folds):
        held = comparison.folds == fold
        train, test = (comparison.rows.take(np.flatnonzero(part)) for part in (~held, held))
        encoder = clone(model.encoder).fit(train)
        rule = clone(model.estimator).fit(encoder.transform(train), codes[~held])
        given = rule.decision_function(encoder.transform(test))
        given = np.column_stack([-given, given]) if given.ndim == 1 else given
        scores[np.ix_(held, rule.classes_)] = given
    return scores


def cross_table(
    codes: NDArray[np.intp], given: NDArray[np.intp], classes: Sequence[str], answers: Sequence[str], verb: str
) -> Table | None:
    """True classes by what was predicted or done, out of fold; None where there are so many that nobody would read it."""
    if max(len(classes), len(answers)) > MOST_CLASSES:
        return None
    counts = np.zeros((len(classes), len(answers)), dtype=np.intp)
    np.add.at(counts, (codes, given), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    cells = [[name, *(str(n) for n in row)] for name, row in zip(classes, counts, strict=True)]
    what = "Confusion matrix" if verb == "predicted" else "What is done at least expected cost"
    return Table(
        f"{what}, out of fold: a row for each true class, shaded by the share of its rows.",
        ["true class", *(f"{verb} {name}" for name in answers)],
        cells,
        [False, *[True] * len(answers)],
        shares.tolist(),
    )


def mistake_table(ground: Ground, candidate: Any, scores: Float | None) -> Table | None:
    """The mistakes the model was surest of, out of fold; None if it made none."""
    codes, predicted = ground.comparison.codes, candidate.predicted
    wrong = np.flatnonzero(predicted != codes)
    if not len(wrong):
        return None
    named = [("true class", codes), ("predicted", predicted)]
    if scores is None:
        worst, facts = wrong[:LARGEST], []
        caption = f"The first {len(worst)} of {count(len(wrong), 'mistake')}, out of fold."
    else:
        behind = scores[wrong, codes[wrong]] - scores[wrong, predicted[wrong]]
        worst = wrong[np.argsort(behind, kind="stable")[:LARGEST]]
        kind = "score" if candidate.proba is None else "probability"
        facts = [(f"{kind} of {what}", [fixed(s) for s in scores[worst, of[worst]]], True) for what, of in named]
        caption = (
            f"The {len(worst)} largest of {count(len(wrong), 'mistake')}, out of fold: those in which the {kind} of the "
            "predicted class was farthest above that of the true one."
        )
    said = [(what, [ground.classes[k] for k in of[worst]], False) for what, of in named]
    return ground.rows(caption, worst.tolist(), said + facts)


def _doubts(ground: Ground, candidate: Any) -> list[str]:
    """Masked classes, confused pairs, undecided rows: sentences."""
    codes, predicted, classes = ground.comparison.codes, candidate.predicted, ground.classes
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
            listed = ", ".join(str(i + 1) for i in undecided[:LARGEST]) + (", …" if len(undecided) > LARGEST else "")
            notes.append(
                f"Undecided: in {count(len(undecided), 'row')} ({percent(len(undecided) / len(codes))}) the two largest "
                f"probabilities are within {UNDECIDED} of each other: {listed}."
            )
    return notes


def _setting(given: Any) -> str:
    return number(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else str(given)


def _fit_facts(candidate: Any, classes: NDArray[Any]) -> list[tuple[str, str]]:
    """What the fit on all rows says of itself."""
    fit = getattr(candidate.model.estimator, "fit_", None)
    facts = [("classes", _VERDICTS.get(candidate.separability, candidate.separability))]
    if fit is None:
        return [("fit", candidate.certificate), *facts]
    facts = [("fit", by_name(fit_sentence(fit), classes)), *facts]
    if fit.certificate is not None:
        proven, relative = math.isfinite(fit.certificate.gap), f"; {candidate.certificate}"
        said = str(fit.certificate) + (relative if "relative gap" in relative else "")
        facts.append(("certificate", said if proven else "nothing bounds the distance to the optimum"))
    cost = count(fit.passes, "pass", "passes") + " over the data"
    facts.append(("cost", cost + (f", {count(fit.iterations, 'iteration')}" if fit.iterations else "")))
    facts.append(
        (
            "seconds",
            f"{number(fit.seconds)} for this fit, {number(candidate.fit_seconds)} with the choice of its parameters",
        )
    )
    return facts
