"""What a person at a terminal sees of a long fit, and what Ctrl-C leaves."""

import io
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import separatrix as sx
from separatrix.models import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def rows(n=400, d=5):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(int)


def test_verbose_writes_one_line_an_iteration_to_stderr(capsys):
    model = sx.LogisticRegression(verbose=1).fit(*rows())
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == len(model.fit_.trace)
    assert all("iteration" in line and "above the optimum" in line for line in lines)


def test_a_short_fit_is_silent_and_a_long_one_keeps_one_line(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    sx.LogisticRegression().fit(*rows())
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.0)
    sx.LogisticRegression().fit(*rows())
    shown = sys.stderr.getvalue()
    assert shown.startswith("\rLogisticRegression: iteration 0") and shown.endswith("\n") and shown.count("\n") == 1


def test_nobody_watching_nothing_written(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.0)
    sx.LogisticRegression().fit(*rows())
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process there")
def test_ctrl_c_leaves_the_best_model_so_far_with_its_certificate():
    script = textwrap.dedent("""
        import numpy as np, separatrix as sx, sys, warnings
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        X = rng.standard_normal((20_000, 50)) * np.geomspace(1, 1e4, 50)
        y = rng.integers(0, 2, 20_000)
        sx.LogisticRegression(solver="gradient").fit(X[:100], y[:100])  # everything is imported
        print("ready", flush=True)
        model = sx.LogisticRegression(solver="gradient", tol=1e-300, max_iter=10**9).fit(X, y)
        c = model.fit_.certificate
        print(model.fit_.status.name, np.isfinite(model.coef_).all(), 0 <= c.gap <= c.objective * (1 + 1e-12))
    """)
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=4)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert out == "INTERRUPTED True True\n", err
