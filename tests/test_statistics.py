"""Class moments and Gram statistics are monoids: any split, merged in any order, is the whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix import ClassMoments, Gram, as_source
from separatrix.data import dense
from separatrix.statistics.metric import DenseMetric, ThinMetric
from separatrix.statistics.scatter import Scatter, combine

FORMS = ["pooled", "per_class", "diagonal"]


def make(seed: int, n: int, d: int, k: int, sparse: bool = False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d) + 10.0 ** rng.integers(-2, 3, d)
    if sparse:
        X[rng.random((n, d)) < 0.7] = 0.0
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    return X, y, rng.integers(0, 4, n).astype(float)


def moments(X, y, w, form, k):
    return ClassMoments.of_source(as_source(X, y, w).labelled(np.arange(k)), form)


def parts_of(m: ClassMoments) -> dict[str, np.ndarray]:
    parts = {"counts": m.counts, "means": m.means}
    if m.form == "pooled":
        parts["scatter"] = m.pooled().matrix()
    elif m.form == "per_class":
        parts["scatter"] = np.stack([m.of_class(k).matrix() for k in range(m.n_classes)])
    else:
        parts["variances"] = m.variances()
    return parts


def assert_same(a: ClassMoments, b: ClassMoments, rtol: float = 1e-12) -> None:
    """The same to `rtol` in units of the columns: a mean or an off-diagonal may vanish by chance."""
    whole, spread = parts_of(b), np.sqrt(np.einsum("kj->j", np.square(b.means)) + squares_of(b) / b.total)
    for name, one in parts_of(a).items():
        two = whole[name]
        if name == "scatter":
            size = np.sqrt(np.einsum("...ii->...i", two))
            size = size[..., :, None] * size[..., None, :]
        else:
            size = np.abs(two) + (spread if name == "means" else 0.0)
        np.testing.assert_array_less(np.abs(one - two) / (size + 1e-300), rtol, err_msg=name)


def squares_of(m: ClassMoments) -> np.ndarray:
    return m.counts @ m.variances() if m.form == "diagonal" else m.pooled().diagonal()


def by_definition(X, y, w, k):
    counts, means, scatters = np.zeros(k), np.zeros((k, X.shape[1])), np.zeros((k, X.shape[1], X.shape[1]))
    for c in range(k):
        rows, weights = X[y == c].astype(np.longdouble), w[y == c].astype(np.longdouble)
        counts[c] = weights.sum()
        if counts[c] > 0:
            mean = weights @ rows / weights.sum()
            means[c] = mean
            scatters[c] = (rows - mean).T @ (weights[:, None] * (rows - mean))
    return counts, means, scatters


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(3, 60),
    d=st.integers(1, 12),
    k=st.integers(1, 3),
    sparse=st.booleans(),
    form=st.sampled_from(FORMS),
)
def test_moments_are_what_their_definition_says(seed, n, d, k, sparse, form):
    X, y, w = make(seed, n, d, k, sparse)
    w[0] = 1.0
    counts, means, scatters = by_definition(X, y, w, k)
    m = moments(sp.csr_array(X) if sparse else X, y, w, form, k)
    expected = ClassMoments(
        form,
        counts,
        means,
        np.zeros_like(means),
        {
            "pooled": [Scatter(matrix=scatters.sum(axis=0))],
            "per_class": [Scatter(matrix=s) for s in scatters],
            "diagonal": [],
        }[form],
        np.einsum("kii->ki", scatters).copy() if form == "diagonal" else None,
    )
    assert_same(m, expected, 1e-11)


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "int": lambda X: np.clip(X, -1e6, 1e6).astype(np.int64),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": lambda X: np.lib.stride_tricks.as_strided(X, writeable=False),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_compiled_sweeps_of_large_blocks_are_the_definition(monkeypatch, layout, form, k, weighted):
    X, y, w = make(11, 3000, 7, k)
    w = w if weighted else np.ones(len(y))
    X = LAYOUTS[layout](X)
    monkeypatch.setattr(dense, "_MANY_ENTRIES", len(y))
    swept = moments(X, y, w if weighted else None, form, k)
    monkeypatch.setattr(dense, "_MANY_ENTRIES", np.inf)
    assert_same(swept, moments(X, y, w if weighted else None, form, k), 1e-11)
    counts, means, scatters = by_definition(X, y, w, k)
    np.testing.assert_allclose(swept.counts, counts, rtol=1e-13)
    np.testing.assert_allclose(swept.means, means, rtol=1e-11, atol=1e-12 * np.abs(X).max())
    if form == "diagonal":
        expected = np.einsum("kii->ki", scatters) / counts[:, None]
        np.testing.assert_allclose(swept.variances(), expected, rtol=1e-11, atol=1e-300)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    cuts=st.lists(st.integers(0, 80), max_size=6),
    form=st.sampled_from(FORMS),
    order=st.randoms(use_true_random=False),
    d=st.sampled_from([1, 3, 100]),
)
def test_any_split_in_any_order_is_the_whole(seed, cuts, form, order, d):
    X, y, w = make(seed, 80, d, 3)
    edges = sorted({0, 80, *cuts})
    pieces = [slice(a, b) for a, b in pairwise(edges) if w[a:b].any()]
    order.shuffle(pieces)
    total = ClassMoments.empty(3, d, form)
    for at in pieces:
        total.merge(moments(X[at], y[at], w[at], form, 3))
    assert_same(total, moments(X, y, w, form, 3))


@pytest.mark.parametrize("form", FORMS)
def test_update_with_blocks_is_the_pass(form):
    X, y, w = make(1, 300, 4, 3)
    source = as_source(X, y, w).labelled()
    total = ClassMoments.empty(3, 4, form)
    for block in source.blocks():
        total.merge(ClassMoments.of_block(block, 3, form))
    assert_same(total, ClassMoments.of_source(source, form))


@pytest.mark.parametrize("form", FORMS)
def test_weights_are_repetitions(form):
    X, y, w = make(2, 90, 5, 3)
    repeated = np.repeat(np.arange(90), w.astype(int))
    assert_same(moments(X, y, w, form, 3), moments(X[repeated], y[repeated], None, form, 3))


def test_merging_leaves_the_other_as_it_was():
    X, y, w = make(3, 60, 4, 3)
    a, b = moments(X[:30], y[:30], w[:30], "per_class", 3), moments(X[30:], y[30:], w[30:], "per_class", 3)
    before = parts_of(b)
    a.copy().merge(b)
    for (name, one), two in zip(before.items(), parts_of(b).values(), strict=True):
        np.testing.assert_array_equal(one, two, err_msg=name)


def test_reindexing_to_more_classes_moves_everything():
    X, y, w = make(4, 60, 4, 2)
    for form in FORMS:
        m = moments(X, y, w, form, 2).regroup([0, 2], 3)
        assert_same(m, moments(X, np.where(y == 1, 2, 0), w, form, 3))


def test_rows_far_from_the_origin_keep_their_digits():
    rng = np.random.default_rng(0)
    small = rng.standard_normal((50_000, 3))
    X = small + 1e8
    exact = X - 1e8  # the rounding of X is part of the data; the shift back is exact
    y = rng.integers(0, 2, len(X))
    far, near = moments(X, y, None, "pooled", 2), moments(exact, y, None, "pooled", 2)
    np.testing.assert_allclose(far.pooled().matrix(), near.pooled().matrix(), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(far.offsets(), near.offsets(), rtol=1e-10)


def test_between_and_within_add_to_the_total():
    X, y, w = make(5, 100, 4, 3)
    m = moments(X, y, w, "pooled", 3)
    centred = X - (w @ X) / w.sum()
    np.testing.assert_allclose(m.total_scatter().matrix(), centred.T @ (w[:, None] * centred), rtol=1e-10)


def test_divisors_of_both_kinds():
    X, y, _ = make(6, 100, 3, 3)
    m = moments(X, y, None, "per_class", 3)
    np.testing.assert_allclose(m.variances("unbiased")[1], X[y == 1].var(axis=0, ddof=1), rtol=1e-10)
    np.testing.assert_allclose(m.variances("mle")[1], X[y == 1].var(axis=0), rtol=1e-10)
    assert m.pooled_divisor("mle") == 100
    assert m.pooled_divisor("unbiased") == 97


@pytest.mark.parametrize("d", [3, 50])
def test_gram_merges_and_matches_numpy(d):
    rng = np.random.default_rng(7)
    X, Y, w = rng.standard_normal((40, d)) + 3.0, rng.standard_normal((40, 2)), rng.integers(0, 3, 40).astype(float)
    parts = [Gram.of_source(as_source(X[at], Y[at], w[at]).valued()) for at in (slice(0, 15), slice(15, 40))]
    equations = parts[0].merge(parts[1]).normal_equations()
    Z, T = X - w @ X / w.sum(), Y - w @ Y / w.sum()
    np.testing.assert_allclose(equations.scatter.matrix(), Z.T @ (w[:, None] * Z), atol=1e-10)
    np.testing.assert_allclose(equations.cross, Z.T @ (w[:, None] * T), atol=1e-10)
    np.testing.assert_allclose(equations.target_squares, (w[:, None] * T * T).sum(axis=0), rtol=1e-10)
    raw = equations.without_intercept()
    np.testing.assert_allclose(raw.scatter.matrix(), X.T @ (w[:, None] * X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(raw.cross, X.T @ (w[:, None] * Y), rtol=1e-9, atol=1e-9)


def test_a_thin_scatter_stays_thin_until_it_has_enough_rows():
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((12, 10))
    scatter = Scatter.empty(10)
    for i, row in enumerate(rows):
        scatter.add_rows(row[None])
        assert scatter.thin == (i + 1 < 10)
    np.testing.assert_allclose(scatter.matrix(), rows.T @ rows, rtol=1e-12, atol=1e-12)
    half = combine([(0.25, Scatter(rows=rows[:4])), (0.0, scatter)], 10)
    assert half.thin
    np.testing.assert_allclose(half.matrix(), 0.25 * rows[:4].T @ rows[:4], atol=1e-12)


@pytest.mark.parametrize("floor", [0.3, 1e-3])
def test_thin_and_dense_metrics_agree(floor):
    rng = np.random.default_rng(9)
    F, Z = rng.standard_normal((5, 20)), rng.standard_normal((7, 20))
    delta = floor * rng.uniform(0.5, 2.0, 20)
    thin, dense = ThinMetric(F, delta), DenseMetric(F.T @ F + np.diag(delta))
    sigma = F.T @ F + np.diag(delta)
    np.testing.assert_allclose(thin.squared_lengths(Z), np.einsum("ij,ij->i", Z @ np.linalg.inv(sigma), Z), rtol=1e-9)
    np.testing.assert_allclose(thin.squared_lengths(Z), dense.squared_lengths(Z), rtol=1e-9)
    np.testing.assert_allclose(thin.solve(Z), dense.solve(Z), rtol=1e-8, atol=1e-9 / floor)
    np.testing.assert_allclose(thin.log_det, dense.log_det, rtol=1e-10)
    np.testing.assert_allclose(dense.log_det, np.linalg.slogdet(sigma)[1], rtol=1e-10)


def test_a_singular_metric_says_its_rank_and_ignores_the_rest():
    rng = np.random.default_rng(10)
    basis = rng.standard_normal((3, 6))
    metric = DenseMetric(basis.T @ basis)
    assert metric.singular
    assert metric.rank == 3
    inside = rng.standard_normal((4, 3)) @ basis
    expected = np.einsum("ij,ij->i", inside @ np.linalg.pinv(basis.T @ basis), inside)
    np.testing.assert_allclose(
        DenseMetric(basis.T @ basis, standardise=False).squared_lengths(inside), expected, rtol=1e-8
    )
    np.testing.assert_allclose(ThinMetric(basis, None, standardise=False).squared_lengths(inside), expected, rtol=1e-8)
