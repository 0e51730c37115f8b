"""How the coefficients grow as the penalty weakens, from left to right.

With more than two classes a column has one coefficient per class: one class is shown, or the length of them all,

    ‖(w_1j, …, w_Kj)‖

which is 0 exactly where the column is in no class's score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from separatrix.data.block import Float
from separatrix.models.least_squares.path import RidgePath
from separatrix.models.logistic.path import LogisticPath
from separatrix.plots import style
from separatrix.plots.display import Display


@dataclass(eq=False, repr=False)
class CoefficientPathDisplay(Display):
    """Coefficients along a grid of penalties, the weakest on the right.

    `plot` names the ``n_labels=8`` columns that become largest, the others are grey; other keywords are for `Axes.plot`.

    Parameters
    ----------
    penalties : ndarray of shape (n,)
        C, or α.
    coefs : ndarray of shape (n, n_features)
    feature_names : list of str
    xlabel, ylabel : str
    weakest_last : bool, default=True
        Whether the larger numbers are the weaker penalties, as for C; for α it is the other way round.

    Attributes
    ----------
    lines_ : list
        The lines that were plotted last, one per column.

    Examples
    --------
    >>> from separatrix import logistic_path
    >>> from separatrix.plots import CoefficientPathDisplay
    >>> path = logistic_path([[0.0, 1.0], [2.0, 0.0], [3.0, 1.0]], [0, 1, 1], Cs=[0.1, 1.0], l1_ratio=1.0)
    >>> (CoefficientPathDisplay.from_path(path).coefs != 0).sum(axis=1).tolist()
    [0, 1]
    """

    penalties: Float
    coefs: Float
    feature_names: list[str]
    xlabel: str = "C"
    ylabel: str = "coefficient"
    weakest_last: bool = True
    lines_: list[Any] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def from_path(
        cls,
        path: LogisticPath | RidgePath,
        *,
        feature_names: Sequence[str] | None = None,
        class_of_interest: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Take up a path, and plot it.

        Parameters
        ----------
        path : LogisticPath or RidgePath
            What `logistic_path` or `ridge_path` gives.
        feature_names : sequence of str, optional
            x0, x1, … when left out.
        class_of_interest : label, optional
            With more than two classes, the class whose coefficients are shown, or the position of a target of `ridge_path`;
            by default the length over all of them.
        ax, **kwargs
            The matplotlib Axes, a new figure when left out. For the lines: `Axes.plot`.

        Returns
        -------
        CoefficientPathDisplay
        """
        coefs = path.coefs
        if isinstance(path, LogisticPath):
            penalties, known, xlabel = path.Cs, path.classes.tolist(), "C (weaker penalty to the right)"
        else:
            penalties, known, xlabel = path.alphas, list(range(coefs.shape[1])), "α (weaker penalty to the right)"
        names = [f"x{j}" for j in range(coefs.shape[2])] if feature_names is None else [str(n) for n in feature_names]
        if len(names) != coefs.shape[2]:
            raise ValueError(f"feature_names has {len(names)} names for {coefs.shape[2]} columns; give one per column.")
        ylabel = "coefficient"
        if coefs.shape[1] == 1:
            shown = coefs[:, 0]
        elif class_of_interest is None:
            shown, ylabel = np.linalg.norm(coefs, axis=1), "length of the coefficients over the classes"
        else:
            shown = coefs[:, style.chosen_class(known, class_of_interest, "class_of_interest")]
            ylabel = f"coefficient for {class_of_interest}"
        return cls(penalties, shown, names, xlabel, ylabel, isinstance(path, LogisticPath)).plot(ax, **kwargs)

    def _draw(self, ax: Any, *, n_labels: int = 8, **kwargs: Any) -> tuple[str, str]:
        order = np.argsort(self.penalties)
        x, y = self.penalties[order], self.coefs[order]
        largest = np.argsort(-np.abs(y).max(axis=0), kind="stable")[:n_labels].tolist()
        self.lines_ = []
        for j, name in enumerate(self.feature_names):
            defaults: dict[str, Any] = {"color": style.INK, "linewidth": 0.5, "alpha": 0.6}
            if j in largest:
                rank = largest.index(j)
                defaults = {"label": style.label(name), "linewidth": 1.5, "zorder": 3, **style.line(rank)}
            self.lines_ += ax.plot(x, y[:, j], **style.with_defaults("Line2D", kwargs, **defaults))
        positive = x[x > 0]
        if len(positive) < len(x):  # α = 0 has its place on an axis that is linear next to 0
            ax.set_xscale("symlog", linthresh=float(positive.min(initial=1.0)))
        else:
            ax.set_xscale("log")
        if not self.weakest_last and not ax.xaxis_inverted():
            ax.invert_xaxis()
        ax.axhline(0.0, color=style.INK, linewidth=0.8, linestyle=":")
        return self.xlabel, self.ylabel
