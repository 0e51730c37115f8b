"""Rows in Dask partitions: the same model as from memory, on any scheduler, whatever happens to the workers."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import delayed
from distributed import Client, KilledWorker
from estimators import REGISTRY, having, named, tight
from sklearn.base import clone
from storages import STORAGES

import separatrix as sx
from separatrix.data.engines import dask_engine
from separatrix.data.engines.dask_source import DaskSource


def draw(n: int = 300, d: int = 4, classes: int = 3) -> tuple[Any, Any, Any, Any]:
    """Counts, labels, real targets, weights with zeros."""
    rng = np.random.default_rng(5)
    X = rng.poisson(3.0, (n, d)).astype(float)
    scores = 0.4 * X @ rng.standard_normal((d, classes)) + rng.gumbel(size=(n, classes))
    return X, np.array(["ash", "elm", "oak"])[scores.argmax(axis=1)], scores[:, 0], rng.integers(0, 3, n).astype(float)


def answers(model: Any, X: Any) -> Any:
    """What a model says of rows, as numbers."""
    names = ("predict_proba", "decision_function", "predict", "transform")
    said_ = getattr(model, next(name for name in names if hasattr(model, name)))(X)
    return said_ if said_.dtype.kind in "fiub" else np.searchsorted(model.classes_, said_)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Workers in threads of this process, each given bytes as another process would be."""
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client


# Ways 1 and 2: what learns by passes alone. Maps are learnt from a first block, folds and calibration need rows to pick;
# two take hundreds of passes, of which the hinge is below.
FAMILIES = ("discriminant", "naive_bayes", "least_squares", "logistic", "ordered", "bayesian", "margin", "multiclass")
LEFT_OUT = ("mixed", "logistic cv of a grid", "margin hinge", "bayesian quadrature")
PASSING = {
    name: model
    for name, model in tight(having(family=FAMILIES, folds=False)).items()
    if name not in LEFT_OUT and "scikit-learn" not in name and "svc" not in name
}
LOCAL = [kind for kind in STORAGES if kind != "array"]


@pytest.mark.parametrize("name", PASSING)
def test_every_storage_gives_the_same_model(name: str, tmp_path: Path) -> None:
    X, labels, values, weights = draw()
    entry = REGISTRY[name]
    y = values if entry.regressor else labels
    own = weights if entry.weights else None
    whole = clone(PASSING[name]).fit(STORAGES["array"](X, y, own, tmp_path))
    for kind in LOCAL:
        if kind in ("parquet", "csv") and type(PASSING[name]).__name__ == "CategoricalNB":
            continue  # columns of files are floating numbers
        model = clone(PASSING[name]).fit(STORAGES[kind](X, y, own, tmp_path))
        loose = 3e-8 if entry.family == "margin" else 1e-9  # flat optima of losses with kinks
        found, expected = answers(model, X), answers(whole, X)
        np.testing.assert_allclose(found, expected, rtol=loose, atol=loose, err_msg=kind)
        if hasattr(whole, "coef_"):
            np.testing.assert_allclose(model.coef_, whole.coef_, rtol=loose, atol=loose, err_msg=kind)
        proof, known = (getattr(getattr(one, "fit_", None), "certificate", None) for one in (model, whole))
        if proof is not None and known is not None and np.isfinite(proof.gap + known.gap):
            slack = 1e-12 * max(1.0, abs(known.objective))
            assert proof.objective - proof.gap <= known.objective + slack, kind
            assert known.objective - known.gap <= proof.objective + slack, kind


@pytest.mark.parametrize("name", ["lda", "ridge", "logistic", "logistic by newton-cg", "logistic l1", "margin hinge"])
def test_a_cluster_gives_the_bits_of_the_threads(name: str, cluster: Any, tmp_path: Path) -> None:
    X, labels, values, weights = draw()
    y = values if REGISTRY[name].regressor else labels
    model = tight(named(name))[name] if name != "margin hinge" else sx.LinearClassifier("hinge", tol=0.02)
    there = [clone(model).fit(STORAGES["dask array"](X, y, weights, tmp_path)) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_engine, "current_client", lambda: None)
        here = clone(model).fit(STORAGES["dask array"](X, y, weights, tmp_path))
    for other in (there[1], here):
        np.testing.assert_array_equal(there[0].coef_, other.coef_)


def test_what_is_held_stays_with_its_partition(cluster: Any) -> None:
    """Products with the Hessian, and a sampler's draws by block, are those of one process."""
    X, labels, _, _ = draw(400)
    source = sx.as_source(da.from_array(X, chunks=(90, 2)), da.from_array(labels, chunks=130))
    model = sx.BayesianLogisticRegression(1.0, posterior="gibbs", random_state=0, n_chains=1, n_warmup=2, n_draws=8)
    first, second = (clone(model).fit(source) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_collections_are_taken_by_fit_and_answered_lazily(cluster: Any) -> None:
    X, labels, _, weights = draw()
    plain = sx.LogisticRegression(tol=1e-12).fit(X, labels, sample_weight=weights)
    array, column = da.from_array(X, chunks=(70, 3)), pd.Series(labels)
    model = sx.LogisticRegression(tol=1e-12).fit(array, labels.tolist(), sample_weight=weights)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-9)
    for method, shape in (
        ("predict", ()),
        ("predict_proba", (3,)),
        ("decision_function", (3,)),
        ("predict_log_proba", (3,)),
    ):
        lazy = getattr(model, method)(array)
        assert isinstance(lazy, da.Array) and lazy.shape == (300, *shape) and lazy.chunks[0] == array.chunks[0]
        np.testing.assert_array_equal(lazy.compute(), getattr(model, method)(X))
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=3)
    series = dd.from_pandas(column, npartitions=2)
    model = sx.LogisticRegression(tol=1e-12).fit(frame, series, sample_weight=weights)
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-9)
    lazy = model.predict_proba(frame)
    np.testing.assert_array_equal(lazy.compute(), model.predict_proba(frame.compute()))
    np.testing.assert_array_equal(model.predict(frame).compute(), model.predict(frame.compute()))
    assert sx.LinearDiscriminantAnalysis().fit(frame, series).transform(frame).compute().shape == (300, 2)
    np.testing.assert_array_equal(model.predict(sx.as_source(frame)), model.predict(frame.compute()))


@pytest.mark.parametrize("kind", ["dask array", "dask data frame", "dask blocks"])
def test_a_sample_is_that_of_the_array(kind: str, tmp_path: Path) -> None:
    """Rows from all partitions, in memory, with their targets and weights: a solver starts from the same point."""
    X, labels, _, weights = draw()
    there, here = (STORAGES[name](X, labels, weights, tmp_path).labelled() for name in (kind, "array"))
    (some, which), (expected, rows) = there.sample(50), here.sample(50)
    np.testing.assert_array_equal(which, rows)
    found = some.matrix()
    np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, expected.matrix())
    np.testing.assert_array_equal(some.targets(), expected.targets())
    assert some.engine is None and there.sample(50)[0] is some and some.classes.tolist() == there.classes.tolist()


@pytest.mark.parametrize("weighted", [False, True])
def test_samples_of_a_fit_come_in_one_trip(weighted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows for the units of the columns and many to begin on, each of them those of the array."""
    X, labels, _, weights = draw(12_000)
    own, trips = weights if weighted else None, list[int]()
    picked = DaskSource._picked
    monkeypatch.setattr(DaskSource, "_picked", lambda self, which: trips.append(len(which)) or picked(self, which))
    sx.LogisticRegression().fit(STORAGES["dask array"](X, labels, own, tmp_path))
    assert len(trips) == 1 and trips[0] > 2000
    there, here = (STORAGES[name](X, labels, own, tmp_path).labelled() for name in ("dask array", "array"))
    for rows in (1000, 2000, 50):
        (some, which), (expected, at) = there.sample(rows), here.sample(rows)
        np.testing.assert_array_equal(which, at)
        np.testing.assert_array_equal(some.matrix(), expected.matrix())
        np.testing.assert_array_equal(some.targets(), expected.targets())
        one, other = (np.concatenate(part.map(lambda block: block.row_weights)) for part in (some, expected))
        np.testing.assert_array_equal(one, other)


def test_unknown_sizes_bags_and_sparse_blocks() -> None:
    X, labels, _, _ = draw()
    plain = sx.LinearDiscriminantAnalysis().fit(X, labels)
    array = da.from_array(X, chunks=(70, -1))
    some = array[array[:, 0] >= 0]  # all of them, which Dask does not know
    assert np.isnan(some.shape[0])
    assert sx.as_source(some).n_rows == 300 and np.isnan(some.shape[0])
    cuts = [slice(start, start + 60) for start in range(0, 300, 60)]
    bag = db.from_sequence([(sp.csr_array(X[cut]), labels[cut]) for cut in cuts], npartitions=2)
    frames = [delayed(pd.DataFrame(X[cut]).assign(kind=labels[cut])) for cut in cuts]
    lists = [delayed(X[cut]) for cut in cuts], [delayed(labels[cut]) for cut in cuts]
    for source in (sx.as_source(some, labels), sx.as_source(bag), sx.as_source(frames, "kind"), sx.as_source(*lists)):
        model = sx.LinearDiscriminantAnalysis().fit(source)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-10)
        assert "300 rows, 4 features" in repr(source)


def test_rows_are_fetched_for_models_that_need_them() -> None:
    X, labels, _, _ = draw()
    source = sx.as_source(da.from_array(X, chunks=(70, -1)), labels)
    np.testing.assert_array_equal(source.labelled().matrix(), X)
    np.testing.assert_allclose(sx.SVC().fit(source).decision_function(X), sx.SVC().fit(X, labels).decision_function(X))


def said(call: Any) -> str:
    with pytest.raises((ValueError, TypeError, RuntimeError)) as caught:
        call()
    return str(caught.value)


def test_bad_rows_are_said_as_elsewhere() -> None:
    X, labels, _, weights = draw()
    fit = sx.LogisticRegression().fit
    holes = X.copy()
    holes[[120, 250], 2] = np.nan
    frame = dd.from_pandas(pd.DataFrame(holes, columns=list("abcd")).assign(kind=labels), npartitions=3)
    expected = said(lambda: fit(pd.DataFrame(holes, columns=list("abcd")), labels))
    assert "column 'c' has 2 such rows (first: row 120)" in expected and said(lambda: fit(frame, "kind")) == expected
    array = da.from_array(X, chunks=(70, -1))
    none = labels.astype(object)
    none[[10, 200]] = None
    for y, own in (
        (none, None),
        (np.full(300, np.nan), None),
        (labels, -weights),
        (labels, 0 * weights),
        (labels, weights * np.nan),
    ):
        assert said(lambda y=y, own=own: fit(array, y, own)) == said(lambda y=y, own=own: fit(X, y, own))
    assert "X has 300 rows and y has 299" in said(lambda: fit(array, labels[1:]))
    assert "Expected 2D array" in said(lambda: fit(array[:, 0], labels))
    assert "no column 'kin'; did you mean 'kind'?" in said(lambda: fit(frame, "kin"))
    assert "is of type" in said(lambda: fit(frame, labels))  # the labels are a feature now
    assert "one class" in said(lambda: fit(array, ["ash"] * 300)) or "class" in said(lambda: fit(array, ["ash"] * 300))
    assert "no rows" in said(lambda: fit(array[:0], labels[:0]))
    assert "requires y" in said(lambda: fit(array))


def test_rows_of_weight_zero_hold_anything_and_make_no_class() -> None:
    X, labels, _, _ = draw()
    weights = (labels != "oak").astype(float)
    holes = np.where(labels[:, None] == "oak", np.nan, X)
    there = sx.LogisticRegression(tol=1e-12).fit(da.from_array(holes, chunks=(70, -1)), labels, weights)
    here = sx.LogisticRegression(tol=1e-12).fit(holes, labels, weights)
    np.testing.assert_array_equal(there.classes_, here.classes_)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-9)


@pytest.mark.parametrize("with_cluster", [False, True])
def test_a_partition_that_cannot_be_read_is_named(with_cluster: bool, cluster: Any) -> None:
    X, labels, _, _ = draw()

    def load(i: int) -> Any:
        if i == 2:
            raise OSError("part-2.parquet: truncated")
        return X[i * 60 : i * 60 + 60]

    blocks = [da.from_delayed(delayed(load)(i), (60, 4), float) for i in range(5)]
    with pytest.MonkeyPatch.context() as patch:
        if not with_cluster:
            patch.setattr(dask_engine, "current_client", lambda: None)
        sentence = said(lambda: sx.LogisticRegression().fit(da.concatenate(blocks), labels))
    assert "partition 2 of 5 could not be read: OSError: part-2.parquet: truncated" in sentence


def test_columns_that_change_are_named() -> None:
    frames = [delayed(pd.DataFrame({name: [0.0, 1.0], "y": [0, 1]})) for name in ("a", "b")]
    assert "partition 1 of 2 has the columns ['b']" in said(
        lambda: sx.LogisticRegression().fit(sx.as_source(frames, "y"))
    )


def test_a_column_that_changes_its_type_is_named_with_its_partition() -> None:
    frames = [pd.DataFrame({"a": values, "y": [0, 1]}) for values in ([0.0, 1.0], ["few", "many"])]
    whole = dd.from_delayed([delayed(frame) for frame in frames], meta=frames[0], verify_meta=False)
    sentence = said(lambda: sx.LogisticRegression().fit(whole, "y"))
    assert "partition 1 of 2" in sentence and "column 'a'" in sentence


def test_delayed_blocks_with_their_targets_need_no_y() -> None:
    X, labels, _, _ = draw()
    parts = [(X[at : at + 100], labels[at : at + 100]) for at in range(0, len(X), 100)]
    model = sx.LogisticRegression(tol=1e-12).fit([delayed(part) for part in parts])
    np.testing.assert_allclose(model.coef_, sx.LogisticRegression(tol=1e-12).fit(X, labels).coef_, rtol=1e-9, atol=1e-9)
    assert "requires y" in said(lambda: sx.LogisticRegression().fit([delayed(rows) for rows, _ in parts]))
    assert "requires y" in said(lambda: sx.LogisticRegression().fit(da.from_array(X)))


def test_workers_that_die_at_a_partition_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels, _, _ = draw()

    def died(*_: Any) -> Any:
        raise KilledWorker("separatrix-pass-0a1b-3", None, 3)

    source = sx.as_source(da.from_array(X, chunks=(70, -1)), labels).labelled()
    monkeypatch.setattr(dask_engine, "computed", died)
    assert "died again and again at partition 3 of 5" in said(lambda: sx.LogisticRegression().fit(source))


@pytest.mark.parametrize("at", [0, 3])
def test_a_task_that_dask_fused_names_its_partition(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    X, labels, _, _ = draw()
    source = sx.as_source(da.from_array(X, chunks=(70, -1)).map_blocks(np.negative), labels).labelled()
    name, *index = source.engine.parts[at][0].key

    def died(*_: Any) -> Any:
        raise KilledWorker(str((f"array-{name}", *index)), None, 3)

    monkeypatch.setattr(dask_engine, "computed", died)
    assert f"died again and again at partition {at} of 5" in said(lambda: sx.LogisticRegression().fit(source))


def test_a_worker_killed_on_the_way_changes_nothing() -> None:
    """Two processes; one is killed while the fit runs, with its partitions and what is held there."""

    def part(i: int) -> Any:
        rng = np.random.default_rng(i)
        X = rng.standard_normal((2000, 5))
        return X, (X @ np.arange(5) + 2.0 * rng.logistic(size=2000) > 0).astype(int)

    blocks = [delayed(part, pure=True)(i) for i in range(6)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_engine, "current_client", lambda: None)
        alone = sx.LogisticRegression(solver="newton-cg", tol=1e-12).fit(sx.as_source(blocks))
    options = {"distributed.worker.daemon": True, "distributed.comm.timeouts.connect": "10s"}
    with (
        dask.config.set(options),
        Client(processes=True, n_workers=2, threads_per_worker=1, dashboard_address=None) as client,
    ):
        source = sx.as_source(blocks)
        passes, once = [], dask_engine.DaskEngine.reduce

        def reduce(*given: Any) -> Any:
            passes.append(len(passes))
            if len(passes) == 4:
                os.kill(client.run(os.getpid, workers=[next(iter(client.nthreads()))]).popitem()[1], signal.SIGKILL)
            return once(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dask_engine.DaskEngine, "reduce", reduce)
            model = sx.LogisticRegression(solver="newton-cg", tol=1e-12).fit(source)
    assert len(passes) > 6
    np.testing.assert_array_equal(model.coef_, alone.coef_)


def test_a_worker_out_of_memory_is_a_sentence_that_names_the_partition() -> None:
    """A real one: the nanny kills the worker, Dask tries again elsewhere, and gives up."""

    def part(i: int) -> Any:
        if i == 3:
            hog = [np.ones((1 << 20, 8)) for _ in range(20)]
            time.sleep(2.0 * len(hog))  # until the nanny looks
        return np.full((4, 2), float(i)), np.array([0, 1, 0, 1])

    options = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.target": False,
    }
    quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        dask.config.set(options),
        Client(processes=True, n_workers=1, threads_per_worker=1, memory_limit="700MB", **quiet),
    ):
        sentence = said(lambda: sx.as_source([delayed(part)(i) for i in range(4)]))
    # Dask may blame a partition that was on the same worker.
    assert re.search(r"died again and again at partition \d of 4", sentence) and "more memory" in sentence


KILLED = """
import os, signal, sys
import dask.array as da, numpy as np
import separatrix as sx
from separatrix.data.engines.dask_engine import DaskEngine

folder, at = sys.argv[1], int(sys.argv[2])
once, passes = DaskEngine.reduce, []

def reduce(*given):
    passes.append(1)
    if len(passes) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return once(*given)

DaskEngine.reduce = reduce
X = np.load(os.path.join(folder, "X.npy"))
array = da.from_array(X[:, :-1], chunks=(70, -1))
model = sx.LogisticRegression(solver="newton-cg", tol=1e-12)
model.fit(array, da.from_array(X[:, -1], chunks=70), checkpoint=os.path.join(folder, "checkpoint"))
np.save(os.path.join(folder, "coef.npy"), model.coef_)
print(len(passes))
"""


def test_a_driver_that_was_killed_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    X, labels, _, _ = draw()
    np.save(tmp_path / "X.npy", np.column_stack([X, labels == "ash"]))
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    killed = subprocess.run([*command, "9"], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL and any((tmp_path / "checkpoint").glob("pass-*"))
    done = subprocess.run([*command, "0"], capture_output=True, text=True, check=True)
    alone = sx.LogisticRegression(solver="newton-cg", tol=1e-12)
    array, y = da.from_array(X, chunks=(70, -1)), da.from_array((labels == "ash").astype(float), chunks=70)
    np.testing.assert_array_equal(np.load(tmp_path / "coef.npy"), alone.fit(array, y).coef_)
    assert int(done.stdout) < alone.fit_.passes
    assert "other data" in said(lambda: clone(alone).fit(array + 1.0, y, checkpoint=tmp_path / "checkpoint"))
