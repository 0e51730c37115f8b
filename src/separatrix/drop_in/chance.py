"""Random numbers that scikit-learn's fits take from a generator that others draw from as well.

    RandomState instance, or None: NumPy's own      after a fit the generator stands where scikit-learn's fit would leave it

Its solvers draw a seed (one per machine of two classes, target or point of a path); ours mostly need none. But a script that
gives one generator to a fit and then to `train_test_split`, or makes its next data with `np.random`, goes on with what follows
in the stream: without this it would see other rows under the swap, and draw other figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from separatrix.drop_in.parameters import Parameters

Draws = Callable[[Parameters, Any], int | None]
"""Of scikit-learn's parameters and the fitted estimator of ours: how many seeds; None where that is not known."""

_BY_CHANCE = ("liblinear", "sag", "saga")


def one_seed(given: Parameters, model: Any) -> int:
    """LIBSVM, LIBLINEAR."""
    return 1


def logistic_seeds(given: Parameters, model: Any) -> int:
    """`LogisticRegression`."""
    return int(given["solver"] in _BY_CHANCE)


def logistic_cv_seeds(given: Parameters, model: Any) -> int:
    """`LogisticRegressionCV`: every point of every fold's path, and the last fit."""
    if given["solver"] not in _BY_CHANCE:
        return 0
    scores = model.scores_
    return int(np.size(next(iter(scores.values())) if isinstance(scores, dict) else scores)) + bool(given["refit"])


def ridge_seeds(given: Parameters, model: Any) -> int:
    """`Ridge`, `RidgeClassifier`: every target."""
    return len(np.atleast_2d(model.coef_)) if given["solver"] in ("sag", "saga") else 0


def perceptron_seeds(given: Parameters, model: Any) -> int | None:
    """`Perceptron`: two for two classes, else one for every class; the rows that are held out are drawn otherwise."""
    return None if given["early_stopping"] else len(model.classes_)


@contextmanager
def drawn_as_by(draws: Draws | None, given: Parameters, model: Any) -> Iterator[None]:
    """A fit by ours, after which as many seeds are gone from the generator as after scikit-learn's; none if it is refused."""
    source = given.get("random_state", 0)
    shared = draws is not None and (source is None or isinstance(source, np.random.RandomState))
    if not shared:
        yield
        return
    generator = check_random_state(source)
    before = generator.get_state(legacy=False)
    try:
        yield
    except BaseException:
        generator.set_state(before)
        raise
    assert draws is not None
    count = draws(given, model)
    if count is not None:
        generator.set_state(before)
        for _ in range(count):
            generator.randint(np.iinfo("i").max)
