"""Work that is shared among threads: the same bits on any number of them, errors and Ctrl-C that surface at once."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit, softmax

import separatrix
from separatrix.data import as_source
from separatrix.data.affine import Intercept
from separatrix.data.block import Block
from separatrix.data.dense import WORTH_COMPILING, DenseBlock
from separatrix.data.labels import encode
from separatrix.data.source import in_parallel, rows_to_share
from separatrix.data.workers import Merged, share
from separatrix.objectives.fused_hessian import fused_hessian
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.margin_losses import Logistic
from separatrix.objectives.penalties import Penalty

THREADS = (1, 2, 3, 5)
# Rows enough for several blocks and for the compiled loops.
N, D = 48_000, 24


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 200])
def test_the_tree_of_merges_depends_on_the_number_of_results_alone(count: int) -> None:
    def total(order: np.ndarray, threads: int) -> str:
        merged: Merged[str] = Merged(lambda one, two: f"({one} {two})")  # not associative: the tree can be seen
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda at: merged.add(int(at), str(at)), order))
        found = merged.total()
        assert found is not None
        return found

    rng = np.random.default_rng(count)
    trees = {total(rng.permutation(count), threads) for threads in THREADS for _ in range(5)}
    assert len(trees) == 1
    assert [int(word) for word in trees.pop().replace("(", " ").replace(")", " ").split()] == list(range(count))


def test_nothing_merged_is_nothing() -> None:
    assert Merged(max).total() is None


@pytest.mark.parametrize("threads", THREADS)
def test_every_item_is_worked_on_once(threads: int) -> None:
    seen: list[tuple[int, int]] = []
    share(lambda at, item: seen.append((at, item)), iter(range(100, 400)), threads)
    assert sorted(seen) == [(at, at + 100) for at in range(300)]


@pytest.mark.parametrize("threads", THREADS)
def test_the_first_error_in_order_is_raised_and_nothing_is_left_running(threads: int) -> None:
    at_work: set[int] = set()

    def work(at: int, item: int) -> None:
        at_work.add(at)
        time.sleep(0.002 if at == 5 else 0.0)
        try:
            if item >= 5:
                raise ValueError(f"item {item}")
        finally:
            at_work.remove(at)

    for _ in range(10):
        with pytest.raises(ValueError, match=r"^item 5$"):
            share(work, range(100), threads)
        assert not at_work


@pytest.mark.parametrize("threads", THREADS)
def test_an_error_of_the_storage_is_raised(threads: int) -> None:
    def items():
        yield from range(7)
        raise OSError("the disk is gone")

    done: list[int] = []
    with pytest.raises(OSError, match="the disk is gone"):
        share(lambda _, item: done.append(item), items(), threads)
    assert sorted(done) == list(range(7))


@pytest.mark.parametrize("stop", [None, Event()])
def test_ctrl_c_surfaces_before_all_is_done(stop: Event | None) -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item == 3:
            os.kill(os.getpid(), signal.SIGINT)
        end = time.perf_counter() + 0.01
        while time.perf_counter() < end and not (stop is not None and stop.is_set()):
            time.sleep(0.001)
        done.append(item)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with separatrix.config(threads=3), pytest.raises(KeyboardInterrupt):
            in_parallel(work, range(3000), stop)
    finally:
        signal.signal(signal.SIGINT, before)
    count = len(done)
    assert count < 1000
    assert stop is None or stop.is_set()
    time.sleep(0.05)
    assert len(done) == count  # nobody goes on
    in_parallel(done.append, range(10))  # and the workers are there for the next


def test_passes_inside_passes_and_many_callers_end() -> None:
    source = as_source(np.ones((N, D)))

    def nested(block: Block) -> float:
        return float(as_source(block.dense()).reduce(lambda part: part.dense().sum(), lambda a, b: a + b, 500))

    def whole() -> float:
        with separatrix.config(threads=4):
            return float(source.reduce(nested, lambda a, b: a + b))

    with ThreadPoolExecutor(6) as pool:
        assert {future.result(60) for future in [pool.submit(whole) for _ in range(12)]} == {float(N * D)}


def test_the_cut_depends_on_the_shape_alone_and_is_fine_enough() -> None:
    for n, d in [(400_000, 100), (1_500_000, 100), (300_000, 2), (60_000, 576), (400, 20_000), (10_000_000, 30)]:
        rows = rows_to_share(n, d)
        assert rows * d * 8 <= 32 << 20 or rows <= 512
        if n * d * 8 >= 256 << 20 and d <= 600:
            assert -(-n // rows) >= 40


def _rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) + 0.5
    y = (X @ rng.standard_normal((D, 3)) / 2 + rng.gumbel(size=(N, 3))).argmax(axis=1)
    return X, y


LAYOUTS = {
    "C": lambda X: X,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: np.round(8 * X).astype(np.int32),
    "sparse": lambda X: sp.csr_array(np.where(np.abs(X) > 1.5, X, 0.0)),
    "frame": lambda X: pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]),
}
MODELS = {
    "logistic": (lambda: separatrix.LogisticRegression(), 2),
    "weighted logistic": (lambda: separatrix.LogisticRegression(class_weight="balanced", fit_intercept=False), 2),
    "softmax": (lambda: separatrix.LogisticRegression(C=0.1), 3),
    "LDA": (separatrix.LinearDiscriminantAnalysis, 3),
    "QDA": (separatrix.QuadraticDiscriminantAnalysis, 3),
    "GaussianNB": (separatrix.GaussianNB, 3),
    "ridge": (separatrix.RidgeClassifier, 3),
    "Bayesian": (lambda: separatrix.BayesianLogisticRegression(prior_precision=1.0), 2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MODELS)
def test_fits_and_predictions_have_the_same_bits_on_any_number_of_threads(name: str, layout: str) -> None:
    make, classes = MODELS[name]
    X, y = _rows()
    y = np.minimum(y, classes - 1)
    if name in ("softmax", "Bayesian"):  # smaller, for the time they take
        X, y = X[:18_000], y[:18_000]
    X = LAYOUTS[layout](X)
    bits = set()
    for threads in THREADS:
        with separatrix.config(threads=threads):
            model = make().fit(X, y)
            answers = model.decision_function(X), model.predict(X)
            answers += (model.predict_proba(X),) if hasattr(model, "predict_proba") else ()
        bits.add(b"".join(np.ascontiguousarray(part).tobytes() for part in answers))
    assert len(bits) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_scores", [None, 1, 2, 3, 4, 5, 9, 12])
def test_products_with_few_vectors_are_those_of_all_blocks(n_scores: int | None, dtype: type) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((777, 50)).astype(dtype)
    v = rng.standard_normal(50 if n_scores is None else (50, n_scores))
    compiled, plain = DenseBlock(X, compiled=True).matvec(v), DenseBlock(X).matvec(v)
    assert compiled.shape == plain.shape
    np.testing.assert_allclose(compiled, X.astype(np.float64) @ v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ones", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("offset", [True, False])
def test_the_compiled_hessian_is_that_of_the_definition(ones: bool, weighted: bool, offset: bool) -> None:
    rng = np.random.default_rng(1)
    n, d = 3000, 11
    X, y = 3.0 * rng.standard_normal((n, d)), rng.integers(0, 2, n)
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    source = as_source(X, y, weights).labelled()
    source = Intercept(source) if ones else source
    p = d + ones
    objective = LinearObjective(
        Logistic(), Penalty.of_scikit_learn(1.0, 0.0, np.ones((1, p))), rng.standard_normal(n) if offset else None
    )
    theta, metric = rng.standard_normal((1, p)), rng.random(p)
    block = next(iter(source.blocks()))
    fused = fused_hessian(objective.loss, theta, *objective.counted(block), metric)
    assert fused is not None
    plain = objective.evaluate(theta, source, 2, metric)  # too few rows to be compiled
    np.testing.assert_allclose(fused.loss, plain.loss, rtol=1e-12)
    np.testing.assert_allclose(fused.gradient + theta, plain.gradient, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fused.hessian[0, 0] + np.eye(p), plain.hessian, rtol=0, atol=1e-9)
    for name in ("largest_row", "steepest", "residual", "total"):
        np.testing.assert_allclose(getattr(fused, name), getattr(plain, name), rtol=1e-12)
    np.testing.assert_allclose(fused.curvature, plain.total_curvature, rtol=1e-12)


def test_samples_are_different_rows_of_all_parts() -> None:
    X, y = _rows()
    source = as_source(X, y).labelled()
    for rows in (1, 7, 1000, N - 1, N, N + 5):
        drawn = source.sample(rows)
        assert drawn is not None
        sample, which = drawn
        assert len(which) == min(rows, N) and (np.diff(which) > 0).all() and which[0] >= 0 and which[-1] < N
        np.testing.assert_array_equal(sample.matrix(), X[which])
        np.testing.assert_array_equal(sample.targets(), y[which])
        if rows >= 1000:
            assert np.diff(which).max() <= 2 * -(-N // rows)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 2]),
        np.array([3, -1, 7]),
        np.array([0, 5, 9], dtype=np.int32),
        np.array([2.0, -3.0, 1e6]),
        np.array([1e300, 2.0, 3.0]),
        np.array(["b", "a", "long name"]),
        np.array([True, False]),
        np.array(["b", "a"], dtype=object),
    ],
)
def test_codes_are_those_of_numpy(labels: np.ndarray) -> None:
    y = labels[np.random.default_rng(0).integers(0, len(labels), 150_000)]
    expected, inverse = np.unique(y, return_inverse=True)
    for threads in (1, 3):
        with separatrix.config(threads=threads):
            classes, codes = encode(y, None, None)
        np.testing.assert_array_equal(classes, expected)
        assert codes.dtype == np.intp
        np.testing.assert_array_equal(codes, inverse)


@pytest.mark.parametrize("classes", [2, 3, 11])
def test_posteriors_are_the_softmax_of_the_scores_however_large(classes: int) -> None:
    X, _ = _rows()
    rng = np.random.default_rng(2)
    W = rng.standard_normal((classes, D)) * 30
    y = (X @ W.T).argmax(axis=1)
    model = separatrix.LogisticRegression(C=1e3, max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five steps do not suffice
        model.fit(X[:5000], y[:5000])
    assert X.size >= WORTH_COMPILING
    scores = model.decision_function(X)
    expected = np.column_stack([expit(-scores), expit(scores)]) if classes == 2 else softmax(scores, axis=1)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9, atol=0)
    part = slice(1000, 1100)
    np.testing.assert_allclose(model.predict_proba(X[part]), expected[part], rtol=1e-7, atol=1e-300)
    np.testing.assert_array_equal(model.predict(X), model.classes_[expected.argmax(axis=1)])


def test_bad_values_in_any_block_are_named() -> None:
    X, y = _rows()
    model = separatrix.LinearDiscriminantAnalysis().fit(X, y)
    for row in (0, 20_000, N - 1):
        for value in (np.nan, np.inf):
            bad = X.copy()
            bad[row, 7] = value
            for answer in (model.predict, model.predict_proba, model.decision_function):
                with pytest.raises(ValueError, match=rf"column 7 has 1 such row \(first: row {row}\)"):
                    answer(bad)


def test_a_bad_value_is_found_whoever_finishes_first() -> None:
    X, y = _rows()
    model = separatrix.RidgeClassifier().fit(X, y)
    X[20_000, 7] = np.nan
    begun, seen = threading.Event(), threading.Event()

    class Slow(np.ndarray):
        """A worker's finite part, whose being finite is asked for first and answered last."""

        def __array_ufunc__(self, *arguments, **options):
            begun.set()
            seen.wait(5)
            return getattr(arguments[0], arguments[1])(*(np.asarray(a) for a in arguments[2:]), **options)

    def scores(block: Block) -> np.ndarray:
        part = block.matvec(model.coef_[0])
        if block.start == 0:
            return part.view(Slow)
        begun.wait(5)
        if not np.isfinite(part).all():
            threading.Timer(0.2, seen.set).start()  # after this worker has said so
        return part

    with separatrix.config(threads=2), pytest.raises(ValueError, match="column 7"):
        model._map_rows(X, scores)  # a finding of one worker must not be undone by another that saw none


def test_the_workers_end_with_the_process_and_are_few() -> None:
    X, y = _rows()
    with separatrix.config(threads=3):
        separatrix.GaussianNB().fit(X, y)
    ours = [thread for thread in threading.enumerate() if thread.name == "separatrix"]
    assert all(thread.daemon for thread in ours)
