"""Which solver fits a problem: a table that can be read and asked."""

from __future__ import annotations

# Up to this many columns (or rows, when they are fewer) the Gram matrix and its factorisation fit in memory.
GRAM_LIMIT = 6000
# Nanoseconds: per entry of a sparse matrix and target in a step of conjugate gradients, per number that such a step keeps, per
# step; per product of the closed form, and per sparse entry that it reads.
_STEP_ENTRY, _STEP_NUMBER, _STEP = 2.0, 10.0, 100e3
_CLOSED_PRODUCT, _CLOSED_ENTRY = 0.06, 80.0
# Entries of an array with few rows from which on a centred copy of it, to keep, costs more than it is worth.
_WORTH_COPYING = 1 << 17
# From this share of stored entries on a sparse matrix is a dense one.
_FULL = 0.5
# Steps that a well-conditioned fit takes: worth a try where they cost no more than the closed form.
_USUAL_STEPS = 12


def choose_least_squares(
    n_rows: int | None, n_features: int, *, entries: int | None = None, n_targets: int = 1, dense: bool = False
) -> str:
    """How a penalised least-squares problem is solved.

    =====================================  ===========================================
    columns ≤ 6000                         ``"gram"``: one pass, closed form
    rows ≤ 6000                            ``"gram"`` on the rows' side
    both larger                            ``"cg"``: one pass per step, bounded memory
    sparse, and 12 steps cost less         ``"cg"``: see `affordable_steps`
    an array with few rows                 ``"dual"``: the Gram matrix of the rows, which are not copied
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
    if dense and n_rows is not None and n_rows < n_features and n_rows * n_features >= _WORTH_COPYING:
        return "dual"
    if entries is None or n_rows is None or entries > _FULL * n_rows * n_features:
        return "gram"
    return "cg" if affordable_steps(n_rows, n_features, entries, n_targets) >= _USUAL_STEPS else "gram"


def affordable_steps(n_rows: int, n_features: int, entries: int, n_targets: int) -> float:
    """How many steps of conjugate gradients on a sparse matrix cost as much as the closed form.

    A step reads every entry twice for every target; the closed form multiplies the rows (dense, the smaller side squared) and
    factors the result. A problem that needs more steps is ill-conditioned, and is handed to the closed form.
    """
    smaller = min(n_rows, n_features)
    if smaller > GRAM_LIMIT:
        return float("inf")
    step = n_targets * (_STEP_ENTRY * entries + _STEP_NUMBER * (n_rows + n_features)) + _STEP
    return (_CLOSED_PRODUCT * smaller**2 * n_features + _CLOSED_ENTRY * entries) / step


# Up to this many columns (times the number of scores) a Hessian is cheap beside a few gradients.
NEWTON_COLUMNS = 300
NEWTON_PARAMETERS = 3000
# With more rows per parameter than this, a sample knows the Hessian well enough.
MANY_ROWS = 500
MANY_ENTRIES = 5_000_000


def choose_solver(
    n_rows: int | None, n_features: int, n_scores: int = 1, *, smooth: bool = True, penalised: bool = True
) -> str:
    """How a smooth loss with a penalty is minimised.

    ==================================  ===============================================================================
    absolute values or bounds           ``"prox_newton"``: working sets, coordinate descent on a quadratic model
    no penalty, parameters ≤ 3000       ``"newton"``: the likelihood may be flat, and only its Hessian knows
    columns · scores² ≤ 300             ``"newton"``; with very many rows ``"lbfgs"`` in the metric of a sample's Hessian
    more                                ``"newton-cg"``: products with the Hessian, never formed
    ==================================  ===============================================================================

    Parameters
    ----------
    n_rows : int or None
        ``None`` when it is not known.
    n_features : int
    n_scores : int, default=1
        1 for two classes, the number of classes for more.
    smooth : bool, default=True
        Whether the penalty has no absolute values and no bounds.
    penalised : bool, default=True
        Whether every coefficient but the intercept has a penalty.

    Returns
    -------
    str

    Examples
    --------
    >>> from separatrix.solvers import choose_solver
    >>> choose_solver(400_000, 100), choose_solver(100_000, 47_000), choose_solver(100_000, 47_000, smooth=False)
    ('lbfgs', 'newton-cg', 'prox_newton')
    """
    if not smooth:
        return "prox_newton"
    if not penalised and n_features * n_scores <= NEWTON_PARAMETERS:
        return "newton"
    if n_features * n_scores**2 > NEWTON_COLUMNS:
        return "newton-cg"
    many = n_rows is not None and n_rows > MANY_ROWS * n_features * n_scores and n_rows * n_features > MANY_ENTRIES
    return "lbfgs" if many else "newton"


# A machine of few rows or columns is solved by Newton's method: a Hessian, or its products, are cheap.
FEW_ROWS = 200
PRIMAL_COLUMNS = 1000
# Up to this many rows and columns all rows are at hand, and interior points reach the last digits.
INTERIOR_ROWS = 2000


def choose_svm(n_rows: int | None, n_features: int, loss: str) -> str:
    """How a linear support vector machine with an L2 penalty is fitted.

    =============================================  ===================================================================
    hinge, rows ≤ 2000 and columns ≤ 1000          ``"interior"``: interior points, a few dozen Newton steps
    hinge, rows ≤ 200                              ``"interior"``, on the rows' side
    squared hinge, rows ≤ 200                      ``"primal"``: Newton's method, exactly
    columns ≤ 1000                                 ``"primal"``: a few passes; for the hinge, losses that are ever less
                                                   rounded off
    more                                           ``"dual"``: coordinate ascent, row by row
    =============================================  ===================================================================

    Parameters
    ----------
    n_rows : int or None
        ``None`` when it is not known.
    n_features : int
    loss : {"hinge", "squared_hinge"}

    Returns
    -------
    str

    Examples
    --------
    >>> from separatrix.solvers import choose_svm
    >>> choose_svm(400_000, 100, "hinge"), choose_svm(100_000, 47_000, "hinge"), choose_svm(500, 10, "hinge")
    ('primal', 'dual', 'interior')
    """
    few = n_rows is not None and n_rows <= FEW_ROWS
    narrow = n_features <= PRIMAL_COLUMNS
    if loss == "hinge" and (few or (narrow and n_rows is not None and n_rows <= INTERIOR_ROWS)):
        return "interior"
    return "primal" if narrow or few else "dual"
