"""How many threads to use: one setting, read at the start of every pass over the data; and whose line warnings name.

The answer never depends on it: the rows are cut into the same blocks and merged in the same order
whatever the number of threads.
"""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import RLock, get_ident
from types import EllipsisType
from typing import Any, ParamSpec, TypeVar
from weakref import ReferenceType, ref

Given = ParamSpec("Given")
Result = TypeVar("Result")
_ENVIRONMENT = "SEPARATRIX_THREADS"
_BLAS_NAMES = ("blas", "blis", "mkl")
_threads: ContextVar[int | None] = ContextVar("separatrix_threads", default=None)
_device: ContextVar[str | None] = ContextVar("separatrix_device", default=None)
_cache: ContextVar[int | None] = ContextVar("separatrix_cache", default=None)


def _checked(threads: Any, where: str) -> int:
    try:
        count = int(threads)
    except (TypeError, ValueError, OverflowError):
        count = 0
    if count < 1 or count != float(threads):
        raise ValueError(f"{where} is {threads!r}; give a whole number of threads, 1 or more.")
    return count


class Config:
    """Library-wide settings, as a context manager.

    The number of threads is, in this order: the innermost ``with separatrix.config(threads=...)``,
    the environment variable ``SEPARATRIX_THREADS``, the number of cores this process may use.

    Examples
    --------
    >>> import separatrix
    >>> with separatrix.config(threads=1):
    ...     separatrix.config.threads
    1
    """

    @property
    def threads(self) -> int:
        """Number of worker threads used by a pass over the data."""
        chosen = _threads.get()
        if chosen is not None:
            return chosen
        from_environment = os.environ.get(_ENVIRONMENT)
        if from_environment:
            return _checked(from_environment, f"The environment variable {_ENVIRONMENT}")
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    @property
    def device(self) -> str | None:
        """The device that dense arrays are moved to for a fit, as PyTorch names it; ``None`` for none."""
        return _device.get()

    @property
    def cache(self) -> int | None:
        """Bytes that blocks of files may take on the disk of temporary files; ``None``: as its free room allows."""
        return _cache.get()

    @contextmanager
    def __call__(
        self, *, threads: int | EllipsisType = ..., device: str | None = None, cache: int | None = None
    ) -> Iterator[Config]:
        """Use `threads` threads, a device such as ``"cuda"`` for dense arrays, or so many bytes of `cache` for passes over
        files that repeat (0 for none), inside the ``with`` block.
        """
        tokens: list[tuple[ContextVar[Any], Any]] = []
        if threads is not ...:
            tokens.append((_threads, _threads.set(_checked(threads, "threads"))))
        if device is not None:
            tokens.append((_device, _device.set(device)))
        if cache is not None:
            if isinstance(cache, bool) or int(cache) != cache or cache < 0:
                raise ValueError(f"cache is {cache!r}; give a whole number of bytes, 0 for none.")
            tokens.append((_cache, _cache.set(int(cache))))
        try:
            yield self
        finally:
            for variable, token in tokens:
                variable.reset(token)


config = Config()


@contextmanager
def threads_of(n_jobs: int | None) -> Iterator[None]:
    """As many threads as scikit-learn's parameter `n_jobs` asks for; ``None`` and negative numbers change nothing."""
    if n_jobs is None or n_jobs < 1:
        yield
    else:
        with config(threads=n_jobs):
            yield


def _set_threads(library: Any, threads: int) -> None:
    # Newer versions of threadpoolctl ignore every thread but the first that ever set a number; we count the users instead.
    getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


def _blas_libraries() -> list[Any]:
    import scipy.linalg  # noqa: F401  # it has a BLAS of its own, which must be there to be found
    from threadpoolctl import ThreadpoolController

    class BlasController(ThreadpoolController):  # type: ignore[misc]  # threadpoolctl ships no types
        """One that passes over hundreds of libraries by their names: to look at each takes longer than a small fit."""

        def _make_controller_from_path(self, path: str, *more: Any) -> None:
            if any(name in os.path.basename(path) for name in _BLAS_NAMES):
                super()._make_controller_from_path(path, *more)

    found: list[Any] = BlasController().select(user_api="blas").lib_controllers
    return found


class _OneBlasThread:
    """Who asked for one BLAS thread, and what BLAS had before; the number belongs to the whole process.

    The first to come sets one, the last to go restores; whoever comes in between finds it set. A number that somebody
    else set in the meantime is seen by the next to come, and is what the last one restores; one that is still there at
    the end is left alone.
    """

    def __init__(self) -> None:
        self._users: dict[object, int] = {}  # with the thread each of them came from
        self._before: dict[Any, int] = {}
        self._lock = RLock()  # an abandoned user may leave while its thread is in here
        self._libraries: list[Any] | None = None

    def enter(self, user: object) -> None:
        if self._libraries is None:
            self._libraries = _blas_libraries()
        with self._lock:
            self._users[user] = get_ident()
            for library in self._libraries:
                threads = library.get_num_threads()
                if threads != 1 and threads is not None:
                    self._before[library] = threads
                    _set_threads(library, 1)

    def leave(self, user: object) -> None:
        with self._lock:
            self._users.pop(user, None)
            if not self._users:
                self._restore()

    def _restore(self) -> None:
        for library, threads in list(self._before.items()):
            if library.get_num_threads() == 1:
                _set_threads(library, threads)
            self._before.pop(library, None)

    def after_fork(self) -> None:
        """In the child, where no thread lives but the one that forked."""
        self._lock = RLock()
        self._users = {user: thread for user, thread in self._users.items() if thread == get_ident()}
        if not self._users:
            self._restore()


_one_blas_thread = _OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_blas_thread.after_fork)


class one_blas_thread:  # used as a function: `with one_blas_thread():`, or as a decorator
    """BLAS on one thread: our own pool is the only source of parallelism.

    Threads inside threads are the main cause of slow dense passes, and the result of a BLAS call may
    depend on its number of threads. May be entered by any number of threads at once, nested or overlapping.
    A class, since small fits and predictions spend a share of their time on entering what `contextmanager` makes.
    """

    __slots__ = ("__weakref__", "_user")

    def __enter__(self) -> None:
        # One that Ctrl-C lets fall leaves when it is collected.
        self._user: ReferenceType[Any] | None = ref(self, _one_blas_thread.leave)
        _one_blas_thread.enter(self._user)

    def __exit__(self, *error: object) -> None:
        user, self._user = self._user, None
        assert user is not None
        try:
            _one_blas_thread.leave(user)
        except BaseException:  # Ctrl-C on the way out: to leave twice is to leave once
            _one_blas_thread.leave(user)
            raise

    def __call__(self, function: Callable[Given, Result]) -> Callable[Given, Result]:
        """The function with BLAS on one thread while it runs."""

        @wraps(function)
        def inner(*given: Given.args, **options: Given.kwargs) -> Result:
            with one_blas_thread():
                return function(*given, **options)

        return inner


_OURS = (os.path.dirname(__file__), contextlib.__file__)


def outside() -> int:
    """The `stacklevel` of a warning that is to name the user's line: the first outside this library."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        level, frame = level + 1, frame.f_back
    return level
