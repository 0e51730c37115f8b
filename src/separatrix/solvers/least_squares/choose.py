"""How a least-squares problem is solved: a table that can be read and asked."""

from __future__ import annotations

# Up to this many columns (or rows, when they are fewer) the Gram matrix and its factorisation fit in memory.
GRAM_LIMIT = 6000
# Nanoseconds: per entry of a sparse matrix and target in a step of conjugate gradients, per number that such a step keeps, per
# step; per product of the closed form, per sparse entry that it reads as dense rows, and otherwise, with its products; per
# entry and product of rows that are few enough to be made dense.
_STEP_ENTRY, _STEP_NUMBER, _STEP = 2.0, 10.0, 100e3
_CLOSED_PRODUCT, _CLOSED_ENTRY, _GRAM_ENTRY, _GRAM_PRODUCT, _UNEVEN = 0.06, 80.0, 60.0, 1.8, 4.0
_DENSE_ENTRY, _DENSE_PRODUCT = 3.0, 0.02
# The same for an array with fewer rows than columns: per product of the rows' Gram matrix, in float32; per entry in a step, for
# each target, and (here as for more rows) for entries that do not stay in the cache from step to step.
_ROWS_PRODUCT, _ARRAY_ENTRY, _ARRAY_TARGET, _ENTRY_AFAR = 0.014, 0.45, 0.05, 0.6
# Of an array with no fewer rows than columns: per entry and product of the closed form; per entry of a step with one target or
# several, per row and target, which vectors of a number per row cost however few the columns are, per step.
_TALL_COPY, _TALL_PRODUCT, _TALL_ENTRY, _TALL_ENTRIES, _TALL_ROW, _TALL_STEP = 1.3, 0.025, 0.12, 0.6, 5.0, 30e3
_CACHED = 1 << 22
# From so many entries on the closed form of more rows than columns has compiled loops; what its entries take a step longer.
_TILED, _TILED_COPY, _TILED_PRODUCT, _ENTRY_NEARBY = 1 << 20, 1.0, 0.0105, 0.2
# Entries of an array with few rows from which on a centred copy of it, to keep, costs more than it is worth.
_WORTH_COPYING = 1 << 16
# From this share of stored entries on a sparse matrix is a dense one.
_FULL = 0.5
# Steps that a well-conditioned fit takes: worth a try where they cost no more than the closed form. Sparse columns depend less
# on each other.
_USUAL_STEPS, _SPARSE_STEPS = 12, 6


def choose_least_squares(
    n_rows: int | None, n_features: int, *, entries: int | None = None, n_targets: int = 1, dense: bool = False
) -> str:
    """How a penalised least-squares problem is solved.

    =====================================  ===========================================
    columns ≤ 6000                         ``"gram"``: one pass, closed form
    rows ≤ 6000                            ``"gram"`` on the rows' side
    both larger                            ``"cg"``: one pass per step, bounded memory
    penalised, and 12 steps cost less      ``"cg"``: see `affordable_steps`; an array with more rows than columns goes on to
                                           ``"gram"`` where a few rows show that its columns depend on each other
    the same, sparse, and 6 steps do       ``"cg"``
    an array with few rows                 ``"dual"``: the Gram matrix of the rows, which are not copied
    few sparse rows, as cheap as 12 steps  ``"dual"``: the same, of their entries
    =====================================  ===========================================

    Parameters
    ----------
    n_rows : int or None
        ``None`` when it is not known.
    n_features : int
    entries : int, optional
        Stored entries of a sparse matrix in memory.
    n_targets : int, default=1
    dense : bool, default=False
        Whether the rows are a dense array in memory, and every target has a penalty.

    Returns
    -------
    str

    Examples
    --------
    >>> from separatrix.solvers import choose_least_squares
    >>> choose_least_squares(10_000_000, 100), choose_least_squares(100_000, 47_000)
    ('gram', 'cg')
    >>> choose_least_squares(1_333, 4_000), choose_least_squares(1_333, 4_000, entries=100_000)
    ('gram', 'cg')
    """
    smaller = n_features if n_rows is None else min(n_rows, n_features)
    if smaller > GRAM_LIMIT:
        return "cg"
    if dense and n_rows is not None:
        if affordable_steps(n_rows, n_features, None, n_targets) >= _USUAL_STEPS:
            return "cg"
        return "dual" if n_rows < n_features and n_rows * n_features >= _WORTH_COPYING else "gram"
    if entries is None or n_rows is None or entries > _FULL * n_rows * n_features:
        return "gram"
    usual = _USUAL_STEPS * _sparse_step(n_rows, n_features, entries, n_targets)
    wide = n_rows < n_features and n_rows * n_features >= _WORTH_COPYING  # a fit of few numbers keeps its statistic
    if wide and _sparse_rows_gram(n_rows, n_features, entries) <= usual:
        return "dual"
    return "cg" if affordable_steps(n_rows, n_features, entries, n_targets) >= _SPARSE_STEPS else "gram"


def _sparse_step(n_rows: int, n_features: int, entries: int, n_targets: int) -> float:
    """Nanoseconds of a step of conjugate gradients."""
    return n_targets * (_STEP_ENTRY * entries + _STEP_NUMBER * (n_rows + n_features)) + _STEP


def _sparse_rows_gram(n_rows: int, n_features: int, entries: int) -> float:
    """Nanoseconds of the Gram matrix of sparse rows and its factor; words differ in how often they occur."""
    products = _UNEVEN * entries**2 / max(n_features, 1)
    return _CLOSED_ENTRY * entries + _GRAM_PRODUCT * products + _CLOSED_PRODUCT * float(n_rows) ** 3


def affordable_steps(n_rows: int, n_features: int, entries: int | None, n_targets: int) -> float:
    """How many steps of conjugate gradients on a sparse matrix, or an array without `entries`, cost as much as the closed form.

    A step reads every entry twice for every target; the closed form multiplies the rows (where they are fewer than the columns
    as dense ones, the smaller side squared) and factors the result. A problem that needs more steps is ill-conditioned, and is
    handed to the closed form as soon as that shows.
    """
    smaller = min(n_rows, n_features)
    if smaller > GRAM_LIMIT:
        return float("inf")
    if entries is None:
        size = n_rows * n_features
        afar = _ENTRY_AFAR if size > _CACHED else 0.0
        nearby = max(afar, _ENTRY_NEARBY if size >= _TILED else 0.0)
        if n_rows < n_features:
            return _ROWS_PRODUCT * smaller * size / ((_ARRAY_ENTRY + _ARRAY_TARGET * n_targets + afar) * size + _STEP)
        entry = _TALL_ENTRY if n_targets == 1 else _TALL_ENTRIES + _ARRAY_TARGET * n_targets
        step = (entry + nearby) * size + _TALL_ROW * n_targets * n_rows + _TALL_STEP
        copy, product = (_TILED_COPY, _TILED_PRODUCT) if size >= _TILED else (_TALL_COPY, _TALL_PRODUCT)
        return (copy + product * smaller) * size / step
    step = _sparse_step(n_rows, n_features, entries, n_targets)
    reading = _CLOSED_ENTRY * entries
    if n_rows >= n_features:
        dense = (_DENSE_ENTRY + _DENSE_PRODUCT * n_features) * n_rows * n_features
        reading = min(dense, (_GRAM_ENTRY + _GRAM_PRODUCT * entries / max(n_rows, 1)) * entries)
    return (_CLOSED_PRODUCT * smaller**2 * n_features + reading) / step
