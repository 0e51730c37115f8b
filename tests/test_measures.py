"""The scores of a comparison are scikit-learn's; ties with a margin; models without probabilities; the headline."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    log_loss,
    roc_auc_score,
)
from typer.testing import CliRunner

from separatrix import compare
from separatrix.cli.main import app
from separatrix.comparison.families import FAMILIES
from separatrix.comparison.headline import cautions, headline, rounded_down
from separatrix.comparison.measures import (
    GREATER_IS_BETTER,
    METRICS,
    Score,
    auc,
    by_guessing,
    calibrated,
    measure,
    practical_margin,
    standard_error,
)
from separatrix.comparison.scores import Candidate, rank, recommend, tie_rule


def drawn(n_classes, seed=0, n=120):
    """Classes, folds, and probabilities that know something, with ties among them."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % n_classes)
    raw = rng.gamma(1.0, size=(n, n_classes)) + 2.0 * np.eye(n_classes)[codes] * rng.random((n, 1))
    proba = np.round(raw / raw.sum(axis=1, keepdims=True), 2) + 0.01
    return codes, (np.arange(n) // n_classes) % 4, proba / proba.sum(axis=1, keepdims=True)


def made(family, values, by="log_loss", **more):
    """A candidate of these scores; no model is needed to rank."""
    values = np.asarray(values, dtype=float)
    score = Score(values.mean(), standard_error(values, len(values)), values)
    scores = {"accuracy": Score(0.5, 0.0, np.full(len(values), 0.5)), by: score}
    simplicity = FAMILIES[family].simplicity
    return Candidate(family, family, simplicity, scores, 0.0, {}, None, "", "", np.zeros(0, dtype=int), **more)  # type: ignore[arg-type]  # as above


# -- scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_score_is_that_of_scikit_learn(n_classes):
    codes, folds, proba = drawn(n_classes)
    predicted = proba.argmax(axis=1)
    found = measure(codes, folds[None], predicted[None], proba[None], None)
    area = {} if n_classes == 2 else {"multi_class": "ovr"}
    references = {
        "accuracy": lambda y, k, p: accuracy_score(y, k),
        "balanced_accuracy": lambda y, k, p: balanced_accuracy_score(y, k),
        "f1": lambda y, k, p: f1_score(y, k, average="macro"),
        "auc": lambda y, k, p: roc_auc_score(y, p[:, 1] if n_classes == 2 else p, **area),
        "log_loss": lambda y, k, p: log_loss(y, p),
        "brier": lambda y, k, p: brier_score_loss(y, p if n_classes > 2 else p[:, 1]),
    }
    assert set(references) == set(METRICS)
    for name, reference in references.items():
        parts = [folds == k for k in range(4)]
        expected = [reference(codes[at], predicted[at], proba[at]) for at in parts]
        np.testing.assert_allclose(found[name].folds, expected, rtol=1e-9, err_msg=name)


def test_a_fold_without_a_class_still_has_an_area():
    codes, _, proba = drawn(3)
    some = codes != 2
    pairs = [roc_auc_score(codes[some] == k, proba[some, k]) for k in (0, 1)]
    assert auc(codes[some], proba[some]) == pytest.approx(np.mean(pairs))
    assert auc(np.zeros(5, dtype=int), np.ones((5, 2))) == 0.5


@given(st.lists(st.integers(1, 50), min_size=2, max_size=5))
def test_guessing_is_the_dummy_of_scikit_learn(counts):
    y = np.repeat(np.arange(len(counts)), counts)
    shares = np.bincount(y) / len(y)
    dummy = DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), y)
    proba, folds = dummy.predict_proba(np.zeros((len(y), 1))), np.arange(len(y)) % 2
    assert by_guessing(shares, "log_loss") == pytest.approx(log_loss(y, proba))
    assert by_guessing(shares, "accuracy") == pytest.approx(accuracy_score(y, proba.argmax(axis=1)))
    whole = measure(
        np.tile(y, 2), np.repeat([[0, 1]], len(y), axis=1), np.tile(proba.argmax(axis=1), 2)[None], None, None
    )
    assert folds.max() <= 1 and by_guessing(shares, "f1") == pytest.approx(whole["f1"].mean)
    assert by_guessing(shares, "balanced_accuracy") == pytest.approx(whole["balanced_accuracy"].mean)
    loss = 1.0 - np.eye(len(shares))
    assert by_guessing(shares, "cost", loss) == pytest.approx(1.0 - shares.max())


# -- ties with a margin -----------------------------------------------------------------------------------------------


def test_a_margin_ties_what_differs_surely_and_hardly():
    best, near = made("logistic", [0.300, 0.31, 0.32]), made("lda", [0.3002, 0.3102, 0.3202])
    plain = recommend(rank([best, near], "log_loss", 3), "log_loss", 3)
    assert plain[0] is best and not near.tied
    chosen, reason = recommend(rank([best, near], "log_loss", 3, 0.007), "log_loss", 3, 0.007)
    assert chosen is near and near.tied
    assert "Lda is simpler than logistic and as good: behind by 0.0002 ± " in reason


def test_the_margin_never_brings_back_the_class_shares():
    best, shares = made("lda", [0.500, 0.500]), made("baseline", [0.501, 0.501])
    assert recommend(rank([best, shares], "log_loss", 2, 0.01), "log_loss", 2, 0.01)[0] is best and shares.tied


values = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3)


@given(
    st.dictionaries(st.sampled_from(sorted(FAMILIES)), values, min_size=1),
    st.sampled_from(METRICS),
    st.floats(0.0, 0.5),
)
def test_a_margin_never_unties_and_the_recommended_is_as_good_as_the_best(folds, by, margin):
    tied_before = {}
    for least in (0.0, margin):
        ordered = rank([made(family, own, by) for family, own in folds.items()], by, 3, least)
        chosen, _ = recommend(ordered, by, 3, least)
        assert chosen is ordered[0] or chosen.tied
        tied = {one.family: one.tied for one in ordered}
        assert all(tied[name] for name, was in tied_before.items() if was)
        tied_before = tied


@pytest.mark.parametrize("share", [-0.1, 1.0, np.nan, np.inf])
def test_a_margin_is_a_share(share):
    with pytest.raises(ValueError, match=r"give a share of what guessing loses"):
        practical_margin(share, np.array([0.5, 0.5]), "log_loss")


def test_the_margin_of_an_accuracy_is_of_what_guessing_gets_wrong():
    # With 99 % of one class, a hundredth of the accuracy would be all there is to gain.
    assert practical_margin(0.01, np.array([0.99, 0.01]), "accuracy") == pytest.approx(1e-4)
    assert "1 % of what guessing falls short of 1 in accuracy" in tie_rule("accuracy", 1e-4, 0.01)


# -- models without probabilities ---------------------------------------------------------------------------------------


def test_calibrated_scores_know_nothing_of_their_own_fold():
    codes, folds, proba = drawn(3)
    scores = np.log(proba)[None]
    found = calibrated(codes, folds[None], scores)
    np.testing.assert_allclose(found.sum(axis=2), 1.0)
    other = codes.copy()
    other[folds == 1] = (other[folds == 1] + 1) % 3
    again = calibrated(other, folds[None], scores)
    np.testing.assert_allclose(again[0, folds == 1], found[0, folds == 1], rtol=1e-12)
    assert not np.allclose(again[0, folds == 2], found[0, folds == 2])


def test_calibration_restores_the_log_loss_of_scores_in_another_unit():
    codes, folds, proba = drawn(2, n=2000)
    honest = calibrated(codes, folds[None], np.log(proba)[None])[0]
    scaled = calibrated(codes, folds[None], 1e3 * np.log(proba)[None] + 7.0)[0]
    np.testing.assert_allclose(scaled, honest, atol=1e-9)


def test_models_without_probabilities_are_ranked_among_the_others_and_not_recommended():
    iris = load_iris(as_frame=True).frame
    found = compare(iris, "target", families=["baseline", "least-squares", "perceptron", "lda"])
    order = [one.family for one in found.candidates]
    assert order.index("perceptron") < order.index("baseline") and order[-1] == "baseline"
    assert found.recommended.family == "lda"
    assert "†" in str(found) and "learnt on the other folds" in str(found)
    barred = made("least-squares", [0.1, 0.1], calibrated=True)
    chosen, reason = recommend(rank([barred, made("lda", [0.3, 0.3])], "log_loss", 2), "log_loss", 2)
    assert chosen.family == "lda" and "Least-squares is ahead of it, but gives no probabilities" in reason
    barred = made("least-squares", [0.9, 0.9], "f1", calibrated=True)
    assert recommend(rank([barred, made("lda", [0.8, 0.8], "f1")], "f1", 2), "f1", 2)[0] is barred


def test_answers_that_are_classes_have_a_cost_without_probabilities():
    iris = load_iris(as_frame=True).frame
    loss = {k: {j: abs(k - j) for j in range(3)} for k in range(3)}
    found = compare(iris, "target", families=["lda", "perceptron"], loss=loss)
    perceptron = next(one for one in found.candidates if one.family == "perceptron")
    suffered = np.abs(found.codes - perceptron.predicted)
    np.testing.assert_allclose(perceptron.scores["cost"].folds, [suffered[found.folds == k].mean() for k in range(5)])


# -- metrics on request, and the headline -------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_any_metric_ranks(metric):
    iris = load_iris(as_frame=True).frame
    found = compare(iris, "target", families=["baseline", "lda", "qda"], cv=3, metric=metric)
    sign = -1.0 if metric in GREATER_IS_BETTER else 1.0
    means = [sign * one.scores[metric].mean for one in found.candidates]
    assert found.ranked_by == metric and means == sorted(means)


def test_a_metric_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"metric='rmse': candidates are ranked by one of log_loss, accuracy"):
        compare(load_iris(as_frame=True).frame, "target", metric="rmse")


def rare_table(n=400, rare=20):
    rng = np.random.default_rng(0)
    y = np.arange(n) < rare
    return pd.DataFrame({"a": rng.normal(2.5 * y, 1.0), "b": rng.normal(size=n), "y": np.where(y, "bad", "good")})


def test_the_headline_counts_what_an_accuracy_hides():
    found = compare(rare_table(), "y", families=["baseline", "lda"])
    hits = int(((found.recommended.predicted == 0) & (found.codes == 0)).sum())
    words = headline(found)
    assert words.startswith(
        f"{rounded_down(found.recommended.scores['accuracy'].mean)} right, against 95 % by guessing"
    )
    assert words.endswith(f"of the 20 rows of 'bad' it finds {hits}.")


def test_the_headline_of_a_loss_is_a_cost():
    loss = {"good": {"good": 0, "bad": 1}, "bad": {"good": 10, "bad": 0}}
    found = compare(rare_table(), "y", families=["baseline", "lda"], loss=loss)
    assert headline(found).startswith(
        f"{found.recommended.scores['cost'].mean:.3g} per row, against 0.5 for one action"
    )


def test_nothing_found_is_said_first():
    rng = np.random.default_rng(0)
    noise = pd.DataFrame({"a": rng.normal(size=60), "y": np.arange(60) % 2})
    assert headline(compare(noise, "y", families=["baseline", "lda"])).startswith("No model was found to be better")


def test_what_is_too_good_is_doubted_beside_the_headline(tmp_path):
    table = rare_table().assign(outcome=lambda t: np.where(t["y"] == "bad", "x", "z"))
    found = compare(table, "y", families=["logistic"])
    assert any("'outcome' determines the target" in one for one in cautions(found))
    apart = rare_table().assign(a=lambda t: np.where(t["y"] == "bad", 50.0, 0.0) + t["b"])
    assert any("gets every row right" in one for one in cautions(compare(apart, "y", families=["lda"])))
    assert not cautions(compare(rare_table(), "y", families=["lda"]))
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    arguments = [
        "compare",
        str(path),
        "--target",
        "y",
        "--families",
        "logistic",
        "--out",
        str(tmp_path / "out"),
        "--quiet",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0 and "Caution: Column 'outcome'" in result.stdout and "by guessing" in result.stdout


@pytest.mark.parametrize(
    "share, text", [(0.9999, "99.9 %"), (1.0, "100 %"), (0.919, "91 %"), (0.0, "0 %"), (0.5, "50 %")]
)
def test_shares_are_rounded_down(share, text):
    assert rounded_down(share) == text
