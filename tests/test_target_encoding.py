"""Columns of many categories: encoded by the target, never by a row's own label."""

import json
import sqlite3

import duckdb
import numpy as np
import onnxruntime
import pandas as pd
import pytest
from scipy.special import softmax
from typer.testing import CliRunner

from separatrix import LogisticRegression, compare, load_model, save_model, to_json, to_onnx, to_sql
from separatrix.cli.main import app
from separatrix.comparison.table_model import TableModel
from separatrix.tables import TableEncoder, TableSchema
from separatrix.tables.coded.coded_rows import RowCoding
from separatrix.tables.encoding.target_encoding import crossed, crossing_folds, encoded, level_scores
from separatrix.tables.rows import CodedText


def _table(rng, n=1500, levels=120, classes=2, effect=1.5):
    city = rng.integers(levels, size=n)
    pull = rng.normal(size=(levels, classes)) * effect
    noise = rng.gumbel(size=(n, classes))
    y = (pull[city] + noise).argmax(axis=1)
    return pd.DataFrame({"city": [f"c{c}" for c in city], "x": rng.normal(size=n), "y": [f"k{k}" for k in y]})


@pytest.mark.parametrize("classes", [2, 3])
def test_no_row_is_encoded_by_its_own_label(classes):
    rng = np.random.default_rng(1)
    places, codes = rng.integers(40, size=400), rng.integers(classes, size=400)
    text = CodedText([f"a{i}" for i in range(40)], places)
    before, folds = crossed(text, codes, classes), crossing_folds(codes)
    assert before.shape == (400, classes - 1)
    for fold in range(5):
        flipped = codes.copy()
        flipped[folds == fold] = rng.permutation(codes[folds == fold])  # the shape of the folds stays
        own = np.flatnonzero(folds == fold)
        inside = folds != fold
        scores = level_scores(CodedText(text.levels, places[inside]), flipped[inside], classes)
        np.testing.assert_array_equal(encoded(CodedText(text.levels, places[own]), scores, classes), before[own])


def test_no_row_is_encoded_by_its_group():
    groups = np.repeat(np.arange(50), 4)
    folds = crossing_folds(np.tile([0, 1], 100), groups)
    assert all(len(np.unique(folds[groups == g])) == 1 for g in range(50))
    assert len(np.unique(folds)) == 5


def test_a_level_is_believed_as_far_as_levels_differ():
    rng = np.random.default_rng(2)
    text = CodedText([f"a{i}" for i in range(100)], np.repeat(np.arange(100), 20))
    alike = level_scores(text, rng.integers(2, size=2000), 2)
    apart = level_scores(text, (rng.random(2000) < np.repeat(rng.choice([0.05, 0.95], 100), 20)).astype(int), 2)
    assert max(abs(t[0]) for t in alike.values()) < 0.2
    assert np.median([abs(t[0]) for t in apart.values()]) > 2.0  # log-odds of 0.95 are 2.9


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_are_repetitions(classes):
    rng = np.random.default_rng(3)
    places, codes, weights = rng.integers(9, size=80), rng.integers(classes, size=80), rng.integers(1, 4, size=80)
    levels = [f"a{i}" for i in range(9)]
    weighted = level_scores(CodedText(levels, places), codes, classes, weights.astype(float))
    repeated = level_scores(CodedText(levels, np.repeat(places, weights)), np.repeat(codes, weights), classes)
    for level in repeated:
        np.testing.assert_allclose(weighted[level], repeated[level], atol=1e-12)


def test_noise_in_many_levels_teaches_nothing():
    table = _table(np.random.default_rng(4), effect=0.0)
    found = compare(table, "y", families=["baseline", "logistic"])
    scores = {one.family: one.scores["log_loss"].mean for one in found.candidates}
    assert scores["logistic"] < scores["baseline"] + 0.01


@pytest.mark.parametrize("classes", [2, 3])
def test_a_comparison_gains_by_it_and_its_model_is_kept(tmp_path, classes):
    table = _table(np.random.default_rng(5), classes=classes)
    given = {"families": ["logistic"]}
    by_target = compare(table, "y", **given)
    by_indicators = compare(table, "y", types={"city": "categorical"}, **given)
    assert by_target.candidates[0].scores["log_loss"].mean < by_indicators.candidates[0].scores["log_loss"].mean - 0.02
    assert any("target encoding" in finding for finding in by_target.schema.findings)
    assert len(by_target.encoder.features_) == classes - 1 + 1
    save_model(by_target.best, tmp_path / "model.sep")
    again, new = load_model(tmp_path / "model.sep"), table.head(20).copy()
    new.loc[0, "city"], new.loc[1, "city"] = "never seen", None
    proba = by_target.best.predict_proba(new)
    np.testing.assert_array_equal(again.predict_proba(new), proba)
    unseen = pd.concat([new.iloc[:1], new.iloc[:1]]).assign(city=["another", None])
    assert np.ptp(by_target.best.predict_proba(unseen), axis=0).max() == 0.0  # both are the prior


def test_a_model_learns_from_crossed_rows_and_standardises_them():
    table = _table(np.random.default_rng(6))
    schema, rows, codes = TableSchema.infer_and_read(table, "y")
    encoder = TableEncoder(schema)
    X = encoder.fit_transform(rows, codes)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(X.std(axis=0), 1.0, atol=1e-9)
    model = TableModel.fit(table, "y", LogisticRegression(), family="logistic")
    np.testing.assert_allclose(model.estimator.coef_, LogisticRegression().fit(X, codes).coef_, atol=1e-6)


def test_it_can_be_declared():
    table = _table(np.random.default_rng(7), levels=12)
    found = compare(table, "y", families=["lda"], types={"city": "target"})
    assert found.encoder.feature_names_ == ["city by target", "x"]


def test_rows_outside_a_fold_have_no_say_in_it():
    rng, table = np.random.default_rng(8), _table(np.random.default_rng(8), n=400)
    found = compare(table, "y", families=["logistic"])
    model, outside = found.recommended.fold_models[0], found.folds == 0
    changed = found.codes.copy()
    changed[outside] = rng.permutation(changed[outside])
    inside = found.rows.take(np.flatnonzero(~outside))
    again = TableEncoder(found.schema).fit(inside, changed[~outside])
    assert again.targets_ == model.encoder.targets_
    assert set(again.targets_["city"]) == set(inside.columns["city"].tolist())


@pytest.mark.parametrize("classes", [2, 3])
def test_other_languages_look_categories_up(classes):
    table = _table(np.random.default_rng(11), n=600, classes=classes)
    table.loc[5, "city"] = None
    best = compare(table, "y", families=["logistic"]).best
    rows = table.drop(columns="y").head(60).copy()
    rows.loc[0, "city"], rows.loc[1, "city"] = "never 'seen'", " c3 "
    expected = best.predict_proba(rows)
    names = [f"probability_{label}" for label in best.classes_]
    for dialect in ("duckdb", "sqlite"):
        query = to_sql(best, table="rows", dialect=dialect, row_number=True)
        if dialect == "duckdb":
            found = duckdb.sql(query).df()
        else:
            with sqlite3.connect(":memory:") as base:
                rows.to_sql("rows", base, index=False)
                found = pd.read_sql(query, base)
        np.testing.assert_allclose(found.sort_values("row_number")[names], expected, rtol=1e-12)
    run = onnxruntime.InferenceSession(to_onnx(best).SerializeToString(), providers=["CPUExecutionProvider"])
    fed = {"city": rows[["city"]].fillna("").to_numpy(object).copy(), "x": rows[["x"]].to_numpy()}
    fed["city"][1] = "c3"  # a graph takes texts as they are
    np.testing.assert_allclose(run.run(["probabilities"], fed)[0], expected, rtol=1e-12)
    document = json.loads(to_json(best))
    looked_up = [feature for feature in document["features"] if feature["what"] == "target"]
    assert len(looked_up) == classes - 1 and "values" not in document["features"][-1]
    city = [None if pd.isna(text) else text.strip() for text in rows["city"]]
    z = np.column_stack(
        [
            ([feature["values"].get(text, 0.0) for text in city] - np.float64(feature["centre"])) / feature["scale"]
            for feature in looked_up
        ]
        + [(rows["x"] - document["features"][-1]["centre"]) / document["features"][-1]["scale"]]
    )
    scores = (z - document["rule"]["centre"]) @ np.transpose(document["rule"]["weights"]) + document["rule"][
        "constants"
    ]
    scores = np.column_stack([np.zeros(len(z)), scores]) if classes == 2 else scores
    np.testing.assert_allclose(softmax(scores, axis=1), expected, rtol=1e-12)


def test_what_cannot_read_it_says_so():
    found = compare(_table(np.random.default_rng(9)), "y", families=["logistic"])
    with pytest.raises(ValueError, match="rows are held"):
        RowCoding(found.encoder)


def test_the_commands_read_it(tmp_path):
    table = _table(np.random.default_rng(10), n=600)
    table.to_csv(tmp_path / "t.csv", index=False)
    out = ["--out", str(tmp_path)]
    asked = ["compare", str(tmp_path / "t.csv"), "--target", "y", "--families", "logistic", *out]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "city by target" in page and "in the log-odds of its category" in page and "target encoding" in page
    result = CliRunner().invoke(
        app, ["predict", str(tmp_path / "model.safetensors"), str(tmp_path / "t.csv"), "--out", str(tmp_path / "p.csv")]
    )
    assert result.exit_code == 0, result.output
    assert len(pd.read_csv(tmp_path / "p.csv")) == 600


def test_columns_that_the_classes_encode_are_not_tested_for_association():
    table = _table(np.random.default_rng(0))
    assert "associated" not in compare(table, "y", families=["baseline", "logistic"]).tie_rule
