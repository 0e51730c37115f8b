"""Random numbers that scikit-learn's fits take from a generator that others draw from as well.

    RandomState instance, or None: NumPy's own      after a fit the generator stands where scikit-learn's fit would leave it

Its solvers draw a seed (one per machine of two classes, target or point of a path); ours mostly need none. But a script that
gives one generator to a fit and then to `train_test_split`, or makes its next data with `np.random`, goes on with what follows
in the stream: without this it would see other rows under the swap, and draw other figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from separatrix.drop_in.parameters import Parameters

_BY_CHANCE = ("liblinear", "sag", "saga")


@dataclass(frozen=True)
class SeedsDrawn:
    """What a fit takes from its generator."""

    theirs: Callable[[Parameters, Any], int | None]
    """Of scikit-learn's parameters and the fitted estimator of ours: how many seeds; None where that is not known."""
    ours: Callable[[Parameters], bool] = lambda given: False
    """Whether a fit by ours draws, too. To keep and set back a generator takes longer than to draw from it."""


def _calibrated(given: Parameters) -> bool:
    """Kernel machines: the folds of a calibration."""
    return given["probability"] not in (False, "deprecated")


def _cv_seeds(given: Parameters, model: Any) -> int:
    """Every point of every fold's path, and the last fit."""
    if given["solver"] not in _BY_CHANCE:
        return 0
    scores = model.scores_
    return int(np.size(next(iter(scores.values())) if isinstance(scores, dict) else scores)) + bool(given["refit"])


def _target_seeds(given: Parameters, model: Any) -> int:
    """Every target."""
    return len(np.atleast_2d(model.coef_)) if given["solver"] in ("sag", "saga") else 0


def _perceptron_seeds(given: Parameters, model: Any) -> int | None:
    """Two for two classes, else one for every class; the rows that are held out are drawn otherwise."""
    return None if given["early_stopping"] else len(model.classes_)


LOGISTIC = SeedsDrawn(lambda given, model: int(given["solver"] in _BY_CHANCE))
LOGISTIC_CV = SeedsDrawn(_cv_seeds, lambda given: True)  # a splitter may have the same generator
RIDGE = SeedsDrawn(_target_seeds)
KERNEL_MACHINE = SeedsDrawn(lambda given, model: 1, _calibrated)
LINEAR_MACHINE = SeedsDrawn(lambda given, model: 1, lambda given: True)
PERCEPTRON = SeedsDrawn(_perceptron_seeds, lambda given: True)


@contextmanager
def drawn_as_by(draws: SeedsDrawn | None, given: Parameters, model: Any) -> Iterator[None]:
    """A fit by ours, after which as many seeds are gone from the generator as after scikit-learn's; none if it is refused."""
    source = given.get("random_state", 0)
    shared = draws is not None and (source is None or isinstance(source, np.random.RandomState))
    if not shared:
        yield
        return
    assert draws is not None
    generator = check_random_state(source)
    before = generator.get_state(legacy=False) if draws.ours(given) else None
    try:
        yield
    except BaseException:
        if before is not None:
            generator.set_state(before)
        raise
    count = draws.theirs(given, model)
    if count is None:
        return
    if before is not None:
        generator.set_state(before)
    for _ in range(count):
        generator.randint(np.iinfo("i").max)
