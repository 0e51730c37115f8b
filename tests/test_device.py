"""Rows on a device: the models of an array, on PyTorch's CPU tensors everywhere and on a CUDA device where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimators import REGISTRY, having, tight
from sklearn.base import clone

import separatrix as sx
from separatrix.data.device import streamed
from separatrix.data.device.block import DeviceBlock
from separatrix.data.device.hints import Hints

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-engines sets it up")

CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
)
DEVICES = ["cpu", CUDA]
FAMILIES = ("discriminant", "naive_bayes", "least_squares", "logistic", "bayesian")
MODELS = {
    name: model
    for name, model in tight(having(family=FAMILIES, folds=False)).items()
    if name not in ("mixed", "bayesian quadrature") and "cv" not in name
}


def data(n: int = 600, d: int = 5, classes: int = 3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    return X, np.argmax(X[:, :classes] + rng.gumbel(size=(n, classes)), axis=1)


def there(values: Any, device: str) -> Any:
    return torch.as_tensor(values).to(device)


def answers(model: Any, X: Any) -> Any:
    names = ("decision_function", "predict_proba", "predict", "transform")
    return getattr(model, next(name for name in names if hasattr(model, name)))(X)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_a_tensor_gives_the_model_of_the_array(name: str, device: str) -> None:
    X, y = data()
    entry = REGISTRY[name]
    X, y = (np.abs(np.round(X)) if entry.family == "naive_bayes" else X), (X[:, 0] + y if entry.regressor else y)
    here = clone(MODELS[name]).fit(X, y)
    model = clone(MODELS[name]).fit(there(X, device), there(y, device))
    np.testing.assert_allclose(answers(model, X), answers(here, X), rtol=1e-8, atol=1e-8)
    if hasattr(here, "fit_"):
        assert model.fit_.engine.startswith(device) and here.fit_.engine == "memory"
        gaps = [fit.certificate for fit in (model.fit_, here.fit_)]
        if all(gap is not None and np.isfinite(gap.gap) for gap in gaps):
            slack = 1e-12 * max(1.0, abs(gaps[1].objective))
            assert gaps[0].objective - gaps[1].objective <= gaps[0].gap + slack


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("d", [1, 7, 33, 130])
def test_single_precision_is_near_double_and_its_proof_is_true(d: int, order: str, device: str) -> None:
    X, y = data(4000, max(d, 2), 2)
    X = np.asarray(X[:, :d], dtype=np.float32, order=order)  # type: ignore[call-overload]  # either order
    reference = sx.LogisticRegression(tol=1e-12).fit(X.astype(np.float64), y)
    fits = [sx.LogisticRegression(tol=1e-7).fit(there(X, device), there(y, device)) for _ in range(3)]
    for model in fits:
        assert (model.coef_ == fits[0].coef_).all() and (model.intercept_ == fits[0].intercept_).all()
    eta = X.astype(np.float64) @ fits[0].coef_[0] + fits[0].intercept_[0]
    value = float(np.logaddexp(0.0, np.where(y == 1, -eta, eta)).sum()) + 0.5 * float(np.square(fits[0].coef_).sum())
    assert value - reference.fit_.certificate.objective <= fits[0].fit_.certificate.gap
    np.testing.assert_allclose(fits[0].coef_, reference.coef_, rtol=0, atol=1e-3 * np.abs(reference.coef_).max())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["far from the origin", "scales", "sorted", "one row of a class", "weights of zero"])
def test_hard_rows(kind: str, device: str) -> None:
    X, y = data(3000, 6)
    weights = None
    if kind == "far from the origin":
        X = X + 1e4
    elif kind == "scales":
        X = X * 10.0 ** np.linspace(-6, 6, X.shape[1])
    elif kind == "sorted":
        order = np.argsort(y)
        X, y = X[order], y[order]
    elif kind == "one row of a class":
        y = np.where(np.arange(len(y)) == 1700, 3, y)
    else:
        weights = np.arange(len(y)) % 3 * 1.0
        X = np.where((weights == 0)[:, None], np.nan, X)
    for model in (sx.LogisticRegression(tol=1e-12), sx.LinearDiscriminantAnalysis(), sx.GaussianNB()):
        here = clone(model).fit(X, y, sample_weight=weights)
        found = clone(model).fit(there(X, device), there(y, device), sample_weight=weights)
        rows = X[~np.isnan(X).any(axis=1)]
        np.testing.assert_allclose(found.predict_proba(rows), here.predict_proba(rows), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("device", DEVICES)
def test_answers_stay_on_the_device_and_rows_are_left_as_they_were(device: str) -> None:
    X, y = data()
    rows = there(X, device)
    before = rows.clone()
    model = sx.LinearDiscriminantAnalysis().fit(rows, there(y * 5 - 3, device))
    proba, labels = model.predict_proba(rows), model.predict(rows)
    assert isinstance(proba, torch.Tensor) and proba.device == rows.device and labels.device == rows.device
    np.testing.assert_allclose(proba.cpu().numpy(), model.predict_proba(X), rtol=1e-12)
    assert set(labels.cpu().tolist()) <= {-3, 2, 7}
    assert bool((rows == before).all())
    named = sx.LinearDiscriminantAnalysis().fit(rows, np.array(["a", "b", "c"])[y])
    assert named.predict(rows).dtype.kind == "U"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "n, d, classes", [(1001, 100, 10), (5003, 7, 3), (777, 33, 2), (64, 128, 12), (9, 100, 4), (2000, 200, 2)]
)
def test_sums_in_single_precision_are_those_in_double(
    n: int, d: int, classes: int, weighted: bool, device: str
) -> None:
    rng = np.random.default_rng(n)
    X = torch.as_tensor(rng.standard_normal((n, d)) + 3.0, dtype=torch.float32).to(device)
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    rows = 1 if classes == 2 else classes
    W, b, metric = 0.3 * rng.standard_normal((rows, d)), rng.standard_normal(rows), rng.uniform(size=d)
    block = DeviceBlock(X, rng.integers(0, classes, n), weights)
    block.near(Hints.known(np.full(d, 3.0), np.zeros(d)))
    for view in (block, block.standardised(rng.standard_normal(d), rng.uniform(1.0, 3.0, d))):
        kind = "logistic" if classes == 2 else "softmax"
        quick = view.loss_sums(kind, W, b, None, metric, False)
        view.precise = True
        exact = view.loss_sums(kind, W, b, None, metric, False)
        for name in ("loss", "gradient", "slopes", "squares", "steepest", "total"):
            expected = np.asarray(getattr(exact, name))
            np.testing.assert_allclose(getattr(quick, name), expected, rtol=2e-6, atol=1e-6 * np.abs(expected).max())
        assert exact.largest <= quick.largest * (1 + 1e-6) <= 1.02 * exact.largest
        dense, s = view.dense(), np.ones(n) if weights is None else weights
        np.testing.assert_allclose(view.gram(s), (dense * s[:, None]).T @ dense, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_weights_in_double_precision(device: str) -> None:
    """Weights are read in the precision of the arithmetic, in the first passes and in those that make the proof."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4000, 12))
    y = (X[:, 0] + rng.logistic(size=4000) > 0).astype(int)
    s = rng.uniform(0.0, 3.0, 4000)
    expected = sx.LogisticRegression(tol=1e-11).fit(X, y, sample_weight=s)
    for kind, tol in ((torch.float64, 1e-9), (torch.float32, 1e-11)):
        there = torch.as_tensor(X, dtype=kind).to(device)
        model = sx.LogisticRegression(tol=tol).fit(there, y, sample_weight=s)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4 if kind == torch.float64 else 1e-6)
        assert model.fit_.certificate.gap >= 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_rows_that_are_too_many_for_the_device(kind: Any, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read piece by piece, with the sums of the whole."""
    X, y = data(5000)
    X = np.round(4 * X).astype(kind)
    s = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    monkeypatch.setattr(streamed, "too_large", lambda n_bytes, device: True)
    monkeypatch.setattr(streamed, "PIECE", 700 * 5 * 8)
    for model in (
        sx.LogisticRegression(tol=1e-9),
        sx.LinearDiscriminantAnalysis(),
        sx.GaussianNB(),
        sx.LinearSVC(tol=1e-9),
        sx.Ridge(),
    ):
        here = clone(model).fit(X.astype(np.float64), y, sample_weight=s)
        with sx.config(device=device):
            there_ = clone(model).fit(X, y, sample_weight=s)
        assert there_.fit_.engine.startswith(device)
        close = 1e-4 if kind == np.float32 else 1e-6
        np.testing.assert_allclose(answers(there_, X[:200]), answers(here, X[:200]), rtol=close, atol=close)


def test_a_device_that_is_asked_for() -> None:
    X, y = data()
    with sx.config(device="cpu"):
        model = sx.LogisticRegression().fit(X, y)
        assert sx.config.device == "cpu"
    assert model.fit_.engine == "cpu" and sx.config.device is None
    np.testing.assert_allclose(model.coef_, sx.LogisticRegression().fit(X, y).coef_, rtol=1e-3, atol=1e-3)
    with sx.config(device="nowhere"), pytest.raises(ValueError, match="device='nowhere' cannot be used"):
        sx.LogisticRegression().fit(X, y)


def test_what_is_wrong_is_said_in_words() -> None:
    X, y = data()
    rows, labels = torch.as_tensor(X), torch.as_tensor(y)
    bad = rows.clone()
    bad[123, 2] = torch.nan
    with pytest.raises(ValueError, match=r"column 2 has 1 such row \(first: row 123\)"):
        sx.LogisticRegression().fit(bad, labels)
    with pytest.raises(ValueError, match="X is on cpu and y on meta"):
        sx.LogisticRegression().fit(rows, torch.empty(len(y), device="meta"))
    with pytest.raises(ValueError, match="600 rows and y has 599"):
        sx.LogisticRegression().fit(rows, labels[1:])
    with pytest.raises(ValueError, match="2D"):
        sx.LogisticRegression().fit(rows[:, 0], labels)
    with pytest.raises(ValueError, match="omplex"):
        sx.LogisticRegression().fit(rows + 0j, labels)
    with pytest.raises(ValueError, match="expecting 5"):
        sx.LogisticRegression().fit(rows, labels).predict(rows[:, :4])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_files_are_read_straight_to_the_device(
    kind: Any, device: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces across row groups and files; the model of the host, and refusals with the row and its column."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from separatrix.data.device import files

    monkeypatch.setattr(files, "BLOCK_BYTES", 5 * 8 * 700)
    X, y = data(5000)
    X = X.astype(kind)
    s = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    columns = {f"x{j}": X[:, j] for j in range(5)} | {"y": np.array(["a", "b", "c"])[y], "s": s}
    table = pa.table(columns)
    pq.write_table(table.slice(0, 2100), tmp_path / "a.parquet", row_group_size=999)
    pq.write_table(table.slice(2100), tmp_path / "b.parquet", row_group_size=512)
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for model in (
        sx.LogisticRegression(tol=1e-11),
        sx.LinearDiscriminantAnalysis(),
        sx.GaussianNB(),
        sx.LinearSVC(tol=1e-9),
        sx.RidgeClassifier(),
    ):
        source = sx.scan_parquet(paths, target="y", weight="s")
        here = clone(model).fit(source)
        with sx.config(device=device):
            there_ = clone(model).fit(sx.scan_parquet(paths, target="y", weight="s"))
        assert there_.fit_.engine.startswith(device) and list(there_.classes_) == ["a", "b", "c"]
        close = 1e-4 if isinstance(model, sx.LinearSVC) or (kind == np.float32 and device == "cuda") else 1e-9
        names = {f"x{j}": X[:200, j] for j in range(5)}
        expected = answers(here, pa.table(names))
        np.testing.assert_allclose(answers(there_, pa.table(names)), expected, rtol=close, atol=close)
    X[4321, 2] = np.nan
    pq.write_table(pa.table(columns | {"x2": X[:, 2]}), tmp_path / "bad.parquet", row_group_size=512)
    with sx.config(device=device), pytest.raises(ValueError, match=r"'x2' has 1 such row \(first: row 4321\)"):
        sx.LogisticRegression().fit(sx.scan_parquet(tmp_path / "bad.parquet", target="y", weight="s"))
    with sx.config(device="nowhere"), pytest.raises(ValueError, match="device='nowhere' cannot be used"):
        sx.LogisticRegression().fit(sx.scan_parquet(paths, target="y", weight="s"))
