"""B16: what `import separatrix` adds to scikit-learn's own import; first fits in a fresh process; `separatrix --help`.

Every number comes from a fresh process, ours and scikit-learn's in turns; numba's cache is warm but for the one row that says
cold. A first fit counts everything from the import of the estimator on: nothing is loaded before but NumPy, SciPy and the rows.
This file imports no numerical library, which would spoil them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.children import ChildFailed, call
from benchmarks.goals import AtMostSeconds
from benchmarks.result import FAILED, Result, Row, Verdict, one_line
from benchmarks.workload import Settings

BASE = "import sklearn.base"
OURS = "import separatrix after it"
EVERY = "from separatrix import * after it"
SAME = "import sklearn.discriminant_analysis, sklearn.linear_model after it"
COLD = "first sparse LDA fit, cold numba cache"
WARM = "first sparse LDA fit, warm numba cache"
HELP = "separatrix --help"
HELP_CODE = "from separatrix.cli.main import main; main()"
# By name: rows, columns, whether they are sparse. Logistic regression, with the defaults of both libraries.
FIRST = {"1 000 × 20": (1_000, 20, False), "400 000 × 50": (400_000, 50, False), "sparse": (20_000, 5_000, True)}
LIBRARIES = {"separatrix": "separatrix", "scikit-learn": "sklearn.linear_model"}
MODULES = {
    OURS: ["separatrix"],
    EVERY: ["separatrix.*"],
    SAME: ["sklearn.discriminant_analysis", "sklearn.linear_model"],
}


def import_seconds(modules: list[str]) -> dict[str, float]:
    """In a fresh process: seconds of `import sklearn.base`, then of importing `modules`."""
    start = time.perf_counter()
    import_module("sklearn.base")
    middle = time.perf_counter()
    for module in modules:
        package = import_module(module.removesuffix(".*"))
        if module.endswith(".*"):  # names are loaded when they are first used
            for name in package.__all__:
                getattr(package, name)
    return {"base": middle - start, "modules": time.perf_counter() - middle}


def first_sparse_fit(record: bool) -> dict[str, Any]:
    """In a fresh process: seconds of the first fit; with `record`, the number of numba compilations instead.

    Recording imports numba beforehand, so a recorded fit is not a timed one.
    """
    import numpy as np
    from scipy import sparse

    model = import_module("separatrix").LinearDiscriminantAnalysis()
    generator = np.random.default_rng(0)
    X = sparse.random(20_000, 100, density=0.1, format="csr", rng=generator)
    y = generator.integers(3, size=20_000)
    recorder = import_module("numba.core.event").RecordingListener() if record else None
    if recorder is not None:
        import_module("numba.core.event").register("numba:compile", recorder)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    compiled = sum(event.is_start for _, event in recorder.buffer) if recorder is not None else None
    return {"seconds": seconds, "compiled": compiled, "numba": "numba" in sys.modules}


def first_fit(module: str, rows: int, columns: int, stored: bool) -> float:
    """In a fresh process: seconds from before the import of LogisticRegression to the end of its first fit."""
    import numpy as np
    from scipy import sparse

    generator = np.random.default_rng(0)
    X: Any = generator.standard_normal((rows, columns))
    if stored:
        X = sparse.random(rows, columns, density=0.005, format="csr", rng=generator)
    y = (X[:, :5] @ np.ones(5) + generator.logistic(size=rows) > 0).astype(np.int64)
    start = time.perf_counter()
    import_module(module).LogisticRegression().fit(X, y)
    return time.perf_counter() - start


def help_seconds() -> float:
    """In a fresh process: seconds of `separatrix --help`, a process of its own."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", HELP_CODE, "--help"], check=True, capture_output=True)
    return time.perf_counter() - start


def _first_fits(rounds: int) -> tuple[list[Row], list[Verdict]]:
    """A row for each library and each kind of rows, and whether ours is the sooner."""
    rows: list[Row] = []
    verdicts: list[Verdict] = []
    for name, (n, d, stored) in FIRST.items():
        pair = {library: Row(f"first fit of {name}, {library}", "context") for library in LIBRARIES}
        for turn in range(-1, rounds):  # the first turn fills numba's cache
            for library, module in LIBRARIES.items():
                seconds = call(f"{__name__}:first_fit", module=module, rows=n, columns=d, stored=stored)
                if turn >= 0:
                    pair[library].seconds.append(seconds)
        rows += pair.values()
        ours, theirs = (pair[library].median or 0.0 for library in LIBRARIES)
        goal = f"first fit of {name} ≤ scikit-learn's"
        verdicts.append(Verdict(goal, f"{ours:.3f} s against {theirs:.3f} s", ours <= theirs))
    return rows, verdicts


def _cold_and_warm(cold: Row, warm: Row) -> int:
    """Time the first fit with an empty cache, then with the cache that it left; compilations of a last one.

    A process that has imported numba takes compiled loops that others do without: one of them fills the cache before that.
    """
    with TemporaryDirectory() as cache:
        environment = {"NUMBA_CACHE_DIR": cache}
        for row in (cold, warm):
            fit = call(f"{__name__}:first_sparse_fit", environment, record=False)
            row.seconds.append(fit["seconds"])
            row.note = "uses numba" if fit["numba"] else "uses no numba"
        _, compiled = (call(f"{__name__}:first_sparse_fit", environment, record=True)["compiled"] for _ in range(2))
        return int(compiled)


@dataclass(frozen=True)
class ImportWorkload:
    id: str = "B16"
    title: str = "import time and first fits"

    def run(self, settings: Settings) -> Result:
        rows = {name: Row(name, "context") for name in (BASE, OURS, EVERY, SAME, COLD, WARM)}
        rounds = max(9, settings.repeats) if settings.scale == 1 else settings.repeats
        for turn in range(-1, rounds):  # the first turn only writes byte code
            for name, modules in MODULES.items():
                seconds = call(f"{__name__}:import_seconds", modules=modules)
                if turn >= 0:
                    rows[BASE].seconds.append(seconds["base"])
                    rows[name].seconds.append(seconds["modules"])
        try:
            compiled = sum(_cold_and_warm(rows[COLD], rows[WARM]) for _ in range(min(3, settings.repeats)))
            compilation = Verdict("no compilation when warm", f"{compiled} functions compiled", compiled == 0)
        except ChildFailed as error:  # the import times still stand
            rows[COLD].status = rows[WARM].status = FAILED
            compilation = Verdict("no compilation when warm", one_line(str(error)), False)
        shown = Row(HELP, "context", seconds=[call(f"{__name__}:help_seconds") for _ in range(rounds)])
        first, verdicts = _first_fits(max(5, settings.repeats) if settings.scale == 1 else settings.repeats)
        data = (
            "sparse LDA: 20 000 × 100 CSR, 10 % nonzero; first sparse logistic fit: 20 000 × 5 000 CSR, 0.5 % nonzero"
        )
        result = Result([*rows.values(), shown, *first], data=data)
        result.verdicts = [AtMostSeconds(0.05, OURS).judge(result), AtMostSeconds(0.4, HELP).judge(result)]
        result.verdicts += [*verdicts, AtMostSeconds(5, COLD).judge(result), compilation]
        return result


WORKLOAD = ImportWorkload()
