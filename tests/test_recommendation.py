"""What is recommended and why, on tables that mislead; what a comparison is asked for in unusual words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC as ReferenceSVC
from typer.testing import CliRunner

from separatrix import LinearSVC, compare
from separatrix.cli.main import app
from separatrix.comparison.costs import read_loss
from separatrix.comparison.families import FAMILIES, build
from separatrix.comparison.fitting import certificate_of, train
from separatrix.comparison.folds import inner_folds
from separatrix.comparison.measures import Score, one_mistake, standard_error
from separatrix.comparison.scores import Candidate, rank, recommend

PENGUINS = Path(__file__).resolve().parents[1] / "examples" / "data" / "penguins.csv"


def score(values):
    values = np.asarray(values, dtype=float)
    return Score(values.mean(), standard_error(values, len(values)), values)


def made(family, values, by="log_loss", accuracy=(0.5, 0.5)):
    """A candidate of these scores; no model is needed to rank."""
    scores = {"accuracy": score(accuracy), by: score(values)}
    simplicity = FAMILIES[family].simplicity
    return Candidate(family, family, simplicity, scores, 0.0, {}, None, "", "", np.zeros(0, dtype=int))  # type: ignore[arg-type]  # as above


def recommended(candidates, by="log_loss", margin=0.0):
    n_folds = len(candidates[0].scores[by].folds)
    ordered = rank(candidates, by, n_folds, margin)
    return recommend(ordered, by, n_folds, margin)


@pytest.fixture(scope="module")
def iris():
    return load_iris(as_frame=True).frame


# -- ties -------------------------------------------------------------------------------------------------------------


def test_one_fold_that_fails_is_no_tie():
    # One difference D in k folds has the mean D/k and the standard error D/k, whatever D is.
    broken, best = made("naive-bayes", [0.29, 0.29, 0.29, 0.29, 30.0]), made("logistic", [0.3] * 5)
    chosen, reason = recommended([broken, best])
    assert chosen is best and best.tied and not broken.tied
    assert "behind by 5.9 ± 8.9 over the folds, more than the error of the best" in reason


def test_equal_to_all_digits_is_a_tie():
    shares, best = made("baseline", [np.log(6.0)] * 2), made("bayesian-logistic", [np.log(6.0) - 2e-12] * 2)
    assert recommended([shares, best])[0] is shares and best.rank == 1 and shares.tied


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_unit_of_costs_makes_no_difference(unit):
    best, near = made("qda", [1.0 * unit, 2.0 * unit], "cost"), made("lda", [1.1 * unit, 2.1 * unit], "cost")
    assert recommended([near, best], "cost")[0] is best and not near.tied


def test_a_simpler_one_is_shown_to_be_as_good_before_it_is_recommended():
    logistic = made("logistic", [0.60, 0.62, 0.64, 0.66])
    sure, unsure = (
        made("lda", [0.603, 0.622, 0.642, 0.663]),
        made("lda", [0.50, 0.72, 0.54, 0.76]),
    )  # 0.0025 and 0 behind
    for lda, chosen in ((sure, sure), (unsure, logistic)):
        ordered = rank([lda, logistic], "log_loss", 4, 0.007)
        assert lda.tied and recommend(ordered, "log_loss", 4, 0.007)[0] is chosen


def test_what_one_unseen_mistake_would_undo_is_not_recommended():
    for mistake, ahead in ((0.2, False), (0.05, True)):  # QDA is ahead by 0.0975
        logistic = replace(made("logistic", [0.10, 0.12, 0.11, 0.12]), mistake=0.02)
        qda = replace(made("qda", [0.01, 0.02, 0.02, 0.01]), mistake=mistake)
        chosen, reason = recommended([qda, logistic])
        assert chosen is (qda if ahead else logistic) and logistic.tied is not ahead
        assert ("one wrong one more" in reason) is not ahead
        costs = [replace(one, scores={**one.scores, "cost": one.scores["log_loss"]}) for one in (qda, logistic)]
        assert recommended(costs, "cost")[0] is costs[0]  # a cost is bounded, whatever a model is sure of


def test_what_is_simpler_but_too_sure_is_not_as_good():
    for mistake, as_good in ((0.2, False), (0.02, True)):
        logistic = replace(made("logistic", [0.10, 0.12, 0.11, 0.12]), mistake=0.02)
        simpler = replace(made("lda", [0.10, 0.12, 0.11, 0.12]), mistake=mistake)
        assert simpler.simplicity < logistic.simplicity
        assert recommended([logistic, simpler], margin=0.01)[0] is (simpler if as_good else logistic)


def test_a_curved_rule_that_was_never_wrong_on_few_rows_is_not_taken_to_be_never_wrong():
    wine = load_wine(as_frame=True).frame
    parts = StratifiedKFold(3, shuffle=True, random_state=0).split(wine, wine["target"])
    families = ["baseline", "naive-bayes", "logistic", "bayesian-logistic", "qda"]
    for inside, outside in parts:
        found = compare(wine.iloc[inside], "target", families=families)
        proba = found.best.predict_proba(wine.iloc[outside])
        assert log_loss(wine["target"].iloc[outside], proba) < 0.15, found.recommended.family


@given(st.integers(0, 2**16))
def test_a_mistake_of_weighted_rows_is_that_of_repeated_ones(seed):
    rng = np.random.default_rng(seed)
    proba, weights = rng.dirichlet([0.3] * 3, size=12), rng.integers(1, 4, size=12)
    assert one_mistake(proba, weights.astype(float)) == pytest.approx(one_mistake(np.repeat(proba, weights, axis=0)))
    assert one_mistake(np.eye(3)[rng.integers(3, size=12)]) < 4.0  # a probability of 0 is one that rounds to it


def test_the_least_mean_changes_nothing_unless_it_is_shown():
    logistic = made("logistic", [0.60, 0.62, 0.64, 0.66])
    for values, ahead in (
        ([0.50, 0.72, 0.54, 0.70], False),
        ([0.58, 0.60, 0.63, 0.64], True),
        ([0.597, 0.617, 0.637, 0.657], False),
    ):
        machine = made("svm-rbf", values)
        chosen, reason = recommend(rank([machine, logistic], "log_loss", 4, 0.007), "log_loss", 4, 0.007)
        assert machine.rank == 1 and chosen is (machine if ahead else logistic)
        words = (
            "is ahead of logistic by"
            if ahead
            else "Nothing is shown to be better, by more than the error and the margin"
        )
        assert words in reason


def test_a_reference_that_fails_in_one_fold_is_left():
    logistic, lda = made("logistic", [0.3, 0.3, 0.3, 0.3, 30.0]), made("lda", [0.31] * 5)
    assert recommended([logistic, lda])[0] is lda


values = st.lists(st.floats(0.0, 10.0), min_size=4, max_size=4)


@given(
    st.dictionaries(st.sampled_from(sorted(FAMILIES)), values, min_size=1), st.sampled_from(["log_loss", "accuracy"])
)
def test_nothing_is_shown_to_be_better_than_the_recommended(folds, by):
    candidates = [made(family, own, by, accuracy=own) for family, own in folds.items()]
    chosen, reason = recommended(candidates, by)
    assert reason.startswith(chosen.label[0].upper())
    sign, k = -1.0 if by == "accuracy" else 1.0, len(chosen.scores[by].folds)
    if chosen.family == "baseline":
        return
    for other in candidates:
        differences = sign * (chosen.scores[by].folds - other.scores[by].folds)
        error = min(np.std(differences, ddof=1) / np.sqrt(k), other.scores[by].standard_error)
        if other.family != "baseline":
            error *= np.sqrt(1 + k / (k - 1))
            assert differences.mean() <= error + 2e-6 * max(
                1.0, abs(other.scores[by].mean), abs(chosen.scores[by].mean)
            )


def test_heavy_tails_do_not_recommend_what_is_worse_than_the_class_shares():
    rng = np.random.default_rng(27)
    k = np.arange(60) % 3
    frame = pd.DataFrame({"a": rng.standard_t(3, 60) + 2 * k, "b": rng.standard_t(3, 60) + k, "y": k})
    found = compare(frame, "y", families=["baseline", "naive-bayes", "lda", "logistic", "qda"])
    by_family = {one.family: one for one in found.candidates}
    assert by_family["naive-bayes"].scores["log_loss"].mean > np.log(3.0) and not by_family["naive-bayes"].tied
    # Linear discriminant analysis is tied, and neither shown to be better nor to be as good.
    assert found.recommended.family == "logistic" and by_family["lda"].tied
    assert found.recommended.scores["log_loss"].mean < np.log(3.0)


# -- small tables -----------------------------------------------------------------------------------------------------


def test_a_tied_linear_rule_takes_the_place_of_a_curved_one():
    # Ties in level of flexibility are by the standard error, ties within it by the margin.
    lda, logistic = made("lda", [0.60, 0.64, 0.62, 0.66]), made("logistic", [0.57, 0.60, 0.58, 0.63])
    machine = made("svm-rbf", [0.50, 0.62, 0.57, 0.64])
    chosen, reason = recommended([lda, logistic, machine])
    assert machine.rank == 1 and logistic.tied and chosen is logistic
    assert "svm-rbf" in reason
    lda = made("lda", [0.571, 0.601, 0.581, 0.631])
    ordered = rank([lda, logistic, machine], "log_loss", 4, 0.005)
    assert recommend(ordered, "log_loss", 4, 0.005)[0] is lda


def test_a_gain_over_the_class_shares_counts_by_the_margin_for_shrunk_rules_only():
    shares = made("baseline", [0.65, 0.65, 0.65, 0.65])
    for family, gain, found in (("logistic", 0.1, True), ("logistic", 0.002, False), ("lda", 0.1, False)):
        one = made(family, 0.65 - gain + np.array([-0.6, 0.5, 0.3, -0.2]))
        ordered = rank([shares, one], "log_loss", 4, 0.0065)
        assert shares.tied and recommend(ordered, "log_loss", 4, 0.0065)[0] is (one if found else shares)


def small_table(rows, slope, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    y = slope * (X[:, 0] - X[:, 1]) + rng.logistic(size=rows) > 0
    return pd.DataFrame(X, columns=list("abcd")).assign(y=np.where(y, "u", "v"))


@pytest.mark.parametrize("rows", [30, 60, 150])
def test_small_tables_of_noise_and_of_a_linear_signal(rows):
    families = ["baseline", "lda", "logistic", "qda"]
    noise = [compare(small_table(rows, 0.0, seed), "y", families=families) for seed in range(4)]
    # One in six samples of noise looks like an association at the level that is asked for; a rule that shrinks loses little.
    assert sum(one.recommended.family == "baseline" for one in noise) >= 2
    assert {one.recommended.family for one in noise} <= {"baseline", "logistic"}
    new = small_table(5_000, 0.0, 99)
    assert np.mean([log_loss(new["y"], one.best.predict_proba(new)) for one in noise]) < np.log(2.0) + 0.04
    for seed in range(2):
        found = compare(small_table(rows, 2.0, seed), "y", families=families)
        assert found.recommended.family in ("lda", "logistic")


def test_small_tables_have_more_folds():
    families = ["baseline", "lda"]
    assert compare(small_table(99, 1.0, 0), "y", families=families).n_folds == 10
    assert compare(small_table(100, 1.0, 0), "y", families=families).n_folds == 5
    assert compare(small_table(60, 1.0, 0), "y", families=families, cv=4).n_folds == 4
    few = pd.concat(
        [small_table(200, 1.0, 0).query("y == 'u'").head(40), small_table(60, 1.0, 1).query("y == 'v'").head(7)]
    )
    found = compare(few, "y", families=families)
    assert found.n_folds == 7 and not found.notes  # what was not asked for is not missed


def test_a_posterior_that_is_no_gaussian_is_named():
    apart = compare(load_wine(as_frame=True).frame, "target", families=["bayesian-logistic"]).recommended
    assert any("Laplace's is far from the posterior" in note for note in apart.notes)
    mixed = compare(small_table(150, 1.0, 0), "y", families=["bayesian-logistic"]).recommended
    assert not any("Laplace" in note for note in mixed.notes)


def test_four_rows_recommend_nothing_absurd():
    frame = pd.DataFrame({"a": [1, 2, 3, 4.5], "b": [1, 0, 3, 7], "y": list("aabb")})
    found = compare(frame, "y", families=["baseline", "naive-bayes", "logistic"])
    assert found.recommended.scores["log_loss"].mean <= np.log(2.0) + 1e-9


def test_penguins():
    found = compare(PENGUINS, "species", families=["lda", "logistic"])
    assert found.recommended.family == "logistic" and [one.tied for one in found.candidates] == [True, False]


# -- what the class shares mean ---------------------------------------------------------------------------------------


def test_a_typo_does_not_prove_that_the_columns_say_nothing():
    rng = np.random.default_rng(3)
    y = np.arange(100) % 2
    a = rng.normal(1.5 * y, 1.0)
    a[0] = 60.0
    found = compare(pd.DataFrame({"a": a, "y": y}), "y", families=["baseline", "naive-bayes"])
    accuracy = found.candidates[1].scores["accuracy"]
    assert found.recommended.family == "baseline" and accuracy.mean - 0.5 > 2 * accuracy.standard_error
    assert "nothing in these columns" not in found.reason
    assert f"the accuracy of naive Bayes is {accuracy}, that of the class shares 0.5 ± 0" in found.reason
    assert "scores disagree. A few confident mistakes, often on outliers" in found.reason


def test_costs_that_no_column_lowers_are_not_called_a_lack_of_evidence():
    shares = made("baseline", [1.0, 1.0], "cost", accuracy=[0.5, 0.5])
    lda = made("lda", [1.0, 1.2], "cost", accuracy=[0.9, 0.92])
    _, reason = recommended([shares, lda], "cost")
    assert reason.endswith("the scores disagree. What mistakes cost is not how many there are.")
    lda = made("lda", [1.0, 1.2], "cost", accuracy=[0.45, 0.65])
    assert recommended([shares, lda], "cost")[1].endswith(
        "nothing in these columns is shown to tell the classes apart."
    )


# -- certificates, penalties, figures ---------------------------------------------------------------------------------


def test_the_perceptron_counts_rows_and_not_decisions():
    X, y = make_blobs(240, 2, centers=12, cluster_std=1.5, random_state=0)
    model = build("perceptron").fit(X, y)
    wrong = int((model.predict(X) != y).sum())
    assert 0 < wrong < model.fit_.certificate.gap  # a row may be wrong for several of the twelve machines
    assert certificate_of(model, X, y) == f"no proof; {wrong} training rows wrong"
    found = compare(pd.DataFrame(X, columns=["a", "b"]).assign(y=y), "y", families=["perceptron"])
    wrong = int((found.best.predict(pd.DataFrame(X, columns=["a", "b"])) != y).sum())
    assert found.candidates[0].certificate == f"no proof; {wrong} training rows wrong"
    right = X[:, 0] > 0
    assert certificate_of(build("perceptron").fit(X[:, :1], right), X[:, :1], right) == "no training row wrong"


def test_the_linear_machine_is_tuned_as_it_is_built():
    X, y = make_blobs(90, 2, centers=4, cluster_std=2.5, random_state=0)
    grid, cv = {"C": [0.01, 0.1, 1.0, 10.0]}, inner_folds(y, 3, 0)
    pairs = GridSearchCV(ReferenceSVC(kernel="linear"), grid, cv=cv).fit(X, y).best_params_
    rest = GridSearchCV(LinearSVC(random_state=0), grid, cv=cv).fit(X, y).best_params_
    assert pairs != rest
    family = FAMILIES["linear-svm"]
    assert family.beyond is not None
    assert train(family, family.build, X, y, 0).parameters == pairs
    # What stands in for many rows is tuned itself, also in folds that have few.
    assert train(replace(family, limit=50), family.beyond, X, y, 0).parameters == rest


def test_rounding_errors_are_shown_as_zero():
    assert str(Score(4.302e-16, 0.0, np.zeros(2))) == "0 ± 0" and str(Score(-1e-17, 2e-16, np.zeros(2))) == "0 ± 0"
    assert str(Score(1.5e-9, 3e-10, np.zeros(2))) == "1.5e-09 ± 3e-10"


# -- costs ------------------------------------------------------------------------------------------------------------


def costs_file(folder, text):
    path = folder / "costs.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "classes, first, second",
    [((0, 1), "0.0", "1.0"), ((0, 1), " 0", "+1"), ((1.5, 2.0), "1.50", "2"), ((False, True), "FALSE", "true")],
)
def test_costs_may_spell_classes_as_the_data_do(tmp_path, classes, first, second):
    path = costs_file(tmp_path, f"truth,{first},{second}\n{second},5,0\n{first},0,1\n")
    loss, actions = read_loss(path, classes)
    assert loss.tolist() == [[0.0, 1.0], [5.0, 0.0]]
    assert actions == list(classes) and [type(one) for one in actions] == [type(one) for one in classes]


def test_costs_and_data_of_one_spelling(iris, tmp_path):
    data = tmp_path / "data.csv"
    frame = iris[iris["target"] < 2].assign(target=lambda table: table["target"].astype(float))
    frame.to_csv(data, index=False)
    path = costs_file(tmp_path, "truth,0.0,1.0,ask\n0.0,0,1,0.5\n1.0,5,0,0.5\n")
    found = compare(data, "target", families=["lda"], loss=path)
    assert found.actions == [0, 1, "ask"] and found.loss.tolist() == [[0, 1, 0.5], [5, 0, 0.5]]


def test_two_spellings_of_a_class_are_two_rows_of_it(tmp_path):
    with pytest.raises(ValueError, match=r"costs\.csv has more than one row of class 1;"):
        read_loss(costs_file(tmp_path, "truth,x\n0,1\n1,2\n1.0,3\n"), [0, 1])


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_decimal_commas_where_they_separate_nothing(tmp_path, delimiter):
    text = "truth,stay,go\na,0,1_5\nb,-0_25,1000\n".replace(",", delimiter).replace("_", ",")
    assert read_loss(costs_file(tmp_path, text), ["a", "b"])[0].tolist() == [[0.0, 1.5], [-0.25, 1000.0]]


@pytest.mark.parametrize(
    "text, words",
    [
        ('truth,x\na,"1,5"\nb,2\n', r"is '1,5'; give a number"),
        ("truth;x\na;1,5\nb;2.5\n", r"of 'x' when the truth is 'b' is '2\.5', which can be read in two ways"),
        ("truth;x\na;1,000\nb;2\n", r"is '1,000', which can be read in two ways"),
        ("truth;x\na;1,5 EUR\nb;2\n", r"is '1,5 EUR'; give a number"),
    ],
)
def test_commas_that_may_mean_something_else_are_refused(tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        read_loss(costs_file(tmp_path, text), ["a", "b"])


def test_a_loss_without_probabilities_is_said_to_be_of_no_use(iris):
    found = compare(iris, "target", families=["perceptron", "least-squares"], loss="zero-one")
    assert found.ranked_by == "accuracy"
    assert any(note.startswith("The loss is not used: expected costs need probabilities") for note in found.notes)
    for families, loss in ((["perceptron", "lda"], "zero-one"), (["perceptron"], None)):
        found = compare(iris, "target", families=families, loss=loss)
        assert not any("loss is not used" in note for note in found.notes)


# -- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [".", "", "/", Path(".")])
def test_a_folder_is_named_as_one(path):
    with pytest.raises(ValueError, match=r"is a folder; give a \.csv"):
        compare(path, "y")
    result = CliRunner().invoke(app, ["compare", str(path), "--target", "y"])
    assert result.exit_code == 1 and "is a folder; give a .csv" in result.stderr


def test_families_in_a_string(iris):
    assert compare(iris, "target", families="lda").recommended.family == "lda"
    found = compare(iris, "target", families="lda, baseline,")
    assert {one.family for one in found.candidates} == {"lda", "baseline"}
    with pytest.raises(ValueError, match="families is empty"):
        compare(iris, "target", families=",")


def test_a_comma_too_many_on_the_command_line(tmp_path):
    arguments = ["compare", str(PENGUINS), "--target", "sex", "--families", "lda,", "--out", str(tmp_path), "--quiet"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    assert "Recommended: lda." in result.stdout


@pytest.mark.parametrize("seed", [None, -1, 0.5, 2**32])
def test_a_seed_is_a_whole_number(iris, seed):
    with pytest.raises(ValueError, match=r"random_state=.*: give a whole number from 0"):
        compare(iris, "target", families=["lda"], random_state=seed)
    assert compare(iris, "target", families=["lda"], random_state=2**32 - 1).folds.max() == 4
