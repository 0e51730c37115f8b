"""Which solver fits a problem: a table that can be read and asked."""

from __future__ import annotations

# From this share of stored entries on a sparse matrix is a dense one.
_FULL = 0.5
# Beyond this many parameters no Hessian is formed.
NEWTON_PARAMETERS = 3000
# The rows of a sample: this share of all, and so many per parameter.
_SHARE, _ROWS_PER_PARAMETER = 1 / 16, 24
# On a device a launch takes as long as a million rows: fewer rows, so that a sample's Hessian still proves 1e-6 after one step.
_SHARE_THERE = 1 / 24
# The rows of a sample that a larger one begins from there.
_FIRST_THERE = 1 << 17
# A sample's Hessian is the metric of L-BFGS from so many rows per parameter on.
MANY_ROWS = 100
# What a pass costs beside its arithmetic, and an entry of a sparse row, in multiplications.
PASS, _ENTRY = 2_000_000, 30.0
_FEW_PARAMETERS = 300


def sample_rows(n_rows: int | None, n_parameters: int, device: bool = False) -> int:
    """How many rows a first solution is taken from; 0 when all are few enough."""
    if n_rows is None:
        return 0
    share, least = (_SHARE_THERE, _FIRST_THERE) if device else (_SHARE, 2000)
    rows = max(_ROWS_PER_PARAMETER * n_parameters, int(share * n_rows), least)
    return rows if 4 * rows <= n_rows else 0


def first_rows(n_rows: int | None, n_parameters: int, device: bool = False) -> int:
    """How many rows of a sample its own solution begins from; 0 for none."""
    if not device or n_rows is None:
        return sample_rows(n_rows, n_parameters, device)
    rows = max(MANY_ROWS * n_parameters, _FIRST_THERE)
    return rows if 4 * rows <= n_rows else 0


def solver_costs(n_rows: int, n_features: int, n_scores: int = 1) -> dict[str, float]:
    """About how many multiplications a smooth penalised fit takes, by solver; those that cannot be used are left out.

    h = n · m(m+1)/2 · p² is a pass with the Hessian, g = 2nmp one with a gradient or a product, f = (mp)³/3 a factorisation.

    ===============  =====================================================  ===============================================
    ``newton``       6h, or 3h from a sample's optimum; 6f; 7 passes
    ``lbfgs``        10g; 6h of the sample; 6f; 12 passes                   rows ≥ 100 per parameter
    ``newton-cg``    50g; blocks of the Hessian, m(n_S p² + 2p³), or
                     as many products again without; 27 passes
    ===============  =====================================================  ===============================================
    """
    p, m = n_features, n_scores
    hessian, gradient, factor = n_rows * m * (m + 1) / 2 * p**2, 2.0 * n_rows * m * p, (m * p) ** 3 / 3.0
    sampled = sample_rows(n_rows, m * p)
    blocks = m * (min(n_rows, p * max(10, m)) * p**2 + 2.0 * p**3)
    costs = {"newton-cg": 50.0 * gradient + min(blocks, 50.0 * gradient) + 27 * PASS}
    if m * p <= NEWTON_PARAMETERS:
        costs["newton"] = (3 if sampled else 6) * hessian + 6.0 * factor + 7 * PASS
        if sampled and n_rows >= MANY_ROWS * m * p:
            costs["lbfgs"] = 10.0 * gradient + 6.0 * hessian * sampled / n_rows + 6.0 * factor + 12 * PASS
    return costs


# What a step on rows at hand costs beside its arithmetic, in multiplications.
_CALL = 150_000
# What a multiplication costs in a product of large matrices on one thread, in a Gram matrix of rows, in a factor, and in a
# Hessian that is summed in registers, as a share of one in a pass.
_LARGE, _ROWS_GRAM, _FACTOR, _IN_REGISTERS = 0.5, 0.15, 0.3, 0.7
# What a number of a dense copy of sparse rows costs, in multiplications: its memory is new.
_DENSE_COPY = 30.0
# Numbers up to which all rows are worth having at hand, and as a dense array; entries from which on the threads of a pass gain
# more than they cost.
_AT_HAND, _AT_HAND_DENSE, _AT_HAND_ENTRIES = 1 << 25, 1 << 21, 1_500_000
# The same for columns that are swept one by one on one thread: rows, and numbers of which a copy is made.
_SWEPT_ROWS, _SWEPT_NUMBERS = 12_000, 1 << 24
# Coefficients of all classes that a Hessian has at once.
_FEW_COEFFICIENTS = 400


def direct_costs(n_rows: int, n_features: int, entries: int | None = None, n_scores: int = 1) -> dict[str, float]:
    """The same for an L2 penalty of every coefficient and rows that lie in memory at once, with two classes or a softmax.

    p columns with the intercept's; the methods look at their own rows, on one thread.

    ===================  ==================================================================================
    ``small_newton``     6 steps: n p²/2 for the Hessian, p³/3 for its factor
    ``row_newton``       n² p/2 for the Gram matrix of the rows; 9 steps: n³/3 and two products of n²
    ``sparse_newton``    sparse rows, 30 products that read every entry twice; the others make a dense copy of these
    ``small_softmax``    6 steps: n (m² − 1) p²/2 for the Hessian in large products, (mp)³/3 for its factor; most
                         of them in single precision from 96 coefficients on
    ===================  ==================================================================================
    """
    n, p, m = n_rows, n_features, n_scores
    costs: dict[str, float] = {}
    if m > 1:
        if n * p * m <= _AT_HAND_DENSE:
            hessian, factor = n * (m**2 - 1) * p**2 / 2.0, (m * p) ** 3 / 3.0
            arithmetic = (0.6 if m * p >= 96 else 1.0) * (_LARGE * hessian + factor) + 6.0 * n * m * p
            costs["small_softmax"] = 6.0 * (arithmetic + 2.0 * _CALL)
        return costs
    copy = 0.0 if entries is None else _DENSE_COPY * n * p
    if entries is not None and entries <= _AT_HAND_ENTRIES:
        costs["sparse_newton"] = 60.0 * _ENTRY * entries + 30.0 * (n + p) + 5.0 * _CALL
    if n * p <= (_AT_HAND if entries is None else _AT_HAND_DENSE):
        steps = 9.0 * (_FACTOR * n**3 / 3.0 + 3.0 * n**2 + _CALL)
        costs["row_newton"] = _ROWS_GRAM * n**2 * p / 2.0 + steps + (10.0 * n * p if entries is None else copy)
    if n * p <= _AT_HAND_DENSE:
        step = _IN_REGISTERS * n * p**2 / 2.0 + p**3 / 3.0 + 4.0 * n * p + 40.0 * n + _CALL
        costs["small_newton"] = 6.0 * step + copy
    return costs


def prox_at_hand(n_rows: int, n_features: int, entries: int | None = None) -> bool:
    """Whether a fit with absolute values on rows in memory is better made on one thread than in passes.

    Many rows have many exponentials, and dense ones many products, which threads share out.
    """
    if entries is not None:
        return entries <= _AT_HAND_ENTRIES
    return n_rows <= _SWEPT_ROWS and n_rows * n_features <= _SWEPT_NUMBERS


def prox_softmax_at_hand(n_rows: int, n_features: int, n_scores: int) -> bool:
    """The same with many classes, on a dense copy of the rows; few coefficients are quick with all of them in the model."""
    many = n_features * n_scores > _FEW_COEFFICIENTS
    return many and n_rows * (n_features + n_scores) <= _SWEPT_NUMBERS


def choose_solver(
    n_rows: int | None, n_features: int, n_scores: int = 1, *, smooth: bool = True, penalised: bool = True
) -> str:
    """How a smooth loss with a penalty is minimised.

    ==================================  ===============================================================================
    absolute values or bounds           ``"prox_newton"``: working sets, coordinate descent on a quadratic model
    no penalty, parameters ≤ 3000       ``"newton"``: the likelihood may be flat, and only its Hessian knows
    rows that are not counted yet       ``"newton"`` up to 300 parameters, ``"newton-cg"`` beyond
    else                                what costs least by `solver_costs`: ``"newton"``, ``"lbfgs"`` in the metric of a
                                        sample's Hessian, or ``"newton-cg"``, which never forms one
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
    if n_rows is None:
        return "newton" if n_features * n_scores**2 <= _FEW_PARAMETERS else "newton-cg"
    costs = solver_costs(n_rows, n_features, n_scores)
    return min(costs, key=lambda name: costs[name])


# Machines of few rows are solved to the last digits, sparse ones where that takes no more than so many products of a step.
_FEW_ROWS, _FEW_PRODUCTS = 200, 1_000_000
# A dense copy of the rows may have so many entries; up to so many columns the primal is solved with a Hessian.
_COPY_ENTRIES, _PRIMAL_COLUMNS = 30_000_000, 1000
# Nanoseconds: per entry of a sweep; per product of two columns of a row; per row, in a step of interior points and elsewhere;
# per value that a pass, a step of Newton's method and a dense copy of the rows read.
_SWEEP_ENTRY, _PRODUCT, _INTERIOR_ROW, _ROW = 2.0, 0.06, 100.0, 60.0
_PASS_VALUE, _STEP_VALUE, _COPY_VALUE = 2.0, 6.0, 8.0
# Sweeps of sparse rows with many columns, and of others, whose columns are rarely as independent. Steps of interior points.
_SPARSE_SWEEPS, _DENSE_SWEEPS, _INTERIOR_STEPS = 60, 400, 18
# Interior points look at all rows up to so many, and per column; of more, at the share near the margin, found in a few passes.
_ALL_ROWS, _ALL_ROWS_A_COLUMN, _NEAR_MARGIN, _BAND_PASSES = 12_000, 300, 0.2, 3.0
# Nanoseconds of interior points on sparse rows: per product of two stored entries, of which a dense one takes so many times
# less, and per row of a step.
_PAIR, _FEW_PAIRS, _SPARSE_ROW = 0.75, 25.0, 250.0
# Nanoseconds of a sweep per row.
_VISIT = 15.0
# Nanoseconds per entry and row of Newton's method by conjugate gradients: some 40 products with Hessians.
_CONJUGATE = 80.0
# Columns up to which Newton's method is compiled loops, whose Hessian changes with few rows; their nanoseconds.
_LOOPED_COLUMNS, _LOOPED_VALUE, _LOOPED_ROW, _LOOPED_PAIR = 64, 14.0, 60.0, 0.15
# What a pass of the primal takes beside its arithmetic.
_PASS = 0.5e6
# Nanoseconds that the passes of the primal take on a device however few rows there are.
_DEVICE = 1e8


def svm_costs(n_rows: int, n_features: int, loss: str, entries: int | None = None) -> dict[str, float]:
    """About how many nanoseconds a linear machine with an L2 penalty takes, by method; those that cannot be used are left out.

    p = min(n, d), e is what is stored of the rows, h = 0.06 n p²/2 a Hessian, f = 0.06 p³/3 a factor. Few rows per column take
    more steps: r = d/n.

    ===============  ===============================================================================  ==============
    ``interior``     18 (2h + f + 100 n) + 8np; of n > 12 000 and 300 d rows a fifth in each          n p ≤ 3·10⁷
                     step, and 3 (2np + 60 n) to find them;
                     18 (0.75 e²/n + f + 250 n) of sparse rows with e ≤ np/5
    ``newton``       (5 + min(15, 30 r)) (h + f + 6np + 60 n) + 8np;                                  n p ≤ 3·10⁷
                     14np + 60 n + 0.15 n p² of dense rows with d < 64, if that is less
    ``primal``       hinge (25 + min(100, 900 r)) (h + 2e + 60 n + 0.5 ms),                           d ≤ 1000
                     squared (8 + min(30, 100 r)) (h/2 + 2e + 60 n + 0.5 ms)                          and d ≤ n
    ``conjugate``    80 (e + n), squared, of sparse rows                                              d ≤ n
    ``dual``         60 (2e + 15 n) of sparse rows with d ≥ n/4, 400 (2e + 15 n) of others
    ===============  ===============================================================================  ==============
    """
    n, d, p = float(n_rows), float(n_features), float(min(n_rows, n_features))
    stored = n * d if entries is None else float(entries)
    few_entries = stored <= _FULL * n * d
    sparse = few_entries and 4 * d >= n
    hessian, factor, few = _PRODUCT * n * p**2 / 2.0, _PRODUCT * p**3 / 3.0, d / n
    costs = {"dual": (_SWEEP_ENTRY * stored + _VISIT * n) * (_SPARSE_SWEEPS if sparse else _DENSE_SWEEPS)}
    if loss != "hinge" and few_entries and d <= n:
        costs["conjugate"] = _CONJUGATE * (stored + n)
    if loss == "hinge" and few_entries and d <= n and stored**2 * _FEW_PAIRS <= (n * d) ** 2:
        costs["interior"] = _INTERIOR_STEPS * (_PAIR * stored**2 / n + _SPARSE_ROW * n + factor)
    elif n * p <= _COPY_ENTRIES:
        copy = _COPY_VALUE * n * p + (_PRODUCT * n * stored if n < d else 0.0)
        if loss == "hinge":
            tall = n >= max(_ALL_ROWS, _ALL_ROWS_A_COLUMN * (d + 1.0))
            share, passes = (_NEAR_MARGIN, _BAND_PASSES) if tall else (1.0, 0.0)
            steps = _INTERIOR_STEPS * (share * (2.0 * hessian + _INTERIOR_ROW * n) + factor)
            costs["interior"] = copy + steps + passes * (_PASS_VALUE * n * p + _ROW * n)
        else:
            step = hessian + factor + _STEP_VALUE * n * p + _ROW * n
            costs["newton"] = copy + (5.0 + min(15.0, 30.0 * few)) * step
            if entries is None and d < _LOOPED_COLUMNS:
                looped = _LOOPED_VALUE * n * p + _LOOPED_ROW * n + _LOOPED_PAIR * n * p**2
                costs["newton"] = min(costs["newton"], looped)
    if n_features <= _PRIMAL_COLUMNS and (n >= d or len(costs) == 1):
        one = _PASS_VALUE * stored + _ROW * n + _PASS
        hinge, squared = 25.0 + min(100.0, 900.0 * few), 8.0 + min(30.0, 100.0 * few)
        costs["primal"] = hinge * (hessian + one) if loss == "hinge" else squared * (hessian / 2.0 + one)
    return costs


def few_rows(n_rows: int | None, n_features: int, entries: int | None = None) -> bool:
    """Whether a linear support vector machine is so small that it is solved to the last digits."""
    if n_rows is None or n_rows > _FEW_ROWS:
        return False
    return entries is None or n_rows * min(n_rows, n_features) ** 2 <= _FEW_PRODUCTS


def choose_svm(
    n_rows: int | None, n_features: int, loss: str, *, entries: int | None = None, device: bool = False
) -> str:
    """How a linear support vector machine with an L2 penalty is fitted.

    ==============================  ====================================================================================
    rows ≤ 200 (`few_rows`)         ``"interior"`` for the hinge, ``"newton"`` for the squared hinge: to the last digits
    rows that are not counted yet   ``"primal"`` up to 1000 columns, ``"dual"`` beyond
    on a device, ≥ 0.1 s here       ``"primal"``: the rows stay where they are
    else                            what costs least by `svm_costs`: ``"interior"`` points, ``"newton"``'s method on the rows
                                    inside the margin, by ``"conjugate"`` gradients on sparse ones, ``"primal"``: a few passes,
                                    or ``"dual"`` coordinate ascent
    ==============================  ====================================================================================

    Parameters
    ----------
    n_rows : int or None
        ``None`` when it is not known.
    n_features : int
    loss : {"hinge", "squared_hinge"}
    entries : int, optional
        Stored entries of a sparse matrix.
    device : bool, default=False
        Whether the rows lie on a device.

    Returns
    -------
    str

    Examples
    --------
    >>> from separatrix.solvers import choose_svm
    >>> choose_svm(500, 10, "hinge"), choose_svm(500, 10, "squared_hinge")
    ('interior', 'newton')
    >>> choose_svm(400_000, 100, "hinge"), choose_svm(100_000, 47_000, "hinge", entries=6_000_000)
    ('primal', 'dual')
    """
    if n_rows is None:
        return "primal" if n_features <= _PRIMAL_COLUMNS else "dual"
    if few_rows(n_rows, n_features, entries):
        return "interior" if loss == "hinge" else "newton"
    costs = svm_costs(n_rows, n_features, loss, entries)
    best = min(costs, key=lambda name: costs[name])
    return "primal" if device and costs[best] >= _DEVICE else best
