"""Why a model decides as it does: importances, effects, single rows; and whether linear is enough."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence
from sklearn.inspection import permutation_importance as reference_importance
from typer.testing import CliRunner

import separatrix as sx
from separatrix import compare
from separatrix.cli.main import app
from separatrix.comparison.measures import Score
from separatrix.comparison.scores import Candidate
from separatrix.comparison.table_model import TableModel
from separatrix.comparison.why.curved import CURVED, CurvedFeatures
from separatrix.comparison.why.explanation import explain_row
from separatrix.comparison.why.importance import partial_effects, permutation_importance
from separatrix.comparison.why.nonlinear import judged


def table(n=300, seed=0):
    """a decides, b helps, c is noise; a category and a flag that help a little."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, n)) * np.array([[10.0], [0.1], [1.0]])
    level = rng.choice(["x", "y", "z"], n)
    y = a / 10 + 4 * b + (level == "x") + 0.7 * rng.normal(size=n) > 0.3
    flag = np.where(rng.random(n) < 0.4 + 0.2 * y, "yes", "no")
    return pd.DataFrame({"a": a, "b": b, "c": c, "level": level, "flag": flag, "kind": np.where(y, "good", "bad")})


FAMILIES = ["naive-bayes", "least-squares", "lda", "logistic", "perceptron", "qda"]


@pytest.fixture(scope="module")
def found():
    return compare(table(), "kind", families=FAMILIES, cv=4)


# -- importance and effects ---------------------------------------------------------------------------------------------


def test_every_family_finds_the_column_that_decides(found):
    assert {one.family for one in found.candidates} == set(FAMILIES)
    for candidate in found.candidates:
        names = [one.column for one in candidate.importance]
        assert names[0] == "a" and set(names) == {"a", "b", "c", "level", "flag"}, candidate.family
        first, noise = candidate.importance[0], candidate.importance[names.index("c")]
        assert first.lower > 0.0 and noise.lower <= 0.03 and noise.mean < first.mean / 5
        assert all(one.lower <= one.mean <= one.upper for one in candidate.importance)


def test_importance_is_that_of_scikit_learn():
    frame = table(4000, 1)[["a", "b", "c", "kind"]]
    found = compare(frame, "kind", families=["lda"], cv=2)
    ours = {one.column: one.mean for one in found.recommended.importance}
    scores = []
    for k, model in enumerate(found.recommended.fold_models):
        at = found.folds == k
        X = model.encode(found.rows.take(at))
        result = reference_importance(
            model.estimator, X, found.codes[at], scoring="neg_log_loss", n_repeats=5, random_state=0
        )
        scores.append(result.importances_mean)
    # Ours are of 400 rows of every fold, shuffled twice.
    np.testing.assert_allclose([ours[name] for name in "abc"], np.mean(scores, axis=0), rtol=0.25, atol=0.02)


def test_more_rows_than_asked_for_are_not_used(found):
    best = found.recommended
    few = permutation_importance(best.fold_models, found.rows, found.codes, found.folds, most_rows=10)
    assert {one.column for one in few} == set(found.rows.columns)


def test_effects_are_the_partial_dependence_of_scikit_learn(found):
    logistic = next(one for one in found.candidates if one.family == "logistic")
    columns = [column for column in found.schema.used if column.name in ("a", "level", "flag")]
    effects = partial_effects(logistic.model, logistic.fold_models, found.rows, columns, most_rows=10**6)
    assert [one.column for one in effects] == ["a", "level", "flag"]
    a = effects[0]
    feature = logistic.model.encoder.features_[0]
    grid = (np.array(a.values) - feature.centre) / feature.scale
    X = logistic.model.encode(found.rows)
    reference = partial_dependence(logistic.model.estimator, X, [0], custom_values={0: grid}, kind="average")
    np.testing.assert_allclose(a.shares[:, 1], reference["average"][0], atol=1e-9)
    for one in effects:
        np.testing.assert_allclose(one.shares.sum(axis=1), 1.0)
        assert (one.lower <= one.upper).all()
    assert effects[1].values == ["x", "y", "z"] and effects[1].shares[:, 1].argmax() == 0
    assert effects[2].values == ["no", "yes"]


# -- single rows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["logistic", "lda", "least-squares", "perceptron"])
def test_pushes_add_up_to_the_lead_and_the_change_flips(found, family):
    model = next(one.model for one in found.candidates if one.family == family)
    frame = table()
    for row in (0, 7, 55):
        one = explain_row(model, frame, row)
        assert one.decided == model.predict(frame.iloc[[row]])[0]
        assert one.typical + sum(push for _, _, push in one.pushes) == pytest.approx(one.lead)
        scores = model.decision_function(frame.iloc[[row]])
        assert one.lead == pytest.approx(abs(float(scores[0])))
        assert [abs(push) for *_, push in one.pushes] == sorted((abs(push) for *_, push in one.pushes), reverse=True)
        if one.flip.startswith("The nearest change"):
            assert one.flip.startswith(f"The nearest change that makes it {one.against}: ")
            changed = frame.iloc[[row]].copy()
            for words in one.flip.partition(": ")[2].rstrip(".").split(", "):
                name, value = words.split(" ")[:2]
                before = float(words.split(" ")[-1])
                # A little farther than the rounded numbers of the sentence.
                changed[name] = float(value) + 1e-2 * (float(value) - before)
            assert model.predict(changed)[0] == one.against


def test_naive_bayes_adds_up_what_columns_say_and_one_number_flips_it(found):
    model, frame = next(one.model for one in found.candidates if one.family == "naive-bayes"), table()
    frame.loc[7, frame.columns[0]] = np.nan
    flips = 0
    for row in (0, 7, 55, 56, 90):
        one, given = explain_row(model, frame, row), frame.iloc[[row]]
        assert one.decided == model.predict(given)[0] and one.base == "a row of which nothing is known"
        proba = dict(zip(model.classes_, model.predict_proba(given)[0], strict=True))
        assert one.lead == pytest.approx(np.log(proba[one.decided] / proba[one.against]))
        assert one.typical + sum(push for *_, push in one.pushes) == pytest.approx(one.lead)
        for name, value, push in one.pushes:  # a column that is not known pushes nowhere
            assert (push == 0.0) == (value is None)
            without = given.copy()
            without[name] = None
            left = dict(zip(model.classes_, model.predict_proba(without)[0], strict=True))
            assert one.lead - push == pytest.approx(np.log(left[one.decided] / left[one.against]), abs=1e-9)
        if not one.flip.startswith("The nearest change"):
            continue
        flips += 1
        name, after, _, _, before = one.flip.partition(": ")[2].rstrip(".").split(" ")
        for share, expected in ((1.02, one.against), (0.9, one.decided)):
            changed = given.copy()
            changed[name] = float(before) + share * (float(after) - float(before))
            assert model.predict(changed)[0] == expected
    assert flips


def test_a_row_is_explained_with_the_decision_by_losses(found):
    model, frame = next(one.model for one in found.candidates if one.family == "logistic"), table()
    first, second = model.classes_.tolist()
    costs = [[0.0, 1.0], [1000.0, 0.0]]
    costly = TableModel(model.schema, model.encoder, model.estimator, family="logistic", loss=costs)
    row = int(np.flatnonzero(model.predict(frame) == first)[0])
    one = explain_row(costly, frame, row)
    assert one.decided == first and one.action == second
    assert f"Row 1 is most probably {first}, with a lead" in one.in_words("Row 1")
    assert one.in_words("Row 1").endswith(f"By the losses the decision is {second}.")


def test_a_report_shows_rows_of_naive_bayes_as_they_were_explained(tmp_path):
    nothing_else = compare(table(), "kind", families=["naive-bayes"], cv=2)
    mistake, doubt = nothing_else.explained
    assert (mistake[0], doubt[0]) == ("The surest mistake", "The most doubtful row")
    best, codes = nothing_else.recommended, nothing_else.codes
    assert best.predicted[mistake[1]] != codes[mistake[1]]
    assert (
        best.proba[mistake[1], codes[mistake[1]]]
        == best.proba[best.predicted != codes][
            np.arange((best.predicted != codes).sum()), codes[best.predicted != codes]
        ].min()
    )
    sx.write_report(nothing_else, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("for a row of which nothing is known it is") == 2 and "The surest mistake, row" in page
    machine = compare(table(), "kind", families=["qda"], cv=2)
    assert machine.explained == []


def test_rows_of_curved_models_are_not_explained_by_parts(found):
    model = next(one.model for one in found.candidates if one.family == "qda")
    with pytest.raises(ValueError, match="explained by parts"):
        explain_row(model, table(), 0)
    with pytest.raises(ValueError, match="There is no row 300"):
        explain_row(found.candidates[0].model, table(), 300)


def test_explain_from_the_command_line(found, tmp_path):
    model = next(one.model for one in found.candidates if one.family == "logistic")
    sx.save_model(model, tmp_path / "m.safetensors")
    table().to_csv(tmp_path / "t.csv", index=False)
    shown = CliRunner().invoke(app, ["explain", str(tmp_path / "m.safetensors"), str(tmp_path / "t.csv"), "--row", "8"])
    assert shown.exit_code == 0, shown.stderr
    one = explain_row(model, table(), 7)
    assert f"decided to be {one.decided}" in shown.stdout and f"{one.pushes[0][2]:+.3f}" in shown.stdout


# -- is linear enough? --------------------------------------------------------------------------------------------------


def test_curved_features_are_hinges_and_products():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(50, 2)), rng.integers(0, 2, 50)])
    features = CurvedFeatures().fit(X)
    Z = features.transform(X)
    knots = np.quantile(X[:, :2], [0.25, 0.5, 0.75], axis=0)
    expected = [X, *(np.maximum(X[:, [j]] - knots[:, j], 0) for j in (0, 1))]
    products = [X[:, [i]] * X[:, [j]] for i, j in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(Z, np.hstack([*expected, *products]))
    assert CurvedFeatures(most_paired=2).fit_transform(X).shape[1] == 9


def test_a_curved_model_follows_an_interaction_and_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    frame["y"] = frame["a"] * frame["b"] > 0
    straight = TableModel.fit(frame, "y", sx.LogisticRegression(), family="logistic")
    curved = TableModel.fit(frame, "y", CURVED.build(C=1.0), family=CURVED.name)
    right = [float((model.predict(frame) == frame["y"]).mean()) for model in (straight, curved)]
    assert right[0] < 0.7 < 0.9 < right[1]
    sx.save_model(curved, tmp_path / "m.safetensors")
    again = sx.load_model(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict_proba(frame), curved.predict_proba(frame))


def made(values):
    values = np.asarray(values)
    scores = {"log_loss": Score(float(values.mean()), 0.01, values)}
    return Candidate("lda", "LDA", 3, scores, 0.0, {}, None, "", "", np.zeros(0, dtype=int))  # type: ignore[arg-type]  # no model is needed


@pytest.mark.parametrize(
    "boosted, words, worth",
    [
        ([0.20, 0.21, 0.19], "No: a non-linear model (gradient boosting) gains 0.1 ±", True),
        ([0.299, 0.299, 0.299], "Nearly: ", False),
        ([0.35, 0.36, 0.2], "Yes: ", False),
    ],
)
def test_what_boosting_gains_is_weighed_by_its_error_and_the_margin(boosted, words, worth):
    folds = np.array(boosted)
    found = judged({"log_loss": Score(folds.mean(), 0.0, folds)}, made([0.3, 0.3, 0.3]), "log_loss", 3, 0.007)
    assert found.sentence.startswith(words) and found.worth is worth
    assert found.gain == pytest.approx(0.3 - folds.mean())


def test_where_linear_is_not_enough_curves_are_tried_and_boosting_is_never_recommended():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(240, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame["a"] * frame["b"] + 0.2 * rng.normal(size=240) > 0, "u", "v")
    found = compare(frame, "y", cv=2)
    assert found.nonlinear.worth and "Splines and products of columns were tried" in found.nonlinear.sentence
    by_family = {one.family: one for one in found.candidates}
    curved, logistic = by_family["logistic-curved"], by_family["logistic"]
    assert curved.scores["log_loss"].mean < logistic.scores["log_loss"].mean - 0.2
    assert "gradient boosting, for comparison" in str(found) and "boosting" not in found.recommended.label
    assert len(found.table()) == len(found.candidates)
