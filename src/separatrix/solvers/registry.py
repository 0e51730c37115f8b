"""Every method, which of them fits a problem, and the verb of all models of a few passes: `minimise`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.lazy import compiled_pays, compiled_pays_by_now
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.solution import Solution
from separatrix.result import Status
from separatrix.settings import one_blas_thread
from separatrix.solvers.at_hand.prox import SMALL_PROX, offered_prox
from separatrix.solvers.at_hand.prox_softmax import PROX_SOFTMAX, prox_softmax_offered
from separatrix.solvers.at_hand.row_lines import LINE_NEWTON, lines_pay
from separatrix.solvers.at_hand.row_newton import ROW_NEWTON
from separatrix.solvers.at_hand.rows import offered
from separatrix.solvers.at_hand.small_newton import SMALL_NEWTON
from separatrix.solvers.at_hand.small_softmax import SMALL_SOFTMAX, small_softmax_offered
from separatrix.solvers.at_hand.sparse_newton import SPARSE_NEWTON
from separatrix.solvers.choose import choose_solver, direct_costs, prox_at_hand, prox_softmax_at_hand, solver_costs
from separatrix.solvers.driver import Trace, run
from separatrix.solvers.dual_ascent import DUAL
from separatrix.solvers.gradient import GRADIENT
from separatrix.solvers.lbfgs import LBFGS
from separatrix.solvers.method import Method, Start
from separatrix.solvers.newton import IRLS, NEWTON
from separatrix.solvers.newton_cg import NEWTON_CG
from separatrix.solvers.prox_newton import PROX_NEWTON
from separatrix.solvers.sgd import SGD
from separatrix.solvers.smoothing import smoothed
from separatrix.solvers.textbook.fixed_rate import fixed_rate

# To add a solver, write a file with its Method and name it here.
METHODS: dict[str, Method] = {
    method.name: method for method in (NEWTON, IRLS, LBFGS, NEWTON_CG, PROX_NEWTON, GRADIENT, SGD, DUAL)
}
# Newton's method for problems whose rows are at hand: taken where it costs least, not asked for by name.
_DIRECT = {
    "small_newton": SMALL_NEWTON,
    "row_newton": ROW_NEWTON,
    "sparse_newton": SPARSE_NEWTON,
    "small_softmax": SMALL_SOFTMAX,
}
# scikit-learn's names for solvers whose problems are better left to the table of choose.py.
_LEFT_TO_CHOICE = ("liblinear", "sag", "saga")
# Numbers of dense rows that passes in NumPy are quick with, and the seconds that compiled loops save on them.
_FEW_NUMBERS, _SAVED_BY_PROX = 20_000, 5e-3
# Newton's method is asked for a proof that another method could not give up to this many parameters.
_SMALL_HESSIAN = 1000
# The least tolerance that is left to coordinate descent.
_SWEPT_DIGITS = 1e-7
# Steps that it may take where the other method estimates that it is there.
_LAST_STEPS = 10


def method_names() -> set[str]:
    """Every name that `pick` understands."""
    aliases = {alias for method in METHODS.values() for alias in method.aliases}
    return {"auto", *METHODS, *aliases, *_LEFT_TO_CHOICE}


def pick(problem: LinearProblem, asked: str = "auto") -> Method:
    """The method that is used when `asked` for: another one where the problem lacks what it needs."""
    offers, source = problem.offers, problem.source
    found = METHODS.get(asked) or next((one for one in METHODS.values() if asked in one.aliases), None)
    if found is not None and found.needs <= offers:
        return found
    if found is DUAL and "smooth" in offers:
        raise ValueError(
            "solver='dual' needs two classes and an L2 penalty of every coefficient about zero; use solver='auto'."
        )
    if found is None and asked not in method_names():
        raise ValueError(f"solver={asked!r} is not known; the solvers are {', '.join(sorted(method_names()))}.")
    m, p = problem.shape
    chosen = choose_solver(source.n_rows, p, m, smooth="smooth" in offers, penalised="held" in offers)
    # Pairs of gradients across a kink, or a jump of the curvature, tell L-BFGS little.
    return NEWTON if "curved" not in offers and chosen == "lbfgs" else METHODS[chosen]


def _direct(problem: LinearProblem, asked: str) -> Method | None:
    """A method for rows at hand, where the choice is ours and it costs less than those that read them in passes."""
    source, (m, p) = problem.source, problem.shape
    if asked not in ("auto", *_LEFT_TO_CHOICE) or source.n_rows is None or problem.holds_ones:
        return None
    if m > 1 and prox_softmax_offered(problem):
        return PROX_SOFTMAX if prox_softmax_at_hand(source.n_rows, p, m) and source.one_block() is not None else None
    prox = m == 1 and offered_prox(problem)
    if not (prox or (offered(problem) if m == 1 else small_softmax_offered(problem))):
        return None
    # A Gram matrix of few rows reads an array in either order, and so do sweeps over copies of its columns.
    block = source.one_block(any_order=m == 1 and (prox or source.n_rows < p))
    if block is None:
        return None
    sparse = block.sparse_rows()
    entries = None if sparse is None else len(sparse[0][0])
    if prox:
        # Its loops are compiled: until numba is there, or would save as much as its import takes, passes do.
        few = entries is None and source.n_rows * p <= _FEW_NUMBERS and not compiled_pays_by_now(_SAVED_BY_PROX)
        return SMALL_PROX if not few and prox_at_hand(source.n_rows, p, entries) else None
    costs = direct_costs(source.n_rows, p, entries, m)
    if not compiled_pays(0.0):
        costs.pop("sparse_newton", None)
    name = min(costs, key=lambda name: costs[name], default="")
    passes = entries is None or m > 1  # what reads in passes is an alternative
    if not name or (passes and costs[name] > min(solver_costs(source.n_rows, p, m).values())):
        return None
    if name == "small_newton" and lines_pay(source.n_rows, p):
        return LINE_NEWTON
    return _DIRECT[name]


@one_blas_thread()
def minimise(
    problem: LinearProblem,
    solver: str = "auto",
    theta: Float | None = None,
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[dict[str, Any]], None] | None = None,
    previous: Solution | None = None,
    rate: float | None = None,
    record: bool = False,
) -> Solution:
    """The minimiser of a problem's objective, with its proof.

    Parameters
    ----------
    problem : LinearProblem
    solver : str, default="auto"
        The name of a method; the table of `separatrix.solvers.choose` decides for ``"auto"``.
    theta : ndarray of shape (m, p), optional
        Where to begin; zeros without.
    tol : float
        The gap to reach, as a fraction of the objective.
    max_iter : int
    callback : callable, optional
        Called with every entry of the trace.
    previous : Solution, optional
        The solution of another objective on the same rows, which θ comes from.
    rate : float, optional
        For "gradient" and "sgd": plain steps of this length along the gradient, of all rows or of one row at a time.
    record : bool, default=False
        Whether to keep every point on the way, in ``path``.

    Returns
    -------
    Solution
    """
    theta = problem.start() if theta is None else theta
    limits: dict[str, Any] = {"tol": tol, "callback": callback, "record": record}
    if problem.dependent is not None:
        found = minimise(problem.reduced(), solver, theta[:, problem.kept], max_iter=max_iter, **limits)
        return problem.expanded(found)
    start = Start(theta, previous is not None, None if previous is None else previous.loss_gradient)
    trace = Trace(callback, record)
    if rate is not None:
        return run(fixed_rate(problem, solver, rate, record), problem, start, tol=tol, max_iter=max_iter, trace=trace)
    # Methods for rows at hand may work in other coordinates than those of θ: a path is one of the methods with names.
    direct = None if record else _direct(problem, solver)
    if direct is SMALL_PROX and tol < _SWEPT_DIGITS:  # sweeps end at the tolerance, factorisations far below it
        direct = None
    if direct is not None:
        found = run(direct, problem, start, tol=tol, max_iter=max_iter, trace=trace)
        if found.status is not Status.UNPROVEN:
            return found
        trace.reopen()
        start, before = Start(found.theta, near=True), found.iterations
        found = run(pick(problem, solver), problem, start, tol=tol, max_iter=max(1, max_iter - before), trace=trace)
        return replace(_proven(problem, found, trace, tol, max_iter), iterations=before + found.iterations)
    method = pick(problem, solver)
    if "curved" not in problem.offers:
        method = smoothed(method)
    found = run(method, problem, start, tol=tol, max_iter=max_iter, trace=trace)
    exact = problem.source.precise()
    if exact is not problem.source and found.status in (
        Status.STALLED,
        Status.UNPROVEN,
        Status.MAX_ITER,
        Status.ROUNDED,
    ):
        # Single precision was not enough for the proof, or for the last digits.
        trace.reopen()
        problem = replace(problem, source=exact)
        left = max(1, max_iter - found.iterations)
        start = Start(found.theta, near=True, last=found.last)
        found = run(method, problem, start, tol=tol, max_iter=left, trace=trace)
    return _proven(problem, replace(found, last=None), trace, tol, max_iter)


def _proven(problem: LinearProblem, found: Solution, trace: Trace, tol: float, max_iter: int) -> Solution:
    """What ends without a proof is handed to Newton's method where its Hessian is small: it may prove more."""
    smooth, left = problem.objective.penalty.smooth, max(1, max_iter - found.iterations)
    small = np.size(found.theta) <= _SMALL_HESSIAN and smooth and problem.objective.loss.concordance is not None
    if not (found.nearly or (found.status is Status.UNPROVEN and small)):
        return found
    steps = min(_LAST_STEPS, left) if found.nearly else left
    trace.reopen()
    more = run(
        NEWTON if smooth else PROX_NEWTON, problem, Start(found.theta, near=True), tol=tol, max_iter=steps, trace=trace
    )
    status, taken = more.status, found.iterations + more.iterations
    if found.nearly and status is Status.MAX_ITER and taken < max_iter:  # more steps would not bring the proof either
        status = Status.STALLED
    return replace(more, status=status, iterations=taken, solver=found.solver)
