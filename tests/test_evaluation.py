"""A model on new rows: scores with intervals that hold, confusion, calibration, drift; rows set aside in a comparison."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    f1_score,
    log_loss,
    roc_auc_score,
)
from typer.testing import CliRunner

import separatrix as sx
from separatrix import compare
from separatrix.cli.main import app
from separatrix.comparison.drift import DriftCounter, profile
from separatrix.comparison.evaluation import evaluate
from separatrix.comparison.holdout import set_aside
from separatrix.comparison.table_model import TableModel
from separatrix.tables.rows import CodedText, TableRows


def people(n, seed=0, classes=("no", "yes")):
    """Two numbers, a category and a flag, with holes, that say something about the class."""
    rng = np.random.default_rng(seed)
    ill = rng.integers(0, len(classes), n)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50 + 8 * ill, 12.0),
            "weight": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(20, 4, n)),
            "town": rng.choice(["Ulm", "Bonn", "Kiel"], n, p=[0.5, 0.3, 0.2]),
            "smoker": np.where(rng.random(n) < 0.3 + 0.3 * (ill > 0), "yes", "no"),
            "ill": np.array(classes)[ill],
        }
    )
    return frame


@pytest.fixture(scope="module")
def model():
    return TableModel.fit(people(400), "ill", sx.LogisticRegression(), family="logistic")


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


# -- scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [("no", "yes"), ("a", "b", "c")])
def test_scores_are_those_of_scikit_learn(classes):
    model = TableModel.fit(people(300, 1, classes), "ill", sx.LogisticRegression(), family="logistic")
    test = people(200, 2, classes)
    found, proba, y = evaluate(model, test), model.predict_proba(test), test["ill"]
    predicted, two = model.predict(test), len(classes) == 2
    expected = {
        "log_loss": log_loss(y, proba),
        "accuracy": accuracy_score(y, predicted),
        "auc": roc_auc_score(y == "yes", proba[:, 1]) if two else roc_auc_score(y, proba, multi_class="ovr"),
        "balanced_accuracy": balanced_accuracy_score(y, predicted),
        "f1": f1_score(y, predicted, average="macro"),
        "brier": brier_score_loss(y == "yes", proba[:, 1]) if two else brier_score_loss(y, proba),
    }
    assert set(found.scores) == set(expected)
    for name, value in expected.items():
        one = found.scores[name]
        assert one.value == pytest.approx(value), name
        assert one.lower < one.value < one.upper, name
    np.testing.assert_array_equal(found.confusion, confusion_matrix(y, predicted, labels=list(classes)))
    assert found.reliability.counts.sum() == len(y) == found.n_rows


def test_intervals_cover_what_a_large_sample_shows(model):
    truth = evaluate(model, people(40_000, 99)).scores
    covered = dict.fromkeys(truth, 0)
    for seed in range(60):
        for name, one in evaluate(model, people(150, 1000 + seed)).scores.items():
            covered[name] += one.lower <= truth[name].value <= one.upper
    # 60 intervals of 95 %: 51 or fewer that hold have a chance of 4 in 10 000.
    assert min(covered.values()) >= 52, covered


def test_the_rule_of_a_loss_is_the_rule_that_is_judged():
    train, test = people(300, 1), people(200, 2)
    loss = {"no": {"no": 0, "yes": 1}, "yes": {"no": 8, "yes": 0}}
    model = TableModel.fit(train, "ill", sx.LogisticRegression(), family="logistic", loss=loss)
    found = evaluate(model, test)
    assert found.scores["accuracy"].value == pytest.approx(accuracy_score(test["ill"], model.predict(test)))
    costs = [loss[truth][action] for truth, action in zip(test["ill"], model.predict(test), strict=True)]
    assert found.scores["cost"].value == pytest.approx(np.mean(costs))
    assert found.confusion[:, 0].sum() < found.confusion[:, 1].sum()  # a missed case costs eight times as much
    actions = {"no": {"wait": 0, "treat": 1}, "yes": {"wait": 8, "treat": 0}}
    other = evaluate(TableModel.fit(train, "ill", sx.LogisticRegression(), family="x", loss=actions), test)
    assert other.answers.tolist() == ["wait", "treat"] and other.confusion.sum() == 200


def test_a_model_without_probabilities_is_judged_too():
    model = TableModel.fit(people(300, 1), "ill", sx.RidgeClassifier(), family="least-squares")
    found = evaluate(model, people(200, 2))
    assert found.reliability is None and set(found.scores) == {"accuracy", "auc", "balanced_accuracy", "f1"}


def test_rows_without_a_class_do_not_count(model):
    test = people(60, 3)
    test.loc[:9, "ill"] = None
    found = evaluate(model, test)
    assert found.n_rows == 50 and found.notes == ["10 of 60 rows have no class and do not count."]
    with pytest.raises(ValueError, match="No row has a value in the target 'ill'"):
        evaluate(model, test.head(10))


def test_a_broken_promise_is_named():
    best = compare(people(400, 1), "ill", families=["logistic"]).best
    assert not evaluate(best, people(400, 2)).notes
    shuffled = people(400, 3)
    shuffled["ill"] = shuffled["ill"].sample(frac=1, random_state=0).to_numpy()
    assert any("worse than the comparison promised" in note for note in evaluate(best, shuffled).notes)


# -- drift ------------------------------------------------------------------------------------------------------------


def test_a_column_in_another_unit_is_noticed(model):
    test = people(100, 5)
    assert not evaluate(model, test).drift
    found = evaluate(model, test.assign(age=100 * test["age"])).drift
    assert [one.column for one in found] == ["age"] and "about 100 times as large. Is it in" in found[0].sentence


@pytest.mark.parametrize(
    "column, change, words",
    [
        ("age", lambda x: x + 15, "has the median"),
        ("age", lambda x: x.where(np.arange(len(x)) % 2 == 0), "is missing in 50% of the rows, and was in 0%"),
        ("town", lambda x: x.where(x != "Ulm", "Kiel"), "in the rows|of the rows"),
        ("town", lambda x: x.replace("Ulm", "Wien"), "Ulm|other values"),
        ("smoker", lambda x: "yes", "is true in 100% of the rows"),
    ],
)
def test_every_kind_of_column_is_watched(model, column, change, words):
    test = people(300, 6)
    test[column] = change(test[column])
    found = evaluate(model, test).drift
    assert [one.column for one in found] == [column]
    assert pd.Series([found[0].sentence]).str.contains(words).all()


def test_one_value_far_out_is_enough(model):
    row = people(1, 7)
    assert not evaluate(model, row).drift
    (found,) = evaluate(model, row.assign(age=4000.0)).drift
    assert "has 1 value far outside the range learnt from" in found.sentence


@settings(max_examples=25, derandomize=True)  # chance makes a drift of one column in 10 000
@given(st.integers(0, 10_000), st.integers(30, 400), st.sampled_from([1, 2, 7]))
def test_the_same_distribution_is_no_drift_and_batches_change_nothing(seed, n, parts):
    rng = np.random.default_rng(seed)

    def drawn(size):
        levels = CodedText(["a", "b", "c"], rng.choice(3, size, p=[0.6, 0.3, 0.1]))
        columns = {"x": rng.lognormal(size=size), "k": rng.poisson(1.0, size).astype(float), "level": levels}
        return TableRows(columns, frozenset(), size)

    known, new = profile(drawn(500)), drawn(n)
    whole, pieces = DriftCounter(known), DriftCounter(known)
    whole.add(new)
    for part in np.array_split(np.arange(n), parts):
        pieces.add(new.take(part))
    assert whole.found() == pieces.found()
    assert not [one for one in whole.found() if one.divergence > 0]


def test_the_profile_survives_the_model_file(model, tmp_path):
    path = tmp_path / "model.safetensors"
    sx.save_model(model, path)
    assert sx.load_model(path).training == model.training


# -- the command line ---------------------------------------------------------------------------------------------------


def test_evaluate_and_predict_from_the_command_line(model, tmp_path):
    sx.save_model(model, tmp_path / "m.safetensors")
    people(150, 8).assign(age=lambda t: t["age"] / 100).to_csv(tmp_path / "test.csv", index=False)
    shown = run("evaluate", tmp_path / "m.safetensors", tmp_path / "test.csv", "-o", tmp_path / "found.json")
    assert shown.exit_code == 0, shown.stderr
    assert "by guessing" in shown.stdout and "balanced accuracy" in shown.stdout and "Calibration error" in shown.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["rows"] == 150 and np.sum(found["confusion"]) == 150
    assert found["drift"][0]["column"] == "age" and "100 times as small" in found["drift"][0]["sentence"]
    assert found["scores"]["accuracy"]["lower"] < found["scores"]["accuracy"]["value"]
    predicted = run("predict", tmp_path / "m.safetensors", tmp_path / "test.csv", "-o", tmp_path / "p.csv", "--quiet")
    assert predicted.exit_code == 0 and "about 100 times as small" in predicted.stderr


# -- rows set aside -----------------------------------------------------------------------------------------------------


def test_rows_set_aside_are_not_learnt_from():
    iris = load_iris(as_frame=True).frame
    kept, aside, _ = set_aside(iris, "target", 0.2, 3)
    found = compare(iris, "target", families=["lda"], holdout=0.2, random_state=3)
    assert found.n_rows == kept.num_rows == 120 and found.holdout.n_rows == aside.num_rows == 30
    alone = compare(kept, "target", families=["lda"], random_state=3)
    np.testing.assert_allclose(alone.best.estimator.coef_, found.best.estimator.coef_)
    assert found.holdout.scores["accuracy"].value == evaluate(alone.best, aside).scores["accuracy"].value
    assert "On 30 rows set aside: " in str(found)


def test_another_table_may_be_held_out(tmp_path):
    iris = load_iris(as_frame=True).frame
    for name, part in (("train", iris[::2]), ("test", iris[1::2])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    arguments = ["compare", tmp_path / "train.csv", "--target", "target", "--families", "lda,baseline", "--quiet"]
    shown = run(*arguments, "--out", tmp_path / "out", "--holdout", tmp_path / "test.csv")
    assert shown.exit_code == 0 and "On 75 rows set aside" in shown.stdout
    assert run(*arguments, "--out", tmp_path / "out", "--holdout", "0.3").exit_code == 0
    refused = run(*arguments, "--out", tmp_path / "out", "--holdout", "1.5")
    assert refused.exit_code == 1 and "give a share of the rows between 0 and 1" in refused.stderr
