"""How many threads to use: one setting, read at the start of every pass over the data.

The answer never depends on it: the rows are cut into the same blocks and merged in the same order
whatever the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

_ENVIRONMENT = "SEPARATRIX_THREADS"
_threads: ContextVar[int | None] = ContextVar("separatrix_threads", default=None)


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

    @contextmanager
    def __call__(self, *, threads: int) -> Iterator[Config]:
        """Use `threads` threads inside the ``with`` block."""
        token = _threads.set(_checked(threads, "threads"))
        try:
            yield self
        finally:
            _threads.reset(token)


config = Config()


@contextmanager
def threads_of(n_jobs: int | None) -> Iterator[None]:
    """As many threads as scikit-learn's parameter `n_jobs` asks for; ``None`` and negative numbers change nothing."""
    if n_jobs is None or n_jobs < 1:
        yield
    else:
        with config(threads=n_jobs):
            yield


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread: our own pool is the only source of parallelism.

    Threads inside threads are the main cause of slow dense passes, and the result of a BLAS call may
    depend on its number of threads.
    """
    with _blas().limit(limits=1):
        yield
