"""Reading Parquet and CSV with pyarrow: which files, which columns, batches of rows, and errors that name the place.

Nothing here knows of blocks or targets; pyarrow is imported when a file is first opened.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Names = str | Sequence[str]
NUMERIC = ("numeric", "boolean", "empty")


_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


def irregular(mode: int) -> str:
    """What a path of this mode is, if it is neither a regular file nor a folder; else nothing."""
    return "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else _KINDS.get(stat.S_IFMT(mode), "no regular file")


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse to read what is no file: a pipe would wait without a word, and has its content only once."""
    with suppress(OSError):  # what is not there is told where it is opened
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
    except OSError as error:
        reason = f"{error.strerror or error}; has the file moved or changed since it was scanned?"
        raise type(error)(f"{where} cannot be read: {reason}") from error
    except (ValueError, NotImplementedError) as error:
        advice = "; write the file in UTF-8." if isinstance(error, UnicodeError) else ""
        raise ValueError(f"{where}: {error}{advice}") from error


def kind(dtype: Any) -> str:
    """What a column of this Arrow type holds; types that we have no use for are called by their own name."""
    from pyarrow import types

    dtype = dtype.value_type if types.is_dictionary(dtype) else dtype
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "numeric"
    if types.is_string(dtype) or types.is_large_string(dtype):
        return "text"
    return "boolean" if types.is_boolean(dtype) else "empty" if types.is_null(dtype) else str(dtype)


def decoded_column(batch: Any, name: str) -> Any:
    """A column of a batch, dictionary codes replaced by what they stand for."""
    column = batch.column(name)
    return column.dictionary_decode() if hasattr(column.type, "value_type") else column


def numbers(column: Any, dtype: str = "float64") -> NDArray[Any]:
    """An Arrow column as floating numbers, a view where it holds them already; nulls become NaN."""
    if column.type != dtype:
        column = column.cast(dtype, safe=False)  # integers beyond 2⁵³ are rounded, as NumPy does
    # Arrow's own to_numpy imports pandas: half a second and 45 MB.
    return np.from_dlpack(column.fill_null(float("nan")) if column.null_count else column)


def missing(column: Any) -> NDArray[Any]:
    """Which rows of a target are null, NaN or infinite."""
    if kind(column.type) == "text":
        return np.from_dlpack(column.is_null().cast("uint8")).astype(bool)
    return np.asarray(~np.isfinite(numbers(column)))


class ParquetReader:
    """Parquet files, a batch of rows at a time."""

    suffix = ".parquet"

    def _open(self, path: str) -> Any:
        from pyarrow.parquet import ParquetFile

        # The defaults (pre_buffer, no buffer) read a whole row group before its first row comes out.
        return ParquetFile(path, pre_buffer=False, buffer_size=1 << 16)

    def describe(self, path: str) -> tuple[Any, int | None]:
        """The Arrow schema of a file, and its number of rows where it is written there."""
        with self._open(path) as file:
            return file.schema_arrow, file.metadata.num_rows

    def read(self, path: str, types: dict[str, Any], labels: list[str], rows: int) -> Iterator[Any]:
        """The columns of `types` as Arrow record batches of bounded size."""
        # Decoding on Arrow's threads as well is no faster beside our workers, and each of them keeps some memory.
        with self._open(path) as file:
            yield from file.iter_batches(min(rows, max(4096, rows // 4)), columns=list(types), use_threads=False)


@dataclass(frozen=True)
class CsvReader:
    """CSV files with a header line, a batch of rows at a time."""

    delimiter: str
    suffix: ClassVar = ".csv"

    @contextmanager
    def _open(self, path: str, types: dict[str, Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv

        with open(path, "rb") as file:
            header = len(file.readline(1 << 24))
        # Some thirty blocks are read ahead: small ones, but each must hold the longest row. On one thread errors come
        # with the row, and the speed is the same.
        read = csv.ReadOptions(block_size=max(1 << 18, 32 * header), use_threads=False)
        parse = csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        convert = csv.ConvertOptions(column_types=types, include_columns=list(types), strings_can_be_null=True)
        try:
            with csv.open_csv(path, read, parse, convert) as reader:
                yield reader
        except pa.ArrowInvalid as error:
            message = f"{error} (the header is row 1). Correct the file, or delimiter=."
            if "Empty CSV file" in message:
                message = "the file is empty; it needs a header line and rows below it."
            elif "straddling" in message:
                message = f"there is a row of more than {read.block_size} bytes; is a quotation mark left open?"
            elif at := re.match(r"In CSV column #(\d+)", message):
                message = f"in column {self.describe(path)[0].names[int(at[1])]!r}{message[at.end() :]}"
            raise ValueError(message) from None

    def describe(self, path: str) -> tuple[Any, int | None]:
        """The Arrow schema as the first rows suggest it."""
        with self._open(path, {}) as reader:
            return reader.schema, None

    def read(self, path: str, types: dict[str, Any], labels: list[str], rows: int) -> Iterator[Any]:
        """The columns of `types` as Arrow record batches; numbers as doubles, unless they are labels."""
        # Integers in the first rows promise nothing for the later ones, and empty fields even less.
        kinds = {name: kind(dtype) for name, dtype in types.items()}
        doubles = {name: "double" for name, kind in kinds.items() if kind in ("numeric", "empty")}
        asked = {name: "string" if kinds[name] == "empty" else types[name] for name in labels}
        with self._open(path, types | doubles | asked) as reader:
            yield from reader
