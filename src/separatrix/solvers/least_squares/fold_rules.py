"""Ridge rules of every fold and penalty: the sums of the folds from one pass, then one decomposition for each.

    S₋f = Σ_{g≠f} S_g  (merged from both ends, no sum is ever subtracted),   w_f(α) = V(Λ + αI)⁻¹Vᵀ S_xy,₋f

**Complexity** O(nd² + F d³ + F·(number of penalties)·d²). **Passes over the data** one where the folds part the rows, else F.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from separatrix.data import Source, as_source
from separatrix.data.block import Float
from separatrix.data.folds import Fold
from separatrix.solvers.least_squares.normal_equations import ONE_SPECTRUM, Spectrum
from separatrix.statistics.gram import Gram, NormalEquations
from separatrix.statistics.triangular import Triangular

# Numbers that the sums of all folds may hold together.
_HELD = 1 << 27


def resolved_spectrum(
    equations: NormalEquations, rows: Callable[[], Source], fit_intercept: bool, least: float
) -> tuple[NormalEquations, Spectrum]:
    """Normal equations and their spectrum; of the R factor of the rows, where sums have too few digits for the `least` α.

    `equations` are about the mean.
    """
    used = equations if fit_intercept else equations.without_intercept()
    spectrum = Spectrum(used)
    if used.scatter.thin or spectrum.condition(least) <= ONE_SPECTRUM:
        return used, spectrum
    centre = np.concatenate([equations.x_mean, equations.y_mean])
    finer = Triangular.of_source(rows(), centre).normal_equations()
    finer = finer if fit_intercept else finer.without_intercept()
    return finer, Spectrum(finer)


def fold_rules(
    X: Any, Y: Float, weights: Float | None, folds: Sequence[Fold], alphas: Float, fit_intercept: bool
) -> Iterator[tuple[Float, Float]]:
    """Coefficients (A, m, d) and intercepts (A, m) learnt from the training rows of every fold."""

    def rows(part: Any) -> Source:
        return as_source(X[part], Y[part], None if weights is None else weights[part]).valued()

    least = float(alphas.min())
    for (train, _), gram in zip(folds, _training_sums(rows, folds, X.shape[1] + Y.shape[1], len(Y)), strict=True):
        equations, spectrum = resolved_spectrum(gram.normal_equations(), partial(rows, train), fit_intercept, least)
        coefs = np.stack([spectrum.coef(float(alpha)) for alpha in alphas])
        yield coefs, np.stack([equations.intercept(coef) for coef in coefs])


def _training_sums(rows: Callable[[Any], Source], folds: Sequence[Fold], columns: int, n: int) -> Iterator[Gram]:
    if len(folds) * columns**2 > _HELD or not _parts(folds, n):
        yield from (Gram.of_source(rows(train)) for train, _ in folds)
        return
    own = [Gram.of_source(rows(test)) for _, test in folds]
    after = [own[-1]]  # of the last folds, one more each time
    for gram in own[-2:0:-1]:
        after.append(gram.copy().merge(after[-1]))
    before: Gram | None = None
    for at, gram in enumerate(own):
        if at == len(own) - 1:
            assert before is not None
            yield before
            return
        later = after.pop()
        yield later if before is None else before.copy().merge(later)
        before = gram.copy() if before is None else before.merge(gram)


def _parts(folds: Sequence[Fold], n: int) -> bool:
    """Whether every row is tested once and all others are then learnt from."""
    if len(folds) < 2 or any(len(train) + len(test) != n for train, test in folds):
        return False
    times = np.zeros(n, dtype=np.intp)
    for train, test in folds:
        seen = np.zeros(n, dtype=bool)
        seen[train] = seen[test] = True
        if not seen.all():
            return False
        times[test] += 1
    return bool((times == 1).all())
