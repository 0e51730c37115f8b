"""Linear classifiers by stochastic gradient descent, with scikit-learn's steps.

    min (1/n) Σ sᵢ ℓ(yᵢ, wᵀxᵢ + b) + α ((1−ρ)/2 ‖w‖² + ρ‖w‖₁)          one row at a time, K > 2 classes one against the others

Reference: Bottou (2012), Stochastic gradient descent tricks; Crammer et al. (2006), JMLR 7 (passive-aggressive).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils.metaestimators import available_if

from separatrix.data.block import Float
from separatrix.models.class_weights import ClassWeight
from separatrix.models.perceptron.stochastic_rule import StochasticRule
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.online.stochastic import LOSSES, SCHEDULES, StepRule


def _has_probabilities(model: Any) -> bool:
    if model.loss in ("log_loss", "modified_huber"):
        return True
    raise AttributeError(f"probability estimates are not available for loss={model.loss!r}")


class SGDClassifier(StochasticRule):
    """Linear classifiers by stochastic gradient descent: scikit-learn's steps, in its order.

    Without shuffling, and with it for the same `random_state`, the coefficients are scikit-learn's to rounding. Rows are
    held in memory; `partial_fit` takes them in parts.

    Parameters
    ----------
    loss : str, default="hinge"
        "hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron", "squared_error", "huber",
        "epsilon_insensitive" or "squared_epsilon_insensitive".
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        What is added to the loss.
    alpha, l1_ratio : float, default=0.0001, 0.15
        Factor of the penalty, and the share of the absolute values in "elasticnet".
    fit_intercept : bool, default=True
        Whether there is an intercept; its steps on sparse rows are a hundredth as large.
    max_iter : int, default=1000
        Limit on the number of epochs.
    tol : float or None, default=1e-3
        Stop when the objective over an epoch has not fallen by this much for `n_iter_no_change` epochs.
    shuffle : bool, default=True
        Whether the rows are shuffled before every epoch.
    verbose : int, default=0
        For scikit-learn's sake.
    epsilon : float, default=0.1
        Of the Huber and the insensitive losses.
    n_jobs : int, optional
        Threads, for more than two classes.
    random_state : int, RandomState or None, default=None
        Of the orders and of the rows that are held out.
    learning_rate : {"optimal", "constant", "invscaling", "adaptive", "pa1", "pa2"}, default="optimal"
        Schedule of the steps: 1/(α(t₀ + t)), η₀, η₀/t^power, η₀ divided by 5 whenever there is no progress; or the
        passive-aggressive steps, for the hinge loss.
    eta0 : float, default=0.01
        The first step, or the greatest of "pa1".
    power_t : float, default=0.5
        Of "invscaling".
    early_stopping, validation_fraction : bool and float, default=False, 0.1
        Whether to hold out that share of the rows, and to stop when the part of them that is right does not grow.
    n_iter_no_change : int, default=5
        Epochs to wait for an improvement.
    class_weight : dict or "balanced", optional
        Factors of the weights of the classes.
    warm_start : bool, default=False
        Start from the previous coefficients.
    average : bool or int, default=False
        Publish the mean of the coefficients over the visits, from this one on.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Epochs, of the machine that made the most.
    t_ : float
        One more than the number of visits to rows.
    standard_coef_, standard_intercept_, average_coef_, average_intercept_ : ndarray
        With `average`, the last coefficients and their means; `coef_` is one of them.
    fit_ : Fit
        Why the fit stopped; for the hinge, its square and the log-loss with the L2 penalty also how far the coefficients
        are from the optimum of all rows at most (a duality gap; rounding is not counted).

    Examples
    --------
    >>> from separatrix import SGDClassifier
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 0, 0, 1]
    >>> SGDClassifier(loss="log_loss", random_state=0).fit(X, y).predict([[3.0, 3.0], [0.0, 0.0]]).tolist()
    [1, 0]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions(set(LOSSES))],
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), None],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "verbose": ["verbose"],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "learning_rate": [StrOptions(set(SCHEDULES))],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, None, None, closed="neither")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "warm_start": ["boolean"],
        "average": [Interval(Integral, 0, None, closed="neither"), "boolean"],
    }

    def __init__(
        self,
        loss: str = "hinge",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        epsilon: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = None,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: ClassWeight = None,
        warm_start: bool = False,
        average: bool | int = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.epsilon = epsilon
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.average = average

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.learning_rate == "optimal" and self.alpha == 0:
            raise ValueError(
                "alpha must be > 0 since learning_rate is 'optimal'. alpha is used to compute the optimal learning rate."
            )
        if self.learning_rate in ("pa1", "pa2") and self.loss != "hinge":
            raise ValueError(f"Learning rate '{self.learning_rate}' only works with loss 'hinge'.")
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise ValueError("l1_ratio must be set when penalty is 'elasticnet'")

    def _steps(self, decay: float, max_iter: int) -> StepRule:
        return StepRule(
            loss=self.loss,
            penalty=self.penalty,
            schedule=self.learning_rate,
            alpha=float(self.alpha),
            l1_ratio=float(self.l1_ratio or 0.0),
            epsilon=float(self.epsilon),
            eta0=float(self.eta0),
            power=float(self.power_t),
            intercept=bool(self.fit_intercept),
            decay=decay,
            average=int(self.average),
            shuffle=bool(self.shuffle),
            max_iter=max_iter,
            tol=None if self.tol is None else float(self.tol),
            patience=int(self.n_iter_no_change),
        )

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Float:
        """Probabilities: the logistic function of the scores, or of "modified_huber" (1 + score)/2 cut at 0 and 1.

        Of more than two classes they are those of each class against the others, divided by their sum.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._check_ready()
        scores = np.asarray(self.decision_function(X), dtype=np.float64)
        shares = expit(scores) if self.loss == "log_loss" else (np.clip(scores, -1.0, 1.0) + 1.0) / 2.0
        if shares.ndim == 1:
            return self._as_given(X, np.column_stack([1.0 - shares, shares]))
        shares = np.where(shares.sum(axis=1, keepdims=True) == 0, 1.0, shares)
        return self._as_given(X, shares / shares.sum(axis=1, keepdims=True))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Float:
        """Logarithms of the probabilities.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
