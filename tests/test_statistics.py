"""Statistics are monoids by class: any split is the whole, and classes can be taken out and put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix import as_source
from separatrix.data import dense
from separatrix.statistics import ClassMoments, Gram
from separatrix.statistics.columns import ColumnMoments, MixedCounts, ValueCounts
from separatrix.statistics.counts import CategoryCounts, ClassCounts
from separatrix.statistics.metric import DenseMetric, ThinMetric, metric_of, metrics_of
from separatrix.statistics.scatter import Scatter, combine
from separatrix.statistics.statistic import Mergeable, Statistic
from separatrix.statistics.triangular import Triangular

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


def contents(statistic) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What a statistic holds, each array with the unit its rounding is measured in: means and products may vanish by chance."""
    if isinstance(statistic, MixedCounts):
        parts = {
            f"{names} {key}": pair for names, part in statistic.parts.items() for key, pair in contents(part).items()
        }
        return {"counts": (statistic.counts, statistic.counts), **parts}
    if isinstance(statistic, Scatter):
        return {"matrix": (statistic.matrix(), outer_unit(statistic.matrix()))}
    if isinstance(statistic, Gram | Triangular):
        equations = statistic.normal_equations()
        size = np.sqrt(np.append(equations.scatter.diagonal(), equations.target_squares))
        mean = np.append(equations.x_mean, equations.y_mean)
        d = len(equations.x_mean)
        return {
            "total": (np.array([statistic.total]), np.array([statistic.total])),
            "mean": (mean, np.abs(mean) + size),
            "scatter": (equations.scatter.matrix(), np.outer(size[:d], size[:d])),
            "cross": (equations.cross, np.outer(size[:d], size[d:])),
        }
    held = {"counts": (statistic.counts, statistic.counts)}
    if isinstance(statistic, ClassMoments):
        spread = np.sqrt(np.square(statistic.means).sum(axis=0) + squares_of(statistic) / max(statistic.total, 1.0))
        held["means"] = statistic.means, np.abs(statistic.means) + spread
        if statistic.form == "diagonal":
            held["variances"] = statistic.variances(), statistic.variances()
        else:
            kept = [statistic.of_class(k) for k in range(statistic.n_classes)] if statistic.form == "per_class" else []
            matrices = np.stack([scatter.matrix() for scatter in kept or [statistic.pooled()]])
            held["scatter"] = matrices, outer_unit(matrices)
    elif isinstance(statistic, ColumnMoments):
        size = np.where(statistic.counts > 0, statistic.counts, 1.0)
        held["mean"] = statistic.mean, np.abs(statistic.mean) + np.sqrt(statistic.square / size)
        held["square"] = statistic.square, statistic.square + size * np.square(statistic.mean)
    elif isinstance(statistic, ClassCounts):
        held["sums"] = statistic.sums, statistic.sums
    elif isinstance(statistic, CategoryCounts):
        held.update({f"table {j}": (table, table) for j, table in enumerate(statistic.tables)})
    else:
        held.update({f"value {value}": (row, row) for value, row in statistic.by_value.items()})
    return held


def outer_unit(matrices: np.ndarray) -> np.ndarray:
    size = np.sqrt(np.einsum("...ii->...i", matrices))
    return size[..., :, None] * size[..., None, :]


def assert_same(a, b, rtol: float = 1e-11) -> None:
    """The same to `rtol` in units of the second."""
    one, two = contents(a), contents(b)
    assert set(one) == set(two)
    for name, (values, unit) in two.items():
        assert one[name][0].shape == values.shape, name
        np.testing.assert_array_less(np.abs(one[name][0] - values) / (np.abs(unit) + 1e-300), rtol, err_msg=name)


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


# -- the laws of statistics, crossed with all of them ------------------------------------------------------------------

K, D = 4, 3


@dataclass(frozen=True)
class Kind:
    """A statistic, made of rows X with labels y and weights w."""

    of: Callable[..., Any]
    empty: Callable[[], Any] | None = None
    counts: bool = False
    sparse: bool = True
    d: int = D
    classes: Literal["none", "together", "apart"] = "apart"


def labelled(X, y, w):
    return as_source(X, y, w).labelled(np.arange(K))


def valued(X, y, w):
    dense_rows = X.toarray() if sp.issparse(X) else X
    return as_source(X, np.column_stack([y, dense_rows @ np.arange(1.0, 1.0 + dense_rows.shape[1])]), w).valued()


def mixed(X, y, w):
    w = np.ones(len(y)) if w is None else w
    parts = {
        ("a",): ColumnMoments.of_columns(X[:, 0] / 7.0, y, w, K),
        ("b",): ValueCounts.of_columns(X[:, 1].astype(str), y, w, K),
        ("c", "d"): ClassCounts.of_columns(X[:, 1:], y, w, K),
    }
    return MixedCounts(np.bincount(y, w, minlength=K), parts)


def column(kind, j):
    return lambda X, y, w: kind.of_columns(X[:, j], y, np.ones(len(y)) if w is None else w, K)


def triangle(X, y, w):
    rows = np.asarray(X.mean(axis=0)).ravel()
    return Triangular.of_source(valued(X, y, w), np.append(rows, [1.0, 2.0]))


STATISTICS = {
    **{
        f"ClassMoments, {form}, {d} columns": Kind(
            lambda X, y, w, form=form: ClassMoments.of_source(labelled(X, y, w), form),
            lambda form=form, d=d: ClassMoments.empty(K, d, form),
            classes="together" if form == "pooled" else "apart",
            d=d,
        )
        for form in FORMS
        for d in (1, D, 70)  # more columns than rows: the scatter is held as rows
    },
    "ClassCounts": Kind(
        lambda X, y, w: ClassCounts.of_source(labelled(X, y, w)), lambda: ClassCounts.empty(K, D), counts=True
    ),
    "CategoryCounts": Kind(
        lambda X, y, w: CategoryCounts.of_source(labelled(X, y, w)), lambda: CategoryCounts.empty(K, D), counts=True
    ),
    "ColumnMoments": Kind(column(ColumnMoments, 0), lambda: ColumnMoments.empty(K), sparse=False),
    "ValueCounts": Kind(column(ValueCounts, 1), lambda: ValueCounts.empty(K), counts=True, sparse=False),
    "MixedCounts": Kind(mixed, counts=True, sparse=False),
    "Gram": Kind(lambda X, y, w: Gram.of_source(valued(X, y, w)), lambda: Gram.empty(D, 2), classes="none"),
    "Triangular": Kind(triangle, lambda: Triangular.empty(D, 2), classes="none"),
    "Scatter": Kind(
        lambda X, y, w: Scatter(rows=X if w is None else X * np.sqrt(w)[:, None]),
        lambda: Scatter.empty(D),
        sparse=False,
        classes="none",
    ),
}


def rows_for(kind: Kind, seed: int, n: int = 60):
    X, y, w = make(seed, n, kind.d, K, sparse=True)
    if kind.counts:
        X = np.floor(np.abs(X) % 5.0)
    w[:K] = 1.0  # every class has a row
    return X, y, w


def any_split_is_the_whole(kind, seed, rng):
    X, y, w = rows_for(kind, seed)
    order = rng.permutation(len(y))
    edges = np.unique([0, len(y), *rng.integers(0, len(y), 4)])
    pieces = [at for at in (order[a:b] for a, b in pairwise(edges)) if w[at].any()]
    total = kind.of(X[pieces[0]], y[pieces[0]], w[pieces[0]])
    for at in pieces[1:]:
        part = kind.of(X[at], y[at], w[at])
        before = part.copy()
        total.merge(part)
        assert_same(part, before)  # the other is left as it was
    assert_same(total, kind.of(X, y, w))


def nothing_is_the_unit(kind, seed, rng):
    X, y, w = rows_for(kind, seed)
    whole = kind.of(X, y, w)
    if kind.empty is not None:
        assert_same(kind.empty().merge(whole), whole)
        assert_same(whole.copy().merge(kind.empty()), whole)


def weights_are_repetitions(kind, seed, rng):
    X, y, w = rows_for(kind, seed)
    at = np.repeat(np.arange(len(y)), w.astype(int))
    assert_same(kind.of(X, y, w), kind.of(X[at], y[at], None))


def sparse_rows_are_the_dense_rows(kind, seed, rng):
    X, y, w = rows_for(kind, seed)
    if kind.sparse:
        assert_same(kind.of(sp.csr_array(X), y, w), kind.of(X, y, w))


def a_copy_is_another(kind, seed, rng):
    X, y, w = rows_for(kind, seed)
    whole = kind.of(X, y, w)
    whole.copy().merge(kind.of(X[:20], y[:20], w[:20]))
    assert_same(whole, kind.of(X, y, w))


def taking_is_choosing_rows(kind, seed, rng):
    X, y, w = rows_for(kind, seed)
    chosen = rng.permutation(K)[: K if kind.classes == "together" else rng.integers(1, K + 1)]
    at = np.isin(y, chosen)
    calls = np.zeros(K, dtype=np.intp)
    calls[chosen] = np.arange(len(chosen))
    kept = np.arange(len(chosen))
    assert_same(kind.of(X, y, w).take(chosen), kind.of(X[at], calls[y[at]], w[at]).take(kept))
    assert kind.of(X, y, w).take(chosen).n_classes == len(chosen)


def taking_all_changes_nothing(kind, seed, rng):
    whole = kind.of(*rows_for(kind, seed))
    assert_same(whole.take(np.arange(K)), whole)


def regrouping_is_renaming_classes(kind, seed, rng):
    X, y, w = rows_for(kind, seed)
    groups = rng.integers(0, K, K)  # some groups have several classes, some none
    assert_same(kind.of(X, y, w).regroup(groups, K), kind.of(X, groups[y], w))


def regrouping_into_single_classes_changes_nothing(kind, seed, rng):
    whole = kind.of(*rows_for(kind, seed))
    assert_same(whole.regroup(np.arange(K), K), whole)
    apart = whole.regroup([1, 2, 4, 5], 6)
    assert apart.n_classes == 6 and (apart.counts[[0, 3]] == 0).all()
    assert_same(apart.take([1, 2, 4, 5]), whole)


def a_group_is_its_classes(kind, seed, rng):
    whole = kind.of(*rows_for(kind, seed))
    groups = np.array([0, 1, 0, 1])
    if kind.classes == "together":
        with pytest.raises(ValueError, match="one scatter for all classes"):
            whole.take([0, 2])
        return
    for group in (0, 1):
        members = np.flatnonzero(groups == group)
        assert_same(whole.regroup(groups, 2).take([group]), whole.take(members).regroup([0, 0], 1))


LAWS = [
    any_split_is_the_whole,
    nothing_is_the_unit,
    weights_are_repetitions,
    sparse_rows_are_the_dense_rows,
    a_copy_is_another,
]
CLASS_LAWS = [
    taking_is_choosing_rows,
    taking_all_changes_nothing,
    regrouping_is_renaming_classes,
    regrouping_into_single_classes_changes_nothing,
    a_group_is_its_classes,
]


@pytest.mark.parametrize("law", [*LAWS, *CLASS_LAWS], ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_obeys_every_law(name, law):
    kind = STATISTICS[name]
    assert isinstance(kind.of(*rows_for(kind, 0)), Mergeable if kind.classes == "none" else Statistic)
    if kind.classes == "none" and law in CLASS_LAWS:
        return

    @settings(max_examples=10, deadline=None)
    @given(seed=st.integers(0, 10_000))
    def holds(seed):
        law(kind, seed, np.random.default_rng(seed))

    holds()


@pytest.mark.parametrize("d", [1, 3, 100])
def test_moments_by_class_read_as_pooled(d):
    X, y, w = make(12, 60, d, 3)
    by_class = moments(X, y, w, "per_class", 3)
    assert_same(by_class.in_form("pooled"), moments(X, y, w, "pooled", 3))
    assert by_class.in_form("per_class") is by_class
    with pytest.raises(ValueError, match="cannot be read in the form"):
        by_class.in_form("diagonal")


@pytest.mark.parametrize("form", FORMS)
def test_merged_blocks_are_the_pass(form):
    X, y, w = make(1, 300, 4, 3)
    source = as_source(X, y, w).labelled()
    total = ClassMoments.empty(3, 4, form)
    for block in source.blocks():
        total.merge(ClassMoments.of_block(block, 3, form))
    assert_same(total, ClassMoments.of_source(source, form))


# -- what they hold ----------------------------------------------------------------------------------------------------

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "int": lambda X: np.clip(X, -1e6, 1e6).astype(np.int64),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": lambda X: np.lib.stride_tricks.as_strided(X, writeable=False),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 5, 70])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_compiled_sweeps_of_large_blocks_are_the_definition(monkeypatch, layout, form, k, weighted):
    X, y, w = make(11, 3000, 7, k)
    w = w if weighted else np.ones(len(y))
    X = LAYOUTS[layout](X)
    monkeypatch.setattr(dense, "WORTH_COMPILING", len(y))
    swept = moments(X, y, w if weighted else None, form, k)
    monkeypatch.setattr(dense, "WORTH_COMPILING", np.inf)
    assert_same(swept, moments(X, y, w if weighted else None, form, k), 1e-11)
    counts, means, scatters = by_definition(X, y, w, k)
    np.testing.assert_allclose(swept.counts, counts, rtol=1e-13)
    np.testing.assert_allclose(swept.means, means, rtol=1e-11, atol=1e-12 * np.abs(X).max())
    if form == "diagonal":
        expected = np.einsum("kii->ki", scatters) / counts[:, None]
        np.testing.assert_allclose(swept.variances(), expected, rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 30])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_compiled_sums_by_class_are_the_definition(layout, k, weighted):
    X, y, w = make(12, 400, 7, k)
    X, w = LAYOUTS[layout](np.clip(X, -1e6, 1e6)), w if weighted else None
    member = np.equal.outer(np.arange(k), y) * (1.0 if w is None else w)
    for rows in (X, np.abs(X)):
        block = dense.DenseBlock(rows, y, w, compiled=True)
        np.testing.assert_allclose(block.class_sums(y, k), member @ rows.astype(float), rtol=1e-12, atol=1e-9)
        assert block.least() == min(0.0, rows.min())


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


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("special", ["none", "singular", "nearly", "zero", "scales", "floors", "thin"])
def test_metrics_made_together_are_those_made_alone(special, standardise):
    rng = np.random.default_rng(5)
    stack = [rng.normal(size=(30, 6)) for _ in range(5)]
    floors: list[np.ndarray | None] = [None] * 5
    if special == "singular":
        stack[2][:, 4] = stack[2][:, 1]
    elif special == "nearly":
        stack[2][:, 4] = stack[2][:, 1] + 1e-9 * stack[2][:, 4]
    elif special == "zero":
        stack[3][:, 0] = 0.0
    elif special == "scales":
        stack = [rows * 10.0 ** np.linspace(-120, 120, 6) for rows in stack]
    elif special == "floors":
        floors[1:3] = [np.full(6, 0.5), np.linspace(1.0, 2.0, 6)]
    scatters = [Scatter(matrix=rows.T @ rows / 30) for rows in stack]
    if special == "thin":
        scatters[4] = Scatter(rows=stack[4][:3])
    covariances = list(zip(scatters, floors, strict=True))
    together = metrics_of(covariances, tol=1e-4, standardise=standardise)
    probe = stack[0][:7] + stack[1][:7]
    for metric, (part, floor) in zip(together, covariances, strict=True):
        alone = metric_of(part, floor, tol=1e-4, standardise=standardise)
        assert (metric.rank, metric.singular, metric.complete) == (alone.rank, alone.singular, alone.complete)
        np.testing.assert_allclose(metric.log_det, alone.log_det, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(metric.condition, alone.condition, rtol=1e-10)
        np.testing.assert_allclose(metric.squared_lengths(probe), alone.squared_lengths(probe), rtol=1e-9)
        np.testing.assert_allclose(metric.solve(probe), alone.solve(probe), rtol=1e-8, atol=1e-9 * alone.condition)


def test_constant_columns_are_flat_in_every_class_however_often_they_are_merged():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(80, 4)), np.arange(80) % 4
    X[y == 2, 1], X[:, 3] = 0.1, 1e8 / 3  # constant in one class, and in all
    halves = [
        ClassMoments.of_source(as_source(X[at], y[at]).labelled(), "per_class") for at in (slice(40), slice(40, 80))
    ]
    for half in halves:
        assert (half.of_class(2).diagonal()[[1, 3]] == 0).all()
    both = halves[0].merge(halves[1])
    diagonals = np.stack([both.of_class(k).diagonal() for k in range(4)])
    np.testing.assert_array_equal(diagonals == 0, [[False, k == 2, False, True] for k in range(4)])
    np.testing.assert_allclose(both.variances()[:, 0], [X[y == k, 0].var() for k in range(4)])
