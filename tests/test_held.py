"""Values held with their block: kept or made again, they are the same, and so is every answer made of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import LinearClassifier, LogisticRegression
from separatrix.data import DenseBlock, as_source
from separatrix.data.held import Held, HeldRows


def rows(n: int = 5000, d: int = 6, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, d))
    return X, (X @ rng.standard_normal((d, classes)) + rng.gumbel(size=(n, classes))).argmax(axis=1)


@pytest.mark.parametrize("room", [0, 40_000])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_second_derivatives_that_are_made_again_change_no_bit(room: int, classes: int, sparse: bool) -> None:
    X, y = rows(classes=classes)
    X = sp.csr_array(X * (np.abs(X) > 1.0)) if sparse else X
    kept, made = as_source(X, y), as_source(X, y)
    made.room = room
    fits = [LogisticRegression(solver="newton-cg").fit(source) for source in (kept, made)]
    assert fits[0].fit_.passes == fits[1].fit_.passes
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_numbers_of_rows_are_read_in_any_cut() -> None:
    held, X = Held[np.ndarray](), np.zeros((10, 1))
    for start in (7, 2):  # threads put them in any order
        block = DenseBlock(X[: 5 if start == 2 else 3], start=start)
        held.put(block, np.arange(start, start + block.n, dtype=float))
    numbers = HeldRows(held).times(2.0)
    np.testing.assert_array_equal(numbers.of(DenseBlock(X[:4], start=5)), [10.0, 12.0, 14.0, 16.0])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(numbers)).of(DenseBlock(X[:1], start=9)), [18.0])
    assert numbers.here


def test_a_sharp_hinge_needs_its_multipliers_with_weights_of_zero() -> None:
    """Slopes are held for all rows, those that do not count included."""
    X, y = rows(3000, 4)
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    model = LinearClassifier(loss="hinge", tol=1e-8).fit(X, y, sample_weight=weights)
    alone = LinearClassifier(loss="hinge", tol=1e-8).fit(X[weights > 0], y[weights > 0])
    assert model.fit_.certificate.objective == pytest.approx(alone.fit_.certificate.objective, rel=2e-8)
