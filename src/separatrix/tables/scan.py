"""Files as sources: numbers are read as they are, tables of mixed columns as `compare` reads and encodes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from separatrix.data.arrow_columns import kind
from separatrix.data.files import FileSource, is_number_type
from separatrix.data.readers import CsvReader, Names, ParquetReader, Paths, expand, index_columns, named
from separatrix.data.source import Source
from separatrix.tables.table_files import FileTable, TableFiles
from separatrix.tables.table_scan import TableEncoding

_Reader = Callable[[], ParquetReader | CsvReader]


class NumericFiles(FileSource):
    """Files of numbers, which a model that was fitted to a mixed table reads in its own encoding."""

    def __init__(self, files: list[str], scan: _Scan, features: Names | None) -> None:
        super().__init__(scan.reader(), files, scan.target, features, scan.weight)
        self._scan = scan

    def read_as(self, encoding: Any, names: NDArray[Any] | None) -> Source:
        if isinstance(encoding, TableEncoding):
            return MixedFiles(self._files, self._scan, None, encoding)
        return super().read_as(encoding, names)

    def table(self) -> Source:
        return MixedFiles(self._files, self._scan, self._features)


class MixedFiles(FileTable):
    """A table of mixed columns, of which a model that was fitted to numbers reads its columns as they are."""

    def __init__(
        self, files: list[str], scan: _Scan, features: Names | None, encoding: TableEncoding | None = None
    ) -> None:
        if not isinstance(scan.target, str | None):
            raise ValueError(
                f"target={scan.target!r}: several targets need columns of numbers; name these with features=."
            )
        features = [features] if isinstance(features, str) else features
        super().__init__(TableFiles(files, scan.target, features, scan.weight, scan.delimiter), encoding)
        self._scan = scan

    def read_as(self, encoding: Any, names: NDArray[Any] | None) -> Source:
        if encoding is None and names is not None:
            return NumericFiles(self.files.paths, self._scan, list(names))
        return super().read_as(encoding, names)


class _Scan:
    """What was asked for, whatever the files turn out to hold."""

    def __init__(self, reader: _Reader, target: Names | None, weight: str | None, delimiter: str | None) -> None:
        self.reader, self.target, self.weight, self.delimiter = reader, target, weight, delimiter

    def source(self, paths: Paths, features: Names | None, encode: bool | None) -> FileSource | FileTable:
        reader = self.reader()
        files = expand(paths, reader.suffix)
        mixed = self._is_mixed(reader, files, features) if encode is None else encode
        return MixedFiles(files, self, features) if mixed else NumericFiles(files, self, features)

    def _is_mixed(self, reader: ParquetReader | CsvReader, files: list[str], features: Names | None) -> bool:
        for path in files:
            with named(path):
                schema, _ = reader.describe(path)
            if any(kind(dtype) != "empty" for dtype in schema.types):  # else it is a text file without rows
                break
        names = [features] if isinstance(features, str) else features
        if names is None:
            targets = [self.target] if isinstance(self.target, str) else list(self.target or [])
            apart = [*targets, self.weight, *index_columns(schema)]
            names = [name for name in schema.names if name not in apart]
        present = [
            name for name in names if schema.names.count(name) == 1
        ]  # the others are named where all are checked
        return not all(is_number_type(schema.field(name).type) for name in present)


def scan_parquet(
    paths: Paths,
    *,
    target: Names | None = None,
    features: Names | None = None,
    weight: str | None = None,
    encode: bool | None = None,
) -> FileSource | FileTable:
    """Parquet files as a source of rows that are read when needed and never all at once.

    Parameters
    ----------
    paths : str, path or list of them
        Files, globs, or folders, which stand for every ``*.parquet`` below them (names that start with ``.`` or ``_``
        are passed over). Globs and folders are read in sorted order.
    target : str or list of str, optional
        Column of the labels or values to predict; a list for several values.
    features : list of str, optional
        All columns but target and weight by default. No other column is decoded.
    weight : str, optional
        Column of the weights of the rows, ≥ 0.
    encode : bool, optional
        Whether the columns are encoded as `compare` does it: holes by the median and a mark of their own, categories by
        indicators, all standardised, dates left out. What that takes is learnt in one pass over the files, at the first use,
        and rows without a label are left out. False reads numbers as they are and refuses other columns. By default columns
        are encoded where one of them is neither numbers nor booleans.

    Returns
    -------
    Source
        To be given to ``fit`` in the place of X. A fitted model reads other files in the same way, by the names of its
        columns: ``model.predict(scan_parquet("more.parquet"))``. Printing it shows the columns.

    Examples
    --------
    >>> import os, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from separatrix import scan_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"x": [0.5, 1.5], "y": ["a", "b"]}), os.path.join(folder, "1.parquet"))
    ...     source = scan_parquet(folder, target="y").labelled()
    ...     source.n_rows, source.classes.tolist(), next(source.blocks()).codes.tolist()
    (2, ['a', 'b'], [0, 1])
    """
    return _Scan(ParquetReader, target, weight, None).source(paths, features, encode)


def scan_csv(
    paths: Paths,
    *,
    target: Names | None = None,
    features: Names | None = None,
    weight: str | None = None,
    delimiter: str | None = None,
    encode: bool | None = None,
) -> FileSource | FileTable:
    r"""CSV files with a header line as a source of rows that are read when needed and never all at once.

    The encoding (UTF-8 or UTF-16), the delimiter, the decimal mark and quotation marks are found as by `read_table`. Empty
    fields and the usual spellings of a missing value (NA, NaN, null, ?, …) are missing values.

    Parameters
    ----------
    paths, target, features, weight, encode
        As for `scan_parquet`, with ``*.csv`` for folders.
    delimiter : str, optional
        The character between fields; by default it is found in each file.

    Returns
    -------
    Source
        To be given to ``fit`` in the place of X. Its ``n_rows`` is ``None`` until all rows have been read once.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from separatrix import LogisticRegression, scan_csv
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age,sex,ill\n20,f,no\n25,m,no\n33,f,yes\n47,m,no\n,f,yes\n61,m,yes\n")
    >>> model = LogisticRegression().fit(scan_csv(path, target="ill"))
    >>> model.feature_names_in_.tolist()
    ['age', 'age is missing', 'sex = m']
    >>> model.predict(scan_csv(path)).tolist()
    ['no', 'no', 'yes', 'no', 'yes', 'yes']
    """
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"delimiter is {delimiter!r}; give one character.")
    return _Scan(lambda: CsvReader(delimiter), target, weight, delimiter).source(paths, features, encode)
