"""Folds of a table that is never held: by a hash of what stands in the row, so that any order of rows and files has the same.

    h(row) = mix(Σ_columns mix(mix(bits(value)) · a(name)))  mod 2⁶⁴          fold = mix(h + seed · g) mod k

Rows with the same values share a fold. A number counts as a double, every hole alike, a category as its text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.data.folds import GOLDEN, Keys, mixed
from separatrix.tables.encoding.encoding_sums import text_bits
from separatrix.tables.rows import CodedText, TableRows


def row_hashes(rows: TableRows) -> Keys:
    """(n,) a hash of the contents of every row.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.tables.row_hashes import row_hashes
    >>> from separatrix.tables.rows import CodedText, TableRows
    >>> sex = CodedText(["f", "m"], np.array([0, 1, 0]))
    >>> found = row_hashes(TableRows({"age": np.array([0.0, np.nan, -0.0]), "sex": sex}, frozenset(), 3))
    >>> bool(found[0] == found[2]), bool(found[0] == found[1])
    (True, False)
    """
    total = np.zeros(len(rows), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name, values in rows.columns.items():
            if values.dtype == object:
                text = CodedText.of(values)
                bits = np.array([*map(text_bits, text.levels), 0], dtype=np.uint64)[text.places]
            else:
                bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)  # −0 is 0
            total += mixed(mixed(bits) * np.uint64(text_bits(name) | 1))
        return mixed(total)


def hashed_folds(rows: TableRows, n_folds: int, seed: int) -> NDArray[np.intp]:
    """(n,) the fold that leaves out each row."""
    with np.errstate(over="ignore"):
        return (mixed(row_hashes(rows) + np.uint64(seed) * GOLDEN) % np.uint64(n_folds)).astype(np.intp)
