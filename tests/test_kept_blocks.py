"""Passes that repeat are served from blocks kept on disk: the same bits, within the room given, gone when the process ends."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import asdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import separatrix as sx
from separatrix import scan_csv, scan_parquet
from separatrix.data import kept
from separatrix.data.dense import DenseBlock
from separatrix.statistics.columns import ColumnMoments
from separatrix.tables import table_files, table_scan, table_source
from separatrix.tables.encoding import encoding_sums
from separatrix.tables.facts import NumberFacts
from separatrix.tables.quantiles import Marks


def people(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 2))
    city = np.array(["Bergen", "Lagos", None, "Quito"], dtype=object)[rng.integers(4, size=n)]
    ill = np.where(x[:, 0] + (city == "Lagos") + rng.logistic(size=n) > 0, "yes", "no")
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, x[:, 0]),
            "height": x[:, 1],
            "city": city,
            "insured": rng.random(n) < 0.5,
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "w": rng.integers(1, 4, n),
            "ill": ill,
        }
    )


@pytest.fixture(params=[False, True], ids=["few rows", "long table"])
def short_batches(request, monkeypatch):
    monkeypatch.setattr(table_files, "ROWS", 200)
    if request.param:  # compiled loops from the third batch on
        monkeypatch.setattr(table_scan, "LONG", 400)
        monkeypatch.setattr(table_source, "LONG", 400)


def source(folder, kind, **options):
    frame = people(1_500)
    if kind == "numbers":
        frame = frame[["height", "w", "ill"]]
    if kind == "csv":
        frame.to_csv(folder / "a.csv", index=False)
        return scan_csv(folder / "a.csv", target="ill", **options)
    pq.write_table(pa.Table.from_pandas(frame), folder / "a.parquet")
    return scan_parquet(folder / "a.parquet", target="ill", **options)


@pytest.mark.parametrize("kind", ["parquet", "csv", "numbers"])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize(
    "model", [sx.LogisticRegression(), sx.LogisticRegression(solver="newton-cg"), sx.LinearClassifier()]
)
def test_a_fit_from_kept_blocks_has_the_same_bits(tmp_path, short_batches, monkeypatch, kind, weight, model):
    rows, fits, served = source(tmp_path, kind, weight=weight), [], []
    _ = rows.encoding  # learnt before: the passes are those of the solver
    whole = kept.Written.read
    monkeypatch.setattr(kept.Written, "read", lambda self, *where: served.append(1) or whole(self, *where))
    for room in (0, 10**9):
        with sx.config(cache=room):
            fits.append(clone(model).fit(rows))
        assert bool(served) == (room > 0)
    assert (fits[0].coef_ == fits[1].coef_).all() and (fits[0].intercept_ == fits[1].intercept_).all()
    assert fits[0].fit_.passes == fits[1].fit_.passes


@pytest.mark.parametrize("kind", ["parquet", "numbers"])
def test_kept_blocks_are_the_blocks(tmp_path, short_batches, kind):
    rows = source(tmp_path, kind, weight="w").labelled()
    with sx.config(cache=10**9):
        passes = [rows.map(lambda b: (b.start, b.X.copy(), b.codes.copy(), b.weights.copy()), 70) for _ in range(4)]
        parts = rows.map(lambda b: (b.start, b.X.copy(), b.codes.copy(), b.weights.copy()))
    for later in passes[1:]:
        for one, other in zip(passes[0], later, strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)
    for j in (1, 2, 3):
        np.testing.assert_array_equal(np.concatenate([p[j] for p in passes[0]]), np.concatenate([p[j] for p in parts]))


def test_what_does_not_fit_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "ROWS", 100)
    rows = source(tmp_path, "parquet").labelled()
    monkeypatch.setattr(kept.Written, "read", lambda *_: pytest.fail("nothing was to be kept"))
    with sx.config(cache=20_000):  # some of the blocks
        sums = [rows.reduce(lambda b: b.X.sum(axis=0), np.add) for _ in range(4)]
    assert all((s == sums[0]).all() for s in sums)


def test_a_full_disk_is_no_error(tmp_path, monkeypatch):
    rows = source(tmp_path, "numbers").labelled()

    class Full:
        def write(self, content):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept, "_nameless_file", Full)
    with sx.config(cache=10**9):
        sums = [rows.reduce(lambda b: b.X.sum(axis=0), np.add) for _ in range(3)]
    assert all((s == sums[0]).all() for s in sums)


def test_a_pass_that_is_broken_off_is_not_kept_for_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "ROWS", 100)
    rows = source(tmp_path, "parquet").labelled()
    total = lambda: rows.reduce(lambda b: b.X.sum(axis=0), np.add)  # noqa: E731  # short
    with sx.config(cache=10**9, threads=1):
        first = total()

        def fail(block):
            if block.start > 500:
                raise RuntimeError("enough")
            return block.X

        with pytest.raises(RuntimeError):
            rows.map(fail)
        assert all((total() == first).all() for _ in range(3))


def test_the_file_is_closed_when_the_source_goes(tmp_path):
    people(500).to_csv(tmp_path / "people.csv", index=False)
    with sx.config(cache=10**9), warnings.catch_warnings():
        warnings.simplefilter("error")  # a file that is left open is one, told to the hook below
        told: list[object] = []
        before, sys.unraisablehook = sys.unraisablehook, told.append
        try:
            sx.LogisticRegression().fit(sx.scan_csv(tmp_path / "people.csv", target="ill"))
            gc.collect()
        finally:
            sys.unraisablehook = before
    assert not told


def test_files_that_change_are_refused_though_their_blocks_are_kept(tmp_path):
    rows = source(tmp_path, "parquet").labelled()
    with sx.config(cache=10**9):
        for _ in range(3):
            rows.reduce(lambda b: b.X.sum(axis=0), np.add)
        os.utime(tmp_path / "a.parquet", (1, 1))
        with pytest.raises(ValueError, match=r"a\.parquet.*changed"):
            rows.reduce(lambda b: b.X.sum(axis=0), np.add)


def test_off_by_default_where_the_disk_is_small_or_memory(monkeypatch):
    usage = type("Usage", (), {"free": 10**9})
    monkeypatch.setattr(kept.shutil, "disk_usage", lambda _: usage)
    assert kept.room_for_cache() == 0
    usage.free = 10**12
    monkeypatch.setattr(kept, "_is_memory", lambda _: False)
    assert kept.room_for_cache() == 10**12 // 4
    monkeypatch.setattr(kept, "_is_memory", lambda _: True)
    assert kept.room_for_cache() == 0
    with sx.config(cache=7):
        assert kept.room_for_cache() == 7
    with pytest.raises(ValueError, match="cache is -1"), sx.config(cache=-1):
        pass


def test_a_killed_process_leaves_no_file_behind(tmp_path):
    source(tmp_path, "numbers")
    program = f"""
import time, numpy as np, separatrix as sx
rows = sx.scan_parquet({str(tmp_path / "a.parquet")!r}, target="ill").labelled()
with sx.config(cache=10**9):
    for _ in range(3):
        rows.reduce(lambda b: b.X.sum(axis=0), np.add)
    print("kept", flush=True)
    time.sleep(60)
"""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(temporary)}
    )
    assert process.stdout is not None and process.stdout.readline() == "kept\n"
    assert not list(temporary.iterdir())  # no name, so nothing for others to trip over
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.1)
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("kind", ["parquet", "numbers"])
def test_a_fit_from_python_shows_passes_and_bytes(tmp_path, capsys, monkeypatch, kind):
    monkeypatch.setattr(table_files, "ROWS", 200)
    rows = source(tmp_path, kind)
    with sx.config(cache=10**9):
        sx.LogisticRegression(verbose=1).fit(rows)
    lines = [line for line in capsys.readouterr().err.splitlines() if ": pass " in line]
    size = (tmp_path / "a.parquet").stat().st_size / 1e6
    assert len(lines) >= 4 and all(f"{size:.1f} of {size:.1f} MB" in line for line in lines)
    assert len({line.split(",")[0] for line in lines}) == len(lines)  # one a pass
    sx.LogisticRegression().fit(rows)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("weight", [None, "w"])
def test_scores_of_a_source_are_one_pass_of_sums(tmp_path, monkeypatch, weight):
    monkeypatch.setattr(table_files, "ROWS", 200)
    rows = source(tmp_path, "parquet", weight=weight)
    for model in (sx.LogisticRegression(), sx.LinearDiscriminantAnalysis(), sx.MixedNB(), sx.GaussianNB()):
        model.fit(rows)
        frame = people(1_500)
        weights = None if weight is None else frame["w"]
        expected = np.average(model.predict(rows) == frame["ill"], weights=weights)
        assert model.score(rows) == pytest.approx(expected, abs=1e-12)
    values = scan_parquet(tmp_path / "a.parquet", target="height", features=["age", "city"], weight=weight)
    ridge = sx.Ridge().fit(values)
    gap, y = frame["height"] - ridge.predict(values), frame["height"]
    total = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    assert ridge.score(values) == pytest.approx(1 - np.average(gap**2, weights=weights) / total, abs=1e-10)


def test_long_runs_have_the_facts_and_sums_of_short_ones():
    rng = np.random.default_rng(0)
    runs = [
        rng.standard_normal(5_000),
        np.arange(3_000.0),
        -np.arange(1.0, 50.0),
        np.where(rng.random(4_000) < 0.3, np.nan, rng.poisson(2, 4_000)),
        np.full(10, np.nan),
        np.array([-999.0, 3.0, 4.0]),
        1e-310 * rng.standard_normal(50),
        1e300 * rng.standard_normal(50),
    ]
    for x in runs:
        marks = Marks(encoding_sums.hashed_places(7, len(x)))
        facts, sums = NumberFacts.of(x), encoding_sums.NumberSums.of(x, marks)
        other = encoding_sums.NumberSums.of_run(x, marks, NumberFacts.of_run(x))
        np.testing.assert_equal(asdict(NumberFacts.of_run(x)), asdict(facts))
        for name in ("observed", "missing", "holes", "low", "high", "values"):
            assert getattr(other, name) == getattr(sums, name), name
        np.testing.assert_allclose([other.mean, other.spread], [sums.mean, sums.spread], rtol=1e-12, atol=1e-13)
        np.testing.assert_equal(other.quantiles.median(), sums.quantiles.median())


def test_moments_of_long_columns_are_those_of_numpy():
    rng = np.random.default_rng(0)
    x, codes, weights = rng.normal(1e6, 1.0, 20_000), rng.integers(3, size=20_000), rng.integers(0, 3, 20_000) * 1.0
    hole = rng.random(20_000) < 0.2
    one = ColumnMoments.of_columns(x[~hole], codes[~hole], weights[~hole], 4)
    other = ColumnMoments.of_run(np.where(hole, np.nan, x), codes, weights, 4)
    for name in ("counts", "mean", "square"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-11)


@pytest.mark.parametrize("far", [0.0, 1e9])
def test_moments_by_class_hold_where_a_guess_of_the_mean_fails(far):
    """The rows that are looked at first are of another size than all others, and a class is not among them."""
    n = 16 * 256
    rng, codes, first = np.random.default_rng(1), np.arange(n) % 3, np.arange(n) % 16 == 0
    codes[first] = 0
    x = far + np.where(first, 1e6, rng.standard_normal(n))
    one = ColumnMoments.of_columns(x, codes, np.ones(n), 4)
    other = ColumnMoments.of_run(x, codes, np.ones(n), 4)
    for name in ("counts", "mean", "square"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-9)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("order", ["as it comes", "sorted"])
def test_moments_of_coded_rows_are_those_of_the_features(tmp_path, monkeypatch, weight, order):
    """Counts of categories and sums of numbers give the scatter of the matrix; sorted rows have categories without spread."""
    monkeypatch.setattr(table_source, "LONG", 0)
    frame = people(3_000)
    frame["w"] = frame["w"] - 1  # some rows do not count
    frame = frame.sort_values(["city", "age"]) if order == "sorted" else frame
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "a.parquet")
    rows = scan_parquet(tmp_path / "a.parquet", target="ill", weight=weight).labelled()
    seen = set()
    for block in (part for whole in rows.blocks() for part in whole.cut(700)):
        one, other = block.centre_classes(2), DenseBlock(block.X, block.y, block.weights).centre_classes(2)
        seen.add(type(one).__name__)
        scatter = other.scatter()
        np.testing.assert_allclose(one.scatter(), scatter, rtol=1e-11, atol=1e-12 * abs(scatter).max())
        means = other.mean_high + other.mean_low
        np.testing.assert_allclose(one.mean_high + one.mean_low, means, rtol=1e-11, atol=1e-12)
        np.testing.assert_array_equal(one.counts, other.counts)
        fresh = block.centre_classes(2)  # what is not pooled comes from the features
        np.testing.assert_allclose(fresh.squares(), other.squares(), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(
            fresh.scatter_of(1), other.scatter_of(1), rtol=1e-10, atol=1e-11 * abs(scatter).max()
        )
    assert "CodedCentred" in seen


def test_passes_at_the_same_time_do_not_write_into_each_other(tmp_path, monkeypatch):
    """Fits of one source in several threads begin their passes before either has read a row."""
    monkeypatch.setattr(table_files, "ROWS", 100)
    rows = source(tmp_path, "parquet").labelled()
    with sx.config(cache=10**9, threads=1):
        first = rows.map(lambda block: block.X.copy())
        for one, other in zip(rows._pieces(), rows._pieces(), strict=True):
            assert (one.X == other.X).all()
        for _ in range(2):
            for was, now in zip(first, rows.map(lambda block: block.X.copy()), strict=True):
                np.testing.assert_array_equal(was, now)
