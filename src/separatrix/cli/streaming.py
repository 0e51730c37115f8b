"""Tables that are read in a stream: which are, and as what.

A table in memory is its decoded bytes several times over (columns, encoded rows, the parts of a fold). Where that is more than
the memory at hand, or where `--stream` asks for it, the table is never held.
"""

from __future__ import annotations

import os
from pathlib import Path

from separatrix.cli.progress import FileProgress
from separatrix.data.readers import expand
from separatrix.tables.table_files import FileTable, TableFiles

_COPIES = 5  # of the decoded bytes, in a comparison
_UNPACKED = {".gz": 5, ".arrow": 1, ".feather": 2, ".ipc": 1}  # bytes of a table for one in its file


def is_streamed(data: Path, asked: bool) -> bool:
    """Whether to read a table in a stream: if it was asked for, and where memory is too small."""
    if asked:
        return True
    memory = _memory_at_hand()
    return data.is_file() and memory is not None and _COPIES * _decoded_bytes(data) > memory


def table_source(data: Path, target: str, progress: FileProgress | None = None) -> FileTable:
    """A file, or a folder of Parquet files or else of text files, as a source."""
    paths = [str(data.expanduser())]
    if data.is_dir():
        try:
            paths = expand(data, ".parquet")
        except FileNotFoundError:
            paths = expand(data, ".csv")
    files = TableFiles(paths, target, None, None)
    files.meter.follow = None if progress is None else progress.read
    return FileTable(files)


def _decoded_bytes(file: Path) -> int:
    if file.suffix.lower() == ".parquet":
        from pyarrow import ArrowException, parquet

        try:
            about = parquet.read_metadata(file)
        except (ArrowException, OSError):  # what is wrong with the file is said where it is read
            return 0
        return sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    return file.stat().st_size * _UNPACKED.get(file.suffix.lower(), 1)


def _memory_at_hand() -> int | None:
    """Bytes that may be used without swapping; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        known = hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 if known else None
