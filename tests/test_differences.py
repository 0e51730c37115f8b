"""docs/differences.md is what the classes are, and everything on it was decided."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import sklearn

TOOLS = Path(__file__).parent.parent / "tools"


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, str(TOOLS))
    try:
        import differences

        yield differences
    finally:
        sys.path.remove(str(TOOLS))


def test_every_difference_from_scikit_learns_classes_was_decided_and_is_on_the_page(tool):
    found = tool.differences()
    assert tool.undecided_of(found) == []
    assert tool.superfluous(found) == []
    page = tool.PAGE.read_text(encoding="utf-8")
    if f"scikit-learn {sklearn.__version__}," in page:  # another version may differ in other things
        assert page == tool.page(found), "run tools/differences.py"
