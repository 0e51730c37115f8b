"""The one writer of files: a file is there with all its content or not at all, and what is no file is left alone.

    write beside the place → flush to the disk → give it the mode of the old file → rename

A link is written through: its target is replaced, and the link stays. While a writer lives it holds a lock on what it
writes; what lies unlocked beside the place was left by a writer that was killed, and the next one removes it.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from separatrix.data.readers import irregular

try:
    import fcntl
except ImportError:  # Windows: what killed writers leave stays there
    fcntl = None  # type: ignore[assignment]  # not on Windows

_LEFT_BEHIND = re.compile(r"\.separatrix-[0-9a-f]{16}")
_SETTLED = 60.0  # seconds: a writer may not have taken its lock yet


def destination(path: str | os.PathLike[str]) -> Path:
    """The file that a path means, behind its links; an OSError where a file cannot be: asked before the work, not after.

    A link to a file that is not there yet is a place like any other: the file is made.
    """
    given = os.fspath(path)
    try:
        target = Path(os.path.realpath(given))
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            sentence = f"there is no folder {str(target.parent)!r} to write it to; make it first"
            raise FileNotFoundError(errno.ENOENT, sentence, given) from None
        return target
    except OSError as fault:
        raise OSError(fault.errno, fault.strerror, given) from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file; name a file in it", given)
    if what := irregular(mode):
        raise OSError(errno.EINVAL, f"it is {what}, not a regular file, and is left as it is; name a file", given)
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A name beside `path` to write to; it becomes `path` when the block ends well, and is removed when it does not."""
    target = destination(path)
    part, held = _beside(target.parent), -1
    try:
        # Until it has the mode of the old file, nobody else reads it; a new file has the usual one.
        held = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600 if target.exists() else 0o666)
        _lock(held)
        yield part
        if fcntl is None:  # Windows renames no open files
            os.close(held)
            held = -1
        put_in_place(part, target)
    except BaseException as fault:  # also Ctrl-C
        with suppress(OSError):  # a folder that is not there, or not ours
            part.unlink(missing_ok=True)
        if isinstance(fault, OSError) and fault.errno is not None and fault.filename in (None, os.fspath(part)):
            raise OSError(fault.errno, fault.strerror, os.fspath(path)) from fault  # not the name of the file beside it
        raise
    finally:
        if held >= 0:
            os.close(held)


def put_in_place(part: Path, target: Path) -> None:
    """Rename a finished file over another of the same file system, with the mode and owner of the one it replaces."""
    with open(part, "rb+") as file:
        with suppress(FileNotFoundError):
            old = target.stat()
            os.chmod(part, stat.S_IMODE(old.st_mode))
            new = os.fstat(file.fileno())
            if hasattr(os, "fchown") and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
                with suppress(OSError):  # only root gives files away
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
        os.fsync(file.fileno())
    os.replace(part, target)


@contextmanager
def replacing_folder(path: Path, names: tuple[str, ...]) -> Iterator[Path]:
    """A folder inside `path`, made when missing, whose files of these names move up to `path` when the block ends well."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    places = {name: destination(path / name) for name in names}
    part, held = _beside(path), -1
    try:
        part.mkdir(0o700)
        if fcntl is not None:
            held = os.open(part, os.O_RDONLY)
            _lock(held)
        yield part
        for name, place in places.items():
            put_in_place(part / name, place)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):  # somebody else may have put something there
            for folder in made:
                folder.rmdir()
        raise
    finally:
        if held >= 0:
            os.close(held)
    part.rmdir()


def _beside(folder: Path) -> Path:
    """A new name in a folder, which is cleared of what killed writers left."""
    _clear(folder)
    return folder / f".separatrix-{secrets.token_hex(8)}"


def _lock(held: int) -> bool:
    """Whether nobody else holds it; some file systems know no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _clear(folder: Path) -> None:
    """Remove what killed writers left in a folder."""
    if fcntl is None:
        return
    with suppress(OSError):  # it is not ours to clear
        for entry in os.scandir(folder):
            if not _LEFT_BEHIND.fullmatch(entry.name) or entry.is_symlink():
                continue
            if time.time() - entry.stat(follow_symlinks=False).st_mtime < _SETTLED:
                continue
            with suppress(OSError):
                held = os.open(entry.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
                try:
                    if _lock(held):
                        shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)
                finally:
                    os.close(held)
