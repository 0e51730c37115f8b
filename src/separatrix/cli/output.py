"""Files that are there whole or not at all: written beside their place under another name, then renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp


def place(path: Path) -> Path:
    """Where a file will be written, or a sentence on why it cannot be: asked before the work, not after it."""
    path = path.resolve()  # a link stays a link
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} to; make it first.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file, so it cannot be written; name a file with -o.")
    return path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; it becomes `path` when the block ends well, and is removed when it does not."""
    part = path.with_name(f".part-{os.getpid()}-{path.name}")  # the same suffix: it may choose the format
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder inside `path`, made when missing, whose files move up to `path` when the block ends well."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    part = Path(mkdtemp(prefix=".part-", dir=path))
    try:
        yield part
        for file in sorted(part.iterdir()):
            os.replace(file, path / file.name)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):  # somebody else may have put something there
            for folder in made:
                folder.rmdir()
        raise
    part.rmdir()
