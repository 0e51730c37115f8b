"""The test of all columns together: its size, its power, its unit; and what it changes in a recommendation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import log_loss
from test_recommendation import made

from separatrix import compare
from separatrix.comparison.scores import rank, recommend
from separatrix.comparison.stages.association import LEVEL, association


@pytest.mark.parametrize(("n", "d", "classes"), [(40, 3, 2), (200, 8, 3), (60, 90, 2)])
def test_p_values_of_noise_are_uniform_enough(n, d, classes):
    rng = np.random.default_rng(n)
    mixing = rng.normal(size=(d, d)) / np.sqrt(d)
    found = [association(rng.normal(size=(n, d)) @ mixing, rng.integers(classes, size=n)) for _ in range(400)]
    for level in (0.05, LEVEL, 0.5):
        hits = int((np.array(found) < level).sum())
        # A gamma distribution of two moments is near, not exact: four points of level are left to it.
        low, high = stats.binom.ppf([1e-4, 1 - 1e-4], 400, [max(level - 0.04, 0.005), level + 0.04])
        assert low <= hits <= high


@pytest.mark.parametrize("kind", ["rare marks", "heavy tails", "copies"])
def test_columns_that_are_no_gaussians_do_not_look_associated(kind):
    rng = np.random.default_rng(1)
    found = []
    for _ in range(400):
        if kind == "rare marks":
            X = (rng.random((40, 4)) < 0.1) * 2.0
        else:
            X = (
                rng.standard_cauchy((40, 3))
                if kind == "heavy tails"
                else np.repeat(rng.normal(size=(40, 1)), 6, axis=1)
            )
        spread = X.std(axis=0)
        found.append(association(X / np.where(spread > 0, spread, 1.0), (rng.random(40) < 0.3).astype(int)))
    hits = int((np.array(found) < LEVEL).sum())
    assert stats.binom.ppf(1e-4, 400, LEVEL - 0.06) <= hits <= stats.binom.ppf(1 - 1e-4, 400, LEVEL + 0.03)


def test_it_is_near_what_permutations_say():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(80, 5)), rng.integers(3, size=80)
    X[:, 0] += 0.35 * (y == 2)
    X -= X.mean(axis=0)
    Y = np.eye(3)[y]

    def size(order):
        return np.square(X.T @ Y[order]).sum()

    drawn = [size(rng.permutation(80)) for _ in range(4000)]
    assert association(X, y) == pytest.approx(np.mean(np.array(drawn) >= size(np.arange(80))), abs=0.02)


def test_neither_unit_nor_place_of_the_table_matters_and_weights_are_repetitions():
    rng = np.random.default_rng(4)
    X, y, w = rng.normal(size=(50, 4)), rng.integers(2, size=50), rng.integers(1, 4, size=50)
    p = association(X, y, w.astype(float))
    assert association(np.repeat(X, w, axis=0), np.repeat(y, w)) == pytest.approx(p, rel=1e-10)
    assert association(1e3 * X - 7.0, y, w.astype(float)) == pytest.approx(p, rel=1e-8)
    assert association(np.ones((50, 2)), y) == 1.0
    assert association(np.empty((10**6, 1000)), y) is None  # of its shape alone


def test_class_shares_do_not_take_the_place_of_a_rule_for_which_all_columns_together_speak():
    shares = made("baseline", [0.65, 0.65, 0.65, 0.65])
    for gain, better in ((0.002, True), (-0.002, True), (-0.02, True), (-0.9, False)):
        one = made("logistic", 0.65 - gain + np.array([-0.06, 0.05, 0.03, -0.02]))
        ordered = rank([shares, one], "log_loss", 4, 0.0065)
        for chance in (None, 0.5, LEVEL):
            assert recommend(ordered, "log_loss", 4, 0.0065, chance)[0] is shares
        chosen, reason = recommend(ordered, "log_loss", 4, 0.0065, 0.1)
        assert chosen is (one if better else shares)
        assert ("columns and classes are associated (a test of all columns together, p = 0.1)" in reason) == better
    lda = made("lda", 0.648 + np.array([-0.06, 0.05, 0.03, -0.02]))  # which does not go to the shares in noise
    assert recommend(rank([shares, lda], "log_loss", 4, 0.0065), "log_loss", 4, 0.0065, 0.001)[0] is shares


def test_a_weak_signal_is_not_called_nothing():
    """Many columns that say a little each: folds are unsure of them, all rows together are not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = X @ np.full(6, 0.25) + rng.logistic(size=120) > 0
    frame = pd.DataFrame(X).add_prefix("x").assign(y=y, pair=np.arange(120) // 2)
    found = compare(frame, "y", families=["baseline", "logistic"], drop=["pair"])
    assert found.recommended.family == "logistic" and found.candidates[1].family == "baseline"
    assert recommend(found.candidates, "log_loss", 5, 0.01 * np.log(2.0))[0].family == "baseline"
    assert "associated no more than by chance (p = " in found.tie_rule
    new = rng.normal(size=(20_000, 6))
    truth = new @ np.full(6, 0.25) + rng.logistic(size=len(new)) > 0
    loss = log_loss(truth, found.best.predict_proba(pd.DataFrame(new).add_prefix("x")))
    assert loss < log_loss(truth, np.full(len(new), y.mean()))
    grouped = compare(frame, "y", families=["baseline", "logistic"], group="pair")  # its rows may not be independent
    assert "associated" not in grouped.tie_rule
