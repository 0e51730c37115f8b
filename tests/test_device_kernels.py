"""The loops over rows on a device, by every compiler that is there: one definition, the same sums, the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import separatrix as sx
from separatrix.data.device.block import DeviceBlock
from separatrix.data.device.hints import Hints
from separatrix.data.device.source import DeviceSource
from separatrix.kernels.device import cuda, triton_rows
from separatrix.kernels.device.engine import engine
from separatrix.objectives.margin_losses import Hinge, Logistic, SmoothedHinge, SquaredHinge

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-engines sets it up")

LOSSES: dict[str, Any] = {
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
    "smoothed_hinge": SmoothedHinge(0.3),
    "hinge": Hinge(),
}


@pytest.fixture(params=["cuda", "triton", "torch on cuda", "torch"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the rows lie, with the compiler forced."""
    name = request.param
    if name != "torch" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device here")
    if name == "triton" and not triton_rows.found():
        pytest.skip("Triton is not installed")
    monkeypatch.setattr(cuda, "FORCED", name.split()[0])
    if name == "cuda" and not cuda.available():
        pytest.skip("CuPy is not installed")
    assert engine() == name.split()[0]
    return "cpu" if name == "torch" else "cuda"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n, d", [(1001, 7), (333, 33), (70, 130), (5, 1), (2000, 60)])
def test_sums_of_a_loss(n: int, d: int, loss: str, kind: Any, device: str) -> None:
    rng = np.random.default_rng(n)
    X = (rng.standard_normal((n, d)) + 2.0).astype(kind)
    y, own = rng.integers(0, 2, n), rng.standard_normal(n)
    W, b, metric = 0.5 * rng.standard_normal((1, d)) / np.sqrt(d), rng.standard_normal(1), rng.uniform(size=d)
    unit = 1e-12 if kind == np.float64 else 2e-6
    for s, offset in ((None, None), (rng.uniform(0.5, 3.0, n), own[:, None])):
        block = DeviceBlock(torch.as_tensor(X).to(device), y, s)
        block.near(Hints.known(np.full(d, 2.0), np.zeros(d)))
        for view in (block, block.standardised(rng.standard_normal(d), rng.uniform(1.0, 3.0, d))):
            rows = view.dense()
            given = offset if offset is None else torch.as_tensor(offset).to(device)
            sums = view.loss_sums(loss, W, b, given, metric, True, 0.3)
            assert sums is not None
            eta = rows @ W.T + b + (0.0 if offset is None else offset)
            weights, define = np.ones(n) if s is None else s, LOSSES[loss]
            slopes, bends = define.gradient(y, eta), define.curvature(y, eta)
            expected = {
                "loss": weights @ define.value(y, eta),
                "gradient": (weights[:, None] * slopes).T @ rows,
                "slopes": weights @ slopes,
                "squares": weights @ np.square(slopes[:, 0]),
                "steepest": np.abs(eta).max(),
                "total": weights.sum(),
            }
            for name, value in expected.items():
                size = max(1.0, float(np.abs(value).max()), float(weights.sum()))
                size = size if name != "gradient" else float(weights @ np.abs(rows).max(axis=1))
                np.testing.assert_allclose(getattr(sums, name), value, rtol=0, atol=unit * size, err_msg=name)
            assert np.square(rows).dot(metric).max() * (1 - 1e-6) <= sums.largest
            kinked = loss in ("smoothed_hinge", "squared_hinge") and kind == np.float32
            if not kinked:  # of rows on the kink either side may be taken
                np.testing.assert_allclose(sums.curvatures.cpu().numpy(), bends, atol=10 * unit)
                curved = weights * bends[:, 0]
                np.testing.assert_allclose(
                    view.loss_hessian(sums.curvatures, False), (rows * curved[:, None]).T @ rows, atol=1e-5 * n * d
                )
            again = view.loss_sums(loss, W, b, given, metric, True, 0.3)
            assert again is not None and (again.gradient == sums.gradient).all() and again.loss == sums.loss


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("model", [sx.LogisticRegression(tol=1e-9), sx.LinearSVC(tol=1e-9, dual=False)])
def test_fits_by_every_compiler(model: Any, kind: Any, device: str) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((3000, 9)).astype(kind)
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=3000) > 0).astype(int)
    here = type(model)(tol=1e-12).fit(X.astype(np.float64), y)
    rows, labels = torch.as_tensor(X).to(device), torch.as_tensor(y).to(device)
    there = type(model)(**model.get_params()).fit(rows, labels)
    assert there.fit_.engine.startswith(device) and there.fit_.certificate.relative_gap <= 1e-9
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4 * np.abs(here.coef_).max())


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n, d, rows", [(70_001, 8, 9000), (30_000, 7, 4096), (2000, 100, 1000)])
def test_a_sample_has_the_rows_it_names(n: int, d: int, rows: int, kind: Any, device: str) -> None:
    X = np.random.default_rng(0).standard_normal((n, d)).astype(kind)
    y = np.arange(n) % 2
    source = DeviceSource(torch.as_tensor(X).to(device), y, np.arange(1.0, n + 1)).labelled()
    sample, which = source.sample(rows) or (None, None)
    assert sample is not None and sample.n_rows == len(which) >= rows
    places, (block,) = np.asarray(which), sample.blocks()
    assert (np.diff(places) > 0).all() and places.min() >= 0 and places.max() < n
    assert np.histogram(places, 16, (0, n))[0].min() > 0.8 * len(places) / 16  # spread over all of them
    np.testing.assert_array_equal(block.dense(), X[places])
    np.testing.assert_array_equal(block.y, y[places])
    np.testing.assert_array_equal(block.weights, places + 1.0)


@pytest.mark.parametrize(
    "full", ["separatrix.data.device.source.take_runs", "separatrix.data.device.block.DeviceBlock.loss_sums"]
)
def test_a_device_without_memory_left(full: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise torch.cuda.OutOfMemoryError("tried to allocate 2.00 GiB")

    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.standard_normal((2000, 3)))
    y = (X[:, 0] > 0.1).to(torch.uint8)
    monkeypatch.setattr(full, refuse)
    with pytest.raises(MemoryError, match=r"memory of cpu is full: 2000 rows of 3 columns.*2\.00 GiB"):
        sx.LogisticRegression(solver="lbfgs").fit(X, y)
