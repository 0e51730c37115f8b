"""Softmax under a weak penalty: a step may go so far that a class has next to no probability in any row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import LogisticRegression
from separatrix.result import Status


@pytest.mark.parametrize("C", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("classes, seed", [(12, 0), (25, 1), (40, 2)])
def test_classes_that_a_step_leaves_without_probability_come_back(classes: int, seed: int, C: float) -> None:
    """A first step far out may leave a class next to none: F is flat in its intercept there, and steep."""
    rng = np.random.default_rng(seed)
    X = sp.random(200, 700, density=0.02, format="csr", rng=rng)
    y = rng.integers(classes, size=200)
    model = LogisticRegression(C=C, tol=1e-4, solver="newton-cg").fit(X, y)
    proof = model.fit_.certificate
    assert model.fit_.status is Status.CONVERGED and proof.kind == "proven"
    finer = LogisticRegression(C=C, tol=1e-8, solver="newton-cg").fit(X.toarray(), y).fit_.certificate
    assert proof.objective - finer.objective <= proof.gap * (1 + 1e-9) + 1e-12 * abs(proof.objective)
