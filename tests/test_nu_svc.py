"""ν-machines: LIBSVM's optimum, the proof of the C-form, and what ν means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris, make_classification

import separatrix as sx


def data(seed: int, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(n, 5, n_informative=4, n_redundant=0, flip_y=0.1, class_sep=1.5, random_state=seed)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_optimum_is_libsvms(kernel: str, seed: int) -> None:
    X, y = data(seed)
    ours = sx.NuSVC(nu=0.613, kernel=kernel).fit(X, y)
    theirs = sklearn.svm.NuSVC(nu=0.613, kernel=kernel, tol=1e-9, max_iter=2_000_000).fit(X, y)
    scale = np.abs(theirs.decision_function(X)).max()
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6 * scale)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6 * scale)
    K = ours.machines_[0]
    dense = np.zeros(len(X))
    dense[theirs.support_] = theirs.dual_coef_[0]
    value = np.abs(dense).sum() - 0.5 * dense @ (theirs.decision_function(X) - theirs.intercept_)
    np.testing.assert_allclose(K.dual_objective, value, rtol=1e-6)
    assert ours.fit_.status is sx.Status.CONVERGED and ours.fit_.certificate.kind == "proven"


@pytest.mark.parametrize("nu", [0.3, 0.6, 0.9])
def test_it_is_the_machine_of_one_over_rho(nu: float) -> None:
    X, y = data(4)
    ours = sx.NuSVC(nu=nu).fit(X, y)
    machine = ours.machines_[0]
    C = machine.bound[0]
    same = sx.SVC(C=C).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), same.decision_function(X), atol=1e-7)
    np.testing.assert_allclose(machine.alpha.sum(), nu * machine.bound.sum(), rtol=1e-10)
    best = sx.SVC(C=C, tol=1e-10).fit(X, y).machines_[0].dual_objective
    assert machine.primal_objective - best <= ours.fit_.certificate.gap
    assert np.mean(machine.slacks > 1e-6) <= nu <= np.mean(machine.alpha > 0) + 1e-12


def test_three_classes_and_sparse_rows() -> None:
    import scipy.sparse as sp

    X, y = load_iris(return_X_y=True)
    for kernel in ("rbf", "linear"):
        ours = sx.NuSVC(nu=0.41, kernel=kernel, decision_function_shape="ovo", tol=1e-6).fit(X, y)
        theirs = sklearn.svm.NuSVC(nu=0.41, kernel=kernel, decision_function_shape="ovo", tol=1e-8).fit(X, y)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
        again = sx.NuSVC(nu=0.41, kernel=kernel, decision_function_shape="ovo", tol=1e-6).fit(sp.csr_array(X), y)
        np.testing.assert_allclose(again.decision_function(X), ours.decision_function(X), atol=1e-5)


def test_weights_are_repeats() -> None:
    X, y = data(5, 80)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    one = sx.NuSVC(nu=0.4, gamma=0.3, tol=1e-8).fit(X, y, sample_weight=weight)
    two = sx.NuSVC(nu=0.4, gamma=0.3, tol=1e-8).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-6)


def test_many_rows_go_by_working_sets() -> None:
    X, y = data(6, 2600)
    ours = sx.NuSVC(nu=0.4, tol=1e-4).fit(X, y)
    theirs = sklearn.svm.NuSVC(nu=0.4, tol=1e-5).fit(X, y)
    assert ours.fit_.status is sx.Status.CONVERGED
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-3)


def test_what_is_refused() -> None:
    X, y = data(7)
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        sx.NuSVC(nu=0.9).fit(X, np.arange(len(y)) < 20)
    with pytest.raises(ValueError, match="nu is"):
        sx.NuSVC(nu=1.5).fit(X, y)
    with pytest.raises(ValueError, match="no margin"):
        sx.NuSVC(nu=0.05, kernel="linear").fit(X[:, :1], np.random.default_rng(0).integers(0, 2, len(y)))
    limited = sx.NuSVC(nu=0.3, max_iter=1).fit  # as in LIBSVM, what there is after a step
    with pytest.warns(Warning):
        assert limited(X, y).fit_.status is sx.Status.MAX_ITER


def test_all_rows_at_their_bounds() -> None:
    X, y = data(8)
    y = (np.arange(len(y)) % 2).astype(int)
    model = sx.NuSVC(nu=1.0).fit(X + 2.0 * y[:, None], y)
    assert model.fit_.certificate.gap < 1e-6 and model.score(X + 2.0 * y[:, None], y) > 0.8


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rank", [3, 40])
def test_interior_points_are_at_the_optimum(seed: int, rank: int) -> None:
    """Singular and regular K, bounds that differ, rows without weight: KKT up to rounding, and the sums kept."""
    from separatrix.models.svm.nu_interior import interior_point

    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((40, rank)) + np.repeat([1.0, -1.0], 20)[:, None]
    K, weights = rows @ rows.T, rng.uniform(0.5, 2.0, 40)
    weights[[3, 30]] = 0.0
    low, high = np.repeat([0.0, -1.0], 20) * weights, np.repeat([1.0, 0.0], 20) * weights
    begin = 0.3 * (low + high)
    found, _ = interior_point(K, 20, begin.copy(), low, high)
    v = -(K @ found)
    assert (low <= found).all() and (found <= high).all()
    for side in (slice(0, 20), slice(20, 40)):
        np.testing.assert_allclose(found[side].sum(), begin[side].sum(), rtol=1e-12)
        rising, falling = v[side][found[side] < high[side]], v[side][found[side] > low[side]]
        assert rising.max() - falling.min() <= 1e-6 * np.abs(K @ begin).max()


def test_a_machine_without_a_margin_is_told_soon() -> None:
    """Labels at random: the hulls overlap, so that ρ goes to 0 and pairs of rows would go on for a million steps."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((333, 2)), rng.integers(0, 2, 333)
    seen: list[int] = []
    from separatrix.models.svm import nu_machine

    def counted(search: nu_machine._NuSearch, *given: Any) -> Any:
        seen.append(search.steps)
        return published(search, *given)

    published = nu_machine._NuSearch.published
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nu_machine._NuSearch, "published", counted)
        with pytest.raises(ValueError, match="no margin between the classes"):
            sx.NuSVC(nu=0.5).fit(X, y)
    assert seen[0] < 100_000


@pytest.mark.parametrize("seed", range(3))
def test_a_machine_is_refused_just_where_the_reduced_hulls_meet(seed: int) -> None:
    """ρ = 0 ⇔ multipliers with the sums of ν have Σ ỹαx = 0: then w = 0, and 1/ρ, by which LIBSVM multiplies, is of rounding.

    Whether there are such multipliers is asked of a linear programme, which knows nothing of kernels.
    """
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((60, 2)), rng.integers(0, 2, 60)
    X[:, 0] += 0.8 * y
    signs, found = 2.0 * y - 1.0, set()
    for nu in (0.1, 0.3, 0.5, 0.7, 0.85):
        sums = np.array([*np.zeros(2), 0.5 * nu * 60, 0.5 * nu * 60])
        meet = linprog(np.zeros(60), A_eq=[*(signs * X.T), y == 1, y == 0], b_eq=sums, bounds=(0, 1)).status == 0
        found.add(meet)
        model = sx.NuSVC(nu=nu, kernel="linear")
        if meet:
            with pytest.raises(ValueError, match="no margin"):
                model.fit(X, y)
        else:
            assert model.fit(X, y).fit_.status is sx.Status.CONVERGED and model.machines_[0].bound.max() < 1e6
    assert found == {True, False}
