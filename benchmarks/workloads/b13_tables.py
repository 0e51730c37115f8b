"""B13: fits to 10 GB of Parquet with mixed columns (numbers, holes, counts, flags, text, categories, dates), in little memory.

    goal:  seconds ≤ 1.3 × passes × seconds of one reading,    peak < 1 GB

A reading decodes all columns once, batch by batch, and does nothing with them: the quicker of two counts, as of two fits, which
take turns. The passes of a fit are those of its solver and
the one that finds out what the columns are. Each fit runs in a process of its own; the peak is that of the whole process. This
file imports no numerical library: a child's peak begins with what its parent held. `--scale 0.01` is 100 MB. Passes that repeat
are served from kept blocks where the disk of temporary files has room, as by default.

The files are made in a temporary folder, which is removed again, or in B13_FOLDER if that is set: what is there already, from a
run that was broken off or from one before, is not made again, and all of it stays (a folder in it for each size).
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from benchmarks.children import ChildFailed, call
from benchmarks.result import FAILED, OK, Result, Row, Verdict, one_line
from benchmarks.workload import Settings

BYTES = 10_000_000_000
FILE_ROWS, GROUP_ROWS = 1_000_000, 250_000
RATIO, PEAK, ROOM = 1.3, 1_000_000_000, 1.1
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
    """Write files of so many bytes together, those that are missing; how many rows all have.

    Each is of a seed of its own and gets its name when it is complete.
    """
    import numpy as np
    from pyarrow import parquet

    written = n_rows = number = 0
    while written < n_bytes:
        path = Path(folder) / f"part{number:05d}.parquet"
        if not path.exists():
            generator, unfinished = np.random.default_rng(number), path.with_suffix(".unfinished")
            table = _rows(generator, GROUP_ROWS)
            with parquet.ParquetWriter(unfinished, table.schema) as writer:
                writer.write_table(table)
                for _ in range(1, FILE_ROWS // GROUP_ROWS):
                    if written + unfinished.stat().st_size >= n_bytes:
                        break
                    writer.write_table(_rows(generator, GROUP_ROWS))
            unfinished.rename(path)
        written, number = written + path.stat().st_size, number + 1
        n_rows += int(parquet.read_metadata(path).num_rows)
    return n_rows


def fit(folder: str, name: str) -> dict[str, Any]:
    """Read the files and fit a model to them, twice; seconds of both, passes, and the peak memory of this process."""
    import separatrix
    from separatrix.tables import table_batches

    def read() -> float:
        start = time.perf_counter()
        for path in sorted(Path(folder).glob("*.parquet")):
            for _ in table_batches(path):
                pass
        return time.perf_counter() - start

    readings, fits = [], []
    for _ in range(2):
        readings.append(read())
        start = time.perf_counter()
        model = getattr(separatrix, MODELS[name])().fit(separatrix.scan_parquet(folder, target="label"))
        fits.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    certificate = getattr(model.fit_, "certificate", None)
    return {
        "seconds": fits,
        "reading": min(readings),
        "passes": model.fit_.passes,
        "peak": peak,
        "certificate": "" if certificate is None else str(certificate),
    }


@contextmanager
def _folder(n_bytes: int) -> Iterator[str]:
    """Where the files are, with room for them."""
    given = os.environ.get("B13_FOLDER")
    place = Path(given) / f"{n_bytes}" if given else Path(gettempdir())
    place.mkdir(parents=True, exist_ok=True)
    there = sum(path.stat().st_size for path in place.glob("part*.parquet")) if given else 0
    missing, free = n_bytes - there, shutil.disk_usage(place).free
    if free < ROOM * missing:
        raise ChildFailed(
            f"{place} has {free / 1e9:.0f} GB free and the files take {missing / 1e9:.0f}; set TMPDIR or B13_FOLDER."
        )
    if given:
        yield str(place)
        return
    with TemporaryDirectory() as folder:
        yield folder


@dataclass(frozen=True)
class TablesWorkload:
    id: str = "B13"
    title: str = "10 GB of mixed Parquet, less than 1 GB of memory"

    def run(self, settings: Settings) -> Result:
        rows, verdicts = [], []
        with _folder(round(BYTES * settings.scale)) as folder:
            n_rows = call(f"{__name__}:make", folder=folder, n_bytes=round(BYTES * settings.scale))
            size = sum(path.stat().st_size for path in Path(folder).glob("*.parquet"))
            for name in MODELS:
                try:
                    done = call(f"{__name__}:fit", folder=folder, name=name)
                except ChildFailed as error:
                    rows.append(Row(name, "context", status=FAILED, note=one_line(str(error))))
                    continue
                reads = done["passes"] * done["reading"]
                ratio = min(done["seconds"]) / reads
                note = f"{done['passes']} passes, {reads:.1f} s of reading, peak {done['peak'] / 1e6:.0f} MB"
                note = f"{note}; {done['certificate']}" if done["certificate"] else note
                rows.append(Row(name, "context", status=OK, note=note, seconds=done["seconds"]))
                verdicts.append(Verdict(f"{name}: ≤ {RATIO:g} × its reads", f"{ratio:.2f}", ratio <= RATIO))
                peak = done["peak"]
                verdicts.append(Verdict(f"{name}: peak < {PEAK / 1e9:g} GB", f"{peak / 1e9:.2f} GB", peak < PEAK))
        data = f"{n_rows} rows of 14 columns in {size / 1e9:.2f} GB of Parquet; 33 features once encoded"
        return Result(rows, data=data, verdicts=verdicts)


WORKLOAD = TablesWorkload()
