"""Tables from files, at once or a batch of rows at a time: CSV and its kin as text, Parquet and Arrow with their types.

Reading at once is reading all batches, so that the two can never disagree. What the text of a file means is decided by the
schema of a table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from separatrix.data.readers import ARROW, TEXT, arrow_batches, check_regular, parquet_batches
from separatrix.data.text_files import NO_ROWS, UnreadableFile, text_batches, text_format

DELIMITER = b"separatrix.delimiter"
"""Key of a table's metadata: what stood between the fields of a text file."""
FIRST_ROW = b"separatrix.first_row"
"""Key of a batch's metadata: how many rows of the file stand before it."""
# Files that show how many rows there are, and bytes of a text file that show how long its lines are.
_FIRST_FILES, _START = 8, 1 << 18


def read_table(path: str | os.PathLike[str]) -> Any:
    r"""Read all rows of a file.

    Parameters
    ----------
    path : str or path
        A `.csv`, `.tsv` or `.txt` file with a header line (also with `.gz` behind), or a `.parquet`, `.arrow`, `.feather`
        or `.ipc` file.

    Returns
    -------
    pyarrow.Table
        From a text file every column is text, and an empty field is null: `TableSchema` decides what it means. The other
        files keep their types.

    Examples
    --------
    >>> from separatrix.tables import read_table
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "people.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("name;height\nAda;1,65\n")
    >>> read_table(path).to_pylist()
    [{'name': 'Ada', 'height': '1,65'}]
    """
    import pyarrow as pa

    batches = list(table_batches(path))
    metadata = {key: value for key, value in batches[0].schema.metadata.items() if key != FIRST_ROW}
    return pa.Table.from_batches(batches).replace_schema_metadata(metadata)


def table_batches(
    path: str | os.PathLike[str],
    rows: int = 65_536,
    *,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
) -> Iterator[Any]:
    r"""Read a file a batch of rows at a time, in memory that does not grow with the file.

    Parameters
    ----------
    path : str or path
        As for `read_table`.
    rows : int, default=65_536
        A batch has at most so many.
    columns : list of str, optional
        Only these; others are not decoded.
    delimiter : str, optional
        What stands between the fields of a text file; it is found out by default.

    Returns
    -------
    iterator of pyarrow.RecordBatch
        With the columns and types of `read_table`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from separatrix.tables import table_batches
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("name,age\nAda,36\nBlaise,39\nCarl,77\n")
    >>> [batch.num_rows for batch in table_batches(path, rows=2)]
    [2, 1]
    """
    if rows < 1:
        raise ValueError(f"rows={rows}: a batch has at least one row.")
    return coded_batches(path, rows, columns, delimiter, coded=False)


def coded_batches(
    path: str | os.PathLike[str],
    rows: int,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    *,
    coded: bool = True,
) -> Iterator[Any]:
    """`table_batches`, text of Parquet files as codes of a dictionary."""
    file = Path(path).expanduser()
    if not file.exists():
        raise FileNotFoundError(f"There is no file {str(file)!r}; check the path.")
    check_regular(file)
    packed = file.suffix.lower() == ".gz"
    suffix = Path(file.stem).suffix.lower() if packed else file.suffix.lower()
    if file.is_dir() or suffix not in (*TEXT, *(() if packed else (".parquet", *ARROW))):
        what = "a folder" if file.is_dir() else f"of the type {file.suffix!r}" if file.suffix else "without a suffix"
        raise ValueError(
            f"{str(file)!r} is {what}; give a .csv, .tsv or .txt file (also .gz), or a .parquet, .arrow, .feather or .ipc one."
        )
    name = str(file)
    if suffix in TEXT:
        return _cut(name, _with_delimiter(name, columns, delimiter), rows)
    wanted = None if columns is None else list(columns)
    return _cut(
        name,
        parquet_batches(name, rows, wanted, coded=coded) if suffix == ".parquet" else _selected(name, wanted),
        rows,
    )


def about_rows(sizes: Mapping[str, os.stat_result]) -> int:
    """About how many rows files have, by the first of them, without reading these; 0 where only that would tell."""
    rows = n_bytes = 0.0
    for path, stat in list(sizes.items())[:_FIRST_FILES]:
        rows += _rows_of(path, stat.st_size)
        n_bytes += stat.st_size
    return int(rows * sum(stat.st_size for stat in sizes.values()) / max(1.0, n_bytes))


def _rows_of(path: str, size: int) -> float:
    import pyarrow as pa
    import pyarrow.parquet as pq

    suffix = Path(path).suffix.lower()
    try:
        if suffix == ".parquet":
            return float(pq.read_metadata(path).num_rows)
        if suffix in TEXT:
            with open(path, "rb") as file:
                start = file.read(_START)
            return size * start.count(b"\n") / max(1, len(start))
    except (pa.ArrowException, OSError):  # whoever reads it says what is wrong
        pass
    return 0.0


def _selected(path: str, columns: list[str] | None) -> Iterator[Any]:
    return (batch if columns is None else batch.select(columns) for batch in arrow_batches(path))


def _with_delimiter(path: str, columns: Sequence[str] | None, delimiter: str | None) -> Iterator[Any]:
    """The batches of a text file, with the delimiter for those who have to find out the decimal mark."""
    form = text_format(path, delimiter)
    for batch in text_batches(path, form, columns):
        yield batch.replace_schema_metadata({DELIMITER: form.delimiter.encode()})


def _cut(path: str, batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Batches of at most so many rows, each with its place in the file; what goes wrong is named with the file."""
    import pyarrow as pa

    first = 0
    try:
        for batch in batches:
            for start in range(0, batch.num_rows, rows):
                piece = batch.slice(start, rows)
                yield piece.replace_schema_metadata({**(batch.schema.metadata or {}), FIRST_ROW: str(first).encode()})
                first += piece.num_rows
    except (pa.ArrowException, EOFError, OSError) as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{path} cannot be read: {reason}. Is it complete, and of the type its name says?") from error
    if not first:
        raise UnreadableFile(path, NO_ROWS)
