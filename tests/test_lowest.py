"""The list of what cannot pass with the oldest versions names tests that exist (tools/lowest_plugin.py)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from lowest_plugin import EXPECTED, reason_of  # noqa: E402  # after the path


def test_every_test_of_the_list_exists_and_is_run():
    run = re.search(r"^LOWEST := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    for name in (name for names in EXPECTED.values() for name in names):
        file, function = re.match(r"(test_\w+\.py)::(\w+)", name).groups()
        assert f"def {function}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), name
        assert file.removeprefix("test_").removesuffix(".py") in run[1].split(), f"make test-lowest does not run {file}"


def test_names_are_matched_with_their_parameters():
    node = "tests/test_discriminants.py::test_lda_is_scikit_learns"
    assert "divides" in reason_of(f"{node}[wine-{{}}]")
    assert reason_of(f"{node}[wine-{{'solver': 'lsqr'}}]") is None
    assert reason_of("tests/test_discriminants.py::test_another") is None
