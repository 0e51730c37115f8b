"""Losses, costs and priors with labels: the order in which they are written down changes nothing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris

from separatrix import (
    BayesRule,
    GaussianNB,
    LinearDiscriminantAnalysis,
    bayes_risk,
    compare,
    risk,
    risk_coverage_curve,
    shift_priors,
    threshold_for,
)
from separatrix.decide import expected_calibration_error
from separatrix.decide.losses import loss_table

X, CODES = load_breast_cancer(return_X_y=True)
TUMOURS = np.array(["malignant", "benign"])[CODES]
SCREENING = pd.DataFrame([[0, 50], [1, 0]], index=["malignant", "benign"], columns=["malignant", "benign"])


def forms(table: pd.DataFrame) -> dict[str, Any]:
    """One loss in every way it can be written with labels."""
    first = table.rename_axis("truth").rename_axis(columns=None).reset_index()
    first.columns = [str(name) for name in first.columns]
    return {
        "frame": table,
        "nested": {truth: dict(row) for truth, row in table.iterrows()},
        "series of rows": {truth: row for truth, row in table.iterrows()},
        "pairs": {(truth, action): table.loc[truth, action] for truth in table.index for action in table.columns},
        "stacked": table.stack(),
        "first column": first,
        "polars": pl.from_pandas(first),
        "arrow": pa.Table.from_pandas(first, preserve_index=False),
        "batch": pa.Table.from_pandas(first, preserve_index=False).to_batches()[0],
    }


@settings(max_examples=60)
@given(
    st.sampled_from([["a", "b", "c"], [3, 1, 2], [0, 1, 2], [True, False], ["2", "10", "1"], [1.5, -2.0, 0.0]]),
    st.integers(0, 10_000),
    st.sampled_from([[], ["ask again"], ["wait", "ask again"]]),
    st.booleans(),
)
def test_order_of_writing_changes_nothing(labels: list[Any], seed: int, more: list[str], text_only: bool) -> None:
    rng = np.random.default_rng(seed)
    classes = np.unique(np.array(labels))
    names = [*classes.tolist(), *more]
    matrix = rng.integers(1, 50, (len(classes), len(names))).astype(float)
    np.fill_diagonal(matrix, 0.0)
    table = pd.DataFrame(matrix, index=pd.Index(classes.tolist(), dtype=object), columns=pd.Index(names, dtype=object))
    moved = table.iloc[rng.permutation(len(classes)), rng.permutation(len(names))]
    if text_only:  # as a file gives it
        moved = moved.rename(index=str, columns=str)
    for form, loss in forms(moved).items():
        found, actions = loss_table(loss, classes, None)
        assert actions.tolist()[: len(classes)] == classes.tolist(), form
        assert set(actions.tolist()) == set(names), form
        for a, action in enumerate(actions.tolist()):
            np.testing.assert_array_equal(found[:, a], matrix[:, names.index(action)], err_msg=form)
        wanted = [names[i] for i in rng.permutation(len(names))]
        found, actions = loss_table(loss, classes, wanted)
        assert actions.tolist() == wanted
        np.testing.assert_array_equal(found, matrix[:, [names.index(name) for name in wanted]], err_msg=form)


@pytest.mark.parametrize("form", forms(SCREENING))
def test_every_entrance_reads_the_same_loss(form: str) -> None:
    loss, bare = forms(SCREENING)[form], [[0, 1], [50, 0]]
    model = LinearDiscriminantAnalysis()
    rule, plain = (BayesRule(model, given, reject_cost=0.3).fit(X, TUMOURS) for given in (loss, bare))
    np.testing.assert_array_equal(rule.loss_matrix_, bare)
    np.testing.assert_array_equal(rule.actions_, plain.actions_)
    actions, proba = rule.predict(X), rule.predict_proba(X)
    np.testing.assert_array_equal(actions, plain.predict(X))
    missed = ((actions == "benign") & (TUMOURS == "malignant")).sum()
    assert missed < ((model.fit(X, TUMOURS).predict(X) == "benign") & (TUMOURS == "malignant")).sum()
    assert risk(TUMOURS, actions, loss, reject_cost=0.3) == risk(TUMOURS, actions, bare, reject_cost=0.3)
    ours, theirs = (risk_coverage_curve(TUMOURS, proba, given) for given in (loss, bare))
    np.testing.assert_array_equal(ours.risk, theirs.risk)
    assert bayes_risk(rule.estimator_, loss) == bayes_risk(rule.estimator_, bare)
    assert threshold_for(loss) == threshold_for(bare) == 1 / 51


def test_one_cost_per_class_is_that_of_every_mistake_about_it() -> None:
    codes, classes = load_iris(return_X_y=True)[1], np.array(["a", "b", "c"])
    for costs in (pd.Series({"c": 9.0, "a": 1.0, "b": 4.0}), {"b": 4, "c": 9, "a": 1}):
        matrix, actions = loss_table(costs, classes, None)
        np.testing.assert_array_equal(matrix, [[0, 1, 1], [4, 0, 4], [9, 9, 0]])
        assert actions.tolist() == ["a", "b", "c"]
        wrong = classes[(codes + 1) % 3]
        assert risk(classes[codes], wrong, costs).estimate == pytest.approx((1 + 4 + 9) / 3)
    with pytest.raises(ValueError, match="one cost per class"):
        loss_table({"b": 4, "c": 9, "a": 1}, classes, ["a", "b", "c", "ask"])


def test_compare_aligns_a_frame_by_its_labels(tmp_path: Any) -> None:
    table = pd.DataFrame(X[:, :5], columns=list("vwxyz")).assign(tumour=TUMOURS)
    path = tmp_path / "costs.csv"
    SCREENING.rename_axis("truth").to_csv(path)
    models = [
        compare(table, "tumour", families=["lda"], loss=given)
        for given in (SCREENING, [[0, 1], [50, 0]], path, pl.from_pandas(SCREENING.rename_axis("truth").reset_index()))
    ]
    expected = models[1].best.predict(table)
    for found in models:
        np.testing.assert_array_equal(found.best.predict(table), expected)
        at = [found.actions.index(label) for label in ("benign", "malignant")]
        np.testing.assert_array_equal(found.loss[:, at], [[0, 1], [50, 0]])
        assert found.candidates[0].scores["cost"].mean == models[1].candidates[0].scores["cost"].mean


def test_costs_of_rows_are_matched_to_the_actions() -> None:
    rng = np.random.default_rng(0)
    prices = rng.exponential(0.2, (len(X), 2))
    frame = pd.DataFrame(prices, columns=["benign", "malignant"])
    rule = BayesRule(LinearDiscriminantAnalysis(), SCREENING).fit(X, TUMOURS)
    expected = rule.predict(X, prices)
    assert (expected != rule.predict(X, prices[:, ::-1])).any()
    turned = frame[["malignant", "benign"]]
    for costs in (frame, turned, pl.from_pandas(turned), pa.Table.from_pandas(turned), dict(turned.items())):
        np.testing.assert_array_equal(rule.predict(X, costs), expected)
        np.testing.assert_array_equal(rule.expected_loss(X, costs), rule.expected_loss(X, prices))
        assert rule.score(X, TUMOURS, costs=costs) == rule.score(X, TUMOURS, costs=prices)
        assert risk(TUMOURS, expected, SCREENING, costs=costs) == risk(TUMOURS, expected, SCREENING, costs=prices)
    with pytest.raises(ValueError, match="'bening', which is not one of the actions benign, malignant"):
        rule.predict(X, frame.rename(columns={"benign": "bening"}))
    with pytest.raises(ValueError, match="costs has no column for action 'malignant'"):
        rule.predict(X, frame[["benign"]])


def test_priors_and_posteriors_are_matched_to_the_classes() -> None:
    shares = pd.Series({"malignant": 0.05, "benign": 0.95})
    rule = BayesRule(GaussianNB(), priors=shares).fit(X, TUMOURS)
    np.testing.assert_array_equal(rule.priors_, [0.95, 0.05])
    plain = BayesRule(GaussianNB()).fit(X, TUMOURS)
    np.testing.assert_array_equal(plain.with_priors(shares.to_dict()).predict_proba(X), rule.predict_proba(X))
    trained = pd.Series(TUMOURS).value_counts(normalize=True).sort_values()  # the rarer class first
    proba = plain.predict_proba(X)
    np.testing.assert_allclose(shift_priors(proba, shares, training_priors=trained), rule.predict_proba(X))
    with pytest.raises(ValueError, match="priors has a value for 'ill', which is not a class"):
        BayesRule(GaussianNB(), priors={"ill": 0.1, "benign": 0.9}).fit(X, TUMOURS)
    turned = pd.DataFrame(proba, columns=["benign", "malignant"])[["malignant", "benign"]]
    assert expected_calibration_error(TUMOURS, turned) == expected_calibration_error(TUMOURS, proba)
    for kind in (turned, pl.from_pandas(turned), pd.DataFrame(proba)):
        assert risk_coverage_curve(TUMOURS, kind, SCREENING).area == risk_coverage_curve(TUMOURS, proba, SCREENING).area


def test_a_class_may_have_no_row_in_a_sample() -> None:
    few = TUMOURS == "benign"
    assert risk(TUMOURS[few], np.full(few.sum(), "malignant"), SCREENING).estimate == 1.0
    integers = SCREENING.set_axis([0, 1]).set_axis([0, 1], axis=1)
    assert risk([1, 1], [0, 1], integers).estimate == 0.5


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (SCREENING.drop("benign"), "no row for class 'benign'; it has rows for malignant"),
        (SCREENING.rename(index={"benign": "bening"}), "a row for 'bening', which is not a class"),
        (SCREENING.rename(columns={"benign": "bening"}), "no column for class 'benign' and 'bening' is not a class"),
        (SCREENING[["malignant"]], "no column for class 'benign'"),
        (pd.concat([SCREENING, SCREENING]), "more than one row of class 'malignant'"),
        (pd.DataFrame([[0, 1], [50, 0]]), "which class its rows belong to"),
        (pl.DataFrame({"benign": [0, 50], "malignant": [1, 0]}), "no index of labels, so its first column, 'benign'"),
        (pl.DataFrame({"0": [0, 50], "1": [1, 0]}), "a table without an index"),
        (pd.Series([1, 2]), "a row for 0, which is not a class"),
        (pd.Series({"malignant": 1}), "no row for class 'benign'"),
        ({"malignant": {"benign": 1}, "benign": {"malignant": 1}}, "other actions for class 'benign'"),
        ({"malignant": [0, 1], "benign": [1, 0]}, "gives no actions"),
        ({("malignant", "benign"): 1, ("benign", "malignant"): 2}, "no cost of action 'malignant' when the truth is"),
        (SCREENING.astype(object).replace(50, "many"), "when the truth is 'malignant' is 'many'; give a number"),
        (SCREENING.astype(float).replace(50, np.nan), "when the truth is 'malignant' is nan"),
        ({}, "loss is empty"),
    ],
)
def test_missing_and_unknown_labels_are_named(loss: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BayesRule(LinearDiscriminantAnalysis(), loss).fit(X, TUMOURS)
    with pytest.raises(ValueError):
        risk(TUMOURS, TUMOURS, loss, classes=["benign", "malignant"])


def test_an_index_that_counts_rows_is_not_guessed_about() -> None:
    for unclear in (
        pd.DataFrame([[0, 1], [1, 0]], columns=["wait", "treat"]),
        pd.DataFrame({"truth": [1, 0], "wait": [4, 0], "treat": [0, 1]}),
    ):
        with pytest.raises(ValueError, match="not clear whether its index or its first column"):
            BayesRule(LinearDiscriminantAnalysis(), unclear).fit(X, CODES)
    named, _ = loss_table(pd.DataFrame([[0, 1], [4, 0]], columns=["wait", "treat"]), np.arange(2), ["treat", "wait"])
    assert named.tolist() == [[1, 0], [0, 4]]
    first, _ = loss_table(pd.DataFrame({"truth": [1, 0], "1": [0, 1], "0": [4, 0]}), np.arange(2), None)
    assert first.tolist() == [[0, 1], [4, 0]]


def test_a_rule_with_a_labelled_loss_is_cloned_and_searched() -> None:
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_score

    bare = cross_val_score(BayesRule(GaussianNB(), [[0, 1], [50, 0]]), X, TUMOURS)
    for loss in (SCREENING, json.loads(SCREENING.T.to_json())):
        np.testing.assert_array_equal(cross_val_score(clone(BayesRule(GaussianNB(), loss)), X, TUMOURS), bare)
