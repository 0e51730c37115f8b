"""How the displays look: on light and on dark pages, and for readers who do not see all colours.

The first four colours are Okabe and Ito's (Color Universal Design, 2008); all have a contrast of at least 3 to white and 2 to
near-black. A class differs from the next by its marker and its line style too. Names are data: none is read as a formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from separatrix.data.text import one_line

COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8F21FF", "#604A1F"),
    *("#EE0044", "#3344CC", "#446666", "#EE33DD", "#991144", "#882288"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
# The grey that has the same contrast to white and to black: text and axes on a page that may be either.
INK = "#767676"
_LITERAL = {"parse_math": False, "usetex": False}


def colour(k: int) -> str:
    """Of the k-th class."""
    return COLOURS[k % len(COLOURS)]


def marker(k: int) -> str:
    """Of the k-th class; there are seven, so that no two of 84 classes share it and the colour."""
    return MARKERS[k % len(MARKERS)]


def line(k: int) -> dict[str, Any]:
    """Colour and line style of the k-th class."""
    return {"color": colour(k), "linestyle": LINES[k % len(LINES)]}


def label(name: Any) -> str:
    r"""A name as the label of an artist, for a legend: ``$`` opens no formula, and a leading underscore hides nothing.

    Examples
    --------
    >>> from separatrix.plots.style import label
    >>> print(label("a$b_$"))
    a\$b_\$
    """
    text = one_line(name).replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text  # matplotlib leaves out labels that start with one


def new_axes(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """The axes given, as they are; else those of a new figure without a background, in a grey for any page."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # a slow import, and a window system perhaps

    figure, ax = plt.subplots(figsize=size, layout="constrained")
    figure.patch.set_alpha(0.0)
    ax.patch.set_alpha(0.0)
    ax.tick_params(which="both", colors=INK)
    for part in (ax.xaxis.label, ax.yaxis.label, ax.title):
        part.set_color(INK)
    for spine in ax.spines.values():
        spine.set_edgecolor(INK)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def name_axes(ax: Any, x: Any, y: Any) -> None:
    """Label the axes, literally."""
    ax.set_xlabel(one_line(x, 60), **_LITERAL)
    ax.set_ylabel(one_line(y, 60), **_LITERAL)


def name_rows(ax: Any, names: Sequence[Any]) -> None:
    """Name the places 0, 1, … of the vertical axis, literally."""
    ax.set_yticks(range(len(names)), [one_line(name) for name in names], **_LITERAL)


def add_legend(ax: Any) -> None:
    """A legend of all that has a label, without a background of its own."""
    from matplotlib.cbook import is_math_text

    if not ax.get_legend_handles_labels()[0]:
        return
    legend = ax.legend(labelcolor=ax.xaxis.label.get_color(), framealpha=0.0)
    for text in legend.get_texts():
        if not is_math_text(text.get_text()):
            text.set_usetex(False)  # TeX would trip over an underscore in a name


def with_defaults(artist: str, given: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Keywords for an artist ("Line2D", "PathCollection", …): the defaults, unless given under any of their names."""
    from matplotlib import cbook, collections, lines, patches

    known = next(getattr(room, artist) for room in (lines, collections, patches) if hasattr(room, artist))
    return {**defaults, **cbook.normalize_kwargs(given, known)}


def final_step(estimator: Any) -> Any:
    """The last step of a pipeline; any other estimator is its own."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def chosen_class(classes: Sequence[Any], wanted: Any, parameter: str) -> int:
    """Where a class stands among the classes."""
    labels = list(classes)
    if wanted not in labels:
        raise ValueError(f"{parameter} is {wanted!r}; give one of {labels}.")
    return labels.index(wanted)
