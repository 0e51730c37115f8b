"""The losses of the margin m = ỹ f(x), side by side.

Each is an upper bound on, or a smooth stand-in for, the misclassification [m < 0]; how it grows to the left is what an outlier
costs, and where it vanishes to the right is what a row that is right needs to be left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Float
from separatrix.objectives.margin_losses import MARGIN_LOSSES
from separatrix.plots import style
from separatrix.plots.display import Display


@dataclass(eq=False, repr=False)
class MarginLossDisplay(Display):
    """Values of margin losses, and their plot.

    Parameters
    ----------
    margins : ndarray of shape (n,)
    values : dict of str to ndarray of shape (n,)
        By the name of the loss.

    Examples
    --------
    >>> from separatrix.plots import MarginLossDisplay
    >>> display = MarginLossDisplay.from_losses(["hinge", "squared_hinge"], margins=[-1.0, 0.0, 1.0])
    >>> display.values["squared_hinge"].tolist()
    [4.0, 1.0, 0.0]
    """

    margins: Float
    values: dict[str, Float]

    @classmethod
    def from_losses(cls, losses: Sequence[str] | None = None, margins: ArrayLike | None = None) -> Self:
        """The values of some of the losses of `LinearClassifier`, all by default.

        Parameters
        ----------
        losses : sequence of str, optional
        margins : array-like of shape (n,), optional
            From −3 to 3 by default.

        Returns
        -------
        MarginLossDisplay
        """
        names = list(MARGIN_LOSSES) if losses is None else list(losses)
        unknown = [name for name in names if name not in MARGIN_LOSSES]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not a loss; the losses are {', '.join(MARGIN_LOSSES)}.")
        at = np.linspace(-3.0, 3.0, 601) if margins is None else np.asarray(margins, dtype=np.float64)
        positive = np.ones(len(at), dtype=np.intp)
        return cls(at, {name: MARGIN_LOSSES[name].value(positive, at[:, None]) for name in names})

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        ax.step(self.margins, self.margins < 0, where="mid", color=style.INK, linewidth=1, label="misclassification")
        for name, values in self.values.items():
            ax.plot(self.margins, values, **{"label": name.replace("_", " "), **kwargs})
        ax.set_ylim(-0.1, 4.0)
        return "margin", "loss"
