"""make conformance: scikit-learn's own tests, with our classes in the place of its own.

Every module of tests is run twice, each time in a process of its own: as it is, and with `separatrix.accelerate()` before it is
loaded (conformance_plugin.py). What passes the first time has to pass the second; what does not is listed with the
decision behind it (conformance_decisions.py) on docs/conformance.md. The tests are those of the installed scikit-learn.
Outcomes are kept in build/conformance, without us by version of scikit-learn and with us by commit of src, so that
a run that was interrupted goes on.

    python tools/conformance.py                   all modules; writes the page
    python tools/conformance.py --sample          the quick ones; writes nothing
    python tools/conformance.py test_ridge        the modules whose names contain one of these words; writes nothing
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import sklearn
from conformance_decisions import decision_for

ROOT = Path(__file__).parent.parent
PAGE, OUTCOMES = ROOT / "docs" / "conformance.md", ROOT / "build" / "conformance"
GOAL = 0.98
# The first are those of the swapped classes, the others those of what uses them.
MODULES = [
    *(
        f"linear_model.tests.test_{name}"
        for name in ("base", "logistic", "ridge", "perceptron", "sag", "common", "ransac")
    ),
    *(f"linear_model.tests.test_{name}" for name in ("sgd", "passive_aggressive")),
    *(f"tests.test_{name}" for name in ("naive_bayes", "discriminant_analysis")),
    *(f"svm.tests.test_{name}" for name in ("svm", "sparse", "bounds")),
    *(
        f"tests.test_{name}"
        for name in ("calibration", "multiclass", "multioutput", "pipeline", "base", "metaestimators", "common")
    ),
    *(f"model_selection.tests.test_{name}" for name in ("validation", "search", "classification_threshold")),
    *(f"ensemble.tests.test_{name}" for name in ("voting", "stacking", "bagging")),
    *(f"feature_selection.tests.test_{name}" for name in ("rfe", "from_model", "sequential")),
    *(f"inspection.tests.test_{name}" for name in ("permutation_importance", "partial_dependence")),
    *("inspection._plot.tests.test_boundary_decision_display", "semi_supervised.tests.test_self_training"),
    "neighbors.tests.test_nearest_centroid",
    *("compose.tests.test_target", "utils.tests.test_response"),
]
QUICK = (
    "naive_bayes",
    "discriminant",
    "svm.tests",
    "perceptron",
    "voting",
    "test_pipeline",
    "from_model",
    "linear_model.tests.test_base",
)


@dataclass
class ModuleResult:
    """One module of tests, without the swap and with it."""

    name: str
    plain: dict[str, dict[str, Any]]
    swapped: dict[str, dict[str, Any]]
    reasons: dict[str, dict[str, int]]

    def passing(self) -> set[str]:
        """The tests that pass with scikit-learn's own classes."""
        return {test for test, found in self.plain.items() if found.get("outcome") == "passed"}

    def failed(self) -> list[str]:
        """Those of them that do not with ours."""
        return sorted(t for t in self.passing() if self.swapped.get(t, {}).get("outcome") not in ("passed", "skipped"))

    def total(self, what: str) -> int:
        """Fits of one kind in all tests."""
        return sum(found.get(what, 0) for found in self.swapped.values())


def version_of_sources() -> str:
    """The commit's name of src; another name every time where it has changes that are not committed."""
    changes = subprocess.run(["git", "status", "--porcelain", "src"], cwd=ROOT, capture_output=True, text=True)
    name = subprocess.run(["git", "rev-parse", "--short", "HEAD:src"], cwd=ROOT, capture_output=True, text=True)
    known = name.returncode == 0 and not changes.stdout
    return name.stdout.strip() if known else f"changed-{time.time_ns()}"


def run(module: str, version: str | None) -> dict[str, Any]:
    """The outcomes of a module's tests in a fresh process, with the swap to this version of ours or as they are."""
    swap = version is not None
    folder = OUTCOMES / sklearn.__version__ / (version or "plain")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{module}.json"
    if not file.exists():
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tools")])
        environment = {
            **os.environ,
            "CONFORMANCE_FILE": str(file),
            "CONFORMANCE_SWAP": str(int(swap)),
            "PYTHONPATH": paths,
        }
        environment |= {"OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        options = [
            "-c",
            os.devnull,
            "-p",
            "conformance_plugin",
            "-p",
            "no:cacheprovider",
            "-q",
            "--no-header",
            "--tb=short",
        ]
        command = [sys.executable, "-m", "pytest", *options, "--pyargs", f"sklearn.{module}"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        file.with_suffix(".log").write_text(done.stdout + done.stderr, encoding="utf-8")
        if not file.exists():
            sys.exit(f"The tests of {module} could not be run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(file.read_text(encoding="utf-8"))


def compared(module: str, version: str) -> ModuleResult:
    """Both runs of a module."""
    plain, swapped = run(module, None), run(module, version)
    tests = [{test.split("::", 1)[1]: found for test, found in one["tests"].items()} for one in (plain, swapped)]
    return ModuleResult(module, *tests, swapped["reasons"])


def table(results: list[ModuleResult]) -> list[str]:
    """Rows of a table: one per module, and the sum."""
    head = "| module of tests | pass with scikit-learn's | pass with ours | fail | fits by ours | handed back |"
    rows = [head, "|---|---:|---:|---:|---:|---:|"]
    sums = Counter[str]()
    for one in results:
        passing, failed = len(one.passing()), len(one.failed())
        counts = {"passing": passing, "failed": failed, "fits": one.total("fits"), "back": one.total("handed_back")}
        sums.update(counts)
        rows.append(
            f"| `sklearn.{one.name}` | {passing} | {passing - failed} | {failed} | {counts['fits']} | {counts['back']} |"
        )
    kept = sums["passing"] - sums["failed"]
    total = f"| **all** | {sums['passing']} | {kept} | {sums['failed']} | {sums['fits']} | {sums['back']} |"
    return [*rows, total, "", f"{kept} of {sums['passing']} tests, {100 * kept / max(1, sums['passing']):.1f} %."]


def page(results: list[ModuleResult]) -> str:
    """docs/conformance.md."""
    by_decision: dict[str, list[str]] = {}
    for one in results:
        for test in one.failed():
            place = f"`{one.name.rsplit('.', 1)[-1]}::{test.split('[', 1)[0]}`"
            by_decision.setdefault(decision_for(test) or "To be mended.", []).append(place)
    reasons = Counter[str]()
    for one in results:
        for name, counted in one.reasons.items():
            for reason, count in counted.items():
                reasons[f"`{name}`: {' '.join(reason.split())}"] += count
    lines = [
        "# scikit-learn's own tests, with our classes in its place",
        "",
        "Written by `make conformance`, which runs the tests of the installed scikit-learn twice: as they are, and with the",
        f"classes of [accelerate.md](accelerate.md) swapped in. This is scikit-learn {sklearn.__version__}. Tests that fail or",
        "are skipped without us are not counted. A fit is *handed back* where ours does not support what is asked for and",
        "scikit-learn's own class does it.",
        "",
        *table(results),
        "",
        "## What differs, and why",
        "",
        "Each line is a decision; the tests that see it follow.",
        "",
    ]
    for decision, tests in sorted(by_decision.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(f"{test} ({count})" if count > 1 else test for test, count in Counter(tests).items())
        lines += [f"- **{decision}** {shown}"]
    lines += ["", "## What was handed back", ""]
    lines += [f"- {reason} ({count})" for reason, count in reasons.most_common()]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Run, print the table, and write the page if everything was run."""
    words = list(QUICK) if arguments == ["--sample"] else arguments
    modules = [module for module in MODULES if not words or any(word in module for word in words)]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(compared, modules, repeat(version_of_sources())))
    print("\n".join(table(results)))
    open_ones = [(one.name, test) for one in results for test in one.failed() if decision_for(test) is None]
    for module, test in open_ones:
        print(f"no decision: {module}::{test}")
    if not words:
        PAGE.write_text(page(results), encoding="utf-8")
    passing = sum(len(one.passing()) for one in results)
    failed = sum(len(one.failed()) for one in results)
    return int(bool(open_ones) or (not words and failed > (1 - GOAL) * passing))  # the goal is for all of them together


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
