"""What a workload hands back: plain data that survives a trip through JSON."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

OK = "ok"
NOT_INSTALLED = "not installed"
MISSED_QUALITY = "did not reach the quality"
FAILED = "failed"


@dataclass
class Row:
    """One contender: every timed second, its worst error, its peak extra memory."""

    name: str
    role: str
    default: bool = False
    status: str = OK
    note: str = ""
    seconds: list[float] = field(default_factory=list)
    error: float | None = None
    peak_extra: int | None = None
    rung: float | None = None  # the tolerance it runs with; None: its default, or its note says

    @property
    def median(self) -> float | None:
        return median(self.seconds) if self.seconds else None

    @property
    def counted(self) -> float | None:
        """The median time, if it may enter a ratio: only at the required quality."""
        return self.median if self.status == OK else None


@dataclass
class Verdict:
    """A goal and what came of it; `met` is None where it could not be judged."""

    goal: str
    value: str
    met: bool | None


@dataclass
class Result:
    """All that is known of one workload after a run."""

    rows: list[Row]
    data: str = ""
    quality: str = ""
    x_bytes: int | None = None
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def ours(self) -> Row | None:
        """The row that the ratios are taken to."""
        return next((row for row in self.rows if row.role == "ours"), None)

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.name == name), None)

    def ratio(self, row: Row) -> float | None:
        """The row's time / our time, both at the required quality."""
        ours = self.ours.counted if self.ours else None
        return row.counted / ours if ours and row.counted and row is not self.ours else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Result:
        rows = [Row(**row) for row in stored["rows"]]
        verdicts = [Verdict(**verdict) for verdict in stored["verdicts"]]
        return cls(**{**stored, "rows": rows, "verdicts": verdicts})


def one_line(error: BaseException | str) -> str:
    """An error as one line without file paths, fit for a published table."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    first = next((line for line in text.strip().splitlines() if line.strip()), "no message")
    return re.sub(r"\s*\(?(?<![\w.])/[\w.+/-]+\)?", "", first).replace("|", "/")[:200]
