"""Standard errors, tests and intervals of least squares, against statsmodels and against their own definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.anova import anova_lm

from separatrix import LinearRegression, load_model, save_model, scan_csv, scan_parquet
from separatrix.inference import anova

RNG = np.random.default_rng(45)
N, D = 120, 4
X = RNG.normal(size=(N, D)) * [1.0, 20.0, 0.05, 1.0] + [0.0, 300.0, -1.0, 5.0]
NOISE = RNG.normal(size=N) * (0.5 + np.abs(X[:, 0]))
Y = X @ [1.5, -0.05, 2.0, 0.0] + 3.0 + NOISE
Y2 = np.column_stack([Y, X @ [0.0, 0.1, -3.0, 1.0] + RNG.normal(size=N)])
WEIGHTS = RNG.integers(1, 5, size=N).astype(float)
TIGHT = {"rtol": 1e-8, "atol": 1e-13}
KINDS = ["model", "HC0", "HC1", "HC2", "HC3"]


def design(X: Any, intercept: bool = True) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))]) if intercept else np.asarray(X)


def peer_of(y: Any, X: Any, intercept: bool = True, kind: str = "model") -> Any:
    names = {"model": "nonrobust"}
    return sm.OLS(y, design(X, intercept)).fit(cov_type=names.get(kind, kind), use_t=True)


def column(table: Any, name: str) -> np.ndarray:
    return np.array([getattr(row, name) for row in table.rows])


def agrees(table: Any, peer: Any) -> None:
    for mine, theirs in {"estimate": "params", "standard_error": "bse", "t": "tvalues", "p_value": "pvalues"}.items():
        np.testing.assert_allclose(column(table, mine), np.asarray(getattr(peer, theirs)), **TIGHT)
    np.testing.assert_allclose(
        np.column_stack([column(table, "lower"), column(table, "upper")]), np.asarray(peer.conf_int()), **TIGHT
    )
    mine = [table.r_squared, table.adjusted_r_squared, table.f_statistic, table.f_p_value]
    np.testing.assert_allclose(mine, [peer.rsquared, peer.rsquared_adj, peer.fvalue, peer.f_pvalue], **TIGHT)
    np.testing.assert_allclose(
        [table.log_likelihood, table.aic, table.bic, table.sigma**2],
        [peer.llf, peer.aic, peer.bic, peer.scale],
        **TIGHT,
    )
    np.testing.assert_allclose(table.condition, peer.condition_number, rtol=1e-7)
    assert (table.n_observations, table.residual_degrees) == (peer.nobs, peer.df_resid)


# ---------------------------------------------------------------------------------------------------------------------
# Against statsmodels


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_statsmodels(kind: str, intercept: bool) -> None:
    model = LinearRegression(fit_intercept=intercept).fit(X, Y)
    agrees(model.summary(X, Y, covariance=kind), peer_of(Y, X, intercept, kind))
    if kind == "model":  # the statistic of the fit has it all
        agrees(model.summary(), peer_of(Y, X, intercept))
    np.testing.assert_allclose(model.vcov(X, Y, covariance=kind), peer_of(Y, X, intercept, kind).cov_params(), **TIGHT)
    limits = peer_of(Y, X, intercept, kind).conf_int(alpha=0.2)
    np.testing.assert_allclose(model.conf_int(X, Y, covariance=kind, level=0.8), limits, **TIGHT)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["confidence", "prediction"])
def test_intervals_of_new_rows_agree_with_statsmodels(kind: str, intercept: bool) -> None:
    new = X[:7] * [1.0, 1.1, 0.9, -1.0]
    found = peer_of(Y, X, intercept).get_prediction(design(new, intercept)).summary_frame(alpha=0.1)
    names = ["mean_ci_lower", "mean_ci_upper"] if kind == "confidence" else ["obs_ci_lower", "obs_ci_upper"]
    model = LinearRegression(fit_intercept=intercept).fit(X, Y)
    np.testing.assert_allclose(model.predict_interval(new, kind=kind, level=0.9), found[names].to_numpy(), **TIGHT)


def test_nested_fits_agree_with_statsmodels() -> None:
    columns = [X[:, :1], X[:, :3], X]
    table = anova(*(LinearRegression().fit(part, Y) for part in columns)).to_frame()
    peers = anova_lm(*(peer_of(Y, part) for part in columns))
    np.testing.assert_allclose(table["residual_squares"], peers["ssr"], **TIGHT)
    np.testing.assert_allclose(table["f"][1:], peers["F"][1:], **TIGHT)
    np.testing.assert_allclose(table["p_value"][1:], peers["Pr(>F)"][1:], **TIGHT)
    np.testing.assert_allclose(table["degrees"][1:], peers["df_diff"][1:], **TIGHT)


def test_precisions_as_weights_agree_with_wls() -> None:
    # statsmodels' weights are precisions, of which only ratios count: ours, scaled to a total of n.
    scaled = WEIGHTS * N / WEIGHTS.sum()
    table = LinearRegression().fit(X, Y, scaled).summary()
    peer = sm.WLS(Y, design(X), weights=WEIGHTS).fit()
    for mine, theirs in {"estimate": "params", "standard_error": "bse", "t": "tvalues", "p_value": "pvalues"}.items():
        np.testing.assert_allclose(column(table, mine), getattr(peer, theirs), **TIGHT)
    mine = [table.r_squared, table.adjusted_r_squared, table.f_statistic]
    np.testing.assert_allclose(mine, [peer.rsquared, peer.rsquared_adj, peer.fvalue], **TIGHT)


def test_several_targets_are_several_fits() -> None:
    model = LinearRegression().fit(X, Y2)
    table, robust = model.summary(), model.summary(X, Y2, covariance="HC3")
    for target in range(2):
        peer = peer_of(Y2[:, target], X)
        own = slice(target * (D + 1), (target + 1) * (D + 1))
        np.testing.assert_allclose(column(table, "standard_error")[own], peer.bse, **TIGHT)
        np.testing.assert_allclose(column(table, "p_value")[own], peer.pvalues, **TIGHT)
        np.testing.assert_allclose(
            column(robust, "standard_error")[own], peer_of(Y2[:, target], X, kind="HC3").bse, **TIGHT
        )
        np.testing.assert_allclose(table.r_squared[target], peer.rsquared, **TIGHT)
        np.testing.assert_allclose(table.aic[target], peer.aic, **TIGHT)
        np.testing.assert_allclose(model.vcov()[target], peer.cov_params(), **TIGHT)
        limits = peer.get_prediction(design(X[:3])).conf_int(obs=True)
        np.testing.assert_allclose(model.predict_interval(X[:3])[:, target], limits, **TIGHT)
    assert "target y1" in str(table) and "target y1" in table._repr_html_()
    assert table.to_frame().loc[("y1", "x2"), "t"] == table.rows[D + 3].t


# ---------------------------------------------------------------------------------------------------------------------
# Where the rows are, and how often


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.booleans())
def test_weights_are_repetitions(seed: int, kind: str, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 4, size=N)
    often = np.repeat(np.arange(N), weights)
    one = LinearRegression(fit_intercept=intercept).fit(X, Y, weights)
    other = LinearRegression(fit_intercept=intercept).fit(X[often], Y[often])
    first, second = one.summary(X, Y, weights, covariance=kind), other.summary(X[often], Y[often], covariance=kind)
    for name in ("estimate", "standard_error", "t", "p_value"):
        np.testing.assert_allclose(column(first, name), column(second, name), rtol=1e-8, atol=1e-14)
    for name in ("aic", "f_statistic", "adjusted_r_squared", "condition"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), rtol=1e-8)


def test_files_parts_and_sparse_rows_agree(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(y=Y, w=WEIGHTS)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    parts = LinearRegression()
    for start in range(0, N, 50):
        part = slice(start, start + 50)
        parts.partial_fit(X[part], Y[part], WEIGHTS[part])
    sparse = sp.csr_array(X)
    for kind in KINDS:
        expected = LinearRegression().fit(X, Y, WEIGHTS).summary(X, Y, WEIGHTS, covariance=kind)
        tables = [
            parts.summary(X, Y, WEIGHTS, covariance=kind),
            LinearRegression().fit(sparse, Y, WEIGHTS).summary(sparse, Y, WEIGHTS, covariance=kind),
        ]
        targets = {"target": "y", "weight": "w"}
        for scan in (scan_parquet(tmp_path / "rows.parquet", **targets), scan_csv(tmp_path / "rows.csv", **targets)):
            tables.append(LinearRegression().fit(scan).summary(scan, covariance=kind))
            assert [row.name for row in tables[-1].rows] == ["a", "b", "c", "d", "(intercept)"]
        for table in tables:
            for name in ("estimate", "standard_error", "p_value"):
                np.testing.assert_allclose(column(table, name), column(expected, name), **TIGHT)
    model = LinearRegression().fit(frame[["a", "b", "c", "d"]], Y)
    save_model(model, tmp_path / "model.separatrix")
    assert str(load_model(tmp_path / "model.separatrix").summary()) == str(model.summary())


def test_rows_far_from_the_origin_and_small_blocks() -> None:
    far = X + np.array([1e7, 0.0, 0.0, -1e6])
    expected = LinearRegression().fit(X, Y).summary(X, Y, covariance="HC3")
    table = LinearRegression().fit(far, Y).summary(far, Y, covariance="HC3")
    for name in ("estimate", "standard_error"):
        np.testing.assert_allclose(column(table, name)[:D], column(expected, name)[:D], rtol=1e-6)


# ---------------------------------------------------------------------------------------------------------------------
# Hard cases


def test_dependent_columns_are_aliased() -> None:
    doubled = np.column_stack([X[:, :2], X[:, 0] - 2.0 * X[:, 1], X[:, 2:], np.full(N, 7.0)])
    model = LinearRegression().fit(doubled, Y)
    table = model.summary()
    assert table.aliased == ["x2", "x5"]
    kept = np.isfinite(column(table, "estimate"))
    assert kept.tolist() == [True, True, False, True, True, False, True]
    peer = peer_of(Y, X)
    np.testing.assert_allclose(column(table, "estimate")[kept], peer.params, rtol=1e-7)
    np.testing.assert_allclose(column(table, "standard_error")[kept], peer.bse, rtol=1e-7)
    assert table.residual_degrees == N - D - 1
    assert "x2, x5" in str(table) and "least norm" in str(table)
    robust = model.vcov(doubled, Y, covariance="HC3")
    np.testing.assert_allclose(robust[np.ix_(kept, kept)], peer_of(Y, X, kind="HC3").cov_params(), rtol=1e-6)
    limits = model.predict_interval(doubled[:4])
    np.testing.assert_allclose(limits, peer.get_prediction(design(X[:4])).conf_int(obs=True), rtol=1e-7)
    broken = doubled[:1] + np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0])
    assert np.isnan(model.predict_interval(broken)).all()  # that combination was never seen


def test_too_few_rows_are_refused() -> None:
    for rows in (D, D + 1):
        with pytest.raises(ValueError, match="no degrees of freedom"):
            LinearRegression().fit(X[:rows], Y[:rows]).summary()
    assert LinearRegression().fit(X[: D + 2], Y[: D + 2]).summary().residual_degrees == 1


def test_a_perfect_fit_says_so() -> None:
    whole = np.round(X)
    target = whole @ [1.0, 2.0, 3.0, 4.0] + 5.0
    model = LinearRegression().fit(whole, target)
    for table in (model.summary(), model.summary(whole, target)):
        assert "perfect" in str(table)
        assert table.r_squared == pytest.approx(1.0)


def test_a_nearly_perfect_fit_has_its_digits_from_rows() -> None:
    target = X @ [1.0, 2.0, 3.0, 4.0] + 5.0 + 1e-6 * RNG.normal(size=N)
    model = LinearRegression().fit(X, target)
    assert "Give X and y" in str(model.summary())
    peer = peer_of(target, X)
    table = model.summary(X, target)
    np.testing.assert_allclose(column(table, "standard_error"), peer.bse, rtol=1e-6)
    assert "Give X and y" not in str(table) and "perfect" not in str(table)


def test_refusals() -> None:
    model = LinearRegression().fit(X, Y)
    with pytest.raises(ValueError, match="positive=True"):
        LinearRegression(positive=True).fit(X, Y).summary()
    with pytest.raises(ValueError, match="give X and y"):
        model.summary(covariance="HC3")
    with pytest.raises(ValueError, match="HC9"):
        model.summary(X, Y, covariance="HC9")
    with pytest.raises(ValueError, match="level"):
        model.summary(level=2)
    with pytest.raises(ValueError, match="kind"):
        model.predict_interval(X, kind="mean")
    for rows, target, weights in ((X, Y + 1.0, None), (X[1:], Y[1:], None), (X, Y, 1.0 + WEIGHTS)):
        with pytest.raises(ValueError, match="not the ones the model was fitted to"):
            model.summary(rows, target, weights)
    alone = np.column_stack([X, np.arange(N) == 3])
    with pytest.raises(ValueError, match="leverage 1"):
        LinearRegression().fit(alone, Y).summary(alone, Y, covariance="HC3")
    assert np.isnan(LinearRegression().fit(X, np.ones(N)).summary().r_squared)


def test_anova_refuses_what_is_not_nested() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    small, large = (LinearRegression().fit(frame[names], Y) for names in (["a", "b"], ["b", "c", "d"]))
    with pytest.raises(ValueError, match="lacks: a"):
        anova(small, large)
    with pytest.raises(ValueError, match="smaller one first"):
        anova(LinearRegression().fit(X, Y), LinearRegression().fit(X[:, :2], Y))
    with pytest.raises(ValueError, match="different rows"):
        anova(LinearRegression().fit(X[:, :2], Y), LinearRegression().fit(X, Y + 1.0))
    with pytest.raises(ValueError, match="fits worse"):
        anova(LinearRegression().fit(X[:, :1], Y), LinearRegression().fit(RNG.normal(size=(N, 2)), Y))
    with pytest.raises(ValueError, match="intercept"):
        anova(LinearRegression().fit(X[:, :2], Y), LinearRegression(fit_intercept=False).fit(X, Y))
    with pytest.raises(ValueError, match="two models"):
        anova(LinearRegression().fit(X, Y))


def test_longley_has_the_certified_standard_errors() -> None:
    # NIST Statistical Reference Datasets, Longley: certified to 15 digits.
    certified = [
        *(84.9149257747669, 0.334910077722432e-1, 0.488399681651699, 0.214274163161675, 0.226073200069370),
        *(455.478499142212, 890420.383607373),
    ]
    data = sm.datasets.longley.load()
    table = LinearRegression().fit(data.exog, data.endog).summary()
    np.testing.assert_allclose(column(table, "standard_error"), certified, rtol=1e-11)
    np.testing.assert_allclose([table.sigma, table.r_squared], [304.854073561965, 0.995479004577296], rtol=1e-11)
    np.testing.assert_allclose(table.f_statistic, 330.285339234588, rtol=1e-10)
