"""B13: fits to 10 GB of Parquet with mixed columns (numbers, holes, counts, flags, text, categories, dates), in little memory.

    goal:  seconds ≤ 1.3 × passes × seconds of one reading,    peak < 1 GB

A reading decodes all columns once, batch by batch, and does nothing with them. The passes of a fit are those of its solver and
the one that finds out what the columns are. Each fit runs in a process of its own; the peak is that of the whole process. This
file imports no numerical library: a child's peak begins with what its parent held. `--scale 0.01` is 100 MB. Passes that repeat
are served from kept blocks where the disk of temporary files has room, as by default.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.children import call
from benchmarks.result import OK, Result, Row, Verdict
from benchmarks.workload import Settings

BYTES = 10_000_000_000
FILE_ROWS, GROUP_ROWS = 1_000_000, 250_000
RATIO, PEAK = 1.3, 1_000_000_000
MODELS = {"LDA": "LinearDiscriminantAnalysis", "MixedNB": "MixedNB", "certified logistic": "LogisticRegression"}


def _rows(generator: Any, n: int) -> Any:
    import numpy as np
    import pyarrow as pa

    X, city, kind = generator.standard_normal((n, 9)), generator.integers(20, size=n), generator.integers(4, size=n)
    columns: dict[str, Any] = {f"x{j}": X[:, j] for j in range(8)}
    columns["hole"] = pa.array(X[:, 8], mask=generator.random(n) < 0.1)
    columns["count"], columns["flag"] = generator.poisson(3, n), generator.random(n) < 0.3
    names = np.array([f"city {i}" for i in range(20)])
    columns["city"] = pa.array(names[city], mask=generator.random(n) < 0.05)
    columns["kind"] = pa.DictionaryArray.from_arrays(pa.array(kind, pa.int8()), pa.array(["a", "b", "c", "d"]))
    columns["day"] = pa.array(generator.integers(10_000, 20_000, n).astype("int32"), pa.date32())
    scores = X[:, :8] @ np.linspace(-1, 1, 8) + 0.5 * (city % 3) + (kind == 2) + generator.logistic(size=n) - 0.5
    columns["label"] = np.where(scores > 0, "yes", "no")
    return pa.table(columns)


def make(folder: str, n_bytes: int) -> int:
    """Write files of about so many bytes together; how many rows they have."""
    import numpy as np
    from pyarrow import parquet

    generator, written, n_rows = np.random.default_rng(0), 0, 0
    while written < n_bytes:
        path = Path(folder) / f"part{n_rows // FILE_ROWS:05d}.parquet"
        table = _rows(generator, GROUP_ROWS)
        with parquet.ParquetWriter(path, table.schema) as writer:
            for _ in range(FILE_ROWS // GROUP_ROWS):
                writer.write_table(table)
                n_rows += len(table)
                if written + path.stat().st_size >= n_bytes:
                    break
                table = _rows(generator, GROUP_ROWS)
        written += path.stat().st_size
    return n_rows


def fit(folder: str, name: str) -> dict[str, Any]:
    """Read the files once and fit a model to them; seconds of both, passes, and the peak memory of this process."""
    import separatrix
    from separatrix.tables import table_batches

    def read() -> float:
        start = time.perf_counter()
        for path in sorted(Path(folder).glob("*.parquet")):
            for _ in table_batches(path):
                pass
        return time.perf_counter() - start

    reading = read()
    start = time.perf_counter()
    model = getattr(separatrix, MODELS[name])().fit(separatrix.scan_parquet(folder, target="label"))
    seconds = time.perf_counter() - start
    reading = min(reading, read())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    certificate = getattr(model.fit_, "certificate", None)
    return {
        "seconds": seconds,
        "reading": reading,
        "passes": model.fit_.passes,
        "peak": peak,
        "certificate": "" if certificate is None else str(certificate),
    }


@dataclass(frozen=True)
class TablesWorkload:
    id: str = "B13"
    title: str = "10 GB of mixed Parquet, less than 1 GB of memory"

    def run(self, settings: Settings) -> Result:
        rows, verdicts = [], []
        with TemporaryDirectory() as folder:
            n_rows = call(f"{__name__}:make", folder=folder, n_bytes=round(BYTES * settings.scale))
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
            for name in MODELS:
                done = call(f"{__name__}:fit", folder=folder, name=name)
                reads, ratio = done["passes"] * done["reading"], done["seconds"] / (done["passes"] * done["reading"])
                note = f"{done['passes']} passes, {reads:.1f} s of reading, peak {done['peak'] / 1e6:.0f} MB"
                note = f"{note}; {done['certificate']}" if done["certificate"] else note
                rows.append(Row(name, "context", status=OK, note=note, seconds=[done["seconds"]]))
                verdicts.append(Verdict(f"{name}: ≤ {RATIO:g} × its reads", f"{ratio:.2f}", ratio <= RATIO))
                peak = done["peak"]
                verdicts.append(Verdict(f"{name}: peak < {PEAK / 1e9:g} GB", f"{peak / 1e9:.2f} GB", peak < PEAK))
        data = f"{n_rows} rows of 14 columns in {size / 1e9:.2f} GB of Parquet; 33 features once encoded"
        return Result(rows, data=data, verdicts=verdicts)


WORKLOAD = TablesWorkload()
