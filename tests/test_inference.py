"""Standard errors, tests and intervals of logistic regression, against statsmodels and against their own definitions."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

import separatrix.inference.profile as profile_module
from separatrix import LogisticRegression, Status, as_source
from separatrix.data import Source
from separatrix.inference.coefficient_table import probability
from separatrix.inference.estimates import Inference, log_chi_square_tail
from separatrix.inference.expansion import Expansion
from separatrix.inference.maximum_likelihood import gather, summarise
from separatrix.inference.summary import CoefficientRow, Summary
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.losses import Softmax
from separatrix.objectives.penalties import Penalty
from separatrix.result import Fit
from separatrix.solvers.registry import minimise

RNG = np.random.default_rng(5)
N, D = 240, 3
X = RNG.normal(size=(N, D)) * [1.0, 2.0, 0.5] + [0.0, 1.0, -1.0]
Y = (RNG.logistic(size=N) < X @ [0.9, -0.4, 0.3] + 0.5).astype(int)
LABELS = np.array(["ash", "birch", "cedar"])
Y3 = LABELS[(X @ RNG.normal(size=(D, 3)) + RNG.gumbel(size=(N, 3))).argmax(axis=1)]
WEIGHTS = RNG.integers(1, 4, size=N).astype(float)
OFFSET = RNG.normal(size=N)
FAR = np.array([2.0**20, 0.0, 0.0])
TIGHT = {"rtol": 1e-8, "atol": 0.0}


def problem_of(X: Any, y: Any, weights: Any = None, **options: Any) -> tuple[LinearProblem, Source]:
    source = as_source(X, y, weights).labelled()
    settings: dict[str, Any] = {"C": np.inf, "l1_ratio": 0.0, "fit_intercept": True} | options
    return LinearProblem.of(source, **settings), source


def known_of(
    X: Any, y: Any, weights: Any = None, tol: float = 1e-12, **options: Any
) -> tuple[Inference, LinearProblem]:
    problem, source = problem_of(X, y, weights, **options)
    return gather(problem, minimise(problem, tol=tol, max_iter=100).theta, source), problem


def table_of(X: Any, y: Any, weights: Any = None, asked: dict[str, Any] | None = None, **options: Any) -> Summary:
    inference, problem = known_of(X, y, weights, **options)
    return summarise(inference, data=problem, **(asked or {}))


def column(table: Summary, name: str) -> np.ndarray:
    return np.array([getattr(row, name) for row in table.rows])


def constant_last(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))])


def agrees(table: Summary, peer: Any) -> None:
    """Coefficients, errors, z and p of a statsmodels result, whose scores are columns."""
    for mine, theirs in {"estimate": "params", "standard_error": "bse", "z": "tvalues", "p_value": "pvalues"}.items():
        np.testing.assert_allclose(column(table, mine), np.asarray(getattr(peer, theirs)).T.ravel(), **TIGHT)
    limits = np.asarray(peer.conf_int()).reshape(-1, 2)
    np.testing.assert_allclose(np.column_stack([column(table, "lower"), column(table, "upper")]), limits, **TIGHT)
    np.testing.assert_allclose(table.log_likelihood, peer.llf, **TIGHT)


# ---------------------------------------------------------------------------------------------------------------------
# Against statsmodels


def test_two_classes_agree_with_logit() -> None:
    peer = sm.Logit(Y, constant_last(X)).fit(disp=0, method="newton", tol=1e-14)
    table = table_of(X, Y)
    agrees(table, peer)
    np.testing.assert_allclose([table.aic, table.bic], [peer.aic, peer.bic], **TIGHT)
    # statsmodels finds the null model by a search that is less precise than its closed form.
    share = Y.mean()
    null = N * (share * np.log(share) + (1 - share) * np.log(1 - share))
    np.testing.assert_allclose(table.lr_statistic, 2 * (peer.llf - null), **TIGHT)
    np.testing.assert_allclose(table.lr_p_value, chi2.sf(2 * (peer.llf - null), D), **TIGHT)
    np.testing.assert_allclose(table.lr_statistic, peer.llr, rtol=1e-6)
    assert (table.lr_degrees, table.n_observations) == (D, N)
    np.testing.assert_allclose(column(table, "odds_upper"), np.exp(peer.conf_int()[:, 1]), **TIGHT)
    np.testing.assert_allclose(table.inference.covariance, peer.cov_params(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("offset", [None, OFFSET], ids=["plain", "offset"])
def test_weights_and_offset_agree_with_glm(intercept: bool, weights: Any, offset: Any) -> None:
    design = constant_last(X) if intercept else X
    family = sm.families.Binomial()
    peer = sm.GLM(Y, design, family=family, freq_weights=weights, offset=offset).fit(tol=1e-15, maxiter=50)
    # Its standard errors are those of the point before the last: from the optimum on, they are the optimum's.
    peer = peer.model.fit(tol=1e-15, start_params=peer.params)
    table = table_of(X, Y, weights, fit_intercept=intercept, offset=offset)
    agrees(table, peer)
    np.testing.assert_allclose(table.deviance, peer.deviance, **TIGHT)
    np.testing.assert_allclose([table.aic, table.bic], [peer.aic, peer.bic_llf], **TIGHT)
    if intercept:
        null = sm.GLM(Y, np.ones(N), family=family, freq_weights=weights, offset=offset).fit(tol=1e-15).llf
    else:
        eta = np.zeros(N) if offset is None else offset
        s = np.ones(N) if weights is None else weights
        null = -float(s @ np.logaddexp(0.0, np.where(Y == 1, -eta, eta)))
    np.testing.assert_allclose(table.null_deviance, -2 * null, **TIGHT)
    np.testing.assert_allclose(table.lr_p_value, chi2.sf(2 * (peer.llf - null), D), rtol=1e-7)


@pytest.mark.parametrize("baseline", [None, 0], ids=["softmax", "reference"])
def test_three_classes_agree_with_mnlogit(baseline: int | None) -> None:
    peer = sm.MNLogit(Y3, constant_last(X)).fit(disp=0, method="newton", tol=1e-14)
    table = table_of(X, Y3, baseline=baseline)
    agrees(table, peer)
    np.testing.assert_allclose([table.aic, table.bic], [peer.aic, peer.bic], **TIGHT)
    counts = np.unique(Y3, return_counts=True)[1]
    statistic = 2 * (peer.llf - float(counts @ np.log(counts / N)))
    np.testing.assert_allclose(table.lr_statistic, statistic, **TIGHT)
    np.testing.assert_allclose(table.lr_p_value, chi2.sf(statistic, 2 * D), **TIGHT)
    assert table.lr_degrees == 2 * D
    assert (table.scores, table.inference.baseline) == (["birch", "cedar"], "ash")
    np.testing.assert_allclose(table.inference.covariance, peer.cov_params(), rtol=1e-7, atol=1e-11)


def test_robust_errors_agree_with_glm() -> None:
    model = sm.GLM(Y, constant_last(X), family=sm.families.Binomial(), offset=OFFSET)
    peer = model.fit(tol=1e-15, cov_type="HC0")
    for name in ("robust", "HC0"):
        agrees(table_of(X, Y, asked={"covariance": name}, offset=OFFSET), peer)
    corrected = table_of(X, Y, asked={"covariance": "HC1"}, offset=OFFSET)  # statsmodels leaves the factor out here
    expected = np.sqrt(N / (N - D - 1)) * peer.bse
    np.testing.assert_allclose(column(corrected, "standard_error"), expected, **TIGHT)


def test_robust_errors_of_three_classes_are_the_sandwich() -> None:
    table = table_of(X, Y3, asked={"covariance": "robust"})
    estimates, design = column(table, "estimate").reshape(2, D + 1), constant_last(X)
    p = np.exp(log_softmax(np.column_stack([np.zeros(N), design @ estimates.T]), axis=1))[:, 1:]
    slopes = p - (Y3[:, None] == LABELS[1:])
    scores = np.einsum("ik,ij->ikj", slopes, design).reshape(N, -1)
    bread = table_of(X, Y3).inference.covariance
    np.testing.assert_allclose(table.inference.covariance, bread @ scores.T @ scores @ bread, rtol=1e-8, atol=1e-12)


# ---------------------------------------------------------------------------------------------------------------------
# Properties


def test_another_baseline_is_another_reading_of_the_same_fit() -> None:
    first, other = table_of(X, Y3), table_of(X, Y3, baseline=1)
    assert (other.scores, other.inference.baseline) == (["ash", "cedar"], "birch")
    # (ash − birch, cedar − birch) from (birch − ash, cedar − ash)
    change = np.kron([[-1.0, 0.0], [-1.0, 1.0]], np.eye(D + 1))
    covariance = change @ first.inference.covariance @ change.T
    np.testing.assert_allclose(column(other, "estimate"), change @ column(first, "estimate"), rtol=1e-8)
    np.testing.assert_allclose(other.inference.covariance, covariance, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(other.null_deviance, first.null_deviance, rtol=1e-14)


def test_offsets_of_a_softmax_are_contrasts() -> None:
    offset = RNG.normal(size=(N, 3))
    whole = table_of(X, Y3, offset=offset)
    contrasts = table_of(X, Y3, offset=offset[:, 1:] - offset[:, :1], baseline=0)
    np.testing.assert_allclose(column(whole, "standard_error"), column(contrasts, "standard_error"), **TIGHT)
    np.testing.assert_allclose(whole.null_deviance, contrasts.null_deviance, rtol=1e-12)

    def null(intercepts: np.ndarray) -> float:
        p = log_softmax(offset + np.append(0.0, intercepts), axis=1)
        return -2 * float(p[np.arange(N), np.searchsorted(LABELS, Y3)].sum())

    np.testing.assert_allclose(whole.null_deviance, minimize(null, np.zeros(2)).fun, rtol=1e-9)


def test_softmax_of_two_classes_is_the_binary_model() -> None:
    problem, source = problem_of(X, Y)
    symmetric = replace(problem, objective=LinearObjective(Softmax(2), Penalty.none((2, D + 1))))
    theta = minimise(symmetric, "newton", tol=1e-12, max_iter=100).theta
    found, expected = summarise(gather(symmetric, theta, source)), table_of(X, Y)
    assert found.scores == expected.scores == [1]
    for name in ("estimate", "standard_error", "p_value"):
        np.testing.assert_allclose(column(found, name), column(expected, name), **TIGHT)
    np.testing.assert_allclose(found.lr_statistic, expected.lr_statistic, **TIGHT)


@pytest.mark.parametrize("y", [Y, Y3], ids=["two", "three"])
@pytest.mark.parametrize("asked", [{}, {"covariance": "HC0"}, {"covariance": "HC1"}, {"interval": "profile"}], ids=str)
def test_weights_are_repetitions(y: Any, asked: dict[str, Any]) -> None:
    rows = np.repeat(np.arange(60), WEIGHTS[:60].astype(int))
    weighted = table_of(X[:60], y[:60], WEIGHTS[:60], asked)
    repeated = table_of(X[rows], y[rows], None, asked)
    for name in ("estimate", "standard_error", "lower", "upper"):
        np.testing.assert_allclose(column(weighted, name), column(repeated, name), rtol=1e-7)
    for name in ("n_observations", "aic", "bic", "lr_statistic"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-10)


@pytest.mark.parametrize("asked", [{}, {"covariance": "HC1"}, {"interval": "profile"}], ids=str)
def test_rows_of_weight_zero_are_not_there(asked: dict[str, Any]) -> None:
    weights, spoilt = WEIGHTS.copy(), X.copy()
    weights[::4], spoilt[::4] = 0.0, np.nan
    kept = weights > 0
    found, expected = table_of(spoilt, Y, weights, asked), table_of(X[kept], Y[kept], weights[kept], asked)
    assert found.n_observations == expected.n_observations
    for name in ("standard_error", "lower", "upper"):
        np.testing.assert_allclose(column(found, name), column(expected, name), rtol=1e-8)


@pytest.mark.parametrize("asked", [{}, {"covariance": "HC0"}, {"interval": "profile"}], ids=str)
@pytest.mark.parametrize("factor", [1e-3, 1e5, 1e150])
def test_scaling_a_column_scales_its_row(asked: dict[str, Any], factor: float) -> None:
    plain = table_of(X, Y, asked=asked)
    scaled = table_of(X * [1.0, factor, 1.0], Y, asked=asked)
    units = np.array([1.0, factor, 1.0, 1.0])
    for name in ("estimate", "standard_error", "lower", "upper"):
        np.testing.assert_allclose(column(scaled, name) * units, column(plain, name), rtol=1e-7)
    for name in ("z", "p_value"):
        np.testing.assert_allclose(column(scaled, name), column(plain, name), rtol=1e-7)


@pytest.mark.parametrize("asked", [{}, {"covariance": "HC0"}, {"interval": "profile"}], ids=str)
def test_columns_far_from_the_origin_keep_their_errors(asked: dict[str, Any]) -> None:
    whole = np.round(X * 1024) / 1024  # so that shifting them rounds nothing
    plain, far = table_of(whole, Y, asked=asked), table_of(whole + FAR, Y, asked=asked)
    for name in ("estimate", "standard_error", "lower", "upper"):
        np.testing.assert_allclose(column(far, name)[:D], column(plain, name)[:D], rtol=1e-6)
    gradient = np.append(-FAR, 1.0)  # of the intercept by the coefficients of the plain columns
    expected = np.sqrt(gradient @ plain.inference.covariance @ gradient)
    np.testing.assert_allclose(far.rows[-1].standard_error, expected, rtol=1e-6)


def test_every_kind_of_source_gives_the_same_table() -> None:
    names = ["age", "height", "weight"]
    dense = table_of(X, Y, asked={"interval": "profile"})
    for other in (sp.csr_array(X), pd.DataFrame(X, columns=names), np.asfortranarray(X)):
        table = table_of(other, Y, asked={"interval": "profile"})
        for name in ("estimate", "standard_error", "lower", "upper"):
            np.testing.assert_allclose(column(table, name), column(dense, name), rtol=1e-8)
        robust = [table_of(rows, Y3, asked={"covariance": "HC0"}) for rows in (X, other)]
        np.testing.assert_allclose(*(column(table, "standard_error") for table in robust), rtol=1e-8)
    assert [row.name for row in table_of(pd.DataFrame(X, columns=names), Y).rows] == [*names, "(intercept)"]
    assert [row.name for row in dense.rows] == ["x0", "x1", "x2", "(intercept)"]


def test_a_loose_fit_is_taken_to_the_optimum_and_says_so() -> None:
    problem, source = problem_of(X, Y)
    loose, tight = gather(problem, problem.start(), source), table_of(X, Y)
    assert "standard errors away" in loose.note
    assert not tight.inference.note
    table = summarise(loose)
    assert "standard errors away" in str(table)
    for name in ("estimate", "standard_error", "z"):
        np.testing.assert_allclose(column(table, name), column(tight, name), **TIGHT)


def test_a_tight_fit_costs_one_pass_and_the_null_model_none() -> None:
    for options in ({}, {"offset": OFFSET}):
        problem, source = problem_of(X, Y, **options)
        theta = minimise(problem, "newton", tol=1e-14, max_iter=100).theta
        before = source.passes
        inference = gather(problem, theta, source)
        assert source.passes == before + 1
        assert np.isfinite(inference.null_log_likelihood)


# ---------------------------------------------------------------------------------------------------------------------
# Profile likelihood


@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
@pytest.mark.parametrize("intercept", [True, False])
def test_profile_limits_are_where_the_deviance_has_risen_by_the_quantile(level: float, intercept: bool) -> None:
    asked = {"interval": "profile", "level": level}
    table = table_of(X, Y, WEIGHTS, asked, fit_intercept=intercept, offset=OFFSET)
    design, family = constant_last(X) if intercept else X, sm.families.Binomial()
    for j, row in enumerate(table.rows):
        for limit in (row.lower, row.upper):
            held = OFFSET + limit * design[:, j]
            others = np.delete(design, j, axis=1)
            fit = sm.GLM(Y, others, family=family, freq_weights=WEIGHTS, offset=held).fit(tol=1e-15, maxiter=100)
            np.testing.assert_allclose(fit.deviance - table.deviance, chi2.ppf(level, 1), rtol=1e-8)
        assert row.lower < row.estimate < row.upper


def test_profile_limits_of_three_classes() -> None:
    table, design = table_of(X, Y3, asked={"interval": "profile"}), constant_last(X)
    codes, best = np.searchsorted(LABELS, Y3), column(table, "estimate")
    for j in (0, 5, 7):
        for limit in (table.rows[j].lower, table.rows[j].upper):

            def deviance(free: np.ndarray, j: int = j, limit: float = limit) -> tuple[float, np.ndarray]:
                theta = np.insert(free, j, limit).reshape(2, -1)
                logs = log_softmax(np.column_stack([np.zeros(N), design @ theta.T]), axis=1)
                slopes = np.exp(logs)[:, 1:] - (codes[:, None] == [1, 2])
                return -2 * float(logs[np.arange(N), codes].sum()), 2 * np.delete((slopes.T @ design).ravel(), j)

            found = minimize(deviance, np.delete(best, j), jac=True, method="BFGS", options={"gtol": 1e-7})
            np.testing.assert_allclose(found.fun - table.deviance, chi2.ppf(0.95, 1), rtol=1e-7)


def test_profile_limits_approach_those_of_wald() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 2))
    y = (rows @ [1.0, -0.5] > rng.logistic(size=len(rows))).astype(int)
    wald, profile = table_of(rows, y), table_of(rows, y, asked={"interval": "profile"})
    for side in ("lower", "upper"):
        apart = np.abs(column(wald, side) - column(profile, side)) / column(wald, "standard_error")
        assert (apart < 0.05).all()


def test_profile_limits_of_classes_that_barely_overlap() -> None:
    x = np.arange(10.0)[:, None]
    y = np.array([0, 0, 0, 0, 1, 0, 1, 1, 1, 1])
    for level in (0.95, 0.999999, 1 - 1e-13):
        table = table_of(x, y, asked={"interval": "profile", "level": level})
        slope = table.rows[0]
        assert np.isfinite([slope.lower, slope.upper]).all()
        assert slope.upper - slope.estimate > 1.3 * (slope.estimate - slope.lower)  # far from symmetric


# ---------------------------------------------------------------------------------------------------------------------
# The table


def test_tiny_p_values_are_not_zero() -> None:
    row = CoefficientRow("b", "x", 100.0, 1.0, 98.0, 102.0)
    with mpmath.workdps(50):
        exact = mpmath.log(mpmath.erfc(100 / mpmath.sqrt(2)))
        assert abs(row.log_p_value / float(exact) - 1) < 1e-12
        for statistic, degrees in ((1e4, 1), (3000.0, 7), (2e5, 64), (1e4, 2)):
            tail = mpmath.log(mpmath.gammainc(mpmath.mpf(degrees) / 2, statistic / 2, regularized=True))
            assert abs(log_chi_square_tail(statistic, degrees) / float(tail) - 1) < 1e-12
    assert probability(row.log_p_value) == "2.7e-2174"
    assert CoefficientRow("b", "x", 8.0, 1.0, 6.0, 10.0).p_value == pytest.approx(1.244192e-15, rel=1e-6)
    assert [probability(np.log(p)) for p in (1.0, 0.25, 9.99e-05, 9.96e-10)] == [
        "1.0000",
        "0.2500",
        "1.0e-04",
        "1.0e-09",
    ]
    table = table_of(X, Y)
    known = replace(table.inference, log_likelihood=-1.0, null_log_likelihood=-5000.0)
    assert "χ² = 9998 on 3 df, p = 7.3e-2170" in str(replace(table, inference=known))


def test_text_has_a_block_for_every_score_in_aligned_columns() -> None:
    text = str(table_of(X, Y3))
    assert text.count("Std. error") == 2
    assert "Log-odds of 'birch' against 'ash'" in text and "Log-odds of 'cedar' against 'ash'" in text
    lines = [line for line in text.splitlines() if line.startswith(("x", "(intercept)", "    "))]
    assert len(lines) == 2 * (D + 2)
    assert len({len(line) for line in lines}) == 1
    assert repr(table_of(X, Y)) == str(table_of(X, Y))
    for word in ("Observations", "Deviance", "Null deviance", "AIC", "BIC", "Likelihood-ratio test", "Wald"):
        assert word in text
    assert "profile-likelihood intervals at level 0.9" in str(
        table_of(X, Y, asked={"interval": "profile", "level": 0.9})
    )
    assert "robust (HC1)" in str(table_of(X, Y, asked={"covariance": "HC1"}))


def test_html_escapes_names_and_labels() -> None:
    frame = pd.DataFrame(X, columns=["<b>", "a&b", '"c"'])
    page = table_of(frame, np.where(Y == 1, "<script>", "no"))._repr_html_()
    assert "<b>" not in page and "<script>" not in page
    assert "&lt;b&gt;" in page and "a&amp;b" in page and "&lt;script&gt;" in page
    assert page.count("<table>") == page.count("</table>") == 2
    assert "http" not in page


def test_frame_has_the_rows() -> None:
    two, three = table_of(X, Y), table_of(X, Y3)
    frame = two.to_frame()
    assert list(frame.index) == ["x0", "x1", "x2", "(intercept)"]
    np.testing.assert_array_equal(frame["p_value"], column(two, "p_value"))
    assert three.to_frame().loc[("cedar", "x1"), "estimate"] == three.rows[5].estimate
    assert three.to_frame().shape == (2 * (D + 1), 9)


def test_inference_can_be_stored() -> None:
    inference, _ = known_of(X, Y3)
    assert str(summarise(pickle.loads(pickle.dumps(inference)))) == str(summarise(inference))


def test_odds_ratios_may_overflow_without_noise() -> None:
    with np.errstate(all="raise"):
        assert CoefficientRow("b", "x", 1e4, 1.0, 9e3, 1.1e4).odds_ratio == np.inf


# ---------------------------------------------------------------------------------------------------------------------
# Refusals


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"C": 1.0}, "Bayesian reading"),
        ({"C": 1.0, "l1_ratio": 0.5}, "after an L1 penalty"),
        ({"C": 1.0, "l1_ratio": 1.0}, "after an L1 penalty"),
        ({"prior": (0.0, 1.0)}, "BayesianLogisticRegression reports"),
        ({"prior": (1.0, 1.0)}, "under a prior"),
        ({"prior": (0.0, np.eye(D) + 0.1)}, "under a prior"),
        ({"bounds": (0.0, None)}, "under bounds"),
    ],
    ids=str,
)
def test_penalties_priors_and_bounds_are_refused_without_a_pass(options: dict[str, Any], sentence: str) -> None:
    problem, source = problem_of(X, Y, **options)
    before = source.passes
    inference = gather(problem, problem.start(), source)
    assert source.passes == before
    with pytest.raises(ValueError, match=sentence):
        summarise(inference)


def test_a_penalty_that_touches_no_column_is_none() -> None:
    inference, _ = known_of(X, Y, C=1.0, penalty_factors=0.0)
    assert not inference.refusal


def test_separated_classes_are_refused() -> None:
    x = np.arange(10.0)[:, None]
    with pytest.warns(ConvergenceWarning):
        model = LogisticRegression(C=np.inf).fit(x, x[:, 0] > 4.5)
    problem, source = problem_of(x, x[:, 0] > 4.5)
    theta = problem.start(model.coef_, model.intercept_)
    with pytest.raises(ValueError, match=r"infinite coefficients.*completely separable"):
        summarise(gather(problem, theta, source, fit=model.fit_))
    with pytest.raises(ValueError, match="classes may be separable"):  # even when nobody has looked
        summarise(gather(problem, problem.start(), source))


def test_dependent_columns_are_refused_by_name() -> None:
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    frame["sum"] = frame["age"] + frame["weight"]
    for y in (Y, Y3):
        inference, _ = known_of(frame, y)
        assert "column 'age', column 'weight' and column 'sum' are linearly dependent" in inference.refusal
    with pytest.raises(ValueError, match="column 1 and the intercept are linearly dependent"):
        table_of(np.column_stack([X[:, 0], np.full(N, 7.0)]), Y)
    with pytest.raises(ValueError, match="column 3 is zero in every row"):
        table_of(np.column_stack([X, np.zeros(N)]), Y)
    assert not known_of(np.column_stack([X[:, 0], np.full(N, 7.0)]), Y, fit_intercept=False)[0].refusal
    assert "and 6 more are linearly dependent" in known_of(X[:6, :1] * np.ones(11), [0, 1] * 3)[0].refusal


def test_other_fits_are_refused() -> None:
    problem, source = problem_of(X, Y)
    theta = problem.start()
    interrupted = Fit(Status.INTERRUPTED, 1, 0.1)
    for options, sentence in (
        ({"fit": interrupted}, "was interrupted"),
        ({"largest": 3}, "give summary X and y again"),
    ):
        before = source.passes
        with pytest.raises(ValueError, match=sentence):
            summarise(gather(problem, theta, source, **options))
        assert source.passes == before
    assert not gather(problem, theta, source, fit=Fit(Status.MAX_ITER, 1, 0.1)).refusal


def test_wishes_that_cannot_be_granted() -> None:
    inference, problem = known_of(X, Y)
    for wish, sentence in (
        ({"level": 95}, "level is 95"),
        ({"interval": "score"}, "interval is 'score'"),
        ({"covariance": "HC3"}, "covariance is 'HC3'"),
        ({"interval": "profile"}, "Profile intervals need the rows again"),
        ({"covariance": "robust"}, "Robust standard errors need the rows again"),
        ({"interval": "profile", "covariance": "HC0", "data": problem}, "robust errors do not"),
    ):
        with pytest.raises(ValueError, match=sentence):
            summarise(inference, **wish)
    for other in (problem_of(X[1:], Y[1:])[0], problem_of(X + 1.0, Y)[0], problem_of(X, Y, WEIGHTS)[0]):
        with pytest.raises(ValueError, match="not the ones the model was fitted to"):
            summarise(inference, covariance="robust", data=other)
    small, rows = known_of(X[:9], np.array([0, 1] * 4 + [0]), np.full(9, 0.25))
    with pytest.raises(ValueError, match="HC1 divides by"):
        summarise(small, covariance="HC1", data=rows)


def test_a_held_fit_that_did_not_converge_is_not_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    inference, problem = known_of(X, Y)
    true = summarise(inference, interval="profile", data=problem)
    honest, calls = profile_module.minimise_held, []

    def lazy(problem: Any, theta: Any, normal: Any) -> Any:
        calls.append(0)
        if len(calls) % 2:  # every other fit takes no step: its F is too high by what the steps would gain
            point = Expansion.at(problem, theta + 0.3 * np.sign(theta))
            return point, False
        return honest(problem, theta, normal)

    monkeypatch.setattr(profile_module, "minimise_held", lazy)
    found = summarise(inference, interval="profile", data=problem)
    for one, two in zip(true.rows, found.rows, strict=True):
        assert (two.lower, two.upper) == pytest.approx((one.lower, one.upper), rel=1e-6)
    monkeypatch.setattr(profile_module, "minimise_held", lambda *given: (honest(*given)[0], False))
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        unknown = summarise(inference, interval="profile", data=problem)
    for one, two in zip(true.rows, unknown.rows, strict=True):
        assert two.lower <= one.lower + 1e-6 and two.upper >= one.upper - 1e-6


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.floats(-6, 6), st.integers(-20, 20))
def test_profiles_do_not_depend_on_origin_and_units(seed: int, far: float, power: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((40, 2))
    y = (rows[:, 0] + rng.logistic(size=40) > 0).astype(int)
    if not 8 <= y.sum() <= 32:
        return
    moved = (rows + np.sign(far) * 10.0 ** abs(far)) * 10.0**power
    near, there = (LogisticRegression(C=np.inf).fit(Z, y).summary(Z, y, interval="profile").rows for Z in (rows, moved))
    for one, two in zip(near[:2], there[:2], strict=True):
        limits = 10.0**power * np.array([two.lower, two.upper])
        np.testing.assert_allclose(limits, [one.lower, one.upper], rtol=1e-5, atol=1e-6)
