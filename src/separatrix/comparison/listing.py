"""The ranking of a comparison: rows of plain values, and these as text and as HTML. What comes from the data is escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from separatrix.comparison.evaluation import as_sentence
from separatrix.comparison.headline import cautions, headline
from separatrix.comparison.measures import OF_PROBABILITIES, SCORE_LABELS, plus_minus
from separatrix.comparison.scores import Candidate
from separatrix.comparison.why.nonlinear import LABEL
from separatrix.data.text import printable

if TYPE_CHECKING:
    from separatrix.comparison.comparison import Comparison
    from separatrix.comparison.streamed import StreamedComparison

CALIBRATED_MARK = "†"


def measured_scores(comparison: Comparison | StreamedComparison) -> list[str]:
    """The scores that some candidate has, the one that ranks first."""
    known = [name for name in SCORE_LABELS if any(name in one.scores for one in comparison.candidates)]
    return sorted(known, key=lambda name: name != comparison.ranked_by)


def ranking(comparison: Comparison | StreamedComparison) -> list[dict[str, Any]]:
    """One dictionary per candidate, the best first: the one table that text, HTML, the report and the command line show."""
    return [_row(comparison, candidate) for candidate in comparison.candidates]


def _row(comparison: Comparison | StreamedComparison, candidate: Candidate) -> dict[str, Any]:
    row: dict[str, Any] = {"rank": candidate.rank, "family": candidate.family, "label": candidate.label}
    for name in measured_scores(comparison):
        score = candidate.scores.get(name)
        row[name] = None if score is None else score.mean
        row[f"{name}_error"] = None if score is None else score.standard_error
    return row | {
        "fit_seconds": candidate.fit_seconds,
        "certificate": candidate.certificate,
        "separability": candidate.separability,
        "tuned": candidate.tuned,
        "tied": candidate.tied,
        "calibrated": candidate.calibrated,
        "recommended": candidate is comparison.recommended,
        "notes": candidate.notes,
    }


def reference_row(comparison: Comparison | StreamedComparison) -> dict[str, Any] | None:
    """The line of the non-linear model that is no candidate, with the keys of the others that it has."""
    reference = getattr(comparison, "nonlinear", None)
    if reference is None:
        return None
    row: dict[str, Any] = {"label": LABEL, "calibrated": False}
    for name in measured_scores(comparison):
        score = reference.scores.get(name)
        row[name] = None if score is None else score.mean
        row[f"{name}_error"] = None if score is None else score.standard_error
    return row


def _cells(comparison: Comparison | StreamedComparison, rows: list[dict[str, Any]]) -> list[list[str]]:
    measured = measured_scores(comparison)
    cells = [["", "model", *(SCORE_LABELS[name] for name in measured), "fit", "chosen", "certificate"]]
    for row in rows:
        mark = "*" if row["recommended"] else "=" if row["tied"] else ""
        scores = [_score(row, name) for name in measured]
        tuned = ", ".join(f"{name}={_short(value)}" for name, value in row["tuned"].items()) or "–"
        fit = f"{row['fit_seconds']:.2g} s"
        cells.append([f"{row['rank']}{mark}", row["label"], *scores, fit, tuned, row["certificate"]])
    if (other := reference_row(comparison)) is not None:
        cells.append(["", other["label"], *(_score(other, name) for name in measured), "", "", ""])
    return [[printable(cell) for cell in line] for line in cells]


def _score(row: dict[str, Any], name: str) -> str:
    if row[name] is None:
        return "–"
    mark = CALIBRATED_MARK if row["calibrated"] and name in OF_PROBABILITIES else ""
    return f"{plus_minus(row[name], row[f'{name}_error'])}{mark}"


def explained(comparison: Comparison | StreamedComparison) -> list[str]:
    """What the marks of the table mean, in sentences for under it."""
    found = [f"* recommended, = {comparison.tie_rule[:1].lower()}{comparison.tie_rule[1:]}"]
    if any(candidate.calibrated for candidate in comparison.candidates):
        found.append(
            f"{CALIBRATED_MARK} A model without probabilities: a logistic curve, learnt on the other folds, makes some of its "
            "scores. Where probabilities rank, it is ranked by these and not recommended."
        )
    return found


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _sentences(comparison: Comparison | StreamedComparison) -> list[str]:
    found = [f"Recommended: {comparison.recommended.label}. {headline(comparison)} {comparison.reason}"]
    if (aside := getattr(comparison, "holdout", None)) is not None:
        found += [as_sentence(aside), *aside.notes]
    if (reference := getattr(comparison, "nonlinear", None)) is not None:
        found.append(f"Is linear enough? {reference.sentence}")
    found += [*cautions(comparison), comparison.separability]
    found += comparison.notes
    found += [f"{candidate.label}: {note}" for candidate in comparison.candidates for note in candidate.notes]
    found += [f"Left out: {name}. {reason}" for name, reason in comparison.failures.items()]
    return [printable(sentence) for sentence in found if sentence]


def _title(comparison: Comparison | StreamedComparison) -> str:
    return (
        f"{comparison.n_rows} rows, {len(comparison.schema.used)} columns, {len(comparison.classes)} classes of "
        f"{comparison.schema.target!r}; {comparison.n_folds} {comparison.fold_kind} folds; ranked by "
        f"{SCORE_LABELS[comparison.ranked_by]} (mean ± standard error)."
    )


def as_text(comparison: Comparison | StreamedComparison) -> str:
    """A table in columns, with its marks explained."""
    cells = _cells(comparison, ranking(comparison))
    widths = [max(len(row[j]) for row in cells) for j in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([_title(comparison), "", *lines, "", *explained(comparison), "", *_sentences(comparison)])


def as_html(comparison: Comparison | StreamedComparison) -> str:
    """The same as a table for notebooks."""
    rows = ranking(comparison)
    head, *body = _cells(comparison, rows)
    lines = [
        Markup('<tr style="font-weight:bold">{}</tr>' if row["recommended"] else "<tr>{}</tr>").format(
            _each("td", cells)
        )
        for row, cells in zip([*rows, {"recommended": False}], body, strict=False)
    ]
    return Markup("<div><p>{}</p><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table><ul>{}</ul></div>").format(
        _title(comparison),
        _each("th", head),
        Markup().join(lines),
        _each("li", explained(comparison) + _sentences(comparison)),
    )


def _each(tag: str, texts: list[str]) -> Markup:
    """Every text in an element of its own."""
    return Markup().join(Markup(f"<{tag}>{{}}</{tag}>").format(text) for text in texts)
