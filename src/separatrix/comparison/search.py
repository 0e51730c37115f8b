"""Searches for a penalty that do not end at the edge of what was tried, or say so.

least_loss    along a grid of C, which grows by a power of ten and more on the side where the least loss is at its end
climb         on a lattice of powers: the best of a point and its neighbours, until that is the point itself
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from separatrix.data.block import Float

_LEAST, _MOST = -6.0, 4.0  # powers of ten of C
_BEYOND = 4  # values that are added at an end
_FARTHEST = 4  # steps from the start, in each direction, that a climb may take


def least_loss(Cs: Float, losses: Callable[[Float], Float], restart: bool = False) -> float:
    """The value of C with the least loss, of a grid that is equally spaced in powers and extended where it ends too early.

    With `restart` losses are known up to a constant for each grid only, and a new grid keeps the end of the old one.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.search import least_loss
    >>> float(least_loss(np.logspace(-1, 1, 5), lambda Cs: np.abs(np.log10(Cs) - 2.0)))
    100.0
    """
    grid = np.log10(Cs)
    step, found = grid[1] - grid[0], losses(Cs)
    while True:
        at = int(found.argmin())
        if 0 < at < len(grid) - 1:
            return float(10.0 ** grid[at])
        side = 1.0 if at else -1.0
        more = grid[at] + side * step * np.arange(0 if restart else 1, _BEYOND + 1)
        more = np.sort(more[(more >= _LEAST) & (more <= _MOST)])
        if len(more) <= (1 if restart else 0):
            warnings.warn(
                f"C={10.0 ** grid[at]:.3g} is the {'largest' if at else 'smallest'} that was tried; a "
                f"{'weaker' if at else 'stronger'} penalty may be better still.",
                stacklevel=2,
            )
            return float(10.0 ** grid[at])
        beyond = losses(10.0**more)
        if restart:
            grid, found = more, beyond
            if int(beyond.argmin()) == (0 if at else len(more) - 1):  # the end of the old grid was best after all
                return float(10.0 ** more[int(beyond.argmin())])
        else:
            order = (grid, more) if at else (more, grid)
            grid = np.concatenate(order)
            found = np.concatenate((found, beyond) if at else (beyond, found))


def climb(right: Callable[[tuple[int, ...]], float], start: tuple[int, ...], names: Sequence[str]) -> tuple[int, ...]:
    """The point of a lattice that no neighbour is better than, from a start; of equally good ones the first in order.

    Examples
    --------
    >>> from separatrix.comparison.search import climb
    >>> climb(lambda at: -abs(at[0] - 2) - abs(at[1] + 1), (0, 0), ("C", "gamma"))
    (2, -1)
    """
    known: dict[tuple[int, ...], float] = {start: right(start)}
    here = start
    while True:
        for axis in range(len(start)):
            for step in (-1, 1):
                place = (*here[:axis], here[axis] + step, *here[axis + 1 :])
                if place not in known and abs(place[axis] - start[axis]) <= _FARTHEST:
                    known[place] = right(place)
        best = max(known.values())
        if known[here] == best:
            break
        here = min(place for place, value in known.items() if value == best)
    best_place = min(place for place, value in known.items() if value == known[here])
    for axis, name in zip(range(len(start)), names, strict=False):
        if abs(best_place[axis] - start[axis]) == _FARTHEST:
            warnings.warn(
                f"{name} is at the end of what was tried; a value beyond it may be better still.", stacklevel=2
            )
    return best_place
