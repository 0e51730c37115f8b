"""Small problems and fresh processes: what is skipped there changes no answer."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

import separatrix as sx
from separatrix.geometry.votes import tally
from separatrix.models.svm.machines import votes

RNG = np.random.default_rng(5)
X, CODES = RNG.normal(size=(90, 4)), RNG.integers(3, size=90)
MODELS = [
    sx.LogisticRegression(),
    sx.LinearDiscriminantAnalysis(),
    sx.GaussianNB(),
    sx.Ridge(),
    sx.SVC(),
    sx.OneVsOneClassifier(sx.LinearDiscriminantAnalysis()),
]
each = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@each
def test_plain_arrays_are_read_as_lists_are(model):
    plain, listed = clone(model).fit(X, CODES), clone(model).fit(X.tolist(), CODES.tolist())
    np.testing.assert_array_equal(plain.predict(X), listed.predict(X.tolist()))
    assert plain.n_features_in_ == listed.n_features_in_ == 4


@each
def test_one_row_is_predicted_as_among_many(model):
    model = clone(model).fit(X, CODES)
    many = np.tile(X, (20, 1))
    alone = np.concatenate([model.predict(row[None]) for row in X])
    np.testing.assert_allclose(alone, model.predict(many)[: len(X)], rtol=1e-12, atol=1e-12)


@each
def test_plain_arrays_of_other_columns_are_refused_as_ever(model):
    model = clone(model).fit(X, CODES)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features as input"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0])


@each
def test_names_of_columns_are_still_compared(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    named = clone(model).fit(frame, CODES)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        named.predict(X)
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(frame[list("dcba")])
    assert not hasattr(named.fit(X, CODES), "feature_names_in_")


def test_parameters_are_checked_whenever_they_change():
    model = sx.LogisticRegression(C=1.0).fit(X, CODES)
    for wrong in (-1.0, "1", None):
        for _ in range(2):
            with pytest.raises(ValueError, match="'C' parameter"):
                model.set_params(C=wrong).fit(X, CODES)
    model.set_params(C=1.0).fit(X, CODES)

    class Narrow(sx.LogisticRegression):
        _parameter_constraints = {**sx.LogisticRegression._parameter_constraints, "C": [str]}

    with pytest.raises(ValueError, match="'C' parameter"):
        Narrow(C=model.C).fit(X, CODES)


def test_votes_are_those_of_the_tally():
    scores = RNG.normal(size=(40, 10)).round(1)
    np.testing.assert_array_equal(votes(scores, 5), tally(((f > 0, f) for f in scores.T), 5)[0])


def test_what_predictions_keep_is_not_saved():
    model = sx.SVC().fit(X, CODES)
    before = pickle.dumps(model)
    answer = model.predict(X)
    assert len(pickle.dumps(model)) == len(before)
    np.testing.assert_array_equal(pickle.loads(before).predict(X), answer)


FIRST_FIT = """
import sys, numpy as np
{before}
import separatrix as sx
r = np.random.default_rng(0)
X = r.normal(size=({n}, 30)); W = r.normal(size=(30, {K})); y = (X @ W + r.gumbel(size=({n}, {K}))).argmax(axis=1)
m = sx.LogisticRegression(tol=1e-9).fit(X, y)
c = m.fit_.certificate
print(int("numba" in sys.modules), m.fit_.status.name, c.kind, c.gap, c.objective, *m.coef_.ravel())
"""


@pytest.mark.parametrize(("n", "K"), [(80_000, 2), (20_000, 4)])
def test_a_first_fit_without_numba_proves_the_same_optimum(n, K):
    plain, compiled = (run(FIRST_FIT.format(before=before, n=n, K=K)).split() for before in ("", "import numba"))
    assert (plain[0], compiled[0]) == ("0", "1")
    assert plain[1:3] == compiled[1:3] == ["CONVERGED", "proven"]
    gaps, values = [float(one[3]) for one in (plain, compiled)], [float(one[4]) for one in (plain, compiled)]
    assert abs(values[0] - values[1]) <= sum(gaps) <= 4e-9 * values[0]
    np.testing.assert_allclose(np.array(plain[5:], float), np.array(compiled[5:], float), rtol=1e-3, atol=1e-5)


FIRST_SMALL_FIT = """
import sys, numpy as np, scipy.sparse as sp
{before}
import separatrix as sx
r = np.random.default_rng(0)
X = {rows}
y = (np.asarray(X[:, :5] @ np.ones(5)) + 0.5 * r.logistic(size=X.shape[0]) > 0.2).astype(int)
m = sx.{model}.fit(X, y)
c = m.fit_.certificate
print(int("numba" in sys.modules), c.kind, c.gap, c.objective, m.fit_.status.name)
"""


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        ("LogisticRegression(tol=1e-8)", "sp.random(20_000, 2_000, density=0.01, format='csr', rng=r)"),
        ("LinearSVC(tol=1e-7)", "sp.random(1_500, 200, density=0.05, format='csr', rng=r)"),
        ("LinearSVC(loss='hinge', tol=1e-7)", "sp.random(300, 1_000, density=0.02, format='csr', rng=r)"),
        ("LinearSVC(loss='hinge', tol=1e-7)", "r.normal(size=(400, 10))"),
        ("LinearSVC(C=100.0, tol=1e-7)", "r.normal(size=(60, 20)) * 10.0 ** r.uniform(-2, 2, 20)"),
    ],
)
def test_small_first_fits_leave_numba_alone_and_prove_the_same_optimum(model, rows):
    scripts = (FIRST_SMALL_FIT.format(before=before, model=model, rows=rows) for before in ("", "import numba"))
    plain, compiled = (run(script).split() for script in scripts)
    assert (plain[0], compiled[0]) == ("0", "1")
    assert plain[1] == compiled[1] == "proven"
    gaps, values = [float(one[2]) for one in (plain, compiled)], [float(one[3]) for one in (plain, compiled)]
    assert abs(values[0] - values[1]) <= max(gaps) <= 1e-7 * max(1.0, values[0])


def test_importing_the_package_or_the_commands_loads_nothing_heavy():
    heavy = "{'numpy', 'scipy', 'sklearn', 'numba', 'pandas', 'pyarrow', 'matplotlib', 'narwhals', 'threadpoolctl'}"
    for module in ("separatrix", "separatrix.cli.main"):
        assert run(f"import sys, {module}; print(sorted({heavy} & sys.modules.keys()))") == "[]"


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_rows_that_lie_by_columns_are_not_read_again_and_again(
    n_classes: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("separatrix.data.arrays.COPIED_ARRAY", 0)  # as if the array were too large to be laid otherwise
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((40, 900)) + rng.standard_normal((40, 1))).astype(dtype)
    y = np.arange(40) % n_classes
    rows = sx.LogisticRegression(C=0.1).fit(np.ascontiguousarray(X), y)
    columns = sx.LogisticRegression(C=0.1).fit(np.asfortranarray(X), y)
    assert columns.fit_.passes == rows.fit_.passes
    np.testing.assert_allclose(columns.coef_, rows.coef_, rtol=1e-6, atol=1e-9)
