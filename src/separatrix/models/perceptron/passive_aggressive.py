"""The passive-aggressive classifier: the least step that puts a row outside the margin, cut or damped.

    hinge           τ = min(C, ℓ/‖x‖²)          squared hinge   τ = ℓ/(‖x‖² + 1/(2C))       w ← w + τ y x,   ℓ = max(0, 1 − y f)

Reference: Crammer, Dekel, Keshet, Shalev-Shwartz, Singer (2006), JMLR 7.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from separatrix.models.class_weights import ClassWeight
from separatrix.models.perceptron.stochastic_rule import StochasticRule
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.online.stochastic import StepRule


class PassiveAggressiveClassifier(StochasticRule):
    """The passive-aggressive classifier, with scikit-learn's steps in its order.

    It is ``SGDClassifier(penalty=None, learning_rate="pa1", eta0=C)``, or "pa2" for the squared hinge.

    Parameters
    ----------
    C : float, default=1.0
        The greatest step, or what damps the steps of the squared hinge.
    fit_intercept : bool, default=True
        Whether there is an intercept; its steps on sparse rows are a hundredth as large.
    max_iter : int, default=1000
        Limit on the number of epochs.
    tol : float or None, default=1e-3
        Stop when the loss over an epoch has not fallen by this much for `n_iter_no_change` epochs.
    early_stopping, validation_fraction : bool and float, default=False, 0.1
        Whether to hold out that share of the rows, and to stop when the part of them that is right does not grow.
    n_iter_no_change : int, default=5
        Epochs to wait for an improvement.
    shuffle : bool, default=True
        Whether the rows are shuffled before every epoch.
    verbose : int, default=0
        For scikit-learn's sake.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Which of the two steps.
    n_jobs : int, optional
        Threads, for more than two classes.
    random_state : int, RandomState or None, default=None
        Of the orders and of the rows that are held out.
    warm_start : bool, default=False
        Start from the previous coefficients.
    class_weight : dict or "balanced", optional
        Factors of the steps of the classes.
    average : bool or int, default=False
        Publish the mean of the coefficients over the visits, from this one on.

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, t_, fit_
        As `SGDClassifier` has them; nothing bounds the distance to an optimum.

    Examples
    --------
    >>> from separatrix import PassiveAggressiveClassifier
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 0, 0, 1]
    >>> PassiveAggressiveClassifier(random_state=0).fit(X, y).predict([[3.0, 3.0], [0.0, 0.0]]).tolist()
    [1, 0]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "verbose": ["verbose"],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "average": [Interval(Integral, 0, None, closed="neither"), "boolean"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        verbose: int = 0,
        loss: str = "hinge",
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        class_weight: ClassWeight = None,
        average: bool | int = False,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.verbose = verbose
        self.loss = loss
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.average = average

    def _steps(self, decay: float, max_iter: int) -> StepRule:
        return StepRule(
            loss="hinge",
            penalty=None,
            schedule="pa1" if self.loss == "hinge" else "pa2",
            alpha=1.0,
            l1_ratio=0.0,
            epsilon=0.0,
            eta0=float(self.C),
            power=0.0,
            intercept=bool(self.fit_intercept),
            decay=decay,
            average=int(self.average),
            shuffle=bool(self.shuffle),
            max_iter=max_iter,
            tol=None if self.tol is None else float(self.tol),
            patience=int(self.n_iter_no_change),
        )
