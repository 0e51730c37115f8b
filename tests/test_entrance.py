"""What must not enter: damaged sparse matrices, complex numbers, dates, queries, values beyond double precision."""

from __future__ import annotations

import datetime
import os
import signal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from estimators import each, having, named
from sklearn.base import clone
from typer.testing import CliRunner

import separatrix as sx
from separatrix.cli.main import app
from separatrix.comparison.table_model import TableModel
from separatrix.tables.reading import read_table
from separatrix.tables.schema import TableSchema

RNG = np.random.default_rng(0)
X = np.abs(np.round(2.0 * RNG.standard_normal((40, 6))))
Y = np.arange(40) % 2
FRAME = pd.DataFrame(X, columns=list("abcdef"))
SPARSE = having(basic=True, sparse=True) | named("linear svc hinge", "margin squared")
FORMATS = ["csr", "csc", "coo", "bsr"]


@pytest.fixture(autouse=True)
def _complex_parts_are_never_dropped():
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        yield


def damaged(format, damage):
    """A matrix whose arrays no constructor would accept."""
    matrix = sp.csr_array(X).asformat(format).copy()
    if format == "coo":
        row, column = matrix.coords[0].copy(), matrix.coords[1].copy()
        bad = {"beyond": 10**6, "negative": -5}.get(damage)
        if bad is not None:
            column[7] = bad
            matrix.coords = (row, column)
        elif damage == "falling":
            row[3] = 41
            matrix.coords = (row, column)
        else:
            matrix.data = matrix.data[:-3]
        return matrix
    if damage == "beyond":
        matrix.indices[7] = 10**6
    elif damage == "negative":
        matrix.indices[7] = -5
    elif damage == "falling":
        matrix.indptr[2] = matrix.indptr[3] + 1
    elif damage == "short":
        matrix.indptr = matrix.indptr[:-1]
    return matrix


@pytest.mark.parametrize("damage", ["beyond", "negative", "falling", "short"])
@pytest.mark.parametrize("format", FORMATS)
def test_damaged_sparse_matrices_are_refused_by_every_entrance(format, damage):
    bad = damaged(format, damage)
    with pytest.raises(ValueError, match=r"sparse matrix X is damaged: .*(index|pointers|indices)"):
        sx.as_source(bad)
    for estimator in SPARSE.values():
        with pytest.raises(ValueError, match=r"sparse matrix X is damaged"):
            clone(estimator).fit(bad, Y)


@each("estimator", SPARSE)
@pytest.mark.parametrize("format", FORMATS)
def test_damaged_sparse_matrices_are_refused_at_prediction_too(estimator, format):
    model = clone(estimator).fit(sp.csr_array(X).asformat(format), Y)
    ask = model.predict if hasattr(model, "predict") else model.transform
    with pytest.raises(ValueError, match=r"sparse matrix X is damaged: a .*index is 1000000"):
        ask(damaged(format, "beyond"))
    ask(sp.csr_array(X).asformat(format))


def test_lists_of_rows_and_pointers_beyond_the_entries_are_looked_at_too():
    rows = sp.lil_array(X)
    rows.rows[0], rows.data[0] = [0, 99], [1.0, 2.0]
    with pytest.raises(ValueError, match="a column index is 99, and there are 6 columns"):
        sx.LogisticRegression().fit(rows, Y)
    matrix = sp.csr_array(X)
    matrix.indptr[-1] += 10
    with pytest.raises(ValueError, match="behind its"):
        sx.LogisticRegression().fit(matrix, Y)


def test_a_sound_matrix_of_any_format_is_as_it_was():
    expected = sx.LogisticRegression().fit(X, Y).coef_
    for format in [*FORMATS, "lil", "dok", "dia"]:
        np.testing.assert_allclose(
            sx.LogisticRegression().fit(sp.csr_array(X).asformat(format), Y).coef_, expected, atol=1e-5
        )


def complex_object():
    rows = X.astype(object)
    rows[3, 2] = 1j
    return rows


def beyond():
    rows = X.astype(np.longdouble)
    rows[3, 2] = np.longdouble("1e400")
    return rows


def with_column(values):
    return FRAME.assign(when=values)


BAD_ROWS = {
    "complex": (X + 0j, "X holds complex numbers"),
    "complex objects": (complex_object(), "X holds complex numbers"),
    "complex sparse": (sp.csr_array(X + 0j), "X holds complex numbers"),
    "complex column": (with_column(X[:, 0] * 1j), "column 'when' holds complex numbers"),
    "long double": (beyond(), "X holds finite values beyond"),
    "sparse long double": (sp.csr_array(beyond()), "X holds finite values beyond"),
    "long double column": (with_column(beyond()[:, 2]), "column 'when' holds finite values beyond"),
    "whole numbers of 400 digits": (np.array([[10**400] * 6] * 40, dtype=object), "X holds finite values beyond"),
    "dates": (np.zeros((40, 6), "M8[D]"), "X holds dates"),
    "spans": (np.zeros((40, 6), "m8[s]"), "X holds dates"),
    "column of dates": (with_column(pd.Timestamp("2020-02-02")), "column 'when' is of type Datetime.*.* holds dates"),
    "column of zoned dates": (with_column(pd.Timestamp("2020-02-02", tz="UTC")), "column 'when' .*holds dates"),
    "column of spans": (with_column(pd.Timedelta(1, "s")), "column 'when' is of type Duration.*.* holds dates"),
    "column of date objects": (with_column(datetime.date(2020, 2, 2)), "column 'when' .*holds dates"),
    "polars dates": (
        pl.DataFrame(X).with_columns(when=pl.lit(datetime.date(2020, 2, 2))),
        "column 'when' .*holds dates",
    ),
    "polars times": (pl.DataFrame(X).with_columns(when=pl.lit(datetime.time(1))), "column 'when' .*holds dates"),
    "arrow dates": (pa.table({"when": pa.array([1] * 40, pa.timestamp("s"))}), "column 'when' .*holds dates"),
    "lazy frame": (pl.DataFrame(X).lazy(), r"LazyFrame, .*X\.collect\(\)"),
    "dataset": (pa.dataset.dataset(pa.table({"a": X[:, 0]})), r"pyarrow dataset, .*to_table\(\).*scan_parquet"),
    "reader": (pa.table({"a": X[:, 0]}).to_reader(), r"read_all\(\)"),
}


@pytest.mark.parametrize(
    "estimator", [sx.LogisticRegression(), sx.GaussianNB(), sx.SVC(), sx.Ridge(), sx.MixedNB()], ids=repr
)
@pytest.mark.parametrize("kind", BAD_ROWS)
def test_what_is_no_table_of_real_numbers_gets_its_own_sentence(estimator, kind):
    rows, sentence = BAD_ROWS[kind]
    if isinstance(estimator, sx.MixedNB) and sp.issparse(rows):
        pytest.skip("takes no sparse matrices")
    with pytest.raises((ValueError, TypeError), match=sentence):
        clone(estimator).fit(rows, Y)
    if not kind.endswith(("column", "dates", "spans", "objects", "times")) or kind == "dates":
        with pytest.raises((ValueError, TypeError), match=sentence):
            clone(estimator).fit(X, Y).predict(rows)


def test_dates_in_a_file_get_their_own_sentence(tmp_path):
    table = pa.table({"a": X[:, 0], "when": pa.array([1] * 40, pa.timestamp("s")), "y": Y})
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"column 'when' is of type timestamp.*.* holds dates"):
        sx.scan_parquet(tmp_path / "rows.parquet", target="y", encode=False)


@pytest.mark.parametrize("wrong", [np.ones(40) + 0j, [1 + 0j] * 40, np.array([1j] * 40, dtype=object), beyond()[:, 2]])
@pytest.mark.parametrize(
    "estimator", [sx.LogisticRegression(), sx.GaussianNB(), sx.Ridge(), sx.MixedNB(), sx.SVC()], ids=repr
)
def test_weights_and_values_to_predict_are_real(estimator, wrong):
    with pytest.raises(ValueError, match=r"sample_weight holds (complex|finite values beyond)"):
        clone(estimator).fit(X, Y, sample_weight=wrong)
    if isinstance(estimator, sx.Ridge):
        with pytest.raises(ValueError, match=r"y holds (complex|finite values beyond)"):
            clone(estimator).fit(X, wrong)


def test_offsets_priors_and_penalties_are_real():
    with pytest.raises(ValueError, match="offset holds complex"):
        sx.LogisticRegression().fit(X, Y, offset=np.full(40, 1j))
    for estimator in (
        sx.GaussianNB(priors=[0.5 + 0j, 0.5]),
        sx.LinearDiscriminantAnalysis(priors=np.array([0.5 + 0j, 0.5])),
    ):
        with pytest.raises(ValueError, match="priors holds complex"):
            estimator.fit(X, Y)
    with pytest.raises(ValueError, match="class_prior holds complex"):
        sx.MultinomialNB(class_prior=[0.5 + 0j, 0.5]).fit(X, Y)
    with pytest.raises(ValueError, match="alpha holds complex"):
        sx.Ridge(alpha=np.array([1j])).fit(X, Y)
    with pytest.raises(ValueError, match=r"y holds complex"):
        sx.LogisticRegression().fit(X, Y + 0j)


@pytest.mark.parametrize(
    "estimator", [sx.LogisticRegression(), sx.GaussianNB(), sx.LinearDiscriminantAnalysis()], ids=repr
)
def test_nan_at_prediction_does_not_speak_of_fitting(estimator):
    model, rows = clone(estimator).fit(X, Y), X.copy()
    rows[3, 1] = np.nan
    with pytest.raises(ValueError, match="column 1 has 1 such row") as seen:
        model.predict(rows)
    assert "fit" not in str(seen.value)


@each("estimator", named("gaussian", "lda"))
@pytest.mark.parametrize("scale", [1e-200, 1e-180, 1e-165])
def test_small_values_are_not_called_large(estimator, scale):
    with (
        pytest.raises(ValueError, match=r"so small that their squares underflow: column 0 reaches"),
        np.errstate(all="ignore"),
    ):
        clone(estimator).fit(scale * X / X.max(axis=0), Y)
    with pytest.raises(ValueError, match=r"so large that their squares overflow: column 0 reaches"):
        sx.GaussianNB().fit(X / X.max(axis=0) / scale, Y)


@each("estimator", named("logistic", "linear svc"))
@pytest.mark.parametrize("scale", [1e-200, 1e-180, 1e-165])
def test_values_too_small_to_pay_for_their_penalty_get_no_weight(estimator, scale):
    """Under an L2 penalty the optimum is the constant rule, to all digits: that is the answer, with its proof."""
    small, none = (clone(estimator).fit(rows, Y) for rows in (scale * X / X.max(axis=0), np.zeros_like(X)))
    assert np.isfinite(small.coef_).all()
    assert small.fit_.certificate.objective == pytest.approx(none.fit_.certificate.objective, rel=1e-6)
    assert small.fit_.status is sx.Status.CONVERGED


# -- pipes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    """Nobody ever writes to it, so whoever opens it waits until the alarm."""
    pipes = [tmp_path / f"pipe.{suffix}" for suffix in ("csv", "parquet", "csv.gz", "arrow", "safetensors")]
    for pipe in pipes:
        os.mkfifo(pipe)
    good = tmp_path / "good.csv"
    good.write_text("a,y\n1,x\n2,z\n")
    model = tmp_path / "model.safetensors"
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y})
    sx.save_model(TableModel.fit(table, "y", sx.GaussianNB(), family="gnb"), model)
    run = CliRunner().invoke
    tries = [
        lambda: sx.scan_csv(pipes[0]),
        lambda: sx.scan_parquet(pipes[1]),
        lambda: sx.scan_csv([good, pipes[0]]),
        *(lambda pipe=pipe: read_table(pipe) for pipe in pipes[:4]),
        lambda: sx.compare(pipes[0], "y"),
        lambda: sx.load_model(pipes[4]),
        lambda: sx.inspect_model(pipes[4]),
        lambda: run(app, ["compare", str(pipes[0]), "--target", "y", "--out", str(tmp_path / "out")]),
        lambda: run(app, ["fit", str(pipes[0]), "--target", "y", "--model", "lda", "-o", str(tmp_path / "m")]),
        lambda: run(app, ["predict", str(model), str(pipes[0]), "-o", "-"]),
        lambda: run(app, ["predict", str(pipes[4]), str(good), "-o", "-"]),
        lambda: run(app, ["inspect", str(pipes[4])]),
        lambda: run(
            app, ["compare", str(good), "--target", "y", "--loss", str(pipes[0]), "--out", str(tmp_path / "out")]
        ),
    ]

    def say(attempt):
        try:
            return getattr(attempt(), "output", "nothing")
        except Exception as error:
            return str(error)

    def stop(*_):
        raise TimeoutError("still waiting for the pipe")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for at, attempt in enumerate(tries):
            signal.alarm(30)
            assert "is a pipe, not a regular file" in " ".join(say(attempt).split()), at
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# -- long lists ----------------------------------------------------------------------------------------------------------

MOST = 3000  # characters of a sentence on any number of columns or classes
WIDE = 600
NAMES = [f"column_{j:05d}" for j in range(WIDE)]


def wide_rows():
    rows = np.zeros((30, WIDE))
    rows[:, 0] = RNG.standard_normal(30)
    return pd.DataFrame(rows, columns=NAMES)


@pytest.mark.parametrize(
    "estimator",
    [
        *(sx.LogisticRegression(), sx.LogisticRegression(C=np.inf), sx.LogisticRegression(penalty="firth")),
        *(sx.LinearDiscriminantAnalysis(), sx.QuadraticDiscriminantAnalysis(), sx.GaussianNB(), sx.LinearRegression()),
        *(sx.Ridge(), sx.LinearSVC(), sx.MixedNB(), sx.FisherDiscriminant(), sx.RidgeClassifier()),
    ],
    ids=repr,
)
def test_thousands_of_constant_columns_are_not_listed_by_a_model(estimator):
    rows = wide_rows()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            model = clone(estimator).fit(rows, np.arange(30) % 2)
            said = [str(model.fit_)]
            with pytest.raises(ValueError, match="column_") as other:
                (model.predict if hasattr(model, "predict") else model.transform)(rows.rename(columns=str.upper))
            said.append(str(other.value))
        except ValueError as error:
            said = [str(error)]
    assert max(map(len, [*said, *(str(warning.message) for warning in seen)])) < MOST


def test_thousands_of_constant_columns_are_not_listed_by_a_comparison(tmp_path):
    rows = wide_rows().assign(column_00001=[None] * 30, kind=np.where(np.arange(30) % 2, "a", "b"))
    schema = TableSchema.infer(rows, "kind")
    assert sum(column.kind == "left_out" for column in schema.columns) > WIDE - 10
    assert any(f"{WIDE - 9} more" in finding for finding in schema.findings), schema.findings
    assert sum(map(len, schema.findings)) < MOST
    rows.to_csv(tmp_path / "rows.csv", index=False)
    out = str(tmp_path / "model")
    ran = CliRunner().invoke(app, ["fit", str(tmp_path / "rows.csv"), "--target", "kind", "--model", "lda", "-o", out])
    assert ran.exit_code == 0 and len(ran.output) < MOST
    ran = CliRunner().invoke(app, ["inspect", out])
    assert ran.exit_code == 0 and len(ran.output.splitlines()) < 250
    found = sx.compare(rows, "kind", families=["lda"])
    assert len(repr(found)) < MOST


def test_thousands_of_classes_are_not_listed():
    many = np.array([f"class {k:05d}" for k in range(1200)])
    rows, labels = RNG.standard_normal((2400, 2)), np.repeat(many, 2)
    model = sx.LinearDiscriminantAnalysis().fit(rows, labels)
    faults = [
        lambda: model.boundary("other", "class 00000"),
        lambda: model.boundary(),
        lambda: sx.LogisticRegression(class_weight={"other": 1.0}).fit(rows, labels),
        lambda: sx.LinearDiscriminantAnalysis(priors=[0.5, 0.5]).fit(rows, labels),
        lambda: sx.GaussianNB().partial_fit(rows, labels, classes=many[:-1]),
    ]
    for fault in faults:
        with pytest.raises(ValueError, match=r"class") as seen:
            fault()
        assert len(str(seen.value)) < MOST
    findings = TableSchema.infer(pd.DataFrame(rows, columns=["a", "b"]).assign(kind=labels), "kind").findings
    assert sum(map(len, findings)) < MOST
