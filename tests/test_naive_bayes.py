"""Naive Bayes: scikit-learn's numbers, examples worked by hand, holes, and what zero counts mean."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn.naive_bayes as reference
from scipy.stats import norm, poisson

import separatrix
from separatrix import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MixedNB, MultinomialNB, config
from separatrix.data import sparse as sparse_blocks

RNG = np.random.default_rng(0)
N = 240
Y = RNG.integers(0, 3, N)
COUNTS = RNG.poisson(1.0 + Y[:, None] * RNG.random(7))
REALS = RNG.standard_normal((N, 5)) * [1, 10, 0.1, 1, 1] + Y[:, None]
CATEGORIES = (RNG.integers(0, 3, (N, 4)) + (Y[:, None] == 2)) % 4
WHOLE = RNG.integers(0, 4, N).astype(float)

CASES = [
    ("MultinomialNB", COUNTS, {}),
    ("MultinomialNB", COUNTS, {"alpha": 0.1, "fit_prior": False}),
    ("MultinomialNB", COUNTS, {"alpha": [0.5, 1, 2, 3, 4, 5, 6], "class_prior": [0.2, 0.3, 0.5]}),
    ("ComplementNB", COUNTS, {}),
    ("ComplementNB", COUNTS, {"norm": True, "alpha": 0.3}),
    ("BernoulliNB", COUNTS, {}),
    ("BernoulliNB", COUNTS, {"binarize": 2.0, "alpha": 0.5}),
    ("CategoricalNB", CATEGORIES, {}),
    ("CategoricalNB", CATEGORIES, {"alpha": 0.2, "min_categories": 6}),
    ("GaussianNB", REALS, {}),
    ("GaussianNB", REALS, {"priors": [0.2, 0.3, 0.5], "var_smoothing": 1e-3}),
]


def test_fractions_of_categories_are_dropped_with_a_warning_that_names_the_column():
    table, y = pd.DataFrame({"a": [0.0, 1.0, 2.0, 1.0], "b": [1.0, 0.5, 1.9, 1.0]}), [0, 1, 0, 1]
    with pytest.warns(UserWarning, match="column 'b' holds a number that is not whole"):
        model = CategoricalNB().fit(table, y)
    cut = CategoricalNB().fit(table.astype(int), y)
    np.testing.assert_array_equal(model.predict_proba(table), cut.predict_proba(table.astype(int)))
    theirs = reference.CategoricalNB().fit(table, y)
    np.testing.assert_allclose(model.predict_proba(table), theirs.predict_proba(table), rtol=1e-12)


@pytest.mark.parametrize(("name", "X", "parameters"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learns_numbers(name, X, parameters, weighted):
    repeated = np.repeat(np.arange(N), WHOLE.astype(int)) if weighted else np.arange(N)
    ours = getattr(separatrix, name)(**parameters).fit(X, Y, sample_weight=WHOLE if weighted else None)
    theirs = getattr(reference, name)(**parameters).fit(X[repeated], Y[repeated])
    np.testing.assert_allclose(
        ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert (ours.predict(X) == theirs.predict(X)).all()
    for attribute in ("class_count_", "feature_count_", "theta_", "var_", "class_log_prior_", "n_categories_"):
        if hasattr(theirs, attribute):
            np.testing.assert_allclose(
                getattr(ours, attribute), getattr(theirs, attribute), rtol=1e-10, err_msg=attribute
            )


@pytest.mark.parametrize(("name", "X", "parameters"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_storage_parts_and_threads_do_not_matter(name, X, parameters, monkeypatch):
    make = lambda: getattr(separatrix, name)(**parameters)  # noqa: E731  # a local shorthand
    whole = make().fit(X, Y, sample_weight=WHOLE)
    base = whole.predict_joint_log_proba(X)
    frame = pl.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])})
    for other in (sp.csr_array(X), sp.csc_matrix(X), frame):
        model = make().fit(other, Y, sample_weight=WHOLE)
        np.testing.assert_allclose(model.predict_joint_log_proba(other), base, rtol=1e-10, atol=1e-10)
    parts = make()
    for at in np.array_split(RNG.permutation(N), 4):
        parts.partial_fit(X[at], Y[at], sample_weight=WHOLE[at])
    np.testing.assert_allclose(parts.predict_joint_log_proba(X), base, rtol=1e-10, atol=1e-10)
    halves = [make().fit(X[at], Y[at], sample_weight=WHOLE[at]) for at in (slice(0, 100), slice(100, N))]
    np.testing.assert_allclose(halves[0].merge(halves[1]).predict_joint_log_proba(X), base, rtol=1e-10, atol=1e-10)
    monkeypatch.setattr("separatrix.data.source._TARGET_BYTES", 1)
    monkeypatch.setattr("separatrix.data.arrays.rows_per_block", lambda d: 13)
    results = []
    for threads in (1, 2, 8):
        with config(threads=threads):
            results.append(make().fit(X, Y, sample_weight=WHOLE).predict_joint_log_proba(X))
    assert all((result == results[0]).all() for result in results)


def test_compiled_sums_of_sparse_rows(monkeypatch):
    X = sp.csr_array(COUNTS)
    plain = MultinomialNB().fit(X, Y, sample_weight=WHOLE)
    monkeypatch.setattr(sparse_blocks, "_CURVED_FROM", 0)
    compiled = MultinomialNB().fit(X, Y, sample_weight=WHOLE)
    np.testing.assert_allclose(compiled.feature_count_, plain.feature_count_, rtol=1e-13)
    integers = MultinomialNB().fit(sp.csr_array(COUNTS.astype(np.int32)), Y)
    np.testing.assert_array_equal(integers.feature_count_, MultinomialNB().fit(COUNTS, Y).feature_count_)


# -- worked by hand ---------------------------------------------------------------------------------------------------


def test_the_words_a_b_c():
    # Five documents over {a, b, c}; class 1 has a, b, c 3, 4 and 5 times in two of them.
    X = np.array([[1, 2, 2], [2, 2, 3], [4, 0, 1], [1, 1, 0], [2, 0, 0]])
    y = np.array([1, 1, 0, 0, 0])
    model = MultinomialNB(alpha=0).fit(X, y)
    np.testing.assert_allclose(np.exp(model.feature_log_prob_[1]), [3 / 12, 4 / 12, 5 / 12])
    np.testing.assert_allclose(np.exp(model.feature_log_prob_[0]), [7 / 9, 1 / 9, 1 / 9])
    np.testing.assert_allclose(np.exp(model.class_log_prior_), [3 / 5, 2 / 5])
    document = np.array([[1, 1, 1]])
    one, zero = 2 / 5 * 3 * 4 * 5 / 12**3, 3 / 5 * 7 * 1 * 1 / 9**3
    np.testing.assert_allclose(model.predict_proba(document)[0, 1], one / (one + zero))
    W, b = model.linear_form()
    np.testing.assert_allclose(document @ W[0] + b[0], np.log(one / zero))
    # p(x): the multinomial coefficient 3! of three different words is part of the density.
    np.testing.assert_allclose(model.log_density(document), np.log(6 * (one + zero)))


def test_income_charity_and_sleep():
    table = pd.DataFrame(
        {
            "income": ["low", "middle", "middle", "high", "high", "low"],
            "charitable": ["no", "yes", "yes", "no", "no", "yes"],
            "sleep": [7.0, 8.0, 9.0, 5.0, 6.0, 7.0],
        }
    )
    y = ["healthy"] * 3 + ["ill"] * 3
    model = MixedNB(alpha=0, var_smoothing=0).fit(table, y)
    assert model.families_ == {"income": "categorical", "charitable": "categorical", "sleep": "gaussian"}
    assert model.families_["sleep"].reason == "it holds real numbers"
    row = pd.DataFrame({"income": ["low"], "charitable": ["yes"], "sleep": [7.5]})
    healthy = 1 / 2 * 1 / 3 * 2 / 3 * norm(8, np.sqrt(2 / 3)).pdf(7.5)
    ill = 1 / 2 * 1 / 3 * 1 / 3 * norm(6, np.sqrt(2 / 3)).pdf(7.5)
    np.testing.assert_allclose(model.predict_proba(row)[0], [healthy / (healthy + ill), ill / (healthy + ill)])
    np.testing.assert_allclose(model.log_density(row), np.log(healthy + ill))
    # Without the income, it is left out of the product; with nothing known the priors are left.
    row.loc[0, "income"] = None
    healthy, ill = healthy * 3, ill * 3
    np.testing.assert_allclose(model.predict_proba(row)[0, 0], healthy / (healthy + ill))
    nothing = pd.DataFrame({"income": [None], "charitable": [None], "sleep": [np.nan]})
    np.testing.assert_allclose(model.predict_proba(nothing), [[0.5, 0.5]])


# -- mixed columns ----------------------------------------------------------------------------------------------------


def test_tables_of_one_family_are_the_single_family_models():
    mixed = MixedNB().fit(REALS, Y, sample_weight=WHOLE)
    single = GaussianNB().fit(REALS, Y, sample_weight=WHOLE)
    np.testing.assert_allclose(mixed.predict_joint_log_proba(REALS), single.predict_joint_log_proba(REALS), rtol=1e-10)
    mixed = MixedNB(["categorical"] * 4, alpha=0.7).fit(CATEGORIES, Y, sample_weight=WHOLE)
    single = CategoricalNB(alpha=0.7).fit(CATEGORIES, Y, sample_weight=WHOLE)
    np.testing.assert_allclose(
        mixed.predict_joint_log_proba(CATEGORIES), single.predict_joint_log_proba(CATEGORIES), rtol=1e-10
    )
    flags = COUNTS > 1
    mixed = MixedNB(alpha=0.7).fit(flags, Y, sample_weight=WHOLE)
    single = BernoulliNB(alpha=0.7).fit(flags, Y, sample_weight=WHOLE)
    np.testing.assert_allclose(mixed.predict_joint_log_proba(flags), single.predict_joint_log_proba(flags), rtol=1e-10)
    mixed = MixedNB(["multinomial"] * 7).fit(COUNTS, Y, sample_weight=WHOLE)
    single = MultinomialNB().fit(COUNTS, Y, sample_weight=WHOLE)
    np.testing.assert_allclose(
        mixed.predict_joint_log_proba(COUNTS), single.predict_joint_log_proba(COUNTS), rtol=1e-10
    )


def messy(kind: str):
    text = np.array(["red", "green", "blue"])[CATEGORIES[:, 0] % 3].astype(object)
    text[::7] = None
    sleep = REALS[:, 0].copy()
    sleep[::5] = np.nan
    flag = [None if i % 11 == 0 else bool(v) for i, v in enumerate(COUNTS[:, 0] > 1)]
    visits = [None if i % 9 == 0 else int(v) for i, v in enumerate(COUNTS[:, 1])]
    data = {"colour": text.tolist(), "sleep": sleep.tolist(), "flag": flag, "visits": visits}
    if kind == "pandas":
        return pd.DataFrame(data).astype({"flag": "boolean", "visits": "Int64", "colour": "category"})
    if kind == "polars":
        return pl.DataFrame(data | {"sleep": [None if np.isnan(v) else v for v in sleep]})
    return pa.table(data)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_messy_table_is_the_sum_over_its_observed_columns(kind):
    table = messy(kind)
    families = {"visits": "poisson"}
    model = MixedNB(families).fit(table, Y, sample_weight=WHOLE)
    assert model.families_ == {"colour": "categorical", "sleep": "gaussian", "flag": "bernoulli", "visits": "poisson"}
    odds = model.feature_log_odds(table)
    assert odds.shape == (N, 4, 3)
    np.testing.assert_allclose(
        odds.sum(axis=1) + model.class_log_prior_, model.predict_joint_log_proba(table), atol=1e-12
    )
    plain = messy("pandas")
    observed = plain.notna().to_numpy()
    assert (odds[~observed] == 0).all()
    for j, name in enumerate(plain.columns):  # each column alone, on the rows where it is observed
        at = np.flatnonzero(observed[:, j])
        alone = MixedNB({name: families[name]} if name in families else "auto")
        alone.fit(plain[[name]].iloc[at], Y[at], sample_weight=WHOLE[at])
        expected = alone.predict_joint_log_proba(plain[[name]].iloc[at]) - alone.class_log_prior_
        np.testing.assert_allclose(odds[at, j], expected, rtol=1e-7, atol=1e-7)
    parts = MixedNB(families)
    for at in (slice(0, 90), slice(90, N)):
        parts.partial_fit(plain.iloc[at], Y[at], sample_weight=WHOLE[at])
    np.testing.assert_allclose(parts.predict_joint_log_proba(plain), model.predict_joint_log_proba(table), atol=1e-9)
    halves = [
        MixedNB(families).fit(plain.iloc[at], Y[at], sample_weight=WHOLE[at]) for at in (slice(0, 90), slice(90, N))
    ]
    merged = halves[0].merge(halves[1])
    np.testing.assert_allclose(merged.predict_joint_log_proba(plain), model.predict_joint_log_proba(table), atol=1e-9)


def test_poisson_and_a_group_of_counts():
    model = MixedNB({0: "poisson", (1, 2): "multinomial", (3, 4, 5): "multinomial", 6: "gaussian"}, alpha=0)
    model.fit(COUNTS, Y)
    rates = [COUNTS[k == Y, 0].mean() for k in range(3)]
    odds = model.feature_log_odds(COUNTS)
    np.testing.assert_allclose(
        odds[:, 0], np.column_stack([poisson(r).logpmf(COUNTS[:, 0]) for r in rates]), rtol=1e-10
    )
    shares = np.stack([COUNTS[k == Y, 3:6].sum(axis=0) / COUNTS[k == Y, 3:6].sum() for k in range(3)])
    np.testing.assert_allclose(odds[:, 3:6].sum(axis=1), COUNTS[:, 3:6] @ np.log(shares).T, rtol=1e-10)
    # A missing member of a group: the others' shares among themselves.
    hole = COUNTS.astype(float)
    hole[:, 5] = np.nan
    part = shares[:, :2] / shares[:, :2].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        model.feature_log_odds(hole)[:, 3:6].sum(axis=1), COUNTS[:, 3:5] @ np.log(part).T, rtol=1e-10, atol=1e-12
    )


# -- zero counts, unseen values, new ones -----------------------------------------------------------------------------


def test_a_word_never_seen_carries_no_evidence_without_smoothing():
    X = np.array([[3, 0, 0, 1], [1, 2, 0, 0], [0, 1, 0, 2]])
    model = MultinomialNB(alpha=0).fit(X, [0, 0, 1])
    np.testing.assert_allclose(model.predict_proba([[0, 1, 5, 1]]), model.predict_proba([[0, 1, 0, 1]]))
    np.testing.assert_allclose(model.predict_proba([[1, 0, 0, 0]]), [[1.0, 0.0]])  # class 1 never has word 0
    both = MultinomialNB(alpha=0).fit([[1, 0], [0, 1]], [0, 1])
    np.testing.assert_allclose(both.predict_proba([[1, 1]]), [[0.5, 0.5]])  # impossible in both: the prior decides
    with pytest.raises(ValueError, match="alpha > 0"):
        both.linear_form()


@pytest.mark.parametrize("storage", [np.array, sp.csr_array])
def test_unseen_categories_get_the_smoothed_mass_or_no_evidence(storage):
    X, y = np.array([[0, 1], [1, 0], [2, 1], [1, 1]]), np.array([0, 0, 1, 1])
    smoothed = CategoricalNB(alpha=1.0).fit(storage(X), y)
    joint = smoothed.predict_joint_log_proba(storage(np.array([[9, 1]])))
    expected = np.log([0.5 * 1 / 5 * 2 / 4, 0.5 * 1 / 5 * 3 / 4])
    np.testing.assert_allclose(joint[0], expected)
    plain = CategoricalNB(alpha=0.0).fit(storage(X), y)
    np.testing.assert_allclose(plain.predict_joint_log_proba(storage(np.array([[9, 1]])))[0], np.log([0.25, 0.5]))


def test_new_categories_and_classes_in_a_later_part():
    X, y = CATEGORIES.copy(), Y.copy()
    first, second = y < 2, y == 2
    X[second, 0] += 5
    model = CategoricalNB().partial_fit(X[first], y[first]).partial_fit(X[second], y[second])
    whole = CategoricalNB().fit(X, y)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "X"),
    [(MultinomialNB(alpha=0.5), COUNTS), (BernoulliNB(alpha=0.5), COUNTS), (GaussianNB(shared_variance=True), REALS)],
    ids=["multinomial", "bernoulli", "gaussian"],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_forms_are_the_log_odds(model, X, n_classes):
    at = n_classes > Y
    model.fit(X[at], Y[at])
    W, b = model.linear_form()
    seen = (X > 0).astype(float) if isinstance(model, BernoulliNB) else X
    scores, joint = seen @ W.T + b, model.predict_joint_log_proba(X)
    odds = joint[:, 1:] - joint[:, :1]
    scores = scores if n_classes == 2 else scores[:, 1:] - scores[:, :1]
    np.testing.assert_allclose(scores, odds, rtol=1e-12, atol=1e-12 * np.abs(joint).max())


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (GaussianNB(), REALS),
        (BernoulliNB(), COUNTS > 1),
        (CategoricalNB(), CATEGORIES),
        (MultinomialNB(), COUNTS),
        (MixedNB({0: "poisson", 1: "categorical"}), COUNTS),
    ],
    ids=lambda v: type(v).__name__,
)
def test_samples_look_like_the_model(model, X):
    model.fit(X, Y)
    rows, labels = model.sample(20_000, random_state=0)
    assert rows.shape == (20_000, X.shape[1])
    again, _ = model.sample(20_000, random_state=0)
    assert (rows == again).all()
    shares = np.array([(labels == k).mean() for k in range(3)])
    np.testing.assert_allclose(shares, model.priors_, atol=0.02)
    refitted = type(model)(**model.get_params()).fit(rows.astype(float), labels)
    np.testing.assert_allclose(refitted.predict_proba(X), model.predict_proba(X), atol=0.15)
    assert np.isfinite(model.log_density(X)).all()


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "column", "value", "sentence"),
    [
        (MultinomialNB(), "b", -1.0, r"column 'b'.*-1.*never negative"),
        (ComplementNB(), "b", -2.0, r"column 'b'"),
        (CategoricalNB(), "a", -1, r"column 'a' holds a negative number"),
        (BernoulliNB(binarize=None), "a", 3.0, r"column 'a'.*zeros and ones"),
        (GaussianNB(), "b", np.nan, r"column 'b' has 1 such row"),
        (BernoulliNB(), "b", np.inf, r"column 'b'"),
        (MixedNB({"a": "poisson"}), "a", -1.0, r"column 'a'.*negative.*'poisson'"),
        (MixedNB({"a": "poisson"}), "a", 0.5, r"column 'a'.*not whole"),
        (MixedNB({"a": "bernoulli"}), "a", 2.0, r"column 'a'.*0 and 1"),
        (MixedNB(), "a", np.inf, r"column 'a' contains infinity in 1 row"),
        (MixedNB({"a": "gamma"}), "a", 1.0, r"column 'a'.*unknown family 'gamma'"),
        (MixedNB({"z": "gaussian"}), "a", 1.0, r"'z', which X does not have"),
        (MixedNB({("a", "b"): "gaussian"}), "a", 1.0, r"only 'multinomial'"),
        (MixedNB(["gaussian"]), "a", 1.0, r"1 entries, but X has 2 columns"),
        (MixedNB({"a": "gaussian", ("a", "b"): "multinomial"}), "a", 1.0, r"'a' twice"),
    ],
    ids=str,
)
def test_sentences_name_the_column(model, column, value, sentence):
    table = pd.DataFrame({"a": [0.0, 1.0, 0.0, 1.0], "b": [1.0, 0.0, 1.0, 1.0]})
    table.loc[2, column] = value
    with pytest.raises(ValueError, match=sentence):
        model.fit(table, [0, 0, 1, 1])


def test_text_for_numbers_and_columns_without_values():
    table = pd.DataFrame({"a": ["x", "y", "x", "y"], "b": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(ValueError, match=r"column 'a' holds text such as 'x'.*'gaussian'"):
        MixedNB({"a": "gaussian"}).fit(table, [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"column 'b' has no observed value"):
        MixedNB().fit(table.assign(b=np.nan), [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"column 'b' does not vary in class 0"):
        MixedNB(var_smoothing=0).fit(table.assign(b=[1.0, 1.0, 2.0, 3.0]), [0, 0, 1, 1])
