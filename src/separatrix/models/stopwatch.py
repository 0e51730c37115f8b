"""Seconds and passes over the data of one fit."""

from __future__ import annotations

from time import perf_counter

from separatrix.result import Certificate, Fit, Status


class Stopwatch:
    """Seconds and passes of one fit."""

    def __init__(self) -> None:
        self._start = perf_counter()
        self._passes = 0

    def start_at(self, passes: int) -> None:
        """Passes that a source had made before this fit are not its own."""
        self._passes = passes

    def fit(
        self, status: Status, passes: int, detail: str = "", certificate: Certificate | None = None, iterations: int = 0
    ) -> Fit:
        """The record of the fit that ends now."""
        return Fit(status, max(0, passes - self._passes), perf_counter() - self._start, iterations, detail, certificate)
