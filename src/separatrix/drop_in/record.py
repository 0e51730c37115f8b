"""What the swapped classes did in this process: fits by ours, fits handed back with their reasons, seconds of each."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

LOGGER = logging.getLogger("separatrix.accelerate")


@dataclass
class SwapRecord:
    """One class: whether its name means ours now, and what its fits were."""

    name: str
    module: str
    swapped: bool = False
    fits: int = 0
    seconds: float = 0.0
    handed_back: int = 0
    seconds_handed_back: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """A fit by ours, which counts if it ends well."""
        start = perf_counter()
        yield
        self.fits += 1
        self.seconds += perf_counter() - start

    @contextmanager
    def handed_back_for(self, reason: str, *, told: bool) -> Iterator[None]:
        """A fit by scikit-learn's class; a line of the log says why, once for every instance. What it refuses too is no fit."""
        start = perf_counter()
        yield
        self.handed_back += 1
        self.seconds_handed_back += perf_counter() - start
        self.reasons[reason] += 1
        if not told:
            LOGGER.info("%s: handed back to scikit-learn: %s", self.name, reason)


class SwapTable:
    """What was swapped, used and handed back, as it stood when it was asked for.

    Attributes
    ----------
    rows : list of SwapRecord
        One per class: ``name``, ``module``, ``swapped``, ``fits``, ``seconds``, ``handed_back``, ``seconds_handed_back`` and
        ``reasons``, a count of each.
    """

    def __init__(self, rows: list[SwapRecord]) -> None:
        self.rows = rows

    def __getitem__(self, name: str) -> SwapRecord:
        return next(row for row in self.rows if row.name == name)

    def __repr__(self) -> str:
        head = f"{'class':<30}{'swapped':>8}{'fits':>8}{'seconds':>10}{'handed back':>13}{'seconds':>10}"
        lines = [head, "-" * len(head)]
        for row in self.rows:
            lines.append(
                f"{row.name:<30}{'yes' if row.swapped else 'no':>8}{row.fits:>8}{row.seconds:>10.3f}"
                f"{row.handed_back:>13}{row.seconds_handed_back:>10.3f}"
            )
        reasons = [
            f"{row.name}, {count} time{'s' if count > 1 else ''}: {reason}"
            for row in self.rows
            for reason, count in row.reasons.most_common()
        ]
        return "\n".join([*lines, *(["", "Handed back to scikit-learn:"] if reasons else []), *reasons])
