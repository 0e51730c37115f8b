"""Empirical against expected risk, as the training rows become more.

    empirical  R̂(h) = 1/n Σ l(yᵢ, h(xᵢ)) over the rows that h was fitted to        expected  R(h) = E l(y, h(x)) over new ones

A rule that is fitted to its rows does better on them than on others; the difference goes to 0 as n grows, and for a rule that
contains the truth both go to the least risk there is. Reference: Vapnik (1998), Statistical Learning Theory, chapter 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from separatrix.data.block import Float
from separatrix.decide.empirical_risk import risk
from separatrix.decide.gaussian_classes import GaussianClasses
from separatrix.decide.least_risk import bayes_risk
from separatrix.decide.losses import Loss
from separatrix.decide.real_losses import REAL_LOSSES

_TRIES = 1000


@dataclass(frozen=True, eq=False)
class RiskOverN:
    """The risks of rules that were fitted to samples of growing size.

    Parameters
    ----------
    sizes : ndarray of shape (m,)
        Training rows.
    empirical, expected : ndarray of shape (m, n_repeats)
        The mean loss on the training rows, and on new ones, of every fit.
    least : float or None
        The risk of the best rule, where the truth is known.
    """

    sizes: Float
    empirical: Float
    expected: Float
    least: float | None

    def __repr__(self) -> str:
        ends = f"{self.empirical[-1].mean():.4g} against {self.expected[-1].mean():.4g} at n = {self.sizes[-1]:g}"
        return f"RiskOverN({len(self.sizes)} sizes, {self.empirical.shape[1]} repeats; {ends})"


def risk_over_n(
    estimator: Any,
    truth: GaussianClasses | Callable[[int, Any], tuple[Any, Any]],
    sizes: Sequence[int],
    loss: Loss | None = None,
    *,
    n_repeats: int = 20,
    n_test: int = 20_000,
    epsilon: float = 0.1,
    random_state: Any = None,
) -> RiskOverN:
    """Fit an estimator to samples of every size, and compare its risk on them with that on new rows.

    Parameters
    ----------
    estimator : classifier or regressor
        Clones of it are fitted.
    truth : GaussianClasses, or function of (n_samples, random_state)
        Where rows and targets are drawn from; a function gives both.
    sizes : sequence of int
    loss : as for `risk`, optional
        By default "zero-one" for a classifier and "squared" for a regressor.
    n_repeats : int, default=20
        Samples of each size. Those in which a class is missing are drawn again.
    n_test : int, default=20000
        New rows that the expected risk is measured on, where it has no closed form: the same for all fits.
    epsilon : float, default=0.1
        As for `risk`.
    random_state : int, RandomState or None

    Returns
    -------
    RiskOverN

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import GaussianClasses, LinearDiscriminantAnalysis
    >>> from separatrix.decide import risk_over_n
    >>> truth = GaussianClasses([[0.0, 0.0], [2.0, 0.0]], np.eye(2))
    >>> found = risk_over_n(LinearDiscriminantAnalysis(), truth, [10, 1000], random_state=0)
    >>> gaps = found.expected.mean(axis=1) - found.empirical.mean(axis=1)
    >>> bool(gaps[0] > gaps[1]), bool((found.expected >= found.least).all())
    (True, True)
    """
    rng, known = check_random_state(random_state), truth if isinstance(truth, GaussianClasses) else None
    loss = ("zero-one" if is_classifier(estimator) else "squared") if loss is None else loss
    real = isinstance(loss, str) and loss in REAL_LOSSES
    options: dict[str, Any] = {"epsilon": epsilon, "method": "t" if real else "exact"}
    draw: Any = truth if known is None else known.sample
    X_test, y_test = draw(n_test, rng)
    classes = None if real else np.unique(np.asarray(y_test)) if known is None else known.classes_
    if classes is not None:
        options["classes"] = classes
    empirical, expected = np.empty((2, len(sizes), n_repeats))
    for at, n in enumerate(sizes):
        for repeat in range(n_repeats):
            X, y = _drawn(draw, int(n), rng, classes)
            model = clone(estimator).fit(X, y)
            empirical[at, repeat] = risk(y, model.predict(X), loss, **options).estimate
            if known is not None:
                expected[at, repeat] = known.risk_of(model, loss, n_samples=n_test, random_state=0).estimate
            else:
                expected[at, repeat] = risk(y_test, model.predict(X_test), loss, **options).estimate
    least = None if known is None else bayes_risk(known, loss, random_state=0).estimate
    return RiskOverN(np.asarray(sizes, dtype=np.float64), empirical, expected, least)


def _drawn(draw: Any, n: int, rng: Any, classes: Any) -> tuple[Any, Any]:
    """A sample with rows of every class."""
    for _ in range(_TRIES):
        X, y = draw(n, rng)
        if classes is None or len(np.unique(np.asarray(y))) == len(classes):
            return X, y
    raise ValueError(f"None of {_TRIES} samples of {n} rows had rows of all {len(classes)} classes: give larger sizes.")
