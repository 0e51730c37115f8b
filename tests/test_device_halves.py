"""Sums over rows on a device by tensor cores of half precision: near those of double precision, the same bits, or not taken."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import separatrix as sx
from separatrix.data.device import centred
from separatrix.data.device.block import DeviceBlock
from separatrix.data.device.hints import Hints
from separatrix.data.device.labels import label_counts
from separatrix.data.device.source import device_source
from separatrix.kernels.device import class_sums, cuda, guesses, moments

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-engines sets it up")

CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
)
on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
SHAPES = [(10_003, 100, 10), (4001, 101, 3), (999, 30, 2), (5000, 128, 16), (3000, 17, 31), (65, 100, 10), (7, 8, 7)]


def rows(n: int, d: int, classes: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows of many scales and large means, and codes of which the last class has one row."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-4, 4, d)
    X = (rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d))) + 50.0) * scale
    codes = rng.integers(0, max(1, classes - 1), n)
    codes[n // 2] = classes - 1
    return X.astype(np.float32), codes.astype(np.uint8)


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("n, classes", [(0, 3), (1, 1), (15, 4), (10_001, 2), (100_003, 17), (5000, 256)])
def test_labels_are_counted(n: int, classes: int, device: str) -> None:
    codes = np.random.default_rng(n).integers(0, classes, n).astype(np.uint8)
    for part in (slice(None), slice(1, None), slice(3, -2)):
        found = label_counts(torch.as_tensor(codes).to(device)[part], classes)
        np.testing.assert_array_equal(found, np.bincount(codes[part], minlength=classes))


@pytest.mark.parametrize(
    "capability, shared, taken, by_warp_groups",
    [
        ("75", 64, False, False),
        ("80", 163, False, False),
        ("90", 227, True, True),
        ("100", 227, True, False),
        ("120", 99, False, False),
    ],
)
def test_kernels_are_left_to_devices_that_have_what_they_take(
    capability: str, shared: int, taken: bool, by_warp_groups: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes = {"MaxSharedMemoryPerBlockOptin": shared << 10}
    device = SimpleNamespace(compute_capability=capability, attributes=attributes)
    there = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True, Device=lambda: device))
    monkeypatch.setitem(sys.modules, "cupy", there)
    cuda._found.cache_clear()
    try:
        assert cuda.available() == taken
        assert cuda.by_warp_groups() == by_warp_groups
    finally:
        cuda._found.cache_clear()


@on_cuda
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(
    "n, d, classes", [*SHAPES[:3], (5000, 112, 16), *SHAPES[4:], (70_000, 64, 9), (2000, 119, 8), (3000, 96, 32)]
)
def test_products_and_class_sums(n: int, d: int, classes: int, apart: bool) -> None:
    X, codes = rows(n, d, classes)
    guess = np.array([X[codes == k][:20].mean(axis=0) if (codes == k).any() else X[0] for k in range(classes)])
    guess = guess.astype(np.float32).astype(np.float64)
    unit = np.exp2(-np.round(np.log2(X.std(axis=0, dtype=np.float64))))
    guess = guess if apart else X.mean(axis=0, dtype=np.float64)[None].astype(np.float32).astype(np.float64)
    z = (X - guess[codes if apart else 0]) * unit
    there = [torch.as_tensor(a).to("cuda") for a in (X, codes)] + [guess, unit]
    assert moments.fits(there[0], there[1], classes)
    first, products = moments.moment_sums(*there, classes)()
    size = np.sqrt(np.einsum("ij,ij->j", z, z))
    assert np.abs(products - z.T @ z).max() <= 4e-7 * np.outer(size, size).max()
    assert (np.abs(products - z.T @ z) <= 4e-7 * np.outer(size, size)).all()
    for k in range(classes):
        own = z[codes == k]
        assert (np.abs(first[k] - own.sum(axis=0)) <= 4e-7 * np.sqrt(len(own) * (own**2).sum(axis=0)) + 1e-30).all()
    for _ in range(9):
        again = moments.moment_sums(*there, classes)()
        assert (again[0] == first).all() and (again[1] == products).all()


@on_cuda
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "n, d, classes",
    [
        (10_003, 100, 10),
        (4001, 101, 3),
        (999, 30, 2),
        (65, 100, 10),
        (31, 64, 3),
        (1, 24, 1),
        (300_007, 96, 12),
        (3000, 300, 7),
    ],
)
def test_sums_of_classes(n: int, d: int, classes: int, weighted: bool) -> None:
    """By registers and by shared memory alike; rows of weight zero may hold anything."""
    assert class_sums.fits(d, classes)
    X, codes = rows(n, d, classes)
    weights = np.random.default_rng(3).integers(0, 3, n).astype(np.float64) if weighted else None
    counted = np.ones(n) if weights is None else weights
    guess = np.array([X[codes == k].mean(axis=0) if (codes == k).any() else X[0] for k in range(classes)]).astype(
        np.float32
    )
    z = X.astype(np.float64) - guess[codes]
    X[counted == 0] = np.nan
    z[counted == 0] = 0.0
    there = [None if a is None else torch.as_tensor(a).to("cuda") for a in (X, codes, weights, guess)]
    found = class_sums.class_sums(*there, classes)
    member = np.eye(classes)[codes] * counted[:, None]
    np.testing.assert_array_equal(found[0], member.sum(axis=0))
    size = np.sqrt(member.T @ z**2)
    assert (np.abs(found[1] - member.T @ z) <= 1e-6 * np.sqrt(member.sum(axis=0))[:, None] * size + 1e-30).all()
    assert (np.abs(found[2] - member.T @ z**2) <= 1e-6 * size**2 + 1e-30).all()
    for _ in range(9):
        again = class_sums.class_sums(*there, classes)
        assert all((a == b).all() for a, b in zip(again, found, strict=True))


@on_cuda
@pytest.mark.parametrize("n, d, classes", [(10_003, 100, 10), (1, 3, 2), (700, 257, 200), (4097, 31, 2)])
def test_guesses_of_class_means(n: int, d: int, classes: int) -> None:
    X, codes = rows(n, d, classes)
    here, there = torch.as_tensor(X).to("cuda"), torch.as_tensor(codes).to("cuda")
    assert guesses.fits(here, there, classes)
    means, overall, within = guesses.class_guesses(here, there, classes)
    step = max(1, n // 2048)
    some, own = X[::step][:2048].astype(np.float64), codes[::step][:2048]
    size = np.abs(some).max(axis=0)
    np.testing.assert_allclose(overall / size, some.mean(axis=0) / size, atol=1e-12)
    left = 0.0
    for k in range(classes):
        if not (own == k).any():
            assert np.isnan(means[k]).all()
            continue
        mean = some[own == k].mean(axis=0)
        np.testing.assert_allclose(means[k] / size, mean / size, atol=1e-12)
        left = left + np.square(some[own == k] - mean).sum(axis=0)
    np.testing.assert_allclose(within / size**2, left / len(some) / size**2, atol=1e-12)


@on_cuda
@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-6, 0.3, 30.0, 1e3])
@pytest.mark.parametrize("n, d, classes", [*SHAPES[:4], (3000, 17, 24), *SHAPES[5:], (333, 3, 3), (2000, 64, 5)])
def test_the_softmax_within_its_precision(n: int, d: int, classes: int, size: float) -> None:
    """The gradient and the scores are off by no more than the precision that the proof counts with."""
    X, codes = rows(n, d, classes)
    rng, spread = np.random.default_rng(1), X.std(axis=0, dtype=np.float64)
    W, b = size * rng.standard_normal((classes, d)) / spread, rng.standard_normal(classes)
    b -= W @ X.mean(axis=0, dtype=np.float64)
    here, found = torch.as_tensor(X).to("cuda"), []
    for precise in (False, True):
        block = DeviceBlock(here, codes)
        block.near(Hints.of(here))
        block.precise = precise
        found.append(block.loss_sums("softmax", W, b, None, 1.0 / np.square(spread), False))
    quick, exact = found
    assert quick.precision > 1e-7 > exact.precision  # the kernels that were meant
    about = X - X.mean(axis=0, dtype=np.float64)
    reach = np.sqrt(quick.squares * np.square(about).sum(axis=0))
    scores = quick.precision * min(d, 8) * (np.abs(about) @ np.abs(W).T).max(axis=1)
    moved = (scores[:, None] * np.abs(about)).sum(axis=0)
    apart = np.abs(X.mean(axis=0, dtype=np.float64)) * np.abs(quick.slopes - exact.slopes).max()
    assert (np.abs(quick.gradient - exact.gradient) <= quick.precision * reach + moved + apart).all()
    assert abs(quick.loss - exact.loss) <= scores.sum() + 1e-6 * exact.loss
    assert exact.largest <= quick.largest * (1 + 1e-6) <= 1.02 * exact.largest
    again = block_sums(here, codes, W, b, spread)
    assert (again.gradient == quick.gradient).all() and again.loss == quick.loss


def block_sums(here: Any, codes: Any, W: Any, b: Any, spread: Any) -> Any:
    block = DeviceBlock(here, codes)
    block.near(Hints.of(here))
    return block.loss_sums("softmax", W, b, None, 1.0 / np.square(spread), False)


@on_cuda
def test_numbers_out_of_range_are_summed_otherwise() -> None:
    X, codes = rows(5000, 20, 3)
    X[2501] *= 1e8
    here = torch.as_tensor(X).to("cuda")
    found = block_sums(here, codes, np.full((3, 20), 1e-12), np.zeros(3), X.std(axis=0, dtype=np.float64))
    assert np.isfinite(found.loss) and np.isfinite(found.gradient).all()


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("kind", ["plain", "correlated", "dependent", "constant", "outlier", "far classes", "sorted"])
def test_discriminants_of_many_rows(kind: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the rows are, the answer is that of the array: halves are taken only where their digits suffice."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((20_000, 12)) + 3.0, rng.integers(0, 3, 20_000)
    X[:, 0] += 0.2 * y
    if kind in ("correlated", "dependent"):
        X[:, 1] = X[:, 2] + (0.05 if kind == "correlated" else 1e-4) * X[:, 1]
    elif kind == "constant":
        X[:, 3] = 7.0
    elif kind == "outlier":
        X[777, 5] = 1e7
    elif kind == "far classes":
        X += 1e3 * y[:, None]
    elif kind == "sorted":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    X = X.astype(np.float32)
    here, there = torch.as_tensor(X).to(device), torch.as_tensor(y).to(device)
    monkeypatch.setattr(centred, "_MANY", 1)
    quick = sx.LinearDiscriminantAnalysis().fit(here, there)
    exact = sx.LinearDiscriminantAnalysis().fit(X.astype(np.float64), y)
    scale = np.abs(exact.coef_).max(axis=1, keepdims=True)
    assert (np.abs(quick.coef_ - exact.coef_) <= 1e-5 * scale).all()
    np.testing.assert_allclose(quick.means_, exact.means_, rtol=1e-6)


@on_cuda
def test_the_last_digits_take_one_pass_in_double_precision() -> None:
    made = torch.Generator("cuda").manual_seed(0)
    X = torch.randn((4_000_000, 20), generator=made, device="cuda")
    y = (X[:, 0] + X[:, 1] + torch.randn(len(X), generator=made, device="cuda") > 0).to(torch.uint8)
    fit = sx.LogisticRegression(tol=1e-10).fit(X, y).fit_
    assert fit.certificate.relative_gap <= 1e-10 and fit.passes <= 4


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("kind", ["uint8", "int8", "int64", "bool", "int32"])
@pytest.mark.parametrize("values", [[0, 1], [1, 2], [0, 3, 7], [5], list(range(40)), [-3, 2]])
def test_labels_are_found_and_counted_at_once(kind: str, values: list[int], device: str) -> None:
    """Classes, codes and counts of labels on a device are those of the array, whatever their type and gaps."""
    if (kind == "bool" and not set(values) <= {0, 1}) or (kind == "uint8" and min(values) < 0):
        pytest.skip("the type does not hold these labels")
    y = np.random.default_rng(0).choice(values, 1003).astype(kind)
    X = torch.zeros((1003, 2), device=device)
    source = device_source(X, torch.as_tensor(y).to(device), None).labelled()
    known, codes = np.unique(y, return_inverse=True)
    assert source.classes.dtype == y.dtype
    np.testing.assert_array_equal(source.classes, known)
    np.testing.assert_array_equal(source.targets(), codes)
    (block,) = source.blocks()
    np.testing.assert_array_equal(block.class_rows(len(known)), np.bincount(codes))
    np.testing.assert_array_equal(
        block.part(slice(3, 500)).class_rows(len(known)), np.bincount(codes[3:500], minlength=len(known))
    )
