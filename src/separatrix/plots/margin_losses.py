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
from separatrix.objectives.margin_losses import MARGIN_LOSSES, Margin, ZeroOne
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
    derivative : {0, 1, 2}, default=0
        Whether the values are those of the losses, or of their first or second derivatives.

    Examples
    --------
    >>> from separatrix.plots import MarginLossDisplay
    >>> display = MarginLossDisplay.from_losses(["hinge", "squared_hinge"], margins=[-1.0, 0.0, 1.0])
    >>> display.values["squared_hinge"].tolist()
    [4.0, 1.0, 0.0]
    """

    margins: Float
    values: dict[str, Float]
    derivative: int = 0

    @classmethod
    def from_losses(
        cls, losses: Sequence[str | Margin] | None = None, margins: ArrayLike | None = None, *, derivative: int = 0
    ) -> Self:
        """The values of some of the losses of `LinearClassifier`, all by default.

        Parameters
        ----------
        losses : sequence of str or Margin, optional
            Names, "zero_one" among them, or losses of `separatrix.objectives`.
        margins : array-like of shape (n,), optional
            From −3 to 3 by default.
        derivative : {0, 1, 2}, default=0
            The losses, or their first or second derivatives.

        Returns
        -------
        MarginLossDisplay
        """
        known, chosen = {**MARGIN_LOSSES, "zero_one": ZeroOne()}, {}
        for one in MARGIN_LOSSES if losses is None else losses:
            if isinstance(one, Margin):
                own = next((name for name, loss in known.items() if type(loss) is type(one)), type(one).__name__)
                chosen[own] = one
            elif one in known:
                chosen[one] = known[one]
            else:
                raise ValueError(f"{one!r} is not a loss; the losses are {', '.join(known)}.")
        if derivative not in (0, 1, 2):
            raise ValueError(f"derivative is {derivative!r}; give 0, 1 or 2.")
        at = np.linspace(-3.0, 3.0, 601) if margins is None else np.asarray(margins, dtype=np.float64)
        which = ("loss", "derivative", "second_derivative")[derivative]
        return cls(at, {name: getattr(loss, which)(at) for name, loss in chosen.items()}, derivative)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        if not self.derivative and "zero_one" not in self.values:
            ax.step(
                self.margins, self.margins < 0, where="mid", color=style.INK, linewidth=1, label="misclassification"
            )
        for k, (name, values) in enumerate(self.values.items()):
            ax.plot(self.margins, values, **{"label": name.replace("_", " "), **style.line(k), **kwargs})
        ends = (-0.1, 4.0)
        if self.derivative and self.values:
            every = np.concatenate(list(self.values.values()))
            ends = (max(-4.0, 1.1 * float(every.min()) - 0.05), min(4.0, 1.1 * float(every.max()) + 0.05))
        ax.set_ylim(*ends)
        return "margin", ("loss", "derivative of the loss", "second derivative of the loss")[self.derivative]
