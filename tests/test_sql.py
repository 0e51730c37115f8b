"""SQL against predict_proba, on the engines themselves; PostgreSQL's text is read by DuckDB, whose grammar is PostgreSQL's."""

from __future__ import annotations

import json
import math
import sqlite3
import warnings
from functools import cache

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import PolynomialFeatures

import separatrix as sx
from separatrix.comparison.families import FAMILIES
from separatrix.comparison.table_model import TableModel
from separatrix.export.sql_words import total

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


BARE = {
    "logistic": sx.LogisticRegression(C=100.0),
    "logistic l1": sx.LogisticRegression(C=0.1, l1_ratio=1.0),
    "reference": sx.LogisticRegression(multi_class="reference"),
    "logistic cv": sx.LogisticRegressionCV(Cs=2, cv=3),
    "lda": sx.LinearDiscriminantAnalysis(),
    "lda eigen": sx.LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
    "qda": sx.QuadraticDiscriminantAnalysis(reg_param=0.01),
    "rda": sx.RegularizedDiscriminantAnalysis(),
    "gaussian": sx.GaussianNB(),
    "gaussian shared": sx.GaussianNB(shared_variance=True),
    "multinomial": sx.MultinomialNB(),
    "complement": sx.ComplementNB(),
    "bernoulli": sx.BernoulliNB(binarize=6.0),
    "categorical": sx.CategoricalNB(),
    "mixed": sx.MixedNB(["gaussian", "poisson", "multinomial", "multinomial"]),
    "ridge": sx.RidgeClassifier(),
    "linear svc": sx.LinearSVC(),
    "linear hinge": sx.LinearClassifier("hinge"),
    "perceptron": sx.Perceptron(),
    "one against rest": sx.OneVsRestClassifier(sx.LogisticRegression()),
    "machines against rest": sx.OneVsRestClassifier(sx.LinearSVC()),
    "rule": sx.BayesRule(sx.GaussianNB(), loss=[[0, 1, 4], [1, 0, 1], [4, 1, 0]]),
    "rule with priors": sx.BayesRule(sx.LogisticRegression(), priors=[0.1, 0.2, 0.7]),
    "rejecting rule": sx.BayesRule(sx.LinearDiscriminantAnalysis(), reject_cost=0.02, reject_below=0.9),
}
TWO_CLASSES = {
    **{
        name: BARE[name]
        for name in ("logistic", "lda", "qda", "gaussian", "multinomial", "mixed", "ridge", "perceptron")
    },
    "svc": sx.SVC(kernel="linear", calibration="platt", random_state=0),
    "svc without": sx.SVC(kernel="linear"),
    "bayesian": sx.BayesianLogisticRegression(),
    "bayesian, diagonal": sx.BayesianLogisticRegression(covariance="diagonal", fit_intercept=False),
    "shifted rule": sx.BayesRule(sx.LogisticRegression(), priors=[0.9, 0.1], loss=[[0, 1], [3, 0]]),
}


def quiet_fit(model, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(*arguments)


@cache
def fitted(name, two=False):
    return quiet_fit((TWO_CLASSES if two else BARE)[name], X, TWO if two else Y)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", BARE)
def test_bare_estimators(name, dialect):
    agrees(fitted(name), dialect, matrix_table(X), X)


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
    for name in ("logistic", "qda", "ridge", "rejecting rule"):
        for dialect in DIALECTS:
            rows = answers(sx.to_sql(fitted(name), dialect=dialect), dialect, table)[1]
            assert None not in rows[0]
            assert set(rows[1]) == {None} == set(rows[2])
    for name in ("svc", "bayesian", "logistic"):
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


WITHOUT_SQL = {"svm-rbf", "svm-rbf, two classes", "linear-svm", "bayesian-logistic"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", [f"{name}{more}" for name in FAMILIES for more in ("", ", two classes")])
def test_every_family_on_a_table_with_holes_and_unseen_values(name, dialect, table_models):
    model, new = table_models[name], people(150, seed=1, unseen=True)
    if name in WITHOUT_SQL:
        with pytest.raises(ValueError, match=r"cannot be written as SQL: .* (Use|keep) "):
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
        "a kernel compares each row": sx.SVC(),
        "vote between pairs": sx.SVC(kernel="linear"),
        "not a sum over columns": sx.FeatureMap(PolynomialFeatures(2), sx.LinearDiscriminantAnalysis()),
        "alpha > 0": sx.CategoricalNB(alpha=0),
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
            v = float(value == feature["level"])
        z.append((v - feature["centre"]) / feature["scale"])
    scores = rule_scores(document["rule"], x, z)
    p = linked(document["link"], scores)
    classes, decision = document["classes"], document["decision"]
    if decision is None:
        best = int(scores[0] > 0) if len(scores) == 1 else scores.index(max(scores))
        return (scores if p is None else p), classes[best]
    risks = [math.fsum(p[k] * decision["loss"][k][a] for k in range(len(p))) for a in range(len(decision["actions"]))]
    action = decision["actions"][risks.index(min(risks))]
    if decision["reject_cost"] is not None and min(risks) > decision["reject_cost"]:
        action = decision["reject_action"]
    if decision["reject_below"] is not None and max(p) < decision["reject_below"]:
        action = decision["reject_action"]
    return p, action


def rule_scores(rule, x, z):
    if rule["kind"] == "linear":
        if rule["above"] is not None:
            z = [float(value > rule["above"]) for value in z]
        away = [value - centre for value, centre in zip(z, rule["centre"], strict=True)]
        scores = [
            b + math.fsum(w * value for w, value in zip(weights, away, strict=True))
            for weights, b in zip(rule["weights"], rule["constants"], strict=True)
        ]
        if rule["G"] is not None:
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


@pytest.mark.parametrize("name", [*(f"{name}, two" for name in TWO_CLASSES), *BARE])
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
