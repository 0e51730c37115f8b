"""Tables from files, whole or a batch of rows at a time: CSV and its kin as text, Parquet and Arrow with their types.

What the text of a file means is decided in one place, by the schema of a table, not by the first rows a reader happens to
see. Reading whole is reading all batches, so that the two can never disagree.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from separatrix.data.readers import ParquetReader, check_regular

DELIMITER = b"separatrix.delimiter"
"""Key of a table's metadata: what stood between the fields of a text file."""
FIRST_ROW = b"separatrix.first_row"
"""Key of a batch's metadata: how many rows of the file stand before it."""

_TEXT = (".csv", ".tsv", ".txt")
_ARROW = (".arrow", ".feather", ".ipc")
_HEAD = 1 << 18
# What people put between fields; where two cut the lines equally well, the comma is the likelier part of a text or a number.
_DELIMITERS = ";\t|,"
# A quoted field: it starts after a delimiter or at the start of a line, and may hold delimiters, newlines and "".
_QUOTED = re.compile(r'(^|[,;\t|\r\n])"(?:[^"]|"")*"')


def read_table(path: str | os.PathLike[str]) -> Any:
    r"""Read a whole file.

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
    >>> from separatrix.tables.reading import read_table
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


def table_batches(path: str | os.PathLike[str], rows: int = 65_536) -> Iterator[Any]:
    r"""Read a file a batch of rows at a time, in memory that does not grow with the file.

    Parameters
    ----------
    path : str or path
        As for `read_table`.
    rows : int, default=65_536
        A batch has at most so many.

    Returns
    -------
    iterator of pyarrow.RecordBatch
        With the columns and types of `read_table`.

    Examples
    --------
    >>> from separatrix.tables.reading import table_batches
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "people.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("name,age\nAda,36\nBlaise,39\nCarl,77\n")
    >>> [batch.num_rows for batch in table_batches(path, rows=2)]
    [2, 1]
    """
    if rows < 1:
        raise ValueError(f"rows={rows}: a batch has at least one row.")
    file = Path(path).expanduser()
    if not file.exists():
        raise FileNotFoundError(f"There is no file {str(file)!r}; check the path.")
    check_regular(file)
    suffix = Path(file.stem).suffix.lower() if file.suffix.lower() == ".gz" else file.suffix.lower()
    packed = file.suffix.lower() == ".gz"
    if file.is_dir() or suffix not in (*_TEXT, *(() if packed else (".parquet", *_ARROW))):
        what = "a folder" if file.is_dir() else f"of the type {file.suffix!r}" if file.suffix else "without a suffix"
        raise ValueError(
            f"{str(file)!r} is {what}; give a .csv, .tsv or .txt file (also .gz), or a .parquet, .arrow, .feather or .ipc one."
        )
    name = str(file)
    if suffix in _TEXT:
        return _cut(name, _text_batches(name), rows)
    return _cut(name, _parquet_batches(name, rows) if suffix == ".parquet" else _arrow_batches(name), rows)


def _cut(path: str, batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Batches of at most so many rows, each with its place in the file; what goes wrong is said with the file's name."""
    import pyarrow as pa

    first = 0
    try:
        for batch in batches:
            for start in range(0, batch.num_rows, rows):
                piece = batch.slice(start, rows)
                yield piece.replace_schema_metadata({**(batch.schema.metadata or {}), FIRST_ROW: str(first).encode()})
                first += piece.num_rows
    except (pa.ArrowException, EOFError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}. Is it complete, and of the type its name says?") from error
    if not first:
        raise ValueError(f"{path} has no rows; give a file with at least one.")


def _check_names(path: str, names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{path} has {count} columns named {name!r}; rename all but one.")


def _parquet_batches(path: str, rows: int) -> Iterator[Any]:
    reader = ParquetReader()
    schema, _ = reader.describe(path)
    _check_names(path, schema.names)
    index = (schema.pandas_metadata or {}).get("index_columns", [])  # stored, but no column to pandas
    yield from reader.read(path, {name: None for name in schema.names if name not in index}, [], rows)


def _arrow_batches(path: str) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import ipc

    with open(path, "rb") as file:
        magic = file.read(6)
    with pa.memory_map(path) as file:
        if magic == b"ARROW1":
            reader = ipc.open_file(file)
            _check_names(path, reader.schema.names)
            yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            with ipc.open_stream(file) as stream:
                _check_names(path, stream.schema.names)
                yield from stream


# -- text -------------------------------------------------------------------------------------------------------------


def _open_bytes(path: str) -> Any:
    return gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb")


def _text_batches(path: str) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    encoding, head, announced = _head(path)
    spaced = re.search(r'[,;\t|] +"', _QUOTED.sub(r"\1", head)) is not None
    if spaced:
        head = re.sub(r'([,;\t|]) +"', r'\1"', head)
    delimiter = announced or _sniff(head)
    try:
        given = next(record for record in csv.reader(io.StringIO(head, newline=""), delimiter=delimiter) if record)
    except csv.Error:
        raise ValueError(f"{path}, line 1: a name never ends; is a quotation mark left open?") from None
    names = [name.strip() for name in given]
    # A delimiter at the end of every line makes a last column that has neither a name nor values.
    trailing = len(names) > 1 and not names[-1]
    kept = names[:-1] if trailing else names
    if "" in kept:
        kept = [name or f"column {j}" for j, name in enumerate(kept, 1)]  # pandas writes its index so
    _check_names(path, kept)
    # Each block must hold the longest row; some are read ahead, so small ones keep the memory flat.
    size = max(1 << 20, 32 * sum(map(len, names)))
    skipped = int(bool(announced))
    read = arrow_csv.ReadOptions(block_size=size, use_threads=False, encoding=encoding, skip_rows=skipped)
    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(given, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    compression = "gzip" if path.lower().endswith(".gz") else None
    first, end = 0, None
    try:
        with (
            pa.PythonFile(_Tightened(path, delimiter), "r")
            if spaced and encoding == "utf-8"
            else pa.input_stream(path, compression=compression) as stream,
            arrow_csv.open_csv(stream, read, parse, convert) as reader,
        ):
            for batch in reader:
                columns = batch.columns
                if trailing and columns.pop().null_count < batch.num_rows:
                    at = batch.column(batch.num_columns - 1).is_valid().index(True).as_py() + first + 1
                    raise ValueError(f"{path}: the last column has no name, but row {at} has a value there; name it.")
                if batch.num_rows:
                    first, end = first + batch.num_rows, batch.column(batch.num_columns - 1)[-1].as_py()
                schema = pa.schema([(name, pa.string()) for name in kept], {DELIMITER: delimiter.encode()})
                yield pa.record_batch(columns, schema=schema)
            if end is not None and encoding == "utf-8" and not _closed(path, end):
                raise ValueError(
                    f"{path}: the last row holds {len(end.splitlines())} lines; is a quotation mark left open before them?"
                )
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        if "straddling" in str(error):
            raise ValueError(
                f"{path}: there is a row of more than {size} bytes; is a quotation mark left open?"
            ) from None
        raise ValueError(_explained(path, str(error), encoding, delimiter, len(given), skipped)) from None


class _Tightened:
    """A text file without the blanks between a delimiter and a quotation mark, which the parser would take for text."""

    def __init__(self, path: str, delimiter: str) -> None:
        self._file = _open_bytes(path)
        mark = re.escape(delimiter.encode())
        self._blanks, self._end = re.compile(mark + rb' +(?=")'), re.compile(mark + rb" *$")
        self._delimiter = delimiter.encode()
        self._raw = self._ready = b""
        self.closed = False

    def read(self, n: int) -> bytes:
        """The next bytes, at most so many."""
        while len(self._ready) < n and (part := self._file.read(1 << 16)):
            raw = self._raw + part
            # What follows a delimiter at the end of a part decides whether blanks are dropped.
            at = found.start() if (found := self._end.search(raw)) else len(raw)
            self._ready += self._blanks.sub(self._delimiter, raw[:at])
            self._raw = raw[at:]
        if len(self._ready) < n:
            self._ready, self._raw = self._ready + self._raw, b""
        given, self._ready = self._ready[:n], self._ready[n:]
        return given

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self.closed = True


def _head(path: str) -> tuple[str, str, str]:
    """How a text file is encoded, its beginning, and the delimiter that a first line such as 'sep=;' announces."""
    with _open_bytes(path) as file:
        raw = file.read(_HEAD) + file.readline(1 << 24)  # the header of a wide table is long
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    if encoding == "utf-8" and b"\0" in raw:
        raise ValueError(f"{path} holds binary data, not text; save the table as CSV (UTF-8) or Parquet.")
    # What is not of this encoding is found, with its line, when it is read.
    text = raw.decode(encoding, errors="replace").removeprefix("\ufeff")
    announced = re.match(r'"?sep=(.)"?\r?\n', text, re.IGNORECASE)  # Excel writes and reads it
    text = text[announced.end() :] if announced else text
    if not text.strip():
        raise ValueError(f"{path} is empty; it needs a header line and rows below it.")
    return encoding, text, announced[1] if announced else ""


def _sniff(head: str) -> str:
    """The delimiter: in the header, then as often in the other lines as there, then as often as possible."""
    lines = [line for line in re.split(r"[\r\n]+", _QUOTED.sub(r"\1", head)) if line.strip(" ")][:50]

    def suits(delimiter: str) -> tuple[float, int]:
        counts = [line.count(delimiter) for line in lines]
        return (counts.count(counts[0]) / len(counts) if counts[0] else 0.0), counts[0]

    found = max(_DELIMITERS, key=suits) if lines else ","  # no line is left of one long quoted field
    return found if lines and found in lines[0] else ","


def _closed(path: str, end: str) -> bool:
    """Whether the last field of a file, if it holds several lines, has a quotation mark behind it; the parser asks for none."""
    if "\n" not in end and "\r" not in end:
        return True
    # Blanks behind the quotation mark are part of the text to the parser.
    written = ['"{}"'.format(text.replace('"', '""')).encode() for text in (end, end.rstrip(" \t"))]
    tail = b""
    with _open_bytes(path) as file:  # from the start: packed files cannot be read from their end
        while part := file.read(1 << 20):
            tail = (tail + part)[-len(written[0]) - 64 :]
    return tail.rstrip().endswith(tuple(written))


def _explained(path: str, error: str, encoding: str, delimiter: str, width: int, skipped: int) -> str:
    """A sentence with the line for what the parser could not read."""
    if "Empty CSV" in error:
        return f"{path} has no rows; give a file with at least one."
    if ("UTF8" in error or "codec" in error) and encoding == "utf-8":
        with _open_bytes(path) as file:
            at = next((at for at, line in enumerate(file, 1) if not _is_utf8(line)), 1)
        return (
            f"{path}, line {at}: the text is not UTF-8. Save the file as UTF-8 (spreadsheets call it 'CSV UTF-8'), or convert "
            "it: iconv -f WINDOWS-1252 -t UTF-8."
        )
    with _open_bytes(path) as raw, io.TextIOWrapper(raw, encoding, errors="replace", newline="") as file:
        for _ in range(skipped):
            file.readline()
        records, line = csv.reader(file, delimiter=delimiter, skipinitialspace=True), 1 + skipped
        try:
            for record in records:
                if record and len(record) != width:
                    several = records.line_num + skipped > line
                    hint = "is a quotation mark left open?" if several else "correct the line."
                    mark = {"\t": "tab"}.get(delimiter, delimiter)
                    fields = f"{len(record)} field{'' if len(record) == 1 else 's'}"
                    return (
                        f"{path}, line {line}: {fields} where the header has {width} (the delimiter is {mark!r}; a field "
                        f"that holds one needs quotation marks); {hint}"
                    )
                line = records.line_num + skipped + 1
        except csv.Error:
            return f"{path}, line {line}: a field of this row never ends; is a quotation mark left open?"
    return f"{path}: {error}. Correct the file."


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
