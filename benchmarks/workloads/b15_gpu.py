"""B15: rows of float32 on a GPU. Every time includes everything but the first fit, which compiles; beside each its share of the
time of a plain read of the rows.

A million rows and a scale below one make a smoke run. Without a CUDA device nothing is measured, and that is said.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any

from benchmarks.children import ChildFailed, call
from benchmarks.result import FAILED, NOT_INSTALLED, Result, Row, Verdict, one_line
from benchmarks.workload import Settings

ROWS, COLUMNS, CLASSES = 50_000_000, 100, 10
# Seconds at 50 million rows.
GOALS = {
    "logistic to a proven 1e-6": 0.012,
    "logistic to a proven 1e-10": 0.018,
    "softmax gradient, 10 classes": 0.007,
    "LDA, 10 classes": 0.008,
    "GaussianNB, 10 classes": 0.005,
}
SHARES = {f"logistic gradient, {d} columns": 0.9 for d in (8, 16, 32, 100, 300, 1000)} | {
    "logistic gradient, 100 columns of float64": 0.9
}
FLOOR, STREAMED = "plain read", 50
# Sparse rows: a tenth as many, entries of a row, columns; bytes that a plain read takes in a second.
SPARSE_COLUMNS, ENTRIES, READ = 100_000, 60, 4.5e12


def timed(work: Callable[[], Any], repeats: int) -> list[float]:
    torch: Any = import_module("torch")
    work()
    seconds = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return seconds


def rows_there(n: int, d: int, dtype: Any) -> Any:
    torch: Any = import_module("torch")
    made = torch.Generator("cuda").manual_seed(0)
    X = torch.empty((n, d), dtype=dtype, device="cuda")
    for start in range(0, n, 5_000_000):
        X[start : start + 5_000_000].normal_(generator=made)
    return X


def two_classes(X: Any) -> Any:
    torch: Any = import_module("torch")
    made = torch.Generator("cuda").manual_seed(1)
    w = torch.randn(X.shape[1], generator=made, device="cuda", dtype=X.dtype) / 10
    noise = torch.empty(len(X), device="cuda", dtype=X.dtype).uniform_(1e-6, 1 - 1e-6, generator=made).logit()
    return (X @ w + noise > 0).to(torch.uint8)


def lbfgs(X: Any, y: Any, target: float) -> tuple[float, float]:
    """Seconds of torch.optim.LBFGS to an objective, C = 1, and the objective it reached."""
    torch: Any = import_module("torch")
    w = torch.zeros(X.shape[1], device="cuda", requires_grad=True)
    b = torch.zeros(1, device="cuda", requires_grad=True)
    signs, n = 1.0 - 2.0 * y.float(), len(X)
    optimiser = torch.optim.LBFGS(
        [w, b], max_iter=1, history_size=20, line_search_fn="strong_wolfe", tolerance_grad=0, tolerance_change=0
    )

    def loss() -> Any:
        optimiser.zero_grad()
        value = torch.nn.functional.softplus(signs * (X @ w + b)).sum(dtype=torch.float64) / n + 0.5 * (w @ w) / n
        value.backward()
        return value

    torch.cuda.synchronize()
    start, value = time.perf_counter(), float("inf")
    for _ in range(50):
        optimiser.step(loss)
        value = float(loss().detach()) * n
        if value <= target:
            break
    torch.cuda.synchronize()
    return time.perf_counter() - start, value


def gradients(rows: int, repeats: int) -> dict[str, list[float]]:
    """Seconds of one pass for as many bytes in rows of other lengths, and of a plain read of them."""
    import numpy as np

    torch: Any = import_module("torch")
    from separatrix.data.device.block import DeviceBlock

    seconds = {}
    for d, kind in (
        (8, torch.float32),
        (16, torch.float32),
        (32, torch.float32),
        (100, torch.float32),
        (300, torch.float32),
        (1000, torch.float32),
        (100, torch.float64),
    ):
        n = rows * COLUMNS // d // (2 if kind == torch.float64 else 1)
        X = rows_there(n, d, kind)
        block = DeviceBlock(X, torch.randint(0, 2, (n,), device="cuda", dtype=torch.uint8))
        W, b = np.full((1, d), 0.01), np.zeros(1)
        name = f"logistic gradient, {d} columns" + (" of float64" if kind == torch.float64 else "")
        seconds[name] = timed(partial(block.loss_sums, "logistic", W, b, None, None, False), repeats)
        if d == COLUMNS:
            seconds[f"{FLOOR} of {name.partition(', ')[2]}"] = timed(X.sum, repeats)
        del X, block
    return seconds


def fit_into(fits: list[Any], tol: float, X: Any, y: Any) -> None:
    import separatrix as sx

    fits.append(sx.LogisticRegression(tol=tol).fit(X, y))


def in_child(rows: int, repeats: int) -> dict[str, Any]:
    """Seconds of everything, and what the fits proved."""
    import numpy as np

    torch: Any = import_module("torch")
    import separatrix as sx
    from separatrix.data.device.block import DeviceBlock
    from separatrix.data.device.hints import Hints

    if not torch.cuda.is_available():
        raise RuntimeError("no CUDA device")
    seconds: dict[str, list[float]] = gradients(rows, repeats)
    X = rows_there(rows, COLUMNS, torch.float32)
    y = two_classes(X)
    many = torch.randint(0, CLASSES, (rows,), device="cuda", dtype=torch.uint8)
    block = DeviceBlock(X, many)
    block.near(Hints.of(X))  # as the rows of every source
    W, b = np.full((CLASSES, COLUMNS), 0.01), np.zeros(CLASSES)
    seconds["softmax gradient, 10 classes"] = timed(
        lambda: block.loss_sums("softmax", W, b, None, None, False), repeats
    )
    proven = {}
    for tol in (1e-6, 1e-10):
        name = f"logistic to a proven {tol:g}".replace("e-0", "e-")
        fits: list[Any] = []
        seconds[name] = timed(partial(fit_into, fits, tol, X, y), repeats)
        proof = fits[-1].fit_.certificate
        proven[name] = f"gap {proof.gap / proof.objective:.1e} in {fits[-1].fit_.passes} passes"
    models = {
        "LDA": sx.LinearDiscriminantAnalysis,
        "GaussianNB": sx.GaussianNB,
        "RidgeClassifier": sx.RidgeClassifier,
        "QDA": sx.QuadraticDiscriminantAnalysis,
    }
    for name, model in models.items():
        seconds[f"{name}, 10 classes"] = timed(partial(model().fit, X, many), repeats)
    seconds["softmax to a proven 1e-4"] = timed(lambda: sx.LogisticRegression(tol=1e-4).fit(X, many), 2)
    best = fits[-1].fit_.certificate.objective
    took, reached = lbfgs(X, y, best * (1 + 1e-6))
    seconds["PyTorch L-BFGS to 1e-6"] = [took]
    proven["PyTorch L-BFGS to 1e-6"] = f"relative gap {reached / best - 1:.1e}"
    return {"seconds": seconds, "proven": proven, "device": torch.cuda.get_device_name(0)}


def on_the_host(rows: int) -> list[float]:
    """Seconds of our fit of the same rows on the CPU of the machine."""
    import separatrix as sx

    torch: Any = import_module("torch")

    X = rows_there(rows, COLUMNS, torch.float32)
    labels = two_classes(X).cpu().numpy()
    numbers = X.cpu().numpy()
    del X
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        sx.LogisticRegression(tol=1e-6).fit(numbers, labels)
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def from_the_host(rows: int, repeats: int) -> list[float]:
    """Seconds of one gradient pass over rows that stay in the memory of the host."""
    import numpy as np

    from separatrix.data.device.streamed import StreamedSource

    X = rows_there(rows, COLUMNS, import_module("torch").float32)
    labels, numbers = two_classes(X).cpu().numpy(), X.cpu().numpy()
    del X
    source = StreamedSource(numbers, labels, None, "cuda").labelled()
    W, b = np.full((1, COLUMNS), 0.01), np.zeros(1)

    def gradient(block: Any) -> Any:
        return block.loss_sums("logistic", W, b, None, None, False)

    return timed(partial(source.map, gradient), repeats)


def sparse_there(n: int) -> tuple[Any, Any]:
    """A CSR tensor of rows of length one with an entry in each of 60 ranges of columns, and labels of two classes."""
    torch: Any = import_module("torch")
    made = torch.Generator("cuda").manual_seed(0)
    width = SPARSE_COLUMNS // ENTRIES
    columns = torch.randint(0, width, (n, ENTRIES), generator=made, device="cuda")
    columns += width * torch.arange(ENTRIES, device="cuda")
    values = torch.empty((n, ENTRIES), device="cuda").uniform_(0.1, 1.0, generator=made)
    values /= values.norm(dim=1, keepdim=True)
    w = 3.0 * torch.randn(SPARSE_COLUMNS, generator=made, device="cuda")
    noise = torch.empty(n, device="cuda").uniform_(1e-6, 1 - 1e-6, generator=made).logit()
    y = ((values * w[columns]).sum(dim=1) + noise > 0).to(torch.uint8)
    starts = ENTRIES * torch.arange(n + 1, device="cuda")
    return torch.sparse_csr_tensor(starts, columns.ravel(), values.ravel(), size=(n, SPARSE_COLUMNS)), y


def sparse_lbfgs(X: Any, across: Any, y: Any, target: float) -> tuple[float, float]:
    """Seconds of torch.optim.LBFGS with products of torch.sparse, its transpose given, and the objective it reached."""
    torch: Any = import_module("torch")
    n, signs = X.shape[0], 1.0 - 2.0 * y.float()
    w = torch.zeros(X.shape[1] + 1, device="cuda", requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [w], max_iter=1, history_size=20, line_search_fn="strong_wolfe", tolerance_grad=0, tolerance_change=0
    )

    def loss() -> Any:
        with torch.no_grad():
            v = signs * (X @ w[:-1] + w[-1])
            slopes = signs * torch.sigmoid(v) / n
            w.grad = torch.cat([across @ slopes + w[:-1] / n, slopes.sum()[None]])
            value = torch.nn.functional.softplus(v).sum(dtype=torch.float64) + 0.5 * (w[:-1] @ w[:-1])
            return value / n

    torch.cuda.synchronize()
    start, value = time.perf_counter(), float("inf")
    for _ in range(300):
        optimiser.step(loss)
        value = float(loss()) * n
        if value <= target:
            break
    torch.cuda.synchronize()
    return time.perf_counter() - start, value


def sparse_in_child(rows: int, repeats: int) -> dict[str, Any]:
    """Seconds of sparse logistic regression, and what it proved."""
    import numpy as np

    torch: Any = import_module("torch")
    from separatrix.data.device.csr import csr_rows
    from separatrix.data.device.sparse_block import SparseDeviceBlock

    X, y = sparse_there(rows)
    stored = csr_rows(X)
    by_column = stored.by_column
    across = torch.sparse_csr_tensor(by_column.starts, by_column.index.long(), by_column.values, size=X.shape[::-1])
    block = SparseDeviceBlock(stored, y)
    W, b = np.full((1, SPARSE_COLUMNS), 0.01), np.zeros(1)
    seconds = {"sparse logistic gradient": timed(lambda: block.loss_sums("logistic", W, b, None, None, False), repeats)}
    fits: list[Any] = []
    seconds["sparse logistic to a proven 1e-6"] = timed(partial(fit_into, fits, 1e-6, X, y), repeats)
    proof = fits[-1].fit_.certificate
    took, reached = sparse_lbfgs(X, across, y, proof.objective * (1 + 1e-6))
    seconds["torch.sparse L-BFGS to 1e-6"] = [took]
    proven = {
        "sparse logistic to a proven 1e-6": f"gap {proof.gap / proof.objective:.1e} in {fits[-1].fit_.passes} passes",
        "torch.sparse L-BFGS to 1e-6": f"relative gap {reached / proof.objective - 1:.1e}",
    }
    return {"seconds": seconds, "proven": proven}


def sparse_rows(rows: int, repeats: int) -> list[Row]:
    """Rows of the result for sparse data, each with its share of the speed of one plain read of the stored entries."""
    size = f"{rows:,} × {SPARSE_COLUMNS:,}".replace(",", " ") + f", {ENTRIES} a row"
    try:
        found = call(f"{__name__}:sparse_in_child", rows=rows, repeats=repeats)
    except ChildFailed as error:
        return [Row(f"sparse logistic, {size}", "context", status=FAILED, note=one_line(str(error)))]
    floor, made = rows * ENTRIES * 8 / READ, []
    for name, times in found["seconds"].items():
        seconds = [float(t) for t in times]
        note = f"{floor / median(seconds):.1%} of the speed of one read of the entries"
        proven = found["proven"].get(name)
        made.append(Row(f"{name}, {size}", "context", seconds=seconds, note="; ".join(filter(None, [proven, note]))))
    return made


@dataclass(frozen=True)
class DeviceWorkload:
    id: str = "B15"
    title: str = "rows of float32 on a GPU, 50 million × 100"

    def run(self, settings: Settings) -> Result:
        rows = max(1_000_000, int(ROWS * settings.scale))
        result = Result(
            [],
            quality="gaps are proven by our own certificate, in the same fit",
            data=f"{rows:,} × {COLUMNS}".replace(",", " "),
        )
        try:
            found = call(f"{__name__}:in_child", rows=rows, repeats=max(3, settings.repeats))
        except ChildFailed as error:
            missing = "CUDA" in str(error) or "torch" in str(error)
            result.verdicts.append(Verdict("a fit on a GPU", one_line(str(error)), None if missing else False))
            result.rows.append(
                Row("GPU", "context", status=NOT_INSTALLED if missing else FAILED, note=one_line(str(error)))
            )
            return result
        result.data += f" on one {found['device']}"
        seconds = {name: [float(t) for t in times] for name, times in found["seconds"].items()}
        floors = {
            False: median(seconds[f"{FLOOR} of 100 columns"]),
            True: median(seconds[f"{FLOOR} of 100 columns of float64"]),
        }
        for name, times in seconds.items():
            share = floors["float64" in name] / median(times)
            note = f"{share:.0%} of a plain read's speed"
            result.rows.append(
                Row(name, "context", seconds=times, note="; ".join(filter(None, [found["proven"].get(name), note])))
            )
            if name in GOALS and rows == ROWS:
                result.verdicts.append(
                    Verdict(
                        f"{name}: ≤ {1000 * GOALS[name]:g} ms",
                        f"{1000 * median(times):.1f} ms",
                        median(times) <= GOALS[name],
                    )
                )
            if name in SHARES:
                result.verdicts.append(
                    Verdict(
                        f"{name}: ≥ {SHARES[name]:.0%} of a plain read's speed", f"{share:.0%}", share >= SHARES[name]
                    )
                )
        result.rows.extend(sparse_rows(rows // 10, max(3, settings.repeats)))
        row = Row("logistic gradient, rows in the memory of the host", "context")
        try:
            row.seconds = call(f"{__name__}:from_the_host", rows=rows, repeats=max(3, settings.repeats))
            speed = rows * COLUMNS * 4 / median(row.seconds) / 1e9
            row.note = f"{speed:.0f} GB/s"
            result.verdicts.append(Verdict(f"{row.name}: ≥ {STREAMED} GB/s", f"{speed:.0f} GB/s", speed >= STREAMED))
        except ChildFailed as error:
            row.status, row.note = FAILED, one_line(str(error))
        result.rows.append(row)
        for threads in (1, 4, 16):
            if threads <= len(os.sched_getaffinity(0)):
                chosen = dict.fromkeys(
                    ("SEPARATRIX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), str(threads)
                )
                row = Row(f"our fit on the CPU to 1e-6, {threads} threads", "context")
                try:
                    row.seconds = call(f"{__name__}:on_the_host", chosen, rows=rows)
                except ChildFailed as error:
                    row.status, row.note = FAILED, one_line(str(error))
                result.rows.append(row)
        return result


WORKLOAD = DeviceWorkload()
