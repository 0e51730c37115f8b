"""A generator that a fit shares with others stands, after a fit under the swap, where scikit-learn's own fit would leave it."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import separatrix as sx
from separatrix.drop_in.swaps import SWAPS

ORIGINALS = {name: swap.original for name, swap in SWAPS.items()}
SETTINGS = [
    *[("LogisticRegression", {"solver": solver}) for solver in ("lbfgs", "liblinear", "sag", "saga")],
    *[("LogisticRegressionCV", {"solver": solver, "Cs": 2, "cv": 3}) for solver in ("lbfgs", "liblinear", "saga")],
    ("LogisticRegressionCV", {"solver": "saga", "Cs": 2, "l1_ratios": (0.0, 1.0), "max_iter": 5}),
    ("LogisticRegressionCV", {"solver": "saga", "Cs": 2, "refit": False, "max_iter": 5}),
    *[(name, {"solver": solver}) for name in ("Ridge", "RidgeClassifier") for solver in ("auto", "sag", "saga")],
    *[
        (name, {})
        for name in ("Perceptron", "SGDClassifier", "PassiveAggressiveClassifier", "SVC", "NuSVC", "LinearSVC")
    ],
    ("SGDClassifier", {"early_stopping": True}),
    *[("LinearSVC", more) for more in ({"dual": False}, {"loss": "hinge"}, {"multi_class": "crammer_singer"})],
]


@pytest.fixture
def swapped():
    sx.accelerate()
    yield
    sx.restore()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("name", "parameters"), SETTINGS)
def test_what_follows_in_the_stream_is_the_same(name, parameters, classes, swapped):
    if classes == 3 and parameters.get("solver") == "liblinear":
        return  # which takes two classes only
    X = np.random.default_rng(0).standard_normal((60, 3))
    y = np.minimum(np.arange(60) % 3, classes - 1)
    made = getattr(sys.modules[SWAPS[name].module], name)
    for state in (np.random.RandomState(5), None):
        followed = []
        for kind in (ORIGINALS[name], made):
            np.random.seed(3)  # noqa: NPY002  # the generator that None means
            own = None if state is None else np.random.RandomState(5)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = kind(random_state=own, **parameters).fit(X, y)
            followed.append((np.random.rand(), None if own is None else own.rand()))  # noqa: NPY002  # as above
        assert model.separatrix_model_ is not None and followed[0] == followed[1]


def test_a_fit_that_is_handed_back_draws_once(swapped):
    from sklearn.svm import SVC

    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.arange(20) % 2
    weights = np.where(np.arange(20) == 3, -1.0, 1.0)  # which ours refuses
    followed = []
    for kind in (ORIGINALS["SVC"], SVC):
        generator = np.random.RandomState(1)
        model = kind(random_state=generator).fit(X, y, sample_weight=weights)
        followed.append(generator.rand())
    assert model.separatrix_model_ is None and followed[0] == followed[1]
