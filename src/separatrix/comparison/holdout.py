"""Rows that are set aside before anything is learnt, for one honest look at the recommended model at the end.

Of every class the same share, drawn by the seed. The recommendation is chosen among many candidates, so its score by folds is a
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


def set_aside(table: Any, target: str, holdout: Any, seed: int) -> tuple[Any, Any, NDArray[np.intp] | None]:
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
    for code in np.unique(codes[codes >= 0]):
        own = np.flatnonzero(codes == code)
        aside[rng.permutation(own)[: round(holdout * len(own))]] = True
    if not aside.any():
        raise ValueError(f"holdout={holdout} sets no row aside: the classes are too small. Give a larger share.")
    left = np.flatnonzero(~aside)
    return table.take(left), table.take(np.flatnonzero(aside)), left
