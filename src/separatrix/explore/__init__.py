"""The explorer: points are drawn and dragged in the browser, and the boundaries of all families follow.

    separatrix explore                            a page of your own, on this machine alone
    separatrix explore table.csv --target y       two columns of a table, or its discriminant coordinates
    separatrix.explore(X, y)                      the same page in a notebook

All arithmetic is the library's; the page only draws (`protocol` has the messages).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

__all__: list[str] = []


class _Explore(ModuleType):
    """The module can be called, so that `separatrix.explore(X, y)` and `separatrix.explore.server` both have their names."""

    def __call__(self, X: Any = None, y: Any = None, *, family: str = "logistic", height: int = 760) -> Any:
        """Show the explorer in a notebook.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), optional
            Rows of at least two numbers: the first two discriminant coordinates are shown, and any two columns can be chosen.
            By default, a data set of the explorer's own.
        y : array-like of shape (n_samples,), optional
            Their labels.
        family : str
            The classifier to begin with.
        height : int
            Of the widget, in pixels.

        Returns
        -------
        anywidget.AnyWidget
        """
        from separatrix.explore.widget import explorer_widget

        return explorer_widget(X, y, family=family, height=height)


sys.modules[__name__].__class__ = _Explore
