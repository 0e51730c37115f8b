"""The best published point and the best lower bound of a fit so far.

A lower bound of the optimum holds for every point, so the gap is that of the best point and the best bound, wherever on the
way each was found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.result import Certificate, Status

# Rounding of what is published is to blame once the point behind it is this much better than was asked for.
_CLEARLY = 0.1
# Steps without the gap falling by a tenth, after which nothing more is to be expected.
_PATIENCE, _PROGRESS = 12, 0.9
# Of the objective: what is left of a difference of two that were computed by different sums.
_DIGITS = 1e-13


@dataclass(frozen=True)
class Judged:
    """A point, published, and what one look at the data tells of it."""

    w: Float
    b: Any
    value: float
    """The objective at (w, b), as computed."""
    upper: float
    """The same with rounding counted against it."""
    unrounded: float
    """`upper` before the intercept was rounded."""
    lower: float
    """A lower bound of the optimum, rounding counted."""
    scores: Float = field(repr=False)
    """(X − 1cᵀ)w."""
    imbalance: float = 0.0
    complementary: float = 0.0


@dataclass
class Record:
    """What a fit has reached.

    Parameters
    ----------
    tol : float
        Of the gap, relative to the objective.
    """

    tol: float
    best: Judged | None = None
    lower: float = 0.0
    trace: list[dict[str, Any]] = field(default_factory=list)
    _waited: int = 0
    _least: float = np.inf

    def add(self, point: Judged) -> None:
        """Take a point; objectives are nowhere negative."""
        if self.best is None or point.upper < self.best.upper:
            self.best = point
        self.lower = max(self.lower, point.lower)
        gap = point.upper - point.lower
        self._least, self._waited = (gap, 0) if gap < _PROGRESS * self._least else (self._least, self._waited + 1)

    @property
    def gap(self) -> float:
        """Published value less the bound."""
        return np.inf if self.best is None else max(0.0, self.best.upper - self.lower)

    @property
    def goal(self) -> float:
        """What the gap has to fall below."""
        return 0.0 if self.best is None else self.tol * self.best.value

    @property
    def arrived(self) -> bool:
        """Whether the published point is as good as was asked for."""
        return self.gap <= self.goal

    @property
    def _behind(self) -> float:
        """The gap of the point before it was rounded."""
        return np.inf if self.best is None else self.best.unrounded - self.lower

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do: it has arrived, or only the rounding of what is published is in the way."""
        return self.arrived or self._behind <= _CLEARLY * self.goal

    @property
    def in_vain(self) -> bool:
        """Whether the gap of the points themselves has stopped falling."""
        return self._waited >= _PATIENCE

    def prefer(self, point: Judged) -> None:
        """Take a point that is known to more digits, unless it is worse by more than rounding."""
        self.lower = max(self.lower, point.lower)
        if self.best is not None and point.upper - self.lower <= max(2.0 * self.gap, _DIGITS * point.value):
            self.best = point

    def turn(self) -> None:
        """Another method goes on: its points may be worse at first."""
        self._least, self._waited = np.inf, 0

    def status(self, otherwise: Status) -> Status:
        """Why the fit ended, judged at the published point."""
        if self.arrived:
            return Status.CONVERGED
        if otherwise is Status.STALLED and self._behind <= self.goal:
            return Status.ROUNDED
        return otherwise

    def note(self, iteration: int, callback: Any) -> None:
        """Add an entry to the trace."""
        value = np.inf if self.best is None else self.best.value
        self.trace.append({"iteration": iteration, "objective": value, "gap": self.gap})
        if callback is not None:
            callback(self.trace[-1])

    @property
    def certificate(self) -> Certificate:
        """Of the best point."""
        assert self.best is not None, "no point was judged"
        return Certificate(
            self.gap,
            self.best.value,
            "duality gap",
            stationarity=float(np.sqrt(2.0 * self.gap)),  # ½‖w − w*‖² is at most the gap
            dual_feasibility=self.best.imbalance,
            complementary_slackness=self.best.complementary,
        )
