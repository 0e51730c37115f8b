"""Products with a part of an array make no copy of it, and have the same bits on any number of threads."""

import tracemalloc

import numpy as np
import pytest

import separatrix
from separatrix import LogisticRegression
from separatrix.data import as_source
from separatrix.data.affine import Intercept
from separatrix.data.dense import DenseBlock
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.solvers import newton_cg
from separatrix.solvers.at_hand.prox import ProxColumns
from separatrix.solvers.preconditioners import preconditioner


def part(order, n=400, d=3000):
    X = np.asarray(np.random.default_rng(0).standard_normal((n, d)), order=order)
    return X[: n // 2] if order == "F" else X[:, : d // 2]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("product", ["matvec", "rmatvec", "columns", "gram", "column_squares"])
def test_a_product_with_a_part_of_an_array_makes_no_copy(order, product):
    X = part(order) if product != "gram" else part(order)[:, :300]
    block, which = DenseBlock(X), np.arange(0, X.shape[1], 97)
    arguments = {
        "matvec": (np.ones(X.shape[1]),),
        "rmatvec": (np.ones(len(X)),),
        "columns": (which,),
    }.get(product, ())
    tracemalloc.start()
    found = getattr(block, product)(*arguments)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    exact = {
        "matvec": lambda: X.sum(axis=1),
        "rmatvec": lambda: X.sum(axis=0),
        "columns": lambda: X[:, which],
        "gram": lambda: X.T.copy() @ X.copy(),
        "column_squares": lambda: np.square(X).sum(axis=0),
    }[product]()
    found = found.X if product == "columns" else found
    np.testing.assert_allclose(found, exact, atol=1e-10 * max(1.0, np.abs(exact).max()))
    assert most < X.nbytes / 4 + 2 * exact.nbytes


@pytest.mark.parametrize("order", ["C", "F"])
def test_products_of_a_large_block_do_not_depend_on_the_threads(order):
    X = np.asarray(np.random.default_rng(1).standard_normal((210, 21_000)), order=order)
    r, weights = np.random.default_rng(2).standard_normal(210), np.arange(210.0)
    found = []
    for threads in (1, 2):
        with separatrix.config(threads=threads):
            block = DenseBlock(X)
            found.append((block.rmatvec(r), block.rmatvec(r[:, None]), block.column_squares(weights)))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(found[0][0], r @ X, atol=1e-10)
    np.testing.assert_allclose(found[0][2], weights @ np.square(X), rtol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_absolute_values_on_wide_columns_take_the_same_steps_in_either_order(intercept):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 40_000)) * 10.0 ** rng.uniform(-2, 2, 40_000)  # too large to be laid in rows
    y = (X[:, np.argsort(-np.square(X).sum(axis=0))[:5]].sum(axis=1) > 0).astype(int)
    parameters = {"C": 1.0, "l1_ratio": 1.0, "fit_intercept": intercept}
    rows, columns = (LogisticRegression(**parameters).fit(np.asarray(X, order=order), y) for order in "CF")
    assert rows.fit_.iterations == columns.fit_.iterations
    proofs = [model.fit_.certificate for model in (rows, columns)]
    assert rows.fit_.status is columns.fit_.status is Status.CONVERGED
    assert abs(proofs[0].objective - proofs[1].objective) <= max(proof.gap for proof in proofs)


@pytest.mark.parametrize("shape", [(120, 900), (1100, 500)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_sizes_of_columns_that_are_known_are_those_of_all_rows(shape, weighted, intercept):
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal(shape) * 10.0 ** rng.uniform(-2, 2, shape[1]), rng.integers(0, 2, shape[0])
    weights = rng.uniform(0.5, 2.0, shape[0]) if weighted else None
    source = as_source(X, y, weights).labelled()
    problem = LinearProblem.of(source, C=1.0, l1_ratio=1.0, fit_intercept=intercept)
    squares = np.square(X).T @ (np.ones(shape[0]) if weights is None else weights)
    np.testing.assert_allclose(ProxColumns.of(problem).sizes, np.sqrt(squares), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_large_sample_can_give_up_its_copies_and_stays_the_same_rows(dtype, order, weighted):
    rng = np.random.default_rng(7)
    X = np.asarray(rng.standard_normal((60_000, 80)), dtype=dtype, order=order)
    y, weights = rng.integers(0, 3, len(X)), rng.integers(0, 3, len(X)).astype(float) if weighted else None
    source = Intercept(as_source(X, y, weights).labelled())
    copied, which = source.sample(30_000)
    again = copied.uncopied()
    assert again is not copied and again.n_rows == 30_000
    for rows in (None, 700):
        pairs = list(zip(copied.map(lambda block: block, rows), again.map(lambda block: block, rows), strict=True))
        assert sum(one.n for one, _ in pairs) == 30_000
        for one, other in pairs:
            assert (one.start, one.shape) == (other.start, other.shape)
            np.testing.assert_array_equal(one.dense(), other.dense())
            np.testing.assert_array_equal(one.part(slice(3, 90)).dense(), other.part(slice(3, 90)).dense())
            np.testing.assert_array_equal(one.counted().dense(), other.counted().dense())
            np.testing.assert_array_equal(one.codes, other.codes)
            np.testing.assert_array_equal(one.row_weights, other.row_weights)
    fewer, places = again.sample(100)
    np.testing.assert_array_equal(next(fewer.blocks()).dense()[:, :-1], X[which[places]].astype(float))
    small, _ = source.sample(50)
    assert small.uncopied() is small  # nothing to gain


@pytest.mark.filterwarnings("ignore::separatrix.result.ConvergenceWarning")
def test_a_softmax_fit_keeps_no_copy_of_its_sample_beside_what_it_keeps_of_every_row(monkeypatch):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((400_000, 60))
    y = (X[:, :6] + rng.gumbel(size=(len(X), 6))).argmax(axis=1)
    found = []
    monkeypatch.setattr(newton_cg, "preconditioner", lambda *given: found.append(given) or preconditioner(*given))
    LogisticRegression(solver="newton-cg", max_iter=1, tol=1e-1).fit(X, y)
    sample = found[-1][1]
    assert sample is not None and sample.problem.source.uncopied() is sample.problem.source
    assert sample.problem.source.sample(10) is not None
