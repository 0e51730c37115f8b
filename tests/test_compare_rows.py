"""Rows that count more than once, and rows in the order of time."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from separatrix import OrderedLogisticRegression, compare, load_model, save_model
from separatrix.cli.main import app
from separatrix.comparison.families import FAMILIES
from separatrix.comparison.fitting import train
from separatrix.comparison.folds import forward_folds
from separatrix.comparison.measures import measure
from separatrix.comparison.validation import Task, cross_validate, start_trials
from separatrix.report.page import write_report
from separatrix.report.sections import cross_table
from separatrix.tables.schema import TableSchema

N = 120


@pytest.fixture(scope="module")
def visits():
    rng = np.random.default_rng(4)
    y = np.arange(N) % 2
    return pd.DataFrame(
        {
            "a": rng.normal(size=N) + y,
            "b": rng.normal(size=N),
            "c": np.where(rng.random(N) < 0.7, "u", "v"),
            "w": rng.integers(1, 4, N),
            "t": rng.permutation(N),
            "y": np.where(y == 1, "ill", "well"),
        }
    )


def task_of(frame, folds, weights):
    schema, rows, codes = TableSchema.infer_and_read(frame, "y")
    return Task(rows, schema, codes, np.array(schema.classes), folds[None], None, None, 0, weights=weights)


def test_a_weight_is_the_row_so_often_in_fits_and_scores(visits):
    frame, weights = visits[["a", "b", "c", "y"]], visits["w"].to_numpy(dtype=float)
    folds = np.random.default_rng(0).permutation(N) % 4
    often = np.repeat(np.arange(N), visits["w"])
    # Families that choose nothing by folds of rows, in which copies would be parted.
    names = ["baseline", "naive-bayes", "lda", "qda", "bayesian-logistic"]
    found = []
    for task in (task_of(frame, folds, weights), task_of(frame.iloc[often], folds[often], None)):
        trials, failures, _ = start_trials([FAMILIES[name] for name in names], task)
        failures |= cross_validate(task, trials, lambda _: None)
        assert not failures
        n_classes = len(task.classes)
        found.append(
            {
                name: measure(task.codes, task.folds, one.predicted, one.proba, None, None, n_classes, task.weights)
                for name, one in trials.items()
            }
        )
    for name in names:
        for score, value in found[0][name].items():
            np.testing.assert_allclose(
                value.folds, found[1][name][score].folds, rtol=1e-6, atol=1e-7, err_msg=f"{name} {score}"
            )


@pytest.mark.parametrize("name", ["logistic", "logistic-l1", "least-squares", "rda", "linear-svm", "svm-rbf"])
def test_weights_reach_every_fit(visits, name):
    """With given parameters a fit to weighted rows is that to repeated rows."""
    rng, family = np.random.default_rng(1), FAMILIES[name]
    X, y = visits[["a", "b"]].to_numpy(), (visits["y"] == "well").to_numpy().astype(int)
    often = np.repeat(np.arange(N), visits["w"])
    given = {"rda": {"alpha": 0.5, "gamma": 0.3}, "least-squares": {"alpha": 2.0}}.get(name, {"C": 0.3})
    if "svm" in name:
        given = {**given, "calibration": None, "tol": 1e-8}
    weighted = train(family, family.build, X, y, 0, given, weights=visits["w"].to_numpy(dtype=float)).estimator
    repeated = train(family, family.build, X[often], y[often], 0, given).estimator
    some = rng.normal(size=(20, 2))
    if name == "svm-rbf":  # gamma="scale" is of the rows
        given["gamma"] = 0.5
        weighted = train(family, family.build, X, y, 0, given, weights=visits["w"].to_numpy(dtype=float)).estimator
        repeated = train(family, family.build, X[often], y[often], 0, given).estimator
    scores = [model.decision_function(some) for model in (weighted, repeated)]
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-4)


def test_the_penalty_goes_by_weight(visits):
    """Rows that all count a hundred times need a penalty that counts a hundred times: copies of a row share a fold."""
    tune, weights = FAMILIES["logistic"].tune, visits["w"].to_numpy(dtype=float)
    X, y = visits[["a", "b"]].to_numpy(), (visits["y"] == "well").to_numpy().astype(int)
    assert tune(X, y, 0, np.ones(N))["C"] == pytest.approx(tune(X, y, 0, None)["C"], rel=1e-6)
    assert tune(X, y, 0, 100.0 * weights)["C"] == pytest.approx(tune(X, y, 0, weights)["C"] / 100.0, rel=1e-6)


@pytest.mark.parametrize("name", ["least-squares", "rda"])
def test_leave_one_out_leaves_out_one_of_the_copies(visits, name):
    tune, often = FAMILIES[name].tune, np.repeat(np.arange(N), visits["w"])
    X, y = visits[["a", "b"]].to_numpy(), (visits["y"] == "well").to_numpy().astype(int)
    weighted, repeated = tune(X, y, 0, visits["w"].to_numpy(dtype=float)), tune(X[often], y[often], 0, None)
    assert weighted == pytest.approx(repeated, rel=1e-6)


def test_a_comparison_by_weight(visits, tmp_path):
    found = compare(visits, "y", weight="w", drop=["t"], families=["logistic", "lda", "baseline"])
    assert {column.name for column in found.schema.used} == {"a", "b", "c"}
    best = found.recommended
    right = (best.predicted == found.codes) @ visits["w"].to_numpy()
    classes = found.classes.tolist()
    cells = cross_table(found.codes, best.predicted, classes, classes, "predicted", found.weights).rows
    assert sum(float(cells[k][k + 1]) for k in range(2)) == right and float(cells[2][3]) == visits["w"].sum()
    shares = [np.average(best.predicted[at] == found.codes[at], weights=visits["w"][at]) for at in fold_rows(found)]
    assert best.scores["accuracy"].mean == pytest.approx(np.mean(shares))
    write_report(found, tmp_path / "report.html")
    assert "as column &#39;w&#39; says" in (tmp_path / "report.html").read_text()
    ones = compare(visits.assign(w=1.0), "y", weight="w", drop=["t"], families=["logistic"])
    plain = compare(visits, "y", drop=["t", "w"], families=["logistic"])
    assert ones.best.scores["log_loss"]["mean"] == pytest.approx(plain.best.scores["log_loss"]["mean"], abs=1e-8)


def fold_rows(found):
    return [np.flatnonzero(found.folds == k) for k in range(found.n_folds)]


def test_rows_of_weight_0_are_no_rows(visits):
    weights = visits["w"].where(visits.index % 3 > 0, 0)
    found = compare(visits.assign(w=weights), "y", weight="w", families=["lda"])
    assert found.n_rows == (weights > 0).sum() and found.rows.number_of(0) == 2
    kept = compare(visits.assign(w=weights)[weights > 0], "y", weight="w", families=["lda"])
    np.testing.assert_allclose(found.best.predict_proba(visits), kept.best.predict_proba(visits), atol=1e-12)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [("w", -1.0, "row 4, is -1"), ("w", np.nan, "row 4, is missing"), ("t", np.nan, "row 4, is missing")],
)
def test_weights_and_times_that_are_none_are_refused(visits, column, value, said):
    frame = visits.astype({column: float})
    frame.loc[3, column] = value
    option = {"w": "weight", "t": "time"}[column]
    with pytest.raises(ValueError, match=said):
        compare(frame, "y", families=["lda"], **{option: column})
    with pytest.raises(ValueError, match="no column 'x' to"):
        compare(visits, "y", families=["lda"], **{option: "x"})


def test_nothing_is_learnt_from_what_comes_after(visits):
    """Each fold's model is that of the rows before it, whatever the rows after it are."""
    options = {"time": "t", "drop": ["w"], "families": ["lda"], "cv": 4}
    one = compare(visits, "y", **options)
    assert one.fold_kind == "forward" and one.n_rows < N
    time = visits["t"].to_numpy()
    at = np.array([one.rows.number_of(i) - 1 for i in range(one.n_rows)])
    first = time[at[one.folds == 0]].min()
    assert (time[np.setdiff1d(np.arange(N), at)] < first).all()
    ends = [time[at[one.folds == k]] for k in range(4)]
    assert all(before.max() < after.min() for before, after in pairwise(ends))
    late = time >= ends[2].min()
    swapped = visits.assign(a=np.where(late, -visits["a"], visits["a"]))
    two = compare(swapped, "y", **options)
    early = one.folds < 2
    np.testing.assert_array_equal(one.candidates[0].proba[early], two.candidates[0].proba[early])
    assert not np.allclose(one.candidates[0].proba[~early], two.candidates[0].proba[~early])


def test_dates_order_rows_as_numbers_do(visits, tmp_path, capsys):
    days = (pd.Timestamp("2024-01-01") + pd.to_timedelta(visits["t"], unit="D")).dt.strftime("%d.%m.%Y")
    options = {"time": "t", "drop": ["w"], "families": ["lda", "logistic", "perceptron"]}
    one, two = compare(visits, "y", **options), compare(visits.assign(t=days), "y", **options)
    np.testing.assert_array_equal(one.candidates[0].proba, two.candidates[0].proba)
    write_report(one, tmp_path / "report.html")
    assert "learnt from only" in (tmp_path / "report.html").read_text()
    visits.to_csv(tmp_path / "visits.csv", index=False)
    given = ["--target", "y", "--time", "t", "--weight", "w", "--families", "lda", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        app(["compare", str(tmp_path / "visits.csv"), *given])
    shown = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0 and "learnt from only" in shown and "as column 'w' says" in shown
    with pytest.raises(ValueError, match="not by group"):
        compare(visits, "y", time="t", group="w", families=["lda"])


def test_folds_forward_part_no_moment_and_wait_for_every_class():
    rng = np.random.default_rng(0)
    for n_folds in (2, 3, 7):
        times, codes = rng.integers(0, 30, 200).astype(float), rng.integers(0, 3, 200)
        codes[times < 8] = codes[times < 8] % 2  # the third class comes late
        folds = forward_folds(times, codes, np.arange(3), n_folds)[0][0]
        assert all(len(set(folds[times == t])) == 1 for t in np.unique(times))
        assert (np.diff(folds[np.argsort(times, kind="stable")]) >= 0).all()
        assert (np.bincount(codes[folds < 0], minlength=3) >= 2).all()
        assert set(folds) == set(range(-1, folds.max() + 1)) and 2 <= folds.max() + 1 <= n_folds
    with pytest.raises(ValueError, match="Class 1 has no two rows early enough"):
        forward_folds(np.arange(10.0), np.array([0] * 9 + [1]), np.arange(2), 3)
    with pytest.raises(ValueError, match="too few times"):
        forward_folds(np.zeros(10), np.arange(10) % 2, np.arange(2), 3)


def test_classes_with_an_order_have_a_model_of_their_own(tmp_path):
    """Of an ordered target, in whatever order its labels are sorted, the cumulative model is that of the declared order."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 2))
    level = np.digitize(2.0 * x[:, 0] + rng.logistic(size=200), [-1.0, 1.0])
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(y=np.array(["low", "mid", "high"])[level])
    found = compare(frame, "y", families=["baseline", "lda"], ordered=["low", "mid", "high"])
    one = next(one for one in found.candidates if one.family == "ordered-logistic")
    named = OrderedLogisticRegression(order=["low", "mid", "high"], C=one.tuned["C"], tol=1e-8)
    named.fit(one.model.encode(one.model.schema.read(frame)), frame["y"])
    expected = named.predict_proba(one.model.encode(one.model.schema.read(frame)))
    np.testing.assert_allclose(one.model.predict_proba(frame), expected, atol=1e-6)
    assert found.classes.tolist() == named.classes_.tolist()
    save_model(one.model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(frame), one.model.predict(frame))
    write_report(found, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Above zero speaks for higher classes" in page and "Above zero speaks for low" not in page
    with pytest.raises(ValueError, match="name each of 'high', 'low', 'mid' once"):
        compare(frame, "y", families=["lda"], ordered="low,high")
