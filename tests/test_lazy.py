"""What is imported when it is first used: without searches for garbage, and compiled loops by counts, never by the clock."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

import separatrix as sx
from separatrix.lazy import no_search_for_garbage, with_room

SEARCHES = """
import gc
from sklearn.linear_model import LogisticRegression
import separatrix as sx
seen = []
gc.callbacks.append(lambda phase, info: seen.append(phase) if phase == "start" else None)
sx.{name}
print(len(seen), gc.isenabled())
"""
MISSED = """
import itertools, sys, time
if {slow}:
    ticks = itertools.count()
    time.perf_counter = lambda: 0.1 * next(ticks)  # a machine on which every look at the clock takes a tenth of a second
from sklearn.datasets import load_iris
import separatrix as sx
from separatrix import lazy
X, y = load_iris(return_X_y=True)
sx.SVC(gamma=0.7).fit(X[:, :2], y)
print(lazy._missed, "numba" in sys.modules)
"""


def printed(code: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("name", ["LinearDiscriminantAnalysis", "LogisticRegression", "accelerate"])
def test_what_is_imported_is_not_searched_for_garbage(name):
    """Python does that every so many new objects; a search of everything takes longer than all of these imports."""
    searches, enabled = printed(SEARCHES.format(name=name))
    assert int(searches) <= 1 and enabled == "True"  # the one that is due when they are done


def test_compiled_loops_are_brought_in_without_searches_for_garbage():
    """Numba makes more objects than any other import: it takes half as long without."""
    code = SEARCHES.replace("import separatrix as sx", "import separatrix.lazy").replace(
        "sx.{name}", "import separatrix.kernels"
    )
    searches, enabled = printed(code)
    assert int(searches) <= 1 and enabled == "True"


def test_who_searches_for_garbage_and_who_does_not_goes_on_so():
    for setting in (gc.enable, gc.disable):
        setting()
        try:
            before = gc.isenabled()
            with no_search_for_garbage(), no_search_for_garbage():
                assert not gc.isenabled()
            assert gc.isenabled() is before
            with pytest.raises(AttributeError):
                sx.no_such_name  # noqa: B018  # reading it is the test
            assert gc.isenabled() is before
        finally:
            gc.enable()


def test_a_slow_machine_imports_compiled_loops_no_sooner():
    slow, fast = (printed(MISSED.format(slow=slow)) for slow in (True, False))
    assert slow == fast and fast[1] == "False"


def test_calls_in_a_room_meet_no_end_of_a_piece_of_frames():
    """At some depth a call is the first in a new piece, which is taken from the system and given back every time."""
    resource = pytest.importorskip("resource", reason="the system does not count its pages")

    def leaf(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8, i=9, j=10):
        return [a, b, c, d, e, f, g, h, i, j]

    def faults_at(depth):
        if depth:
            return faults_at(depth - 1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(1000):
            leaf()
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    def worst():
        return max(faults_at(depth) for depth in range(800))

    assert with_room(worst) < 100
    assert with_room(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        with_room(divmod, 1, 0)
