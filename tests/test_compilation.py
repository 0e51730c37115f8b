"""Compilations that a signal breaks off, that fail, or that a fork meets: in fresh processes that find no compiled code."""

import os
import subprocess
import sys

import pytest

ALARMED = """
import signal
import numpy as np
from separatrix.kernels import compiled

class Alarm(BaseException):
    pass

def ring(number, frame):
    raise Alarm

signal.signal(signal.SIGALRM, ring)

@compiled(inline="always")
def loss(x, i):
    return np.log1p(np.exp(-x[i]))

@compiled()
def row(x, w):
    total = 0.0
    for i in range(x.shape[0]):
        total += loss(x, i) * w[i]
    return total

@compiled()
def rows(X, w):
    out = np.zeros(X.shape[0])
    for i in range(X.shape[0]):
        out[i] = row(X[i], w) + np.sum(np.sqrt(np.abs(X[i])))
    return out

X, w = np.arange(20.0).reshape(5, 4), np.ones(4)
right = np.log1p(np.exp(-X)).sum(1) + np.sqrt(X).sum(1)
"""

BROKEN_OFF = """
broken = 0
for kind in "f4", "f8":
    for B in (X.astype(kind), np.asfortranarray(X, dtype=kind), X.astype(kind)[::-1]):
        for wait in 0.02, 0.05, 0.1, 0.2:
            try:
                signal.setitimer(signal.ITIMER_REAL, wait)
                rows(B, w)
                break
            except Alarm:
                broken += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        np.testing.assert_allclose(rows(B, w), right if B[0, 0] == 0 else right[::-1], rtol=1e-5)
print(broken)
"""

FORKED = """
import os

try:
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    rows(X, w)
    raise SystemExit("the alarm came too late")
except Alarm:
    child = os.fork()
np.testing.assert_allclose(rows(X, w), right)
np.testing.assert_allclose(rows(np.asfortranarray(X), w), right)
if child:
    print(os.waitpid(child, 0)[1])
"""

REFUSED = """
from numba.core.errors import TypingError

try:
    rows(X, "text")
except TypingError:
    print("refused")
np.testing.assert_allclose(rows(X, w), right)
"""

FIT = """
import signal
import numpy as np
import scipy.sparse as sp
import separatrix.kernels  # loads numba: compiled steps are taken from then on
from separatrix import LogisticRegression

class Alarm(BaseException):
    pass

def ring(number, frame):
    raise Alarm

X = sp.random(20_000, 300, 0.05, format="csr", random_state=0)
y = np.random.default_rng(0).integers(0, 2, 20_000)
signal.signal(signal.SIGALRM, ring)
broken = 0
while True:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2 + 0.1 * broken)
        LogisticRegression().fit(X, y)
        break
    except Alarm:
        broken += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
print(broken, LogisticRegression().fit(X, y).fit_.status.name)
"""

needs_alarms = pytest.mark.skipif(not hasattr(os, "fork"), reason="no alarms and forks on this system")


def run(script, folder, timeout=300):
    file = folder / "script.py"  # numba keeps compiled code by file
    file.write_text(script)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "compiled")}
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=timeout, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr
    return done.stdout.split()


@needs_alarms
def test_an_alarm_leaves_the_compiler_whole(tmp_path):
    (broken,) = run(ALARMED + BROKEN_OFF, tmp_path)
    assert int(broken) > 0


@needs_alarms
def test_a_fit_that_was_broken_off_while_it_compiled_can_be_done_again(tmp_path):
    broken, status = run(FIT, tmp_path)
    assert int(broken) > 0
    assert status == "CONVERGED"


@needs_alarms
def test_a_fork_finds_the_compiler_at_rest(tmp_path):
    assert run(ALARMED + FORKED, tmp_path) == ["0"]


def test_what_cannot_be_compiled_is_the_callers_error(tmp_path):
    assert run(ALARMED.replace("SIGALRM", "SIGINT") + REFUSED, tmp_path) == ["refused"]


CACHED = """
import os, sys
import numpy as np
import separatrix.kernels
from separatrix.kernels import compiled

@compiled()
def shares(x, w):
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = np.sum(np.sqrt(np.abs(x[i]))) * w[i % w.shape[0]]
    if out[0] < 0.0:
        raise ValueError("a share is negative")
    return out

X, w = np.arange(20.0).reshape(5, 4), np.ones(4)
print(shares(X, w).tobytes().hex(), int("numba.np.linalg" in sys.modules))
try:
    shares(X + 1.0, -w)
except ValueError as problem:
    print(str(problem).replace(" ", "-"))
if "MORE" in os.environ:
    @compiled()
    def total(x, w):
        return shares(x, w).sum() + np.linalg.norm(x)

    np.testing.assert_allclose(total(X, w), np.sqrt(X).sum() + np.linalg.norm(X))
    np.testing.assert_allclose(shares(X.astype("f4"), w), shares(X, w), rtol=1e-6)
    print(len(set(sys.modules) & {"numba.np.linalg", "numba.np.arraymath"}))
for _ in range(1000):
    shares(X, w)  # references are counted: memory is given back
"""


def test_what_was_compiled_is_loaded_without_what_only_compiling_needs(tmp_path, monkeypatch):
    """The same bits and errors; and what has to be compiled afterwards finds all it needs, loops from the cache among it."""
    compiled, declared, problem = run(CACHED, tmp_path)
    assert declared == "1"
    loaded, declared, again = run(CACHED, tmp_path)
    assert (loaded, declared, again) == (compiled, "0", problem)
    assert problem == "a-share-is-negative"
    monkeypatch.setenv("MORE", "1")
    assert run(CACHED, tmp_path) == [compiled, "0", problem, "2"]
