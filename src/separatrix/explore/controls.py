"""What can be set about a family on the page: each control checks what it is given, and knows its default."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from separatrix.explore.protocol import BadRequest


@dataclass(frozen=True)
class Control:
    """One parameter of a family.

    Parameters
    ----------
    name : str
        As the estimator has it.
    title : str
        As the page has it.
    kind : {"log", "range", "whole", "choice", "switch"}
        A slider of powers of ten, an even one, one of whole numbers, a menu, a box to tick.
    default : Any
    low, high : float
        Ends of a slider.
    options : tuple of (value, title)
        Of a menu.
    unlimited : bool
        Whether the slider goes on to infinity at its upper end.
    pad : str
        Name of the parameter with which it shares a pad: this one across, that one upwards.
    help : str
        What it does, in a sentence.
    """

    name: str
    title: str
    kind: Literal["log", "range", "whole", "choice", "switch"]
    default: Any
    low: float = 0.0
    high: float = 1.0
    options: tuple[tuple[Any, str], ...] = ()
    unlimited: bool = False
    pad: str = ""
    help: str = ""

    def described(self) -> dict[str, Any]:
        """For the page."""
        return asdict(self)

    def check(self, value: Any) -> Any:
        """The value, if it is one that the control can have."""
        if self.kind == "choice":
            if not any(value == known and type(value) is type(known) for known, _ in self.options):
                raise BadRequest(
                    f"{self.title} cannot be {value!r}; choose from {[known for known, _ in self.options]}."
                )
            return value
        if self.kind == "switch":
            if not isinstance(value, bool):
                raise BadRequest(f"{self.title} is either true or false.")
            return value
        if self.unlimited and value in ("inf", math.inf):
            return math.inf
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        slack = 1e-9 * max(1.0, abs(self.high))
        if not number or not self.low - slack <= value <= self.high + slack:
            raise BadRequest(f"{self.title} must be a number from {self.low:g} to {self.high:g}.")
        return round(value) if self.kind == "whole" else float(value)
