"""The report of a comparison: one HTML file that needs nothing else.

No script, no font, no picture comes from outside; the content security policy in its head forbids the browser to fetch any, and
to run any script but the one whose hash it has.
Names and values of the table are data: the templates escape all of them.
"""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from separatrix.data.text import for_html
from separatrix.data.writing import destination, replacing
from separatrix.report.tables import count

if TYPE_CHECKING:
    from separatrix.comparison.comparison import Comparison
    from separatrix.comparison.streamed import StreamedComparison

POINTS, POINTS_OF_OTHERS = 2_000, 400
# More are folded away.
MANY_COLUMNS = 30


def write_report(comparison: Comparison | StreamedComparison, path: str | os.PathLike[str]) -> None:
    """Write the report of a comparison: the data, the ranking, and every model with its evidence, in one HTML file.

    The file is written under another name beside its place and then renamed, so that there is never half a report.

    Parameters
    ----------
    comparison : Comparison
        From `separatrix.compare`.
    path : path-like
        Where to write it; a file of that name is replaced and keeps its mode. What is no regular file is refused.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import separatrix as sx
    >>> from sklearn.datasets import load_iris
    >>> table = load_iris(as_frame=True).frame
    >>> found = sx.compare(table, "target", families=["lda"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sx.write_report(found, pathlib.Path(folder) / "report.html")
    ...     print((pathlib.Path(folder) / "report.html").read_text(encoding="utf-8")[:15])
    <!DOCTYPE html>
    """
    destination(path)  # a place that cannot be written to is an error before the work
    html = render_report(comparison).encode("utf-8", errors="replace")
    with replacing(path) as part:
        part.write_bytes(html)


def render_report(comparison: Comparison | StreamedComparison) -> str:
    """The report as a string of HTML."""
    from importlib.resources import files

    import jinja2
    from markupsafe import Markup

    from separatrix.report.svg import page_style

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("separatrix.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    with page_style():
        context = _context(comparison)
    script = files("separatrix.report").joinpath("templates/report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    context |= {"script": Markup(script), "script_hash": f"sha256-{digest}"}
    return for_html(environment.get_template("report.html.j2").render(context))


def _context(comparison: Comparison | StreamedComparison) -> dict[str, Any]:
    """Everything the template shows."""
    from separatrix.comparison.headline import cautions, headline
    from separatrix.comparison.listing import explained
    from separatrix.comparison.streamed import StreamedComparison
    from separatrix.report import overview
    from separatrix.report.answers import answers

    schema = comparison.schema
    about = _without_rows(comparison) if isinstance(comparison, StreamedComparison) else _with_rows(comparison)
    return {
        "version": version("separatrix"),
        "comparison": comparison,
        "headline": headline(comparison),
        "cautions": cautions(comparison),
        "explained": explained(comparison),
        "answers": answers(comparison),
        "summary": (
            f"{count(comparison.n_rows, 'row')}, {count(len(schema.used), 'column')} used of {len(schema.columns)}, "
            f"{count(len(comparison.classes), 'class', 'classes')}"
        ),
        "classes": overview.class_table(comparison),
        "columns": overview.column_table(comparison),
        "many_columns": len(schema.columns) > MANY_COLUMNS,
        "ranking": overview.ranking_table(comparison),
        "ranking_drawing": overview.ranking_drawing(comparison),
        "failures": overview.failures(comparison),
        "loss": overview.loss_table(comparison),
        **about,
    }


def _with_rows(comparison: Comparison) -> dict[str, Any]:
    """What is about single rows, and the models."""
    from separatrix.report import overview
    from separatrix.report.answers import holdout_table, more_rows
    from separatrix.report.chooser import rule_chooser
    from separatrix.report.sections import model_section, outlier_table
    from separatrix.report.why_section import why_section

    best, far = comparison.recommended, comparison.outliers
    metric = "Mahalanobis distance under the pooled covariance of the encoded columns"
    others = [candidate for candidate in comparison.candidates if candidate is not best]
    return {
        "outliers": far if isinstance(far, str) else outlier_table(comparison, far, metric),
        "learning": overview.learning_drawing(comparison),
        "more_rows": more_rows(comparison),
        "holdout": holdout_table(comparison.holdout),
        "chooser": rule_chooser(comparison),
        "why": why_section(comparison),
        "best": model_section(comparison, best, POINTS),
        "others": [model_section(comparison, candidate, POINTS_OF_OTHERS) for candidate in others],
    }


def _without_rows(comparison: StreamedComparison) -> dict[str, Any]:
    """The models of a table that was not held."""
    from separatrix.report.sections import streamed_section

    best = comparison.recommended
    return {
        "outliers": "They were not looked for: the table was read in a stream.",
        **dict.fromkeys(("learning", "holdout", "chooser", "why")),
        "more_rows": "",
        "best": streamed_section(comparison, best),
        "others": [streamed_section(comparison, one) for one in comparison.candidates if one is not best],
    }
