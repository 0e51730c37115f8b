"""SQL against predict_proba, on the engines themselves; PostgreSQL's text is also read by DuckDB, whose grammar is its."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
import shutil
import sqlite3
import subprocess
import tempfile
import warnings
from functools import cache
from glob import glob
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from estimators import EXPORTED, EXPORTED_OF_TWO_CLASSES, EXPORTED_WITH_KERNELS, named
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import SplineTransformer

import separatrix as sx
from separatrix.comparison.families import FAMILIES
from separatrix.comparison.table_model import TableModel
from separatrix.export.sql_dialects import WHITESPACE, identifier, total
from separatrix.tables.reading import read_table

AWKWARD = "a\"b'; DROP TABLE x; --"
DUCKDB = duckdb.connect(config={"threads": 1})
DIALECTS = ("duckdb", "sqlite", "postgresql")
X, CODES = load_iris(return_X_y=True)
X = np.round(2.0 * X)
Y = np.array(["it's", 'say "no"', "--"])[CODES]
TWO = np.where(CODES > 0, "yes", "no")


def answers(sql, dialect, table, name="data"):
    """Names of the columns and rows of a query over an Arrow table."""
    if dialect == "sqlite":
        connection = sqlite3.connect(":memory:")
        quoted = ['"' + column.replace('"', '""') + '"' for column in table.column_names]
        declared = ", ".join(quoted)
        escaped = '"' + name.replace('"', '""') + '"'
        connection.execute(f"CREATE TABLE {escaped} ({declared})")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        connection.executemany(f"INSERT INTO {escaped} VALUES ({', '.join('?' * len(quoted))})", rows)
        cursor = connection.execute(sql)
        return [entry[0] for entry in cursor.description], cursor.fetchall()
    DUCKDB.register(name, table)
    found = DUCKDB.execute(sql)
    return [entry[0] for entry in found.description], found.fetchall()


def matrix_table(rows):
    return pa.table({f"x{j}": column for j, column in enumerate(np.asarray(rows, dtype=float).T)})


def agrees(model, dialect, table, given=None, name="data", tolerance=1e-9):
    given = table if given is None else given
    columns, rows = answers(sx.to_sql(model, dialect=dialect, table=name), dialect, table, name)
    numbers = np.array([row[:-1] for row in rows], dtype=float)
    labels = np.asarray(model.classes_).tolist()
    if hasattr(model, "predict_proba") and getattr(model, "has_probabilities", True):
        expected = model.predict_proba(given)
        assert columns == [*(f"probability_{label}" for label in labels), "prediction"]
    else:
        expected = np.asarray(model.decision_function(given)).reshape(len(rows), -1)
        assert columns == [*(["score"] if len(labels) == 2 else [f"score_{label}" for label in labels]), "prediction"]
    np.testing.assert_allclose(numbers, expected, rtol=1e-9, atol=tolerance)
    assert [row[-1] for row in rows] == model.predict(given).tolist()


BARE = named(
    *EXPORTED,
    "logistic l1, sparse",
    "logistic reference",
    "lda eigen, shrunk",
    "gaussian shared",
    "margin hinge",
    "against rest of linear svc",
    "svc linear against rest",
) | {"rule with priors": sx.BayesRule(sx.LogisticRegression(), priors=[0.1, 0.2, 0.7])}
KERNELS = named(*EXPORTED_WITH_KERNELS)
TWO_CLASSES = named(*EXPORTED_OF_TWO_CLASSES, "bayesian diagonal without intercept") | {
    "shifted rule": sx.BayesRule(sx.LogisticRegression(), priors=[0.9, 0.1], loss=[[0, 1], [3, 0]])
}


def quiet_fit(model, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(*arguments)


@cache
def fitted(name, two=False):
    return quiet_fit((TWO_CLASSES if two else BARE | KERNELS)[name], X, TWO if two else Y)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", [*BARE, *KERNELS])
def test_bare_estimators(name, dialect):
    agrees(fitted(name), dialect, matrix_table(X), X)


OTHER_KERNELS = {
    "polynomial": sx.SVC(kernel="poly", degree=3, gamma=0.1, coef0=1.0),
    "constant": sx.SVC(kernel=sx.PolynomialKernel(degree=0) + sx.RBFKernel(0.1)),
    "sigmoid": sx.SVC(kernel="sigmoid", gamma=1e-3, coef0=0.1),
    "laplacian": sx.SVC(kernel=sx.LaplacianKernel(0.2)),
    "sums and products": sx.SVC(kernel=0.5 * sx.RBFKernel(0.1) * sx.LaplacianKernel(0.2) + sx.LinearKernel()),
    "with probabilities": sx.SVC(calibration="sigmoid", random_state=0),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", OTHER_KERNELS)
def test_kernels_of_two_classes(name, dialect):
    model = quiet_fit(OTHER_KERNELS[name], X, TWO)
    rows = np.vstack([X, 1e3 * X[:3]])  # far away the exponent is below what an exponential takes
    agrees(model, dialect, matrix_table(rows), rows)
    table = pa.table({"x0": [1.0, None], "x1": [1.0, 2.0], "x2": [0.0] * 2, "x3": [0.0] * 2})
    known, missing = answers(sx.to_sql(model, dialect=dialect), dialect, table)[1]
    assert None not in known and set(missing) == {None}


def test_radial_kernels_far_from_the_origin():
    agrees(quiet_fit(sx.SVC(gamma=0.1), X + 1e7, TWO), "duckdb", matrix_table(X + 1e7), X + 1e7)


def test_a_machine_that_is_too_large_for_a_query_is_refused():
    rng = np.random.default_rng(0)
    model = sx.SVC(C=1e-3).fit(rng.normal(size=(1100, 2)), rng.integers(0, 2, 1100))
    with pytest.raises(ValueError, match=r"support vectors of 2 columns are more than fits into a query"):
        sx.to_sql(model)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", TWO_CLASSES)
def test_two_classes(name, dialect):
    agrees(fitted(name, two=True), dialect, matrix_table(X), X)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_scores_of_eight_hundred_neither_overflow_nor_lose_the_small_probability(dialect):
    model = sx.LogisticRegression(C=1.0).fit(X, TWO)
    model.coef_, model.intercept_ = np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([0.0])
    rows = np.zeros((7, 4))
    rows[:, 0] = [-800.0, -40.0, -1e-20, 0.0, 1e-20, 40.0, 800.0]
    agrees(model, dialect, matrix_table(rows), rows)
    three = sx.LogisticRegression().fit(X, Y)
    three.coef_ = np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0.0, 1.0, 0, 0]])
    agrees(three, dialect, matrix_table(rows), rows)
    many = np.array(answers(sx.to_sql(model, dialect=dialect), dialect, matrix_table(rows))[1])[:, 0].astype(float)
    assert many[5] == pytest.approx(math.exp(-40.0), rel=1e-12)  # the small side keeps its digits


def test_far_from_the_origin_the_digits_stay():
    rows = X + 1e7
    model = sx.LinearDiscriminantAnalysis().fit(rows, Y)
    agrees(model, "duckdb", matrix_table(rows), rows)


def test_missing_values_of_a_bare_model_give_missing_answers():
    table = pa.table({"x0": [1.0, None, float("nan")], "x1": [1.0, 2.0, 2.0], "x2": [0.0] * 3, "x3": [0.0] * 3})
    for name in ("logistic, weak penalty", "qda, shrunk little", "ridge classifier", "rule, rejection"):
        for dialect in DIALECTS:
            rows = answers(sx.to_sql(fitted(name), dialect=dialect), dialect, table)[1]
            assert None not in rows[0]
            assert set(rows[1]) == {None} == set(rows[2])
    for name in ("svc linear, platt", "bayesian", "logistic, weak penalty"):
        rows = answers(sx.to_sql(fitted(name, two=True)), "duckdb", table)[1]
        assert None not in rows[0] and set(rows[1]) == {None} == set(rows[2])


# -- tables ---------------------------------------------------------------------------------------------------------------


def people(n=300, seed=0, unseen=False):
    """A table with holes, flags in words, texts and a column whose name is an attack; plain values beside it, for databases."""
    rng = np.random.default_rng(seed)
    age, city = rng.normal(50, 15, n), rng.choice(["Ghent", "L'Aquila", 'Tu"rin'], n)
    smoker, income = rng.random(n) < 0.4, np.exp(rng.normal(10, 1, n))
    score = 0.06 * (age - 50) + smoker + (city == "Ghent") + rng.logistic(size=n)
    if unseen:
        city[::7] = "Nowhere"
        age[::5] *= 1e4
    holes = {name: rng.random(n) < 0.15 for name in (AWKWARD, "smoker", "city")}
    columns = {
        AWKWARD: pa.array(np.where(holes[AWKWARD], np.nan, age), from_pandas=True),
        "smoker": pa.array(smoker, mask=holes["smoker"]),
        "income": income,
        "city": pa.array(city.tolist(), mask=holes["city"]),
    }
    illness = np.select([score < -0.5, score < 1.2], ["it's no", "a little"], "very")
    return pa.table({**columns, "ill": illness})


def as_plain(table):
    """Booleans as 0 and 1, for SQLite."""
    at = table.column_names.index("smoker")
    return table.set_column(at, "smoker", table["smoker"].cast(pa.int64()))


@pytest.fixture(scope="module")
def table_models():
    models = {}
    for name, family in FAMILIES.items():
        models[name] = quiet_fit_table(people(), family)
        two = people().set_column(4, "ill", pa.array((np.asarray(people()["ill"]) == "very").tolist()))
        models[f"{name}, two classes"] = quiet_fit_table(two, family)
    return models


def quiet_fit_table(table, family, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return TableModel.fit(table, "ill", family.build(), family=family.name, encode=family.encoded, **arguments)


WITHOUT_SQL = {"svm-rbf", "linear-svm", "bayesian-logistic"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", [f"{name}{more}" for name in FAMILIES for more in ("", ", two classes")])
def test_every_family_on_a_table_with_holes_and_unseen_values(name, dialect, table_models):
    model, new = table_models[name], people(150, seed=1, unseen=True)
    if name in WITHOUT_SQL:
        with pytest.raises(ValueError, match=r"cannot be written as SQL: .* (Use|Write|keep) "):
            sx.to_sql(model, dialect=dialect)
        return
    given = as_plain(new) if dialect == "sqlite" else new
    columns, rows = answers(sx.to_sql(model, dialect=dialect, table="the table"), dialect, given, "the table")
    assert [row[-1] for row in rows] == model.predict(new).tolist()
    numbers = np.array([row[:-1] for row in rows], dtype=float)
    if model.has_probabilities:
        np.testing.assert_allclose(numbers, model.predict_proba(new), rtol=0, atol=1e-9)
        assert columns[0] == f"probability_{model.classes_[0]}"
    else:
        expected = model.decision_function(new).reshape(len(rows), -1)
        np.testing.assert_allclose(numbers, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_losses_choose_an_action(dialect):
    loss, actions = [[0, 2, 1], [9, 0, 1], [9, 1, 1]], ["send home", "operate", "ask"]
    model = quiet_fit_table(people(), FAMILIES["logistic"], loss=loss, actions=actions)
    new = people(100, seed=2)
    given = as_plain(new) if dialect == "sqlite" else new
    _, rows = answers(sx.to_sql(model, dialect=dialect), dialect, given)
    assert [row[-1] for row in rows] == model.predict(new).tolist()
    assert len({row[-1] for row in rows}) > 1


def test_flags_may_be_words_numbers_or_booleans():
    words = people(200)
    flags = np.asarray(words["smoker"].to_pylist(), dtype=object)
    said = pa.array([None if flag is None else "Yes" if flag else "no" for flag in flags])
    model = quiet_fit_table(words.set_column(1, "smoker", said), FAMILIES["logistic"])
    expected = model.predict_proba(words.set_column(1, "smoker", said))
    for column in (
        words["smoker"],
        said,
        words["smoker"].cast(pa.int8()),
        words["smoker"].cast(pa.int8()).cast(pa.float64()),
    ):
        _, rows = answers(sx.to_sql(model), "duckdb", words.set_column(1, "smoker", column))
        np.testing.assert_allclose(np.array([row[:-1] for row in rows], dtype=float), expected, atol=1e-9)


def test_texts_that_stand_for_missing_values_do_so_in_sql():
    table = people(200)
    model = quiet_fit_table(table, FAMILIES["logistic"])
    said = pa.array([" NA " if city is None else f" {city}" for city in table["city"].to_pylist()])
    other = table.set_column(3, "city", said)
    _, rows = answers(sx.to_sql(model), "duckdb", other)
    np.testing.assert_allclose(np.array([r[:-1] for r in rows], dtype=float), model.predict_proba(table), atol=1e-9)


def test_mixed_naive_bayes_on_a_frame():
    frame = pd.DataFrame(
        {"words": [3, 0, 5, 1, None, 2] * 10, "kind": ["a", "b", None, "a", "c'", "b"] * 10, "on": [True, False] * 30}
    )
    y = np.tile(["p", "q", "p"], 20)
    model = sx.MixedNB({"words": "poisson"}).fit(frame, y)
    for dialect in ("duckdb", "postgresql"):
        agrees(model, dialect, pa.Table.from_pandas(frame, preserve_index=False), frame)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("labels", [[3, 5, 8], [1.0, 2.0, 4.0], ["a", "b", "c"], [False, True]], ids=str)
@pytest.mark.parametrize("reject", ["reject", -1, -1.5, None])
def test_rejection_beside_labels_of_every_type(dialect, labels, reject):
    y = np.array(labels)[CODES] if len(labels) == 3 else CODES > 1
    model = sx.BayesRule(sx.LinearDiscriminantAnalysis(), reject_below=0.99, reject_action=reject).fit(X, y)
    found = [row[-1] for row in answers(sx.to_sql(model, dialect=dialect), dialect, matrix_table(X))[1]]
    expected = model.predict(X).tolist()
    if len({type(label) for label in (*labels, reject)} - {type(None)}) > 1:  # a column has one type: text
        names = {label: str(label) for label in (*labels, reject)}
        expected = [names[label] for label in expected]
    assert found == expected
    assert 0 < sum(label in (reject, str(reject)) for label in found) < len(X)


WHITE = [chr(code) for code in range(0x110000) if chr(code).isspace()]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_white_space_is_what_python_takes_it_for(dialect):
    assert sorted(map(ord, WHITE)) == sorted(WHITESPACE)
    table = people(200)
    words = table.set_column(1, "smoker", pa.array(["yes" if flag else "no" for flag in table["smoker"].to_pylist()]))
    model = quiet_fit_table(words, FAMILIES["logistic"])
    n = len(WHITE)
    cities = [f"{space}Ghent{space}" for space in WHITE] + [f"{space}NA" for space in WHITE] + ["Gh\u200bent", "G hent"]
    flags = [f"{space}YES" for space in WHITE] + [f"no{space}" for space in WHITE] + ["yes", "no"]
    new = pa.table({AWKWARD: [40.0] * (2 * n + 2), "income": [2e4] * (2 * n + 2), "smoker": flags, "city": cities})
    _, rows = answers(sx.to_sql(model, dialect=dialect), dialect, new)
    numbers = np.array([row[:-1] for row in rows], dtype=float)
    np.testing.assert_allclose(numbers, model.predict_proba(new), rtol=0, atol=1e-9)
    assert len(np.unique(numbers[:n].round(9), axis=0)) == 1  # every city is Ghent, every flag yes


def test_text_in_a_numeric_column_of_sqlite_is_its_number_a_hole_or_an_error():
    said = ["12.5", " 12.5 ", "-3", "1e2", ".5", "5.", "+7", "", "NA", "?", None]
    strange = ["abc", "12,5", "12.5 kg", "0x10"]
    numbers = [12.5, 12.5, -3.0, 100.0, 0.5, 5.0, 7.0, *[None] * 4]
    model = quiet_fit_table(people(), FAMILIES["logistic"])
    expected = model.predict_proba(
        pa.table(
            {
                AWKWARD: pa.array(numbers, pa.float64()),
                "income": [2e4] * 11,
                "smoker": [True] * 11,
                "city": ["Ghent"] * 11,
            }
        )
    )
    bare = sx.GaussianNB().fit(pd.DataFrame({AWKWARD: X[:, 0]}), TWO)
    for kind in ("TEXT", "", "NUMERIC"):
        connection = sqlite3.connect(":memory:")
        name = '"' + AWKWARD.replace('"', '""') + '"'
        connection.execute(f"CREATE TABLE data ({name} {kind}, income REAL, smoker INTEGER, city TEXT)")
        connection.executemany("INSERT INTO data VALUES (?, 20000.0, 1, 'Ghent')", [(value,) for value in said])
        found = connection.execute(sx.to_sql(model, dialect="sqlite")).fetchall()
        np.testing.assert_allclose(np.array([row[:-1] for row in found], dtype=float), expected, atol=1e-9)
        plainly = connection.execute(sx.to_sql(bare, dialect="sqlite")).fetchall()
        assert [row[0] is None for row in plainly] == [value is None for value in numbers]
        for text in strange:
            with pytest.raises(sqlite3.Error, match="integer overflow"):
                connection.execute("INSERT INTO data VALUES (?, 20000.0, 1, 'Ghent')", [text])
                connection.execute(sx.to_sql(model, dialect="sqlite")).fetchall()
            connection.rollback()
            connection.executemany("INSERT INTO data VALUES (?, 20000.0, 1, 'Ghent')", [(value,) for value in said])
    whole = 2**53 + 1  # not a double: CAST rounds it, and it is a number none the less
    connection.executemany("INSERT INTO data VALUES (?, 20000.0, 1, 'Ghent')", [(whole,), (str(whole),)])
    assert None not in [row[0] for row in connection.execute(sx.to_sql(bare, dialect="sqlite")).fetchall()[-2:]]


def test_a_decimal_comma_in_text_of_sqlite_is_read_and_thousands_are_refused(tmp_path):
    path = tmp_path / "prices.csv"
    rows = [f"{i % 7},{i};{'a' if i % 7 < 3 else 'b'}" for i in range(10, 60)]
    path.write_text("price;kind\n" + "\n".join(rows) + "\n")
    table = read_table(path)
    model = TableModel.fit(table, "kind", FAMILIES["lda"].build(), family="lda")
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE data (price TEXT)")
    connection.executemany("INSERT INTO data VALUES (?)", [(text,) for text in table["price"].to_pylist()])
    found = connection.execute(sx.to_sql(model, dialect="sqlite")).fetchall()
    np.testing.assert_allclose([row[:-1] for row in found], model.predict_proba(table), atol=1e-9)
    connection.execute("INSERT INTO data VALUES ('1.234,5')")
    with pytest.raises(sqlite3.Error, match="integer overflow"):
        connection.execute(sx.to_sql(model, dialect="sqlite")).fetchall()


@pytest.mark.parametrize("keep", [[], ["key"]])
def test_rows_of_several_threads_have_a_key(keep):
    n = 300_000
    model = sx.LogisticRegression().fit(pd.DataFrame({"x": X[:, 0]}), TWO)
    connection = duckdb.connect(config={"threads": 4})
    made = "SELECT range AS key, (range * 7919 % 1000) / 100.0 AS x FROM range({})"
    connection.execute(f"CREATE TABLE data AS {made.format(n)}")
    found = connection.execute(sx.to_sql(model, keep=keep, row_number=not keep)).df()
    assert found.columns[0] == (keep or ["row_number"])[0]
    at = found[found.columns[0]].to_numpy() - (0 if keep else 1)
    assert sorted(at.tolist()) == list(range(n))
    expected = model.predict_proba(pd.DataFrame({"x": (at * 7919 % 1000) / 100.0}))
    np.testing.assert_allclose(found["probability_yes"].to_numpy(), expected[:, 1], atol=1e-9)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_class_that_is_one_point_adds_nothing_but_its_constant(dialect):
    rows = X.copy()
    rows[CODES == 1] = 3.0
    model = sx.QuadraticDiscriminantAnalysis(singular="pseudo").fit(rows, Y)
    agrees(model, dialect, matrix_table(rows), rows)
    assert (np.linalg.matrix_rank(np.cov(rows[CODES == 1].T))) == 0


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e100, 1e150])
def test_naive_bayes_on_scales_whose_squares_are_hardly_numbers(dialect, scale):
    model = sx.MixedNB(var_smoothing=0).fit(X * scale, Y)
    agrees(model, dialect, matrix_table(X * scale), X * scale)


def test_a_number_that_is_none_is_refused():
    with pytest.raises(ValueError, match="column 0 has values so large that their squares overflow"):
        sx.MixedNB().fit(X * 1e170, Y)
    model = sx.LogisticRegression().fit(X, TWO)
    model.coef_[0, 0] = np.inf
    with pytest.raises(ValueError, match="holds the number inf, which SQL cannot compute with"):
        sx.to_sql(model)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_booleans_under_a_plain_estimator_are_zero_and_one(dialect):
    frame = pd.DataFrame({"x": X[:, 0], "on": CODES > 1})
    model = sx.LogisticRegression().fit(frame, TWO)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    agrees(model, dialect, table, frame)


# -- the text itself --------------------------------------------------------------------------------------------------------


def test_kept_columns_names_of_tables_and_labels_of_every_type():
    for labels in ([3, 5], [True, False], [1.0, 2.0]):
        y = np.array(labels)[(CODES > 0).astype(int)]
        model = sx.GaussianNB().fit(X, y)
        table = matrix_table(X).append_column('the "key"', pa.array(range(len(X))))
        for dialect in DIALECTS:
            sql = sx.to_sql(model, dialect=dialect, table='an "odd" table; --', keep=['the "key"'])
            columns, rows = answers(sql, dialect, table, 'an "odd" table; --')
            assert columns[0] == 'the "key"' and [row[0] for row in rows] == list(range(len(X)))
            assert [row[-1] for row in rows] == model.predict(X).tolist()
    assert '"main"."data"' in sx.to_sql(model, table=("main", "data"))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["separatrix_input", "SEPARATRIX__decision", "separatrix_"])
def test_a_table_may_be_called_like_a_step(dialect, name):
    agrees(fitted("logistic, weak penalty"), dialect, matrix_table(X), X, name=name)


def test_names_of_the_result_differ_in_more_than_capitals():
    y = np.array(["a", "A", "a_2"])[CODES]
    model = sx.GaussianNB().fit(X, y)
    sql = sx.to_sql(model)
    columns, rows = answers(sql, "duckdb", matrix_table(X))
    assert columns == ["probability_A", "probability_a_2", "probability_a_2_2", "prediction"]
    np.testing.assert_allclose(np.array([row[:-1] for row in rows], dtype=float), model.predict_proba(X), atol=1e-9)
    assert DUCKDB.execute(f"SELECT COUNT(*) FROM ({sql})").fetchall() == [(150,)]
    for keep in (["Prediction"], ["id", "ID"], ["probability_a"]):
        with pytest.raises(ValueError, match=f"keep names '{keep[0]}', and the result would have two columns"):
            sx.to_sql(model, keep=keep)


def test_the_command_line_takes_a_schema_and_a_table(tmp_path):
    from separatrix.cli import export

    sx.save_model(fitted("logistic, weak penalty"), tmp_path / "model")
    for table, said in (("main.rows", '"main"."rows" AS t'), ("rows", '"rows" AS t'), ("a.b.c", '"a.b.c" AS t')):
        export.run(tmp_path / "model", "sql", "duckdb", table, [], tmp_path / "query.sql")
        query = (tmp_path / "query.sql").read_text()
        assert f"FROM {said}" in query and '"row_number"' in query
        export.run(tmp_path / "model", "sql", "duckdb", table, ["id"], tmp_path / "query.sql")
        query = (tmp_path / "query.sql").read_text()
        assert 't."id" AS k0' in query and '"row_number"' not in query


def test_an_empty_name_is_refused():
    for arguments in ({"table": ""}, {"table": ("", "t")}, {"keep": [""]}):
        with pytest.raises(ValueError, match="A name is empty"):
            sx.to_sql(fitted("logistic, weak penalty"), **arguments)


def test_nothing_of_a_name_or_text_leaves_its_quotes():
    sql = sx.to_sql(quiet_fit_table(people(), FAMILIES["logistic"]), dialect="postgresql")
    inside, quote = "", None
    for letter in sql:  # what stands outside of quotes
        if quote is None:
            if letter in "'\"":
                quote = letter
            else:
                inside += letter
        elif letter == quote:
            quote = None
    assert quote is None
    for word in ("DROP", "--", ";", "Aquila", "rin"):
        assert word not in inside


def test_postgresql_numbers_are_doubles_with_all_digits():
    model = sx.LogisticRegression().fit(X, TWO)
    sql = sx.to_sql(model, dialect="postgresql")
    for weight in model.coef_.ravel().tolist():
        assert f"'{weight!r}'::float8" in sql
    assert "DOUBLE PRECISION" in sql and "OFFSET 0" in sql


def test_duckdb_computes_in_doubles():
    sql = sx.to_sql(sx.LogisticRegression().fit(X, TWO))
    described = duckdb.connect()
    described.register("data", matrix_table(X))
    types = {row[0]: row[1] for row in described.execute(f"DESCRIBE {sql}").fetchall()}
    assert types == {"probability_no": "DOUBLE", "probability_yes": "DOUBLE", "prediction": "VARCHAR"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_many_columns_are_not_too_deep(dialect):
    rows = np.random.default_rng(0).normal(size=(30, 200))
    model = sx.RidgeClassifier().fit(rows, np.arange(30) % 2)
    agrees(model, dialect, matrix_table(rows), rows)
    whole = f"SELECT {total([str(k) for k in range(3000)])} FROM data"  # engines refuse trees deeper than 1000
    assert answers(whole, dialect, matrix_table(rows[:1]))[1] == [(sum(range(3000)),)]


def test_a_missing_column_is_an_error_in_every_engine():
    model = sx.GaussianNB().fit(X, Y)
    table = matrix_table(X).drop_columns(["x2"])
    with pytest.raises(sqlite3.OperationalError, match="x2"):
        answers(sx.to_sql(model, dialect="sqlite"), "sqlite", table)
    with pytest.raises(duckdb.BinderException, match="x2"):
        answers(sx.to_sql(model), "duckdb", table)


def test_what_cannot_be_written_says_why():
    with pytest.raises(ValueError, match="dialect is 'oracle'; give 'duckdb', 'postgresql', 'sqlite'"):
        sx.to_sql(sx.GaussianNB().fit(X, Y), dialect="oracle")
    with pytest.raises(ValueError, match="keep is the text 'id'"):
        sx.to_sql(sx.GaussianNB().fit(X, Y), keep="id")
    refused = {
        "a Python function": sx.SVC(kernel=lambda a, b: np.asarray(a) @ np.asarray(b).T),
        "system of equations": sx.SVC(kernel="linear", calibration="sigmoid", random_state=0),
        "its machines are not linear": sx.OneVsOneClassifier(sx.QuadraticDiscriminantAnalysis()),
        "SplineTransformer is a step that has no written form": sx.FeatureMap(
            SplineTransformer(n_knots=3), sx.LinearDiscriminantAnalysis()
        ),
        "alpha > 0": sx.CategoricalNB(alpha=0),
        "BernoulliNB .* alpha > 0": sx.BernoulliNB(alpha=0, binarize=6.0),
        "two classes and predictive='probit'": sx.BayesianLogisticRegression(),
        "probabilities that are a softmax": sx.BayesRule(
            sx.OneVsRestClassifier(sx.LogisticRegression()), priors=[0.2, 0.3, 0.5]
        ),
    }
    for words, model in refused.items():
        with pytest.raises(ValueError, match=words):
            sx.to_sql(quiet_fit(model, X, Y))
    with pytest.raises(ValueError, match="isotonic steps"):
        sx.to_sql(sx.SVC(kernel="linear", calibration="isotonic", random_state=0).fit(X, TWO))
    for model in (sx.LogisticRegression(), sx.BayesRule(sx.GaussianNB())):
        with pytest.raises(NotFittedError):
            sx.to_sql(model)
    frame = pd.DataFrame({"a\x00b": X[:, 0], "c": X[:, 1]})
    with pytest.raises(ValueError, match="zero byte"):
        sx.to_sql(sx.GaussianNB().fit(frame, Y))


# -- PostgreSQL itself, where there is one -----------------------------------------------------------------------------------

PROGRAMS = shutil.which("initdb") or next(iter(sorted(glob("/usr/lib/postgresql/*/bin/initdb"))[::-1]), None)
if PROGRAMS is not None:
    PROGRAMS = Path(PROGRAMS).resolve().parent
    if os.name == "nt" or not all((PROGRAMS / program).exists() for program in ("initdb", "pg_ctl", "psql")):
        PROGRAMS = None
TYPES = {"double": "double precision", "bool": "boolean", "string": "text", "int64": "bigint", "float": "real"}


@pytest.fixture(scope="module")
def postgresql():
    """Rows of a query over an Arrow table, from a server of its own in a folder of its own."""
    if PROGRAMS is None:
        pytest.skip("PostgreSQL is not installed here")
    folder = Path(tempfile.mkdtemp())
    owner = {"user": "nobody"} if os.geteuid() == 0 else {}  # PostgreSQL does not run as root
    if owner:
        shutil.chown(folder, "nobody")

    def run(program, *arguments, **options):
        command = [str(PROGRAMS / program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, cwd=folder, check=False, **owner, **options)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def ask(sql, table, name="data"):
        columns = [identifier(column) for column in table.column_names]
        kinds = [TYPES[str(kind)] for kind in table.schema.types]
        declared = ", ".join(f"{column} {kind}" for column, kind in zip(columns, kinds, strict=True))
        content = io.StringIO()
        rows = zip(
            *([r"\N" if value is None else value for value in c.to_pylist()] for c in table.columns), strict=True
        )
        csv.writer(content, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
        reading = rf"FORMAT csv, NULL '\N', FORCE_NULL ({', '.join(columns)})"
        script = (
            f"CREATE TEMPORARY TABLE {identifier(name)} ({declared});\nCOPY {identifier(name)} FROM STDIN ({reading});\n"
            f"{content.getvalue()}\\.\n{sql};\n"
        )
        flags = ("-X", "-q", "--csv", "-v", "ON_ERROR_STOP=1", "-P", "null=NULL", "-h", folder, "-U", "tester")
        found = csv.reader(io.StringIO(run("psql", *flags, "postgres", input=script.encode())))
        names, *rows = found
        return names, [[None if value == "NULL" else value for value in row] for row in rows]

    try:
        run("initdb", "-D", folder / "rows", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-F -k {folder} -c listen_addresses=''"
        run("pg_ctl", "-D", folder / "rows", "-w", "-l", folder / "log", "-o", options, "start")
        yield ask
        run("pg_ctl", "-D", folder / "rows", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def postgresql_agrees(ask, model, table, given, labels=str):
    _, rows = ask(sx.to_sql(model, dialect="postgresql"), table)
    has = getattr(model, "has_probabilities", hasattr(model, "predict_proba"))
    expected = model.predict_proba(given) if has else model.decision_function(given)
    numbers = np.array([row[:-1] for row in rows], dtype=float)
    np.testing.assert_allclose(numbers, np.reshape(expected, (len(rows), -1)), rtol=1e-9, atol=1e-9)
    assert [row[-1] for row in rows] == [labels(label) for label in model.predict(given).tolist()]


@pytest.mark.parametrize("name", [*(f"{name}, two" for name in TWO_CLASSES), *BARE, *KERNELS])
def test_postgresql_computes_the_same(name, postgresql):
    two = name.endswith(", two")
    postgresql_agrees(postgresql, fitted(name.removesuffix(", two"), two), matrix_table(X), X)


def test_postgresql_computes_the_same_of_table_models(postgresql, table_models):
    new = people(100, seed=1, unseen=True)
    for name, model in table_models.items():
        if name not in WITHOUT_SQL:
            labels = (lambda label: "ft"[label]) if name.endswith("two classes") else str
            postgresql_agrees(postgresql, model, new, new, labels)


def test_postgresql_reads_columns_of_every_type(postgresql):
    single = X[:, 1].astype(np.float32) / np.float32(3)
    table = pa.table({"a": X[:, 0], "b": single, "c": X[:, 2].astype(int), "d": TWO == "yes"})
    frame = table.to_pandas()
    postgresql_agrees(postgresql, sx.LogisticRegression(C=100.0).fit(frame, Y), table, frame)
    holes = pa.table({**{name: table[name] for name in "abc"}, "d": pa.array([None] * 150, pa.bool_())})
    _, rows = postgresql(sx.to_sql(sx.GaussianNB().fit(frame, Y), dialect="postgresql"), holes)
    assert {value for row in rows for value in row} == {None}


def test_postgresql_rejects_strips_and_takes_awkward_names(postgresql):
    for labels in ([3, 5, 8], ["a", "b", "c"]):
        model = sx.BayesRule(sx.LinearDiscriminantAnalysis(), reject_below=0.99).fit(X, np.array(labels)[CODES])
        postgresql_agrees(postgresql, model, matrix_table(X), X)
    table = people(200)
    model = quiet_fit_table(table, FAMILIES["logistic"])
    spaced = pa.array(
        [f"{WHITE[at % len(WHITE)]}{city or 'NA'}\t" for at, city in enumerate(table["city"].to_pylist())]
    )
    other = table.set_column(3, "city", spaced)
    postgresql_agrees(postgresql, model, other, table)
    names, rows = postgresql(
        sx.to_sql(fitted("lda"), dialect="postgresql", table="separatrix_input", keep=["x0"]),
        matrix_table(X),
        "separatrix_input",
    )
    assert names[0] == "x0" and len(rows) == 150


# -- the JSON document ------------------------------------------------------------------------------------------------------


def recomputed(document, row):
    """Probabilities (or scores) and the prediction of one row, from the sentences of the document and `math` alone."""
    x = {}
    for column in document["columns"]:
        value = row[column["name"]]
        if value is not None and isinstance(value, float) and math.isnan(value):
            value = None
        if value is not None and column["kind"] == "flag":
            said = str(value).strip().lower()
            value = 1.0 if said in column["true"] else 0.0 if said in column["false"] else None
        elif value is not None and column["kind"] == "text":
            value = None if str(value).strip() in column["missing"] else str(value).strip()
        elif value is not None:
            value = float(value)
        x[column["name"]] = value
    z = []
    for feature in document["features"]:
        value = x[feature["column"]]
        if feature["what"] == "value":
            v = feature["fill"] if value is None else value
        elif feature["what"] == "missing":
            v = float(value is None)
        else:
            value = feature["fill"] if value is None else value
            v = float(value == feature["level"])
        z.append((v - feature["centre"]) / feature["scale"])
    if document["products"]:
        z = [math.prod(z[j] for j in product) for product in document["products"]]
    scores = rule_scores(document["rule"], x, z)
    p = linked(document["link"], scores)
    classes, decision = document["classes"], document["decision"]
    if decision is None:
        votes = "most votes" in document["formula"][-1]
        compared = [round(score) for score in scores] if votes else scores
        best = int(scores[0] > 0) if len(scores) == 1 else compared.index(max(compared))
        return (scores if p is None else p), classes[best]
    risks = [math.fsum(p[k] * decision["loss"][k][a] for k in range(len(p))) for a in range(len(decision["actions"]))]
    action = decision["actions"][risks.index(min(risks))]
    if decision["reject_cost"] is not None and min(risks) > decision["reject_cost"]:
        action = decision["reject_action"]
    if decision["reject_below"] is not None and max(p) < decision["reject_below"]:
        action = decision["reject_action"]
    return p, action


def kernel_value(kernel, x, z):
    kind = kernel["kind"]
    if kind in ("Sum", "Product"):
        return (math.fsum if kind == "Sum" else math.prod)(kernel_value(part, x, z) for part in kernel["parts"])
    if kind == "Multiple":
        return kernel["factor"] * kernel_value(kernel["kernel"], x, z)
    if kind in ("RBF", "Laplacian"):
        power = 2 if kind == "RBF" else 1
        return math.exp(-kernel["gamma"] * math.fsum(abs(a - b) ** power for a, b in zip(x, z, strict=True)))
    dot = math.fsum(a * b for a, b in zip(x, z, strict=True))
    if kind == "Linear":
        return dot
    inner = kernel["gamma"] * dot + kernel["coef0"]
    return math.tanh(inner) if kind == "Sigmoid" else inner ** kernel["degree"]


def vote_scores(rule, x, z):
    pairs, K = rule_scores(rule["pairs"], x, z), rule["n_classes"]
    votes, sums = [0] * K, [0.0] * K
    for (k, l), f in zip(itertools.combinations(range(K), 2), pairs, strict=True):  # noqa: E741  # as in the formula
        votes[k if f >= 0 else l] += 1
        sums[k] += f
        sums[l] -= f
    return [v + c / (3.0 * (abs(c) + 1.0)) for v, c in zip(votes, sums, strict=True)]


def rule_scores(rule, x, z):
    if rule["kind"] == "pairvote":
        return vote_scores(rule, x, z)
    if rule["kind"] == "kernelexpansion":
        values = [kernel_value(rule["kernel"], z, point) for point in rule["points"]]
        return [
            b + math.fsum(beta[m] * value for beta, value in zip(rule["coefficients"], values, strict=True))
            for m, b in enumerate(rule["constants"])
        ]
    if rule["kind"] == "cumulative":
        a = math.fsum(w * value for w, value in zip(rule["weights"], z, strict=True))
        shares = [0.0, *(sigmoid(threshold - a) for threshold in rule["thresholds"]), 1.0]
        return [math.log(max(shares[r + 1] - shares[r], 1e-300)) for r in rule["ranks"]]
    if rule["kind"] == "linear":
        if rule.get("above") is not None:
            z = [float(value > rule["above"]) for value in z]
        away = [value - centre for value, centre in zip(z, rule["centre"], strict=True)]
        scores = [
            b + math.fsum(w * value for w, value in zip(weights, away, strict=True))
            for weights, b in zip(rule["weights"], rule["constants"], strict=True)
        ]
        if rule.get("G") is not None:
            white = [
                g + math.fsum(G[i] * value for G, value in zip(rule["G"], away, strict=True))
                for i, g in enumerate(rule["g"])
            ]
            scores = [scores[0] / math.sqrt(1.0 + math.pi * math.fsum(value**2 for value in white) / 8.0)]
        return scores
    if rule["kind"] == "quadratic":
        scores = []
        for means, factor, b in zip(rule["means"], rule["factors"], rule["constants"], strict=True):
            away = [value - mean for value, mean in zip(z, means, strict=True)]
            white = [
                math.fsum(row[i] * value for row, value in zip(factor, away, strict=True))
                for i in range(len(factor[0]))
            ]
            scores.append(b - 0.5 * math.fsum(value**2 for value in white))
        return scores
    return [b + math.fsum(added(term, x, k) for term in rule["terms"]) for k, b in enumerate(rule["constants"])]


def added(term, x, k):
    if term["kind"] == "group":
        seen = [(x[name], term["shares"][k][j]) for j, name in enumerate(term["columns"]) if x[name] is not None]
        whole = math.fsum(share for _, share in seen)
        return math.fsum(count * math.log(share / whole) for count, share in seen)
    value = x[term["column"]]
    if value is None:
        return 0.0
    if term["kind"] == "gaussian":
        return term["constants"][k] - 0.5 * ((value - term["means"][k]) / term["scales"][k]) ** 2
    if term["kind"] == "rate":
        return value * math.log(term["rates"][k]) - term["rates"][k]
    return term["logs"][term["values"].index(value)][k] if value in term["values"] else term["other"][k]


def sigmoid(s):
    return 1.0 / (1.0 + math.exp(-s)) if s > -700 else 0.0


def linked(link, scores):
    if link["kind"] == "none":
        return None
    if link["kind"] == "platt":
        p = sigmoid(-(link["slope"] * scores[0] + link["constant"]))
        p = max(p, math.nextafter(0.5, 1.0)) if scores[0] > 0 else min(p, math.nextafter(0.5, 0.0))
        p = min(max(p, 1e-7), 1.0 - 1e-7)
        return [1.0 - p, p]
    if link["kind"] == "shares":
        q = [sigmoid(s) for s in scores]
        return [value / sum(q) for value in q]
    if len(scores) == 1:
        return [sigmoid(-scores[0]), sigmoid(scores[0])]
    e = [math.exp(s - max(scores)) for s in scores]
    return [value / sum(e) for value in e]


@pytest.mark.parametrize("name", [*(f"{name}, two" for name in TWO_CLASSES), *BARE, *KERNELS])
def test_the_document_is_enough_to_compute_the_probabilities(name):
    two = name.endswith(", two")
    model = fitted(name.removesuffix(", two"), two)
    document = json.loads(sx.to_json(model))
    assert document["family"] == type(model).__name__ and document["library_version"] == sx.__version__
    rows = X[::11]
    names = [column["name"] for column in document["columns"]]
    found = [recomputed(document, dict(zip(names, row, strict=True))) for row in rows]
    expected = model.predict_proba(rows) if hasattr(model, "predict_proba") else model.decision_function(rows)
    np.testing.assert_allclose(
        np.array([values for values, _ in found]), np.reshape(expected, (len(rows), -1)), rtol=1e-9, atol=1e-9
    )
    assert [label for _, label in found] == model.predict(rows).tolist()


def test_the_document_of_every_table_model(table_models):
    new = people(60, seed=3, unseen=True)
    rows = new.to_pylist()
    written = 0
    for name, model in table_models.items():
        if name in WITHOUT_SQL:
            continue
        document = json.loads(sx.to_json(model))
        found = [recomputed(document, row) for row in rows]
        expected = model.predict_proba(new) if model.has_probabilities else model.decision_function(new)
        np.testing.assert_allclose(
            np.array([values for values, _ in found]), np.reshape(expected, (60, -1)), rtol=1e-9, atol=1e-9
        )
        assert [label for _, label in found] == model.predict(new).tolist()
        assert document["family"] == model.family
        written += 1
    assert written == 2 * len(FAMILIES) - len(WITHOUT_SQL)


def test_a_document_has_all_digits_and_no_numbers_json_lacks():
    X, y = load_breast_cancer(return_X_y=True)
    priors = sx.LinearDiscriminantAnalysis(priors=[0.0, 1.0]).fit(X, y)
    document = json.loads(sx.to_json(priors), parse_constant=lambda name: pytest.fail(name))
    assert document["rule"]["weights"] == priors._centred[0].tolist()
    _, rows = answers(sx.to_sql(priors), "duckdb", matrix_table(X))
    np.testing.assert_array_equal(np.array([row[:-1] for row in rows]), np.tile([0.0, 1.0], (len(X), 1)))
