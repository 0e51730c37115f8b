"""Comparisons of tables that mislead: rare holes and levels, columns that separate by themselves, many classes, Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from separatrix import LinearDiscriminantAnalysis
from separatrix.comparison.comparison import compare
from separatrix.comparison.families import FAMILIES
from separatrix.comparison.headline import headline
from separatrix.comparison.search import climb, least_loss
from separatrix.comparison.table_model import TableModel
from separatrix.comparison.why.curved import CURVED
from separatrix.geometry.programmes import OutOfTime, aside
from separatrix.geometry.separation import separability
from separatrix.report.answers import more_rows

N = 600


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(1)
    y = np.arange(N) % 2
    X = rng.normal(size=(N, 3)) + np.where(y[:, None] == 1, 0.8, -0.8) * np.array([1.0, 0.5, 0.0])
    X[:, 0] *= np.where(y == 1, 2.0, 1.0)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.where(y == 1, "yes", "no"))


def losses(found):
    return {one.family: one.scores["log_loss"].mean for one in found.candidates}


@pytest.mark.parametrize("change", ["hole", "level", "flag"])
def test_one_row_does_not_ruin_gaussian_families(clean, change):
    families = ["qda", "rda", "lda", "logistic"]
    before = losses(compare(clean, "y", families=families))
    frame = clean.copy()
    if change == "hole":
        frame.loc[17, "c"] = np.nan
    elif change == "level":
        frame["colour"] = np.resize(["red", "blue", "blue"], N)
        frame.loc[33, "colour"] = "green"
    else:
        frame["flag"] = np.arange(N) == 33
    found = compare(frame, "y", families=families)
    after = losses(found)
    assert set(after) == set(families), found.failures
    for name, loss in before.items():
        assert after[name] < loss + 0.02


def test_a_gaussian_family_says_which_indicators_it_does_without(clean):
    frame = clean.assign(flag=np.arange(N) % 20 == 0)
    found = compare(frame, "y", families=["qda", "lda"])
    notes = {one.family: one.notes for one in found.candidates}
    assert any("'flag'" in note for note in notes["qda"]) and not any("'flag'" in note for note in notes["lda"])
    qda = next(one for one in found.candidates if one.family == "qda")
    assert qda.model.encoder.feature_names_ == ["a", "b", "c"]
    assert qda.model.predict_proba(frame).shape == (N, 2)


def test_a_level_of_one_class_is_named_with_its_rows(clean):
    at = np.flatnonzero(clean["y"] == "yes")[:9]
    frame = clean.assign(site=np.where(np.isin(np.arange(N), at), "B", np.resize(["A", "C", "C"], N)))
    found = compare(frame, "y", families=["baseline", "logistic"])
    assert "'site = B' occurs with class 'yes' only (9 rows)" in found.separability
    assert "The other rows overlap." in found.separability


def test_quasi_separation_counts_the_rows_it_sets_apart():
    sentence = str(separability([[0.0], [1.0], [1.0], [1.0], [2.0], [3.0]], ["n", "n", "n", "y", "y", "y"]))
    assert "sets apart 3 of 6 rows (the other 3 lie on its boundary)" in sentence


def test_a_level_that_never_occurs_with_a_class_is_named(clean):
    rng = np.random.default_rng(3)
    frame = clean.assign(city=rng.choice(["Bern", "Oslo", "Rome"], N, p=[0.6, 0.3, 0.1]))
    frame.loc[frame.index % 7 == 0, "y"] = "maybe"
    frame.loc[(frame["y"] == "maybe") & (frame["city"] == "Rome"), "city"] = "Oslo"
    n = int((frame["city"] == "Rome").sum())
    found = compare(frame, "y", families=["logistic"])
    assert found.recommended.separability == "quasi"
    assert f"'city = Rome' ({n} rows) never occurs with class 'maybe': without a penalty" in found.separability
    assert found.separability.endswith("Otherwise the classes overlap.") and "boundary" not in found.separability


def test_the_headline_names_a_rare_class_and_no_even_one():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(10), 30)
    frame = pd.DataFrame(rng.normal(size=(300, 3)) + codes[:, None], columns=list("abc")).assign(y=codes)
    assert "rows of" not in headline(compare(frame, "y", families=["lda"]))
    assert "; of the 10 rows of 9 it finds" in headline(compare(frame.head(280), "y", families=["lda"]))


def test_separation_by_chance_is_not_said_beside_a_recommended_baseline():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(40, 40))).add_prefix("x").assign(y=np.arange(40) % 2)
    assert "likely for any labels" in compare(frame, "y", families=["logistic"]).separability
    found = compare(frame, "y", families=["baseline"])
    assert found.candidates[0].separability == "complete" and "gets every row right" not in found.separability


def test_a_column_constant_within_classes_is_refused_by_discriminants_and_used_by_others():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    frame = pd.DataFrame({"noise": rng.normal(size=200), "more": rng.normal(size=200), "k": 1.25 + 2.0 * y, "y": y})
    found = compare(frame, "y", families=["lda", "qda", "rda", "logistic", "naive-bayes"])
    for name in ("lda", "qda"):
        assert "'k' is constant within each class" in found.failures[name]
    assert {one.family: one.scores["accuracy"].mean for one in found.candidates} == dict.fromkeys(
        ["naive-bayes", "rda", "logistic"], 1.0
    )


class Slow(LinearDiscriminantAnalysis):
    def fit(self, X, y):
        time.sleep(30.0)
        return super().fit(X, y)


def test_a_family_that_takes_too_long_is_named(clean, monkeypatch):
    monkeypatch.setitem(FAMILIES, "qda", replace(FAMILIES["qda"], build=Slow))
    found = compare(clean, "y", families=["lda", "qda"], stage_seconds=1.0)
    assert found.failures["qda"].startswith("It was given up in fold 1, after 1 s in all")
    assert [one.family for one in found.candidates] == ["lda"]


@pytest.mark.parametrize("stuck", [lambda: time.sleep(30), lambda: [time.sleep(0.01) for _ in range(3000)]])
def test_work_aside_ends_by_its_deadline(stuck):
    start = time.perf_counter()
    with pytest.raises(OutOfTime, match=r"after 0\.2 s"):
        aside(lambda _: stuck(), 0.2)
    assert time.perf_counter() - start < 5.0


def test_work_aside_gives_answers_and_errors():
    assert aside(lambda deadline: deadline.left > 0.0, 60.0)
    with pytest.raises(ZeroDivisionError):
        aside(lambda _: 1 // 0)


def _processor_seconds(pid: int) -> float:
    """What a process has used of all cores."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel what the process has used")
@pytest.mark.parametrize("stage", ["separability", "fold 1", "learning words"])
def test_fifty_classes_obey_ctrl_c_at_once(tmp_path, stage):
    rng = np.random.default_rng(1)
    y = np.arange(2000) % 50
    X = rng.normal(size=(50, 10))[y] + rng.normal(size=(2000, 10))
    frame = pd.DataFrame(X).add_prefix("x").round(4).assign(y=[f"c{k:02d}" for k in y])
    if stage == "learning words":
        frame = frame[["y"]].assign(
            words=[" ".join(f"word{i}" for i in (1000 * rng.random(20) ** 3).astype(int)) for _ in y]
        )
    frame.to_csv(tmp_path / "fifty.csv", index=False)
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        "import sys, separatrix.cli.progress as p; p._SECONDS_BETWEEN_LINES = 0.0\n"
        "from separatrix.cli.main import main; main()"
    )
    options = ["--target", "y", "--families", "logistic-l1", "--stage-seconds", "2", "--out", str(tmp_path / "out")]
    command = [sys.executable, "-c", code, "compare", str(tmp_path / "fifty.csv"), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        while stage not in (line := process.stderr.readline()):
            assert line, "it ended before the stage began"
        time.sleep(0.5)
        before = _processor_seconds(process.pid)
        process.send_signal(signal.SIGINT)
        start = time.perf_counter()
        _, status, used = os.wait4(process.pid, 0)
        took, worked = time.perf_counter() - start, used.ru_utime + used.ru_stime - before
        assert os.waitstatus_to_exitcode(status) == 130 and "Interrupted" in process.stderr.read()
    assert worked < 2.0  # a second of two cores, however busy the machine is with other work
    assert took < 20.0
    assert not (tmp_path / "out").exists()


def test_with_losses_every_figure_is_of_the_rule_that_is_saved(clean):
    loss = {"no": {"no": 0, "yes": 1}, "yes": {"no": 20, "yes": 0}}
    found = compare(clean, "y", families=["logistic", "naive-bayes"], loss=loss)
    for one in found.candidates:
        taken = found.classes[one.predicted]
        np.testing.assert_array_equal(taken, np.array(found.actions)[one.taken])
        right = np.mean([(taken == found.classes[found.codes])[found.folds == k].mean() for k in range(5)])
        assert one.scores["accuracy"].mean == pytest.approx(right)
        again = one.fold_models[0]
        rule = TableModel(
            again.schema, again.encoder, again.estimator, family="x", loss=found.loss, actions=found.actions
        )
        left_out = found.folds == 0
        np.testing.assert_array_equal(rule.predict(found.rows.take(left_out)), taken[left_out])
    assert any("'yes' where the probability of class 'yes' is above 0.0476" in note for note in found.notes)


def test_actions_that_are_no_classes_leave_the_figures_to_the_most_probable_class(clean):
    loss = {"no": {"treat": 1, "wait": 0}, "yes": {"treat": 0, "wait": 5}}
    found = compare(clean, "y", families=["logistic"], loss=loss)
    one = found.candidates[0]
    np.testing.assert_array_equal(one.predicted, one.proba.argmax(axis=1))
    assert any("not all actions are classes" in note for note in found.notes)


def test_row_numbers_are_those_of_the_file(clean, tmp_path):
    frame = clean.copy()
    frame["y"] = frame["y"].astype(object)
    frame.loc[[0, 3, 10], "y"] = None
    frame.loc[40, "a"] = 1e3  # far from every class
    frame.to_csv(tmp_path / "table.csv", index=False)
    found = compare(tmp_path / "table.csv", "y", families=["lda"])
    assert found.rows.number_of(int(found.outliers.rows[0])) == 41
    lines = (tmp_path / "table.csv").read_text().splitlines()
    for at in (0, 5, 100):
        assert float(lines[found.rows.number_of(at)].split(",")[1]) == found.rows.columns["b"][at]


@pytest.mark.parametrize("weak", [True, False])
def test_a_penalty_at_the_end_of_its_grid_is_tried_beyond(weak):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 12))
    y = X[:, 0] + 1e-3 * X[:, 1] > 0 if weak else rng.permutation(np.arange(400) % 2)
    chosen = FAMILIES["logistic"].tune(X, y.astype(int), 0)["C"]
    assert chosen > 100.0 if weak else chosen < 1e-2


def test_an_end_that_cannot_be_passed_is_said():
    with pytest.warns(UserWarning, match="C=1e\\+04 is the largest that was tried"):
        assert least_loss(np.logspace(-1, 1, 5), lambda Cs: -Cs) == pytest.approx(1e4)
    with pytest.warns(UserWarning, match="gamma is at the end"):
        climb(lambda at: at[1], (0, 0), ("C", "gamma"))


def test_gamma_is_tuned():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(500, 2))
    y = ((np.floor(3 * X[:, 0]) + np.floor(3 * X[:, 1])) % 2).astype(int)  # a chessboard
    chosen = FAMILIES["svm-rbf"].tune(X, y, 0)
    fitted = {gamma: SVC(C=chosen["C"], gamma=gamma) for gamma in (chosen["gamma"], "scale")}
    right = [cross_val_score(machine, X, y, cv=3).mean() for machine in fitted.values()]
    assert right[0] > right[1]


def _ring(n=300):
    """Two classes that only a curved rule tells apart."""
    X = np.random.default_rng(2).normal(size=(n, 2))
    return pd.DataFrame(X, columns=["a", "b"]).assign(y=np.where((X**2).sum(axis=1) < 1.4, "in", "out"))


def test_pictures_of_the_table_that_take_too_long_are_named(clean, monkeypatch):
    monkeypatch.setattr("separatrix.comparison.validation.rank_within_classes", lambda *_: time.sleep(30.0))
    monkeypatch.setattr("separatrix.comparison.validation.discriminant_plane", lambda *_: time.sleep(30.0))
    start = time.perf_counter()
    found = compare(clean, "y", families=["logistic"], stage_seconds=1.0)
    assert "not measured. It was given up after 1 s" in found.outliers
    assert "was not found. It was given up after 1 s" in found.plane
    assert time.perf_counter() - start < 25.0


def test_a_learning_curve_that_takes_too_long_is_named(clean, monkeypatch):
    def build(**parameters):
        calls.append(1)
        return Slow() if len(calls) > 12 else LinearDiscriminantAnalysis()

    calls = []
    monkeypatch.setitem(FAMILIES, "lda", replace(FAMILIES["lda"], build=build))
    found = compare(clean, "y", families=["lda"], stage_seconds=2.0)  # five folds and all rows before the curve
    given_up = "The learning curve was given up after 2 s; raise stage_seconds (--stage-seconds) to wait."
    assert given_up in found.notes and len(found.learning_curve["sizes"]) == 2  # 10 % and, of known models, all rows
    assert more_rows(found) == f"That cannot be said. {given_up}"


def test_gradient_boosting_that_takes_too_long_is_named(monkeypatch):
    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", lambda *_, **__: time.sleep(30.0))
    wanted = {name: FAMILIES[name] for name in ("baseline", "logistic")}
    monkeypatch.setattr("separatrix.comparison.families.FAMILIES", wanted)
    found = compare(_ring(), "y", stage_seconds=1.0)
    assert "given up after 1 s" in found.failures["gradient boosting, for comparison"]
    assert found.nonlinear is None and len(found.candidates) == 2


@pytest.mark.parametrize("stage", ["folds", "all rows"])
def test_splines_and_products_that_take_too_long_are_named(monkeypatch, stage):
    def build(**parameters):
        calls.append(1)
        return Slow() if stage == "folds" or len(calls) > 5 else CURVED.build(**parameters)

    calls = []
    wanted = {name: FAMILIES[name] for name in ("baseline", "logistic")}
    monkeypatch.setattr("separatrix.comparison.families.FAMILIES", wanted)
    monkeypatch.setattr("separatrix.comparison.why.nonlinear.CURVED", replace(CURVED, build=build))
    found = compare(_ring(), "y", stage_seconds=6.0)
    assert "given up" in found.failures["logistic-curved"]
    assert {one.family for one in found.candidates} == {"baseline", "logistic"}
    assert found.nonlinear is not None and found.nonlinear.worth
