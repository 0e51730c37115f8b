"""Intervals, marginal effects and influence of logistic regression, against statsmodels and against their definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import ndtri

from separatrix import LogisticRegression, scan_parquet
from separatrix.inference import likelihood_ratio_test

RNG = np.random.default_rng(46)
N, D = 200, 3
X = np.column_stack([RNG.normal(size=N), 2.0 * RNG.normal(size=N) + 3.0, RNG.integers(0, 2, size=N)])
Y = (RNG.logistic(size=N) < X @ [0.9, -0.4, 0.7] + 1.0).astype(int)
LABELS = np.array(["ash", "birch", "cedar"])
Y3 = LABELS[(X @ RNG.normal(size=(D, 3)) + RNG.gumbel(size=(N, 3))).argmax(axis=1)]
WEIGHTS = RNG.integers(1, 4, size=N).astype(float)
OFFSET = RNG.normal(size=N)
DESIGN = np.column_stack([X, np.ones(N)])
CLOSE = {"rtol": 1e-6, "atol": 1e-10}
PLAIN = {"C": np.inf, "tol": 1e-12}


def logit() -> Any:
    return sm.Logit(Y, DESIGN).fit(disp=0, method="newton", tol=1e-14)


def mnlogit() -> Any:
    return sm.MNLogit(np.searchsorted(LABELS, Y3), DESIGN).fit(disp=0, method="newton", tol=1e-14, maxiter=100)


def column(table: Any, name: str) -> np.ndarray:
    return np.array([getattr(row, name) for row in table.rows])


def test_covariance_limits_and_r_squared_agree() -> None:
    model, peer = LogisticRegression(**PLAIN).fit(X, Y), logit()
    np.testing.assert_allclose(model.vcov(), peer.cov_params(), **CLOSE)
    np.testing.assert_allclose(model.conf_int(level=0.9), peer.conf_int(alpha=0.1), **CLOSE)
    np.testing.assert_allclose(model.summary().mcfadden_r_squared, peer.prsquared, **CLOSE)
    robust = sm.Logit(Y, DESIGN).fit(disp=0, tol=1e-14, method="newton", cov_type="HC0")
    np.testing.assert_allclose(model.vcov(X, Y, covariance="HC0"), robust.cov_params(), **CLOSE)
    np.testing.assert_allclose(model.conf_int(X, Y, interval="profile"), model.profile_intervals(X, Y), **CLOSE)
    model3, peer3 = LogisticRegression(**PLAIN).fit(X, Y3), mnlogit()
    np.testing.assert_allclose(model3.vcov(), peer3.cov_params(), **CLOSE)
    np.testing.assert_allclose(model3.conf_int(), np.asarray(peer3.conf_int()).reshape(-1, 2), **CLOSE)
    np.testing.assert_allclose(model3.summary().mcfadden_r_squared, peer3.prsquared, **CLOSE)


@pytest.mark.parametrize("target", [Y, Y3], ids=["two", "three"])
def test_nested_fits(target: Any) -> None:
    small, large = (LogisticRegression(**PLAIN).fit(X[:, :k], target) for k in (1, 3))
    found = likelihood_ratio_test(small, large)
    peers = [
        sm.MNLogit(np.unique(target, return_inverse=True)[1], DESIGN[:, columns]).fit(
            disp=0, method="newton", tol=1e-14
        )
        for columns in ([0, 3], [0, 1, 2, 3])
    ]
    np.testing.assert_allclose(found.statistic, 2 * (peers[1].llf - peers[0].llf), **CLOSE)
    assert found.degrees == 2 * (len(np.unique(target)) - 1)
    assert 0.0 <= found.p_value <= 1.0 and "χ²" in str(found)
    # against the intercepts alone, it is the test that the summary shows
    with pytest.raises(ValueError, match="smaller one first"):
        likelihood_ratio_test(large, small)
    with pytest.raises(ValueError, match="different rows"):
        likelihood_ratio_test(small, LogisticRegression(**PLAIN).fit(X[1:], target[1:]))
    with pytest.raises(ValueError, match="penalty"):
        likelihood_ratio_test(small, LogisticRegression().fit(X, target))


@pytest.mark.parametrize("at", ["average", "mean"])
@pytest.mark.parametrize(("classes", "discrete"), [(2, False), (2, True), (3, False)])
def test_marginal_effects_agree(classes: int, discrete: bool, at: str) -> None:
    model = LogisticRegression(**PLAIN).fit(X, Y if classes == 2 else Y3)
    peer = (logit() if classes == 2 else mnlogit()).get_margeff(at={"average": "overall"}.get(at, at), dummy=discrete)
    table = model.marginal_effects(X, at=at, discrete=discrete)
    np.testing.assert_allclose(column(table, "effect"), peer.margeff.T.ravel(), **CLOSE)
    np.testing.assert_allclose(column(table, "standard_error"), peer.margeff_se.T.ravel(), **CLOSE)
    np.testing.assert_allclose(column(table, "p_value"), peer.pvalues.T.ravel(), rtol=1e-5, atol=1e-12)
    if classes == 3:  # probabilities add up to 1
        np.testing.assert_allclose(column(table, "effect").reshape(3, D).sum(axis=0), 0.0, atol=1e-12)
    assert table.discrete == (("x2",) if discrete else ())
    assert table.scores[-1] in (1, "cedar") and "delta" in str(table)
    assert len(table.to_frame()) == len(table.rows)


@pytest.mark.parametrize("at", ["average", "mean"])
def test_steps_of_several_classes_follow_from_the_derivatives(at: str) -> None:
    # statsmodels' MNLogit cannot do it: its shapes do not fit together.
    model = LogisticRegression(**PLAIN).fit(X, Y3)
    table, theta = model.marginal_effects(X, at=at, discrete=True), column(model.summary(), "estimate")
    rows = DESIGN if at == "average" else DESIGN.mean(axis=0, keepdims=True)

    def step(theta: np.ndarray) -> np.ndarray:
        shares = []
        for value in (0.0, 1.0):
            moved = rows.copy()
            moved[:, 2] = value
            e = np.exp(np.column_stack([np.zeros(len(rows)), moved @ theta.reshape(2, D + 1).T]))
            shares.append((e / e.sum(axis=1, keepdims=True)).mean(axis=0))
        return shares[1] - shares[0]

    own = slice(2, None, D)
    np.testing.assert_allclose(column(table, "effect")[own], step(theta), **CLOSE)
    jacobian = np.stack([(step(theta + h) - step(theta - h)) / 2e-6 for h in 1e-6 * np.eye(len(theta))], axis=1)
    errors = np.sqrt((jacobian @ model.vcov() * jacobian).sum(axis=1))
    np.testing.assert_allclose(column(table, "standard_error")[own], errors, rtol=1e-6)


def test_effects_of_weights_are_those_of_repetitions(tmp_path: Path) -> None:
    often = np.repeat(np.arange(N), WEIGHTS.astype(int))
    model = LogisticRegression(**PLAIN).fit(X, Y3, WEIGHTS)
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y3, w=WEIGHTS).to_parquet(tmp_path / "rows.parquet")
    for at in ("average", "mean"):
        expected = model.marginal_effects(X[often], at=at, discrete=True)
        source = scan_parquet(tmp_path / "rows.parquet", target="y", weight="w")
        fitted = LogisticRegression(**PLAIN).fit(source)
        for table in (
            model.marginal_effects(X, WEIGHTS, at=at, discrete=True),
            fitted.marginal_effects(source, at=at, discrete=True),
        ):
            np.testing.assert_allclose(column(table, "effect"), column(expected, "effect"), **CLOSE)
            np.testing.assert_allclose(column(table, "standard_error"), column(expected, "standard_error"), **CLOSE)


def test_probability_intervals_agree_with_logit() -> None:
    model, peer = LogisticRegression(**PLAIN).fit(X, Y), logit()
    frame = peer.get_prediction(
        DESIGN
    ).summary_frame()  # its errors are by the delta method, its limits of the log-odds
    limits = model.predict_proba_interval(X, level=0.9)
    width = ndtri(0.95) * frame["se"]
    expected = np.clip(np.column_stack([frame["predicted"] - width, frame["predicted"] + width]), 0.0, 1.0)
    np.testing.assert_allclose(limits[:, 1], expected, **CLOSE)
    np.testing.assert_allclose(limits[:, 0], 1.0 - limits[:, 1, ::-1], atol=1e-12)
    glm = sm.GLM(Y, DESIGN, family=sm.families.Binomial()).fit(tol=1e-14)
    frame = glm.get_prediction(DESIGN).summary_frame(alpha=0.1)
    inside = model.predict_proba_interval(X, level=0.9, scale="log-odds")[:, 1]
    np.testing.assert_allclose(inside, frame[["mean_ci_lower", "mean_ci_upper"]].to_numpy(), **CLOSE)


def test_probability_intervals_of_several_classes_follow_from_the_derivatives() -> None:
    model = LogisticRegression(multi_class="reference", baseline="birch", **PLAIN).fit(X, Y3)
    limits, z = model.predict_proba_interval(X[:5], level=0.6826894921370859), 1.0
    covariance, theta = model.vcov(), column(model.summary(), "estimate")

    def at(theta: np.ndarray) -> np.ndarray:
        scores = np.zeros((5, 3))
        scores[:, [0, 2]] = DESIGN[:5] @ theta.reshape(2, D + 1).T
        shares = np.exp(scores)
        return shares / shares.sum(axis=1, keepdims=True)

    np.testing.assert_allclose(at(theta), model.predict_proba(X[:5]), rtol=1e-6)
    steps = 1e-6 * np.eye(len(theta))
    jacobian = np.stack([(at(theta + h) - at(theta - h)) / 2e-6 for h in steps], axis=2)
    errors = np.sqrt(np.einsum("njq,qr,njr->nj", jacobian, covariance, jacobian))
    expected = np.clip(np.stack([at(theta) - z * errors, at(theta) + z * errors], axis=2), 0.0, 1.0)
    np.testing.assert_allclose(limits, expected, rtol=1e-6, atol=1e-9)
    inner = model.predict_proba_interval(X, scale="log-odds")
    assert (inner > 0).all() and (inner < 1).all() and (inner[..., 0] <= inner[..., 1]).all()


def test_influence_agrees_with_statsmodels() -> None:
    model, peer = LogisticRegression(**PLAIN).fit(X, Y), logit().get_influence()
    found = model.influence(X, Y)
    np.testing.assert_allclose(found.leverage, peer.hat_matrix_diag, **CLOSE)
    np.testing.assert_allclose(found.cooks_distance, peer.cooks_distance[0], **CLOSE)
    np.testing.assert_allclose(found.dfbeta, peer.d_params, **CLOSE)
    np.testing.assert_allclose(found.dfbetas, peer.dfbetas, **CLOSE)
    glm = sm.GLM(Y, DESIGN, family=sm.families.Binomial()).fit(tol=1e-14).get_influence()
    np.testing.assert_allclose(found.leverage, glm.hat_matrix_diag, **CLOSE)
    np.testing.assert_allclose(found.cooks_distance, glm.cooks_distance[0], **CLOSE)


@pytest.mark.parametrize("offset", [None, OFFSET], ids=["plain", "offset"])
def test_influence_is_a_newton_step_without_the_row(offset: Any) -> None:
    shift = None if offset is None else np.column_stack([np.zeros(N), offset, -offset])
    model = LogisticRegression(**PLAIN).fit(X, Y3, WEIGHTS, offset=shift)
    found = model.influence(X, Y3, WEIGHTS, offset=shift)
    np.testing.assert_allclose(WEIGHTS @ found.leverage, 2 * (D + 1), rtol=1e-8)
    theta = column(model.summary(), "estimate").reshape(2, D + 1)
    scores = np.column_stack([np.zeros(N), DESIGN @ theta.T]) + (0.0 if shift is None else shift)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    residual = (Y3[:, None] == LABELS)[:, 1:] - p[:, 1:]
    for row in (0, 17, 99):
        left = WEIGHTS - (np.arange(N) == row)
        gradient = np.einsum("n,nk,nl->kl", left, residual, DESIGN).ravel()
        bend = np.einsum("nk,kl->nkl", p[:, 1:], np.eye(2)) - p[:, 1:, None] * p[:, None, 1:]
        information = np.einsum("n,nkl,na,nb->kalb", left, bend, DESIGN, DESIGN).reshape(8, 8)
        change = -np.linalg.solve(information, gradient)
        np.testing.assert_allclose(found.dfbeta[row], change, rtol=1e-5, atol=1e-9)
        distance = change @ np.linalg.solve(model.vcov(), change) / 8
        np.testing.assert_allclose(found.cooks_distance[row], distance, rtol=1e-5)


def test_rows_without_weight_have_no_influence_and_absent_classes_no_probability() -> None:
    weights = np.where(Y3 == "birch", 0.0, WEIGHTS)
    model = LogisticRegression(**PLAIN).fit(X, Y3, weights)
    found = model.influence(X, Y3, weights)
    assert not found.cooks_distance[Y3 == "birch"].any() and found.cooks_distance[Y3 != "birch"].all()
    limits = model.predict_proba_interval(X)
    assert not limits[:, 1].any()
    kept = Y3 != "birch"
    alone = LogisticRegression(**PLAIN).fit(X[kept], Y3[kept], WEIGHTS[kept])
    np.testing.assert_allclose(limits[:, [0, 2]], alone.predict_proba_interval(X), rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), LogisticRegression(l1_ratio=1.0), LogisticRegression(prior=(0.0, 1.0))],
    ids=["l2", "l1", "prior"],
)
def test_refusals_give_the_reason(model: Any) -> None:
    model.fit(X, Y)
    for ask in (model.vcov, model.conf_int, lambda: model.predict_proba_interval(X), lambda: model.marginal_effects(X)):
        with pytest.raises(ValueError, match="no standard errors"):
            ask()
    with pytest.raises(ValueError, match="no standard errors"):
        model.influence(X, Y)


def test_separation_firth_and_other_rows_are_refused() -> None:
    with pytest.warns(UserWarning, match="separable"):
        separated = LogisticRegression(C=np.inf).fit(X, (X[:, 0] > 0).astype(int))
    with pytest.raises(ValueError, match="infinite"):
        separated.predict_proba_interval(X)
    firth = LogisticRegression(penalty="firth", tol=1e-10).fit(X, Y)
    assert firth.vcov().shape == (4, 4) and firth.marginal_effects(X).rows[0].standard_error > 0
    with pytest.raises(ValueError, match="Firth"):
        firth.influence(X, Y)
    model = LogisticRegression(**PLAIN).fit(X, Y)
    with pytest.raises(ValueError, match="not the ones"):
        model.influence(X, 1 - Y)
    with pytest.raises(ValueError, match="scale"):
        model.predict_proba_interval(X, scale="odds")
    with pytest.raises(ValueError, match="'mean'"):
        model.marginal_effects(X, at="median")
    with pytest.raises(ValueError, match="level"):
        model.marginal_effects(X, level=95)
