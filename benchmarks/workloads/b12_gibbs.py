"""B12, second half: effective draws a second from the posterior itself, ours against the No-U-Turn sampler.

A time here is that for 1000 effective draws of the coefficient that mixes worst: seconds of the run, warm-up draws included,
times 1000 over its bulk effective sample size, which the peer's own function counts. Compiling is not timed. The draws are held
to means and deviations of the posterior by importance sampling with NumPy and SciPy alone (`posterior.py`).
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.children import ChildFailed, call
from benchmarks.contender import OURS, construct
from benchmarks.data import logistic_rows
from benchmarks.goals import Faster
from benchmarks.peers import numpyro
from benchmarks.posterior import importance_sampled
from benchmarks.result import FAILED, MISSED_QUALITY, NOT_INSTALLED, OK, Result, Row, one_line
from benchmarks.workload import Settings

CHAINS, DRAWS = 4, 1000
# Means of the draws within this many posterior standard deviations, and deviations within this share, of the reference.
TOLERANCE = 0.2
REFERENCE_DRAWS = 1_500
LEAST_EFFECTIVE = 500  # of the reference: its own error is then a twentieth of a deviation
# Rows, columns, and the chains, warm-up draws and draws of the peer: fewer where each of them takes a second.
SIZES = ((10_000, 20, (4, 500, 1000)), (100_000, 50, (2, 150, 150)))


class Ours:
    """Our chains, (chains, draws, p)."""

    def fit(self, X: Any, y: Any) -> Ours:
        parameters = {
            "prior_precision": 1.0,
            "posterior": "gibbs",
            "n_chains": CHAINS,
            "n_draws": DRAWS,
            "random_state": 0,
        }
        model = construct("separatrix:BayesianLogisticRegression", parameters).fit(X, y)
        self.draws_ = model.draws_.theta[:, :, 0]
        return self


def in_child(size: int, scale: float, repeats: int) -> dict[str, Any]:
    """Rows of the table for data of one size."""
    rows, columns, draws = SIZES[size]
    note = f"{draws[0]} chains, {draws[1]} draws to warm up, {draws[2]} kept"
    contenders = (
        OURS.contender("Pólya–Gamma Gibbs", Ours, note=f"{CHAINS} chains, 250 draws to warm up, {DRAWS} kept"),
        numpyro.PEER.contender("NUTS", lambda: numpyro.Nuts(*draws), default=True, note=note),
    )
    data = logistic_rows(rows, columns, 2)(scale)
    known = importance_sampled(data.X, data.y.astype(np.float64), REFERENCE_DRAWS)
    if known.effective < LEAST_EFFECTIVE:
        raise ArithmeticError(f"the reference has only {known.effective:.0f} effective draws")
    found = [Row(c.name, c.role, c.default, note=c.note) for c in contenders]
    for turn in range(repeats + 1):
        for contender, row in zip(contenders, found, strict=True):
            if not contender.peer.installed or not numpyro.PEER.installed:  # the peer is also who counts
                row.status = NOT_INSTALLED
                continue
            model = contender.build()
            start = time.perf_counter()
            model.fit(data.X, data.y)
            seconds = time.perf_counter() - start
            size = import_module("numpyro.diagnostics").effective_sample_size(model.draws_)
            means, spreads = model.draws_.mean(axis=(0, 1)), model.draws_.std(axis=(0, 1))
            apart = np.abs((means - known.mean) / known.deviations).max()
            row.error = float(max(apart, np.abs(spreads / known.deviations - 1).max()))
            row.status = OK if row.error <= TOLERANCE else MISSED_QUALITY
            if turn:  # the first is the warm-up
                row.seconds.append(seconds * 1000 / float(np.min(size)))
    return {"rows": [asdict(row) for row in found], "data": data.description}


@dataclass(frozen=True)
class EffectiveDraws:
    """One table of both sizes; the goal is judged for each."""

    id: str = "B12"
    title: str = "seconds for 1000 effective draws from the posterior"

    def run(self, settings: Settings) -> Result:
        whole = Result([], quality="means of the draws in posterior deviations, and these, against importance sampling")
        for size, (rows, columns, _) in enumerate(SIZES):
            try:
                found = call(
                    f"{__name__}:in_child", size=size, scale=settings.scale, repeats=min(2 - size, settings.repeats)
                )
            except ChildFailed as error:
                whole.rows.append(Row(f"{rows} × {columns}", "context", status=FAILED, note=one_line(str(error))))
                continue
            part = Result([Row(**row) for row in found["rows"]])
            verdict = Faster(10).judge(part)
            verdict.goal = f"{rows} × {columns}: {verdict.goal}"
            for row in part.rows:
                row.name, row.role = f"{row.name}, {rows} × {columns}", "context"
            whole.rows += part.rows
            whole.verdicts.append(verdict)
            whole.data = f"{whole.data}; {found['data']}".removeprefix("; ")
        return whole


WORKLOAD = EffectiveDraws()
