"""Rows that are set aside before anything is learnt, for one honest look at the recommended model at the end.

Of every class the same share, drawn by the seed, or, where rows belong together, whole groups: of many draws that which is
nearest to it. The recommendation is chosen among many candidates, so its score by folds is a
little too good; on rows that chose nothing it is not.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.checks import nearest_name
from separatrix.tables.reading import read_table
from separatrix.tables.rows import as_arrow

_DRAWS = 100


def set_aside(
    table: Any, target: str, holdout: Any, seed: int, groups: NDArray[np.intp] | None = None
) -> tuple[Any, Any, NDArray[np.intp] | None]:
    """The table to compare on, the one to judge on (a share of the rows, or another table or file), and which rows are left.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from separatrix.comparison.holdout import set_aside
    >>> kept, aside, left = set_aside(pa.table({"x": range(10), "y": list("aaaaabbbbb")}), "y", 0.4, 0)
    >>> kept.num_rows, sorted(aside["y"].to_pylist()), len(left)
    (6, ['a', 'a', 'b', 'b'], 6)
    """
    if isinstance(holdout, str | os.PathLike):
        return table, read_table(holdout), None
    if not isinstance(holdout, int | float):
        return table, as_arrow(holdout), None
    if not 0.0 < holdout < 1.0:
        raise ValueError(f"holdout={holdout}: give a share of the rows between 0 and 1, or another table.")
    table, target = as_arrow(table), str(target)
    if target not in table.column_names:
        raise ValueError(f"The table has no target column {target!r}; {nearest_name(target, table.column_names)}")
    codes = (
        table.column(target).combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    )
    rng, aside = np.random.default_rng(seed), np.zeros(len(codes), dtype=bool)
    if groups is not None:
        aside = _whole_groups(groups, codes, holdout, rng)
    for code in np.unique(codes[codes >= 0]) if groups is None else ():
        own = np.flatnonzero(codes == code)
        aside[rng.permutation(own)[: round(holdout * len(own))]] = True
    if not aside.any():
        raise ValueError(f"holdout={holdout} sets no row aside: the classes are too small. Give a larger share.")
    left = np.flatnonzero(~aside)
    return table.take(left), table.take(np.flatnonzero(aside)), left


def _whole_groups(
    groups: NDArray[np.intp], codes: NDArray[np.intp], share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """(n,) which rows are set aside, so that nothing is learnt from a group that is judged."""
    _, places = np.unique(groups, return_inverse=True)
    counts = np.zeros((int(places.max()) + 1, int(codes.max()) + 1))
    np.add.at(counts, (places[codes >= 0], codes[codes >= 0]), 1.0)
    totals, least, found = counts.sum(axis=0), np.inf, np.zeros(len(counts), dtype=bool)
    for _ in range(_DRAWS):
        order = rng.permutation(len(counts))
        sizes = np.cumsum(counts[order].sum(axis=1))
        drawn = order[: int(np.abs(sizes - share * totals.sum()).argmin()) + 1]
        own = counts[drawn].sum(axis=0)
        far = float((np.square(own - share * totals) / totals).sum())
        if far < least and (own < totals).all():  # of every class something is learnt
            least, found = far, np.isin(np.arange(len(counts)), drawn)
    if not found.any():
        raise ValueError(f"holdout={share} sets no groups aside that leave rows of every class to learn from.")
    return found[places]
