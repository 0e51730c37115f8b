"""What can be said about columns and classes before a comparison, X and y, standard input, and models as estimators."""

import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted

from separatrix import LogisticRegression
from separatrix.cli.main import app
from separatrix.comparison.comparison import compare
from separatrix.comparison.table_model import TableModel
from separatrix.export.form import export_form
from separatrix.export.model_file import load_model, save_model
from separatrix.tables.dates import date_part
from separatrix.tables.schema import TableSchema

N = 300


@pytest.fixture(scope="module")
def visits():
    rng = np.random.default_rng(2)
    y = np.arange(N) % 2
    days = pd.Timestamp("2023-03-05") + pd.to_timedelta(rng.integers(0, 700, N), unit="D")
    return pd.DataFrame(
        {
            "zip": rng.choice([10115, 20095, 80331], N),
            "age": (rng.normal(size=N) + y).round(3),
            "when": days.strftime("%d.%m.%Y"),
            "patient": np.arange(N) // 5,
            "y": np.where(y == 1, "ill", "well"),
        }
    )


def kinds(found):
    return {column.name: column.kind for column in found.schema.used}


def test_columns_are_dropped_or_the_only_ones(visits):
    assert set(kinds(compare(visits, "y", families=["lda"], drop=["zip", "patient", "when"]))) == {"age"}
    assert set(kinds(compare(visits, "y", families=["lda"], use=["age", "zip"]))) == {"age", "zip"}
    for wrong, said in (
        ({"drop": ["agee"]}, "did you mean 'age'|'age'"),
        ({"drop": ["y"]}, "drop names the target"),
        ({"drop": ["age"], "use": ["age"]}, "to be used and to be dropped"),
    ):
        with pytest.raises(ValueError, match=said):
            compare(visits, "y", families=["lda"], **wrong)


def test_a_declared_type_is_not_guessed(visits):
    found = compare(visits, "y", families=["lda", "logistic"], types={"zip": "categorical"}, use=["zip", "age"])
    assert kinds(found) == {"zip": "categorical", "age": "numeric"}
    assert any(name.startswith("zip = ") for name in found.encoder.feature_names_)
    again = found.best.predict_proba(visits.assign(zip=visits["zip"].astype(str)))
    np.testing.assert_array_equal(found.best.predict_proba(visits), again)
    schema, rows, _ = TableSchema.infer_and_read(
        pa.table({"a": ["1", "2", None, "1"], "y": [0, 1, 0, 1]}), "y", {"a": "boolean"}
    )
    np.testing.assert_array_equal(rows.columns["a"], [0.0, 1.0, np.nan, 0.0])
    assert schema.columns[0].true == "2"
    np.testing.assert_array_equal(schema.read(pa.table({"a": [2, 1, None]})).columns["a"], [1.0, 0.0, np.nan])


@pytest.mark.parametrize(
    ("types", "said"),
    [
        ({"zip": "boolean"}, "3 different values"),
        ({"when": "numeric"}, "declared numeric, and holds"),
        ({"age": "date"}, "declared a date"),
        ({"age": "number"}, "give one of numeric"),
        ({"y": "categorical"}, "target"),
        ({"none": "numeric"}, "no column 'none'"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(visits, types, said):
    with pytest.raises(ValueError, match=said):
        compare(visits, "y", families=["lda"], types=types)


def test_parts_of_a_date_are_those_of_pandas_and_circles_close():
    stamps = pd.Series(pd.date_range("2023-12-30 05:00", periods=400, freq="37h"))
    for given, form in ((pa.array(stamps), ""), (pa.array(stamps.dt.strftime("%Y-%m-%d %H:%M")), "%Y-%m-%d %H:%M")):
        days = date_part(given, "days", form)
        np.testing.assert_allclose(days, (stamps - pd.Timestamp(0)) / pd.Timedelta("1D"), atol=1e-9)
        weekday = np.arctan2(date_part(given, "weekday sin", form), date_part(given, "weekday cos", form)) % (2 * np.pi)
        np.testing.assert_array_equal((weekday / (2 * np.pi) * 7).round().astype(int) % 7, stamps.dt.weekday)
        hour = np.arctan2(date_part(given, "hour sin", form), date_part(given, "hour cos", form)) % (2 * np.pi)
        np.testing.assert_allclose(hour / (2 * np.pi) * 24, stamps.dt.hour, atol=1e-6)
        year = np.arctan2(date_part(given, "month sin", form), date_part(given, "month cos", form)) % (2 * np.pi)
        length = np.where(stamps.dt.is_leap_year, 366, 365)
        np.testing.assert_allclose(year / (2 * np.pi), (stamps.dt.dayofyear - 1) / length, atol=1e-9)


def test_a_date_is_learnt_from_and_saved(visits, tmp_path):
    season = pd.to_datetime(visits["when"], format="%d.%m.%Y").dt.month.isin([6, 7, 8])
    frame = visits.assign(y=np.where(season, "ill", "well"))
    found = compare(frame, "y", families=["logistic"], types={"when": "date"}, use=["when", "age"])
    assert found.candidates[0].scores["accuracy"].mean > 0.9
    save_model(found.best, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(frame), found.best.predict_proba(frame))
    with pytest.raises(ValueError, match=r"column 'when', row 1 .*is no date"):
        loaded.predict(frame.assign(when="soon"))
    with pytest.raises(ValueError, match="parts of the date 'when'"):
        export_form(found.best, "SQL")
    with pytest.raises(ValueError, match="in two ways"):
        compare(frame.assign(when="01/02/2024"), "y", families=["lda"], types={"when": "date"})


def test_rows_of_a_group_share_a_fold_and_copies_do_not_flatter():
    rng = np.random.default_rng(0)
    base = pd.DataFrame(rng.normal(size=(60, 4))).add_prefix("x").assign(y=np.arange(60) % 2, who=np.arange(60))
    frame = pd.concat([base] * 5, ignore_index=True)
    found = compare(frame, "y", families=["svm-rbf"], group="who")
    assert (frame.groupby("who").apply(lambda rows: len(set(found.folds[rows.index])), include_groups=False) == 1).all()
    assert "who" not in kinds(found)
    plain = compare(frame, "y", families=["svm-rbf"], drop=["who"])
    assert plain.candidates[0].scores["accuracy"].mean > found.candidates[0].scores["accuracy"].mean + 0.2


@pytest.mark.parametrize("rare", ["drop", "merge"])
def test_rare_classes_are_dropped_or_merged(visits, rare):
    frame = visits.copy()
    frame.loc[[1, 2, 5], "y"] = ["odd", "odd", "strange"]
    with pytest.raises(ValueError, match="strange"):
        compare(frame, "y", families=["lda"])
    found = compare(frame, "y", families=["lda"], rare_class=rare)
    if rare == "drop":
        assert found.n_rows == N - 3 and found.classes.tolist() == ["ill", "well"]
        assert found.rows.number_of(1) == 4 and found.rows.number_of(2) == 5
    else:
        assert found.n_rows == N and found.classes.tolist() == ["(other)", "ill", "well"]
    assert any("'odd', 'strange'" in note for note in found.notes)


def test_x_and_y_are_the_table_they_make(visits):
    frame = visits[["age", "zip"]].assign(y=visits["y"])
    one = compare(frame, "y", families=["lda", "logistic"])
    two = compare(frame[["age", "zip"]], frame["y"], families=["lda", "logistic"])
    three = compare(frame[["age", "zip"]].to_numpy(), frame["y"].to_numpy(), families=["lda", "logistic"])
    for found in (two, three):
        assert [c.scores["log_loss"].mean for c in found.candidates] == [
            c.scores["log_loss"].mean for c in one.candidates
        ]
    assert [column.name for column in three.schema.used] == ["x0", "x1"]
    with pytest.raises(ValueError, match="one label per row"):
        compare(frame[["age"]], frame["y"][:10], families=["lda"])


def test_a_table_on_standard_input(visits, tmp_path):
    visits.to_csv(tmp_path / "visits.csv", index=False)
    out = tmp_path / "out"
    options = [
        "--target",
        "y",
        "--families",
        "lda",
        "--type",
        "zip=categorical",
        "--group",
        "patient",
        "--out",
        str(out),
    ]
    run = [sys.executable, "-m", "separatrix.cli", "compare", "-", *options, "--quiet"]
    run[1:3] = ["-c", "from separatrix.cli.main import main; main()"]
    text = (tmp_path / "visits.csv").read_bytes()
    done = subprocess.run(run, input=text, capture_output=True, check=True)
    assert b"Rows of a group share a fold" in done.stdout
    predict = [*run[:3], "predict", str(out / "model.safetensors"), "-", "-o", "-", "--quiet"]
    predicted = pd.read_csv(io.BytesIO(subprocess.run(predict, input=text, capture_output=True, check=True).stdout))
    np.testing.assert_array_equal(predicted["prediction"], load_model(out / "model.safetensors").predict(visits))


def test_a_table_model_is_an_estimator(visits, tmp_path):
    frame = visits[["age", "zip", "y"]]
    model = compare(frame, "y", families=["logistic"]).best
    X, y = frame[["age", "zip"]], frame["y"]
    assert is_classifier(model) and model.feature_names_in_.tolist() == ["age", "zip"] and model.n_features_in_ == 2
    check_is_fitted(model)
    frame.to_csv(tmp_path / "frame.csv", index=False)
    assert (
        model.score(X, y) == model.score(frame) == model.score(tmp_path / "frame.csv") == (model.predict(X) == y).mean()
    )
    np.testing.assert_allclose(model.predict_proba(tmp_path / "frame.csv"), model.predict_proba(X), atol=1e-12)
    fresh = clone(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)
    swapped = fresh.fit(X, np.where(y == "ill", "well", "ill"))
    np.testing.assert_allclose(swapped.predict_proba(X), model.predict_proba(X)[:, ::-1], atol=1e-6)
    assert model.score(frame) == (model.predict(X) == y).mean()  # the clone is another model
    scores = cross_val_score(model, X, y, cv=3)
    assert scores.shape == (3,) and scores.mean() > 0.55
    search = GridSearchCV(
        TableModel.fit(frame, "y", LogisticRegression(), family="logistic"), {"estimator__C": [1e-4, 1.0]}, cv=3
    )
    assert search.fit(X, y).best_params_["estimator__C"] in (1e-4, 1.0)


def test_a_summary_is_by_column_in_its_own_units(visits):
    model = compare(visits[["age", "zip", "y"]], "y", families=["logistic"]).best
    first = model.summary()[0]
    assert first["column"] == "age" and first["class"] is None
    X = visits[["age", "zip"]]
    change = model.decision_function(X.assign(age=X["age"] + 1.0)) - model.decision_function(X)
    np.testing.assert_allclose(change, first["coefficient"], rtol=1e-9)
    assert first["odds_ratio"] == pytest.approx(np.exp(first["coefficient"]))
    with pytest.raises(ValueError, match="not linear"):
        compare(visits[["age", "zip", "y"]], "y", families=["naive-bayes"]).best.summary()


def test_progress_never_falls_back(visits, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("separatrix.cli.progress._SECONDS_BETWEEN_LINES", 0.0)
    visits.to_csv(tmp_path / "visits.csv", index=False)
    for stream in ([], ["--stream"]):
        options = ["--target", "y", "--families", "lda,logistic", "--out", str(tmp_path / "out"), "--save-all", *stream]
        with pytest.raises(SystemExit) as ended:
            app(["compare", str(tmp_path / "visits.csv"), *options])
        shown = [int(line[:4].strip(" %")) for line in capsys.readouterr().err.splitlines() if "%" in line[:5]]
        assert load_model(tmp_path / "out" / "model-logistic.safetensors").family == "logistic"
        assert ended.value.code == 0 and shown == sorted(shown) and shown[-1] == 100 and len(shown) > 5
