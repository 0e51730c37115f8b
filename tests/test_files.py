"""Rows from Parquet and CSV files are the rows in memory, block for block; bad files get sentences."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from separatrix.data import files
from separatrix.data.block import Block
from separatrix.data.dispatch import as_source
from separatrix.data.files import FileSource
from separatrix.data.source import rows_per_block
from separatrix.settings import config
from separatrix.tables import scan_csv, scan_parquet
from separatrix.tables.reading import read_table
from separatrix.tables.schema import TableSchema

D = 200  # wide, so that a few thousand rows are several blocks
ROWS = rows_per_block(D, target=files._BLOCK_BYTES)
NAMES = [f"x{j}" for j in range(D)]


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2 * ROWS + 123, D))


@pytest.fixture(scope="module")
def labels(X: np.ndarray) -> np.ndarray:
    return np.array(["red", "green", "blue"])[np.random.default_rng(1).integers(0, 3, len(X))]


def table(X: np.ndarray, **columns: Any) -> pa.Table:
    return pa.table({name: X[:, j] for j, name in enumerate(NAMES[: X.shape[1]])} | columns)


def write(path: Path, data: pa.Table | dict[str, Any], **options: Any) -> Path:
    data = data if isinstance(data, pa.Table) else pa.table(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(data, path)
    else:
        pq.write_table(data, path, **options)
    return path


def text(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def scan(paths: Any, **options: Any) -> FileSource:
    first = paths[0] if isinstance(paths, list) else paths
    return (scan_csv if Path(first).suffix == ".csv" else scan_parquet)(paths, **options)


def rows(source: FileSource) -> np.ndarray:
    return np.concatenate([block.X for block in source.blocks()])


def codes(source: FileSource) -> np.ndarray:
    return np.concatenate([block.codes for block in source.blocks()])


def weights(source: FileSource) -> np.ndarray:
    return np.concatenate([block.weights for block in source.blocks()])


def sums(block: Block) -> np.ndarray:
    return block.rmatvec(np.eye(3)[block.codes])


BOTH = pytest.mark.parametrize("suffix", [".parquet", ".csv"])


# -- the rows ---------------------------------------------------------------------------------------------------------


@BOTH
def test_blocks_are_the_rows(tmp_path: Path, X: np.ndarray, suffix: str) -> None:
    source = scan(write(tmp_path / f"a{suffix}", table(X)))
    blocks = list(source.blocks())
    np.testing.assert_array_equal(rows(source), X)
    expected = [(0, (ROWS, D)), (ROWS, (ROWS, D)), (2 * ROWS, (123, D))]
    assert [(block.start, block.shape) for block in blocks] == expected
    assert all(block.y is None and block.weights is None for block in blocks)
    assert source.feature_names is not None
    assert (source.n_features, source.feature_names.tolist(), source.dtype) == (D, NAMES, np.float64)
    assert source.passes == 0


@BOTH
def test_row_groups_and_files_do_not_change_the_partition(tmp_path: Path, X: np.ndarray, suffix: str) -> None:
    for i, (a, b) in enumerate([(0, 300), (300, 310), (310, 310), (310, ROWS + 1), (ROWS + 1, len(X))]):
        options = {} if suffix == ".csv" else {"row_group_size": 333}
        write(tmp_path / f"{i}{suffix}", table(X[a:b]), **options)
    source = scan(sorted(tmp_path.iterdir()))
    assert [block.n for block in source.blocks()] == [ROWS, ROWS, 123]
    np.testing.assert_array_equal(rows(source), X)


@BOTH
def test_any_number_of_threads_gives_the_same_bits_and_memory_the_same_numbers(
    tmp_path: Path, X: np.ndarray, labels: np.ndarray, suffix: str
) -> None:
    path = write(tmp_path / f"a{suffix}", table(X, y=labels))
    results = []
    for threads in (1, 2, 5):
        with config(threads=threads):
            results.append(scan(path, target="y").labelled().reduce(sums, np.add))
    memory = as_source(X, labels).labelled().reduce(sums, np.add)
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    np.testing.assert_allclose(results[0], memory, rtol=1e-12, atol=1e-11)


def test_n_rows_is_in_the_footer_of_parquet_and_at_the_end_of_csv(tmp_path: Path) -> None:
    data = {"x": [1.0, 2.0, 3.0], "y": ["a", "b", "a"]}
    parquet = scan_parquet([write(tmp_path / "a.parquet", data), write(tmp_path / "b.parquet", data)], target="y")
    assert parquet.n_rows == 6
    csv = scan_csv(write(tmp_path / "a.csv", data), target="y")
    assert csv.n_rows is None
    assert csv.labelled().n_rows == 3
    csv = scan_csv(tmp_path / "a.csv", target="y")
    csv.reduce(lambda block: block.n, lambda a, b: a + b)
    assert (csv.n_rows, csv.passes) == (3, 1)


def test_only_the_needed_columns_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"a": [1.0, 2.0], "words": ["u", "v"], "b": [3.0, 4.0], "y": [0, 1], "w": [1.0, 2.0]}
    path = write(tmp_path / "a.parquet", data)
    asked: list[list[str]] = []
    original = pq.ParquetFile.iter_batches

    def spy(self: Any, *args: Any, columns: list[str], **options: Any) -> Any:
        asked.append(columns)
        return original(self, *args, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    source = scan_parquet(path, target="y", features=["b", "a"], weight="w")
    np.testing.assert_array_equal(rows(source), [[3.0, 1.0], [4.0, 2.0]])
    codes(source.labelled())
    assert asked == [["b", "a", "w"], ["y", "w"], ["b", "a", "y", "w"]]
    csv = scan_csv(write(tmp_path / "a.csv", data), features="b")
    np.testing.assert_array_equal(rows(csv), [[3.0], [4.0]])


def test_all_columns_but_target_and_weight_by_default(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"w": [1.0, 2.0], "b": [3, 4], "y": [0, 1], "a": [5, 6]}, index=pandas.Index([7, 9]))
    frame.to_parquet(tmp_path / "a.parquet")  # the index is stored as a column, which is not a feature
    source = scan_parquet(tmp_path / "a.parquet", target="y", weight="w")
    assert source.feature_names is not None
    assert source.feature_names.tolist() == ["b", "a"]


# -- types ------------------------------------------------------------------------------------------------------------


def test_float32_stays_float32_and_mixtures_are_float64(tmp_path: Path) -> None:
    single = write(tmp_path / "a.parquet", {"x": np.float32([0.1, 0.2]), "z": np.float32([1, 2])})
    double = write(tmp_path / "b.parquet", {"x": np.array([0.1, 0.2]), "z": np.float32([1, 2])})
    assert scan_parquet(single).dtype == rows(scan_parquet(single)).dtype == np.float32
    np.testing.assert_array_equal(rows(scan_parquet(single)), np.float32([[0.1, 1], [0.2, 2]]))
    for source in (scan_parquet(double), scan_parquet([single, double])):
        assert source.dtype == rows(source).dtype == np.float64
    np.testing.assert_array_equal(rows(scan_parquet([single, double]))[:, 0], [*np.float32([0.1, 0.2]), 0.1, 0.2])


def test_integers_booleans_decimals_and_nulls_are_numbers(tmp_path: Path) -> None:
    data = {
        "small": pa.array([1, None, -3], pa.int8()),
        "large": pa.array([2**53 + 1, 0, 1], pa.uint64()),
        "flag": [True, False, None],
        "price": pa.array([1.25, 2.5, 3.75]).cast(pa.decimal128(6, 2)),
        "none": pa.nulls(3),
    }
    source = scan_parquet(write(tmp_path / "a.parquet", data))
    nan = np.nan
    expected = [[1, 2.0**53, 1, 1.25, nan], [nan, 0, 0, 2.5, nan], [-3, 1, nan, 3.75, nan]]
    np.testing.assert_array_equal(rows(source), expected)
    assert "column 'small' has 1 such row (first: row 1); so have 2 more columns" in source.explain_non_finite()


def test_csv_integers_of_the_first_rows_may_become_decimal_or_missing(tmp_path: Path) -> None:
    lines = ["n,empty,flag,y", *["1,,true,3"] * 60_000, "1.5,2.5,false,", "NA,,true,4"]
    path = text(tmp_path / "a.csv", "\n".join(lines))
    source = scan_csv(path, features=["n", "empty", "flag"])
    np.testing.assert_array_equal(rows(source)[[0, -2, -1]], [[1, np.nan, 1], [1.5, 2.5, 0], [np.nan, np.nan, 1]])
    with pytest.raises(ValueError, match=r"a.csv, rows \d+ to 60001: the target 'y' is missing.* in 1 of the rows"):
        list(scan_csv(path, target="y").valued().blocks())


def test_csv_with_a_byte_order_mark_quotes_and_another_delimiter(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", b'\xef\xbb\xbfx;note;y\r\n1;"a;b";u\r\n\r\n2;"two\nlines";"v"\r\n')
    source = scan_csv(path, target="y", features=["x"], delimiter=";").labelled()
    np.testing.assert_array_equal(rows(source), [[1.0], [2.0]])
    assert source.classes is not None
    assert source.classes.tolist() == ["u", "v"]


# -- labels, values, weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y",
    [
        np.array(["b", "a", "é", "b"]),
        np.array([3, -1, 3, 7], dtype=np.int32),
        np.array([2**40, 5, 5, 2**40]),
        np.array([True, False, True, True]),
        np.array([1.0, 2.0, 1.0, 0.0]),
    ],
    ids=lambda y: y.dtype.name,
)
@pytest.mark.parametrize("kind", ["parquet", "categorical", "csv"])
def test_labels_are_those_of_memory(tmp_path: Path, y: np.ndarray, kind: str) -> None:
    column = pa.array(y).dictionary_encode() if kind == "categorical" and y.dtype != bool else pa.array(y)
    path = write(tmp_path / ("a.csv" if kind == "csv" else "a.parquet"), {"x": np.arange(4.0), "y": column})
    source = scan(path, target="y")
    seen = source.labelled()
    memory = as_source(np.arange(4.0)[:, None], y).labelled()
    assert seen.classes is not None
    assert memory.classes is not None
    np.testing.assert_array_equal(seen.classes, memory.classes)
    if kind != "csv":
        assert seen.classes.dtype == memory.classes.dtype
    assert codes(seen).dtype == np.intp
    np.testing.assert_array_equal(codes(seen), np.unique(y, return_inverse=True)[1])
    assert (seen.passes, source.classes, seen.target_ndim) == (1, None, 1)


@BOTH
def test_labels_over_many_batches_and_given_classes(
    tmp_path: Path, X: np.ndarray, labels: np.ndarray, suffix: str
) -> None:
    late = np.where(np.arange(len(X)) == len(X) - 1, "a long label at the very end", labels)
    paths = [write(tmp_path / f"0{suffix}", table(X[:500], y=late[:500]))]
    paths += [write(tmp_path / f"1{suffix}", table(X[500:], y=pa.array(late[500:]).dictionary_encode()))]
    source = scan(paths, target="y")
    classes, expected = np.unique(late, return_inverse=True)
    seen = source.labelled()
    np.testing.assert_array_equal(seen.classes, classes)
    np.testing.assert_array_equal(codes(seen), expected)
    known = source.labelled(np.array(["0", *classes]))
    assert known.passes == 1  # those of the source: none for the given classes
    np.testing.assert_array_equal(codes(known), expected + 1)
    with pytest.raises(ValueError, match=rf"1\{suffix}, rows \d+ to \d+, column 'y': The label .* is not among the cl"):
        codes(source.labelled(np.unique(labels)))


@BOTH
def test_a_source_can_be_read_another_way(tmp_path: Path, suffix: str) -> None:
    known = scan(write(tmp_path / f"a{suffix}", {"x": [1.0, 2.0], "y": [3, 4]}), target="y").labelled(np.array([3]))
    assert known.labelled().classes.tolist() == [3, 4]  # type: ignore[union-attr]
    values = known.valued()
    assert values.classes is None
    np.testing.assert_array_equal(next(values.blocks()).y, [[3.0], [4.0]])


@BOTH
def test_values_of_one_or_several_columns(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", {"x": [1.0, 2.0], "u": [3, 4], "v": [5.5, 6.5]})
    one = scan(path, target="u", features=["x"]).valued()
    two = scan(path, target=["v", "u"], features=["x"]).valued()
    (first,), (second,) = one.blocks(), two.blocks()
    assert (one.target_ndim, two.target_ndim) == (1, 2)
    np.testing.assert_array_equal(first.y, [[3.0], [4.0]])
    np.testing.assert_array_equal(second.y, [[5.5, 3.0], [6.5, 4.0]])
    assert first.y is not None
    assert first.y.dtype == np.float64


@BOTH
def test_rows_of_weight_zero_make_no_classes(tmp_path: Path, suffix: str) -> None:
    data = {"x": [1, 2, 3, 4], "y": ["b", "zero", "a", None], "w": [2, 0, 1, 0]}
    source = scan(write(tmp_path / f"a{suffix}", data), target="y", weight="w").labelled()
    assert source.classes is not None
    assert source.classes.tolist() == ["a", "b"]
    assert codes(source)[[0, 2]].tolist() == [1, 0]
    assert set(codes(source).tolist()) <= {0, 1}
    np.testing.assert_array_equal(weights(source), [2.0, 0.0, 1.0, 0.0])


# -- which files ------------------------------------------------------------------------------------------------------


def test_folders_globs_and_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["b.parquet", "a.parquet", "sub/c.PARQUET", "sub/d.parquet/part-0.parquet", "[1].parquet"]
    others = [".hidden.parquet", "_meta.parquet", "_temporary/e.parquet", "sub/.git/f.parquet"]
    number = {name: float(i) for i, name in enumerate(names + others)}
    for name, value in number.items():
        write(tmp_path / name, {"x": [value]})
    text(tmp_path / "_SUCCESS", "")
    text(tmp_path / "notes.txt", "no data")

    def seen(paths: Any) -> list[float]:
        return rows(scan_parquet(paths))[:, 0].tolist()

    folder = [number[name] for name in ["[1].parquet", "a.parquet", "b.parquet", *names[2:4]]]
    assert seen(tmp_path) == seen(str(tmp_path)) == folder
    assert seen(tmp_path / "*.parquet") == [4.0, number["_meta.parquet"], 1.0, 0.0]
    assert seen(tmp_path / "[ab].parquet") == [1.0, 0.0]
    assert seen(tmp_path / "[1].parquet") == [4.0]
    assert seen(str(tmp_path / "**" / "part-*")) == [3.0]
    assert seen([tmp_path / "b.parquet", tmp_path / "sub"]) == [0.0, 2.0, 3.0]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert seen("~/a.parquet") == [1.0]


@pytest.mark.parametrize("missing", ["nowhere.parquet", "nothing-*.parquet", "empty"])
def test_paths_without_files(tmp_path: Path, missing: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"There is no file at '.*" + missing.replace("*", r"\*")):
        scan_parquet(tmp_path / missing)


def test_no_paths_at_all() -> None:
    with pytest.raises(ValueError, match="The list of paths is empty"):
        scan_csv([])


# -- sentences --------------------------------------------------------------------------------------------------------

DATA = {"alpha": [1.0, 2.0], "beta": [3, 4], "word": ["u", "v"], "day": pa.array([1, 2], pa.date32()), "w": [1.0, 1.0]}
NUMBERS = ["alpha", "beta"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"features": ["alfa"]}, r"a.parquet: there is no column 'alfa'; did you mean 'alpha'\?"),
        (
            {"target": "?", "features": NUMBERS},
            r"there is no column '\?'; the columns are 'alpha', 'beta', 'word', 'day', 'w'\.",
        ),
        ({"weight": "weight", "features": NUMBERS}, "there is no column 'weight'"),
        ({"encode": False}, r"a.parquet: column 'word' is of type string, not numeric; encode it .* features="),
        ({"features": ["day"], "encode": False}, r"column 'day' is of type date32\[day\], not numeric"),
        ({"features": ["alpha"], "weight": "word"}, "column 'word' is of type string, not numeric"),
        ({"features": ["alpha"], "target": "alpha"}, "column 'alpha' is named twice in features, target and weight"),
        ({"features": []}, "no column is left for the features"),
    ],
)
def test_columns_that_cannot_be_used(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    path = write(tmp_path / "a.parquet", DATA)
    with pytest.raises(ValueError, match=sentence):
        scan_parquet(path, **options)


READERS = {  # what one reader of tables makes of a file, scanned or read at once
    "semicolons and decimal commas": (";", "x;y\n1,5;a\n2,25;b\n", [1.5, 2.25]),
    "codes for missing values": (",", "x,y\n1.5,a\n?,b\n#N/A,a\n - ,b\n", [1.5, np.nan, np.nan, np.nan]),
    "UTF-16 with tabs": ("\t", "x\ty\n1.5\ta\n2\tb\n".encode("utf-16"), [1.5, 2.0]),
    "announced delimiter": ("|", "sep=|\nx|y\n1.5|a\n2|b\n", [1.5, 2.0]),
    "blanks before quotation marks": (",", 'x, "y"\n1.5, "a"\n2, "b"\n', [1.5, 2.0]),
    "delimiter at the end of lines": (",", "x,y,\n1.5,a,\n2,b,\n", [1.5, 2.0]),
    "amounts": (";", "x;y\n17.978,20 €;a\n-3,50 €;b\n", [17978.2, -3.5]),
}


@pytest.mark.parametrize("case", READERS)
def test_a_scanned_file_is_the_table_that_is_read(tmp_path: Path, case: str) -> None:
    delimiter, content, values = READERS[case]
    path = text(tmp_path / "a.csv", content)
    source = scan_csv(path, target="y").labelled()
    np.testing.assert_array_equal(rows(source)[:, 0], values)
    np.testing.assert_array_equal(rows(scan_csv(path, target="y", delimiter=delimiter))[:, 0], values)
    schema, read, classes = TableSchema.infer_and_read(read_table(path), "y")
    np.testing.assert_array_equal(read.columns["x"], values)
    np.testing.assert_array_equal(codes(source), classes)
    assert source.classes is not None
    assert tuple(source.classes.tolist()) == schema.classes


def test_names_of_classes_that_mean_missing_elsewhere_are_labels(tmp_path: Path) -> None:
    source = scan_csv(text(tmp_path / "a.csv", "x,y\n1,+\n2, - \n3,None\n"), target="y").labelled()
    assert source.classes is not None
    assert source.classes.tolist() == ["+", "-", "None"]


def test_packed_csv_files_are_scanned(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv.gz", gzip.compress(b"x,y\n1.5,a\n2,b\n", mtime=0))
    np.testing.assert_array_equal(rows(scan_csv(path, target="y"))[:, 0], [1.5, 2.0])


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a.csv: there are 2 columns named 'x'; rename all but one"):
        scan_csv(text(tmp_path / "a.csv", "x,x\n1,2\n"))


def test_files_that_differ(tmp_path: Path) -> None:
    first = write(tmp_path / "a.parquet", {"x": [1.0], "y": ["a"]})
    integers = write(tmp_path / "b.parquet", {"y": ["b"], "extra": [0], "x": [1]})
    np.testing.assert_array_equal(rows(scan_parquet([first, integers], target="y")), [[1.0], [1.0]])
    other = write(tmp_path / "c.parquet", {"x": [1.0], "y": [2]})
    with pytest.raises(ValueError, match=r"c.parquet: column 'y' is int64 here but not in the files before"):
        scan_parquet([first, other], target="y")
    words = write(tmp_path / "d.parquet", {"x": ["one"], "y": ["a"]})
    with pytest.raises(ValueError, match=r"d.parquet: column 'x' is of type string"):
        scan_parquet([first, words], target="y")
    without = write(tmp_path / "e.parquet", {"z": [1.0], "y": ["a"]})
    with pytest.raises(ValueError, match=r"e.parquet: there is no column 'x'"):
        scan_parquet([first, without], target="y")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "The files were scanned without a target: name its column with target="),
        ({"target": ["beta"]}, r"the target \['beta'\] is of type int64; labels are one column"),
        ({"target": "day"}, r"a.parquet: the target 'day' is of type date32\[day\]; labels are one column"),
    ],
)
def test_targets_that_are_no_labels(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    source = scan_parquet(write(tmp_path / "a.parquet", DATA), features=["alpha"], **options)
    with pytest.raises(ValueError, match=sentence):
        source.labelled()


def test_targets_that_are_no_values(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", DATA)
    with pytest.raises(ValueError, match=r"a.parquet: the target 'word' is of type string; a regression needs numbers"):
        scan_parquet(path, target="word", features=["alpha"]).valued()
    for ask in (FileSource.valued, lambda source: source.target_ndim):
        with pytest.raises(ValueError, match="name its column with target="):
            ask(scan_parquet(path, features=["alpha"]))


def test_continuous_labels(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"x": [1.0, 2.0], "y": [0.5, 1.0]})
    with pytest.raises(ValueError, match=r"a.parquet, rows 0 to 1, column 'y': Unknown label type: continuous"):
        scan_parquet(path, target="y").labelled()


@pytest.mark.parametrize("y", [["a", None, "b"], [1, None, 2], [1.0, np.nan, 2.0], [True, None, False]])
def test_missing_targets_are_counted_over_all_files(tmp_path: Path, y: list[Any]) -> None:
    good = write(tmp_path / "good.parquet", {"x": [1.0], "y": y[:1]})
    bad = write(tmp_path / "bad.parquet", {"x": [1.0] * 5, "y": [*y, None, None]})
    source = scan_parquet([good, bad, bad], target="y")
    sentence = r"bad.parquet, rows 0 to 4: the target 'y' is missing, NaN or infinite in 6 of the rows"
    with pytest.raises(ValueError, match=sentence):
        source.labelled()
    with pytest.raises(ValueError, match=sentence):
        codes(source.labelled(np.unique(y[:1])))
    if not isinstance(y[0], str):
        with pytest.raises(ValueError, match=sentence):
            list(source.valued().blocks())


def test_empty_fields_of_a_csv_file_are_no_labels(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "x,y\n1,u\n2,\n3,v\n4,NA\n")
    with pytest.raises(ValueError, match=r"a.csv, rows 0 to 3: the target 'y' is missing.* in 2 of the rows"):
        scan_csv(path, target="y").labelled()


def test_infinite_values(tmp_path: Path) -> None:
    source = scan_parquet(write(tmp_path / "a.parquet", {"x": [1.0, 2.0], "y": [1.0, np.inf]}), target="y")
    with pytest.raises(ValueError, match="in 1 of the rows"):
        list(source.valued().blocks())


@pytest.mark.parametrize(
    ("w", "sentence"),
    [
        ([1.0, -1.0], "a.parquet, rows 0 to 1, column 'w': sample_weight is negative in 1 rows"),
        ([1.0, None], "a.parquet, rows 0 to 1, column 'w': sample_weight contains NaN or infinity in 1 rows"),
        ([0.0, 0.0], "All weights in column 'w' are zero"),
    ],
)
def test_bad_weights(tmp_path: Path, w: list[Any], sentence: str) -> None:
    path = write(tmp_path / "a.parquet", {"x": [1.0, 2.0], "y": [0, 1], "w": w})
    source = scan_parquet(path, target="y", weight="w")
    for read in (source, source.valued(), source.labelled(np.array([0, 1]))):
        with pytest.raises(ValueError, match=sentence):
            list(read.blocks())
    with pytest.raises(ValueError, match=sentence if any(w) else "no row has a weight above zero"):
        source.labelled()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "a.csv: the file is empty; it needs a header line"),
        ("x,y\n1,2\n3\n5,6\n", r"a.csv, line 3: 1 field where the header has 2 \(the delimiter is ','"),
        ("x,y\n" + "1,2\n" * 90_000 + "3\n", "a.csv, line 90002: 1 field where the header has 2"),
        (
            "y,x\n" + "1,2\n" * 90_000 + "1,two\n",
            r"a.csv: column 'x', row 90001 \(the first row of data is 1\): 'two' is not a number",
        ),
        (b"x,y\xe9\n1,2\n", "a.csv, line 1: the text is not UTF-8. Save the file as UTF-8"),
        (
            'x,y\n1,"2\n' + "1,2\n" * 200_000,
            "a.csv: the last row holds 200001 lines; is a quotation mark left open",
        ),
    ],
    ids=["empty", "ragged", "ragged late", "mixed late", "latin-1", "open quote"],
)
def test_csv_files_that_cannot_be_read(tmp_path: Path, content: str | bytes, sentence: str) -> None:
    path = text(tmp_path / "a.csv", content)
    with pytest.raises(ValueError, match=sentence):
        rows(scan_csv(path, features=["x"]))


def test_mixed_labels_in_a_csv_file(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "x,y\n" + "1,2\n" * 90_000 + "1,two\n")
    with pytest.raises(
        ValueError, match=r"a.csv: column 'y', row 90001 .*'two' is not of the type of the first rows, int64"
    ):
        scan_csv(path, target="y").labelled()


def test_delimiter_of_two_characters(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="delimiter is '::'; give one character"):
        scan_csv(text(tmp_path / "a.csv", "x\n1\n"), delimiter="::")


def test_a_file_that_is_not_parquet(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a.parquet: .*Parquet"):
        scan_parquet(text(tmp_path / "a.parquet", "x,y\n1,2\n3,4\n"))


@BOTH
def test_no_rows(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", {"x": pa.array([], pa.float64()), "y": pa.array([], pa.string())})
    source = scan(path, target="y")
    assert list(source.blocks()) == []
    with pytest.raises(ValueError, match="at least one"):
        source.labelled()
    with pytest.raises(ValueError, match="The data have no rows"):
        source.reduce(lambda block: block.n, lambda a, b: a + b)


@BOTH
def test_files_that_vanish_or_change_between_passes(tmp_path: Path, suffix: str) -> None:
    paths = [write(tmp_path / f"{i}{suffix}", {"x": [1.0, 2.0], "y": ["a", "b"]}) for i in range(2)]
    source = scan(paths, target="y").labelled()
    write(paths[1], {"x": ["one", "two", "three"], "y": ["a", "b", "c"]})
    with pytest.raises(ValueError, match=rf"1\{suffix}: the file has changed since it was scanned"):
        rows(source)
    os.remove(paths[1])
    with pytest.raises(FileNotFoundError, match=rf"1\{suffix} cannot be read: No such file"):
        rows(source)


# -- the machine ------------------------------------------------------------------------------------------------------


def test_arrow_is_not_needed_to_import_the_library() -> None:
    subprocess.run(
        [sys.executable, "-c", "import sys; sys.modules['pyarrow'] = None; import separatrix.data"], check=True
    )


PEAK = """
import sys
import numpy as np
import pyarrow.compute, pyarrow.parquet
from separatrix import scan_parquet
from separatrix.settings import config

def memory(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))

def gram(block):
    rows = np.take(block.X, np.arange(block.n), axis=0)
    return rows.T @ rows

before = memory("VmRSS")
with config(threads=2):
    total = scan_parquet(sys.argv[1]).reduce(gram, np.add)
print(memory("VmHWM") - before, total[0, 0])
"""


def test_a_row_group_larger_than_memory_should_be_is_streamed(tmp_path: Path) -> None:
    if not os.path.exists("/proc/self/status"):
        pytest.skip("the peak memory of a process is read from /proc, which is not there")
    n, d = 1_200_000, 30
    column = np.random.default_rng(0).standard_normal(n)
    path = tmp_path / "a.parquet"
    data = pa.table({f"x{j}": column for j in range(d)})
    pq.write_table(data, path, row_group_size=n, use_dictionary=False, compression="none")
    assert pq.ParquetFile(path).num_row_groups == 1
    run = subprocess.run([sys.executable, "-c", PEAK, str(path)], check=True, capture_output=True, text=True)
    peak, total = map(float, run.stdout.split())
    assert total == pytest.approx(column @ column)
    assert peak < 8 * n * d / 4, f"{peak / 1e6:.0f} MB for {8 * n * d / 1e6:.0f} MB of rows"
