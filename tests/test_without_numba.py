"""Small first fits do without numba: what NumPy does in its place is the same."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from separatrix import SVC, Perceptron
from separatrix.dual import small_machines
from separatrix.dual.plain import plain_machines
from separatrix.kernels import compensated
from separatrix.kernels.coordinate import descend
from separatrix.kernels.support_vectors.nu import side_smo
from separatrix.models.svm.nu_pairs import side_steps
from separatrix.objectives import exact_sums
from separatrix.solvers import quadratic
from separatrix.solvers.quadratic import descend_in_python, minimise_quadratic

_L1 = "LogisticRegression(penalty='l1', C=1.0).fit(X[:100], y[:100])"
_RIDGE = "Ridge(alpha=1e-9, fit_intercept=False).fit(1 / (np.arange(1, 9) + np.arange(8)[:, None]), np.ones(8))"


ROW_BY_ROW = ("Perceptron", "SGDClassifier", "PassiveAggressiveClassifier")  # whose updates are compiled, every one


def test_small_first_fits_of_all_swapped_classes_leave_numba_alone() -> None:
    code = (
        "import sys, warnings; from importlib import import_module; from sklearn.datasets import load_iris\n"
        "import separatrix; from separatrix.drop_in.swaps import SWAPS\n"
        "separatrix.accelerate(); warnings.simplefilter('ignore'); X, y = load_iris(return_X_y=True)\n"
        f"swaps = [swap for name, swap in SWAPS.items() if name not in {ROW_BY_ROW}]\n"
        "models = [getattr(import_module(swap.module), swap.name)().fit(X, y) for swap in swaps]\n"
        "handed_back = [type(model).__name__ for model in models if model.separatrix_model_ is None]\n"
        "sys.exit(f'handed back: {handed_back}, numba: {\"numba\" in sys.modules}')"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.stderr.strip() == "handed back: [], numba: False"


@pytest.mark.parametrize("fit", [_L1, _RIDGE], ids=["l1", "ridge of dependent columns"])
def test_a_first_fit_leaves_numba_alone(fit: str) -> None:
    code = (
        "import sys; import numpy as np; from sklearn.datasets import load_iris\n"
        "from separatrix import LogisticRegression, Ridge\n"
        "X, y = load_iris(return_X_y=True)\n"
        f"{fit}\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_public_name_brings_numba() -> None:
    names = "[getattr(separatrix, name) for name in separatrix.__all__]"
    code = f"import sys, separatrix; {names}; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 2), st.booleans(), st.integers(0, 999))
def test_exact_sums_are_those_of_the_kernel(n: int, d: int, m: int, weighted: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-6, 7, (n, d))
    w = rng.standard_normal((m, d))
    b = rng.standard_normal(m)
    y = X @ w.T + b + 1e-9 * rng.standard_normal((n, m))  # residuals that cancel
    s = rng.random(n) if weighted else np.empty(0)
    found = [(np.zeros((m, d + 1, 2)), np.zeros((m, 2))) for _ in range(2)]
    for (gradient, squares), where in zip(found, (compensated, exact_sums), strict=True):
        for _ in range(2):
            where.add_gradient(X, y, s, w, b, gradient, squares)
    (g, q), (exact_g, exact_q) = found
    size = 1e-24 * (1.0 + np.abs(X).max() ** 2 * np.abs(w).max() * n)
    assert_allclose(g[..., 0], exact_g[..., 0], rtol=1e-13, atol=size)
    assert_allclose(q[..., 0], exact_q[..., 0], rtol=1e-13, atol=size)
    centre = X.mean(axis=0)
    assert_allclose(
        compensated.shifted(g, centre), exact_sums.shifted(exact_g, centre), rtol=1e-12, atol=1e-12 * np.abs(g).max()
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(0, 999), st.booleans())
def test_sweeps_in_python_are_those_of_the_kernel(p: int, seed: int, bounded: bool) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((p + 2, p))
    H, slope, theta = A.T @ A, rng.standard_normal(p), rng.standard_normal(p)
    theta[rng.random(p) < 0.4] = 0.0
    l1, ends = rng.random(p), np.full(p, 0.5 if bounded else np.inf)
    theta = np.clip(theta, -ends, ends)
    found = []
    for sweep in (descend, descend_in_python):
        g, t = slope.copy(), theta.copy()
        done = sweep(H, g, t, l1, -ends, ends, 1e-12, 8)
        found.append((done, g, t))
    assert found[0][0] == found[1][0]
    assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-12)
    assert_allclose(found[0][2], found[1][2], rtol=1e-9, atol=1e-12)
    g, t = slope.copy(), theta.copy()
    assert minimise_quadratic(H, g, t, l1, -ends, ends, 1e-12)


@pytest.mark.parametrize("p", [1, 5, 12, 40])
def test_numbers_of_lists_are_swept_to_the_bits_of_arrays(p: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(p)
    A, l1, high = rng.standard_normal((p + 3, p)), rng.random(p), np.where(rng.random(p) < 0.3, 0.5, np.inf)
    found = []
    for listed in (0, 100):
        monkeypatch.setattr(quadratic, "_LISTED", listed)
        slope, theta = 3.0 * A[0], np.zeros(p)
        done = descend_in_python(A.T @ A, slope, theta, l1, -high, high, 1e-12, 8)
        found.append((done, slope.tobytes(), theta.tobytes()))
    assert found[0] == found[1]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 999))
def test_a_step_on_which_nothing_is_reached_ends_at_the_minimiser_for_the_present_signs(p: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, l1, ends = rng.standard_normal((p + 3, p)), rng.random(p), np.full(p, np.inf)
    H, theta = A.T @ A, np.sign(rng.standard_normal(p)) * (1.0 + rng.random(p))
    best = theta * (1.0 + 0.5 * rng.random(p))
    slope = H @ (theta - best) - l1 * np.sign(best)
    before = theta.copy()
    lowered = quadratic._finish(H, slope, theta, l1, -ends, ends)
    assert_allclose(theta, best, rtol=1e-7)
    assert_allclose(slope, -l1 * np.sign(best), rtol=1e-7, atol=1e-9 * np.abs(H).max())
    assert_allclose(lowered, 0.5 * (before - best) @ H @ (before - best), rtol=1e-6, atol=1e-10 * np.abs(H).max())


@pytest.mark.parametrize("classes", [3, 5, 9])
def test_perceptrons_of_sparse_rows_side_by_side_are_those_alone(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.sparse import random_array

    rng = np.random.default_rng(classes)
    X = random_array((300, 80), density=0.1, rng=rng, format="csr")
    y, s = rng.integers(0, classes, 300), rng.integers(0, 3, 300)
    found = []
    for least in (1, 1000):
        monkeypatch.setattr("separatrix.online.perceptron._SIDE_BY_SIDE", least)
        model = Perceptron(max_iter=20, tol=1e-3, random_state=0).fit(X, y, sample_weight=s)
        found.append((model.coef_, model.intercept_, model.n_mistakes_, model.n_iter_))
    for one, other in zip(*found, strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bound", [0.05, 10.0, 1e4])
def test_support_vector_machines_side_by_side_are_those_of_each_alone(
    bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 5, 230)
    y = np.append(y, [5, 5])  # machines of different sizes
    X = rng.standard_normal((len(y), 6)) + 0.4 * y[:, None]
    monkeypatch.setattr(small_machines, "compiled_pays_by_now", lambda seconds: False)
    asked = []
    pairs_of_all = plain_machines._pairs_of_all
    monkeypatch.setattr(
        plain_machines, "_pairs_of_all", lambda *given: asked.append(len(given[0])) or pairs_of_all(*given)
    )
    monkeypatch.setattr(plain_machines, "_SEVERAL", 15)
    together = SVC(C=bound).fit(X, y)
    assert asked == [15]
    monkeypatch.setattr(plain_machines, "_SEVERAL", 99)
    alone = SVC(C=bound).fit(X, y)
    assert asked == [15]
    np.testing.assert_array_equal(together.support_, alone.support_)
    assert_allclose(together.dual_coef_, alone.dual_coef_, rtol=1e-10, atol=1e-12 * bound)
    assert together.fit_.certificate.kind == "proven" and together.fit_.certificate.gap <= 1e-3 * bound * len(y)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(2, 12), st.integers(1, 40), st.booleans(), st.integers(0, 999))
def test_steps_of_pairs_within_sides_are_those_of_the_kernel(n: int, m: int, steps: int, flat: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + m, 1 if flat else n + m))
    K, low, high = X @ X.T, np.r_[np.zeros(n), -np.ones(m)], np.r_[np.ones(n), np.zeros(m)]
    share, found = 0.3 * min(n, m), []
    for solve in (side_smo, side_steps):
        beta = np.r_[np.full(n, share / n), np.full(m, -share / m)]
        v = -(K @ beta)
        taken, left = solve(K, n, v, beta, low, high, 1e-9, steps)
        found.append((beta, v, left, taken))
        assert (beta >= low).all() and (beta <= high).all() and taken <= steps
        assert_allclose([beta[:n].sum(), beta[n:].sum()], [share, -share], atol=1e-12)
        assert_allclose(v, -(K @ beta), atol=1e-9 * (1.0 + np.abs(K).max()))
    values = [0.5 * beta @ K @ beta for beta, *_ in found]
    if found[0][3] < steps and found[1][3] < steps:
        assert_allclose(values[0], values[1], atol=1e-7 * (1.0 + abs(values[0])))
