"""Fits to files of mixed columns begin on rows drawn while the schema was learnt, and sum the loss over coded rows."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.special import expit
from sklearn.base import clone

import separatrix as sx
from separatrix.tables import table_files, table_scan, table_source
from separatrix.tables.coded import coded_sample, coded_sums
from separatrix.tables.coded.coded_sample import CodedSample
from separatrix.tables.coded.coded_sums import CodedSums
from separatrix.tables.column_scan import ColumnScan
from separatrix.tables.drawn_rows import DRAWN_BYTES, share_to_draw
from separatrix.tables.encoding.encoding_sums import hashed_places
from separatrix.tables.quantiles import Marks
from separatrix.tables.table_source import TableBlock

N = 9_000


def people(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age, far = rng.normal(40, 10, n), rng.normal(1e7, 1.0, n)
    city = np.array(["Bergen", "Lagos", "Quito", None], dtype=object)[rng.integers(4, size=n)]
    score = 0.1 * (age - 40) + (city == "Lagos") + (far - 1e7) + rng.logistic(size=n)
    age[rng.random(n) < 0.1] = np.nan
    table = pd.DataFrame({"age": age, "far": far, "city": city, "insured": rng.random(n) < 0.5})
    return table.assign(w=rng.integers(1, 4, n), ill=np.where(score > 0.5, "yes", "no"))


def scanned(folder: Path, kind: str, table: pd.DataFrame, **options: Any) -> Any:
    if kind == "csv":
        table.to_csv(folder / "people.csv", index=False)
        return sx.scan_csv(folder / "people.csv", target="ill", **options)
    for part in range(3):
        table.iloc[part * len(table) // 3 : (part + 1) * len(table) // 3].to_parquet(folder / f"{part}.parquet")
    return sx.scan_parquet(folder, target="ill", **options)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_drawn_rows_are_rows_of_the_table_however_it_is_cut(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people()
    table.loc[np.random.default_rng(0).random(N) < 0.05, "ill"] = None  # rows that do not count
    found = []
    for rows in (table_files.ROWS, 700):
        monkeypatch.setattr(table_files, "ROWS", rows)
        source = scanned(tmp_path, kind, table).labelled()
        some, which = source.sample(10**9)
        np.testing.assert_allclose(some.matrix(), source.matrix()[which], rtol=1e-12)
        np.testing.assert_array_equal(some.targets(), source.targets()[which])
        fewer, at = source.sample(50)
        np.testing.assert_allclose(fewer.matrix(), source.matrix()[at], rtol=1e-12)
        assert len(np.unique(which)) == len(which) and len(at) == 50
        found.append(which)
    np.testing.assert_array_equal(*found)
    expected = share_to_draw(N, 5) * source.n_rows  # the width of a draw of so many rows is at most √n/2
    assert abs(len(which) - expected) <= 5 * np.sqrt(N) / 2 + (0.05 * expected if kind == "csv" else 0)


def test_too_few_rows_for_many_categories_are_no_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = scanned(tmp_path, "parquet", people()).labelled()
    monkeypatch.setattr(table_source, "_ROWS_PER_FEATURE", 10_000)  # of the rows that are drawn
    assert source.sample(10**9) is None


def test_the_share_is_bounded_by_memory() -> None:
    assert share_to_draw(1_000, 10) == 0.0
    for row_bytes in (0.0, 4_000.0):  # long texts among the columns
        assert share_to_draw(10**10, 10, row_bytes) * 10**10 * max(80.0, row_bytes) <= DRAWN_BYTES
    assert share_to_draw(10**6, 10) * 10**6 > 2 * share_to_draw(10**5, 10) * 10**5


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_sample_held_in_short_is_that_of_the_features(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The features of a large sample are made block by block: the same rows, sums and sub-samples, and the same fit."""
    source, found = scanned(tmp_path, kind, people().drop(columns="w")), []
    _ = source.encoding  # learnt before: the passes are those of the solver
    for room in (1 << 25, 0):
        monkeypatch.setattr(coded_sample, "ENCODED_BYTES", room)
        model = sx.LogisticRegression(tol=1e-9).fit(source)
        some, which = source.labelled().sample(900)
        assert isinstance(some, CodedSample) == (room == 0)
        few, at = some.sample(70)
        (block, *_) = some.blocks()
        found.append(
            (model, which, at, few.matrix(), few.targets(), block.part(slice(3, 50)).X, some.matrix(), some.targets())
        )
    (model, *one), (other, *two) = found
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-6, atol=1e-6)
    assert model.fit_.passes == other.fit_.passes


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("missing", [None, "NA"])  # nothing, and a text that only the whole table tells to be no label
def test_labels_of_a_complete_table_are_read_by_the_worker(tmp_path: Path, kind: str, missing: str | None) -> None:
    """The calling thread only decodes then; where a row may have no label, it has to look which are left."""
    table = people(2_000)
    whole = scanned(tmp_path, kind, table).labelled()
    holed = table.copy()
    holed.loc[1_500:1_600, "ill"] = missing
    (tmp_path / "holed").mkdir()
    part = scanned(tmp_path / "holed", kind, holed).labelled()
    assert all("y" not in vars(block) for block in whole.blocks())
    np.testing.assert_array_equal(whole.targets(), (table["ill"] == "yes").astype(int))
    np.testing.assert_array_equal(part.targets(), whole.targets()[holed["ill"].isin(["yes", "no"])])
    (block,) = (block for block in whole.blocks() if block.start <= 1_000 < block.start + block.n)
    np.testing.assert_array_equal(block.part(slice(5, 50)).codes, block.codes[5:50])
    swapped = whole.labelled(np.array(["maybe", "no", "yes"]))
    np.testing.assert_array_equal(swapped.targets(), whole.targets() + 1)
    model = sx.LogisticRegression().fit(whole)
    rows = holed["ill"].isin(["yes", "no"]).to_numpy()
    right = (model.predict(whole) == table["ill"])[rows].mean()
    assert model.score(scanned(tmp_path / "holed", kind, holed)) == pytest.approx(right, rel=1e-12)


def test_two_fits_of_one_source_use_one_draw(tmp_path: Path) -> None:
    source = scanned(tmp_path, "parquet", people())
    (one, at), (two, again) = (source.labelled().sample(500) for _ in range(2))
    np.testing.assert_array_equal(at, again)
    np.testing.assert_array_equal(one.matrix(), two.matrix())
    swapped, _ = source.labelled(np.array(["maybe", "no", "yes"])).sample(500)
    np.testing.assert_array_equal(swapped.targets(), one.targets() + 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fit_begun_on_drawn_rows_is_that_of_the_table(tmp_path: Path, threads: int) -> None:
    table = people()
    source = scanned(tmp_path, "parquet", table.drop(columns="w"))
    with sx.config(threads=threads):
        model = sx.LogisticRegression(tol=1e-11).fit(source)
    X = source.labelled().matrix()
    here = sx.LogisticRegression(tol=1e-11).fit(X, table["ill"])
    np.testing.assert_allclose(model.coef_, here.coef_, rtol=1e-6, atol=1e-7)
    one, other = model.fit_.certificate, here.fit_.certificate
    assert one.objective - one.gap <= other.objective and other.objective - other.gap <= one.objective
    unaided = sx.scan_parquet(tmp_path, target="ill", weight=None)
    unaided.files.share = 0.0
    assert sx.LogisticRegression(tol=1e-11).fit(unaided).fit_.passes > model.fit_.passes


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("offset", [False, True])
def test_sums_over_coded_rows_are_those_over_the_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weight: str | None, offset: bool
) -> None:
    monkeypatch.setattr(table_source, "LONG", 0)
    monkeypatch.setattr(table_scan, "LONG", 0)
    (block,) = scanned(tmp_path, "csv", people(3_000), weight=weight).labelled().blocks()
    rng, d = np.random.default_rng(1), block.shape[1]
    w, b, metric = 3.0 * rng.standard_normal((1, d)), rng.standard_normal(1), rng.random(d)
    own = rng.standard_normal((block.n, 1)) if offset else None
    rows, ones = block.row_sums()
    assert not ones
    sums = rows.loss_sums("logistic", w, b, own, metric, keep=False)
    s = np.ones(block.n) if block.weights is None else block.weights
    X, y = block.X, block.codes
    eta = X @ w[0] + b[0] + (0.0 if own is None else own[:, 0])
    r = 1.0 / (1.0 + np.exp(-eta)) - y
    assert sums.loss == pytest.approx((s * np.logaddexp(0.0, (1 - 2 * y) * eta)).sum(), rel=1e-12)
    np.testing.assert_allclose(sums.gradient[0], X.T @ (s * r), rtol=1e-9, atol=1e-9 * np.abs(s * r).sum())
    assert sums.slopes[0] == pytest.approx((s * r).sum(), rel=1e-9)
    assert sums.squares == pytest.approx((s * r * r).sum(), rel=1e-11)
    assert sums.steepest == pytest.approx(np.abs(eta).max(), rel=1e-12)
    assert sums.largest == pytest.approx((np.square(X) @ metric).max(), rel=1e-11)
    assert sums.total == pytest.approx(s.sum())
    assert rows.loss_sums("hinge", w, b, own, metric, keep=False) is None
    assert rows.loss_sums("logistic", w, b, own, None, keep=True) is None
    assert block.row_sums() is None  # once the features are there, they are used


def coded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int, weight: str | None = None) -> TableBlock:
    monkeypatch.setattr(table_source, "LONG", 0)
    monkeypatch.setattr(table_scan, "LONG", 0)
    (block,) = scanned(tmp_path, "csv", people(n), weight=weight).labelled().blocks()
    return block


@pytest.mark.parametrize("steep", [1e-300, 30.0, 800.0, 1e6, 1e300])
def test_sums_over_coded_rows_of_extreme_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steep: float) -> None:
    block = coded(tmp_path, monkeypatch, 1_000)
    w, b = steep * np.random.default_rng(0).standard_normal((1, block.shape[1])), np.array([0.5])
    sums = block.row_sums()[0].loss_sums("logistic", w, b, None, None, keep=False)
    X, sign = block.X, 1 - 2 * block.codes
    eta = X @ w[0] + b[0]
    r = sign * expit(sign * eta)
    assert sums.loss == pytest.approx(np.logaddexp(0.0, sign * eta).sum(), rel=1e-12)
    assert sums.squares == pytest.approx((r * r).sum(), rel=1e-9)
    np.testing.assert_allclose(sums.gradient[0], X.T @ r, rtol=1e-9, atol=1e-9 * np.abs(r).sum())
    assert sums.steepest == pytest.approx(np.abs(eta).max(), rel=1e-12)


@pytest.mark.parametrize("n", [1, 255, 256, 257, 2_000])
@pytest.mark.parametrize("weight", [None, "w"])
def test_sums_over_coded_rows_however_they_are_cut_and_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int, weight: str | None
) -> None:
    """Pieces and parts change the rounding alone, and the order of the numbers in memory not even that."""
    block = coded(tmp_path, monkeypatch, 2_500, weight).part(slice(300, 300 + n))
    rng, d = np.random.default_rng(n), block.shape[1]
    given = "logistic", rng.standard_normal((1, d)), rng.standard_normal(1), rng.standard_normal((n, 1)), rng.random(d)
    whole = CodedSums(block.code, block._coding, block.codes, block.weights).loss_sums(*given, keep=False)
    arrays = {name: np.ascontiguousarray(array) for name, array in block.kept().items()}
    again = CodedSums.of_arrays(block._coding, arrays, block.codes, block.weights).loss_sums(*given, keep=False)
    for one, other in zip(asdict(whole).values(), asdict(again).values(), strict=True):
        np.testing.assert_array_equal(one, other)
    monkeypatch.setattr(coded_sums, "_PIECE", 512)
    cut = CodedSums(block.code, block._coding, block.codes, block.weights).loss_sums(*given, keep=False)
    parts = []
    for rows in (slice(0, n // 3), slice(n // 3, n)):
        part = block.part(rows)
        own = (*given[:3], given[3][rows], given[4])
        parts.append(CodedSums(part.code, part._coding, part.codes, part.weights).loss_sums(*own, keep=False))
    for name in ("loss", "slopes", "squares", "total", "gradient"):
        expected, size = np.asarray(getattr(whole, name)), 1e-12 * n * (1.0 + np.abs(block.X).max())
        np.testing.assert_allclose(getattr(cut, name), expected, rtol=1e-12, atol=size)
        np.testing.assert_allclose(sum(getattr(part, name) for part in parts), expected, rtol=1e-12, atol=size)
    for name in ("steepest", "largest"):
        assert getattr(cut, name) == max(getattr(part, name) for part in parts) == getattr(whole, name)


def test_a_fit_over_coded_rows_has_the_same_bits_on_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_source, "LONG", 0)
    monkeypatch.setattr(table_scan, "LONG", 0)
    monkeypatch.setattr(table_files, "ROWS", 300)
    source, fits = scanned(tmp_path, "parquet", people(4_000)), []
    for threads in (1, 2, 5):
        with sx.config(threads=threads):
            fits.append(sx.LogisticRegression().fit(source))
    for model in fits[1:]:
        assert (model.coef_ == fits[0].coef_).all() and (model.intercept_ == fits[0].intercept_).all()
        assert model.fit_.certificate == fits[0].fit_.certificate


def test_a_perceptron_from_files_is_that_of_the_array(tmp_path: Path) -> None:
    """It visits all rows, and not those that were drawn."""
    source, machine = scanned(tmp_path, "parquet", people()), sx.Perceptron(max_iter=3, tol=None, shuffle=False)
    there = clone(machine).fit(source).coef_
    np.testing.assert_allclose(there, clone(machine).fit(source.labelled().matrix(), people()["ill"]).coef_, rtol=1e-9)


def _scan_of(texts: pa.Array, deep: bool) -> ColumnScan:
    marks = Marks(hashed_places(0, len(texts)))
    return ColumnScan.of("x", texts, ".", slice(None), marks, deep)


@pytest.mark.parametrize(
    "words", [("b", "a", "c"), ("3", "1.5", "-2"), ("3", "1", "n/a"), ("yes", "no"), ("3", "x", "07")]
)
def test_texts_deep_in_a_long_column_are_counted_as_the_first_ones(words: tuple[str, ...]) -> None:
    rng = np.random.default_rng(len(words[0]))
    given = rng.choice([*words, *(f" {word}" for word in words), "NA", None], 5_000)
    given[:3] = words[1]
    # A dictionary in another order, with texts that stand in no row: as numbers these would read otherwise.
    dictionary = ["unheard of", "007", *sorted({text for text in given if text is not None}, reverse=True)]
    place = {text: at for at, text in enumerate(dictionary)}
    codes = pa.array([None if text is None else place[text] for text in given], pa.int16())
    plain, coded = pa.array(given), pa.DictionaryArray.from_arrays(codes, pa.array(dictionary))
    found = [_scan_of(column, deep) for column in (plain, coded) for deep in (False, True)]
    for other in found[1:]:
        assert other.missing == found[0].missing
        assert other.texts == found[0].texts
        assert list(other.texts.facts.counts) == list(found[0].texts.facts.counts)
        (one, sums), (same, same_sums) = other.described(), found[0].described()
        assert one.schema == same.schema
        assert (sums.missing, sums.holes, sums.values) == (same_sums.missing, same_sums.holes, same_sums.values)
