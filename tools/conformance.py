"""make conformance: scikit-learn's own tests, with our classes in the place of its own.

Every module of tests is run twice, each time in a process of its own: as it is, and with `separatrix.accelerate()` before it is
loaded (conformance_plugin.py). What passes the first time has to pass the second; what does not is listed with the
decision behind it (conformance_decisions.py) on docs/conformance.md. The tests are those of the installed scikit-learn.
Outcomes are kept in build/conformance, without us by version of scikit-learn and with us by commit of src, so that
a run that was interrupted goes on.

    python tools/conformance.py                   all modules; writes the page
    python tools/conformance.py --sample          the quick ones; writes nothing
    python tools/conformance.py test_ridge        the modules whose names contain one of these words; writes nothing
    python tools/conformance.py --add test_search   the same, for modules that the page has no row of: adds them to it
"""

from __future__ import annotations

import json
import os
import re
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


@dataclass
class Page:
    """docs/conformance.md: counts of each module, and where each decision and each reason for a hand-back was seen."""

    rows: dict[str, list[int]]
    """By module: tests that pass with scikit-learn's classes, with ours, that fail; fits by ours, handed back."""
    decisions: dict[str, Counter[str]]
    reasons: Counter[str]

    @classmethod
    def read(cls, text: str) -> Page:
        """A page as `str` writes it."""
        rows = {
            m[1]: [int(n) for n in m[2].split("|")]
            for m in re.finditer(r"^\| `sklearn\.(\S+)` \| ([\d |]+) \|$", text, re.M)
        }
        decisions = {
            m[1]: Counter(
                {seen[1]: int(seen[2] or 1) for seen in re.finditer(r"(`[^`]+::[^`]+`)(?: \((\d+)\))?", m[2])}
            )
            for m in re.finditer(r"^- \*\*(.+?)\*\* (`[^`]+::.*)$", text, re.M)
        }
        back = text.partition(_HANDED_BACK)[2]
        reasons = Counter({m[1]: int(m[2]) for m in re.finditer(r"^- (.*) \((\d+)\)$", back, re.M)})
        return cls(rows, decisions, reasons)

    def add(self, one: ModuleResult) -> None:
        """A module that is not on it yet."""
        passing, failed = len(one.passing()), one.failed()
        counts = [passing, passing - len(failed), len(failed), one.total("fits"), one.total("handed_back")]
        self.rows[one.name] = counts
        for test in failed:
            place = f"`{one.name.rsplit('.', 1)[-1]}::{test.split('[', 1)[0]}`"
            self.decisions.setdefault(decision_for(test) or "To be mended.", Counter())[place] += 1
        for name, counted in one.reasons.items():
            for reason, count in counted.items():
                self.reasons[f"`{name}`: {' '.join(reason.split())}"] += count

    def table(self) -> list[str]:
        """One row per module in the order of the list, the sum, and the share."""
        head = "| module of tests | pass with scikit-learn's | pass with ours | fail | fits by ours | handed back |"
        ordered = sorted(self.rows, key=lambda name: MODULES.index(name) if name in MODULES else len(MODULES))
        sums = [sum(column) for column in zip(*self.rows.values(), strict=True)] or [0] * 5
        lines = [f"| `sklearn.{name}` | {' | '.join(map(str, self.rows[name]))} |" for name in ordered]
        share = f"{sums[1]} of {sums[0]} tests, {100 * sums[1] / max(1, sums[0]):.1f} %."
        return [
            head,
            "|---|---:|---:|---:|---:|---:|",
            *lines,
            f"| **all** | {' | '.join(map(str, sums))} |",
            "",
            share,
        ]

    def __str__(self) -> str:
        lines = [*_HEAD, *self.table(), "", "## What differs, and why", ""]
        lines += ["Each line is a decision; the tests that see it follow.", ""]
        for decision, tests in sorted(self.decisions.items(), key=lambda item: -item[1].total()):
            shown = ", ".join(f"{test} ({count})" if count > 1 else test for test, count in tests.items())
            lines += [f"- **{decision}** {shown}"]
        lines += ["", _HANDED_BACK, ""]
        lines += [f"- {reason} ({count})" for reason, count in self.reasons.most_common()]
        return "\n".join(lines) + "\n"


_HANDED_BACK = "## What was handed back"
_HEAD = [
    "# scikit-learn's own tests, with our classes in its place",
    "",
    "Written by `make conformance`, which runs the tests of the installed scikit-learn twice: as they are, and with the",
    f"classes of [accelerate.md](accelerate.md) swapped in. This is scikit-learn {sklearn.__version__}. Tests that fail or",
    "are skipped without us are not counted; of `sklearn.tests.test_common`, which is about all estimators, the tests of the",
    "swapped classes are run. A fit is *handed back* where ours does not support what is asked for and scikit-learn's own",
    "class does it.",
    "",
]


def main(arguments: list[str]) -> int:
    """Run, print the table, and write the page if everything was run or something is added to it."""
    adding = arguments[:1] == ["--add"]
    words = list(QUICK) if arguments == ["--sample"] else arguments[adding:]
    modules = [module for module in MODULES if not words or any(word in module for word in words)]
    whole = Page.read(PAGE.read_text(encoding="utf-8")) if adding else Page({}, {}, Counter())
    modules = [module for module in modules if module not in whole.rows]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(compared, modules, repeat(version_of_sources())))
    found = Page({}, {}, Counter())
    for one in results:
        found.add(one)
        whole.add(one)
    print("\n".join(found.table()))
    open_ones = [(one.name, test) for one in results for test in one.failed() if decision_for(test) is None]
    for module, test in open_ones:
        print(f"no decision: {module}::{test}")
    if adding or not words:
        PAGE.write_text(str(whole), encoding="utf-8")
    passing, failed = (sum(row[column] for row in whole.rows.values()) for column in (0, 2))
    everything = adding or not words
    return int(
        bool(open_ones) or (everything and failed > (1 - GOAL) * passing)
    )  # the goal is for all of them together


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
