"""B13: `separatrix predict` on a CSV of 2 GB and on one of 200 MB: the memory must be the same.

The peak is that of the whole command, interpreter and libraries included. This file imports no numerical library: on Linux
a child's peak begins with what its parent held when it started it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.children import call
from benchmarks.result import FAILED, OK, Result, Row, Verdict
from benchmarks.workload import Settings

SMALL, LARGE = "200 MB", "2 GB"
BYTES = {SMALL: 200_000_000, LARGE: 2_000_000_000}
CHUNK_ROWS = 20_000
COLUMNS = 20
RATIO, PEAK = 1.1, 1_000_000_000


def make_model(folder: str) -> str:
    """Fit a model on some rows; the text of these rows without their header is left in `folder`, to be written repeatedly."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    generator = np.random.default_rng(0)
    X = generator.normal(size=(CHUNK_ROWS, COLUMNS)).round(6)
    city = np.array(["Bergen", "Lagos", "Quito", "Turin"])[generator.integers(4, size=CHUNK_ROWS)]
    label = np.array(["no", "yes"])[(X[:, 0] + (city == "Quito") + generator.normal(size=CHUNK_ROWS) > 0).astype(int)]
    columns: dict[str, Any] = {f"x{j}": X[:, j] for j in range(COLUMNS)}
    table = pa.table({**columns, "city": city, "label": label})
    train = Path(folder) / "train.csv"
    csv.write_csv(table, train)
    model = Path(folder) / "model.safetensors"
    command = [_command(), "fit", str(train), "--target", "label", "--model", "logistic", "-o", str(model)]
    subprocess.run(command, check=True, capture_output=True)
    return str(model)


def predict(model: str, train: str, n_bytes: int) -> dict[str, Any]:
    """Write about so many bytes of rows, run the command on them; its seconds, its peak, whether every row has its line."""
    header, _, chunk = Path(train).read_bytes().partition(b"\n")
    repeats = max(1, n_bytes // len(chunk))
    data, output = Path(train).with_name("data.csv"), Path(train).with_name("predictions.csv")
    with data.open("wb") as file:
        file.write(header + b"\n")
        for _ in range(repeats):
            file.write(chunk)
    del chunk
    start = time.perf_counter()
    subprocess.run(
        [_command(), "predict", model, str(data), "-o", str(output), "--quiet"], check=True, capture_output=True
    )
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    with output.open("rb") as file:
        lines = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    size = data.stat().st_size
    data.unlink()
    output.unlink()
    return {"seconds": seconds, "peak": peak, "size": size, "whole": lines == repeats * CHUNK_ROWS + 1}


def _command() -> str:
    return str(Path(sys.executable).with_name("separatrix"))


@dataclass(frozen=True)
class PredictStreamWorkload:
    id: str = "B13"
    title: str = "predict a 2 GB CSV, flat memory"

    def run(self, settings: Settings) -> Result:
        rows, peaks = [], {}
        with TemporaryDirectory() as folder:
            model = call(f"{__name__}:make_model", folder=folder)
            train = str(Path(folder) / "train.csv")
            for name, n_bytes in BYTES.items():
                done = call(f"{__name__}:predict", model=model, train=train, n_bytes=round(n_bytes * settings.scale))
                note = f"peak {done['peak'] / 1e6:.0f} MB, {done['size'] / done['seconds'] / 1e6:.0f} MB/s"
                status = OK if done["whole"] else FAILED
                rows.append(Row(name, "context", status=status, note=note, seconds=[done["seconds"]]))
                peaks[name] = done["peak"]
        ratio = peaks[LARGE] / peaks[SMALL]
        written = all(row.status == OK for row in rows)
        return Result(
            rows,
            data=f"{COLUMNS} numeric columns and a categorical one as text; logistic regression; predictions written as CSV",
            verdicts=[
                Verdict("every row has its prediction", "yes" if written else "rows are missing", written),
                Verdict(f"peak at {LARGE} ≤ {RATIO:g} × the peak at {SMALL}", f"{ratio:.3f}", ratio <= RATIO),
                Verdict(f"peak at {LARGE} < {PEAK / 1e9:g} GB", f"{peaks[LARGE] / 1e9:.2f} GB", peaks[LARGE] < PEAK),
            ],
        )


WORKLOAD = PredictStreamWorkload()
