"""A matplotlib figure as a piece of an HTML page.

Inline SVG takes part in the page: its text is text in the page's own font, and the colours of the displays become CSS
variables, which follow the page from light to dark. Since all inline SVGs share the page's ids, ids that are referred to get
the figure's own prefix and the others go.
"""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from markupsafe import Markup

from separatrix.data.text import for_html
from separatrix.plots import style

# Not quite black: black is what SVG takes for granted and matplotlib leaves out.
INK, LINE = "#111111", "#dddddd"

_VARIABLES = {
    INK: "currentColor",
    style.INK: "var(--muted)",
    LINE: "var(--line)",
    "#ffffff": "var(--page)",
} | {colour.lower(): f"var(--class-{k})" for k, colour in enumerate(style.COLOURS)}
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_DECIMALS = re.compile(r"-?\d+\.\d{2,}")
_REFERENCE = re.compile(r"#([\w-]+)")
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "separatrix",  # the same figure has the same bytes
    "text.parse_math": False,  # a column named "$x" is a name, no formula
    "font.size": 10.0,
    "font.family": ["DejaVu Sans"],  # one short name: the page puts its own font in its place
    "text.color": INK,
    "axes.edgecolor": style.INK,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "xtick.color": style.INK,
    "ytick.color": style.INK,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
}


@contextmanager
def page_style() -> Iterator[None]:
    """The look of all figures of the page, while they are drawn."""
    from matplotlib.style import context

    # "default" first: whatever style the user has chosen for their own figures
    with context(["default", _STYLE]), warnings.catch_warnings():
        # Text stays text, which the browser draws with the fonts it has.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def inline_svg(figure: Any, name: str, description: str) -> Markup:
    """A figure drawn within `page_style` as an ``<svg>`` element, with a text alternative; its ids have the prefix `name`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(["Creator", "Date", "Format", "Type"]))
    root = ElementTree.fromstring(buffer.getvalue())
    for child in root.findall(_SVG + "metadata"):
        root.remove(child)
    root.attrib.pop("width")
    root.attrib.pop("height")
    _shorten_ids(root, name)
    for element in root.iter():
        _restyle(element)
        element.tag = element.tag.removeprefix(_SVG)
    for key, value in {"role": "img", "aria-label": for_html(description)}.items():
        root.set(key, value)
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=True))


def _shorten_ids(root: ElementTree.Element, name: str) -> None:
    """Keep the ids that something refers to, short and with the figure's prefix."""
    references: dict[str, str] = {}
    for element in root.iter():
        for key in (_XLINK + "href", "clip-path"):
            for old in _REFERENCE.findall(element.get(key, "")):
                references.setdefault(old, f"{name}-{len(references)}")
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old in references:
            element.set("id", references[old])
        link = element.attrib.pop(_XLINK + "href", None)
        if link is not None:  # of a marker, or of a picture that is in the link itself
            element.set("href", "#" + references[link[1:]] if link.startswith("#") else link)
        if "clip-path" in element.attrib:
            element.set("clip-path", _REFERENCE.sub(lambda m: "#" + references[m[1]], element.get("clip-path", "")))


def _restyle(element: ElementTree.Element) -> None:
    """Variables for the colours of the displays, and no more decimals than one can see."""
    if "style" in element.attrib:
        element.set("style", _themed(element.get("style", "")))
    for key in ("d", "x", "y"):
        if key in element.attrib:
            element.set(key, _DECIMALS.sub(lambda found: f"{float(found[0]):.1f}", element.get(key, "")))
    if element.get("transform", "").startswith("rotate(-0 "):
        element.attrib.pop("transform")  # every level text has one
    marks = [child for child in element if child.tag == _SVG + "use"]
    shared = {mark.get("style") for mark in marks}
    if len(marks) > 1 and len(shared) == 1 and len(marks) == len(element):
        # A scatter plot repeats its colours at every point: once is enough, in the group around them.
        element.set("style", _themed(shared.pop() or ""))
        for mark in marks:
            mark.attrib.pop("style", None)


def _themed(style_text: str) -> str:
    return _COLOUR.sub(lambda found: _VARIABLES.get(found[0], found[0]), style_text)
