"""The proof of a linear machine: the best published point and the best lower bound so far.

    upper    P(w, b) at the coefficients that are published, rounding counted against it
    lower    D(τα) for a feasible α: any share 0 ≤ τ ≤ 1 of it is feasible, and D(τα) = τ·gain − ½τ²·curved

A lower bound of the optimum holds for every point, so the gap is that of the best point and the best bound, wherever on the
way each was found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.centred_rows import EPS, SUM
from separatrix.result import Certificate, Status

# Rounding of what is published is to blame once the point behind it is this much better than was asked for.
_CLEARLY = 0.1
# Steps without the gap falling by a tenth, after which nothing more is to be expected.
_PATIENCE, _PROGRESS = 12, 0.9
# Of the objective: what is left of a difference of two that were computed by different sums.
_DIGITS = 1e-13


def primal_values(w: Float, squared: float, price: Float, slack: Float, most: Float, power: int) -> tuple[float, float]:
    """½‖w‖² + Σ C slackᵖ, and the same for the largest slacks that rounding allows, with the rounding of the sums counted."""
    value = 0.5 * squared + float((price * slack**power).sum())
    upper = float((price * most**power).sum()) * (1.0 + 2 * SUM)
    return value, 0.5 * squared * (1.0 + (len(w) + 8.0) * EPS) + upper


def best_dual_value(gain: Any, curved: Any, rounding: float = 1.0) -> Any:
    """max over 0 ≤ τ ≤ 1 of τ·gain − ½τ²·curved, rounding counted; at least that of τ = 0. One, or one per machine."""
    share = np.minimum(1.0, gain / np.where(curved > 0, curved, gain))
    found = (share * gain - 0.5 * share**2 * curved * rounding) * (1.0 - 4.0 * EPS)
    return np.where((gain > 0) & np.isfinite(curved), found, 0.0)


@dataclass(frozen=True)
class ProvenPoint:
    """Coefficients as they are published, and what one look at the data proves of them."""

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
    alpha: Float | None = field(default=None, repr=False)
    """The multipliers of the bound, where they are kept."""


@dataclass
class Record:
    """The best point and bound of a fit, and its trace."""

    tol: float  # of the gap, relative to the objective
    best: ProvenPoint | None = None
    lower: float = 0.0
    alpha: Float | None = None
    trace: list[dict[str, Any]] = field(default_factory=list)
    _waited: int = 0
    _least: float = np.inf

    def add(self, point: ProvenPoint) -> None:
        """Take a point; objectives are nowhere negative."""
        if self.best is None or point.upper < self.best.upper:
            self.best = point
        self._raise(point)
        gap = point.upper - point.lower
        self._least, self._waited = (gap, 0) if gap < _PROGRESS * self._least else (self._least, self._waited + 1)

    def _raise(self, point: ProvenPoint) -> None:
        if self.alpha is None or point.lower > self.lower:
            self.lower, self.alpha = max(self.lower, point.lower), point.alpha

    @property
    def gap(self) -> float:
        """Published value less the bound."""
        return np.inf if self.best is None else max(0.0, self.best.upper - self.lower)

    @property
    def goal(self) -> float:
        """What the gap has to fall below."""
        return 0.0 if self.best is None else self.tol * self.best.value

    @property
    def converged(self) -> bool:
        """Whether the published point is as good as was asked for."""
        return self.gap <= self.goal

    @property
    def _unrounded_gap(self) -> float:
        return np.inf if self.best is None else self.best.unrounded - self.lower

    @property
    def finished(self) -> bool:
        """Whether it has converged, or only the rounding of what is published is in the way."""
        return self.converged or self._unrounded_gap <= _CLEARLY * self.goal

    @property
    def stalled(self) -> bool:
        """Whether the gap of the points themselves has stopped falling."""
        return self._waited >= _PATIENCE

    def prefer(self, point: ProvenPoint) -> None:
        """Take a point that is known to more digits, unless it is worse by more than rounding."""
        self._raise(point)
        if self.best is not None and point.upper - self.lower <= max(2.0 * self.gap, _DIGITS * point.value):
            self.best = point

    def change_method(self) -> None:
        """Another method goes on: its points may be worse at first."""
        self._least, self._waited = np.inf, 0

    def status(self, otherwise: Status) -> Status:
        """Why the fit ended, at the published point."""
        if self.converged:
            return Status.CONVERGED
        if otherwise is Status.STALLED and self._unrounded_gap <= self.goal:
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
        assert self.best is not None, "no point was proven"
        return Certificate(
            self.gap,
            self.best.value,
            "duality gap",
            stationarity=float(np.sqrt(2.0 * self.gap)),  # ½‖w − w*‖² is at most the gap
            dual_feasibility=self.best.imbalance,
            complementary_slackness=self.best.complementary,
        )
