"""Tables out, batch by batch: CSV, TSV, Parquet, Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

Write = Callable[[Any], None]
DELIMITERS = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (*DELIMITERS, ".parquet", ".arrow")


@contextmanager
def table_writer(sink: BinaryIO, suffix: str, schema: Any) -> Iterator[Write]:
    """A function that appends a record batch of this schema to an open file, which stays open."""
    import pyarrow as pa
    import pyarrow.parquet

    if suffix in DELIMITERS:
        yield _text(sink, DELIMITERS[suffix], schema)
    else:
        opened = pa.parquet.ParquetWriter if suffix == ".parquet" else pa.ipc.new_file
        with opened(sink, schema) as writer:
            yield writer.write_batch


def _text(sink: BinaryIO, delimiter: str, schema: Any) -> Write:
    """Text with quotes only where a batch needs them; Arrow's own style quotes all text or none."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    from separatrix.data.arrow_columns import kind

    special = f'[{delimiter}"\r\n]'
    texts = [j for j, field in enumerate(schema) if kind(field.type) == "text"]
    sink.write((delimiter.join(_quoted(name, delimiter) for name in schema.names) + "\n").encode())

    def write(batch: Any) -> None:
        quotes = any(pc.any(pc.match_substring_regex(batch.column(j), special)).as_py() for j in texts)
        style = "needed" if quotes else "none"
        options = pyarrow.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=style)
        buffer = pa.BufferOutputStream()  # Arrow closes what it writes to, and standard output is not ours to close
        pyarrow.csv.write_csv(batch, buffer, options)
        sink.write(buffer.getvalue())

    return write


def _quoted(name: str, delimiter: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(c in name for c in f'{delimiter}"\r\n') else name
