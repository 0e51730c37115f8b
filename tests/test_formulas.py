"""Models written as formulas, against statsmodels' own and against the columns written out."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from sklearn.base import clone

from separatrix import LinearRegression, LogisticRegression, Ridge, save_model

RNG = np.random.default_rng(19)
N = 150
TABLE = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "z": RNG.normal(size=N) + 2.0,
        "group": RNG.choice(["red", "green", "blue"], size=N),
        "flag": RNG.integers(0, 2, size=N),
    },
    index=RNG.permutation(N) + 1000,
)
SCORE = TABLE.x - 0.5 * TABLE.z + (TABLE.group == "red") * 0.8
TABLE["y"] = SCORE + RNG.normal(size=N)
TABLE["bought"] = np.where(RNG.logistic(size=N) < SCORE + 0.5, "yes", "no")
RIGHT = "x + C(group) + x:z"
KINDS = {
    "pandas": lambda t: t,
    "polars": pl.from_pandas,
    "pyarrow": lambda t: pa.Table.from_pandas(t, preserve_index=False),
}


def in_order(peer: Any, names: list[str]) -> np.ndarray:
    """Parameters of statsmodels in our order; both name columns alike but for the intercept."""
    return np.array([peer["Intercept" if name == "(intercept)" else name] for name in names])


def test_least_squares_agrees_with_statsmodels() -> None:
    model = LinearRegression.from_formula(f"y ~ {RIGHT}", TABLE)
    peer = smf.ols(f"y ~ {RIGHT}", TABLE).fit()
    rows = model.summary().rows
    names = [row.name for row in rows]
    assert names == ["x", "C(group)[T.green]", "C(group)[T.red]", "x:z", "(intercept)"]
    np.testing.assert_allclose([row.estimate for row in rows], in_order(peer.params, names), rtol=1e-8)
    np.testing.assert_allclose([row.standard_error for row in rows], in_order(peer.bse, names), rtol=1e-8)
    np.testing.assert_allclose(model.predict(TABLE), peer.predict(TABLE), rtol=1e-8)
    frame = peer.get_prediction(TABLE[:5]).summary_frame()
    np.testing.assert_allclose(model.predict_interval(TABLE[:5]), frame[["obs_ci_lower", "obs_ci_upper"]], rtol=1e-8)
    assert model.formula_ == f"y ~ {RIGHT}"


def test_logistic_agrees_with_statsmodels() -> None:
    model = LogisticRegression.from_formula(f"bought ~ {RIGHT}", TABLE, C=np.inf)
    peer = smf.logit(f"b ~ {RIGHT}", TABLE.assign(b=(TABLE.bought == "yes").astype(int))).fit(disp=0, tol=1e-14)
    names = [row.name for row in model.summary().rows]
    np.testing.assert_allclose([row.estimate for row in model.summary().rows], in_order(peer.params, names), rtol=1e-6)
    np.testing.assert_allclose(
        [row.standard_error for row in model.summary().rows], in_order(peer.bse, names), rtol=1e-6
    )
    np.testing.assert_allclose(model.predict_proba(TABLE)[:, 1], peer.predict(TABLE), rtol=1e-6)
    assert list(model.classes_) == ["no", "yes"] and model.score(TABLE, TABLE.bought) > 0.6
    assert model.predict_proba_interval(TABLE[:3]).shape == (3, 2, 2)
    assert "C(group)[T.red]" in str(model.marginal_effects(TABLE, discrete=True))
    assert model.influence(TABLE, TABLE.bought).leverage.sum() == pytest.approx(5.0)


@pytest.mark.parametrize("kind", list(KINDS))
def test_any_table(kind: str) -> None:
    given = KINDS[kind](TABLE)
    expected = LinearRegression.from_formula(f"y ~ {RIGHT}", TABLE)
    model = LinearRegression.from_formula(f"y ~ {RIGHT}", given)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10)
    np.testing.assert_allclose(model.predict(given), expected.predict(TABLE), rtol=1e-10)


def test_what_was_learnt_from_the_table_is_kept() -> None:
    model = LinearRegression.from_formula("y ~ poly(x, 2) + center(z) + group", TABLE)
    whole = model.predict(TABLE)
    for rows in (TABLE[:7], TABLE[TABLE.group == "red"]):  # fewer levels, other means
        np.testing.assert_allclose(model.predict(rows), whole[TABLE.index.isin(rows.index)], rtol=1e-10)


def test_no_intercept_weights_targets_and_parameters() -> None:
    weights = RNG.integers(1, 4, size=N)
    plain = LinearRegression.from_formula("y ~ x + z - 1", TABLE, weights)
    assert plain.fit_intercept is False and plain.intercept_ == 0.0
    expected = LinearRegression(fit_intercept=False).fit(TABLE[["x", "z"]], TABLE.y, weights)
    np.testing.assert_allclose(plain.coef_, expected.coef_, rtol=1e-12)
    both = LinearRegression.from_formula("y + exp(z) ~ x", TABLE)
    np.testing.assert_allclose(both.predict(TABLE)[:, 0], LinearRegression.from_formula("y ~ x", TABLE).predict(TABLE))
    assert both.coef_.shape == (2, 1)
    ridge = Ridge.from_formula("y ~ x + z", TABLE, alpha=3.0)
    np.testing.assert_allclose(ridge.coef_, Ridge(3.0).fit(TABLE[["x", "z"]], TABLE.y).coef_, rtol=1e-12)


def test_refitting_forgets_the_formula_and_copies_keep_it() -> None:
    model = LogisticRegression.from_formula("bought ~ x * z", TABLE)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict_proba(TABLE), model.predict_proba(TABLE))
    assert not hasattr(clone(model), "formula_")
    columns = pd.DataFrame({"x": TABLE.x, "z": TABLE.z, "x:z": TABLE.x * TABLE.z})
    np.testing.assert_allclose(model.predict_proba(columns), model.predict_proba(TABLE), rtol=1e-12)  # its own columns
    model.fit(TABLE[["x", "z"]], TABLE.bought)
    assert not hasattr(model, "formula_") and model.predict(TABLE[["x", "z"]]).shape == (N,)


def test_refusals(tmp_path: Any) -> None:
    model = LinearRegression.from_formula(f"y ~ {RIGHT}", TABLE)
    with pytest.raises(ValueError, match="not seen: 'pink'"):
        model.predict(TABLE.assign(group="pink"))
    with pytest.raises(ValueError, match="`z`"):
        model.predict(TABLE[["x", "group"]])
    with pytest.raises(ValueError, match="null"):
        LinearRegression.from_formula("y ~ x", TABLE.assign(x=TABLE.x.where(TABLE.flag == 1)))
    for bad in ("y", "y ~ x ~ z", 3):
        with pytest.raises(ValueError, match="write the target"):
            LinearRegression.from_formula(bad, TABLE)
    with pytest.raises(ValueError, match="no columns"):
        LinearRegression.from_formula("y ~ 1", TABLE)
    with pytest.raises(ValueError, match="cannot be read"):
        LinearRegression.from_formula("y ~ nope", TABLE)
    with pytest.raises(ValueError, match="class labels"):
        LogisticRegression.from_formula("log(y) ~ x", TABLE)
    with pytest.raises(ValueError, match="table in memory"):
        LinearRegression.from_formula("y ~ x", np.ones((3, 2)))
    with pytest.raises(TypeError, match="formula decides"):
        LinearRegression.from_formula("y ~ x", TABLE, fit_intercept=False)
    with pytest.raises(ValueError, match="model file cannot"):
        save_model(model, tmp_path / "model")


def test_formulaic_is_imported_when_a_formula_is_used() -> None:
    code = (
        "import sys; from separatrix import LinearRegression, LogisticRegression;"
        "LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0]);"
        "LogisticRegression().fit([[1.0], [2.0]], [0, 1]); assert 'formulaic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
