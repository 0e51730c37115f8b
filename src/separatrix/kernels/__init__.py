"""Compiled inner loops: pure functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Loop], Loop]:
    """Compile a loop that holds no interpreter lock and is kept on disk; further options are numba's.

    ``inline="always"`` puts a helper into the loop that calls it, so that it has that loop's floating-point options.
    """
    return njit(nogil=True, cache=True, **options)


@compiled()
def row_span(indptr: Any, i: Any, width: Any) -> Any:
    """Where the entries of row i begin and end: of a CSR matrix, or of dense rows, which have no `indptr`."""
    if indptr is None:
        return 0, width
    return indptr[i], indptr[i + 1]


@compiled()
def row_entry(data: Any, indices: Any, centre: Any, i: Any, p: Any) -> Any:
    """Column and value of an entry of row i.

    Of a CSR matrix `data` is (1, entries), so that one loop serves it and dense rows, which have no `indices`, and may have a
    centre.
    """
    if indices is not None:
        return indices[p], data[0, p]
    if centre is None:
        return p, data[i, p]
    return p, data[i, p] - centre[p]
