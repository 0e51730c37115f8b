"""Bad input gets a sentence that names what is wrong: the column, the class, the argument. Never NaN, never a stack."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from estimators import each, having, named
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import PolynomialFeatures

from separatrix import (
    FeatureMap,
    FisherDiscriminant,
    LinearDiscriminantAnalysis,
    LinearRegression,
    LogisticRegression,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    Ridge,
    RidgeClassifier,
    Source,
    Status,
    as_source,
    scan_csv,
    scan_parquet,
)

ESTIMATORS = having(basic=True, family=("discriminant", "least_squares"))
LABELLED = having(basic=True, family=("discriminant", "least_squares"), regressor=False)
CLASSIFIERS = having(basic=True, family=("discriminant", "least_squares"), classifier=True)
MOMENTS = named("lda", "qda", "fisher", "ridge classifier")
NAMES = ["ant", "bee", "cow", "dog"]
N = 60
X = np.random.default_rng(0).standard_normal((N, 4)) + (np.arange(N) % 3)[:, None]
Y = np.arange(N) % 3
every = each("estimator", ESTIMATORS)
each_labelled = each("estimator", LABELLED)
each_of_moments = each("estimator", MOMENTS)


@contextmanager
def refused(*words: str, kind: Any = ValueError) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Refused with a sentence that has all the words in it, and without a warning before it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(kind) as error:
            yield error
    for word in words:
        assert re.search(word, str(error.value)), f"{word!r} is not in: {error.value}"


def ask(model: Any) -> Callable[[Any], Any]:
    return model.predict if hasattr(model, "predict") else model.transform


def write(folder: Path, suffix: str, rows: np.ndarray) -> Any:
    table = pa.table({name: rows[:, j] for j, name in enumerate(NAMES)} | {"y": Y[: len(rows)]})
    path = folder / f"rows{suffix}"
    if suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
        return scan_csv(path, target="y")
    pq.write_table(table, path)
    return scan_parquet(path, target="y")


def frame(rows: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=NAMES)


def nullable(rows: np.ndarray) -> pd.DataFrame:
    """NaN as the missing value of a nullable column."""
    table = frame(rows).astype("Float64")
    table["cow"] = pd.array([None if np.isnan(x) else x for x in rows[:, 2]], dtype="Float64")
    return table


STORAGES: dict[str, tuple[Callable[[np.ndarray, Path], Any], bool]] = {
    "numpy": (lambda rows, folder: rows, False),
    "numpy Fortran": (lambda rows, folder: np.asfortranarray(rows), False),
    "numpy float32": (lambda rows, folder: rows.astype(np.float32), False),
    "list": (lambda rows, folder: rows.tolist(), False),
    "csr": (lambda rows, folder: sp.csr_array(rows), False),
    "csc": (lambda rows, folder: sp.csc_matrix(rows), False),
    "pandas": (lambda rows, folder: frame(rows), True),
    "polars": (lambda rows, folder: pl.DataFrame(rows, schema=NAMES), True),
    "arrow table": (lambda rows, folder: pa.Table.from_pandas(frame(rows)), True),
    "arrow record batch": (lambda rows, folder: pa.RecordBatch.from_pandas(frame(rows)), True),
    "source": (lambda rows, folder: as_source(frame(rows), Y[: len(rows)]), True),
    "parquet": (lambda rows, folder: write(folder, ".parquet", rows), True),
    "csv": (lambda rows, folder: write(folder, ".csv", rows), True),
}


# -- NaN and infinity -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("storage", STORAGES)
def test_nan_and_infinity_name_the_first_bad_column_and_count_its_rows(
    storage: str, bad: float, tmp_path: Path
) -> None:
    make, has_names = STORAGES[storage]
    spoilt = X.copy()
    spoilt[[3, 7], 2] = bad
    spoilt[1, 3] = np.nan
    where = "column 'cow'" if has_names else r"column 2\b"
    given = make(spoilt, tmp_path)
    y = () if isinstance(given, Source) else (Y,)
    for estimator in ESTIMATORS.values():
        with refused("X", where, r"\b2 such rows", r"row 3\b", "1 more column"):
            clone(estimator).fit(given, *y)
        model = clone(estimator).fit(frame(X) if has_names else X, Y)
        with refused(where, r"\b2 such rows", r"row 3\b"):
            ask(model)(given)
        if hasattr(estimator, "partial_fit") and getattr(estimator, "solver", "") != "cg":
            with refused(where, r"\b2 such rows"):
                clone(estimator).partial_fit(given, *y)


def test_nan_far_down_in_many_blocks_is_found_in_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.data.source._TARGET_BYTES", 1 << 12)
    rows = np.random.default_rng(0).standard_normal((10_000, 3))
    rows[[5000, 9999], 1] = np.nan
    for given in (rows, sp.csr_array(rows), pd.DataFrame(rows, columns=list("abc"))):
        where = "column 'b'" if isinstance(given, pd.DataFrame) else "column 1"
        with refused(where, "2 such rows", "row 5000"):
            LinearDiscriminantAnalysis().fit(given, np.arange(10_000) % 2)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"ant": X[:, 0], "bee": pd.array([1, None, 3] * 20, dtype="Int64")}),
        pd.DataFrame({"ant": X[:, 0], "bee": pd.array([1.5, None, 3] * 20, dtype="Float64")}),
        pd.DataFrame({"ant": X[:, 0], "bee": pd.array([True, None, False] * 20, dtype="boolean")}),
        pd.DataFrame({"ant": X[:, 0], "bee": pd.array([1, None, 3] * 20, dtype="int64[pyarrow]")}),
        pd.DataFrame({"ant": X[:, 0], "bee": np.array([True, None, False] * 20, dtype=object)}),
        pl.DataFrame({"ant": X[:, 0], "bee": [1, None, 3] * 20}),
        pl.DataFrame({"ant": X[:, 0], "bee": [True, None, False] * 20}),
        pa.table({"ant": X[:, 0], "bee": pa.array([1, None, 3] * 20)}),
        pa.table({"ant": X[:, 0], "bee": pa.array([True, None, False] * 20)}),
    ],
    ids=["Int64", "Float64", "boolean", "arrow in pandas", "object", "polars", "polars bool", "arrow", "arrow bool"],
)
def test_missing_values_of_frames_are_nan_of_their_column(table: Any) -> None:
    with refused("NaN", "column 'bee'", r"\b20 such rows", r"row 1\b"):
        LinearDiscriminantAnalysis().fit(table, Y)


def test_values_whose_squares_overflow_are_refused() -> None:
    large = X.copy()
    large[:, 1] *= 1e200
    for estimator in ESTIMATORS.values():
        with refused("overflow", "divide"):
            clone(estimator).fit(large, Y)


@each(
    "weighted",
    ESTIMATORS | named("qda eigen, ledoit-wolf", "rda, ledoit-wolf", "rda, leave one out", "ridge, leave one out"),
)
def test_nan_in_a_row_of_weight_zero_is_refused_or_as_if_not_there(weighted: Any) -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((N, 4)) @ rng.standard_normal((4, 4)) * [1, 2, 3, 4] + Y[:, None]
    w = np.ones(N)
    w[5] = 0.0
    spoilt = rows.copy()
    spoilt[5] = np.nan
    expected = clone(weighted).fit(np.delete(rows, 5, axis=0), np.delete(Y, 5))
    try:
        model = clone(weighted).fit(spoilt, Y, sample_weight=w)
    except ValueError as error:
        assert "column 0" in str(error)
        return
    for name in ("predict_proba", "decision_function", "transform", "predict"):
        if hasattr(expected, name) and not (name == "transform" and getattr(expected, "solver", "") == "lsqr"):
            np.testing.assert_allclose(getattr(model, name)(rows), getattr(expected, name)(rows), rtol=1e-6, atol=1e-6)


def test_least_squares_that_are_refined_do_not_see_rows_of_weight_zero() -> None:
    rows = X.copy()
    rows[:, 3] = rows[:, 2] + 1e-7 * np.random.default_rng(0).standard_normal(N)
    spoilt, w = rows.copy(), np.ones(N)
    spoilt[5], w[5] = np.nan, 0.0
    model = LinearRegression().fit(spoilt, X[:, 0] + X[:, 1], sample_weight=w)
    assert np.isfinite(model.coef_).all()
    np.testing.assert_allclose(model.predict(rows), X[:, 0] + X[:, 1], atol=1e-6)


# -- targets ----------------------------------------------------------------------------------------------------------

MISSING_LABELS = {
    "float": np.array([0.0, 1.0, np.nan] * 20),
    "objects": np.array(["a", "b", None] * 20, dtype=object),
    "objects with NaN": np.array(["a", "b", np.nan] * 20, dtype=object),
    "list": ["a", "b", None] * 20,
    "pandas": pd.Series(["a", "b", None] * 20),
    "pandas string": pd.Series(["a", "b", None] * 20, dtype="string"),
    "pandas category": pd.Series(["a", "b", None] * 20, dtype="category"),
    "pandas Int64": pd.Series([0, 1, None] * 20, dtype="Int64"),
    "polars": pl.Series(["a", "b", None] * 20),
    "arrow": pa.array(["a", "b", None] * 20),
}


@pytest.mark.parametrize("kind", MISSING_LABELS)
@each("estimator", named("lda", "ridge classifier", "fisher", "svc", "nu svc"))
def test_missing_labels_are_counted(estimator: Any, kind: str) -> None:
    with refused(r"\by\b", r"\b20 rows", "drop"):
        clone(estimator).fit(X, MISSING_LABELS[kind])


@pytest.mark.parametrize(
    "y",
    [
        np.array([0.5, np.nan, 1.5] * 20),
        np.array([0.5, np.inf, 1.5] * 20),
        np.array([0.5, None, 1.5] * 20, dtype=object),
        pd.Series([0.5, None, 1.5] * 20),
        pd.Series([0.5, None, 1.5] * 20, dtype="Float64"),
        pl.Series([0.5, None, 1.5] * 20),
        pa.array([0.5, None, 1.5] * 20),
        np.array([[1.0, 2.0], [np.nan, 3.0], [1.0, 1.0]] * 20),
    ],
    ids=["NaN", "inf", "None", "pandas", "pandas Float64", "polars", "arrow", "two targets"],
)
@each("estimator", having(basic=True, regressor=True, family="least_squares"))
def test_missing_values_to_predict_are_counted(estimator: Any, y: Any) -> None:
    with refused(r"\by\b", r"\b20 rows"):
        clone(estimator).fit(X, y)


@each("estimator", named("ridge", "least squares"))
def test_targets_whose_squares_overflow_are_not_blamed_on_the_features(estimator: Any) -> None:
    with refused(r"\by\b", "overflow"):
        clone(estimator).fit(X, 1e200 * X[:, 0])


def test_words_are_no_values_to_predict() -> None:
    with refused(r"\by\b", "not numbers"):
        Ridge().fit(X, ["a", "b", "c"] * 20)


@each_labelled
def test_continuous_targets_are_no_labels(estimator: Any) -> None:
    with refused("continuous", "Ridge"):
        clone(estimator).fit(X, X[:, 0])


@each_labelled
def test_labels_of_two_types_are_refused(estimator: Any) -> None:
    with refused("int", "str", kind=TypeError):
        clone(estimator).fit(X, np.array(["a", 1] * 30, dtype=object))


@each_labelled
@pytest.mark.parametrize("pair", [({}, {}), (Status.EXACT, Status.LEVEL)], ids=["dict", "enumeration"])
def test_labels_without_an_order_are_refused(estimator: Any, pair: Any) -> None:
    with refused(r"\by\b", type(pair[0]).__name__, "order", kind=TypeError):
        clone(estimator).fit(X, np.array(pair * 30, dtype=object))


@every
def test_what_a_mask_hides_is_not_read(estimator: Any) -> None:
    with refused(r"^X\b", r"\b3 masked"):
        clone(estimator).fit(np.ma.masked_array(X, np.arange(X.size).reshape(X.shape) < 3), Y)
    with refused(r"^y\b", r"\b20 masked"):
        clone(estimator).fit(X, np.ma.masked_array(Y, Y == 2))
    whole = clone(estimator).fit(np.ma.masked_array(X, False), np.ma.masked_array(Y, False))
    with refused(r"^X\b", r"\b3 masked"):
        asked = whole.predict if hasattr(whole, "predict") else whole.transform
        asked(np.ma.masked_array(X, np.arange(X.size).reshape(X.shape) < 3))


@each_labelled
@pytest.mark.parametrize("label", ["spam", 7, True], ids=str)
def test_one_class_is_named(estimator: Any, label: Any) -> None:
    with refused(rf"\b{label}", "one class"):
        clone(estimator).fit(X, np.full(N, label))


def test_sentences_have_labels_as_the_user_wrote_them() -> None:
    for y in (np.full(N, 7), np.full(N, True)):
        with refused("one class") as error:
            LinearDiscriminantAnalysis().fit(X, y)
        assert "np." not in str(error.value)
    with refused("classes") as error:
        LinearDiscriminantAnalysis().partial_fit(X, Y, classes=[0, 2])
    assert "np." not in str(error.value)
    with refused("classes") as error:
        as_source(X, Y).labelled(np.array([0, 2]))
    assert "np." not in str(error.value)


@every
def test_targets_are_required_and_must_fit(estimator: Any) -> None:
    with refused(r"\by\b"):
        clone(estimator).fit(X)
    with refused(f"{N}", f"{N - 1}"):
        clone(estimator).fit(X, Y[:-1])
    with refused(r"\by\b|1d array|dim 3"):
        clone(estimator).fit(X, np.zeros((N, 2, 2)))


@each("estimator", having(basic=True, family="discriminant"))
def test_labels_are_one_column(estimator: Any) -> None:
    with refused("1d array", r"\(60, 2\)"):
        clone(estimator).fit(X, np.column_stack([Y, Y]))


def test_several_labels_a_row_are_zeros_and_ones() -> None:
    with refused("zeros and ones"):
        RidgeClassifier().fit(X, np.column_stack([Y, Y]))


# -- weights ----------------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.where(np.arange(N) < 3, np.nan, 1.0), ["NaN", r"\b3 rows"]),
        (np.where(np.arange(N) < 3, np.inf, 1.0), ["infinity", r"\b3 rows"]),
        (np.where(np.arange(N) < 2, -1.0, 1.0), ["negative", r"\b2 rows"]),
        (np.zeros(N), ["zero", "positive"]),
        (np.ones(N - 1), [rf"\b{N - 1}\b", rf"\b{N}\b"]),
        (np.ones((N, 1)), [rf"\({N}, 1\)"]),
        (np.full(N, 1e-310), ["larger"]),
        (np.full(N, 1e308), ["total", "divide"]),
        (["light"] * N, ["'light'", "number"]),
        (np.array([{}] * N), ["dict", "number"]),
        (sp.csr_array(np.ones((N, 1))), ["csr_array", "number"]),
        (iter([1.0] * N), ["list_iterator", "number"]),
        (np.ma.masked_array(np.ones(N), np.arange(N) < 3), [r"\b3 masked"]),
    ],
    ids=[
        "NaN",
        "infinite",
        "negative",
        "zero",
        "short",
        "matrix",
        "subnormal",
        "overflowing",
        "text",
        "objects",
        "sparse",
        "iterator",
        "masked",
    ],
)
def test_bad_weights_are_refused(estimator: Any, weights: Any, words: list[str]) -> None:
    with refused("(?i)sample.weight", *words, kind=(TypeError, ValueError)):
        clone(estimator).fit(X, Y, sample_weight=weights)
    if hasattr(estimator, "partial_fit"):
        with refused("(?i)sample.weight", *words, kind=(TypeError, ValueError)):
            clone(estimator).partial_fit(X, Y, sample_weight=weights)


def test_bad_weights_are_refused_by_the_source_too() -> None:
    with refused("sample_weight", "negative"):
        as_source(X, Y, -np.ones(N))
    with refused("sample_weight", "zero"):
        as_source(X, Y, np.zeros(N))


# -- rows and columns -------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (X[:, 0], "2D array"),
        (np.zeros((N, 2, 2)), "dim 3|3D"),
        (np.zeros((0, 4)), "0 sample"),
        (np.zeros((N, 0)), "0 feature"),
        (frame(X)[:0], "0 sample"),
        (frame(X)[[]], "0 feature"),
        (pl.DataFrame(X)[:0], "0 sample"),
        (pa.table({"a": pa.array([], pa.float64())}), "0 sample"),
        (sp.csr_array((0, 4)), "0 sample"),
        (X + 1j, "(?i)complex"),
        (np.full((N, 4), "word"), "string|numeric"),
    ],
    ids=[
        "vector",
        "cube",
        "no rows",
        "no columns",
        "pandas rows",
        "pandas columns",
        "polars",
        "arrow",
        "csr",
        "complex",
        "words",
    ],
)
def test_rows_of_the_wrong_shape_or_type_are_refused(estimator: Any, rows: Any, words: str) -> None:
    n = rows.num_rows if isinstance(rows, pa.Table) else rows.shape[0]
    with refused(words):
        clone(estimator).fit(rows, Y[:n])


def test_the_source_refuses_shapes_and_types_too() -> None:
    with refused("2D array"):
        as_source(X[:, 0])
    with refused("string"):
        as_source([["a", "b"]])
    with refused(f"{N}", f"{N - 1}"):
        as_source(X, Y[:-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with refused("(?i)complex"):
            as_source(X + 1j)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"ant": X[:, 0], "city": ["Rome", "Oslo", "Bonn"] * 20}),
        pd.DataFrame({"ant": X[:, 0], "city": np.array(["Rome", 1, 2.5] * 20, dtype=object)}),
        pd.DataFrame({"ant": X[:, 0], "city": pd.Categorical(["Rome", "Oslo", "Bonn"] * 20)}),
        pd.DataFrame({"ant": X[:, 0], "city": pd.date_range("2020-01-01", periods=N)}),
        pl.DataFrame({"ant": X[:, 0], "city": ["Rome", "Oslo", "Bonn"] * 20}),
        pa.table({"ant": X[:, 0], "city": ["Rome", "Oslo", "Bonn"] * 20}),
        pa.record_batch({"ant": X[:, 0], "city": pa.array(["Rome", "Oslo", "Bonn"] * 20)}),
    ],
    ids=["pandas", "objects", "category", "dates", "polars", "arrow", "record batch"],
)
def test_columns_that_are_not_numbers_are_named(table: Any) -> None:
    for estimator in ESTIMATORS.values():
        with refused("column 'city'", "not numeric", "[Ee]ncode|leave it out"):
            clone(estimator).fit(table, Y)


def test_an_empty_file_is_a_sentence_at_predict_time_too(tmp_path: Path) -> None:
    model = LinearDiscriminantAnalysis().fit(frame(X), Y)
    for suffix in (".parquet", ".csv"):
        rows = write(tmp_path, suffix, X[:0])
        with refused("no rows"):
            model.predict(rows)
        with refused("no rows?"):
            LinearDiscriminantAnalysis().fit(rows)


# -- too little data --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis(solver="lsqr"), FisherDiscriminant()],
    ids=repr,
)
def test_a_row_a_class_has_no_covariance(estimator: Any) -> None:
    with refused("number of samples must be more than the number of classes"):
        clone(estimator).fit(X[:3], [0, 1, 2])


def test_rows_that_do_not_vary_within_classes_have_no_covariance() -> None:
    rows = np.repeat(np.eye(3), 5, axis=0)
    for estimator in (LinearDiscriminantAnalysis(), FisherDiscriminant()):
        with refused("[Nn]o column varies"):
            clone(estimator).fit(rows, np.repeat([0, 1, 2], 5))


def test_advice_is_not_what_was_done_already() -> None:
    rows = np.repeat(np.eye(3), 5, axis=0)
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5)
    with refused("[Nn]o column varies") as error:
        model.fit(rows, np.repeat([0, 1, 2], 5))
    assert "use solver='lsqr'" not in str(error.value)


def test_a_class_too_small_for_its_covariance_is_named() -> None:
    y = np.where(np.arange(N) < 3, "rare", "common")
    with refused("class rare", "not full rank", "reg_param"):
        QuadraticDiscriminantAnalysis().fit(X, y)
    y = np.where(np.arange(N) < 1, "single", "common")
    with refused("class single", r"\b1 sample", "more rows"):
        QuadraticDiscriminantAnalysis().fit(X, y)


def test_the_unbiased_divisor_needs_more_rows_than_classes() -> None:
    rows, y = np.array([[0.0], [1.0], [3.0]]), [0, 0, 1]
    w = [0.5, 0.5, 1.0]
    model = LinearDiscriminantAnalysis(covariance="unbiased")
    with refused("unbiased", "mle", r"\b2\b"):
        model.fit(rows, y, sample_weight=w)


def test_leaving_one_out_needs_two_rows_a_class() -> None:
    y = np.where(np.arange(N) < 1, "single", "common")
    with refused("'single'", "two"):
        RegularizedDiscriminantAnalysis("loo", "loo").fit(X, y)


# -- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, RegularizedDiscriminantAnalysis]
)
@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ([0.5, 0.5], [r"\(2,\)", r"\b3 classes", r"\[0, 1, 2\]"]),
        ([[0.2, 0.3, 0.5]], [r"\(1, 3\)"]),
        ([0.5, 0.7, -0.2], ["non-negative"]),
        ([0.5, 0.5, np.nan], ["finite"]),
        ([0.5, 0.5, np.inf], ["finite"]),
        ([0.0, 0.0, 0.0], ["zero"]),
    ],
    ids=["short", "matrix", "negative", "NaN", "infinite", "zero"],
)
def test_bad_priors_are_refused(make: Callable[..., Any], priors: Any, words: list[str]) -> None:
    with refused("priors", *words):
        make(priors=priors).fit(X, Y)


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (LinearDiscriminantAnalysis, {"solver": "magic"}),
        (LinearDiscriminantAnalysis, {"shrinkage": 1.5}),
        (LinearDiscriminantAnalysis, {"shrinkage": "none"}),
        (LinearDiscriminantAnalysis, {"n_components": 0}),
        (LinearDiscriminantAnalysis, {"n_components": 3}),
        (LinearDiscriminantAnalysis, {"tol": -1.0}),
        (LinearDiscriminantAnalysis, {"covariance": "robust"}),
        (LinearDiscriminantAnalysis, {"shrinkage": 0.5}),
        (LinearDiscriminantAnalysis, {"solver": "lsqr", "covariance_estimator": 3}),
        (QuadraticDiscriminantAnalysis, {"reg_param": -0.1}),
        (QuadraticDiscriminantAnalysis, {"reg_param": np.nan}),
        (QuadraticDiscriminantAnalysis, {"singular": "ignore"}),
        (QuadraticDiscriminantAnalysis, {"solver": "lsqr"}),
        (RegularizedDiscriminantAnalysis, {"alpha": 2.0}),
        (RegularizedDiscriminantAnalysis, {"gamma": "auto"}),
        (RegularizedDiscriminantAnalysis, {"target": "zero"}),
        (RegularizedDiscriminantAnalysis, {"alpha": "loo", "alphas": [0.5, 1.5]}),
        (FisherDiscriminant, {"n_components": 3}),
        (FisherDiscriminant, {"shrinkage": "auto"}),
        (RidgeClassifier, {"alpha": -1.0}),
        (RidgeClassifier, {"max_norm": 0.0}),
        (RidgeClassifier, {"class_weight": "even"}),
        (RidgeClassifier, {"class_weight": {5: 2.0}}),
        (Ridge, {"alpha": -1.0}),
        (Ridge, {"solver": "newton"}),
        (LinearRegression, {"fit_intercept": "yes"}),
    ],
    ids=str,
)
def test_unknown_values_of_parameters_are_refused_by_name(make: Callable[..., Any], parameters: dict[str, Any]) -> None:
    name = list(parameters)[-1].replace("_", "[_ ]")
    with refused(name, kind=(ValueError, NotImplementedError)):
        make(**parameters).fit(X, Y)


def test_parameters_are_left_as_they_were_given() -> None:
    priors, weights = [0.2, 0.3, 0.5], {0: 2.0}
    for model in (LinearDiscriminantAnalysis(priors=priors), RidgeClassifier(class_weight=weights)):
        before = repr(model.get_params())
        model.fit(X, Y)
        assert repr(model.get_params()) == before
    assert (priors, weights) == ([0.2, 0.3, 0.5], {0: 2.0})


# -- before and after a fit -------------------------------------------------------------------------------------------

ASKED = ("predict", "predict_proba", "decision_function", "transform", "log_density", "mahalanobis", "signed_distance")


@every
def test_questions_before_fit_are_refused(estimator: Any) -> None:
    for name in ASKED:
        if hasattr(estimator, name) and not (name == "transform" and getattr(estimator, "solver", "") == "lsqr"):
            with refused("fit", type(estimator).__name__, kind=NotFittedError):
                getattr(clone(estimator), name)(X)
    for name in ("linear_form", "boundary"):
        if hasattr(estimator, name):
            with refused("fit", kind=NotFittedError):
                getattr(clone(estimator), name)()
    if hasattr(estimator, "merge"):
        with refused("fit", kind=NotFittedError):
            clone(estimator).merge(clone(estimator))


def test_outliers_before_a_threshold_are_refused() -> None:
    model = LinearDiscriminantAnalysis().fit(X, Y)
    with refused("threshold", "fit_outlier_threshold"):
        model.is_outlier(X)
    with refused("quantile", "1.5"):
        model.fit_outlier_threshold(X, 1.5)


def test_classes_of_a_boundary_must_be_classes() -> None:
    model = LinearDiscriminantAnalysis().fit(X, Y)
    with refused(r"\b9\b", r"\[0, 1, 2\]"):
        model.boundary(0, 9)
    with refused(r"\[0, 1, 2\]"):
        model.boundary()
    with refused("itself"):
        model.boundary(1, 1)


@pytest.mark.parametrize("before", [False, True], ids=["new", "fitted before"])
def test_a_refused_fit_leaves_no_half_a_model(before: bool) -> None:
    dependent = np.column_stack([X, X[:, 0]])
    model = QuadraticDiscriminantAnalysis()
    if before:
        model.fit(X, Y)
    with refused("not full rank"):
        model.fit(dependent, Y)
    if before and getattr(model, "n_features_in_", 0) == 4:  # it may keep the model it had, whole
        np.testing.assert_array_equal(model.predict(X), QuadraticDiscriminantAnalysis().fit(X, Y).predict(X))
    else:
        with refused("fit", kind=NotFittedError):
            model.predict(dependent)


@each("estimator", having(basic=True, counts=False, missing=False))
def test_a_refused_fit_leaves_the_attributes_as_they_were(estimator: Any) -> None:
    spoilt = np.where(np.arange(X.size).reshape(X.shape) == 5, np.nan, X)
    model = clone(estimator)
    with refused("NaN"):
        model.fit(spoilt, Y)
    assert vars(model).keys() == vars(clone(estimator)).keys()
    before = dict(vars(model.fit(X, Y)))
    for rows in (spoilt, spoilt[:, :3]):
        with refused("NaN"):
            model.fit(rows, Y[: len(rows)] > 0)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())


@each_of_moments
def test_a_part_refused_for_its_parameters_is_not_counted(estimator: Any) -> None:
    model = clone(estimator).partial_fit(X[:40], Y[:40])
    before = model._moments.counts.copy()
    model._finish = lambda *_: (_ for _ in ()).throw(ValueError("refused late"))
    with refused("late"):
        model.partial_fit(X[40:], Y[40:])
    del model._finish
    np.testing.assert_array_equal(model._moments.counts, before)
    np.testing.assert_allclose(ask(model.partial_fit(X[40:], Y[40:]))(X), ask(clone(estimator).fit(X, Y))(X), atol=1e-9)


# -- merging ----------------------------------------------------------------------------------------------------------


def test_models_of_different_kinds_do_not_merge() -> None:
    models = [clone(estimator).fit(X, Y) for estimator in MOMENTS.values()]
    for one, other in zip(models, models[1:] + models[:1], strict=True):
        words = (type(one).__name__, type(other).__name__)
        with refused(*words, kind=TypeError):
            one.merge(other)


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        (LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis(tol=1e-3), "tol"),
        (LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis(priors=[0.2, 0.2, 0.6]), "priors"),
        (QuadraticDiscriminantAnalysis(), QuadraticDiscriminantAnalysis(reg_param=0.5), "reg_param"),
        (FisherDiscriminant(), FisherDiscriminant(shrinkage=0.5), "shrinkage"),
        (RidgeClassifier(), RidgeClassifier(2.0), "alpha"),
        (Ridge(), Ridge(2.0), "alpha"),
    ],
    ids=str,
)
def test_models_of_different_parameters_do_not_merge(one: Any, other: Any, name: str) -> None:
    with refused("different parameters", name):
        clone(one).fit(X, Y).merge(clone(other).fit(X, Y))


@each("estimator", MOMENTS | named("ridge", "least squares"))
def test_models_of_different_columns_do_not_merge(estimator: Any) -> None:
    model = clone(estimator).fit(X, Y)
    with refused(r"\b4 features", r"\b3 features"):
        model.merge(clone(estimator).fit(X[:, :3], Y))
    named = clone(estimator).fit(frame(X), Y)
    with refused("ant", "dog"):
        named.merge(clone(estimator).fit(frame(X)[NAMES[::-1]], Y))


def test_models_of_different_targets_do_not_merge() -> None:
    two = Ridge().fit(X, np.column_stack([Y, Y]))
    with refused(r"\b1\b", r"\b2\b", "target"):
        Ridge().fit(X, Y).merge(two)
    with refused(r"\b1\b", r"\b2\b", "target"):
        Ridge().partial_fit(X, Y).partial_fit(X, np.column_stack([Y, Y]))


def test_models_by_conjugate_gradients_do_not_merge() -> None:
    model = Ridge(solver="cg").fit(X, Y)
    with pytest.raises(AttributeError):
        model.merge(model)


@each_of_moments
def test_labels_of_two_types_do_not_merge(estimator: Any) -> None:
    words = np.array(["a", "b", "c"])[Y]
    numbers, names = clone(estimator).fit(X, Y), clone(estimator).fit(X, words)
    with refused("int", "str", kind=(TypeError, ValueError)):
        numbers.merge(names)
    with refused("int", "str", kind=(TypeError, ValueError)):
        numbers.partial_fit(X, words)


# -- fitting in parts -------------------------------------------------------------------------------------------------


def assert_whole(model: Any, whole: Any) -> None:
    for name in ("predict_proba", "decision_function", "transform"):
        if hasattr(whole, name):
            np.testing.assert_allclose(getattr(model, name)(X), getattr(whole, name)(X), rtol=1e-9, atol=1e-9)


@each_of_moments
def test_one_class_so_far_waits_for_another(estimator: Any) -> None:
    first = Y == 1
    model = clone(estimator).partial_fit(X[first], Y[first])
    for name in ASKED:
        if hasattr(model, name):
            with refused("too little data", "one class", r"\b1\b", kind=NotFittedError):
                getattr(model, name)(X)
    model.partial_fit(X[~first], Y[~first])
    assert_whole(model, clone(estimator).fit(X, Y))


def test_too_few_rows_so_far_wait_for_more() -> None:
    for estimator, words in (
        (LinearDiscriminantAnalysis(), "more than the number of classes"),
        (FisherDiscriminant(), "more than the number of classes"),
        (QuadraticDiscriminantAnalysis(), "class 0"),
    ):
        model = clone(estimator).partial_fit(X[:3], Y[:3])
        with refused("too little data", words, kind=NotFittedError):
            ask(model)(X)
        model.partial_fit(X[3:], Y[3:])
        assert_whole(model, clone(estimator).fit(X, Y))


def test_a_singular_class_so_far_waits_for_more() -> None:
    model = QuadraticDiscriminantAnalysis().partial_fit(X[:12], Y[:12])
    with refused("class 0", "not full rank", kind=NotFittedError):
        model.predict(X)
    assert_whole(model.partial_fit(X[12:], Y[12:]), QuadraticDiscriminantAnalysis().fit(X, Y))


def test_a_new_class_of_one_row_is_named_until_it_has_more() -> None:
    model = QuadraticDiscriminantAnalysis().partial_fit(X, Y)
    model.partial_fit(X[:1], [7])
    with refused("class 7", r"\b1 sample", kind=NotFittedError):
        model.predict(X)
    model.partial_fit(X[1:20], np.full(19, 7))
    whole = QuadraticDiscriminantAnalysis().fit(np.concatenate([X, X[:20]]), np.concatenate([Y, np.full(20, 7)]))
    assert_whole(model, whole)


def test_priors_of_classes_to_come_wait_for_them() -> None:
    early = Y < 2
    model = LinearDiscriminantAnalysis(priors=[0.2, 0.3, 0.5])
    model.partial_fit(X[early], Y[early], classes=[0, 1, 2])
    with refused(r"\b2\b", "prior", kind=NotFittedError):
        model.predict(X)
    model.partial_fit(X[~early], Y[~early])
    assert_whole(model, LinearDiscriminantAnalysis(priors=[0.2, 0.3, 0.5]).fit(X, Y))


@pytest.mark.parametrize("make", [LinearDiscriminantAnalysis, FisherDiscriminant])
def test_components_of_classes_to_come_wait_for_them(make: Callable[..., Any]) -> None:
    early = Y < 2
    model = make(n_components=2).partial_fit(X[early], Y[early], classes=[0, 1, 2])
    with refused("n_components", kind=NotFittedError):
        model.transform(X)
    assert_whole(model.partial_fit(X[~early], Y[~early]), make(n_components=2).fit(X, Y))


@each_of_moments
def test_labels_missing_from_the_classes_are_named(estimator: Any) -> None:
    words = np.array(["lamb", "calf", "foal"])[Y]
    with refused("'foal'", "classes", "calf"):
        clone(estimator).partial_fit(X, words, classes=["lamb", "calf"])
    with refused(r"\b1\b", "classes"):
        clone(estimator).partial_fit(X, Y, classes=[0, 2, 3])


@each("estimator", MOMENTS | named("ridge", "least squares"))
def test_a_refused_part_leaves_the_model_as_it_was(estimator: Any) -> None:
    model = clone(estimator).partial_fit(X[:40], Y[:40])
    before = ask(model)(X)
    spoilt = X[40:].copy()
    spoilt[0, 0] = np.nan
    with refused("column 0"):
        model.partial_fit(spoilt, Y[40:])
    with refused("2 features"):
        model.partial_fit(X[40:, :2], Y[40:])
    with refused("negative"):
        model.partial_fit(X[40:], Y[40:], sample_weight=-np.ones(20))
    np.testing.assert_array_equal(ask(model)(X), before)
    np.testing.assert_allclose(ask(model.partial_fit(X[40:], Y[40:]))(X), ask(clone(estimator).fit(X, Y))(X), atol=1e-9)


@each("estimator", MOMENTS | named("ridge"))
def test_a_refused_first_part_is_forgotten(estimator: Any) -> None:
    model = clone(estimator)
    with refused("column 0"):
        model.partial_fit(np.full((5, 2), np.nan), Y[:5])
    with refused("fit", kind=NotFittedError):
        ask(model)(X)
    np.testing.assert_array_equal(ask(model.partial_fit(X, Y))(X), ask(clone(estimator).partial_fit(X, Y))(X))


def test_parameters_that_need_the_rows_twice_say_so() -> None:
    with refused("partial_fit", kind=AttributeError):
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").partial_fit(X, Y)


def test_a_feature_map_takes_estimators_of_the_library_only() -> None:
    from sklearn.linear_model import LogisticRegression

    with refused("LogisticRegression", kind=TypeError):
        FeatureMap(PolynomialFeatures(), LogisticRegression()).fit(X, Y)


# -- far away ---------------------------------------------------------------------------------------------------------


@each("estimator", CLASSIFIERS | named("gaussian", "gaussian shared", "mixed"))
def test_rows_very_far_away_have_finite_posteriors(estimator: Any) -> None:
    model = clone(estimator).fit(X, Y)
    far = np.concatenate([s * np.eye(4) for s in (1e150, -1e150, 1e160, 1e200, 1e300)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert np.isin(model.predict(far), model.classes_).all()
        if hasattr(model, "predict_proba"):
            posterior = model.predict_proba(far)
            assert np.isfinite(posterior).all()
            np.testing.assert_allclose(posterior.sum(axis=1), 1.0)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "decision_function"])
def test_infinity_does_not_hide_behind_a_probability(bad, method):
    X = np.random.default_rng(0).standard_normal((20, 3))
    for model in (LinearDiscriminantAnalysis(), LogisticRegression()):
        model.fit(X, np.arange(20) % 2)
        held = X.copy()
        held[4, 1] = bad
        with pytest.raises(ValueError, match="column 1"):
            getattr(model, method)(held)


@each("estimator", having(basic=True))
def test_half_precision_is_read_as_the_numbers_it_holds(estimator: Any) -> None:
    half = np.abs(X).astype(np.float16)
    ask = "predict" if hasattr(estimator, "predict") else "transform"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [clone(estimator).fit(rows, Y) for rows in (half, half.astype(np.float64))]
    small, large = (getattr(model, ask)(half.astype(np.float64)) for model in models)
    np.testing.assert_allclose(small, large, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("given", ["people", "people.csv", Path("people.parquet")])
def test_a_name_in_the_place_of_rows_says_how_it_is_read(given: Any) -> None:
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    for call in (lambda: LogisticRegression().fit(given, "label"), lambda: model.predict(given)):
        with pytest.raises(ValueError, match=r"got the text 'people.*scan_csv.*scan_parquet.*scan_spark"):
            call()
