"""The rule by which tolerances are chosen: the loosest of a fixed ladder with which the answer reaches the quality.

A contender that stops by a tolerance is fitted with each rung in turn, from the loosest on, until its answer is good enough.
The rung is recorded beside its time. What a solver stops by differs (gradients, gaps, violations), the rule does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# None is the library's default.
ONCE: tuple[float | None, ...] = (None,)
RUNGS: tuple[float | None, ...] = (None, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
DECADES: tuple[float | None, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
OUR_RUNGS: tuple[float | None, ...] = (None, 1e-5, 1e-6, 1e-7)


@dataclass(frozen=True)
class Try:
    """One fit on the way up: its tolerance, its seconds, its error."""

    rung: float | None
    seconds: float
    error: float


@dataclass(frozen=True)
class Climb:
    """The fits of a contender, and the first of them that reached the quality."""

    tries: tuple[Try, ...]
    reached: Try | None

    @property
    def nearest(self) -> Try | None:
        """The fit nearest the quality, whether it reached it or not."""
        return min(self.tries, key=lambda each: _order(each.error), default=None)


def climb(
    rungs: Sequence[float | None], quality: float, fit: Callable[[float | None], tuple[float, float] | None]
) -> Climb:
    """Fit with each rung until the error is at most `quality`; `fit` gives seconds and error, or None to end the climb."""
    tries: list[Try] = []
    for rung in rungs:
        done = fit(rung)
        if done is None:
            break
        tries.append(Try(rung, *done))
        if tries[-1].error <= quality:
            return Climb(tuple(tries), tries[-1])
    return Climb(tuple(tries), None)


def shown(rung: float | None) -> str:
    return "default" if rung is None else f"tol={rung:.0e}".replace("e-0", "e-")


def _order(error: Any) -> float:
    return math.inf if math.isnan(error) else float(error)
