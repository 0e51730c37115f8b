"""Why a model decides as it does: which columns matter, what each does, the coefficients in units of the table, single rows.

    odds ratio of a step h in a column    exp(w h/s),   w the coefficient of the encoded column, s its scale

A step is a power of ten near the standard deviation; of a category it is that level instead of the most frequent one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from separatrix.comparison.why.importance import ColumnImportance, PartialEffect
from separatrix.plots import style
from separatrix.report.figures import Drawing, label_width, new_axes, tips_at
from separatrix.report.svg import inline_svg
from separatrix.report.tables import PageTable, fixed, number, short

if TYPE_CHECKING:
    from separatrix.comparison.comparison import Comparison
    from separatrix.comparison.scores import Candidate

MOST_DRAWN, MOST_LISTED, MOST_CLASSES, MOST_PUSHES = 15, 40, 12, 8
# Families whose coefficients are differences of log-odds.
_LOG_ODDS = {"logistic", "logistic-l1", "bayesian-logistic", "lda"}


@dataclass(frozen=True)
class ExplainedRow:
    """A row, what was decided about it, and what pushed it there."""

    words: str
    table: PageTable


@dataclass(frozen=True)
class WhySection:
    """The section, ready for the page."""

    importance: Drawing | None
    effects: list[Drawing]
    units: PageTable | None
    rows: list[ExplainedRow] = field(default_factory=list)
    words: list[PageTable] = field(default_factory=list)


def why_section(comparison: Comparison) -> WhySection | None:
    """Why the recommended model decides as it does; None for the class shares."""
    best = comparison.recommended
    if not best.importance:
        return None
    classes = [str(name) for name in comparison.classes]
    return WhySection(
        importance_drawing("why-i", best.importance, best.proba is not None),
        [effect_drawing(f"why-e{k}", effect, classes) for k, effect in enumerate(best.effects)],
        unit_table(best, classes),
        list(_rows(comparison)),
        word_tables(best, classes),
    )


def importance_drawing(name: str, found: Sequence[ColumnImportance], probabilities: bool) -> Drawing:
    """The importances of the columns as points with intervals, the largest on top."""
    shown = list(found[:MOST_DRAWN])
    labels = [short(one.column) for one in shown]
    figure, ax = new_axes(0.7 + 0.24 * len(shown), left=label_width(labels))
    places, means = np.arange(len(shown)), np.array([one.mean for one in shown])
    ax.axvline(0.0, color=style.INK, linewidth=0.8, linestyle=":")
    ax.hlines(places, [one.lower for one in shown], [one.upper for one in shown], color=style.colour(0), linewidth=2)
    ax.plot(means, places, "o", color=style.colour(0), markersize=4)
    style.name_rows(ax, labels)
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.grid(False, axis="y")
    ax.spines["left"].set_visible(False)
    loss = "log-loss" if probabilities else "share of mistakes"
    ax.set(xlabel=f"increase of the {loss}")
    ax.locator_params(axis="x", nbins=5)
    told = [
        f"{one.column}: {number(one.mean, 2)}, from {number(one.lower, 2)} to {number(one.upper, 2)}" for one in shown
    ]
    more = "" if len(shown) == len(found) else f" The {len(shown)} largest of {len(found)}."
    return Drawing(
        inline_svg(figure, name, f"Importance of the columns. {'; '.join(told)}."),
        f"How much the {loss} of the rows left out grows when the values of a column are shuffled, with 95 % intervals over "
        f"the folds. Columns that say the same stand in for one another.{more}",
        tips=tips_at(ax, means, places, told),
    )


def effect_drawing(name: str, effect: PartialEffect, classes: Sequence[str]) -> Drawing:
    """The mean prediction along a column: of the second of two classes, or of every class."""
    drawn = [1] if len(classes) == 2 else list(range(min(len(classes), MOST_CLASSES)))
    figure, ax = new_axes(2.8)
    at = np.array(effect.values, dtype=float) if effect.numeric else np.arange(len(effect.values), dtype=float)
    tips: list[tuple[float, float, str]] = []
    texts = [number(value) if effect.numeric else str(value) for value in effect.values]
    for place, k in enumerate(drawn):
        shares, lower, upper = effect.shares[:, k], effect.lower[:, k], effect.upper[:, k]
        look = style.line(place) if len(drawn) > 1 else {"color": style.colour(0)}
        if effect.numeric:
            ax.fill_between(at, lower, upper, color=look["color"], alpha=0.15, linewidth=0)
            ax.plot(at, shares, **look)
        else:
            moved = at + (place - (len(drawn) - 1) / 2.0) * 0.12
            ax.vlines(moved, lower, upper, color=look["color"], linewidth=1.5)
            ax.plot(moved, shares, "o", color=look["color"], markersize=5)
    ax.set_ylim(-0.02, 1.02)
    if not effect.numeric:
        ax.set_xticks(at, [short(text, 12) for text in texts], parse_math=False)
        ax.set_xlim(-0.5, len(at) - 0.5)
    else:
        ax.locator_params(axis="x", nbins=6)
    what = f"probability of {classes[1]}" if len(classes) == 2 else "probability"
    style.name_axes(ax, effect.column, short(what, 34))
    for k in drawn:
        said = [
            f"{effect.column} {t}: {classes[k]} {fixed(s, 2)}" for t, s in zip(texts, effect.shares[:, k], strict=True)
        ]
        tips += tips_at(ax, at, effect.shares[:, k], said)
    ends = "; ".join(
        f"{classes[k]} {fixed(effect.shares[0, k], 2)} at {texts[0]}, {fixed(effect.shares[-1, k], 2)} at {texts[-1]}"
        for k in drawn
    )
    return Drawing(
        inline_svg(figure, name, f"Mean {what} along {effect.column}. {ends}."),
        f"{effect.column}: the mean {what} if all rows had that value and kept the rest. The band is the range over the folds.",
        classes[: len(drawn)] if len(drawn) > 1 else (),
        tips=tips,
    )


def unit_table(candidate: Candidate, classes: Sequence[str]) -> PageTable | None:
    """The coefficients per step in units of the table, with odds ratios where the model has log-odds of two classes."""
    found, encoder = candidate.coefficients, candidate.model.encoder
    if found is None or encoder is None or not hasattr(encoder, "features_"):
        return None
    odds = candidate.family in _LOG_ODDS and len(found.estimates) == 1
    flags = {column.name: column for column in candidate.model.schema.columns if column.kind == "boolean"}
    owners = [classes[1]] if len(found.estimates) == 1 else list(classes)
    order = np.argsort(-np.abs(found.estimates).max(axis=0), kind="stable")[: max(1, MOST_LISTED // len(owners))]
    cells = []
    for j in order:
        feature = encoder.features_[j]
        size = (
            1.0
            if feature.what != "value" or feature.column in flags
            else 10.0 ** math.floor(math.log10(feature.scale or 1.0))
        )
        step = f"+{number(size)}" if feature.what == "value" and feature.column not in flags else "yes, not no"
        if feature.what == "target":
            step = "+1 in the log-odds of its category"
        if feature.what == "text":
            step = "+1 in the log-odds by its words"
        if feature.what == "level":
            step = "this, not the most frequent"
        for k, owner in enumerate(owners):
            ends = [part[k, j] * size / (feature.scale or 1.0) for part in (found.estimates, found.lower, found.upper)]
            ratios = [number(math.exp(min(end, 700.0))) for end in ends] if odds else []
            cells.append([feature.name, *([owner] if len(owners) > 1 else []), step, number(ends[0]), *ratios])
            if not odds:
                cells[-1] += [number(ends[1]), number(ends[2])]
    head = ["column", *(["class"] if len(owners) > 1 else []), "step", "coefficient"]
    head += ["odds ratio", "lower", "upper"] if odds else ["lower", "upper"]
    listed = "" if len(order) == len(found.names) else f" The largest {len(order)} of {len(found.names)}."
    toward = (
        f"A step multiplies the odds of {classes[1]} by the odds ratio."
        if odds
        else "Per step of the column, in its own unit."
    )
    text = len(head) - (4 if odds else 3)
    return PageTable(f"{toward}{listed}", head, cells, [False] * text + [True] * (len(head) - text), sortable=True)


def word_tables(candidate: Candidate, classes: Sequence[str]) -> list[PageTable]:
    """What the words of free text say, the most telling first: a table for each such column."""
    encoder = candidate.model.encoder
    tables = []
    for name, scores in (encoder.texts_ if encoder is not None else {}).items():
        cells = [[word, *(fixed(t, 1) for t in own)] for word, own in scores.words[:MOST_LISTED]]
        toward = classes[1:] if len(classes) > 2 else [f"{classes[1]} rather than {classes[0]}"]
        caption = (
            f"What words of {name!r} say: the log-odds of a text of each alone, against {classes[0]}. Of {len(scores.buckets)} "
            "words and pairs of words that more than one row has, those that say most."
        )
        tables.append(PageTable(caption, ["word", *toward], cells, [False, *[True] * len(toward)], sortable=True))
    return tables


def _rows(comparison: Comparison) -> Iterator[ExplainedRow]:
    """The surest mistake and the most doubtful row, where the model adds up what columns say."""
    for what, i, found in comparison.explained:
        row = comparison.rows.number_of(i)
        decision = found.in_words("By the model of all rows it", number)
        words = f"{what}, row {row}, is {comparison.classes[comparison.codes[i]]}. {decision} {found.flip}"
        cells = [
            [
                name,
                "missing" if value is None else number(value, 6) if isinstance(value, float) else short(str(value)),
                number(push),
            ]
            for name, value, push in found.pushes[:MOST_PUSHES]
        ]
        caption = f"What pushes row {row} to {found.decided} (above zero) or to {found.against} (below)."
        yield ExplainedRow(words, PageTable(caption, ["column", "value", "push"], cells, [False, True, True]))
