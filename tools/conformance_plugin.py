"""For pytest: scikit-learn's tests with our classes swapped in; every outcome goes to a file.

`make conformance` runs pytest with `-p conformance_plugin`. CONFORMANCE_FILE names the file; CONFORMANCE_SWAP=0 leaves
scikit-learn as it is, for the run that the other is compared with.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import separatrix
from separatrix.drop_in.swaps import SWAPS

ALL_ESTIMATORS = "sklearn/tests/test_common.py"
OUTCOMES: dict[str, dict] = {}
SWAPPED = os.environ.get("CONFORMANCE_SWAP", "1") == "1"


def pytest_configure(config):
    """Swap before a test is loaded."""
    if SWAPPED:
        separatrix.accelerate()


def pytest_collection_modifyitems(config, items):
    """Of the tests of all estimators those of the classes that are swapped."""
    ours = re.compile(rf"\[({'|'.join(SWAPS)})\b")
    # By the file: what stands before the name in an item's id depends on where the run begins.
    items[:] = [item for item in items if not item.path.as_posix().endswith(ALL_ESTIMATORS) or ours.search(item.name)]


def _counts() -> tuple[int, int]:
    rows = separatrix.accelerated().rows
    return sum(row.fits for row in rows), sum(row.handed_back for row in rows)


def pytest_runtest_setup(item):
    """Where the counts of fits stand."""
    OUTCOMES[item.nodeid] = {"before": _counts()}


def pytest_runtest_logreport(report):
    """The outcome, and the fits meanwhile."""
    held = OUTCOMES.setdefault(report.nodeid, {"before": _counts()})
    if report.when == "call" or report.outcome != "passed":
        held["outcome"] = report.outcome
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            held["message"] = getattr(crash, "message", str(report.longrepr))[:600]
    if report.when == "teardown":
        before = held.pop("before", (0, 0))
        held["fits"], held["handed_back"] = (now - then for now, then in zip(_counts(), before, strict=True))


def pytest_sessionfinish(session, exitstatus):
    """Everything to the file, unless the run was broken off."""
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return
    reasons = {row.name: dict(row.reasons) for row in separatrix.accelerated().rows if row.reasons}
    found = {"tests": OUTCOMES, "reasons": reasons}
    Path(os.environ["CONFORMANCE_FILE"]).write_text(json.dumps(found, indent=1), encoding="utf-8")
