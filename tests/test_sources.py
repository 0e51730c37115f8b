"""The same numbers from every kind of storage, on any number of threads, without copying or changing what was given."""

from __future__ import annotations

import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from estimators import each, having, named
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier, is_regressor

import separatrix
import separatrix.data.arrays
import separatrix.data.files
import separatrix.data.source
from separatrix import (
    LinearDiscriminantAnalysis,
    Ridge,
    RidgeClassifier,
    Source,
    as_source,
    scan_csv,
    scan_parquet,
)
from separatrix.data import DenseBlock, Intercept, Mapped, SparseBlock, Standardised
from separatrix.data.centred.dense_rows import rows_at
from separatrix.data.source import rows_per_block

pytestmark = pytest.mark.filterwarnings(
    "ignore:X does not have valid feature names", "ignore:Constructing a DIA matrix"
)

ESTIMATORS = list(named("lda", "qda, shrunk", "fisher", "ridge classifier", "ridge").values())
MERGED = having(basic=True, family=("discriminant", "least_squares"), parts=True)
NAMES = ["a", "b", "c", "d", "e"]


def matrices(n: int) -> dict[str, np.ndarray]:
    """Three matrices that every dtype meant for them holds exactly."""
    rng = np.random.default_rng(0)
    mixed = np.round(rng.standard_normal((n, 5)) * 64) / 64
    mixed[:, 1], mixed[:, 4] = rng.integers(-4, 5, n), rng.integers(0, 9, n)
    mixed[:, 2] = rng.random(n) < 0.3
    mixed[rng.random(n) < 0.6, 3] = 0.0
    return {"mixed": mixed, "whole": rng.integers(-5, 6, (n, 5)) * 1.0, "flags": (rng.random((n, 5)) < 0.4) * 1.0}


def targets(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    score = X @ [0.5, 0.3, 0.4, 0.2, 0.1] + rng.standard_normal(len(X))
    labels = np.array(["green", "red", "blue"])[np.digitize(score, np.quantile(score, [0.3, 0.7]))]
    return labels, score


def memory_mapped(X: np.ndarray, folder: Path) -> np.ndarray:
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def read_only(X: np.ndarray, folder: Path) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def strided(X: np.ndarray, folder: Path) -> np.ndarray:
    large = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
    large[::2, ::3] = X
    return large[::2, ::3]


def backwards(X: np.ndarray, folder: Path) -> np.ndarray:
    return X[::-1, ::-1].copy()[::-1, ::-1]


def long_indices(X: np.ndarray, folder: Path) -> Any:
    rows = sp.csr_array(X)
    return sp.csr_array((rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)), shape=X.shape)


def unsorted(X: np.ndarray, folder: Path) -> Any:
    rows = sp.csr_matrix(X)
    for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        rows.indices[a:b], rows.data[a:b] = rows.indices[a:b][::-1].copy(), rows.data[a:b][::-1].copy()
    return sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=X.shape)


def duplicated(X: np.ndarray, folder: Path) -> Any:
    """Every entry as a sum of two stored ones."""
    rows = sp.csr_array(X)
    indices, data = np.repeat(rows.indices, 2), np.repeat(rows.data, 2) * np.tile([0.25, 0.75], rows.nnz)
    return sp.csr_array((data, indices, 2 * rows.indptr), shape=X.shape)


def explicit_zeros(X: np.ndarray, folder: Path) -> Any:
    n, d = X.shape
    return sp.csr_array((X.ravel().copy(), np.tile(np.arange(d), n), d * np.arange(n + 1)), shape=X.shape)


def columns(X: np.ndarray) -> dict[str, np.ndarray]:
    """The matrix "mixed" in the types its columns suggest."""
    a, b, c, d, e = X.T
    return {"a": a, "b": b.astype(np.int64), "c": c.astype(bool), "d": d.astype(np.float32), "e": e.astype(np.uint8)}


def nullable(X: np.ndarray, folder: Path) -> Any:
    kinds = {"a": "Float64", "b": "Int64", "c": "boolean", "d": "Float32", "e": "UInt8"}
    return pd.DataFrame(columns(X)).astype(kinds)


def odd_index(X: np.ndarray, folder: Path) -> Any:
    return pd.DataFrame(X, columns=NAMES, index=np.arange(len(X)) % 7)


def many_chunks(X: np.ndarray, folder: Path) -> Any:
    return pl.concat([pl.DataFrame(columns(part)) for part in np.array_split(X, 5)], rechunk=False)


def chunked_table(X: np.ndarray, folder: Path) -> Any:
    return pa.concat_tables([pa.table(columns(part)) for part in np.array_split(X, 5)])


def parquet(X: np.ndarray, folder: Path) -> Path:
    labels, score = targets(X)
    table = pa.table(columns(X) | {"label": labels, "score": score})
    pq.write_table(table, folder / "X.parquet", row_group_size=100)
    return folder / "X.parquet"


def csv(X: np.ndarray, folder: Path) -> Path:
    labels, score = targets(X)
    pyarrow.csv.write_csv(pa.table(columns(X) | {"label": labels, "score": score}), folder / "X.csv")
    return folder / "X.csv"


class Kind(NamedTuple):
    """How to store a matrix, which of the matrices it can hold, and to how many digits."""

    make: Callable[[np.ndarray, Path], Any]
    matrix: str = "mixed"
    rtol: float = 1e-10


def cast(dtype: Any, order: Any = "C") -> Callable[[np.ndarray, Path], np.ndarray]:
    return lambda X, folder: X.astype(dtype, order=order)


def sparse(format: Callable[..., Any], dtype: Any = np.float64) -> Callable[[np.ndarray, Path], Any]:
    return lambda X, folder: format(X.astype(dtype))


KINDS = {
    "numpy C": Kind(cast(float)),
    "numpy Fortran": Kind(cast(float, "F")),
    "numpy read-only": Kind(read_only),
    "numpy memory-mapped": Kind(memory_mapped),
    "numpy slices": Kind(strided),
    "numpy backwards": Kind(backwards),
    "numpy big-endian": Kind(cast(">f8")),
    "numpy float16": Kind(cast(np.float16)),
    "numpy float32": Kind(cast(np.float32), rtol=1e-5),
    "numpy float32 Fortran": Kind(cast(np.float32, "F"), rtol=1e-5),
    "numpy int64": Kind(cast(np.int64), "whole"),
    "numpy int8 Fortran": Kind(cast(np.int8, "F"), "whole"),
    "numpy uint16": Kind(cast(np.uint16), "flags"),
    "numpy bool": Kind(cast(bool), "flags"),
    "list of lists": Kind(lambda X, folder: X.tolist()),
    "csr matrix": Kind(sparse(sp.csr_matrix)),
    "csr array": Kind(sparse(sp.csr_array)),
    "csr float32": Kind(sparse(sp.csr_array, np.float32), rtol=1e-5),
    "csr int": Kind(sparse(sp.csr_array, np.int32), "whole"),
    "csr bool": Kind(sparse(sp.csr_array, bool), "flags"),
    "csr 64-bit indices": Kind(long_indices),
    "csr unsorted": Kind(unsorted),
    "csr duplicates": Kind(duplicated),
    "csr explicit zeros": Kind(explicit_zeros),
    "csc matrix": Kind(sparse(sp.csc_matrix)),
    "csc array": Kind(sparse(sp.csc_array)),
    "coo matrix": Kind(sparse(sp.coo_matrix)),
    "coo array": Kind(sparse(sp.coo_array)),
    "lil matrix": Kind(sparse(sp.lil_matrix)),
    "lil array": Kind(sparse(sp.lil_array)),
    "dia matrix": Kind(sparse(sp.dia_matrix)),
    "dia array": Kind(sparse(sp.dia_array)),
    "dok array": Kind(sparse(sp.dok_array)),
    "bsr array": Kind(sparse(sp.bsr_array)),
    "pandas": Kind(lambda X, folder: pd.DataFrame(X, columns=NAMES)),
    "pandas float32": Kind(lambda X, folder: pd.DataFrame(X.astype(np.float32), columns=NAMES), rtol=1e-5),
    "pandas bool": Kind(lambda X, folder: pd.DataFrame(X.astype(bool), columns=NAMES), "flags"),
    "pandas mixed": Kind(lambda X, folder: pd.DataFrame(columns(X))),
    "pandas objects": Kind(lambda X, folder: pd.DataFrame(X, columns=NAMES).astype(object)),
    "pandas nullable": Kind(nullable),
    "pandas on arrow": Kind(lambda X, folder: pd.DataFrame(columns(X)).convert_dtypes(dtype_backend="pyarrow")),
    "pandas odd index": Kind(odd_index),
    "pandas integer names": Kind(lambda X, folder: pd.DataFrame(X)),
    "polars": Kind(lambda X, folder: pl.DataFrame(X, schema=NAMES)),
    "polars mixed": Kind(lambda X, folder: pl.DataFrame(columns(X))),
    "polars chunks": Kind(many_chunks),
    "arrow table": Kind(lambda X, folder: pa.table(columns(X))),
    "arrow chunks": Kind(chunked_table),
    "arrow record batch": Kind(lambda X, folder: pa.RecordBatch.from_pydict(columns(X))),
    "parquet": Kind(parquet),
    "csv": Kind(csv),
}


def as_given(storage: Any, target: str) -> Any:
    """What a user passes as X: files are scanned, everything else stays as it is."""
    if not isinstance(storage, Path):
        return storage
    return (scan_parquet if storage.suffix == ".parquet" else scan_csv)(storage, target=target, features=NAMES)


def fitted(estimator: Any, storage: Any, labels: np.ndarray, score: np.ndarray) -> Any:
    name, y = ("score", score) if is_regressor(estimator) else ("label", labels)
    X = as_given(storage, name)
    return clone(estimator).fit(X) if isinstance(X, Source) else clone(estimator).fit(X, y)


def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Everything a model says about rows, and its learned numbers."""
    learned = {
        name: getattr(model, name) for name in ("coef_", "intercept_", "means_", "scalings_") if name in dir(model)
    }
    asked = {
        name: getattr(model, name)(X)
        for name in ("predict_log_proba", "decision_function", "transform", "log_density")
        if hasattr(model, name)
    }
    return learned | asked | ({"predict": model.predict(X)} if is_regressor(model) else {})


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], rtol: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert np.shape(found[name]) == np.shape(value), name
        np.testing.assert_allclose(found[name], value, rtol=rtol, atol=rtol * np.abs(value).max(), err_msg=name)


def frozen(storage: Any) -> Any:
    """What can be compared after a fit with what it was before."""
    if isinstance(storage, np.ndarray):
        return storage.dtype, storage.flags.writeable, storage.tobytes()
    if sp.issparse(storage):
        held = {name: np.array(part) for name, part in vars(storage).items() if isinstance(part, np.ndarray)}
        return storage.format, storage.dtype, {name: (part.dtype, part.tolist()) for name, part in held.items()}
    if isinstance(storage, pd.DataFrame):
        return storage.dtypes.tolist(), storage.index.tolist(), storage.to_dict("list")
    return storage if isinstance(storage, list | Path) else storage.to_pandas().to_dict("list")


N = 240


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 512 rows, or 4096 sparse ones: the least there are."""
    monkeypatch.setattr(separatrix.data.source, "_TARGET_BYTES", 1 << 12)
    monkeypatch.setattr(separatrix.data.files, "_BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(separatrix.data.arrays, "_WORTH_SHARING", 1)


@pytest.fixture(scope="module")
def references() -> dict[tuple[str, str], Any]:
    result = {}
    for name, X in matrices(N).items():
        for estimator in ESTIMATORS:
            result[name, repr(estimator)] = answers(fitted(estimator, X, *targets(X)), X)
    return result


# -- the same numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_storage_gives_the_same_numbers_and_stays_as_it_was(
    kind: str, tmp_path: Path, references: dict[tuple[str, str], Any]
) -> None:
    make, matrix, rtol = KINDS[kind]
    X = matrices(N)[matrix]
    storage = make(X, tmp_path)
    before = frozen(storage)
    for estimator in ESTIMATORS:
        model = fitted(estimator, storage, *targets(X))
        assert_same(answers(model, as_given(storage, "label")), references[matrix, repr(estimator)], rtol)
    assert frozen(storage) == before


@pytest.mark.parametrize("kind", KINDS)
def test_weights_in_parts_are_the_whole_for_every_storage(kind: str, tmp_path: Path) -> None:
    make, matrix, rtol = KINDS[kind]
    X = matrices(N)[matrix]
    labels, _ = targets(X)
    w = np.random.default_rng(2).integers(0, 3, N).astype(float)
    storage = make(X, tmp_path)
    if isinstance(storage, Path):
        pytest.skip("the weights of a file are one of its columns: see test_files.py")
    kept = w > 0
    expected = LinearDiscriminantAnalysis().fit(
        X[np.repeat(np.arange(N), w.astype(int))], np.repeat(labels, w.astype(int))
    )
    model = LinearDiscriminantAnalysis()
    for rows in np.array_split(np.arange(N), 3):
        part = make(X[rows], tmp_path)
        model.partial_fit(part, labels[rows], sample_weight=w[rows])
    assert_same(answers(model, X[kept]), answers(expected, X[kept]), rtol)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(4, 40), d=st.integers(1, 9), k=st.integers(2, 3))
def test_odd_shapes_are_the_same_in_every_storage(seed: int, n: int, d: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    X[:, 0] = rng.standard_normal(n)  # something varies
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    names = [f"x{j}" for j in range(d)]
    storages = [np.asfortranarray(X), sp.csr_array(X), sp.csc_matrix(X), pd.DataFrame(X, columns=names)]
    storages += [pl.DataFrame(X, schema=names), pa.table({name: X[:, j] for j, name in enumerate(names)})]
    for estimator in (LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.5), RidgeClassifier(), Ridge()):
        expected = answers(clone(estimator).fit(X, y), X)
        for storage in storages:
            assert_same(answers(clone(estimator).fit(storage, y), storage), expected, 1e-8)


# -- nothing is copied ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("numpy")])
def test_blocks_of_an_array_are_views_of_it(kind: str, tmp_path: Path) -> None:
    make, matrix, _ = KINDS[kind]
    storage = make(matrices(N)[matrix], tmp_path)
    for block in as_source(storage).blocks():
        assert np.shares_memory(block.X, storage)


def test_sparse_rows_are_cut_where_a_block_is_worth_a_thread() -> None:
    few, many = (sp.random(20_000, 50, density=density, format="csr", random_state=0) for density in (0.02, 0.5))
    assert [len(list(as_source(X).blocks())) for X in (few, many)] == [2, 4]
    # Blocks that have to be made dense stay small.
    wide = sp.random(20_000, 2_000, density=0.0005, format="csr", random_state=0)
    assert len(list(as_source(wide).blocks())) == 5


@pytest.mark.parametrize("kind", ["csr matrix", "csr array", "csr float32", "csr bool", "csr 64-bit indices"])
@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_a_csr_matrix_share_its_arrays(kind: str, tmp_path: Path) -> None:
    make, matrix, _ = KINDS[kind]
    storage = make(matrices(9000)[matrix], tmp_path)
    blocks = list(as_source(storage).blocks())
    assert len(blocks) == 3
    for block in blocks:
        assert np.shares_memory(block.X.data, storage.data)
        assert np.shares_memory(block.X.indices, storage.indices)


def test_blocks_of_a_homogeneous_pandas_frame_are_views_of_it() -> None:
    frame = pd.DataFrame(matrices(N)["mixed"], columns=NAMES)
    (block,) = as_source(frame).blocks()
    assert np.shares_memory(block.X, frame.to_numpy())


@pytest.mark.parametrize("layout", ["C", "Fortran", "memory-mapped", "pandas", "polars", "arrow", "csr"])
def test_a_pass_needs_a_fraction_of_the_memory_of_the_rows(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(separatrix.data.source, "_TARGET_BYTES", 1 << 17)
    X = np.random.default_rng(0).standard_normal((25_000, 40))
    y = np.arange(len(X)) % 3
    names = [f"x{j}" for j in range(40)]
    storage = {
        "C": lambda: X,
        "Fortran": lambda: np.asfortranarray(X),
        "memory-mapped": lambda: memory_mapped(X, tmp_path),
        "pandas": lambda: pd.DataFrame(X, columns=names),
        "polars": lambda: pl.DataFrame(X, schema=names),
        "arrow": lambda: pa.table({name: X[:, j].copy() for j, name in enumerate(names)}),
        "csr": lambda: sp.csr_array(X),
    }[layout]()

    def read() -> None:
        as_source(storage).reduce(lambda block: block.n, lambda a, b: a + b)

    def fit() -> None:
        LinearDiscriminantAnalysis().fit(storage, y)

    # A sparse block holds at least 4096 rows and is sorted by class: the fit of so few rows is not a fraction of them.
    for work in (read, fit) if layout != "csr" else (read,):
        work()  # what is imported or cached at the first call does not count
        tracemalloc.start()
        with separatrix.config(threads=1):
            work()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.2 * X.nbytes, f"{work.__name__}: {peak / 1e6:.1f} MB for {X.nbytes / 1e6:.1f} MB of rows"


# -- threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "numpy C",
        "numpy Fortran",
        "numpy float32",
        "numpy int64",
        "csr array",
        "csc array",
        "pandas mixed",
        "polars",
        "parquet",
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_any_number_of_threads_gives_the_same_bits(kind: str, tmp_path: Path) -> None:
    make, matrix, _ = KINDS[kind]
    X = matrices(13_000)[matrix]
    labels, score = targets(X)
    storage = make(X, tmp_path)
    assert sum(1 for _ in as_source(as_given(storage, "label")).blocks()) >= 4
    for estimator in ESTIMATORS:
        results = []
        for threads in (1, 2, 8):
            with separatrix.config(threads=threads):
                results.append(answers(fitted(estimator, storage, labels, score), as_given(storage, "label")))
        for result in results[1:]:
            for name, value in results[0].items():
                np.testing.assert_array_equal(result[name], value, err_msg=f"{estimator} {name}")


@pytest.mark.usefixtures("small_blocks")
def test_the_partition_does_not_depend_on_threads() -> None:
    source = as_source(matrices(5000)["mixed"])
    partitions = []
    for threads in (1, 3, 16):
        with separatrix.config(threads=threads):
            partitions.append(list(source.map(lambda block: (block.start, block.n))))
    assert partitions[0] == partitions[1] == partitions[2]
    assert [start for start, _ in partitions[0]] == list(range(0, 5000, rows_per_block(5)))


@pytest.mark.usefixtures("small_blocks")
def test_finer_cuts_are_of_the_same_rows_in_order() -> None:
    X = matrices(2000)["mixed"]
    for storage in (X, sp.csr_array(X)):
        source = as_source(storage, np.arange(2000), np.arange(2000) + 1.0).valued()
        parts = list(source.map(lambda block: (block.start, block.dense(), block.y[:, 0], block.weights), rows=150))
        assert all(len(rows) <= 150 for _, rows, _, _ in parts)
        np.testing.assert_array_equal(np.concatenate([rows for _, rows, _, _ in parts]), X)
        np.testing.assert_array_equal(np.concatenate([y for _, _, y, _ in parts]), np.arange(2000))
        np.testing.assert_array_equal(np.concatenate([w for _, _, _, w in parts]), np.arange(2000) + 1.0)
        assert all(start == y[0] for start, _, y, _ in parts)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.usefixtures("small_blocks")
def test_an_error_in_a_worker_comes_out_and_nothing_is_left_running(threads: int) -> None:
    source = as_source(matrices(20_000)["mixed"])
    raised, lock = threading.Event(), threading.Lock()
    began: list[int] = []
    ended: list[int] = []

    def work(block: Any) -> int:
        with lock:
            began.append(block.start)
        try:
            if block.start == 512:
                raised.set()
                raise KeyError("the second block")
            if threads > 1 and block.start > 512:
                raised.wait(10)  # still at work when the error comes out of the other worker
                np.sort(np.random.default_rng(0).random(500_000))
            return block.n
        finally:
            with lock:
                ended.append(block.start)

    with separatrix.config(threads=threads), pytest.raises(KeyError, match="the second block"):
        source.reduce(work, lambda a, b: a + b)
    assert sorted(began) == sorted(ended)
    so_far = len(began)
    assert so_far <= 2 * threads + 2
    with separatrix.config(threads=threads):  # the pool is still good, and does not finish the old work
        assert source.reduce(lambda block: block.n, lambda a, b: a + b) == 20_000
    assert len(began) == so_far


@pytest.mark.usefixtures("small_blocks")
def test_an_error_in_merging_or_in_reading_leaves_nothing_running() -> None:
    source = as_source(matrices(20_000)["mixed"])
    seen: list[int] = []

    def refuse(a: int, b: int) -> int:
        raise ArithmeticError("no sum")

    with separatrix.config(threads=3):
        with pytest.raises(ArithmeticError, match="no sum"):
            source.reduce(lambda block: seen.append(block.start) or 1, refuse)
        assert len(seen) <= 8

        def look(block: DenseBlock) -> int:
            seen.append(block.start)
            raise LookupError("seen enough")

        with pytest.raises(LookupError, match="seen enough"):
            source.map(look)
        so_far = len(seen)
        assert so_far <= 16
        assert source.reduce(lambda block: 1, lambda a, b: a + b) == 40
        assert len(seen) == so_far


NESTED = """
import numpy as np
import separatrix, separatrix.data.source
separatrix.data.source._TARGET_BYTES = 1 << 12
X = np.random.default_rng(0).standard_normal((6000, 3))
model = separatrix.LinearDiscriminantAnalysis().fit(X, X[:, 0] > 0)
with separatrix.config(threads=2):
    print(sum(separatrix.as_source(X).map(lambda block: int(model.predict(X).sum()))))
"""


def test_a_map_function_may_use_a_model_itself() -> None:
    """A worker that waits for workers must not wait for ever."""
    try:
        run = subprocess.run([sys.executable, "-c", NESTED], check=True, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.fail("a pass inside a pass waits for its own worker")
    assert int(run.stdout) % 12 == 0


# -- the setting ------------------------------------------------------------------------------------------------------


def test_the_innermost_config_counts_and_is_undone() -> None:
    before = separatrix.config.threads
    with separatrix.config(threads=3) as outer:
        assert outer.threads == separatrix.config.threads == 3
        with separatrix.config(threads=1):
            assert separatrix.config.threads == 1
        assert separatrix.config.threads == 3
        with pytest.raises(KeyError), separatrix.config(threads=7):
            raise KeyError
        assert separatrix.config.threads == 3
    assert separatrix.config.threads == before >= 1


def test_config_in_one_thread_is_not_seen_by_another() -> None:
    before, seen = separatrix.config.threads, []
    with separatrix.config(threads=before + 5):
        other = threading.Thread(target=lambda: seen.append(separatrix.config.threads))
        other.start()
        other.join()
    assert seen == [before]


def test_the_environment_sets_the_default_and_config_overrides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEPARATRIX_THREADS", "5")
    assert separatrix.config.threads == 5
    with separatrix.config(threads=2):
        assert separatrix.config.threads == 2
    monkeypatch.setenv("SEPARATRIX_THREADS", "")
    assert separatrix.config.threads >= 1


@pytest.mark.parametrize("value", ["0", "-2", "two", "1.5", "nan", "inf"])
def test_a_bad_environment_is_refused_by_name(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEPARATRIX_THREADS", value)
    with pytest.raises(ValueError, match=rf"SEPARATRIX_THREADS is '{value}'.*1 or more"):
        LinearDiscriminantAnalysis().fit(np.eye(4), [0, 0, 1, 1])


@pytest.mark.parametrize("value", [0, -1, 1.5, "many", None, float("nan"), float("inf")], ids=str)
def test_a_bad_number_of_threads_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"threads is .*1 or more"), separatrix.config(threads=value):
        pass


# -- passes -----------------------------------------------------------------------------------------------------------


def test_a_source_can_be_read_again_and_counts_its_passes() -> None:
    X = matrices(N)["mixed"]
    for storage in (X, sp.csr_array(X), pd.DataFrame(X, columns=NAMES), pa.table(columns(X))):
        source = as_source(storage)
        assert (source.n_rows, source.n_features, source.passes) == (N, 5, 0)
        totals = [source.reduce(lambda block: block.rmatvec(np.ones(block.n)), np.add) for _ in range(3)]
        np.testing.assert_array_equal(totals[0], totals[2])
        assert source.passes == 3
        assert len(list(source.map(lambda block: block.n))) == 1
        assert source.passes == 4
        assert [block.n for block in source.blocks()] == [block.n for block in source.blocks()] == [N]
        assert source.passes == 4  # looking at blocks is not a pass


def test_views_count_the_passes_of_what_they_look_at() -> None:
    source = as_source(matrices(N)["mixed"])
    view = Intercept(source)
    view.reduce(lambda block: block.n, lambda a, b: a + b)
    assert (view.passes, source.passes) == (1, 1)
    outer = Intercept(Standardised(source))
    outer.reduce(lambda block: block.n, lambda a, b: a + b)
    assert (outer.passes, outer.source.passes, source.passes) == (1, 1, 2)


def test_a_fit_counts_its_own_passes_only(tmp_path: Path) -> None:
    X = matrices(N)["mixed"]
    labels, _ = targets(X)
    source = as_source(X, labels)
    source.reduce(lambda block: block.n, lambda a, b: a + b)
    assert LinearDiscriminantAnalysis().fit(source).fit_.passes == 1
    file = scan_parquet(parquet(X, tmp_path), target="label", features=NAMES)
    # One pass over the labels alone, and one over the rows.
    assert [LinearDiscriminantAnalysis().fit(file).fit_.passes for _ in range(3)] == [2, 2, 2]


def test_no_rows_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no rows"):
        as_source(np.zeros((0, 3))).reduce(lambda block: block.n, lambda a, b: a + b)


def test_a_source_has_its_own_targets_and_weights() -> None:
    X = matrices(N)["mixed"]
    labels, _ = targets(X)
    source = as_source(X, labels)
    assert as_source(source) is source
    for given_too in ({"y": labels}, {"sample_weight": np.ones(N)}):
        with pytest.raises(ValueError, match="source"):
            LinearDiscriminantAnalysis().fit(source, **given_too)
    with pytest.raises(ValueError, match="requires y"):
        LinearDiscriminantAnalysis().fit(as_source(X))


# -- the products of a block ------------------------------------------------------------------------------------------


def products(X: np.ndarray, y: Any, w: Any) -> dict[str, tuple[Any, np.ndarray]]:
    """Blocks of every kind with the dense matrix they stand for."""
    rng = np.random.default_rng(5)
    d = X.shape[1]
    centre, scale = rng.standard_normal(d), rng.random(d) + 0.5
    ones = np.ones((len(X), 1))
    result: dict[str, tuple[Any, np.ndarray]] = {}
    for name, storage in {"dense": X, "Fortran": np.asfortranarray(X), "sparse": sp.csr_array(X)}.items():
        source = as_source(storage, y, w)
        source = source.labelled(np.arange(y.max() + 1))
        standardised = Standardised(source, centre, scale)
        (result[name],) = ((block, X) for block in source.blocks())
        (result[f"{name}, [X, 1]"],) = ((block, np.hstack([X, ones])) for block in Intercept(source).blocks())
        (result[f"{name}, scaled"],) = ((block, (X - centre) / scale) for block in standardised.blocks())
        (result[f"{name}, scaled, 1"],) = (
            (block, np.hstack([(X - centre) / scale, ones])) for block in Intercept(standardised).blocks()
        )
        doubled = Mapped(source, lambda rows: 2.0 * rows, d)
        (result[f"{name}, mapped"],) = ((block, 2.0 * X) for block in doubled.blocks())
    single = X.astype(np.float32)
    result["float32"] = (DenseBlock(single, y, w), single.astype(float))
    result["sparse float32"] = (SparseBlock(sp.csr_array(single), y, w), single.astype(float))
    return result


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 50),
    d=st.integers(1, 7),
    k=st.integers(1, 4),
    weighted=st.booleans(),
)
def test_products_of_every_block_are_numpys(seed: int, n: int, d: int, k: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) + 1.0) * (rng.random((n, d)) < 0.6)
    y = rng.integers(0, k, n)
    w = rng.integers(0, 3, n).astype(float) if weighted else None
    if w is not None:
        w[0] = 1.0
    v, r = rng.standard_normal((d + 1, 3)), rng.standard_normal((n, 2))
    s, extra = rng.random(n), rng.standard_normal((n, 2))
    counted = np.ones(n) if w is None else w
    for name, (block, A) in products(X, y, w).items():
        close = partial(np.testing.assert_allclose, rtol=1e-11, atol=1e-11, err_msg=name)
        before = A.copy()
        assert block.shape == A.shape
        assert (block.n, block.start) == (n, 0)
        columns_of_v = v[: A.shape[1]]
        close(block.matvec(columns_of_v), A @ columns_of_v)
        close(block.matvec(columns_of_v[:, 0]), A @ columns_of_v[:, 0])
        close(block.rmatvec(r), A.T @ r)
        close(block.rmatvec(r[:, 0]), A.T @ r[:, 0])
        close(block.gram(), A.T @ A)
        close(block.gram(s), A.T @ (A * s[:, None]))
        close(block.curve(s, columns_of_v[:, 0]), A.T @ (s * (A @ columns_of_v[:, 0])))
        close(block.largest_row(np.abs(columns_of_v[:, 1])), (np.square(A) @ np.abs(columns_of_v[:, 1])).max())
        chosen = np.arange(0, A.shape[1], 2)
        close(block.columns(chosen).dense(), A[:, chosen])
        close(block.dense(), A)
        sums = np.stack([counted[y == c] @ A[y == c] for c in range(k)])
        close(block.class_sums(y, k), sums)
        joined = block.join(extra)
        close(joined.dense(), np.hstack([A, extra]))
        assert joined.y is block.y
        part = block.part(slice(n // 3, n))
        close(part.dense(), A[n // 3 :])
        close(part.matvec(columns_of_v), A[n // 3 :] @ columns_of_v)
        np.testing.assert_array_equal(part.codes, y[n // 3 :])
        assert part.start == n // 3
        if w is not None:
            np.testing.assert_array_equal(part.weights, w[n // 3 :])
        close(block.dense(), before)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 80),
    d=st.integers(1, 7),
    k=st.integers(1, 4),
    weighted=st.booleans(),
    empty=st.booleans(),
)
def test_centred_blocks_are_the_rows_less_their_class_means(
    seed: int, n: int, d: int, k: int, weighted: bool, empty: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) + 2.0) * (rng.random((n, d)) < 0.6)
    y = rng.integers(0, k, n)
    w = rng.integers(0, 3, n).astype(float) if weighted else None
    if w is not None:
        w[0] = 1.0
    counted = np.ones(n) if w is None else w
    n_classes = k + empty  # the last one may have no rows
    for name, (block, A) in products(X, y, w).items():
        close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10, err_msg=name)
        before = A.copy()
        centred = block.centre(y, n_classes)
        means, scatters, counts = np.zeros((n_classes, A.shape[1])), [], np.zeros(n_classes)
        for c in range(n_classes):
            rows, s = A[y == c], counted[y == c]
            counts[c] = s.sum()
            means[c] = s @ rows / counts[c] if counts[c] else 0.0
            scatters.append((rows - means[c]).T @ ((rows - means[c]) * s[:, None]))
        close(centred.counts, counts)
        close(centred.mean_high + centred.mean_low, means)
        close(centred.scatter(), np.sum(scatters, axis=0))
        close(centred.squares(), [scatter.diagonal() for scatter in scatters])
        close(centred.rows().T @ centred.rows(), np.sum(scatters, axis=0))
        for c in range(n_classes):
            close(centred.scatter_of(c), scatters[c])
            close(centred.rows_of(c).T @ centred.rows_of(c), scatters[c])
        close(block.dense(), before)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("compiled", [False, True])
def test_large_sparse_blocks_are_centred_like_dense_ones(
    monkeypatch: pytest.MonkeyPatch, compiled: bool, k: int, weighted: bool, far: bool
) -> None:
    from separatrix.data import sparse

    monkeypatch.setattr(sparse, "_MATRICES", 0.0)  # no block is so small that it becomes dense
    monkeypatch.setattr(sparse, "_CURVED_FROM", 0 if compiled else np.inf)
    rng = np.random.default_rng(3)
    A = rng.standard_normal((300, 40)) * (rng.random((300, 40)) < 0.08)
    if far:
        A[:, 5] = 1e6 + rng.standard_normal(300)
    y, w = rng.integers(0, k, 300), rng.integers(0, 3, 300).astype(float) if weighted else None
    targets = rng.standard_normal((300, 2)) + 1e5
    expected = DenseBlock(A, y, w).join(targets).centre(y, k)
    found = SparseBlock(sp.csr_array(A), y, w).join(targets).centre(y, k)
    close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    close(found.counts, expected.counts)
    close(found.mean_high + found.mean_low, expected.mean_high + expected.mean_low)
    close(found.scatter(), expected.scatter(), atol=1e-7)
    close(found.squares(), expected.squares(), atol=1e-7)
    for c in range(k):
        close(found.scatter_of(c), expected.scatter_of(c), atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("costs", [(1e9, 1.0, 1.0), (0.0, 1.0, 1.0)])
@pytest.mark.parametrize("compiled", [False, True])
def test_every_way_to_a_sparse_gram_matrix_is_numpys(
    monkeypatch: pytest.MonkeyPatch, compiled: bool, costs: tuple[float, float, float], weighted: bool
) -> None:
    from separatrix.data import sparse

    for name, value in zip(("_DENSE_PRODUCT", "_COMPILED_PRODUCT", "_PRODUCT"), costs, strict=True):
        monkeypatch.setattr(sparse, name, value)
    monkeypatch.setattr(sparse, "_CURVED_FROM", 0 if compiled else np.inf)
    rng = np.random.default_rng(4)
    A = rng.standard_normal((500, 12)) * (rng.random((500, 12)) < 0.3)
    w = rng.random(500) if weighted else None
    expected = (A if w is None else A * w[:, None]).T @ A
    np.testing.assert_allclose(SparseBlock(sp.csr_array(A)).gram(w), expected, rtol=1e-12, atol=1e-12)


# -- columns at predict time ------------------------------------------------------------------------------------------

FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow table": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "arrow record batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("change", ["missing", "extra", "reordered"])
def test_columns_missing_extra_or_reordered_are_scikit_learns_errors(kind: str, change: str) -> None:
    X = matrices(N)["mixed"]
    labels, _ = targets(X)
    frame = pd.DataFrame(X, columns=NAMES)
    changed = {"missing": frame.drop(columns="c"), "extra": frame.assign(z=1.0), "reordered": frame[NAMES[::-1]]}[
        change
    ]
    words = {"missing": r"now missing:\s*- c", "extra": r"unseen at fit time:\s*- z", "reordered": "same order"}[change]
    for fitted_on in (kind, "pandas"):
        model = LinearDiscriminantAnalysis().fit(FRAMES[fitted_on](frame), labels)
        for ask in (model.predict, model.transform, model.log_density):
            with pytest.raises(ValueError, match=rf"(?s)feature names should match.*{words}"):
                ask(FRAMES[kind](changed))
        with pytest.raises(ValueError, match="feature names should match"):
            model.partial_fit(FRAMES[kind](changed), labels)
        np.testing.assert_array_equal(model.predict(FRAMES[kind](frame)), model.predict(FRAMES[fitted_on](frame)))


@pytest.mark.parametrize("kind", FRAMES)
def test_names_of_columns_are_kept(kind: str) -> None:
    X = matrices(N)["mixed"]
    frame = FRAMES[kind](pd.DataFrame(X, columns=NAMES))
    assert as_source(frame).feature_names.tolist() == NAMES
    assert LinearDiscriminantAnalysis().fit(frame, targets(X)[0]).feature_names_in_.tolist() == NAMES


@pytest.mark.parametrize("write", [parquet, csv])
def test_columns_of_a_file_are_found_by_name_and_refused_where_they_are_missing(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    X = matrices(N)["mixed"]
    path = write(X, tmp_path)
    scan = scan_parquet if path.suffix == ".parquet" else scan_csv
    model = LinearDiscriminantAnalysis().fit(as_given(path, "label"))
    with pytest.raises(ValueError, match=r"'?e'?|4 features"):
        model.predict(scan(path, features=NAMES[:4]))
    expected = model.predict(pd.DataFrame(X, columns=NAMES))
    for features in (NAMES, [*NAMES, "score"], NAMES[::-1]):
        np.testing.assert_array_equal(model.predict(scan(path, features=features)), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X, columns=NAMES)[NAMES[::-1]])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, as_source, pd.DataFrame], ids=lambda make: make.__name__)
@each("estimator", MERGED)
def test_another_number_of_columns_is_scikit_learns_error(estimator: Any, make: Callable[..., Any]) -> None:
    X = matrices(N)["mixed"]
    model = fitted(estimator, X, *targets(X))
    ask = model.predict if hasattr(model, "predict") else model.transform
    for other in (X[:, :4], np.hstack([X, X])):
        with pytest.raises(
            ValueError, match=rf"X has {other.shape[1]} features, but {type(model).__name__} is expecting 5"
        ):
            ask(make(other))
        with pytest.raises(ValueError, match=f"X has {other.shape[1]} features"):
            model.partial_fit(
                make(other) if make is not as_source else as_source(other, np.arange(N) % 2), np.arange(N) % 2
            )


def test_names_are_forgotten_by_a_fit_without_names() -> None:
    X = matrices(N)["mixed"]
    labels, _ = targets(X)
    model = LinearDiscriminantAnalysis().fit(pd.DataFrame(X, columns=NAMES), labels)
    for storage in (X, sp.csr_array(X), as_source(X, labels)):
        model = model.fit(pd.DataFrame(X, columns=NAMES), labels)
        model.fit(storage) if isinstance(storage, Source) else model.fit(storage, labels)
        assert not hasattr(model, "feature_names_in_")


# -- labels -----------------------------------------------------------------------------------------------------------

LABELS = {
    "text": np.array(["no", "yes", "perhaps, later"]),
    "objects": np.array(["no", "yes", "é"], dtype=object),
    "int8": np.array([-3, 0, 5], dtype=np.int8),
    "uint8": np.array([255, 0, 128], dtype=np.uint8),
    "int64 far apart": np.array([-(2**62), 3, 2**62]),
    "uint64": np.array([2**64 - 1, 0, 2**63], dtype=np.uint64),
    "whole floats": np.array([2.0, -1.0, 7.0]),
    "float32": np.array([2.0, -1.0, 7.0], dtype=np.float32),
    "bool": np.array([True, False]),
}


@pytest.mark.parametrize("kind", LABELS)
@each("estimator", {name: model for name, model in MERGED.items() if is_classifier(model)})
def test_labels_of_every_kind_go_round(estimator: Any, kind: str) -> None:
    X = matrices(N)["mixed"]
    names = LABELS[kind]
    codes = np.searchsorted(np.unique(targets(X)[0]), targets(X)[0]) % len(names)
    y = names[codes]
    model = clone(estimator).fit(X, y)
    assert model.classes_.tolist() == sorted(names.tolist())
    assert model.predict(X).dtype == model.classes_.dtype == y.dtype
    assert set(model.predict(X).tolist()) <= set(names.tolist())
    plain = clone(estimator).fit(X, np.argsort(np.argsort(names))[codes])
    np.testing.assert_array_equal(model.classes_[plain.predict(X)], model.predict(X))
    assert model.score(X, y) == plain.score(X, np.argsort(np.argsort(names))[codes]) > 0.5


def test_labels_of_another_number_type_are_the_same_labels() -> None:
    X = matrices(N)["mixed"]
    y = np.unique(targets(X)[0], return_inverse=True)[1]
    expected = LinearDiscriminantAnalysis().fit(X, y)
    for dtype in (np.int8, np.uint64, np.float32, np.float64):
        model = LinearDiscriminantAnalysis().fit(X, y.astype(dtype))
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        assert model.score(X, y) == expected.score(X, y.astype(dtype))
        parts = LinearDiscriminantAnalysis().partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:].astype(dtype))
        assert parts.classes_.tolist() == [0, 1, 2]
        np.testing.assert_allclose(parts.coef_, expected.coef_, rtol=1e-10)


@pytest.mark.parametrize(
    "make",
    [list, tuple, pd.Series, pl.Series, pa.array, lambda y: pa.chunked_array([y[:7], y[7:]]), pd.Categorical],
    ids=["list", "tuple", "pandas", "polars", "arrow", "arrow chunks", "categorical"],
)
def test_labels_in_any_container(make: Callable[..., Any]) -> None:
    X = matrices(N)["mixed"]
    labels, _ = targets(X)
    expected = LinearDiscriminantAnalysis().fit(X, labels)
    model = LinearDiscriminantAnalysis().fit(X, make(labels))
    assert model.classes_.tolist() == expected.classes_.tolist()
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_given_classes_code_the_labels_in_their_order() -> None:
    X = matrices(N)["mixed"]
    labels, _ = targets(X)
    source = as_source(X, labels).labelled(np.array(["blue", "green", "red", "white"]))
    (block,) = source.blocks()
    assert source.classes is not None
    np.testing.assert_array_equal(source.classes[block.codes], labels)
    with pytest.raises(ValueError, match="'red'"):
        as_source(X, labels).labelled(np.array(["blue", "green"]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled_products_of_sparse_blocks_are_numpys(monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:
    from separatrix.data import sparse

    monkeypatch.setattr(sparse, "_CURVED_FROM", 0)
    rng = np.random.default_rng(0)
    A = (rng.standard_normal((80, 9)) * (rng.random((80, 9)) < 0.3)).astype(dtype)
    block = SparseBlock(sp.csr_array(A), np.zeros(80, dtype=np.intp))
    r, R, v, s = rng.standard_normal(80), rng.standard_normal((80, 3)), rng.standard_normal(9), rng.random(80)
    A = A.astype(float)
    close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12)
    close(block.rmatvec(r), A.T @ r)
    close(block.rmatvec(R), A.T @ R)
    close(block.rmatvec(R[:, :1]), A.T @ R[:, :1])
    close(block.curve(s, v), A.T @ (s * (A @ v)))
    for which in (np.array([1, 4, 8]), np.arange(9), np.array([], dtype=np.intp)):
        close(block.gram_of(which, s), (A[:, which] * s[:, None]).T @ A[:, which])


@pytest.mark.parametrize("kind", ["rows", "columns", "a part of the columns", "every other row"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_some_rows_of_any_array_are_gathered_without_a_copy_of_all(kind: str, dtype: Any) -> None:
    X = np.random.default_rng(0).standard_normal((20_000, 24)).astype(dtype)
    X = {"rows": X, "columns": np.asfortranarray(X), "every other row": X[::2]}.get(kind, X[:, :-1])
    which = np.array([5, 3, 3, 9_000, 0])
    tracemalloc.start()
    try:
        found, filled = rows_at(X, which), rows_at(X, which, out=np.empty((5, X.shape[1]), dtype=dtype))
        columns = DenseBlock(X[:5]).columns(np.array([0, 7]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 10
    np.testing.assert_array_equal(found, X[which])
    np.testing.assert_array_equal(filled, X[which])
    np.testing.assert_array_equal(columns.dense(), X[:5, [0, 7]])
