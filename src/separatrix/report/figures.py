"""The figures of the report that come from probabilities or scores: curves, histograms, the ranking, the learning curve.

Each function draws one figure, with a caption and a text alternative that holds the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from separatrix.comparison.planes import Plane, PlaneModel
from separatrix.data.block import Float
from separatrix.decide.calibration import Reliability
from separatrix.plots import style
from separatrix.plots.calibration import CalibrationDisplay
from separatrix.plots.decision_boundary import DecisionBoundaryDisplay
from separatrix.plots.score_distribution import ScoreDistributionDisplay
from separatrix.report.svg import INK, inline_svg
from separatrix.report.tables import count, fixed, number, percent, short

WIDTH, HEIGHT = 4.6, 3.3
MOST_CURVE_POINTS = 1_200


@dataclass(frozen=True)
class Drawing:
    """One figure: the picture, what to read in it, and which classes its lines or points stand for."""

    svg: Markup
    caption: str
    classes: Sequence[str] = ()
    points: bool = False
    leading: bool = False  # whether it belongs beside the confusion matrix
    tips: Sequence[tuple[float, float, str]] = ()  # places in the picture, and what is told there

    @property
    def legend(self) -> list[tuple[str, str]]:
        """(CSS classes, name) of every class: no two have both the same colour and the same line or marker."""
        kind, looks = ("p", style.MARKERS) if self.points else ("l", style.LINES)
        return [(f"k{k % len(style.COLOURS)} {kind}{k % len(looks)}", name) for k, name in enumerate(self.classes)]


def new_axes(height: float = HEIGHT, left: float = 0.62) -> tuple[Any, Any]:
    """A figure without global state, and its axes, which leave so many inches on the left.

    Margins are given, since to measure them would draw every figure twice.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    return figure, figure.add_axes((left / WIDTH, 0.5 / height, 1.0 - (left + 0.15) / WIDTH, 1.0 - 0.62 / height))


def tips_at(ax: Any, x: Any, y: Any, texts: Sequence[str]) -> list[tuple[float, float, str]]:
    """Texts at points in the data of these axes, as places in the picture; call it when the limits are settled."""
    figure = ax.figure
    places = ax.transData.transform(np.column_stack([x, y])) * 72.0 / figure.dpi
    height = figure.get_size_inches()[1] * 72.0
    return [(round(float(a), 1), round(float(height - b), 1), text) for (a, b), text in zip(places, texts, strict=True)]


def label_width(labels: Sequence[str]) -> float:
    """Inches that the longest of these labels takes."""
    return 0.2 + 0.072 * max(map(len, labels))


def _events(codes: NDArray[np.intp], scores: Float) -> list[tuple[int, NDArray[np.bool_], Float]]:
    """One problem for two classes (the second), one per class for more; classes without both kinds of rows are left out."""
    judged = [1] if scores.shape[1] == 2 else range(scores.shape[1])
    return [(k, codes == k, scores[:, k]) for k in judged if 0 < np.count_nonzero(codes == k) < len(codes)]


def _thinned(events: list[Any], x: Float, y: Float) -> tuple[Float, Float]:
    """Some points of a curve, both ends among them: more cannot be seen, and many curves share what a page can hold."""
    kept = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_CURVE_POINTS // len(events))).astype(np.intp))
    return x[kept], y[kept]


def hide_legend(ax: Any) -> None:
    """The page has legends of its own, which wrap on a narrow screen."""
    if ax.get_legend() is not None:
        ax.get_legend().remove()


def _line(k: int, events: list[Any]) -> dict[str, Any]:
    """The line of a class; a single one has the first colour."""
    return style.line(k) if len(events) > 1 else {"color": style.colour(0)}


def _legend(classes: Sequence[str], events: list[Any]) -> Sequence[str]:
    return classes if len(events) > 1 else ()


def roc(name: str, codes: NDArray[np.intp], scores: Float, classes: Sequence[str]) -> Drawing:
    """Receiver operating characteristic, of the second class or of each against the rest."""
    figure, ax = new_axes()
    ax.plot([0, 1], [0, 1], color=style.INK, linewidth=0.8, linestyle="--")
    areas, events = [], _events(codes, scores)
    for k, is_class, score in events:
        false, true, _ = roc_curve(is_class, score)
        ax.plot(*_thinned(events, false, true), **_line(k, events))
        areas.append(f"{classes[k]}: {fixed(roc_auc_score(is_class, score))}")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    words = f"Area under the curve – {', '.join(areas)}."
    against = "" if len(events) == 1 else " Each class against the rest."
    return Drawing(
        inline_svg(figure, name, f"ROC curve. {words}"),
        f"ROC curve, out of fold. {words}{against}",
        _legend(classes, events),
    )


def precision_recall(name: str, codes: NDArray[np.intp], scores: Float, classes: Sequence[str]) -> Drawing:
    """Precision against recall, of the second class or of each against the rest."""
    figure, ax = new_axes()
    areas, events = [], _events(codes, scores)
    for k, is_class, score in events:
        precision, recall, _ = precision_recall_curve(is_class, score)
        line = _line(k, events)
        ax.plot(*_thinned(events, recall, precision), **line)
        ax.axhline(is_class.mean(), linewidth=0.7, alpha=0.7, **line)
        areas.append(f"{classes[k]}: {fixed(average_precision_score(is_class, score))}")
    ax.set(xlabel="recall", ylabel="precision", xlim=(-0.01, 1.01), ylim=(-0.01, 1.03))
    words = f"Average precision – {', '.join(areas)}."
    return Drawing(
        inline_svg(figure, name, f"Precision against recall. {words}"),
        f"Precision and recall, out of fold. {words} Thin: the share of the class, which guessing attains.",
        _legend(classes, events),
    )


def reliability(name: str, points: Reliability, classes: Sequence[str]) -> Drawing:
    """Predicted probability against observed frequency, with Wilson intervals."""
    event = classes[1] if len(classes) == 2 else "the likeliest class"
    figure, ax = new_axes()
    CalibrationDisplay(points, event=event).plot(ax, markersize=4)
    hide_legend(ax)
    described = "; ".join(
        f"predicted {fixed(p, 2)}, observed {fixed(o, 2)} in {count(int(n), 'row')}"
        for p, o, n in zip(points.predicted, points.observed, points.counts, strict=True)
    )
    error = f"expected calibration error {fixed(points.error)}"
    return Drawing(
        inline_svg(figure, name, f"Reliability diagram of the probability of {event}; {error}. {described}."),
        f"Reliability, out of fold: {error}. The bars are 95 % intervals of the observed share; "
        "on the diagonal a predicted probability is the frequency observed.",
        leading=True,
        tips=tips_at(ax, points.predicted, points.observed, described.split("; ")),
    )


def score_distribution(
    name: str, codes: NDArray[np.intp], scores: Float, classes: Sequence[str], probabilities: bool
) -> Drawing:
    """Histogram of the scores by class: of the second class, or for more than two of each row's own class."""
    two = scores.shape[1] == 2
    kind = "probability" if probabilities else "score"
    quantity = f"{kind} of {classes[1]}" if two else f"lead in {kind} of the row's own class over the next"
    edges = np.linspace(0.0 if two else -1.0, 1.0, 21) if probabilities else 20
    figure, ax = new_axes()
    shown = ScoreDistributionDisplay.from_predictions(
        codes,
        scores,
        classes=np.arange(len(classes)),
        threshold=0.5 if probabilities and two else 0.0,
        bins=edges,
        ax=ax,
    )
    hide_legend(ax)
    ax.locator_params(axis="x", nbins=6)
    style.name_axes(ax, quantity, "density within the class")
    middles = (shown.edges[:-1] + shown.edges[1:]) / 2.0
    described = [
        f"{name}: most rows near {number(middles[density.argmax()], 2)}"
        for name, density in zip(classes, shown.densities, strict=True)
        if density.any()
    ]
    right = "" if two else " A row is right where its lead is positive."
    return Drawing(
        inline_svg(figure, name, f"Histograms of the {quantity} by true class. {'; '.join(described)}."),
        f"The {quantity}, out of fold, by true class.{right}",
        classes,
        leading=True,
    )


def boundary(
    name: str,
    plane: Plane,
    model: PlaneModel,
    codes: NDArray[np.intp],
    mistakes: NDArray[np.bool_],
    classes: Sequence[str],
    most: int,
    predicted: NDArray[np.intp] | None = None,
    *,
    number_of: Callable[[int], int] = lambda i: i + 1,
) -> Drawing:
    """Regions of a family fitted in the plane, at most so many of the rows, and the mistakes of the real model among them."""
    shown = plane.sample(most)
    axes, sentence = _plane_words(plane)
    figure, ax = new_axes(3.9)
    DecisionBoundaryDisplay(
        model.regions,
        list(range(len(classes))),
        model.scores,
        points=plane.points[shown],
        labels=codes[shown],
        xlabel=axes[0],
        ylabel=axes[1],
    ).plot(ax)
    hide_legend(ax)
    ax.grid(False)
    wrong = plane.points[shown[mistakes[shown]]]
    ax.plot(*wrong.T, "o", markerfacecolor="none", markeredgecolor=INK, markeredgewidth=0.8, markersize=7.5)
    right = percent(model.accuracy)
    words = f"Fitted to the two coordinates alone, the same family puts {right} of the rows on the right side."
    tips: list[tuple[float, float, str]] = []
    if predicted is not None:
        said = [
            f"row {number_of(i)}: {classes[codes[i]]}" + (f", predicted {classes[predicted[i]]}" if mistakes[i] else "")
            for i in shown
        ]
        tips = tips_at(ax, plane.points[shown, 0], plane.points[shown, 1], said)
    drawn = "" if len(shown) == len(codes) else f" {count(len(shown), 'row')} of {len(codes)} are drawn."
    wrongs = count(int(mistakes.sum()), "mistake")
    return Drawing(
        inline_svg(
            figure, name, f"Rows in two coordinates, with decision regions. {words} {wrongs} of the real model."
        ),
        f"{sentence} {words} Rings: rows the real model gets wrong, out of fold.{drawn}",
        classes,
        points=True,
        tips=tips,
    )


def _plane_words(plane: Plane) -> tuple[tuple[str, str], str]:
    """Names of the axes, and a sentence on what they are."""
    share = percent(float(plane.shares.sum()))
    if len(plane.shares) == 2:
        sentence = f"The two leading canonical variates hold {share} of the differences between classes."
        return ("first canonical variate", "second canonical variate"), sentence
    sentence = (
        f"Across: the first canonical variate ({share} of the differences between classes). Up: the first principal "
        "component of what it leaves, where the class means agree."
    )
    return ("canonical variate", "first principal component of the rest"), sentence


def ranking(name: str, candidates: Sequence[Any], score: str, title: str) -> Drawing:
    """The score the models are ranked by, with its standard error."""
    judged = [candidate for candidate in candidates if score in candidate.scores]
    # The class shares alone are mostly so far behind that nothing else could be distinguished beside them.
    shown = [candidate for candidate in judged if candidate.family != "baseline"] or judged
    labels = [short(candidate.label, 34) for candidate in shown]
    figure, ax = new_axes(0.7 + 0.27 * len(shown), left=label_width(labels))
    places = np.arange(len(shown))
    means = np.array([candidate.scores[score].mean for candidate in shown])
    errors = np.nan_to_num([candidate.scores[score].standard_error for candidate in shown])
    colours = [style.colour(0) if candidate.tied or candidate.rank == 1 else style.INK for candidate in shown]
    ax.hlines(places, means - errors, means + errors, color=colours, linewidth=2)
    for colour in dict.fromkeys(colours):
        of = [place for place in places if colours[place] == colour]
        ax.plot(means[of], of, "o", color=colour, markersize=5)
    style.name_rows(ax, labels)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.spines["left"].set_visible(False)
    ax.set(xlabel=title)
    told = [f"{c.label} {fixed(m)} ± {fixed(e)}" for c, m, e in zip(shown, means, errors, strict=True)]
    return Drawing(
        inline_svg(figure, name, f"{title} by model: {'; '.join(told)}."),
        f"{title[0].upper()}{title[1:]} over the folds, with one standard error. In colour: the best, and those as good.",
        tips=tips_at(ax, means, places, told),
    )


def learning_curve(name: str, sizes: Float, lines: Sequence[tuple[str, Float, Float]], title: str) -> Drawing:
    """A score against the number of rows: (what, mean, error) for training and for held-out rows."""
    figure, ax = new_axes(left=0.78)
    for k, (_, mean, error) in enumerate(lines):
        colour = style.colour(k)
        ax.fill_between(sizes, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
        ax.plot(sizes, mean, marker="o", markersize=4, **style.line(k))
    ax.set(xlabel="training rows", ylabel=title, xlim=(0, None))
    described = "; ".join(
        f"{what}: " + ", ".join(f"{fixed(m)} at {int(n)} rows" for n, m in zip(sizes, mean, strict=True))
        for what, mean, _ in lines
    )
    return Drawing(
        inline_svg(figure, name, f"Learning curve, {title}. {described}."),
        f"Learning curve: {title} against the number of training rows, with one standard error. "
        "Where the line of the left-out rows is still on its way, more rows would help.",
        [what for what, _, _ in lines],
        tips=[
            one
            for what, mean, error in lines
            for one in tips_at(
                ax,
                sizes,
                mean,
                [
                    f"{what}: {fixed(m)} ± {fixed(e)} at {int(n)} rows"
                    for n, m, e in zip(sizes, mean, error, strict=True)
                ],
            )
        ],
    )
