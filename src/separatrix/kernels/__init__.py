"""Compiled inner loops: pure functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Loop], Loop]:
    """Compile a loop that holds no interpreter lock and is kept on disk; further options are numba's.

    ``inline="always"`` puts a helper into the loop that calls it, so that it has that loop's floating-point options.

    Parameters
    ----------
    **options
        `fastmath`, `inline`.

    Returns
    -------
    callable
        The decorator.
    """
    decorate: Callable[[Loop], Loop] = njit(nogil=True, cache=True, **options)
    return decorate
