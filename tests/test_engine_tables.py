"""Tables of mixed columns in Dask partitions: encoded, fitted and compared as the same table in a file is."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from distributed import Client
from sklearn.base import clone

import separatrix as sx
from separatrix.tables import scan_dask
from separatrix.tables.quantiles import SIZE

MODELS = {
    "lda": sx.LinearDiscriminantAnalysis(),
    "ridge": sx.RidgeClassifier(),
    "softmax": sx.LogisticRegression(tol=1e-12),
    "by products": sx.LogisticRegression(tol=1e-12, solver="newton-cg"),
    "l1": sx.LogisticRegression(tol=1e-12, l1_ratio=1.0, C=0.05),
    "squared hinge": sx.LinearClassifier("squared_hinge", tol=1e-12),
}


def people(n: int = 1200) -> pd.DataFrame:
    """Numbers with holes, numbers in text, categories, booleans, dates, weights, and rows without a label."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n).round(1),
            "income": [f"{x:.2f}".replace(".", ",") for x in rng.lognormal(3, 1, n)],
            "city": rng.choice(["Ulm", "Bonn", "Kiel", None], n),
            "member": rng.choice([True, False], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "grade": pd.Categorical(rng.choice(list("abc"), n)),
            "visits": rng.poisson(3, n),
            "w": rng.integers(0, 3, n).astype(float),
        }
    )
    score = 0.1 * (table["age"] - 40) + (table["city"] == "Ulm") - (table["grade"] == "b") + rng.logistic(size=n)
    table["ill"] = np.where(score > 1, "very", np.where(score > 0, "yes", "no"))
    table.loc[rng.random(n) < 0.1, "age"] = np.nan
    unlabelled = rng.random(n) < 0.05
    table.loc[unlabelled, "ill"] = None
    table.loc[np.flatnonzero(unlabelled)[:1], "city"] = "Atlantis"  # a level of rows that do not count
    return table


def partitions(table: pd.DataFrame) -> Any:
    """Uneven ones, one of them without rows, one without a single city."""
    cuts = [table.iloc[:300], table.iloc[300:300], table.iloc[300:301], table.iloc[301:900], table.iloc[900:]]
    return dd.from_delayed([delayed(cut) for cut in cuts], meta=table.iloc[:0])


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client


@pytest.mark.parametrize("weight", [None, "w"])
def test_the_model_is_that_of_the_file(weight: str | None, tmp_path: Path, cluster: Any) -> None:
    table = people() if weight else people().drop(columns="w")
    table.to_parquet(tmp_path / "people.parquet", index=False)
    file, there = (
        sx.scan_parquet(tmp_path / "people.parquet", target="ill", weight=weight),
        scan_dask(partitions(table), "ill", weight=weight),
    )
    assert "city: large_string" in repr(there) and "5 partitions" in repr(there)
    for name, model in MODELS.items():
        here, elsewhere = (clone(model).fit(source) for source in (file, there))
        assert elsewhere.feature_names_in_.tolist() == here.feature_names_in_.tolist()
        np.testing.assert_allclose(elsewhere.coef_, here.coef_, rtol=1e-9, atol=1e-9, err_msg=name)
    assert "city: categorical" in repr(there)
    assert here.score(there) == pytest.approx(here.score(file), abs=1e-12)
    np.testing.assert_array_equal(here.predict(there), here.predict(table))
    np.testing.assert_array_equal(here.predict(partitions(table)).compute(), here.predict(table))


def test_a_long_table_with_holes_is_the_same_everywhere(tmp_path: Path) -> None:
    """More rows than a sketch of quantiles holds, in storages that cut them in their own ways."""
    rng, n = np.random.default_rng(8), 3 * SIZE
    table = pd.DataFrame({name: rng.lognormal(size=n) for name in "abc"}).assign(kind=rng.choice(["x", "y", None], n))
    score = table["a"] - table["b"] + (table["kind"] == "x") + rng.logistic(size=n)
    table["ill"] = np.where(score > 0, "yes", "no")
    for name, share in (("a", 0.1), ("b", 0.6), ("c", 0.9995)):  # the last has few values, which all count
        table.loc[rng.random(n) < share, name] = np.nan
    table.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "parts").mkdir()
    cuts = [0, 7, 20_011, 20_011, 33_333, n]
    for i, (start, end) in enumerate(pairwise(cuts)):
        table.iloc[start:end].to_parquet(tmp_path / "parts" / f"{i}.parquet", index=False, row_group_size=5_003)
    frame = dd.from_delayed([delayed(table.iloc[a:b]) for a, b in pairwise(cuts)], meta=table.iloc[:0])
    sources: dict[str, Any] = {
        "csv": sx.scan_csv(tmp_path / "people.csv", target="ill"),
        "parquet": sx.scan_parquet(tmp_path / "parts", target="ill"),
        "dask": scan_dask(frame, "ill"),
    }
    medians = {name: source.encoding.encoder.medians_ for name, source in sources.items()}
    assert medians["csv"] == medians["parquet"] == medians["dask"]
    assert medians["csv"]["c"] == table["c"].median()
    for model in (sx.LinearDiscriminantAnalysis(), sx.LogisticRegression(tol=1e-13)):
        fits = {name: clone(model).fit(source) for name, source in sources.items()}
        for name, fitted in fits.items():
            np.testing.assert_allclose(fitted.coef_, fits["csv"].coef_, rtol=1e-9, atol=1e-9, err_msg=name)
            one, other = fitted.fit_.certificate, fits["csv"].fit_.certificate
            assert one.objective - one.gap <= other.objective + 1e-12 * abs(other.objective), name


@pytest.mark.parametrize("unlabelled", [False, True])
def test_a_long_table_begins_on_rows_drawn_by_the_workers(unlabelled: bool, cluster: Any) -> None:
    """They come with what the columns are, and never go back; without a label in some rows all begins with all rows."""
    rng, n = np.random.default_rng(9), 20_000
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "kind": rng.choice(["x", "y", None], n)})
    table["ill"] = np.where(table["a"] + (table["kind"] == "x") + rng.logistic(size=n) > 0, "yes", "no")
    if unlabelled:
        table.loc[100:120, "ill"] = None
    frame = dd.from_pandas(table, npartitions=3)
    model, source, plain = sx.LogisticRegression(tol=1e-11), scan_dask(frame, "ill"), scan_dask(frame, "ill")
    plain.columns.share = 0.0
    drawn, whole = (clone(model).fit(one) for one in (source, plain))
    np.testing.assert_allclose(drawn.coef_, whole.coef_, rtol=1e-5, atol=1e-6)
    found = source.labelled().sample(500)
    assert (found is None) == unlabelled and plain.labelled().sample(500) is None
    if found is not None:
        some, which = found
        matrix = np.concatenate(list(source.labelled().each(lambda block: block.X)))
        np.testing.assert_allclose(some.matrix(), matrix[which], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(some.targets(), (table["ill"] == "yes").to_numpy()[which])
        assert drawn.fit_.passes < whole.fit_.passes
        sent = pickle.loads(pickle.dumps(source.columns))
        assert sent.coded is None and not sent.drawn.streams and source.columns.coded is not None


def test_columns_of_their_own_families(tmp_path: Path, cluster: Any) -> None:
    table = people()
    table.to_parquet(tmp_path / "people.parquet", index=False)
    here = sx.MixedNB().fit(sx.scan_parquet(tmp_path / "people.parquet", target="ill", weight="w"))
    for model in (
        sx.MixedNB().fit(partitions(table), "ill", "w"),
        sx.MixedNB().fit(scan_dask(partitions(table), "ill", weight="w")),
    ):
        assert model.families_ == here.families_
        np.testing.assert_allclose(model.predict_log_proba(table), here.predict_log_proba(table), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            model.predict_proba(partitions(table)).compute(), here.predict_proba(table), rtol=1e-9, atol=1e-12
        )


def test_a_comparison_has_the_scores_of_the_file(tmp_path: Path, cluster: Any) -> None:
    table = people().drop(columns="w")
    table.to_parquet(tmp_path / "people.parquet", index=False)
    here = sx.compare(sx.scan_parquet(tmp_path / "people.parquet", target="ill"), "ill", cv=3, random_state=1)
    there = sx.compare(partitions(table), "ill", cv=3, random_state=1)
    np.testing.assert_array_equal(there.counts, here.counts)
    assert [one.family for one in there.candidates] == [one.family for one in here.candidates]
    for one, other in zip(there.candidates, here.candidates, strict=True):
        np.testing.assert_array_equal(one.confusion, other.confusion)
        for name, score in other.scores.items():
            np.testing.assert_allclose(one.scores[name].folds, score.folds, rtol=1e-9)
    assert "hashed folds" in str(there) and there.recommended.family == here.recommended.family
    np.testing.assert_array_equal(there.best.predict(table), here.best.predict(table))


def said(call: Any) -> str:
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    return str(caught.value)


def test_what_is_wrong_is_said() -> None:
    table = people()
    frame = partitions(table)
    assert "no column 'il'; did you mean 'ill'?" in said(lambda: scan_dask(frame, "il"))
    assert "is the name of one of its columns" in said(lambda: sx.MixedNB().fit(frame, table["ill"]))
    assert "scanned without a target" in said(lambda: sx.LogisticRegression().fit(scan_dask(frame)))
    assert "scanned with target='ill', and 'city'" in said(lambda: sx.compare(scan_dask(frame, "ill"), "city"))
    assert "drawn once" in said(lambda: sx.compare(frame, "ill", n_repeats=2))
    changed = [delayed(part) for part in (table[["age", "ill"]], table[["age", "ill"]].assign(age="old"))]
    both = dd.from_delayed(changed, meta=table[["age", "ill"]].iloc[:0], verify_meta=False)
    sentence = said(lambda: sx.LogisticRegression().fit(scan_dask(both, "ill", encode=True)))
    assert "column 'age'" in sentence
