"""Files as Arrow record batches: which files, which columns, and errors that name the place.

Text is parsed by text_files.py; here a column of it becomes numbers, booleans or labels, for sources that need types. pyarrow
is imported when a file is first opened.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from separatrix.data.arrow_columns import NO_LABEL, UnreadableValue, kind, plain
from separatrix.data.number_text import NumberText, cast_to_numbers, decimal_mark, first_refused, read_floats
from separatrix.data.text_files import (
    NotPlainNumbers,
    TextFormat,
    UnreadableFile,
    check_names,
    text_batches,
    text_format,
)

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Names = str | Sequence[str]
TEXT = (".csv", ".tsv", ".txt")
ARROW = (".arrow", ".feather", ".ipc")
_FIRST_ROWS = 10_000  # that suggest the types of a CSV file's columns
_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


def irregular(mode: int) -> str:
    """What a path of this mode is, if it is neither a regular file nor a folder; else nothing."""
    return "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else _KINDS.get(stat.S_IFMT(mode), "no regular file")


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse to read what is no file: a pipe would wait without a word, and has its content only once."""
    with suppress(OSError):  # what is not there is refused where it is opened
        what = irregular(os.stat(path).st_mode)
        if what:
            raise ValueError(
                f"{os.fspath(path)!r} is {what}, not a regular file, and files are read more than once; write its content to a "
                "file first, and give that."
            )


def expand(paths: Paths, suffix: str) -> list[str]:
    """Every file meant by the paths, in their order; folders and globs give theirs sorted."""
    files: list[str] = []
    for item in [paths] if isinstance(paths, str | os.PathLike) else paths:
        text = os.path.expanduser(os.fspath(item))
        check_regular(text)
        found = set()
        for match in map(Path, [text] if os.path.exists(text) else glob.glob(text, recursive=True)):
            for file in match.rglob("*") if match.is_dir() else [match]:
                # Inside a folder, hidden names and those of writers (_SUCCESS, _temporary) are not data.
                data = file.suffix.lower() == suffix and not any(p[0] in "._" for p in file.relative_to(match).parts)
                if file.is_file() and (data or file == match):
                    found.add(str(file))
        if not found:
            raise FileNotFoundError(f"There is no file at {text!r}; give a {suffix} file, a folder of them or a glob.")
        files += sorted(found)
    if not files:
        raise ValueError(f"The list of paths is empty; give at least one {suffix} file, folder or glob.")
    return files


@contextmanager
def named(where: str) -> Iterator[None]:
    """Put the place in front of what went wrong there."""
    try:
        yield
    except UnreadableFile:  # it has the place already
        raise
    except OSError as error:
        reason = f"{error.strerror or error}; has the file moved or changed since it was scanned?"
        raise type(error)(f"{where} cannot be read: {reason}") from error
    except (ValueError, NotImplementedError) as error:
        if str(error).startswith(where):
            raise
        raise ValueError(f"{where}: {error}") from error


def _open_parquet(path: str, coded: list[str] | None = None) -> Any:
    from pyarrow.parquet import ParquetFile

    # The defaults (pre_buffer, no buffer) read a whole row group before its first row comes out. Pages that were written with
    # a checksum are checked: others show that they are damaged only if they cannot be unpacked.
    checked = {"page_checksum_verification": True}
    return ParquetFile(path, pre_buffer=False, buffer_size=1 << 16, read_dictionary=coded, **checked)


def index_columns(schema: Any) -> list[str]:
    """The columns that pandas stored for its index: columns of the file, not of the table."""
    return [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]


def parquet_batches(path: str, rows: int, columns: list[str] | None = None, *, coded: bool = False) -> Iterator[Any]:
    """The columns of a Parquet file, or those named, as Arrow record batches of bounded size.

    With `coded` text comes as the file has it mostly, by its dictionary: a fraction of the work where few texts repeat.
    """
    texts: list[str] = []
    if coded:
        with _open_parquet(path) as file:
            texts = [field.name for field in file.schema_arrow if kind(field.type) == "text"]
    with _open_parquet(path, texts) as file:
        if columns is None:
            check_names(path, file.schema_arrow.names)
            index = index_columns(file.schema_arrow)
            columns = [name for name in file.schema_arrow.names if name not in index]
        # Decoding on Arrow's threads as well is no faster beside our workers, and each of them keeps some memory.
        rows = rows if coded else min(rows, max(4096, rows // 4))
        yield from file.iter_batches(rows, columns=columns, use_threads=False)


def arrow_batches(path: str) -> Iterator[Any]:
    """An Arrow file or stream as its record batches."""
    import pyarrow as pa
    from pyarrow import ipc

    with open(path, "rb") as file:
        magic = file.read(6)
    with pa.memory_map(path) as file:
        if magic == b"ARROW1":
            reader = ipc.open_file(file)
            check_names(path, reader.schema.names)
            yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            with ipc.open_stream(file) as stream:
                check_names(path, stream.schema.names)
                yield from stream


class ParquetReader:
    """Parquet files, for a source."""

    suffix = ".parquet"

    def describe(self, path: str) -> tuple[Any, int | None]:
        """The Arrow schema of a file, and its number of rows where it is stored there."""
        with _open_parquet(path) as file:
            return file.schema_arrow, file.metadata.num_rows

    def read(self, path: str, types: dict[str, Any], labels: list[str], rows: int) -> Iterator[Any]:
        """The columns of `types` as Arrow record batches of bounded size."""
        return parquet_batches(path, rows, list(types))


class CsvReader:
    """CSV files, for a source: the first rows suggest the types of the columns, and the delimiter unless it is given."""

    suffix = ".csv"

    def __init__(self, delimiter: str | None) -> None:
        self._delimiter = delimiter
        self._forms: dict[str, tuple[TextFormat, str]] = {}  # with the decimal mark
        self._plain: dict[str, frozenset[str]] = {}

    def describe(self, path: str) -> tuple[Any, int | None]:
        """The Arrow schema as the first rows suggest it."""
        import pyarrow as pa

        form = text_format(path, self._delimiter)
        with closing(text_batches(path, form)) as batches:
            first = next((batch.slice(0, _FIRST_ROWS) for batch in batches), None)
        given = {} if first is None else {name: first.column(name) for name in form.names}
        texts = {name: NumberText(plain(column)) for name, column in given.items()}
        decimal = decimal_mark(texts.values(), form.delimiter)
        self._forms[path] = form, decimal
        # What the parser converts by itself: numbers as computers write them, with no code for a missing one.
        whole = {name for name, text in texts.items() if text.text.null_count == given[name].null_count}
        self._plain[path] = frozenset(name for name in whole if texts[name].is_bare(decimal))
        found = {name: _suggested_type(text, decimal) for name, text in texts.items()}
        return pa.schema([(name, found.get(name, pa.null())) for name in form.names]), None

    def read(self, path: str, types: dict[str, Any], labels: list[str], rows: int) -> Iterator[Any]:
        """The columns of `types` as Arrow record batches; numbers as doubles, unless they are labels."""
        import pyarrow as pa

        start, decimal = 0, self._forms[path][1]
        for batch in self._batches(path, list(types), labels):
            columns = []
            for name, dtype in types.items():
                try:
                    columns.append(_typed(batch.column(name), dtype, decimal, name in labels))
                except UnreadableValue as error:
                    raise UnreadableFile(path, error.sentence(name, start)) from None
            yield pa.record_batch(columns, names=list(types))
            start += batch.num_rows

    def _batches(self, path: str, names: list[str], labels: list[str]) -> Iterator[Any]:
        """Plain numbers converted by the parser, all else as text: from where it fails on, and in later passes, all."""
        (form, decimal), start = self._forms[path], 0
        try:
            for batch in text_batches(path, form, names, self._plain[path].difference(labels), decimal):
                yield batch
                start += batch.num_rows
        except NotPlainNumbers:
            self._plain[path] = frozenset()
            for batch in text_batches(path, form, names):
                start, done = max(0, start - batch.num_rows), min(start, batch.num_rows)
                yield batch.slice(done)


def _suggested_type(text: NumberText, decimal: str) -> Any:
    """Null for a column without values, else whole numbers, numbers, booleans or text."""
    import pyarrow as pa

    if not text.n_observed:
        return pa.null()
    if text.floats is not None and cast_to_numbers(text.text, pa.int64()) is not None:
        return pa.int64()
    if text.parsed(decimal) is not None:
        return pa.float64()
    words = text.text.drop_null().unique().to_pylist()
    return pa.bool_() if {word.lower() for word in words} <= {"true", "false"} else pa.string()


def _typed(column: Any, dtype: Any, decimal: str, label: bool) -> Any:
    """A column of text in the type of its first rows; numbers that are no labels as doubles, which later rows may need."""
    import pyarrow as pa

    what = kind(dtype)
    if kind(column.type) == "numeric":
        return column
    if not label and what in ("numeric", "empty"):
        return pa.array(read_floats(column, decimal))
    text = plain(column, NO_LABEL) if label else plain(column)
    if what in ("text", "empty"):
        return text
    found = cast_to_numbers(text, dtype)
    if found is None:
        at = first_refused(text, lambda part: cast_to_numbers(part, dtype) is not None)
        raise UnreadableValue(text[at].as_py(), at, f"is not of the type of the first rows, {dtype}")
    return found
