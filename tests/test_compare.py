"""The comparison of all families: its numbers, its folds, its ranking, and what it does with untidy tables."""

from __future__ import annotations

import pickle
import signal
import threading
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import RidgeClassifier, RidgeCV
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import PredefinedSplit, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from separatrix import BayesRule, LinearDiscriminantAnalysis, LogisticRegression, LogisticRegressionCV, compare
from separatrix.comparison.costs import as_loss, read_loss
from separatrix.comparison.families import FAMILIES, ModelFamily, build
from separatrix.comparison.fitting import by_name, certificate_of, fit_sentence, gathered, in_words, stoppable
from separatrix.comparison.folds import stratified_folds
from separatrix.comparison.measures import Score, measure, standard_error
from separatrix.comparison.scores import Candidate, rank, recommend
from separatrix.data import number_text
from separatrix.decide import expected_calibration_error
from separatrix.errors import ClassName, Message
from separatrix.tables.encoder import TableEncoder, rare_below
from separatrix.tables.schema import TableSchema

QUICK = ["baseline", "naive-bayes", "least-squares", "lda", "qda", "perceptron"]


@pytest.fixture(scope="module")
def iris():
    return load_iris(as_frame=True).frame


@pytest.fixture(scope="module")
def found(iris):
    return compare(iris, "target", families=QUICK)


@pytest.fixture(scope="module")
def messy():
    """Numbers with holes, categories with holes and a rare level, flags, a constant, a counter and names."""
    rng = np.random.default_rng(0)
    n = 160
    ill = rng.random(n) < 0.4
    frame = pd.DataFrame(
        {
            "number": np.arange(n),
            "name": [f"person {i}" for i in rng.permutation(n)],
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40 + 15 * ill, 10)),
            "town <i>": rng.choice(["Ulm", "Bonn", "Kiel"], n),
            "smoker": np.where(rng.random(n) < 0.3 + 0.4 * ill, "yes", "no"),
            "country": "DE",
            "state": np.where(ill, "<b>ill</b>", "well"),
        }
    )
    frame.loc[3, "town <i>"] = "Jena"
    frame.loc[::17, "town <i>"] = None
    frame.loc[5, "state"] = None
    return frame


def by_family(comparison):
    return {candidate.family: candidate for candidate in comparison.candidates}


# -- the numbers ------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_scikit_learn_on_left_out_rows(found):
    for candidate in found.candidates:
        parts = [np.flatnonzero(found.folds == k) for k in range(5)]
        right = [accuracy_score(found.codes[at], candidate.predicted[at]) for at in parts]
        assert candidate.scores["accuracy"].folds == pytest.approx(right)
        assert candidate.scores["accuracy"].mean == pytest.approx(np.mean(right))
        assert candidate.scores["accuracy"].standard_error == pytest.approx(np.std(right, ddof=1) / np.sqrt(5))
        if candidate.proba is None:
            assert candidate.calibrated and "calibration_error" not in candidate.scores
            continue
        losses = [log_loss(found.codes[at], candidate.proba[at], labels=[0, 1, 2]) for at in parts]
        assert candidate.scores["log_loss"].folds == pytest.approx(losses)
        whole = expected_calibration_error(found.codes, candidate.proba)
        assert candidate.scores["calibration_error"].mean == pytest.approx(whole)


@pytest.mark.parametrize(
    "family, reference",
    [
        ("baseline", DummyClassifier(strategy="prior")),
        ("lda", LinearDiscriminantAnalysis()),
        ("qda", QuadraticDiscriminantAnalysis()),
    ],
)
def test_all_families_are_left_the_same_rows_out(found, iris, family, reference):
    X, y = iris.drop(columns="target").to_numpy(), iris["target"].to_numpy()
    pipeline = make_pipeline(StandardScaler(), reference)
    expected = cross_val_predict(pipeline, X, y, cv=PredefinedSplit(found.folds), method="predict_proba")
    # Maximum-likelihood covariances here, unbiased ones in scikit-learn's QDA: the boundaries are nearly the same.
    tolerance = 0.05 if family == "qda" else 1e-9
    np.testing.assert_allclose(by_family(found)[family].proba, expected, atol=tolerance)


def test_least_squares_is_scikit_learns_with_its_leave_one_out_penalty(found, iris):
    X, y = iris.drop(columns="target").to_numpy(), iris["target"].to_numpy()
    grid, expected = np.logspace(-4, 4, 33), np.empty(len(y), dtype=int)
    for k in range(5):
        inside, outside = found.folds != k, found.folds == k
        scaler = StandardScaler().fit(X[inside])
        rows = scaler.transform(X[inside])
        alpha = RidgeCV(grid).fit(rows, 2.0 * np.eye(3)[y[inside]] - 1.0).alpha_
        expected[outside] = RidgeClassifier(alpha=alpha).fit(rows, y[inside]).predict(scaler.transform(X[outside]))
    np.testing.assert_array_equal(by_family(found)["least-squares"].predicted, expected)


def test_penalty_and_standardisation_are_learnt_inside_each_fold():
    X, y = make_classification(80, 4, n_informative=3, n_redundant=0, flip_y=0.2, random_state=1)
    X[7, 0] = 60.0  # a row that changes the scale of its column when it is seen
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    found = compare(frame, "y", families=["logistic"], cv=3)

    def left_out(scale_by_all):
        proba = np.empty((len(y), 2))
        for k in range(3):
            inside, outside = found.folds != k, found.folds == k
            scaler = StandardScaler().fit(X if scale_by_all else X[inside])
            rows, grid = scaler.transform(X[inside]), np.logspace(-3, 2, 11)
            cv = StratifiedKFold(5, shuffle=True, random_state=0)
            C = LogisticRegressionCV(Cs=grid, cv=cv, scoring="neg_log_loss").fit(rows, y[inside]).C_
            model = LogisticRegression(C=C, tol=1e-8).fit(rows, y[inside])
            proba[outside] = model.predict_proba(scaler.transform(X[outside]))
        return proba

    proba = found.candidates[0].proba
    np.testing.assert_allclose(proba, left_out(False), atol=1e-8)
    assert np.abs(proba - left_out(True)).max() > 1e-3


def test_encoders_see_training_rows_only(messy, monkeypatch):
    seen, learn = [], TableEncoder._fit

    def spy(self, rows, *given):
        seen.append(set(rows.columns["age"][~np.isnan(rows.columns["age"])]))
        return learn(self, rows, *given)

    monkeypatch.setattr(TableEncoder, "_fit", spy)
    found = compare(messy, "state", families=["lda"])
    ages = found.rows.columns["age"]
    for k in range(5):
        inside = set(ages[(found.folds != k) & ~np.isnan(ages)])
        assert inside in seen
    assert (
        sum(len(one) == len(set(ages[~np.isnan(ages)])) for one in seen) == 1
    )  # all rows once, for the deployed model


def test_a_level_that_is_rare_in_a_fold_has_no_coefficient_there(messy):
    frame = messy.dropna(subset="state").reset_index(drop=True)
    frame.loc[frame["town <i>"] == "Jena", "town <i>"] = "Ulm"
    frame.loc[frame.index[7 : 7 + rare_below(len(frame))], "town <i>"] = "Jena"
    found = compare(frame, "state", families=["lda"])
    candidate = found.candidates[0]
    j = candidate.model.encoder.feature_names_.index("town <i> = Jena")
    at = np.array(list(found.rows.columns["town <i>"])) == "Jena"
    rare = [(at & (found.folds != k)).sum() < rare_below(int((found.folds != k).sum())) for k in range(5)]
    assert candidate.fold_coefs.shape == (5, 1, len(candidate.model.encoder.feature_names_)) and any(rare)
    np.testing.assert_array_equal(candidate.fold_coefs[:, 0, j] == 0.0, rare)


def test_folds_are_stratified(found):
    counts = np.array([np.bincount(found.codes[found.folds == k], minlength=3) for k in range(5)])
    assert (np.ptp(counts, axis=0) <= 1).all() and counts.sum() == 150


def test_model_is_fitted_to_all_rows(found, iris):
    X, y = StandardScaler().fit_transform(iris.drop(columns="target")), iris["target"]
    expected = LinearDiscriminantAnalysis().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(by_family(found)["lda"].model.predict_proba(iris), expected, atol=1e-9)


def test_same_seed_same_numbers_other_seed_other_folds():
    X, y = make_classification(60, 3, n_informative=3, n_redundant=0, flip_y=0.2, random_state=0)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    families = ["logistic", "perceptron", "linear-svm"]
    one, two, other = (compare(frame, "y", families=families, cv=2, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.folds, two.folds)
    assert (one.folds != other.folds).any()
    for first, second in zip(one.candidates, two.candidates, strict=True):
        assert first.family == second.family and first.tuned == second.tuned
        np.testing.assert_array_equal(first.predicted, second.predicted)
        if first.proba is not None:
            np.testing.assert_array_equal(first.proba, second.proba)


def test_order_of_families_does_not_matter(found, iris):
    again = compare(iris, "target", families=QUICK[::-1])
    assert again.table()[0].keys() == found.table()[0].keys() and again.reason == found.reason
    for here, there in zip(again.candidates, found.candidates, strict=True):
        assert here.family == there.family and here.scores["accuracy"].mean == there.scores["accuracy"].mean


def test_repeats_give_more_folds_and_no_smaller_error_by_themselves(iris):
    repeated = compare(iris, "target", families=["lda"], cv=3, n_repeats=2)
    score = repeated.candidates[0].scores["log_loss"]
    assert len(score.folds) == 6 and score.mean == pytest.approx(score.folds.mean())
    assert score.standard_error == pytest.approx(np.std(score.folds, ddof=1) / np.sqrt(3))
    once = compare(iris, "target", families=["lda"], cv=3)
    np.testing.assert_allclose(score.folds[:3], once.candidates[0].scores["log_loss"].folds)
    np.testing.assert_array_equal(repeated.candidates[0].proba, once.candidates[0].proba)


def test_learning_curve_ends_at_the_score_of_the_whole_training_part(found):
    curve, score = found.learning_curve, found.recommended.scores["log_loss"]
    assert curve["score"] == "log_loss" and curve["sizes"][-1] == 120 and len(curve["sizes"]) == 5
    assert curve["test_mean"][-1] == pytest.approx(score.mean)
    assert curve["test_error"][-1] == pytest.approx(score.standard_error)
    assert sorted(curve["sizes"]) == curve["sizes"]
    assert curve["test_mean"][0] > curve["test_mean"][-1]
    assert all(len(curve[key]) == 5 for key in ("train_mean", "train_error", "test_error"))


# -- ranking ----------------------------------------------------------------------------------------------------------


def made(family, values, by="log_loss", simplicity=None, accuracy=0.5):
    values = np.asarray(values, dtype=float)
    scores = {"accuracy": Score(accuracy, 0.1, np.full(len(values), accuracy))}
    if by:
        scores[by] = Score(values.mean(), standard_error(values, len(values)), values)
    place = FAMILIES[family].simplicity if simplicity is None else simplicity
    return Candidate(family, family, place, scores, 0.0, {}, None, "", "", np.zeros(0, dtype=int))  # type: ignore[arg-type]  # no model is needed to rank


def test_what_is_not_ahead_by_the_error_of_paired_differences_changes_nothing():
    best = made("svm-rbf", [0.10, 0.50, 0.90])  # folds differ much more than models do
    near = made("lda", [0.10, 0.52, 0.91])  # 0.01 ± 0.0091: behind in every fold
    close = made("logistic", [0.09, 0.52, 0.90])  # 0.0033 ± 0.014, 1.58 standard errors
    order = rank([near, close, best], "log_loss", 3)
    assert [one.family for one in order] == ["svm-rbf", "logistic", "lda"]
    assert [one.tied for one in order] == [True, True, False] and [one.rank for one in order] == [1, 2, 3]
    chosen, reason = recommend(order, "log_loss", 3)
    assert chosen.family == "logistic"
    assert "Nothing is shown to be better, by more than the error: not svm-rbf." in reason
    assert "0.0033 ± 0.014" in reason and "0.5 ± 0.23" in reason


def test_best_is_recommended_when_nothing_simpler_is_as_good():
    order = rank([made("logistic", [0.3, 0.31]), made("lda", [0.4, 0.42]), made("qda", [0.3, 0.31])], "log_loss", 2)
    chosen, reason = recommend(order, "log_loss", 2)
    assert chosen.family == "logistic"  # of equals the simpler comes first
    assert reason == "Logistic has the lowest log-loss, 0.305 ± 0.005."
    order = rank([made("logistic", [0.3, 0.31]), made("lda", [0.4, 0.43])], "log_loss", 2)
    assert "The next, lda, is behind by 0.11 ± 0.017 over the folds" in recommend(order, "log_loss", 2)[1]


def test_models_without_probabilities_come_last_by_accuracy():
    order = rank(
        [
            made("perceptron", [0, 0], by="", accuracy=0.99),
            made("baseline", [0.7, 0.7], accuracy=0.4),
            made("least-squares", [0, 0], by="", accuracy=0.995),
        ],
        "log_loss",
        2,
    )
    assert [one.family for one in order] == ["baseline", "least-squares", "perceptron"]
    assert [one.tied for one in order] == [True, False, False]


def test_without_any_probabilities_accuracy_ranks(iris):
    found = compare(iris, "target", families=["perceptron", "least-squares"])
    assert found.ranked_by == "accuracy" and found.learning_curve["score"] == "accuracy"
    means = [one.scores["accuracy"].mean for one in found.candidates]
    assert means == sorted(means, reverse=True)


def test_recommending_the_class_shares_says_that_nothing_was_found():
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"]).assign(y=np.arange(60) % 2)
    found = compare(noise, "y", families=["baseline", "lda"])
    assert found.recommended.family == "baseline" and "nothing in these columns" in found.reason


def test_jackknife_error_of_the_calibration_shrinks_to_nothing_for_equal_folds():
    codes, one = np.tile([0, 1, 1, 0], 4), np.tile([[0.6, 0.4], [0.3, 0.7], [0.2, 0.8], [0.9, 0.1]], (4, 1))
    folds = np.repeat(np.arange(4), 4)[None]
    score = measure(codes, folds, one.argmax(axis=1)[None], one[None], None)["calibration_error"]
    assert score.standard_error == pytest.approx(0.0, abs=1e-12) and score.mean == pytest.approx(score.folds.mean())


# -- costs ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def copies():
    """Noisy copies of one column: naive Bayes counts the evidence six times over."""
    rng = np.random.default_rng(1)
    y = np.arange(200) % 2
    signal_ = rng.normal(2.2 * y, 1.5)
    columns = {f"copy {j}": signal_ + rng.normal(0, 0.05, 200) for j in range(8)}
    return pd.DataFrame(columns).assign(y=np.where(y == 1, "yes", "no"))


def test_a_loss_changes_the_ranking(copies):
    families = ["baseline", "naive-bayes"]
    plain = compare(copies, "y", families=families)
    costed = compare(copies, "y", families=families, loss="zero-one")
    assert [one.family for one in plain.candidates] == ["baseline", "naive-bayes"]
    assert [one.family for one in costed.candidates] == ["naive-bayes", "baseline"]
    assert (plain.ranked_by, costed.ranked_by) == ("log_loss", "cost")
    for candidate in costed.candidates:  # the 0–1 cost is the error rate
        np.testing.assert_allclose(candidate.scores["cost"].folds, 1.0 - candidate.scores["accuracy"].folds)


def test_costs_are_those_of_the_bayes_rule_on_left_out_rows(copies):
    loss = np.array([[0.0, 1.0, 4.0], [20.0, 2.0, 0.0]])
    actions = ["send home", "test again", "treat"]
    found = compare(copies, "y", families=["lda", "perceptron"], loss=loss, actions=actions)
    lda, perceptron = found.candidates
    chosen = (lda.proba @ loss).argmin(axis=1)
    np.testing.assert_array_equal(lda.taken, chosen)
    suffered = loss[found.codes, chosen]
    expected = [suffered[found.folds == k].mean() for k in range(5)]
    np.testing.assert_allclose(lda.scores["cost"].folds, expected)
    assert "cost" not in perceptron.scores and perceptron.taken is None and found.actions == actions
    rule = BayesRule(lda.model.estimator, loss, actions=actions)
    X = lda.model.encoder.transform(found.rows)
    np.testing.assert_array_equal(lda.model.predict(copies), rule.fit(X, found.codes).predict(X))
    assert set(lda.model.predict(copies)) == set(actions)
    assert set(perceptron.model.predict(copies)) == {"no", "yes"}


@pytest.mark.parametrize("labels", [["no", "yes"], [3, 7], [False, True], [1.5, 2.5]])
def test_labels_and_actions_of_every_type_come_back(labels, tmp_path):
    iris = load_iris(as_frame=True).frame.iloc[50:].reset_index(drop=True)
    iris["target"] = [labels[i - 1] for i in iris["target"]]
    path = tmp_path / "costs.csv"
    path.write_text(f"truth,{labels[1]},{labels[0]}\n{labels[1]},0,5\n{labels[0]},1,0\n")
    found = compare(iris, "target", families=["lda"], loss=path)
    assert found.classes.tolist() == labels and found.actions == labels[::-1]
    np.testing.assert_array_equal(found.loss, [[1, 0], [0, 5]])
    predicted = found.best.predict(iris).tolist()
    assert set(predicted) == set(labels) and {type(value) for value in predicted} == {type(labels[0])}
    plain = compare(iris, "target", families=["lda"]).best.predict(iris)
    assert plain.tolist() != predicted and set(plain.tolist()) == set(labels)


def test_a_loss_may_be_written_in_many_ways(tmp_path):
    classes = np.array(["a", "b"])
    rows = {"b": {"stay": 4, "go": 0}, "a": {"stay": 0, "go": 1.5}}
    frame = pd.DataFrame({"truth": ["b", "a"], "stay": [4, 0], "go": [0, 1.5]})
    path = tmp_path / "costs.csv"
    path.write_text("truth;stay;go\nb;4;0\na;0;1.5\n")
    expected = [[0.0, 1.5], [4.0, 0.0]]
    for given in (rows, frame, pa.Table.from_pandas(frame), path, str(path)):
        matrix, actions = as_loss(given, classes, None)
        assert matrix.tolist() == expected and actions == ["stay", "go"]
    matrix, actions = as_loss(expected, classes, ["stay", "go"])
    assert matrix.tolist() == expected and actions == ["stay", "go"]
    assert as_loss(expected, classes, None)[1] == ["a", "b"] and as_loss(None, classes, None) == (None, None)


@pytest.mark.parametrize(
    "text, words",
    [
        ("truth,x\na,1\n", "no row for class 'b'"),
        ("truth,x\na,1\nb,2\nc,3\n", "'c', which is not a class"),
        ("truth,x\na,1\nb,many\n", "cost of 'x' when the truth is 'b' is 'many'"),
        ("truth,x\na,1\na,2\nb,2\n", "more than one row"),
        ("truth\na\nb\n", "one column only"),
    ],
)
def test_a_bad_loss_file_is_refused_by_name(tmp_path, text, words):
    path = tmp_path / "costs.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=words) as error:
        read_loss(path, ["a", "b"])
    assert "costs.csv" in str(error.value)


def test_other_bad_losses_are_refused():
    classes = np.array(["a", "b"])
    with pytest.raises(ValueError, match="gives no actions"):
        as_loss({"a": [0, 1], "b": [2, 0]}, classes, None)
    with pytest.raises(ValueError, match="other actions for class 'b'"):
        as_loss({"a": {"x": 1}, "b": {"y": 2}}, classes, None)
    with pytest.raises(ValueError, match="give the loss too"):
        as_loss(None, classes, ["x"])
    with pytest.raises(ValueError, match="3 columns for 2 classes"):
        as_loss(np.zeros((2, 3)), classes, None)


def test_a_transposed_loss_is_a_note_and_no_warning(iris, recwarn):
    found = compare(iris, "target", families=["lda"], loss=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert sum("not transposed" in note for note in found.notes) == 3 and not recwarn.list


# -- untidy tables ----------------------------------------------------------------------------------------------------


def test_untidy_table(messy, tmp_path):
    path = tmp_path / "patients.csv"
    messy.to_csv(path, index=False)
    found = compare(path, "state", families=[*QUICK, "logistic-l1"])
    assert found.table_name == "patients.csv" and len(found.codes) == 159
    kinds = {column.name: column.kind for column in found.schema.columns}
    assert {kinds["number"], kinds["name"], kinds["country"]} == {"left_out"}
    assert set(found.rows.columns) == {"age", "town <i>", "smoker"}
    assert found.classes.tolist() == ["<b>ill</b>", "well"]
    whole = {candidate.family for candidate in found.candidates} | set(found.failures)
    assert whole == {*QUICK, "logistic-l1"}
    assert by_family(found)["logistic-l1"].scores["accuracy"].mean > 0.7
    frame = compare(messy, "state", families=["lda"])
    np.testing.assert_allclose(frame.candidates[0].proba, by_family(found)["lda"].proba)
    assert set(found.best.predict(messy)) == {"<b>ill</b>", "well"}


def test_every_text_column_is_parsed_once(tmp_path, monkeypatch):
    rng = np.random.default_rng(8)
    n = 90
    table = {
        "age": np.where(rng.random(n) < 0.1, "NA", rng.integers(20, 80, n).astype(str)),
        "height": rng.normal(1.7, 0.1, n).round(3).astype(str),
        "pay": [f'"{value:,}"' for value in rng.integers(900, 90_000, n)],
        "rate": ["unknown" if i % 9 == 0 else f"{value:.1f} %" for i, value in enumerate(rng.normal(5, 1, n))],
        "city": rng.choice(["Oslo", "Rome", "Bern"], n),
        "smoker": rng.choice(["yes", "no"], n),
        "ill": rng.choice(["never", "often"], n),
    }
    path = tmp_path / "people.csv"
    path.write_text("\n".join([",".join(table), *map(",".join, zip(*table.values(), strict=True))]))
    stripped, converted = [], []
    strip, cast = pc.utf8_trim_whitespace, number_text.cast_to_numbers
    monkeypatch.setattr(pc, "utf8_trim_whitespace", lambda column: stripped.append(len(column)) or strip(column))

    def counted(text):
        found = cast(text)
        if found is not None:
            converted.append(len(text))
        return found

    monkeypatch.setattr(number_text, "cast_to_numbers", counted)
    families = ["baseline", "lda", "naive-bayes", "logistic"]
    found = compare(path, "ill", families=families, cv=3)
    kinds = {column.name: column.kind for column in found.schema.columns}
    assert [name for name, kind in kinds.items() if kind == "numeric"] == ["age", "height", "pay", "rate"]
    assert stripped == [n] * len(table)
    assert converted == [n] * 4
    assert {candidate.family for candidate in found.candidates} == set(families)


def test_html_is_escaped(messy):
    found = compare(messy.rename(columns={"state": "<u>"}), "<u>", families=["lda", "baseline"])
    found.failures["x"] = "<script>"
    html = found._repr_html_()
    assert "&lt;u&gt;" in html and "&lt;script&gt;" in html
    for raw in ("<u>", "<script>", "<b>ill", "<i>"):
        assert raw not in html
    assert "<table>" in html and "linear discriminant analysis" in html


def test_printed_table_has_the_figures(found):
    text = str(found)
    for candidate in found.candidates:
        assert candidate.label in text and str(candidate.scores["accuracy"]) in text
    assert found.reason in text and "150 rows, 4 columns, 3 classes" in text and "* recommended" in text
    rows = found.table()
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    assert sum(row["recommended"] for row in rows) == 1 and rows[-1]["brier"] > rows[0]["brier"]
    assert {"log_loss_error", "certificate", "separability", "fit_seconds", "tuned", "tied"} <= rows[0].keys()


def test_a_family_that_fails_is_left_out_with_a_sentence(messy):
    frame = messy.dropna(subset="state").copy()
    frame["dose"] = np.where(frame["state"] == "well", np.arange(len(frame)) % 7, 1.5)  # constant in one class
    found = compare(frame, "state", families=["qda", "lda"])
    assert [one.family for one in found.candidates] == ["lda"]
    assert "not full rank" in found.failures["qda"] and "class '<b>ill</b>'" in found.failures["qda"]
    assert "Left out: qda" in str(found)
    with pytest.raises(ValueError, match=r"No family could be fitted.*qda: .*not full rank"):
        compare(frame, "state", families=["qda"])


def test_an_unforeseen_failure_does_not_stop_the_others(iris, monkeypatch):
    def broken(**parameters):
        raise RuntimeError("it broke")

    monkeypatch.setitem(FAMILIES, "qda", replace(FAMILIES["qda"], build=broken))
    found = compare(iris, "target", families=["qda", "lda"])
    assert found.failures == {"qda": "In fold 1, which learns from 120 rows: RuntimeError: it broke"}
    assert found.recommended.family == "lda"


def test_a_separability_that_is_not_solved_is_said_and_stops_nothing(iris, monkeypatch):
    def unsolved(*given, **more):
        raise RuntimeError("The linear programme was not solved.")

    monkeypatch.setattr("separatrix.comparison.separation.separability", unsolved)
    found = compare(iris, "target", families=["lda"])
    assert found.separability == "Separability was not examined (15 unknowns). The linear programme was not solved."
    assert found.candidates[0].separability == "not examined"


def test_warnings_become_notes(iris, monkeypatch, recwarn):
    class Loud(LinearDiscriminantAnalysis):
        def fit(self, X, y):
            warnings.warn(f"there are {len(y)} rows", UserWarning, stacklevel=2)
            return super().fit(X, y)

    monkeypatch.setitem(FAMILIES, "lda", ModelFamily("lda", "loud", 0, True, Loud))
    found = compare(iris, "target", families=["lda"])
    assert found.candidates[0].notes == ["there are 120 rows"] and not recwarn.list
    assert "loud: there are 120 rows" in str(found)


def test_too_many_rows_for_a_kernel(iris, monkeypatch):
    for name in ("svm-rbf", "linear-svm"):
        monkeypatch.setitem(FAMILIES, name, replace(FAMILIES[name], limit=100))
    found = compare(iris, "target", families=["svm-rbf", "linear-svm", "lda"])
    assert "up to 100 rows" in found.failures["svm-rbf"]
    assert by_family(found)["linear-svm"].proba is None
    assert any("linear support vector machine" in note and "100 rows" in note for note in found.notes)


def test_fewer_folds_for_a_small_class(iris):
    small = pd.concat([iris[iris["target"] < 2], iris[iris["target"] == 2].iloc[:3]], ignore_index=True)
    found = compare(small, "target", families=["lda", "logistic", "rda", "linear-svm"])
    assert found.folds.max() == 2
    assert "Class 2 has 3 rows, so there are 3 folds instead of 5." in found.notes
    assert not found.failures


def test_two_rows_of_a_class_leave_nothing_to_tune_by(iris):
    small = pd.concat([iris[iris["target"] < 2], iris[iris["target"] == 2].iloc[:2]], ignore_index=True)
    found = compare(small, "target", families=["logistic", "rda", "least-squares"])
    assert not found.failures and found.folds.max() == 1


@pytest.mark.parametrize(
    "change, words",
    [
        ({"cv": 1}, "at least two folds"),
        ({"families": ["logistics"]}, "no family 'logistics'; did you mean 'logistic'"),
        ({"families": []}, "families is empty"),
        ({"target": "targt"}, "'target'"),
    ],
)
def test_bad_arguments(iris, change, words):
    with pytest.raises(ValueError, match=words):
        compare(iris, **{"target": "target", "families": ["lda"], **change})


def test_a_class_of_one_row_is_refused(iris):
    lonely = pd.concat([iris[iris["target"] < 2], iris[iris["target"] == 2].iloc[:1]], ignore_index=True)
    with pytest.raises(ValueError, match=r"Class 2 has 1 row, .* at least two rows of every class"):
        compare(lonely, "target")
    with pytest.raises(ValueError, match="class"):
        compare(iris[iris["target"] == 0], "target")


def test_a_class_without_rows_is_refused():
    with pytest.raises(ValueError, match="Class 'b' has 0 rows"):
        stratified_folds(np.array([0, 0, 2, 2]), np.array(["a", "b", "c"]), 2, 1, 0)


# -- running ----------------------------------------------------------------------------------------------------------


def test_progress_grows_to_one(iris):
    heard = []
    compare(iris, "target", families=["lda", "baseline"], progress=lambda label, part: heard.append((label, part)))
    parts = [part for _, part in heard]
    assert parts == sorted(parts) and parts[0] == 0.0 and parts[-1] == 1.0
    assert len(heard) > 2 * 5 + 2 and any("fold 3: linear discriminant" in label for label, _ in heard)


def test_an_interruption_goes_through(iris):
    def stop(label, part):
        if part > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(iris, "target", families=["lda", "baseline"], progress=stop)


def test_a_solver_that_swallows_an_interruption_is_stopped_all_the_same(iris, monkeypatch):
    class Deaf(LinearDiscriminantAnalysis):
        def fit(self, X, y):
            with suppress(KeyboardInterrupt):  # as solvers do, which then give the best answer so far
                signal.raise_signal(signal.SIGINT)
            return super().fit(X, y)

    monkeypatch.setitem(FAMILIES, "lda", ModelFamily("lda", "deaf", 0, True, Deaf))
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            compare(iris, "target", families=["lda", "baseline"])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, ours)


def test_other_threads_may_compare():
    def work(done):
        with stoppable() as check:
            check()
            done.append(True)

    done: list[bool] = []
    thread = threading.Thread(target=work, args=(done,))
    thread.start()
    thread.join()
    assert done == [True]


def test_every_family_runs_on_two_classes():
    cancer = load_breast_cancer(as_frame=True).frame.iloc[:150, [0, 1, 4, 7, 30]]
    found = compare(cancer, "target", cv=3)
    assert {one.family for one in found.candidates} == set(FAMILIES) and not found.failures
    proved = {one.family: one.certificate for one in found.candidates}
    assert proved["lda"] == "exact, closed form" and proved["logistic"].startswith("relative gap ≤ ")
    assert proved["baseline"] == "exact, counts"
    for name in ("logistic", "logistic-l1", "linear-svm", "svm-rbf"):
        assert by_family(found)[name].tuned["C"] > 0
        assert by_family(found)[name].proba.shape == (150, 2)
    assert found.recommended.tied and found.best is found.recommended.model
    # A linear rule on these columns: the verdict is about the data, and the same for all.
    assert {one.separability for one in found.candidates} == {"overlap"} and "overlap" in found.separability


def test_separable_classes_are_named(iris):
    two = iris[iris["target"] < 2].reset_index(drop=True)
    found = compare(two, "target", families=["lda"])
    assert found.candidates[0].separability == "complete"
    assert "completely separable" in found.separability and "'petal" in found.separability


def test_nothing_is_changed_in_the_data(messy):
    before = messy.copy(deep=True)
    compare(messy, "state", families=["lda", "naive-bayes"])
    pd.testing.assert_frame_equal(messy, before)


# -- small parts ------------------------------------------------------------------------------------------------------


def test_build_knows_the_families_and_their_parameters():
    for name in FAMILIES:
        assert clone(build(name)) is not None
    assert build("logistic-l1", C=0.25).get_params()["C"] == 0.25
    assert build("svm-rbf").calibration == "sigmoid" and build("linear-svm", C=3.0).kernel == "linear"
    with pytest.raises(ValueError, match="no family 'lad'"):
        build("lad")
    with pytest.raises(ValueError, match=r"no family 'zzz'; choose from baseline, .*svm-rbf\."):
        build("zzz")
    with pytest.raises(
        ValueError, match="linear discriminant analysis has no parameter 'shrinkge'; did you mean 'shrink"
    ):
        build("lda", shrinkge=0.1)
    with pytest.raises(ValueError, match="no parameter 'c'; did you mean 'C'"):
        build("logistic", c=1)
    places = [family.simplicity for family in FAMILIES.values()]
    assert places == sorted(set(places))


def test_certificates_never_understate_the_gap(iris):
    X, y = iris.drop(columns="target").to_numpy(), iris["target"].to_numpy()
    for tol in (1e-3, 1e-5, 1e-8):
        model = LogisticRegression(tol=tol).fit(X, y)
        said = float(certificate_of(model, X, y).removeprefix("relative gap ≤ "))
        assert model.fit_.certificate.relative_gap <= said <= 10 * model.fit_.certificate.relative_gap
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stopped = LogisticRegression(max_iter=1, tol=1e-12).fit(X, y)
    assert certificate_of(stopped, X, y).startswith("stopped early, relative gap ≤ ")
    assert "training rows wrong" in certificate_of(build("perceptron").fit(X, y), X, y)


def test_what_a_fit_says_fits_its_family(iris):
    X, y = iris.drop(columns="target").to_numpy(), iris["target"].to_numpy()
    assert fit_sentence(build("lda").fit(X, y).fit_) == "Solved exactly, in closed form."
    averaged = build("perceptron").fit(X, y)
    assert averaged.fit_.certificate.gap > 0
    wrong = fit_sentence(averaged.fit_)
    assert f"{averaged.fit_.certificate.gap:.0f} training rows on the wrong side" in wrong and "variant" not in wrong
    right = build("perceptron").fit(X, y == 0)
    assert "every training row" in fit_sentence(right.fit_)


def test_notes_of_a_perceptron_advise_no_other_variant(iris, monkeypatch):
    family = FAMILIES["perceptron"]
    short = replace(family, build=lambda **given: family.build(max_iter=1, **given))
    monkeypatch.setitem(FAMILIES, "perceptron", short)
    found = compare(iris, "target", families=["perceptron"])
    note = found.candidates[0].notes[0]
    assert "the average of all rules has" in note and "variant" not in note and "class 0" not in note


@pytest.mark.parametrize("n_classes, rarest, unbalanced", [(2, 12, False), (2, 9, True), (12, 9, False), (12, 3, True)])
def test_balance_is_judged_by_the_number_of_classes(n_classes, rarest, unbalanced):
    counts = [rarest] + [(100 - rarest) // (n_classes - 1)] * (n_classes - 1)
    codes = np.repeat(np.arange(n_classes), np.array(counts) * 10)
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=len(codes)), "kind": codes})
    assert any("unbalanced" in sentence for sentence in TableSchema.infer(frame, "kind").findings) == unbalanced


def test_sentences():
    names = np.array(["a", "b", "c"])
    rare = Message.of("Class ", ClassName(np.int64(1)), " is rare; class ", ClassName(12), " is not, nor are 1 and 2")
    assert in_words(ValueError(rare), names) == "Class 'b' is rare; class 12 is not, nor are 1 and 2"
    assert pickle.loads(pickle.dumps(rare)).named(names) == rare.named(names)
    never = Message.of("The rule never predicts ", Message.listing([0, 2], plain=True))
    assert never == "The rule never predicts 0, 2"
    assert by_name(Message.joined("", never, "So."), names) == "The rule never predicts 'a', 'c' So."
    assert by_name("class 1 in the text of others", names) == "class 1 in the text of others"
    assert in_words(ValueError("Two\n  lines"), names) == "Two lines"
    assert in_words(RuntimeError(), np.array(["a"])) == "RuntimeError: RuntimeError"
    notes = [("gap", "gap 1.5e-3\n left"), ("gap", "gap 2.0e-4 left"), ("other", "other")]
    assert gathered(notes) == ["gap 1.5e-3 left", "other"]
