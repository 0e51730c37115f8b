"""A table from standard input, named "-": kept in a file while it is read, since columns are looked at more than once."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_KINDS = {b"PAR1": ".parquet", b"ARRO": ".arrow", b"\x1f\x8b": ".csv.gz"}


@contextmanager
def given_table(path: Path) -> Iterator[Path]:
    """The path itself, or that of a file with what stands on standard input: text, or what its first bytes say."""
    if str(path) != "-":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        head = sys.stdin.buffer.read(4)
        suffix = next((kind for mark, kind in _KINDS.items() if head.startswith(mark)), ".csv")
        copy = Path(folder) / f"stdin{suffix}"
        with copy.open("wb") as file:
            file.write(head)
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield copy
        except Exception as error:  # whatever it is, it is not about a file that nobody has seen
            error.args = tuple(_renamed(one, str(copy)) for one in error.args)
            raise


def _renamed(words: Any, copy: str) -> Any:
    return words.replace(copy, "standard input") if isinstance(words, str) and copy in words else words
