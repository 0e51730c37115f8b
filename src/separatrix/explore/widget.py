"""The explorer in a notebook: an anywidget with the same page, whose messages travel through the kernel."""

from __future__ import annotations

import warnings
from importlib.resources import files
from typing import Any

from separatrix.explore.answering import Conversation
from separatrix.explore.families import family_of
from separatrix.explore.plane_table import PlaneTable

NEEDED = "The explorer needs anywidget in a notebook: pip install 'separatrix[explore]'."


def explorer_widget(X: Any = None, y: Any = None, *, family: str = "logistic", height: int = 760) -> Any:
    """The explorer on these rows, as a widget; see `separatrix.explore`.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features), optional
    y : array-like of shape (n_samples,), optional
    family : str
        The classifier to begin with.
    height : int
        In pixels.

    Returns
    -------
    anywidget.AnyWidget
    """
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError(NEEDED) from error
    if (X is None) != (y is None):
        raise ValueError("Give X and y together, or neither.")
    family_of(family)
    conversation = Conversation(None if X is None else PlaneTable.of_arrays(X, y))
    static = files("separatrix.explore") / "static"
    traits = {
        "_esm": (static / "explorer.js").read_text(encoding="utf-8"),
        "_css": (static / "explorer.css").read_text(encoding="utf-8"),
        "family": traitlets.Unicode(family).tag(sync=True),
        "height": traitlets.Int(height).tag(sync=True),
    }
    widget = type("ExplorerWidget", (anywidget.AnyWidget,), traits)()

    def reply(_: Any, message: Any, __: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a fit warns of is in its status, which the page shows
            widget.send(conversation.answer(message if isinstance(message, dict) else {}))

    widget.on_msg(reply)
    return widget
