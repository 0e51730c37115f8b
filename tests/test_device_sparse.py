"""Sparse rows on a device: the models of the SciPy matrix, on PyTorch's CPU tensors everywhere and on CUDA where it is."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import REGISTRY, having, tight
from sklearn.base import clone

import separatrix as sx
from separatrix.data.device import csr
from separatrix.data.device.csr import csr_rows
from separatrix.data.device.sparse_block import SparseDeviceBlock
from separatrix.data.sparse import SparseBlock
from separatrix.kernels.device import sparse

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-engines sets it up")

CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
)
DEVICES = ["cpu", CUDA]
FAMILIES = ("discriminant", "naive_bayes", "least_squares", "logistic", "margin", "bayesian")
MODELS = {
    name: model
    for name, model in tight(having(family=FAMILIES, folds=False, sparse=True)).items()
    if name != "mixed" and "cv" not in name
}
SHAPES = ["plain", "empty rows and columns", "a column in every row", "a long row", "no entries", "full"]


def there(X: Any, device: str) -> Any:
    """A CSR tensor of a SciPy matrix, its indices as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch says that the format is new
        parts = (torch.as_tensor(part) for part in (X.indptr, X.indices, X.data))
        return torch.sparse_csr_tensor(*parts, size=X.shape).to(device)


def rows(n: int = 500, d: int = 12, density: float = 0.2, seed: int = 0) -> Any:
    """Counts from 1 to 6 at random places."""
    rng = np.random.default_rng(seed)
    return sp.csr_array(np.where(rng.uniform(size=(n, d)) < density, rng.integers(1, 7, (n, d)), 0).astype(float))


def labels(X: Any, classes: int = 2, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    scores = X @ rng.normal(scale=0.3, size=(X.shape[1], classes))
    return np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


def shaped(kind: str) -> Any:
    """Sparse rows of float64 of a kind that another way through the sums reads."""
    rng = np.random.default_rng(3)
    n, d = (5000, 9) if kind == "a column in every row" else (400, 2500 if kind == "a long row" else 40)
    X = np.where(rng.uniform(size=(n, d)) < 0.1, rng.standard_normal((n, d)), 0.0)
    if kind == "empty rows and columns":
        X[[0, 1, 77, -1]], X[:, [0, 5, -1]] = 0.0, 0.0
    elif kind == "a column in every row":
        X[:, 4] = 1.0 + rng.uniform(size=n)
    elif kind == "a long row":
        X[200] = rng.standard_normal(d)
    elif kind == "no entries":
        X[:] = 0.0
    elif kind == "full":
        X = rng.standard_normal((n, d))
    return sp.csr_array(X)


def answers(model: Any, X: Any) -> Any:
    names = ("decision_function", "predict_proba", "predict", "transform")
    return getattr(model, next(name for name in names if hasattr(model, name)))(X)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_a_sparse_tensor_gives_the_model_of_the_matrix(name: str, device: str) -> None:
    X = rows()
    entry = REGISTRY[name]
    y = labels(X, 2 if entry.two_classes else 3)
    y = X[:, [0]].toarray()[:, 0] + y if entry.regressor else y
    here = clone(MODELS[name]).fit(X, y)
    model = clone(MODELS[name]).fit(there(X, device), there_labels(y, device))
    found = answers(model, there(X, device))
    found = found.cpu().numpy() if isinstance(found, torch.Tensor) else found
    np.testing.assert_allclose(found, answers(here, X), rtol=1e-8, atol=1e-8)
    if hasattr(here, "fit_"):
        assert model.fit_.engine.startswith(device) and here.fit_.engine == "memory"
        gaps = [fit.certificate for fit in (model.fit_, here.fit_)]
        if all(gap is not None and np.isfinite(gap.gap) for gap in gaps):
            slack = 1e-12 * max(1.0, abs(gaps[1].objective))
            assert gaps[0].objective - gaps[1].objective <= gaps[0].gap + slack


def there_labels(y: Any, device: str) -> Any:
    return torch.as_tensor(y).to(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_products_of_every_block(dtype: Any, kind: str, device: str) -> None:
    X, rng = shaped(kind).astype(dtype), np.random.default_rng(5)
    n, d = X.shape
    weights, codes = rng.uniform(0.1, 2.0, n), rng.integers(0, 3, n)
    here = SparseBlock(X, codes, weights)
    block = SparseDeviceBlock(csr_rows(there(X, device)), codes, weights)
    v, V, r, R = (rng.standard_normal(shape) for shape in (d, (d, 3), n, (n, 40)))
    pairs = [
        (one.matvec(v), one.matvec(V), one.rmatvec(r), one.rmatvec(R), one.curve(weights, v))
        + (one.curve_with_ones(weights, np.append(v, 0.7)), one.column_squares(), one.column_squares(weights))
        + (one.row_squares(np.square(v)), one.row_squares(np.square(V)), one.largest_row(np.square(v)))
        + (one.class_sums(codes, 3), one.column_minima(), one.least(), one.dense(), one.class_weight(3))
        + (one.columns(np.arange(1, d, 2)).dense(), one.part(slice(7, 30)).dense(), one.part(slice(3, 3)).matvec(v))
        + ((one.gram(), one.gram(weights), one.gram_of(np.arange(0, d, 3), weights)) if d < 100 else ())
        for one in (block, here)
    ]
    for found, expected in zip(*pairs, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    centred = [one.centre(codes, 3) for one in (block, here)]
    for name in ("scatter", "squares") if d < 100 else ("squares",):
        found, expected = (getattr(one, name)() for one in centred)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    means = [one.mean_high + one.mean_low for one in centred]
    np.testing.assert_allclose(*means, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_the_sums_of_a_loss(loss: str, kind: str, device: str) -> None:
    """Weights, offsets, sizes of rows and kept curvatures are those of sums made by hand; the bits are the same ten times."""
    X, rng = shaped(kind), np.random.default_rng(7)
    (n, d), m = X.shape, 1 if loss == "logistic" else 5
    weights, codes = rng.integers(0, 3, n).astype(float), rng.integers(0, max(2, m), n)
    W, b, own, metric = (
        0.2 * rng.standard_normal((m, d)),
        rng.standard_normal(m),
        rng.standard_normal((n, m)),
        rng.uniform(size=d),
    )
    block = SparseDeviceBlock(csr_rows(there(X, device)), codes, weights)
    sums = block.loss_sums(loss, W, b, own, metric, True)
    eta = X @ W.T + b + own
    full = np.column_stack([np.zeros(n), eta[:, 0]]) if m == 1 else eta
    p = np.exp(full - full.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    slopes = (p - np.eye(p.shape[1])[codes])[:, -m:]
    value = -weights @ np.log(p[np.arange(n), codes])
    counts = weights > 0
    assert sums is not None
    np.testing.assert_allclose(sums.loss, value, rtol=1e-11)
    np.testing.assert_allclose(sums.gradient, (X.T @ (slopes * weights[:, None])).T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(sums.slopes, weights @ slopes, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(sums.squares, weights @ np.square(slopes).sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(sums.steepest, np.abs(eta[counts]).max(), rtol=1e-12)
    np.testing.assert_allclose(sums.largest, (X.multiply(X) @ metric)[counts].max(), rtol=1e-12)
    assert sums.total == weights.sum()
    V, last = rng.standard_normal((m, d)), rng.standard_normal(m)
    moved, q = X @ V.T + last, p[:, -m:]
    moved = moved * q * (1 - q) if m == 1 else q * (moved - (q * moved).sum(axis=1, keepdims=True))
    product, ones = block.loss_curve(sums.curvatures, V, last)
    np.testing.assert_allclose(product, X.T @ (moved * weights[:, None]), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(ones, weights @ moved, rtol=1e-9, atol=1e-10)
    if m == 1 and d < 100:
        s, joined = weights * (q * (1 - q))[:, 0], np.column_stack([X.toarray(), np.ones(n)])
        hessian = block.loss_hessian(sums.curvatures, True)
        np.testing.assert_allclose(hessian, (joined * s[:, None]).T @ joined, rtol=1e-10, atol=1e-10)
    for _ in range(9):
        again = block.loss_sums(loss, W, b, own, metric, True)
        assert again is not None and again.loss == sums.loss
        assert (again.gradient == sums.gradient).all() and (again.slopes == sums.slopes).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["plain", "empty rows and columns", "a column in every row"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("penalty", [{}, {"l1_ratio": 1.0, "C": 0.3}, {"l1_ratio": 0.5, "C": 0.3}])
def test_coefficients_and_their_proof(penalty: Any, dtype: Any, kind: str, device: str) -> None:
    X = shaped(kind).astype(dtype)
    y = labels(X)
    to_the_end = {} if penalty else {"solver": "newton-cholesky"}  # whose last step is far below its tolerance
    reference = sx.LogisticRegression(tol=1e-13, **penalty, **to_the_end).fit(X.astype(np.float64), y)
    fits = [sx.LogisticRegression(tol=1e-12, **penalty).fit(there(X, device), y) for _ in range(3)]
    close = 1e-9 if dtype == np.float64 and not penalty else 1e-5
    np.testing.assert_allclose(
        fits[0].coef_, reference.coef_, rtol=0, atol=close * max(1.0, np.abs(reference.coef_).max())
    )
    for model in fits[1:]:
        assert (model.coef_ == fits[0].coef_).all() and (model.intercept_ == fits[0].intercept_).all()
    rough = sx.LogisticRegression(tol=1e-3, **penalty).fit(there(X, device), y)
    for model in (rough, fits[0]):
        eta = X.astype(np.float64) @ model.coef_[0] + model.intercept_[0]
        C, ratio = penalty.get("C", 1.0), penalty.get("l1_ratio", 0.0)
        size = ratio * np.abs(model.coef_).sum() + 0.5 * (1 - ratio) * np.square(model.coef_).sum()
        value = C * float(np.logaddexp(0.0, np.where(y == 1, -eta, eta)).sum()) + size
        proof, best = model.fit_.certificate, reference.fit_.certificate
        np.testing.assert_allclose(proof.objective, value, rtol=1e-12)
        assert value - best.objective <= proof.gap + 1e-13 * abs(value)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["scales", "sorted", "one row of a class", "weights of zero", "repeated rows"])
def test_hard_rows(kind: str, device: str) -> None:
    X = rows(1200, 8)
    y, weights = labels(X, 3), None
    given, own = X, y
    if kind == "scales":
        X = given = sp.csr_array(X * 10.0 ** np.linspace(-6, 6, X.shape[1]))
    elif kind == "sorted":
        order = np.argsort(y)
        X, y = given, own = X[order], y[order]
    elif kind == "one row of a class":
        y = own = np.where(np.arange(len(y)) == 700, 3, y)
    elif kind == "weights of zero":
        weights = np.arange(len(y)) % 3 * 1.0
        given = X.copy()
        given.data[np.repeat(weights == 0, np.diff(X.indptr))] = np.nan
    else:
        weights = np.arange(len(y)) % 3 * 1.0
        X, y = X[np.repeat(np.arange(len(y)), weights.astype(int))], np.repeat(y, weights.astype(int))
    s = None if kind == "repeated rows" else weights
    for model in (
        sx.LogisticRegression(tol=1e-12),
        sx.LinearDiscriminantAnalysis(),
        sx.GaussianNB(),
        sx.MultinomialNB(),
    ):
        here = clone(model).fit(X, y, sample_weight=s)
        found = clone(model).fit(there(given, device), own, sample_weight=weights)
        np.testing.assert_allclose(found.predict_proba(X), here.predict_proba(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("device", DEVICES)
def test_wide_rows(device: str) -> None:
    """More columns than any Hessian is made for: conjugate gradients, from products alone."""
    rng = np.random.default_rng(0)
    X = sp.random_array((2000, 6000), density=0.01, rng=rng, format="csr")
    for classes in (2, 4):
        y = labels(X, classes)
        here = sx.LogisticRegression(tol=1e-9, C=10.0).fit(X, y)
        found = sx.LogisticRegression(tol=1e-9, C=10.0).fit(there(X, device), y)
        assert found.fit_.certificate.gap <= 2e-9 * found.fit_.certificate.objective
        np.testing.assert_allclose(found.predict_proba(X), here.predict_proba(X), rtol=1e-4, atol=1e-5)
    svm = [sx.LinearSVC(tol=1e-9).fit(rows_, labels(X)) for rows_ in (X, there(X, device))]
    np.testing.assert_allclose(svm[1].decision_function(X), svm[0].decision_function(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_indices_in_any_order_and_other_formats(device: str) -> None:
    X = rows()
    y, rng = labels(X), np.random.default_rng(0)
    expected = sx.LogisticRegression(tol=1e-10).fit(X, y).coef_
    owner = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = np.lexsort((rng.permutation(X.nnz), owner))
    mixed = sp.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)
    # every value as a third and two thirds of it, in places that are not neighbours
    halves = np.concatenate([X.data / 3, X.data * 2 / 3])
    place = np.lexsort((rng.permutation(2 * X.nnz), np.tile(owner, 2)))
    twice = sp.csr_array((halves[place], np.tile(X.indices, 2)[place], 2 * X.indptr), shape=X.shape)
    dense = torch.as_tensor(X.toarray()).to(device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = [
            there(mixed, device),
            there(twice, device),
            dense.to_sparse(),
            dense.to_sparse_csc(),
            there(X, device).to(torch.float32),
        ]
    for tensor in given:
        model = sx.LogisticRegression(tol=1e-10).fit(tensor, y)
        np.testing.assert_allclose(model.coef_, expected, rtol=1e-6, atol=1e-7)
        assert model.fit_.engine.startswith(device)


@pytest.mark.parametrize("device", DEVICES)
def test_a_scipy_matrix_and_a_device_that_is_asked_for(device: str) -> None:
    X = rows()
    y = labels(X)
    for given in (X, sp.csr_matrix(X), X.astype(np.int64), X.astype(np.float32)):
        with sx.config(device=device):
            model = sx.LogisticRegression(tol=1e-10).fit(given, y)
        assert model.fit_.engine.startswith(device)
        np.testing.assert_allclose(model.coef_, sx.LogisticRegression(tol=1e-10).fit(X, y).coef_, rtol=1e-6, atol=1e-8)
    with sx.config(device="nowhere"), pytest.raises(ValueError, match="device='nowhere' cannot be used"):
        sx.LogisticRegression().fit(X, y)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
def test_a_cupy_matrix() -> None:
    cupy, cusparse = pytest.importorskip("cupy"), pytest.importorskip("cupyx.scipy.sparse")
    X = rows()
    y = labels(X)
    given = cusparse.csr_matrix(sp.csr_matrix(X))
    model = sx.LogisticRegression(tol=1e-10).fit(given, cupy.asarray(y))
    assert model.fit_.engine.startswith("cuda")
    found = model.predict_proba(given)
    assert isinstance(found, cupy.ndarray)
    expected = sx.LogisticRegression(tol=1e-10).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(cupy.asnumpy(found), expected, rtol=1e-7)


@pytest.mark.parametrize("device", DEVICES)
def test_compiled_sums_are_those_of_pytorch(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, rng = shaped("a column in every row"), np.random.default_rng(2)
    block = SparseDeviceBlock(csr_rows(there(X, device)), labels(X), None)
    W, b, r = rng.standard_normal((1, X.shape[1])), np.array([0.3]), rng.standard_normal((X.shape[0], 2))
    compiled = block.loss_sums("logistic", W, b, None, None, False), block.rmatvec(r), block.rmatvec(r[:, 0])
    monkeypatch.setattr(sparse, "compiled", lambda values: False)
    plain = block.loss_sums("logistic", W, b, None, None, False), block.rmatvec(r), block.rmatvec(r[:, 0])
    assert compiled[0] is not None and plain[0] is not None
    np.testing.assert_allclose(compiled[0].gradient, plain[0].gradient, rtol=1e-11)
    np.testing.assert_allclose(compiled[0].loss, plain[0].loss, rtol=1e-12)
    for one, other in zip(compiled[1:], plain[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("device", DEVICES)
def test_entries_that_are_sorted_in_runs(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, r = shaped("a column in every row"), np.random.default_rng(2).standard_normal(5000)
    whole = csr_rows(there(X, device)).by_column
    monkeypatch.setattr(csr, "_AT_A_TIME", 777)
    runs = csr_rows(there(X, device))
    for one, other in zip(vars(whole).values(), vars(runs.by_column).values(), strict=True):
        assert bool((one == other).all()) if isinstance(one, torch.Tensor) else one == other
    np.testing.assert_allclose(SparseDeviceBlock(runs).rmatvec(r), X.T @ r, rtol=1e-11)


def test_what_is_wrong_is_said_in_words() -> None:
    X = rows()
    y = torch.as_tensor(labels(X))
    bad = X.copy()
    at = int(bad.indptr[123])
    assert bad.indptr[124] > at, "row 123 has entries"
    bad.data[at], bad.data[-1] = np.nan, np.inf
    message = rf"column {bad.indices[at]} has 1 such row \(first: row 123\)"
    last = rf"column {bad.indices[-1]} has 1 such row \(first: row {np.searchsorted(bad.indptr, bad.nnz) - 1}\)"
    with pytest.raises(ValueError, match=message if bad.indices[at] < bad.indices[-1] else last):
        sx.LogisticRegression().fit(there(bad, "cpu"), y)
    for model in (sx.GaussianNB(), sx.LinearDiscriminantAnalysis(), sx.BernoulliNB(), sx.RidgeClassifier()):
        with pytest.raises(ValueError, match="NaN or infinity"):
            model.fit(there(bad, "cpu"), y)
    with pytest.raises(ValueError, match="X is on cpu and y on meta"):
        sx.LogisticRegression().fit(there(X, "cpu"), torch.empty(len(y), device="meta"))
    with pytest.raises(ValueError, match="500 rows and y has 499"):
        sx.LogisticRegression().fit(there(X, "cpu"), y[1:])
    with pytest.raises(ValueError, match="omplex"):
        sx.LogisticRegression().fit(there(X.astype(complex), "cpu"), y)
    with pytest.raises(ValueError, match="egative"):
        sx.MultinomialNB().fit(there(-X, "cpu"), y)
    with pytest.raises(ValueError, match="expecting 12"):
        sx.LogisticRegression().fit(there(X, "cpu"), y).predict(there(X[:, :4], "cpu"))
    outside = X.copy()
    outside.indices[5] = 12
    with pytest.raises(ValueError, match="a stored value is in column 12 of 12"):
        sx.LogisticRegression().fit(there(outside, "cpu"), y)
    falling = X.copy()
    falling.indptr[3] = falling.indptr[9]
    with pytest.raises(ValueError, match="row pointers do not ascend"):
        sx.LogisticRegression().fit(there(falling, "cpu"), y)
