"""Tables as matrices: never NaN, row by row, what scikit-learn gives on a clean table; and the model that is deployed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from separatrix import BayesRule, LinearDiscriminantAnalysis, LogisticRegression, MixedNB, Perceptron
from separatrix.comparison.table_model import TableModel
from separatrix.tables.encoder import TableEncoder
from separatrix.tables.rows import TableRows
from separatrix.tables.schema import TableSchema


def schema_of(columns: dict) -> tuple[TableSchema, TableRows]:
    n = len(next(iter(columns.values())))
    table = pa.table(columns | {"y": ["u", "v"] + ["u"] * (n - 2)})
    schema = TableSchema.infer(table, "y")
    return schema, schema.read(table)


@pytest.fixture
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 150
    age, city = rng.integers(20, 80, n).astype(float), rng.choice(["Oslo", "Rome", "Bern"], n, p=[0.5, 0.3, 0.2])
    ill = np.where(age / 20 + (city == "Rome") + rng.logistic(size=n) > 3, "yes", "no")
    frame = pd.DataFrame({"age": age, "height": rng.normal(1.7, 0.1, n), "city": city, "smoker": rng.random(n) < 0.3})
    return frame.assign(ill=ill)


def with_holes(frame: pd.DataFrame) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    columns = {}
    for name in frame.columns.drop("ill"):
        values = frame[name].astype(object)
        columns[name] = [
            None if hole else value for value, hole in zip(values, rng.random(len(frame)) < 0.2, strict=True)
        ]
    return pa.table(columns | {"ill": frame["ill"].tolist()})


def test_a_clean_table_is_encoded_as_scikit_learn_does(people):
    schema = TableSchema.infer(people, "ill")
    encoder = TableEncoder(schema)
    matrix = encoder.fit_transform(schema.read(people))
    numeric = make_pipeline(SimpleImputer(strategy="median"))
    levels = OneHotEncoder(drop=["Oslo"], sparse_output=False)  # the most frequent city
    reference = make_pipeline(
        ColumnTransformer(
            [("n", numeric, ["age", "height"]), ("c", levels, ["city"]), ("b", "passthrough", ["smoker"])]
        ),
        StandardScaler(),
    )
    expected = reference.fit_transform(people)
    scales = np.where(np.arange(5) // 2 == 1, 0.5, reference[-1].scale_)  # categories have a scale of their own
    np.testing.assert_allclose(matrix, expected * reference[-1].scale_ / scales, rtol=1e-12, atol=1e-12)
    assert encoder.feature_names_ == ["age", "height", "city = Bern", "city = Rome", "smoker"]
    assert encoder.origin_ == ["age", "height", "city", "city", "smoker"]
    assert encoder.levels_ == {"city": ["Bern", "Rome"]}
    np.testing.assert_allclose(encoder.centres_, reference[-1].mean_, rtol=1e-13)
    np.testing.assert_allclose(encoder.scales_, scales, rtol=1e-13)


def test_holes_are_filled_with_medians_and_marked_as_scikit_learn_does(people):
    table = with_holes(people)
    schema = TableSchema.infer(table, "ill")
    encoder = TableEncoder(schema, standardise=False)
    matrix = encoder.fit_transform(schema.read(table))
    ages = table.column("age").to_numpy().astype(float)[:, None]
    reference = SimpleImputer(strategy="median", add_indicator=True).fit_transform(ages)
    columns = [encoder.feature_names_.index(name) for name in ("age", "age is missing")]
    np.testing.assert_array_equal(matrix[:, columns], reference)
    assert encoder.medians_["age"] == np.nanmedian(ages)
    cities = table.column("city").to_pylist()
    at = encoder.feature_names_.index("city is missing")
    np.testing.assert_array_equal(matrix[:, at], [city is None for city in cities])
    for level in encoder.levels_["city"]:
        np.testing.assert_array_equal(
            matrix[:, encoder.feature_names_.index(f"city = {level}")], [city == level for city in cities]
        )


NUMBER = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False, width=32), st.sampled_from([0.0, 1.0]))
LEVEL = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "a is missing", "é", "x = a"]))


@st.composite
def tables(draw) -> dict:
    n = draw(st.integers(2, 20))
    kinds = {"x": NUMBER, "x is missing": NUMBER, "c": LEVEL, "c = a": LEVEL, "f": st.sampled_from(["yes", "no", None])}
    columns = {name: draw(st.lists(kind, min_size=n, max_size=n)) for name, kind in kinds.items()}
    return columns | {"always": list(np.arange(n) ** 2.0)}


def by_hand(encoder: TableEncoder, rows: TableRows) -> np.ndarray:
    """The formula of a feature, one value at a time."""
    matrix = np.empty((len(rows), len(encoder.features_)))
    for j, feature in enumerate(encoder.features_):
        for i, x in enumerate(rows.columns[feature.column]):
            missing = x is None or x != x
            value = {"value": feature.fill if missing else x, "missing": missing, "level": x == feature.level}[
                feature.what
            ]
            matrix[i, j] = (float(value) - feature.centre) / feature.scale
    return matrix


@settings(max_examples=100, deadline=None)
@given(columns=tables(), standardise=st.booleans(), data=st.data())
def test_any_table_becomes_finite_numbers_row_by_row(columns, standardise, data):
    schema, rows = schema_of(columns)
    n = len(rows)
    train = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n)))
    encoder = TableEncoder(schema, standardise=standardise).fit(rows.take(train))
    matrix = encoder.transform(rows)
    assert np.isfinite(matrix).all()
    np.testing.assert_array_equal(matrix, by_hand(encoder, rows))  # the list of features is all there is
    for i in range(n):
        np.testing.assert_array_equal(encoder.transform(rows.take(np.array([i])))[0], matrix[i])
    assert len(set(encoder.feature_names_)) == len(encoder.features_)
    if standardise:
        inside = encoder.transform(rows.take(train))
        constant = (inside == inside[0]).all(axis=0)
        np.testing.assert_allclose(inside.mean(axis=0), 0, atol=1e-6)
        indicator = np.array([one.what in ("level", "missing") for one in encoder.features_])
        np.testing.assert_allclose(inside[:, ~constant & ~indicator].std(axis=0), 1, rtol=1e-6)
        steps = np.ptp(inside[:, ~constant & indicator], axis=0)
        np.testing.assert_allclose(steps, 2, rtol=1e-12)
        np.testing.assert_array_equal(inside[:, constant], 0)


@settings(max_examples=30, deadline=None)
@given(columns=tables(), seed=st.integers(0, 99))
def test_neither_the_order_of_rows_nor_of_columns_changes_what_is_learnt(columns, seed):
    schema, rows = schema_of(columns)
    turned = {name: columns[name] for name in reversed(columns)}
    np.testing.assert_array_equal(schema.read(pa.table(turned)).frame().to_pylist(), rows.frame().to_pylist())
    order = np.random.default_rng(seed).permutation(len(rows))
    one, other = TableEncoder(schema).fit(rows), TableEncoder(schema).fit(rows.take(order))
    assert (one.feature_names_, one.levels_, one.medians_) == (other.feature_names_, other.levels_, other.medians_)
    np.testing.assert_allclose(one.centres_, other.centres_, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(one.scales_, other.scales_, rtol=1e-6)


def test_everything_is_learnt_from_the_training_rows_alone():
    columns = {"x": [1.0, 3.0, 100.0, None], "c": ["a", "b", "only later", None], "z": [None, None, 1.0, 2.0]}
    schema, rows = schema_of(columns)
    encoder = TableEncoder(schema, standardise=False).fit(rows.take(np.array([0, 1])))
    assert encoder.feature_names_ == ["x", "c = b", "z", "z is missing"]
    # Unseen categories, and categories missing for the first time, are like the most frequent one; an empty column is 0.
    np.testing.assert_array_equal(encoder.transform(rows), [[1, 0, 0, 1], [3, 1, 0, 1], [100, 0, 1, 0], [2, 0, 2, 0]])


def test_columns_that_are_missing_together_have_one_mark():
    schema, rows = schema_of({"a": [1.0, None, 3.0, 5.0], "b": ["u", None, "v", "u"], "c": [None, 2.0, None, 9.0]})
    encoder = TableEncoder(schema, standardise=False).fit(rows)
    assert encoder.feature_names_ == ["a", "a is missing", "b = v", "c", "c is missing"]
    np.testing.assert_array_equal(encoder.transform(rows)[1], [3.0, 1.0, 0.0, 2.0, 0.0])


def test_the_most_frequent_category_has_no_column_and_fifty_others_have():
    counts = np.r_[2, np.arange(1, 80)]  # the last is the most frequent
    values = [f"level {k:02d}" for k, count in enumerate(counts) for _ in range(count)]
    schema, rows = schema_of({"c": values})
    encoder = TableEncoder(schema, standardise=False).fit(rows)
    assert encoder.levels_["c"] == [f"level {k:02d}" for k in range(29, 79)]
    matrix = encoder.transform(rows)
    np.testing.assert_array_equal(matrix.sum(axis=0), counts[29:79])
    assert matrix.sum(axis=1).max() == 1.0
    assert len(schema.columns[0].categories) == 80


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_extreme_scales(size):
    schema, rows = schema_of({"x": list(np.array([1.0, 2.0, 4.0, 7.0]) * size)})
    expected = StandardScaler().fit_transform([[1.0], [2.0], [4.0], [7.0]])
    np.testing.assert_allclose(TableEncoder(schema).fit_transform(rows), expected, rtol=1e-12)


def test_scikit_learn_conventions(people):
    schema = TableSchema.infer(people, "ill")
    rows = schema.read(people)
    encoder = TableEncoder(schema, standardise=False)
    with pytest.raises(NotFittedError):
        encoder.transform(rows)
    with pytest.raises(ValueError, match="no rows"):
        encoder.fit(rows.take(np.array([], dtype=int)))
    twin = clone(encoder)
    assert twin.get_params()["schema"] is not None
    assert twin.schema == schema
    assert not twin.standardise
    frame = TableEncoder(schema).set_output(transform="pandas").fit(rows).fit_transform(rows)
    np.testing.assert_array_equal(frame, TableEncoder(schema).fit_transform(rows))
    encoder.fit(rows)
    assert list(frame.columns) == encoder.feature_names_
    assert encoder.get_feature_names_out().tolist() == encoder.feature_names_
    assert twin.fit(rows).transform(rows.take(np.array([], dtype=int))).shape == (0, 5)


def test_rows_hold_copies_and_take_copies(people):
    values = np.arange(5.0)
    table = pa.table({"x": values, "y": list("ababa")})
    schema = TableSchema.infer(table, "y")
    rows = schema.read(table)
    values[:] = -1
    np.testing.assert_array_equal(rows.columns["x"], np.arange(5.0))
    part = rows.take(np.array([True, False, True, False, False]))
    part.columns["x"][:] = 9
    np.testing.assert_array_equal(rows.columns["x"], np.arange(5.0))
    assert (len(part), len(rows)) == (2, 5)


def test_a_frame_of_rows_has_the_types_of_its_columns(people):
    table = with_holes(people)
    schema = TableSchema.infer(table, "ill")
    frame = schema.read(table).frame()
    assert frame.schema.types == [pa.float64(), pa.float64(), pa.string(), pa.bool_()]
    assert frame.to_pylist() == table.drop_columns(["ill"]).to_pylist()


# -- the model that is deployed ---------------------------------------------------------------------------------------


def test_a_model_is_schema_encoder_estimator(people):
    table = with_holes(people)
    model = TableModel.fit(table, "ill", LogisticRegression(), family="logistic")
    rows = model.schema.read(table)
    codes, _ = model.schema.read_target(table)
    X = TableEncoder(model.schema).fit_transform(rows)
    reference = LogisticRegression().fit(X, codes)
    np.testing.assert_allclose(model.predict_proba(table), reference.predict_proba(X), rtol=1e-10)
    np.testing.assert_array_equal(model.predict(table), np.array(["no", "yes"])[reference.predict(X)])
    np.testing.assert_array_equal(model.decision_function(rows), model.estimator.decision_function(X))
    np.testing.assert_array_equal(
        model.predict_proba(table.select(["smoker", "city", "height", "age"])), model.predict_proba(rows)
    )
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.has_probabilities


def test_batches_are_predicted_as_the_whole(people):
    table = with_holes(people)
    for estimator, encode in ((LogisticRegression(), True), (MixedNB(), False)):
        model = TableModel.fit(table, "ill", estimator, family="any", encode=encode)
        whole = model.predict_proba(table)
        parts = [model.predict_proba(batch) for batch in table.to_batches(max_chunksize=37)]
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-12, atol=1e-15)


def test_naive_bayes_reads_the_columns_themselves_holes_and_all(people):
    table = with_holes(people)
    model = TableModel.fit(table, "ill", MixedNB(), family="naive-bayes", encode=False)
    assert model.encoder is None
    assert {str(family) for family in model.estimator.families_.values()} == {"gaussian", "categorical", "bernoulli"}
    reference = MixedNB().fit(table.drop_columns(["ill"]), np.array(table.column("ill").to_pylist()))
    np.testing.assert_allclose(
        model.predict_proba(table), reference.predict_proba(table.drop_columns(["ill"])), rtol=1e-12
    )
    nothing = pa.table({name: pa.array([None], pa.string()) for name in ("age", "height", "city", "smoker")})
    np.testing.assert_allclose(model.predict_proba(nothing)[0], np.exp(model.estimator.class_log_prior_))


def test_a_loss_decides_as_the_bayes_rule_does(people):
    loss, actions = [[0.0, 1.0, 0.4], [2.0, 0.0, 0.4]], ["wait", "treat", "test"]
    model = TableModel.fit(people, "ill", LinearDiscriminantAnalysis(), family="lda", loss=loss, actions=actions)
    rows = model.schema.read(people)
    rule = BayesRule(LinearDiscriminantAnalysis(), loss=loss, actions=actions)
    rule.fit(model.encode(rows), model.schema.read_target(people)[0])
    np.testing.assert_array_equal(model.predict(people), rule.predict(model.encode(rows)))
    assert set(model.predict(people)) == set(actions)
    with pytest.raises(ValueError, match="2 classes"):
        TableModel.fit(people, "ill", LogisticRegression(), family="logistic", loss=np.eye(3))


def test_labels_come_back_as_they_are(people):
    for labels in ([7, 9], [True, False], [0.5, 1.5], ["x", "y"]):
        table = people.assign(ill=np.where(people["ill"] == "yes", *labels))
        model = TableModel.fit(table, "ill", LogisticRegression(), family="logistic")
        predicted = model.predict(table)
        assert predicted.dtype.kind == np.array(labels).dtype.kind
        assert (predicted == table["ill"].to_numpy()).mean() > 0.6


def test_rows_without_a_target_are_not_learnt_from(people):
    table = pa.Table.from_pandas(people, preserve_index=False)
    labels = [None if i < 30 else label for i, label in enumerate(people["ill"])]
    half = table.set_column(table.column_names.index("ill"), "ill", pa.array(labels))
    model = TableModel.fit(half, "ill", LogisticRegression(), family="logistic")
    assert any("30 of 150 rows" in finding for finding in model.schema.findings)
    again = TableModel.fit(table.slice(30), "ill", LogisticRegression(), family="logistic")
    np.testing.assert_allclose(model.predict_proba(table), again.predict_proba(table), rtol=1e-10)


def test_a_model_without_probabilities_says_so(people):
    model = TableModel.fit(people, "ill", Perceptron(), family="perceptron")
    assert not model.has_probabilities
    assert set(model.predict(people)) <= {"no", "yes"}
    with pytest.raises(ValueError, match="'perceptron' gives no probabilities"):
        model.predict_proba(people)


def test_a_class_the_estimator_never_saw_has_probability_zero(people):
    three = people.assign(ill=["maybe", *people["ill"][1:]])
    schema = TableSchema.infer(three, "ill")
    rows, (codes, _) = schema.read(three), schema.read_target(three)
    encoder = TableEncoder(schema).fit(rows)
    estimator = LogisticRegression().fit(encoder.transform(rows)[1:], codes[1:])
    proba = TableModel(schema, encoder, estimator, family="logistic").predict_proba(three)
    assert proba.shape == (len(people), 3)
    np.testing.assert_array_equal(proba[:, 0], 0)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_the_estimator_given_is_not_fitted_and_a_wrong_table_is_refused(people):
    estimator = LogisticRegression()
    model = TableModel.fit(people, "ill", estimator, family="logistic")
    assert not hasattr(estimator, "coef_")
    with pytest.raises(ValueError, match="schema mismatch: the table has no column 'age'"):
        model.predict(people.drop(columns="age"))
    with pytest.raises(ValueError, match=r"column 'age', row 3 .*'old' is not a number"):
        model.predict(pa.table(people.assign(age=["1", "2", "old"] * 50)))


def test_a_penalty_shrinks_rare_and_frequent_categories_alike():
    """The encoding that a penalty sees of a category does not depend on how many rows have it."""
    city = ["Bern"] * 60 + ["Rome"] * 40 + ["Oslo"] * 10
    table = pa.table({"city": city, "age": np.arange(110) ** 2 % 37, "ill": np.arange(110) % 2})
    schema = TableSchema.infer(table, "ill")
    rows = schema.read(table)
    for weights in (None, np.linspace(0.5, 2.0, 110)):
        encoder = TableEncoder(schema).fit(rows, weights=weights)
        X = encoder.transform(rows)
        assert encoder.feature_names_ == ["city = Oslo", "city = Rome", "age"]
        np.testing.assert_allclose(np.ptp(X[:, :2], axis=0), 2.0)
        np.testing.assert_allclose(np.average(X, axis=0, weights=weights), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.average(X[:, 2] ** 2, weights=weights), 1.0)
