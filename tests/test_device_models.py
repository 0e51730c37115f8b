"""The models whose arithmetic is made on a device, one by one: the answer of the array, and where the work was done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import separatrix as sx
from separatrix.data.device import streamed
from separatrix.data.device.block import DeviceBlock
from separatrix.data.device.source import DeviceSource
from separatrix.kernels.device.radial import RadialRows
from separatrix.solvers import choose

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-engines sets it up")

CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
)
DEVICES = ["cpu", CUDA]
TIGHT: dict[str, Any] = {"tol": 1e-12}
TWO: dict[str, Any] = {
    "logistic": sx.LogisticRegression(**TIGHT),
    "logistic, strong": sx.LogisticRegression(C=1e-3, **TIGHT),
    "logistic, none": sx.LogisticRegression(penalty=None, **TIGHT),
    "logistic, l1": sx.LogisticRegression(penalty="l1", C=0.1, **TIGHT),
    "logistic, elastic net": sx.LogisticRegression(penalty="elasticnet", l1_ratio=0.5, C=0.1, **TIGHT),
    "logistic, class weight": sx.LogisticRegression(class_weight={0: 1.0, 1: 3.0}, **TIGHT),
    "laplace": sx.BayesianLogisticRegression(1.0, posterior="laplace", tol=1e-10),
    "laplace, evidence": sx.BayesianLogisticRegression(posterior="laplace", tol=1e-10),
    "squared hinge": sx.LinearSVC(dual=False, **TIGHT),
    "ridge": sx.Ridge(),
    "least squares": sx.LinearRegression(),
    "fisher": sx.FisherDiscriminant(),
}
THREE: dict[str, Any] = {
    "lda": sx.LinearDiscriminantAnalysis(),
    "qda": sx.QuadraticDiscriminantAnalysis(),
    "rda": sx.RegularizedDiscriminantAnalysis(),
    "ridge classifier": sx.RidgeClassifier(),
    "gaussian": sx.GaussianNB(),
    "multinomial": sx.MultinomialNB(),
    "bernoulli": sx.BernoulliNB(),
    "complement": sx.ComplementNB(),
    "softmax": sx.LogisticRegression(**TIGHT),
    "softmax, l1": sx.LogisticRegression(penalty="l1", C=0.1, **TIGHT),
    "squared hinge, three": sx.LinearSVC(dual=False, **TIGHT),
}
MODELS = TWO | THREE
# Models whose fit visits the rows as they are where a library on the host needs them: none.
ON_THE_HOST: set[str] = set()


def data(classes: int, n: int = 2000, d: int = 6) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(classes)
    X = (rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))).astype(np.float32)
    y = np.argmax(X[:, :classes] + rng.gumbel(size=(n, classes)), axis=1)
    return X.astype(np.float64), y, rng.integers(0, 3, n).astype(float)


def found(model: Any, X: Any) -> Any:
    if hasattr(model, "coef_"):
        intercept = np.ravel(getattr(model, "intercept_", 0.0))
        return np.concatenate([np.ravel(model.coef_), intercept])
    names = ("predict_proba", "decision_function", "transform", "predict")
    return np.ravel(getattr(model, next(name for name in names if hasattr(model, name)))(X))


class Watched:
    """How many rows came to the host at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = 0
        dense, matrix = DeviceBlock.dense, DeviceSource.matrix

        def seen(block: Any) -> Any:
            self.most = max(self.most, block.n)
            return dense(block)

        def all_seen(source: Any) -> Any:
            self.most = max(self.most, source.n_rows)
            return matrix(source)

        monkeypatch.setattr(DeviceBlock, "dense", seen)
        monkeypatch.setattr(DeviceSource, "matrix", all_seen)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_where_its_rows_lie(
    name: str, weighted: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, weights = data(2 if name in TWO else 3)
    X = np.abs(np.round(2 * X)) if name in ("multinomial", "bernoulli", "complement") else X
    s = weights if weighted else None
    here = clone(MODELS[name]).fit(X, y, sample_weight=s)
    watched = Watched(monkeypatch)
    for kind, close in ((torch.float64, 1e-9), (torch.float32, 1e-5)):
        rows = torch.as_tensor(X).to(device, kind)
        model = clone(MODELS[name]).fit(rows, torch.as_tensor(y).to(device), sample_weight=s)
        assert model.fit_.engine.startswith(device)
        assert watched.most < len(X) or name in ON_THE_HOST
        expected = found(here, X)
        # ½‖w‖² makes the coefficients of two fits as close as their proofs: ‖w − w*‖² ≤ 2 gap.
        apart = sum(np.sqrt(2.0 * fit.certificate.gap) for fit in (model.fit_, here.fit_)) if "hinge" in name else 0.0
        np.testing.assert_allclose(found(model, X), expected, rtol=0, atol=close * np.abs(expected).max() + apart)
        watched.most = 0


@pytest.mark.parametrize("device", DEVICES)
def test_offsets_and_priors(device: str) -> None:
    X, y, weights = data(2)
    rows, labels = torch.as_tensor(X).to(device), torch.as_tensor(y).to(device)
    offset = np.random.default_rng(0).standard_normal(len(y))
    here = sx.LogisticRegression(**TIGHT).fit(X, y, sample_weight=weights, offset=offset)
    there = sx.LogisticRegression(**TIGHT).fit(rows, labels, sample_weight=weights, offset=offset)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9)


def objective(X: Any, y: Any, s: Any, w: Any, b: float, power: int) -> float:
    slack = np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * (X @ w + b)) ** power
    return 0.5 * float(w @ w) + float(s @ slack)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n, d", [(3000, 7), (1500, 60)])
def test_linear_machines_and_their_proof(
    n: int, d: int, loss: Any, weighted: bool, kind: Any, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is above the true gap, against another method's optimum; no rows come to the host, nor slopes of all rows."""
    X, y, s = data(2, n, d)
    X = (X * 10.0 ** np.linspace(-1, 1, d) + 3.0).astype(kind)
    if weighted:
        X[s == 0] = np.nan
    kept = s > 0 if weighted else np.ones(n, dtype=bool)
    given = s if weighted else None
    best = sx.LinearSVC(loss=loss, tol=1e-10).fit(
        X[kept].astype(np.float64), y[kept], None if given is None else s[kept]
    )
    monkeypatch.setattr(choose, "_DEVICE", 0.0)  # as if the rows were many
    watched = Watched(monkeypatch)
    products: list[str] = []
    for name, product in (("matvec", DeviceBlock.matvec), ("rmatvec", DeviceBlock.rmatvec)):

        def counted(*given: Any, product: Any = product, name: str = name) -> Any:
            products.append(name)
            return product(*given)

        monkeypatch.setattr(DeviceBlock, name, counted)
    model = sx.LinearSVC(loss=loss, tol=1e-8).fit(
        torch.as_tensor(X).to(device), torch.as_tensor(y).to(device), sample_weight=given
    )
    proof = model.fit_.certificate
    assert watched.most <= 1000 and len(products) <= 1  # of the sample that shows the units of the columns
    assert proof.relative_gap <= 1e-8 and proof.kind == "proven"
    weights = s[kept] if weighted else np.ones(n)
    power = 1 if loss == "hinge" else 2
    value = objective(X[kept].astype(np.float64), y[kept], weights, model.coef_[0], float(model.intercept_[0]), power)
    optimum = best.fit_.certificate
    assert value - (optimum.objective - optimum.gap) <= proof.gap * (1 + 1e-6) + 1e-11 * value + optimum.gap
    np.testing.assert_allclose(model.coef_, best.coef_, atol=2e-3 * np.abs(best.coef_).max())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_linear_machines_that_are_streamed(loss: Any, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, s = data(3, 4000, 5)
    monkeypatch.setattr(streamed, "too_large", lambda n_bytes, device: True)
    monkeypatch.setattr(streamed, "PIECE", 700 * 5 * 8)
    here = sx.LinearSVC(loss=loss, tol=1e-10, class_weight="balanced").fit(X, y, sample_weight=s)
    with sx.config(device=device):
        there = sx.LinearSVC(loss=loss, tol=1e-10, class_weight="balanced", dual=False).fit(X, y, sample_weight=s)
    assert there.fit_.engine.startswith(device)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4 * np.abs(here.coef_).max())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("classes, kind", [(2, np.float64), (2, np.float32), (3, np.float64)])
def test_radial_machines(classes: int, kind: Any, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, s = data(classes, 7500, 4)
    X = X.astype(kind)
    here = sx.SVC(tol=1e-6).fit(X, y, sample_weight=s)
    calls: list[int] = []
    sums = RadialRows.sums
    monkeypatch.setattr(RadialRows, "sums", lambda *given: calls.append(1) or sums(*given))
    rows = torch.as_tensor(X).to(device)
    there = sx.SVC(tol=1e-6).fit(rows, torch.as_tensor(y).to(device), sample_weight=s)
    assert calls and there.fit_.engine.startswith(device)
    for fit in (here.fit_, there.fit_):
        assert fit.status.name == "CONVERGED" and fit.certificate.kind == "proven"
    ours, theirs = there.fit_.certificate, here.fit_.certificate
    assert ours.objective - ours.gap <= theirs.objective and theirs.objective - theirs.gap <= ours.objective
    expected = here.decision_function(X[:500])
    np.testing.assert_allclose(there.decision_function(X[:500]), expected, atol=1e-4)
    scores = there.decision_function(rows)
    assert isinstance(scores, torch.Tensor) and scores.device == rows.device
    np.testing.assert_allclose(scores.cpu().numpy()[:500], there.decision_function(X[:500]), atol=1e-10)
    again = sx.SVC(tol=1e-6).fit(rows, torch.as_tensor(y).to(device), sample_weight=s)
    assert (again.dual_coef_ == there.dual_coef_).all() and (again.intercept_ == there.intercept_).all()


@pytest.mark.parametrize("device", DEVICES)
def test_radial_scores_of_rows_that_are_not_finite(device: str) -> None:
    X, y, _ = data(2, 500, 3)
    model = sx.SVC().fit(X, y)
    bad = torch.as_tensor(X).to(device)
    bad[123, 1] = torch.inf
    with pytest.raises(ValueError, match=r"column 1 has 1 such row \(first: row 123\)"):
        model.decision_function(bad)
