"""Columns of free text: hashed words, weighed by what they say of the classes, never by a row's own label."""

import json
import re
import time
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from typer.testing import CliRunner

from separatrix import LogisticRegression, compare, load_model, save_model, to_json, to_onnx, to_sql
from separatrix.cli.main import app
from separatrix.comparison.table_model import TableModel, learn_encoder
from separatrix.tables import TableEncoder, TableSchema
from separatrix.tables.coded.coded_rows import RowCoding
from separatrix.tables.encoding import text_scores
from separatrix.tables.encoding.target_encoding import crossing_folds
from separatrix.tables.encoding.text_scores import _matrix, bucket_of, is_prose, learn_text
from separatrix.tables.rows import CodedText


def _table(rng, n=300, classes=2, effect=1.5, length=12, words=300):
    y = rng.integers(classes, size=n)
    usual = 1.0 / np.arange(1, words + 1)
    pull = np.exp(effect * rng.normal(size=(classes, words)) * (rng.random(words) < 0.3))
    texts = []
    for k in y:
        share = usual * pull[k]
        texts.append(" ".join(f"word{i}" for i in rng.choice(words, size=length, p=share / share.sum())))
    return pd.DataFrame({"review": texts, "x": rng.normal(size=n), "y": [f"k{k}" for k in y]})


def _encoding(table, **more):
    schema, rows, codes = TableSchema.infer_and_read(table, "y")
    return schema, rows, codes, *learn_encoder(schema, rows, codes, **more)


def _regression(X, codes, weights, Cs):
    from separatrix import logistic_path

    path = logistic_path(X, codes, weights, Cs=Cs, tol=1e-9, max_iter=500)
    return path.coefs, path.intercepts


def test_words_are_weighed_as_in_scikit_learn():
    table = _table(np.random.default_rng(0), n=30, words=9)
    text = CodedText.of(table["review"].to_numpy(object))
    scores, _ = learn_text(text, (table["y"] == "k1").to_numpy(int), 2, _regression)
    reference = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    expected = reference.fit_transform(table["review"])
    names = reference.get_feature_names_out()
    place = {int(bucket): j for j, bucket in enumerate(scores.buckets)}
    at = [place[bucket_of(name)] for name in names]
    every = TfidfVectorizer(ngram_range=(1, 2)).fit(table["review"]).get_feature_names_out()
    assert len({bucket_of(word) for word in every}) == len(every)  # no two words here share a bucket
    assert sorted(at) == list(range(len(scores.buckets)))
    from separatrix.tables.encoding.text_scores import _counts

    found = _matrix(_counts(text), scores.buckets, scores.idf)[text.places][:, at]
    np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_no_row_is_scored_by_its_own_label(classes):
    rng = np.random.default_rng(1)
    table = _table(rng, n=200, classes=classes)
    text, codes = CodedText.of(table["review"].to_numpy(object)), table["y"].str[1:].astype(int).to_numpy()
    alone = np.arange(200)  # so that the folds do not depend on the labels
    folds = crossing_folds(codes, alone)

    def regression(X, y, weights, Cs):  # one C for all, which labels have no say in
        return _regression(X, y, weights, np.ones(len(Cs)) + 1e-9 * np.arange(len(Cs)))

    before = learn_text(text, codes, classes, regression, groups=alone)[1]
    assert before.shape == (200, classes - 1) and np.ptp(before, axis=0).min() > 0.1
    for fold in range(5):
        own = np.flatnonzero(folds == fold)
        changed = codes.copy()
        changed[own] = rng.permutation(codes[own])
        after = learn_text(text, changed, classes, regression, groups=alone)[1]
        np.testing.assert_allclose(after[own], before[own], atol=1e-6)
        assert np.abs(after - before).max() > 1e-3  # the others have noticed


def test_no_row_is_scored_by_its_group():
    rng = np.random.default_rng(2)
    secret = [
        f"marker{g} and {' '.join(f'word{i}' for i in rng.integers(50, size=6))}" for g in np.repeat(np.arange(60), 4)
    ]
    codes = np.repeat(rng.integers(2, size=60), 4)
    text, groups = CodedText.of(np.array(secret, dtype=object)), np.repeat(np.arange(60), 4)
    leaking = learn_text(text, codes, 2, _regression)[1][:, 0]
    kept = learn_text(text, codes, 2, _regression, groups=groups)[1][:, 0]
    assert ((leaking > 0) == codes).mean() > 0.9  # rows of a group give each other away
    assert ((kept > 0) == codes).mean() < 0.65


def test_weights_are_repetitions():
    rng = np.random.default_rng(3)
    table = _table(rng, n=60)
    weights = rng.integers(1, 4, size=60)
    text, codes = CodedText.of(table["review"].to_numpy(object)), (table["y"] == "k1").to_numpy(int)
    scores, _ = learn_text(text, codes, 2, _regression, weights.astype(float))
    repeated = CodedText(text.levels, np.repeat(text.places, weights))
    again, _ = learn_text(repeated, np.repeat(codes, weights), 2, _regression)
    np.testing.assert_array_equal(scores.buckets, again.buckets)
    np.testing.assert_allclose(scores.idf, again.idf, rtol=1e-12)


def test_the_order_of_the_different_texts_does_not_matter():
    table = _table(np.random.default_rng(4), n=100)
    codes = (table["y"] == "k1").to_numpy(int)
    text = CodedText.of(table["review"].to_numpy(object))
    order = np.random.default_rng(5).permutation(len(text.levels))
    back = np.argsort(order)
    other = CodedText([text.levels[i] for i in order], back[text.places])
    one, two = learn_text(text, codes, 2, _regression), learn_text(other, codes, 2, _regression)
    np.testing.assert_allclose(one[1], two[1], atol=1e-6)
    assert {word for word, _ in one[0].words} == {word for word, _ in two[0].words}


def test_noise_in_words_teaches_nothing():
    found = compare(_table(np.random.default_rng(6), effect=0.0), "y", families=["baseline", "logistic"])
    scores = {one.family: one.scores["log_loss"].mean for one in found.candidates}
    assert scores["logistic"] < scores["baseline"] + 0.02


@pytest.mark.parametrize("classes", [2, 3])
def test_a_comparison_gains_by_words_and_its_model_is_kept(tmp_path, classes):
    table = _table(np.random.default_rng(7), classes=classes)
    table.loc[3, "review"] = None
    families = ["baseline", "naive-bayes", "lda", "logistic", "qda"]
    found = compare(table, "y", families=families)
    by = {one.family: one for one in found.candidates}
    assert by["logistic"].scores["accuracy"].mean > by["baseline"].scores["accuracy"].mean + 0.15
    assert set(by) == set(families)
    assert any("It does without 'review'" in note for note in by["naive-bayes"].notes)
    assert any("hashed tf-idf" in finding for finding in found.schema.findings)
    assert [f.what for f in found.encoder.features_ if f.column == "review"].count("text") == classes - 1
    new = table.head(30).copy()
    new.loc[0, "review"], new.loc[1, "review"], new.loc[2, "review"] = "unheard of things only", None, ""
    for one in (by["logistic"], by["naive-bayes"]):
        save_model(one.model, tmp_path / "model.sep")
        again = load_model(tmp_path / "model.sep")
        np.testing.assert_array_equal(again.predict_proba(new), one.model.predict_proba(new))
    held = json.dumps(by["logistic"].model.training)
    assert table["review"][0] not in held and not by["logistic"].model.schema.used[0].categories  # no text is kept
    z = by["logistic"].model.encode(new)[:3, 0]
    assert np.ptp(z) == 0.0  # no word is known in any of these


def test_a_model_learns_from_crossed_scores():
    _, rows, codes, encoder, X = _encoding(_table(np.random.default_rng(8)))
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(X.std(axis=0), 1.0, atol=1e-9)
    told = encoder.transform(rows)
    gap = X[codes == 1, 0].mean() - X[codes == 0, 0].mean()
    assert told[codes == 1, 0].mean() - told[codes == 0, 0].mean() > gap  # what is known of a row's own label is more
    model = TableModel.fit(_table(np.random.default_rng(8)), "y", LogisticRegression(), family="logistic")
    np.testing.assert_allclose(model.estimator.coef_, LogisticRegression().fit(X, codes).coef_, atol=1e-6)


def test_rows_outside_a_fold_have_no_say_in_it():
    found = compare(_table(np.random.default_rng(9), n=200), "y", families=["logistic"])
    model, outside = found.recommended.fold_models[0], found.folds == 0
    inside = found.rows.take(np.flatnonzero(~outside))
    fresh = CodedText.of(np.asarray(inside.columns["review"]))  # which has never heard of the others
    columns = {**inside.columns, "review": fresh}
    again, _ = learn_encoder(found.schema, type(inside)(columns, inside.booleans, len(inside)), found.codes[~outside])
    mine, its = again.texts_["review"], model.encoder.texts_["review"]
    np.testing.assert_array_equal(mine.buckets, its.buckets)
    np.testing.assert_allclose(mine.weights, its.weights, atol=1e-6)


def test_what_is_prose():
    rng = np.random.default_rng(10)
    assert is_prose(_table(rng, n=60)["review"].tolist())
    assert not is_prose([f"customer {i}" for i in range(100)])
    assert not is_prose([" ".join(f"{rng.integers(10**9):x}" for _ in range(8)) for _ in range(100)])  # never met again
    assert not is_prose([])
    schema = TableSchema.infer(
        pd.DataFrame({"who": [f"customer {i}" for i in range(80)], "x": range(80, 0, -1), "y": [0, 1] * 40}), "y"
    )
    assert "--type COLUMN=text" in schema.columns[0].reason


def test_it_can_be_declared():
    table = pd.DataFrame({"t": ["good", "bad", "good thing", "bad thing"] * 10, "y": [1, 0, 1, 0] * 10})
    found = compare(table, "y", families=["logistic"], types={"t": "text"})
    assert found.encoder.feature_names_ == ["t by words"] and found.recommended.scores["accuracy"].mean == 1.0
    words = dict(found.encoder.texts_["t"].words)
    assert words["good"][0] > 0.0 > words["bad"][0] and abs(words["thing"][0]) < 0.1 * words["good"][0]


def test_text_alone_without_a_word_that_meets_again_is_refused_in_a_sentence():
    table = pd.DataFrame({"t": [f"a{i:04d}" for i in range(60)], "x": np.arange(60)[::-1], "y": [0, 1] * 30})
    found = compare(table, "y", families=["baseline", "logistic", "naive-bayes"], types={"t": "text"})
    assert {one.family for one in found.candidates} == {"baseline", "logistic", "naive-bayes"}
    found = compare(table[["t", "y"]], "y", families=["baseline", "naive-bayes"], types={"t": "text"})
    assert "every column is free text" in found.failures["naive-bayes"]


def test_json_has_all_that_another_language_needs():
    table = _table(np.random.default_rng(11))
    best = compare(table, "y", families=["logistic"]).best
    rows = table.drop(columns="y").head(40)
    document = json.loads(to_json(best))
    feature = next(one for one in document["features"] if one["what"] == "text")
    known = {bucket: (idf, weight) for bucket, idf, weight in feature["words"]}
    values = []
    for text in rows["review"]:
        words = re.findall(r"\b\w\w+\b", text.lower())
        counts = {}
        for word in [*words, *(f"{a} {b}" for a, b in pairwise(words))]:
            bucket = abs(_murmur(word.encode())) % 262144
            counts[bucket] = counts.get(bucket, 0) + 1
        x = {b: (1 + np.log(n)) * known[b][0] for b, n in counts.items() if b in known}
        length = np.sqrt(sum(value**2 for value in x.values()))
        values.append(sum(known[b][1] * value for b, value in x.items()) / length if x else 0.0)
    other = document["features"][1]
    z = np.column_stack(
        [
            (np.array(values) - feature["centre"]) / feature["scale"],
            (rows["x"] - other["centre"]) / other["scale"],
        ]
    )
    score = (z - document["rule"]["centre"]) @ document["rule"]["weights"][0] + document["rule"]["constants"][0]
    np.testing.assert_allclose(expit(score), best.predict_proba(rows)[:, 1], rtol=1e-11)
    assert any("MurmurHash3" in sentence for sentence in document["formula"])


def _murmur(data):
    """MurmurHash3_x86_32, seed 0, by its public description."""
    h = 0
    for start in range(0, len(data) - len(data) % 4, 4):
        k = int.from_bytes(data[start : start + 4], "little") * 0xCC9E2D51 % 2**32
        k = (k << 15 | k >> 17) % 2**32 * 0x1B873593 % 2**32
        h ^= k
        h = ((h << 13 | h >> 19) % 2**32 * 5 + 0xE6546B64) % 2**32
    tail = data[len(data) - len(data) % 4 :]
    if tail:
        k = int.from_bytes(tail, "little") * 0xCC9E2D51 % 2**32
        h ^= (k << 15 | k >> 17) % 2**32 * 0x1B873593 % 2**32
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B % 2**32
    h = (h ^ h >> 13) * 0xC2B2AE35 % 2**32
    h ^= h >> 16
    return h - 2**32 if h >= 2**31 else h


@pytest.mark.parametrize("write", [to_sql, to_onnx])
def test_what_has_no_words_refuses(write):
    best = compare(_table(np.random.default_rng(12), n=120), "y", families=["logistic"]).best
    with pytest.raises(ValueError, match="free text whose words it reads"):
        write(best)


def test_streams_do_without():
    _, _, _, encoder, _ = _encoding(_table(np.random.default_rng(13), n=120))
    with pytest.raises(ValueError, match="rows are held"):
        RowCoding(encoder)
    schema, rows, codes = TableSchema.infer_and_read(_table(np.random.default_rng(13), n=120), "y")
    assert TableEncoder(schema).fit(rows, codes).feature_names_ == ["x"]  # nothing to learn words with


def test_the_commands_read_it(tmp_path):
    table = _table(np.random.default_rng(14))
    table.to_csv(tmp_path / "t.csv", index=False)
    run = CliRunner().invoke
    asked = ["compare", str(tmp_path / "t.csv"), "--target", "y", "--families", "logistic,lda", "--out", str(tmp_path)]
    result = run(app, asked)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "review by words" in page and "a text of each alone" in page
    model = str(tmp_path / "model.safetensors")
    for command in (
        ["predict", model, str(tmp_path / "t.csv"), "--out", str(tmp_path / "p.csv")],
        ["evaluate", model, str(tmp_path / "t.csv")],
    ):
        result = run(app, command)
        assert result.exit_code == 0 and "no category" not in result.output, result.output
    assert len(pd.read_csv(tmp_path / "p.csv")) == 300
    result = run(app, ["explain", model, str(tmp_path / "t.csv"), "--row", "2"])
    assert result.exit_code == 0 and "review" in result.output
    result = run(app, ["export", model, "--to", "sql", "--out", str(tmp_path / "m.sql")])
    assert result.exit_code == 1 and "free text" in result.output
    result = run(
        app,
        [
            "fit",
            str(tmp_path / "t.csv"),
            "--target",
            "y",
            "--model",
            "naive-bayes",
            "--out",
            str(tmp_path / "n.safetensors"),
        ],
    )
    assert result.exit_code == 0, result.output


def test_fifty_classes_learn_all_rows_without_a_warning():
    table = _table(np.random.default_rng(15), n=1000, classes=50, words=1500, length=25)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema, rows, codes, encoder, X = _encoding(table)
    told = encoder.texts_["review"].of(rows.columns["review"])
    full = np.concatenate([np.zeros((len(told), 1)), told], axis=1)
    assert (full.argmax(axis=1) == codes).mean() > 0.5  # of a rule that has seen them; of one that was given up 0.02
    assert X.shape == (1000, 50) and schema.prose == ("review",)


@pytest.mark.parametrize("slow_from", [0, 3])
def test_words_that_take_too_long_are_left_out_of_every_fold_and_named(monkeypatch, slow_from):
    table = _table(np.random.default_rng(4), n=120)
    learn, calls = text_scores.learn_text, []

    def slow(*arguments, **more):
        calls.append(1)
        if len(calls) > slow_from:
            time.sleep(3.0)
        return learn(*arguments, **more)

    monkeypatch.setattr("separatrix.tables.encoder.learn_text", slow)
    found = compare(table, "y", families=["logistic", "naive-bayes"], stage_seconds=2.0)
    given_up = "Learning the words of 'review' was given up after 2 s; raise stage_seconds (--stage-seconds) to wait."
    assert given_up in found.notes and len(calls) == slow_from + 1
    left_out = next(column for column in found.schema.columns if column.name == "review")
    assert left_out.kind == "left_out" and "given up after 2 s" in left_out.reason
    assert not [one for one in found.schema.findings if "its words" in one]
    assert all(model.encoder is None or not model.encoder.texts_ for model in found.recommended.fold_models)
    assert found.best.predict(table.drop(columns="review")).shape == (120,)


def test_a_table_of_nothing_but_words_that_take_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("separatrix.tables.encoder.learn_text", lambda *_: time.sleep(3.0))
    table = _table(np.random.default_rng(4), n=60).drop(columns="x")
    with pytest.raises(ValueError, match=r"No column is left.*given up after 1 s"):
        compare(table, "y", families=["logistic"], stage_seconds=1.0)
