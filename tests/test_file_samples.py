"""Solvers begin on a sample of numbers in files: one pass brings the rows that an array of all would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import separatrix as sx
from separatrix.data import files
from separatrix.data.arrays import asked_next, enough_rows
from separatrix.data.files import FileSource
from separatrix.solvers.choose import sample_rows

N, D = 12_000, 5


def drawn(classes: int = 2, n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, D))
    scores = X[:, :4] @ rng.standard_normal((4, classes)) + rng.gumbel(size=(n, classes))
    X = X * [1.0, 1.0, 5.0, 0.2, 1.0] + [0.0, 0.0, 50.0, 0.0, 0.0]
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(D)])
    return table.assign(w=rng.integers(0, 3, n), y=np.array(["a", "b", "c"])[scores.argmax(axis=1)])


def scanned(folder: Path, kind: str, table: pd.DataFrame, weight: str | None = None) -> Any:
    table = table if weight else table.drop(columns="w")
    if kind == "csv":
        table.to_csv(folder / "rows.csv", index=False)
        return sx.scan_csv(folder / "rows.csv", target="y", weight=weight)
    for i, part in enumerate(np.array_split(np.arange(len(table)), 3)):
        table.iloc[part].to_parquet(folder / f"{i}.parquet", index=False, row_group_size=1_003)
    return sx.scan_parquet(folder, target="y", weight=weight)


def in_memory(table: pd.DataFrame, weight: str | None = None) -> Any:
    X = table[[f"x{j}" for j in range(D)]].to_numpy()
    return sx.as_source(X, table["y"].to_numpy(), table[weight].to_numpy(float) if weight else None)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_a_sample_is_that_of_the_array(
    tmp_path: Path, kind: str, weight: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", 8 * D * 512)
    table = drawn(3)
    there, here = scanned(tmp_path, kind, table, weight).labelled(), in_memory(table, weight).labelled()
    before = there.passes
    for rows in (1000, 2000, 700):  # the second has come with the first
        (some, which), (expected, at) = there.sample(rows), here.sample(rows)
        np.testing.assert_array_equal(which, at)
        np.testing.assert_array_equal(some.matrix(), expected.matrix())
        np.testing.assert_array_equal(some.targets(), expected.targets())
        assert some.classes.tolist() == ["a", "b", "c"]
        one, other = (np.concatenate(part.map(lambda block: block.row_weights)) for part in (some, expected))
        np.testing.assert_array_equal(one, other)
        assert there.passes == before + 1 + (rows == 700)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("classes", [2, 3])
def test_fits_are_those_of_memory_in_fewer_passes(
    tmp_path: Path, kind: str, weight: str | None, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = drawn(classes)
    source, model = scanned(tmp_path, kind, table, weight), sx.LogisticRegression(tol=1e-10)
    there, here = model.fit(source).coef_.copy(), model.fit_
    memory = sx.LogisticRegression(tol=1e-10).fit(in_memory(table, weight))
    np.testing.assert_allclose(there, memory.coef_, rtol=1e-4, atol=1e-5)
    one, other = here.certificate, memory.fit_.certificate
    assert one.objective - one.gap <= other.objective and other.objective - other.gap <= one.objective
    monkeypatch.setattr(FileSource, "sample", lambda self, rows: None)
    assert sx.LogisticRegression(tol=1e-10).fit(source).fit_.passes > here.passes


def test_few_rows_are_read_without_a_pass_for_a_sample(tmp_path: Path) -> None:
    source = scanned(tmp_path, "parquet", drawn(2, 4_000)).labelled()
    assert source.sample(1000) is None and source.passes == 1  # that which found the labels


def test_a_sample_takes_no_more_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = scanned(tmp_path, "parquet", drawn()).labelled()
    monkeypatch.setattr(files, "_SAMPLED_BYTES", 8 * D * 300)
    some, which = source.sample(2000)
    assert some.n_rows == len(which) == 300


def test_what_is_asked_next_is_what_solvers_ask() -> None:
    for n, p in ((10_000, 3), (10**6, 50), (10**8, 200), (50_000, 400)):
        assert asked_next(1000, n, p) == sample_rows(n, p)
        assert enough_rows(4 * n, p) == pytest.approx(2 * enough_rows(n, p), abs=2)
