"""The process that races problems, and its supervisor, which kills it when a fit overruns and starts another.

Problems and answers travel as lines of JSON through pipes of their own: standard output belongs to the libraries under test.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from benchmarks.atlas.draw import Problem
from benchmarks.children import ROOT

GRACE = 3.0  # seconds beyond the limit before the process is killed
DEATHS = 12  # of the process on one problem
WHOLE = 240.0  # seconds in all, whatever is under way


class Worker:
    """Races problems one after another in a child process that is reused while it lives."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.events: IO[bytes] | None = None

    def race(self, problem: Problem) -> list[dict[str, Any]]:
        """The rows of the problem; what overruns its limit is cut off. No rows where it cannot be raced."""
        known: dict[str, int] = {}
        cut: dict[str, float] = {}
        for _ in range(DEATHS):
            answer = self._attempt(problem, known, cut)
            if answer is not None:
                return answer
            self.stop()
        return []

    def _attempt(self, problem: Problem, known: dict[str, int], cut: dict[str, float]) -> list[dict[str, Any]] | None:
        """The rows, or None when the process had to be killed or died; `known` and `cut` are added to."""
        self._start()
        assert self.process is not None
        assert self.process.stdin is not None
        request = {"problem": problem.to_json(), "known": known, "cut": cut}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        under_way: dict[str, Any] = {}
        end = begun = time.monotonic()
        while True:
            end = begun + (under_way["limit"] + GRACE if under_way else WHOLE)
            event = self._next(max(0.0, end - time.monotonic()))
            if event is None and self._starved(under_way):
                begun = time.monotonic() - under_way["limit"] / 2
                continue
            if event is None:
                name = under_way.get("name", "")
                purpose = under_way.get("purpose", "")
                cut[purpose if purpose.startswith("reference") else name] = under_way.get("limit", WHOLE)
                return None
            begun = time.monotonic()
            kind = event["event"]
            if kind == "begin":
                under_way = {**event, "processor": self._processor()}
            elif kind == "end":
                under_way = {}
            elif kind == "cut":
                cut[event["name"]] = event["limit"]
            elif kind == "climbed":
                known[event["name"]] = event["index"]
            else:
                rows: list[dict[str, Any]] = event["rows"]
                return rows

    def _next(self, seconds: float) -> dict[str, Any] | None:
        """The next event, or None after so many seconds or when the process is dead."""
        assert self.events is not None
        ready, _, _ = select.select([self.events], [], [], seconds)
        line = self.events.readline() if ready else b""
        return json.loads(line) if line else None

    def _processor(self) -> float | None:
        """Seconds of processor time that the process has had; None where the system does not say, or it is dead."""
        assert self.process is not None
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _starved(self, under_way: dict[str, Any]) -> bool:
        """Whether the fit has overrun its limit only because others had the processor."""
        assert self.process is not None
        now, then = self._processor(), under_way.get("processor")
        alive = self.process.poll() is None
        return alive and now is not None and then is not None and now - then < under_way["limit"] / 2

    def _start(self) -> None:
        if self.process is not None:
            return
        reading, writing = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.atlas.worker", str(writing)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=None if "ATLAS_DEBUG" in os.environ else subprocess.DEVNULL,
            pass_fds=[writing],
        )
        os.close(writing)
        self.events = os.fdopen(reading, "rb", buffering=0)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        if self.events is not None:
            self.events.close()
            self.events = None


def main() -> None:
    """The child's side."""
    from benchmarks.atlas.race import race

    out = os.fdopen(int(sys.argv[1]), "w", buffering=1)

    def tell(event: dict[str, Any]) -> None:
        out.write(json.dumps(event) + "\n")
        out.flush()

    for line in sys.stdin:
        asked = json.loads(line)
        rows: list[dict[str, Any]] = []
        with contextlib.suppress(Exception):  # no reference, then no race: the supervisor says so
            rows = race(Problem(**asked["problem"]), asked["known"], asked["cut"], tell)
        tell({"event": "rows", "rows": rows})


if __name__ == "__main__":
    main()
