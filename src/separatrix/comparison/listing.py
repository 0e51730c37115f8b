"""A comparison as rows of plain values, as text and as HTML. Whatever comes from the data is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from separatrix.comparison.scores import SCORE_LABELS, Candidate
from separatrix.data.text import printable

if TYPE_CHECKING:
    from separatrix.comparison.comparison import Comparison


def plain_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """One dictionary a candidate, the best first."""
    return [_plain_row(comparison, candidate) for candidate in comparison.candidates]


def _plain_row(comparison: Comparison, candidate: Candidate) -> dict[str, Any]:
    row: dict[str, Any] = {"rank": candidate.rank, "family": candidate.family, "label": candidate.label}
    for name in _measured(comparison):
        score = candidate.scores.get(name)
        row[name] = None if score is None else score.mean
        row[f"{name}_error"] = None if score is None else score.error
    return row | {
        "fit_seconds": candidate.fit_seconds,
        "certificate": candidate.certificate,
        "separability": candidate.separability,
        "tuned": candidate.tuned,
        "tied": candidate.tied,
        "recommended": candidate is comparison.recommended,
        "notes": candidate.notes,
    }


def _measured(comparison: Comparison) -> list[str]:
    """The scores that some candidate has, the one that ranks first."""
    known = [name for name in SCORE_LABELS if any(name in one.scores for one in comparison.candidates)]
    return sorted(known, key=lambda name: name != comparison.ranked_by)


def _cells(comparison: Comparison) -> list[list[str]]:
    measured = _measured(comparison)
    head = ["", "model", *(SCORE_LABELS[name] for name in measured), "fit", "chosen", "certificate"]
    rows = [head]
    for candidate in comparison.candidates:
        mark = "*" if candidate is comparison.recommended else "=" if candidate.tied else ""
        scores = [str(candidate.scores[name]) if name in candidate.scores else "–" for name in measured]
        tuned = ", ".join(f"{name}={_short(value)}" for name, value in candidate.tuned.items()) or "–"
        seconds = f"{candidate.fit_seconds:.2g} s"
        rows.append([f"{candidate.rank}{mark}", candidate.label, *scores, seconds, tuned, candidate.certificate])
    return [[printable(cell) for cell in row] for row in rows]


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _sentences(comparison: Comparison) -> list[str]:
    found = [f"Recommended: {comparison.recommended.label}. {comparison.reason}", comparison.separability]
    found += comparison.notes
    found += [f"{candidate.label}: {note}" for candidate in comparison.candidates for note in candidate.notes]
    found += [f"Left out: {name}. {reason}" for name, reason in comparison.failures.items()]
    return [printable(sentence) for sentence in found if sentence]


def _title(comparison: Comparison) -> str:
    n_folds = int(comparison.folds.max()) + 1
    return (
        f"{len(comparison.codes)} rows, {len(comparison.rows.columns)} columns, {len(comparison.classes)} classes of "
        f"{comparison.schema.target!r}; {n_folds} stratified folds; ranked by {SCORE_LABELS[comparison.ranked_by]} "
        "(mean ± standard error)."
    )


def as_text(comparison: Comparison) -> str:
    """A table in columns; * is the recommended candidate, = one that is as good as the best."""
    cells = _cells(comparison)
    widths = [max(len(row[j]) for row in cells) for j in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    key = "* recommended, = within one standard error of the best"
    return "\n".join([_title(comparison), "", *lines, key, "", *_sentences(comparison)])


def as_html(comparison: Comparison) -> str:
    """The same as a table for notebooks."""
    head, *rows = _cells(comparison)
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = []
    for candidate, row in zip(comparison.candidates, rows, strict=True):
        style = ' style="font-weight:bold"' if candidate is comparison.recommended else ""
        body.append(f"<tr{style}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in _sentences(comparison))
    return (
        f"<div><p>{escape(_title(comparison))}</p><table><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        f"<ul>{sentences}</ul></div>"
    )
