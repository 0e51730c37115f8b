"""The cone of recession of a set of linear inequalities: which rows of Aθ ≥ 0 can be made positive together.

    C = {θ : Aθ ≥ 0},      moved = {i : a_iᵀθ > 0 for some θ in C}

Directions of C can be added and stretched, so the linear programme

    maximise Σt   subject to   Aθ ≥ t,  0 ≤ t ≤ 1

has t = 0 or 1 at its optimum, 1 for exactly the moved rows, and its θ moves them all: it lies in the relative interior of
C. Nothing hangs on telling a small number from zero. Directions with Aθ = 0 leave t as it is.

Proofs that are cheaper than the programme are tried first, on the way down the logistic loss Σ log(1 + exp(−a_iᵀθ)):
    all rows are moved    a θ with Aθ > 0
    no row is moved       λ > 0 with Aᵀλ = 0 (Stiemke's lemma):  λ = (1 − p)(1 − p·Az),  z the Newton step
    some are              the first for those that the Newton steps keep pushing, in the null space of the others; the
                          second for the others

Of the directions that move the same rows the least is unique:  min ‖θ‖²  subject to  a_iᵀθ ≥ 1 if moved, else = 0.

Reference: Konis (2007), thesis, Oxford, ch. 4 (the programme); least_distance.py has the quadratic one.

**Complexity** O(np² + p³) per Newton step for dense A of n × p. The programme, where no proof is found, takes 1 s at
1000 × 200 and 20 s at 2000 × 500.
"""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq
from scipy.special import expit

from separatrix.data.block import Float
from separatrix.geometry.least_distance import least_distance
from separatrix.geometry.programmes import NEVER, Deadline, run_programme

# Of the entries of A, which are of order 1: what is smaller counts as zero. The programme resolves no less.
SMALL = 1e-9
# Free unknowns count 1/_FREE² as much as the others in the first norm.
_FREE = 1e3
_NEWTON_STEPS = 15
_TOLERANCES = {"primal_feasibility_tolerance": SMALL, "dual_feasibility_tolerance": SMALL}

Mask = NDArray[np.bool_]


class ProgrammeFailed(RuntimeError):
    """A linear programme that its solver gave up on: there is no verdict."""


def recession(A: Float, free: Mask, gauge: Float | None = None, deadline: Deadline = NEVER) -> tuple[Float, Float]:
    """The least direction θ (p,) that moves every row of A (n, p) that can be moved, entries of order 1, and a basis (p, r).

    The least positive a_iᵀθ is 1; θ is zero when no row can be moved. The basis is an orthonormal one of {θ : a_iᵀθ = 0 for the
    rows that cannot be moved}, without the `gauge` (g, p): directions of no interest, orthogonal to every row. `free` unknowns,
    intercepts, are those whose size does not count.
    """
    moved, theta = _prove(A, deadline) or solve_programme(A, deadline)
    others = A if gauge is None else np.concatenate([A, gauge])
    null = _null_space(others[~np.concatenate([moved, np.zeros(len(others) - len(A), dtype=bool)])])
    if moved.any():
        for candidate, accuracy in ((_least(A[moved], null, theta, free), SMALL), (theta, 10 * SMALL)):
            margins = A @ candidate
            smallest = float(margins[moved].min())
            if smallest > 0 and margins.min() >= -accuracy * np.abs(candidate).sum():
                return candidate / smallest, null
        # No direction stands up to a check: what the programme saw lies within its tolerance.
        null = _null_space(others)
    return np.zeros(A.shape[1]), null


def solve_programme(A: Any, deadline: Deadline = NEVER) -> tuple[Mask, Float]:
    """The moved rows and a direction that moves them, by linear programming; A dense or sparse."""
    A = sp.csr_array(A)
    n, p = A.shape
    size = abs(A).max(axis=1).toarray().ravel()
    # A row may be stretched at will; the programme's tolerance is the same for all.
    A = sp.diags_array(1.0 / np.where(size > 0, size, 1.0)) @ A
    # The one with fewer rows is the faster, and free unknowns that are in no row stop the solver in the first only.
    forms = (_dual, _primal) if p < n else (_primal, _dual)
    for solve, method in product(forms, ("highs", "highs-ipm")):
        message, theta = solve(A, method, deadline)
        if theta is not None:
            return A @ theta > 0.5, theta
    raise ProgrammeFailed(
        f"The linear programme of {n} rows and {p} unknowns was not solved ({message}) Rescale the columns, or "
        "drop those that are nearly combinations of others."
    )


def _primal(A: Any, method: str, deadline: Deadline = NEVER) -> tuple[str, Float | None]:
    """The programme as it stands: the solver's message, and θ if it is solved."""
    n, p = A.shape
    bounds = np.zeros((p + n, 2))
    bounds[:p] = -np.inf, np.inf
    bounds[p:] = 0.0, 1.0
    result = run_programme(
        np.concatenate([np.zeros(p), -np.ones(n)]),
        A_ub=sp.hstack([-A, sp.eye_array(n)], format="csc"),
        b_ub=np.zeros(n),
        bounds=bounds,
        method=method,
        options=_TOLERANCES,
        deadline=deadline,
    )
    return result.message, result.x[:p] if result.status == 0 else None


def _dual(A: Any, method: str, deadline: Deadline = NEVER) -> tuple[str, Float | None]:
    """Its dual.

    maximise Σv   subject to   Aᵀ(v + s) = 0,  0 ≤ v ≤ 1,  s ≥ 0;   θ are the multipliers of the equations
    """
    n, p = A.shape
    bounds = np.zeros((2 * n, 2))
    bounds[:n, 1], bounds[n:, 1] = 1.0, np.inf
    result = run_programme(
        np.concatenate([-np.ones(n), np.zeros(n)]),
        A_eq=sp.hstack([A.T, A.T], format="csc"),
        b_eq=np.zeros(p),
        bounds=bounds,
        method=method,
        options=_TOLERANCES,
        deadline=deadline,
    )
    return result.message, -result.eqlin.marginals if result.status == 0 else None


def _prove(A: Float, deadline: Deadline = NEVER) -> tuple[Mask, Float] | None:
    """The moved rows and a direction that moves them, where a few steps of Newton's method prove them."""
    found, theta, change = _newton(A, deadline)
    if found != "unknown":
        return np.full(len(A), found == "all"), theta
    # Steps on a loss that falls like exp(−margin) push each margin by 1 or more for ever; the others settle.
    moved = change > 0.5
    if not moved.any() or moved.all() or _newton(A[~moved], deadline)[0] != "none":
        return None
    null = _null_space(A[~moved])
    found, inner, _ = _newton(A[moved] @ null, deadline)
    return (moved, null @ inner) if found == "all" else None


def _newton(A: Float, deadline: Deadline = NEVER) -> tuple[Literal["all", "none", "unknown"], Float, Float]:
    """Whether all or no rows are moved, if a few steps prove it; where they led, and how far the last pushed each row."""
    theta, margin, change = np.zeros(A.shape[1]), np.zeros(len(A)), np.zeros(len(A))
    if A.shape[1] == 0:
        return "none", theta, change
    for _ in range(_NEWTON_STEPS):
        deadline.check()
        p, tail = expit(margin), expit(-margin)
        weighted = A * np.sqrt(p * tail)[:, None]
        H = weighted.T @ weighted
        H[np.diag_indices_from(H)] += max(1e-12 * H.diagonal().max(), 1e-300)
        try:
            step = cho_solve(cho_factor(H, check_finite=False), A.T @ tail, check_finite=False)
        except LinAlgError:
            break
        change = A @ step
        if (p * change).max() < 0.5:
            # Again by least squares on the rows, which resolves what the squares in H do not.
            z = lstsq(weighted, np.sqrt(tail / p), cond=1e-13, lapack_driver="gelsy", check_finite=False)[0]
            kept = 1.0 - p * (A @ z)
            weights = tail * kept
            if kept.min() > 0.1 and (np.abs(A.T @ weights) <= 1e-8 * (np.abs(A).T @ weights)).all():
                return "none", theta, change
        loss, length = np.logaddexp(0.0, -margin).sum(), 1.0
        while length > 1e-3 and np.logaddexp(0.0, -(margin + length * change)).sum() > loss:
            length *= 0.5
        theta = theta + length * step
        margin = A @ theta
        if margin.min() > SMALL * np.abs(theta).sum():
            return "all", theta, change
    return "unknown", theta, change


def _null_space(rows: Float) -> Float:
    """(p, r) orthonormal basis of the directions that the rows do not see."""
    p = rows.shape[1]
    if len(rows) > p:
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    if len(rows) == 0:
        return np.eye(p)
    _, singular, right = np.linalg.svd(rows)
    return right[int((singular > SMALL).sum()) :].T


def _least(moved: Float, null: Float, theta: Float, free: Mask) -> Float:
    """The least direction in the span of `null` with moved @ θ ≥ 1, up to its length; θ itself where rounding wins."""
    cost = np.where(free, 1.0 / _FREE, 1.0)
    basis = null @ np.linalg.inv(np.linalg.qr(cost[:, None] * null, mode="r"))  # ‖basis φ‖ in the cost's norm is ‖φ‖
    rows, margins = moved @ basis, moved @ theta
    # With a right side that θ attains at length 1 the answer is no longer than that, and nothing is lost to scale.
    reach = float(margins.min()) / float(np.linalg.norm(cost * theta))
    batch = rows.shape[1] + 10
    active = np.argsort(margins, kind="stable")[: 2 * batch]
    while True:
        try:
            phi, held, multipliers = least_distance(rows[active], np.full(len(active), reach))
        except RuntimeError:
            phi = None
        if phi is None:
            return theta
        # Few rows hold the answer in place: the others need not enter the quadratic programme.
        margins = rows @ phi
        margins[active] = np.inf
        wrong = np.argsort(margins, kind="stable")[:batch]
        wrong = wrong[margins[wrong] < reach * (1.0 - SMALL)]
        if len(wrong) == 0:
            break
        active = np.concatenate([active, wrong])
    # Once more with the rows that hold it as equations, and free unknowns that cost nothing at all: coefficients that
    # vanish then do so to rounding.
    tight = rows[active[np.sort(held[multipliers > 0])]]
    inside, slopes = _null_space(tight), basis[~free]
    start = np.linalg.lstsq(tight, np.full(len(tight), reach), rcond=SMALL)[0]
    exact = start - inside @ np.linalg.lstsq(slopes @ inside, slopes @ start, rcond=SMALL)[0]
    return basis @ (exact if (rows @ exact).min() >= reach * (1.0 - 1e-6) else phi)
