"""One BLAS thread, whoever asks for it and however many at once: BLAS stays as it was, and bits are those of one fit alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import joblib
import numpy as np
import pytest
from estimators import each, having, named
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from threadpoolctl import ThreadpoolController, threadpool_limits

import separatrix as sx
from separatrix.data import as_source
from separatrix.settings import one_blas_thread

RNG = np.random.default_rng(0)
WIDE = RNG.standard_normal((120, 260)), np.arange(120) % 3
TALL = RNG.standard_normal((900, 40)) + (np.arange(900) % 3)[:, None], np.arange(900) % 3
FAMILIES = (
    "discriminant",
    "naive_bayes",
    "least_squares",
    "logistic",
    "ordered",
    "margin",
    "svm",
    "perceptron",
    "multiclass",
)
ESTIMATORS = having(basic=True, counts=False, family=FAMILIES) | named(
    "lda eigen, ledoit-wolf", "qda, covariances kept", "logistic by newton-cg"
)


def blas() -> list[int]:
    return [library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()]


@contextmanager
def threads(number):
    with threadpool_limits(number, user_api="blas"):
        yield


def bits(model, X):
    held = {"coef_", "intercept_", "scalings_", "covariance_", "means_", "_dual"} & {
        n for n in dir(model) if hasattr(model, n)
    }
    numbers = [np.ravel(part) for name in sorted(held) for part in np.atleast_1d(getattr(model, name))]
    answer = model.predict if hasattr(model, "predict") else model.transform
    return b"".join(np.asarray(part).tobytes() for part in [*numbers, answer(X)])


def fitted(estimator, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(estimator).fit(*data)


@pytest.mark.parametrize("data", [WIDE, TALL], ids=["wide", "tall"])
@each("estimator", ESTIMATORS)
def test_bits_do_not_depend_on_the_threads_of_blas(estimator, data):
    found = []
    for number in (1, 3):
        with threads(number):
            found.append(bits(fitted(estimator, data), data[0]))
            assert set(blas()) == {number}
    assert found[0] == found[1]


def test_overlapping_users_leave_blas_as_it_was():
    with threads(3):
        one, two = one_blas_thread(), one_blas_thread()
        one.__enter__()
        assert set(blas()) == {1}
        two.__enter__()
        one.__exit__(None, None, None)
        assert set(blas()) == {1}  # the second is still at work
        two.__exit__(None, None, None)
        assert set(blas()) == {3}


def test_eight_threads_fit_as_one_does_and_leave_blas_as_it_was():
    estimators = [sx.LogisticRegression(C=10.0**k) for k in range(-3, 1)] + [sx.Ridge(), sx.RidgeClassifier()] * 2
    with threads(3):
        alone = [bits(fitted(estimator, WIDE), WIDE[0]) for estimator in estimators]
        with ThreadPoolExecutor(8) as pool:
            together = [
                bits(model, WIDE[0]) for model in pool.map(lambda estimator: fitted(estimator, WIDE), estimators * 2)
            ]
        assert set(blas()) == {3}
    assert together == alone * 2


def test_a_grid_search_on_threads_gives_the_bits_of_a_serial_one():
    grid = GridSearchCV(sx.LogisticRegression(), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=3, scoring="neg_log_loss")
    with threads(3):
        serial = clone(grid).fit(*WIDE)
        with joblib.parallel_backend("threading", n_jobs=8):
            parallel = clone(grid).fit(*WIDE)
        assert set(blas()) == {3}
    np.testing.assert_array_equal(serial.cv_results_["mean_test_score"], parallel.cv_results_["mean_test_score"])
    assert bits(serial.best_estimator_, WIDE[0]) == bits(parallel.best_estimator_, WIDE[0])


def test_limits_changed_outside_in_the_meantime_are_kept():
    with threads(2):
        with one_blas_thread():
            threadpool_limits(4, user_api="blas")
            with one_blas_thread():
                assert set(blas()) == {1}
        assert set(blas()) == {4}  # what was asked for last
        with one_blas_thread():
            threadpool_limits(3, user_api="blas")
        assert set(blas()) == {3}


def test_a_pass_that_is_given_up_lets_go():
    seen = set()

    def give_up(block):
        seen.update(blas())
        raise RuntimeError("given up")

    with threads(3):
        with pytest.raises(RuntimeError, match="given up"):
            as_source(np.ones((4000, 2000))).map(give_up, rows=512)
        assert seen == {1}
        assert set(blas()) == {3}


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError])
def test_a_fault_inside_lets_go(fault):
    with threads(3):
        with pytest.raises(fault), one_blas_thread(), one_blas_thread():
            raise fault
        assert set(blas()) == {3}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_interrupts_at_any_time_let_go():
    """Signals in the middle of entering and leaving: nobody is counted who is gone."""
    hits = 0

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with threads(3):
            for trial in range(100):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + trial % 50))
                    for _ in range(10_000):
                        with one_blas_thread():
                            pass
                except KeyboardInterrupt:
                    hits += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0.0)
                assert set(blas()) == {3}
    finally:
        signal.signal(signal.SIGALRM, before)
    assert hits > 90  # one that falls into a callback of the garbage collector is swallowed there


_FORK = """
import os, threading, numpy as np, scipy.linalg
from threadpoolctl import threadpool_limits, ThreadpoolController
from separatrix.settings import one_blas_thread
import separatrix as sx
threadpool_limits(3, user_api="blas")
inside, done = threading.Event(), threading.Event()
def hold():
    with one_blas_thread():
        inside.set(); done.wait()
other = threading.Thread(target=hold); other.start(); inside.wait()
child = os.fork()
if child == 0:
    number = {l["num_threads"] for l in ThreadpoolController().select(user_api="blas").info()}
    sx.Ridge().fit(np.eye(5), np.arange(5.0))
    after = {l["num_threads"] for l in ThreadpoolController().select(user_api="blas").info()}
    os._exit(0 if number == after == {3} else 1)
_, status = os.waitpid(child, 0)
done.set(); other.join()
assert {l["num_threads"] for l in ThreadpoolController().select(user_api="blas").info()} == {3}
raise SystemExit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_wait_for_threads_it_does_not_have():
    done = subprocess.run([sys.executable, "-c", _FORK], timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_warnings_name_the_line_of_the_user():
    with pytest.warns(ConvergenceWarning) as seen:
        sx.LogisticRegression(max_iter=1, tol=1e-12).fit(*TALL)
    with pytest.warns(ConvergenceWarning) as more:
        sx.LinearSVC(max_iter=1, tol=1e-12).fit(*TALL)
    assert {warning.filename for warning in [*seen, *more]} == {__file__}
