"""Which solver fits a problem: a table that can be read and asked."""

from __future__ import annotations

# Up to this many columns (or rows, when they are fewer) the Gram matrix and its factorisation are cheap.
GRAM_LIMIT = 6000


def choose_least_squares(n_rows: int | None, n_features: int) -> str:
    """How a penalised least-squares problem is solved.

    ============================  ===========================================
    columns ≤ 6000                ``"gram"``: one pass, closed form
    rows ≤ 6000                   ``"gram"`` on the rows' side
    both larger                   ``"cg"``: one pass a step, bounded memory
    ============================  ===========================================

    Parameters
    ----------
    n_rows : int or None
        ``None`` when it is not known.
    n_features : int

    Returns
    -------
    str

    Examples
    --------
    >>> from separatrix.solvers.choose import choose_least_squares
    >>> choose_least_squares(10_000_000, 100), choose_least_squares(100_000, 47_000)
    ('gram', 'cg')
    """
    smaller = n_features if n_rows is None else min(n_rows, n_features)
    return "gram" if smaller <= GRAM_LIMIT else "cg"
