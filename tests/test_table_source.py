"""Tables in files as sources: what is learnt in one streaming pass is what is learnt in memory, however the rows are cut."""

from __future__ import annotations

import itertools
import pickle
import tempfile
import warnings
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import separatrix as sx
from separatrix import scan_csv, scan_parquet
from separatrix.tables import TableEncoder, TableSchema, column_scan, read_table, table_files
from separatrix.tables.encoding.encoding_sums import hashed_places
from separatrix.tables.facts import NumberFacts, TextFacts
from separatrix.tables.quantiles import SIZE, Marks, QuantileSketch, Reached


def people(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(20, 80, n)),
            "height": rng.normal(1.7, 0.1, n).round(3),
            "children": rng.integers(0, 4, n),
            "code": np.where(rng.random(n) < 0.05, -999, rng.integers(0, 100, n)),
            "city": rng.choice(["Oslo", "Rome", "Bern", None], n, p=[0.4, 0.3, 0.2, 0.1]),
            "smoker": rng.choice(["yes", "no", None], n, p=[0.3, 0.6, 0.1]),
            "insured": rng.choice([True, False], n),
            "constant": 1,
            "row": np.arange(n),
            "note": [f"text {i}" for i in range(n)],
            "born": pd.Timestamp("1990-01-01"),
        }
    )
    frame["again"] = frame["city"]
    score = np.nan_to_num(frame["age"].to_numpy(), nan=50) / 30 + (frame["city"] == "Rome") + rng.logistic(size=n)
    frame["ill"] = np.where(rng.random(n) < 0.02, None, np.where(score > 2, "often", "never"))
    return frame


@pytest.mark.parametrize("batch", [7, 64, 10_000])
@pytest.mark.parametrize("kind", ["csv", "parquet", "two files"])
def test_a_stream_is_read_as_the_table_in_memory(tmp_path, monkeypatch, kind, batch):
    monkeypatch.setattr(table_files, "ROWS", batch)
    frame = people(300)
    if kind == "csv":
        frame.to_csv(tmp_path / "a.csv", index=False)
        paths, table = tmp_path / "a.csv", read_table(tmp_path / "a.csv")
    else:
        cut = 300 if kind == "parquet" else 130
        pq.write_table(pa.Table.from_pandas(frame[:cut]), tmp_path / "a.parquet")
        if cut < 300:
            pq.write_table(pa.Table.from_pandas(frame[cut:], preserve_index=False), tmp_path / "b.parquet")
        paths, table = tmp_path, frame
    schema, rows, codes = TableSchema.infer_and_read(table, "ill")
    encoder = TableEncoder(schema).fit(rows)
    source = (scan_csv if kind == "csv" else scan_parquet)(paths, target="ill")
    found = source.encoding
    # What a reason offers differs: words are read of tables that are held.
    streamed, held = (
        [replace(column, reason=column.reason.partition(";")[0]) for column in which.columns]
        for which in (found.schema, schema)
    )
    assert streamed == held and found.schema.classes == schema.classes
    assert source.labelled().n_rows == len(rows) and source.feature_names.tolist() == encoder.feature_names_
    for mine, theirs in zip(found.encoder.features_, encoder.features_, strict=True):
        a, b = asdict(mine), asdict(theirs)
        np.testing.assert_allclose(
            [a.pop(x) for x in ("centre", "scale", "fill")], [b.pop(x) for x in ("centre", "scale", "fill")], rtol=1e-12
        )
        assert a == b
    blocks = list(source.labelled().blocks())
    np.testing.assert_allclose(
        np.concatenate([block.X for block in blocks]), encoder.transform(rows), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(np.concatenate([block.codes for block in blocks]), codes)


@pytest.mark.parametrize(
    "model", [sx.LogisticRegression(tol=1e-9), sx.LinearDiscriminantAnalysis(), sx.GaussianNB(), sx.RidgeClassifier()]
)
def test_models_of_a_stream_are_those_of_the_encoded_matrix(tmp_path, monkeypatch, model):
    monkeypatch.setattr(table_files, "ROWS", 100)
    frame = people(1000)
    frame.to_csv(tmp_path / "a.csv", index=False)
    schema, rows, codes = TableSchema.infer_and_read(read_table(tmp_path / "a.csv"), "ill")
    X, y = TableEncoder(schema).fit_transform(rows), np.asarray(schema.classes)[codes]
    streamed, inside = clone(model).fit(scan_csv(tmp_path / "a.csv", target="ill")), clone(model).fit(X, y)
    form, other = streamed.score_form(), inside.score_form()
    np.testing.assert_allclose(form.scores(X), other.scores(X), rtol=1e-9, atol=1e-9)
    people(50, seed=1).drop(columns=["note", "ill"]).sample(frac=1, axis=1, random_state=0).to_csv(
        tmp_path / "b.csv", index=False
    )
    fresh = schema.read(read_table(tmp_path / "b.csv"))
    expected = inside.predict(TableEncoder(schema).fit(rows).transform(fresh))
    assert (streamed.predict(scan_csv(tmp_path / "b.csv")) == expected).all()
    sx.save_model(streamed, tmp_path / "model.safetensors")
    assert (sx.load_model(tmp_path / "model.safetensors").predict(scan_csv(tmp_path / "b.csv")) == expected).all()


def test_the_source_of_a_fit_predicts_its_rows_without_a_label_too(tmp_path):
    frame = people(700)
    frame.to_csv(tmp_path / "a.csv", index=False)
    source = scan_csv(tmp_path / "a.csv", target="ill")
    model = sx.LogisticRegression().fit(source)
    assert frame["ill"].isna().any() and len(model.predict(source)) == len(frame)
    np.testing.assert_array_equal(model.predict(source), model.predict(scan_csv(tmp_path / "a.csv")))


def test_a_model_fitted_anew_to_numbers_forgets_the_table(tmp_path):
    people(100).to_csv(tmp_path / "a.csv", index=False)
    model = sx.LogisticRegression().fit(scan_csv(tmp_path / "a.csv", target="ill"))
    model.fit(np.arange(6.0).reshape(3, 2), [0, 1, 1])
    with pytest.raises(ValueError, match="columns without names"):
        model.predict(scan_csv(tmp_path / "a.csv"))


def test_a_model_of_numbers_picks_its_columns_by_name(tmp_path):
    frame = people(200)[["children", "height", "insured", "code"]].assign(y=np.arange(200) % 2)
    pq.write_table(pa.Table.from_pandas(frame[["height", "children", "y"]]), tmp_path / "a.parquet")
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "b.parquet")
    model = sx.LogisticRegression().fit(sx.scan_parquet(tmp_path / "a.parquet", target="y"))
    expected = model.predict_proba(sx.scan_parquet(tmp_path / "a.parquet", features=["height", "children"]))
    np.testing.assert_array_equal(model.predict_proba(sx.scan_parquet(tmp_path / "b.parquet")), expected)


def test_a_source_scores_by_its_own_labels_and_prints_its_columns(tmp_path):
    frame = people(700)
    frame.to_csv(tmp_path / "a.csv", index=False)
    source = scan_csv(tmp_path / "a.csv", target="ill")
    assert "city: string" in repr(source)
    pipeline = make_pipeline(sx.LogisticRegression()).fit(source)
    assert "city: categorical. It holds text: 3 categories" in repr(source)
    labelled = frame["ill"].notna()
    expected = (pipeline.predict(source)[labelled] == frame["ill"][labelled]).mean()
    assert pipeline.score(source) == sx.LogisticRegression().fit(source).score(source) == pytest.approx(expected)
    numbers = frame.loc[labelled, ["height", "children", "ill"]].assign(w=np.arange(labelled.sum()) % 3)
    numbers.to_parquet(tmp_path / "n.parquet")
    source = scan_parquet(tmp_path / "n.parquet", target="ill", weight="w")
    assert "height: double" in repr(source)
    model = sx.LogisticRegression().fit(source)
    given = model.score(numbers[["height", "children"]], numbers["ill"], numbers["w"])
    assert model.score(source) == pytest.approx(given)
    with pytest.raises(ValueError, match="requires y"):
        model.score(numbers[["height", "children"]])


def test_values_are_predicted_from_mixed_columns(tmp_path):
    frame = people(400)[["age", "city", "smoker", "height"]]
    frame.to_csv(tmp_path / "a.csv", index=False)
    source = scan_csv(tmp_path / "a.csv", target="height")
    model = sx.Ridge().fit(source)
    inside = sx.Ridge().fit(np.concatenate([block.X for block in source.blocks()]), frame["height"])
    np.testing.assert_allclose(model.coef_, inside.coef_, rtol=1e-9)
    assert model.score(source) == pytest.approx(
        inside.score(np.concatenate([b.X for b in source.blocks()]), frame["height"])
    )
    with pytest.raises(ValueError, match="looks like a quantity"):
        sx.LogisticRegression().fit(source)


def test_models_of_numbers_and_of_tables_read_each_others_files(tmp_path):
    frame = people(200)[["height", "children", "city", "ill"]].dropna()
    frame.to_parquet(tmp_path / "mixed.parquet")
    frame.drop(columns="city").to_parquet(tmp_path / "numbers.parquet")
    of_numbers = sx.LogisticRegression().fit(scan_parquet(tmp_path / "numbers.parquet", target="ill"))
    expected = of_numbers.predict_proba(scan_parquet(tmp_path / "numbers.parquet"))
    np.testing.assert_array_equal(of_numbers.predict_proba(scan_parquet(tmp_path / "mixed.parquet")), expected)
    encoded = sx.LogisticRegression().fit(scan_parquet(tmp_path / "numbers.parquet", target="ill", encode=True))
    expected = encoded.predict_proba(scan_parquet(tmp_path / "numbers.parquet", encode=True))
    np.testing.assert_array_equal(encoded.predict_proba(scan_parquet(tmp_path / "numbers.parquet")), expected)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_mixed_naive_bayes_of_files_is_that_of_the_frame(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(table_files, "ROWS", 100)
    frame = people(700).assign(bit=np.arange(700) // 3 % 2, w=np.arange(700) % 3)
    frame["smoker"] = frame["smoker"].map({"yes": "true", "no": "false"})
    path = tmp_path / f"a.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    scan = scan_csv if kind == "csv" else scan_parquet
    streamed = sx.MixedNB(families={"children": "poisson"}).fit(scan(path, target="ill", weight="w"))
    known = frame["ill"].notna()
    rows = frame[list(streamed.feature_names_in_)].assign(smoker=frame["smoker"].map({"true": True, "false": False}))
    inside = sx.MixedNB(families={"children": "poisson"}).fit(rows[known], frame["ill"][known], frame["w"][known])
    assert streamed.families_ == inside.families_ and streamed.families_["bit"] == "bernoulli"
    expected = inside.predict_proba(rows)
    source = scan(path, target="ill", weight="w")
    for model in (streamed, inside):  # a model of a table in memory reads files too
        np.testing.assert_allclose(model.predict_proba(scan(path)), expected, rtol=1e-9)
        np.testing.assert_allclose(model.feature_log_odds(scan(path)), inside.feature_log_odds(rows), rtol=1e-9)
    assert streamed.score(source) == pytest.approx(inside.score(rows[known], frame["ill"][known], frame["w"][known]))
    sx.save_model(streamed, tmp_path / "model.safetensors")
    np.testing.assert_allclose(sx.load_model(tmp_path / "model.safetensors").predict_proba(scan(path)), expected)
    halves = [frame[:300], frame[300:]]
    for at, half in enumerate(halves):
        half.to_parquet(tmp_path / f"half{at}.parquet")
    one, two = (
        sx.MixedNB(families={"children": "poisson"}).fit(
            scan_parquet(tmp_path / f"half{at}.parquet", target="ill", weight="w", features=list(rows.columns))
        )
        for at in (0, 1)
    )
    np.testing.assert_allclose(one.merge(two).predict_proba(rows), expected, rtol=1e-9)


def test_mixed_naive_bayes_reads_files_of_numbers_too(tmp_path):
    frame = people(300)[["age", "height", "insured", "ill"]].dropna(subset="ill")
    frame.to_parquet(tmp_path / "a.parquet")
    model = sx.MixedNB().fit(scan_parquet(tmp_path / "a.parquet", target="ill"))  # the holes of age are marginalised
    inside = sx.MixedNB().fit(frame.drop(columns="ill"), frame["ill"])
    assert model.families_ == inside.families_
    np.testing.assert_allclose(
        model.predict_proba(scan_parquet(tmp_path / "a.parquet")), inside.predict_proba(frame.drop(columns="ill"))
    )
    with pytest.raises(TypeError, match="reads a table"):
        sx.MixedNB().fit(sx.as_source(np.eye(3), [0, 1, 1]))


def test_models_of_tables_merge_where_their_encodings_agree(tmp_path):
    frame = people(300)[["age", "city", "ill"]]
    for name, part in {"a": frame[:150], "b": frame[150:]}.items():
        part.to_parquet(tmp_path / f"{name}.parquet")
    a, b = (scan_parquet(tmp_path / f"{name}.parquet", target="ill") for name in "ab")
    one = sx.LinearDiscriminantAnalysis().fit(a)
    with pytest.raises(ValueError, match="encoded differently"):
        one.merge(sx.LinearDiscriminantAnalysis().fit(b))
    both = sx.LinearDiscriminantAnalysis().partial_fit(a).partial_fit(b)
    rows = [
        np.concatenate([block.X for block in part.read_as(one._encoding, None).labelled().blocks()]) for part in (a, b)
    ]
    expected = sx.LinearDiscriminantAnalysis().fit(np.concatenate(rows), frame["ill"].dropna())
    np.testing.assert_allclose(both.coef_, expected.coef_, rtol=1e-9)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 120), max_size=3), group=st.integers(1, 50), rows=st.integers(1, 60))
def test_any_split_into_files_and_row_groups_is_the_whole(tmp_path, monkeypatch, cuts, group, rows):
    monkeypatch.setattr(table_files, "ROWS", rows)
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    table = pa.Table.from_pandas(people(120).drop(columns="note"), preserve_index=False)
    pq.write_table(table, folder / "whole.parquet")
    edges = [0, *sorted(cuts), 120]
    (folder / "parts").mkdir()
    for i, (start, stop) in enumerate(itertools.pairwise(edges)):
        pq.write_table(table.slice(start, stop - start), folder / "parts" / f"{i}.parquet", row_group_size=group)
    whole, parts = (scan_parquet(folder / name, target="ill") for name in ("whole.parquet", "parts"))
    assert whole.encoding.schema == parts.encoding.schema
    for model in (sx.LinearDiscriminantAnalysis(), sx.LogisticRegression(tol=1e-10)):
        one, other = clone(model).fit(whole), clone(model).fit(parts)
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-7)


def test_what_goes_wrong_is_named(tmp_path):
    frame = people(100)
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=r"no column 'agee'.*'age'"):
        scan_csv(tmp_path / "a.csv", target="ill", features=["agee"])
    with pytest.raises(ValueError, match="without a target"):
        sx.LogisticRegression().fit(scan_csv(tmp_path / "a.csv"))
    source = scan_csv(tmp_path / "a.csv", target="ill")
    people(101).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=r"a\.csv: the file has changed"):
        sx.LogisticRegression().fit(source)
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": ["one", "two"], "y": ["a", "b"]}), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet: column 'x' is text here and numeric in the files before"):
        sx.LogisticRegression().fit(scan_parquet(tmp_path, target="y", encode=True))


numbers = st.lists(
    st.one_of(st.just(np.nan), st.sampled_from([-999.0, 999.0]), st.integers(-50, 50).map(float), st.floats(-9, 9)),
    max_size=30,
)


@settings(deadline=None)
@given(numbers, st.integers(0, 30))
def test_facts_of_numbers_merge(values, cut):
    x = np.array(values, dtype=float)
    assert_same(NumberFacts.of(x[:cut]).merge(NumberFacts.of(x[cut:])), NumberFacts.of(x))


def assert_same(merged, whole):
    for name, value in asdict(whole).items():
        np.testing.assert_equal(getattr(merged, name), value, err_msg=name)


@settings(deadline=None)
@given(st.lists(st.integers(-1, 3), max_size=30), st.integers(0, 30))
def test_facts_of_texts_merge(places, cut):
    levels, at = ["a", "b", "c", "d"], np.array(places, dtype=np.intp)
    one, two, whole = (TextFacts.of(levels, part) for part in (at[:cut], at[cut:], at))
    assert one.merge(two) == whole


def sketched(x: np.ndarray, ends: list[int], shared: Reached | None = None) -> QuantileSketch:
    """The sketch of a column that is cut at these rows, merged in pairs."""
    starts = [0, *ends]
    parts = [
        QuantileSketch.of(part, Marks(hashed_places(start, len(part))), shared)
        for start, part in zip(starts, np.split(x, ends), strict=True)
    ]
    while len(parts) > 1:
        parts = [
            first.merge(*more) if more else first
            for first, *more in (parts[i : i + 2] for i in range(0, len(parts), 2))
        ]
    return parts[0]


@pytest.mark.parametrize("n", [1, 5, SIZE - 1, SIZE, 300_000])
@pytest.mark.parametrize("sorted_rows", [False, True])
def test_quantiles_are_near_and_exact_while_there_are_few(n, sorted_rows):
    x = np.random.default_rng(0).standard_exponential(n)
    x = np.sort(x) if sorted_rows else x
    sketch = sketched(x, list(range(7_001, n, 7_001)), Reached())
    if n <= SIZE:
        assert sketch.median() == np.median(x)
    rank = np.searchsorted(np.sort(x), sketch.median())
    assert abs(rank - n / 2) <= 1 + 4 * n / (2 * np.sqrt(SIZE / 2))  # four deviations of the rank of a sample's middle


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(0, 150_000), max_size=12),
    st.sampled_from([0.0, 0.3, 0.99]),
    st.booleans(),
)
def test_quantiles_do_not_depend_on_the_cut(seed, ends, holes, sorted_rows):
    rng = np.random.default_rng(seed)
    x = rng.standard_exponential(150_000)
    x = np.sort(x) if sorted_rows else x
    x[rng.random(len(x)) < holes] = np.nan
    whole = sketched(x, [])
    for shared in (None, Reached()):
        found = sketched(x, sorted(ends), shared)
        assert found.median() == whole.median()
        assert pickle.loads(pickle.dumps(found)).median() == whole.median()
    if (~np.isnan(x)).sum() <= SIZE:
        assert whole.median() == np.nanmedian(x)


@pytest.mark.parametrize("most_texts", [20_000, 50])  # as few texts as may be categories, and more of them
def test_a_word_among_numbers_is_said_by_a_fit(tmp_path, monkeypatch, most_texts):
    monkeypatch.setattr(column_scan, "MOST_TEXTS", most_texts)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=600), "b": rng.normal(size=600), "city": rng.choice(["x", "y"], 600)})
    table["ill"] = np.where(table["age"] + rng.logistic(size=600) > 0, "yes", "no")
    table = table.astype({"age": object})
    table.loc[400, "age"] = "oops"
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(UserWarning, match="'age' is read as text, although most of it is numbers.*'oops'"):
        sx.LogisticRegression().fit(scan_csv(tmp_path / "t.csv", target="ill"))
    table.drop(index=400).to_csv(tmp_path / "t.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = sx.LogisticRegression().fit(scan_csv(tmp_path / "t.csv", target="ill"))
    assert "age" in model.feature_names_in_


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("city", ["city,", ""])  # a table of mixed columns, or of numbers
def test_files_without_rows_say_so(tmp_path, weight, city):
    (tmp_path / "t.csv").write_text(f"age,{city}w,ill\n")
    with pytest.raises(ValueError, match=r"t\.csv: there are no rows"):
        sx.LogisticRegression().fit(scan_csv(tmp_path / "t.csv", target="ill", weight=weight))
