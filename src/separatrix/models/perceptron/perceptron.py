"""The perceptron: a hyperplane that is turned towards every row it gets wrong.

    t f(x) ≤ 0:  w ← w + η s t x,  b ← b + η s t        t = ±1; K > 2 classes have K machines, one class against the others

On separable classes it stops after at most (D/δ)² mistakes, D = max ‖φ‖ and δ the best margin through the origin, both in the
space in which the rule runs: φ(x) = [x, 1] with an intercept, x without. On other classes it never stops by itself.

Reference: Novikoff (1962); Freund and Schapire (1999), Machine Learning 37; Gallant (1990), IEEE TNN 1.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.labels import shown
from separatrix.data.views import Regrouped
from separatrix.geometry.origin_margin import origin_margin
from separatrix.geometry.separation import separability
from separatrix.models.base import FitCall, OptionalArray
from separatrix.models.checkpoint import Checkpoint
from separatrix.models.class_weights import ClassWeight, class_counts, class_factors
from separatrix.models.counted_classes import check_class_weight
from separatrix.models.perceptron.online_rule import OnlineRule
from separatrix.models.progress import Progress
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.models.sparse_coefficients import dense
from separatrix.models.stopwatch import Stopwatch
from separatrix.online.machine import BinaryPerceptron, Rule, Variant
from separatrix.online.mistakes import MistakePath, criterion
from separatrix.online.perceptron import (
    hold_out,
    largest_norm,
    squared_lift,
    start_machines,
    survey,
    train,
)
from separatrix.result import Certificate, Status
from separatrix.settings import config


def _seed_of(random_state: Any) -> int:
    """What a random state draws first; to make one takes longer than a small fit's epochs."""
    return _first_draw(random_state) if type(random_state) is int else _first_draw.__wrapped__(random_state)


@lru_cache(maxsize=64)
def _first_draw(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(2**31 - 1))


class Perceptron(OnlineRule):
    """Rosenblatt's perceptron, with the averaged and the pocket variant, and what is known about its mistakes.

    Drop-in for scikit-learn's: without shuffling the plain rule has its coefficients to the last digits. With shuffling a
    weight of 2 is the row standing twice, and the order in which the rows are given makes no difference.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"}, optional
        What is added to the loss; nothing by default.
    alpha, l1_ratio : float, default=0.0001, 0.15
        Factor of the penalty, and the share of the absolute values in "elasticnet".
    fit_intercept : bool, default=True
        Whether there is an intercept. On sparse rows its steps are a hundredth as large, as in scikit-learn: φ(x) = [x, 1/10].
    max_iter : int, default=1000
        Limit on the number of epochs, the passes over the rows.
    tol : float or None, default=1e-3
        Stop when the mean loss of an epoch has not fallen by this much for `n_iter_no_change` epochs, separable or not;
        ``None`` goes on to an epoch without a mistake, or to `max_iter`.
    shuffle : bool, default=True
        Whether every epoch has an order of its own. Rows in memory are shuffled all together, others within their block.
    verbose : int, default=0
        Positive: report every epoch.
    eta0 : float, default=1.0
        Factor of every step. From a start at zero and without a penalty it only scales the coefficients.
    n_jobs : int, optional
        Threads, for more than two classes; by default those of `separatrix.config`.
    random_state : int, RandomState or None, default=0
        Of the orders and of the rows that are held out.
    early_stopping, validation_fraction : bool and float, default=False, 0.1
        Whether to hold out that share of the rows, and to stop when the part of them that is right does not grow.
    n_iter_no_change : int, default=5
        Epochs to wait for an improvement.
    class_weight : dict or "balanced", optional
        Factors of the steps of each class; of more than two classes, in the machine of the class itself.
    warm_start : bool, default=False
        Start from the previous coefficients.
    variant : {"plain", "averaged", "pocket"}, default="plain"
        The last vector, the mean of the vectors after every visit, or the one with the fewest mistakes on the training rows.
    record : bool, default=False
        Whether to keep the vector that makes the mistakes after each of them in ``fit_.history``, with the row it was made on
        and the perceptron criterion Σ s max(0, −t f). Rows are then visited one by one from Python.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Epochs, of the machine that made the most.
    t_ : float
        One more than the number of visits to rows.
    n_mistakes_ : ndarray of int of shape (1,) or (n_classes,)
        Mistakes that each machine made while it learned.
    radius_ : float
        D = max ‖φ(x)‖.
    margin_ : ndarray of shape (1,) or (n_classes,)
        min t f(x)/‖(w, b)‖ over the rows given last, in the space of φ; not positive if some row is on the wrong side.
    fit_ : Fit
        Why the fit stopped. Its certificate counts the rows that are wrong: no rule has fewer than none.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 0, 0, 1]
    >>> model = Perceptron(tol=None).fit(X, y)
    >>> model.predict(X).tolist()
    [0, 0, 0, 1]
    >>> bool(model.n_mistakes_[0] <= model.mistake_bound(X, y)[0])
    True
    """

    n_iter_: int
    t_: float
    n_mistakes_: NDArray[np.int64]
    radius_: float
    margin_: Float
    _machines: list[BinaryPerceptron]

    _keeps_single = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "verbose": ["verbose"],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "warm_start": ["boolean"],
        "variant": [StrOptions({"plain", "averaged", "pocket"})],
        "record": ["boolean"],
    }

    def __init__(
        self,
        *,
        penalty: Literal["l2", "l1", "elasticnet"] | None = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: ClassWeight = None,
        warm_start: bool = False,
        variant: Variant = "plain",
        record: bool = False,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.eta0 = eta0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.variant = variant
        self.record = record

    def fit(  # type: ignore[override]  # in scikit-learn's order of arguments
        self,
        X: Any,
        y: OptionalArray = None,
        coef_init: OptionalArray = None,
        intercept_init: OptionalArray = None,
        sample_weight: OptionalArray = None,
        *,
        checkpoint: Checkpoint = None,
    ) -> Self:
        """Visit the rows until an epoch passes without a mistake, or a limit is reached.

        Parameters
        ----------
        coef_init, intercept_init : array-like of the shapes of ``coef_`` and ``intercept_``, optional
            Where to start; zero by default.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, checkpoint, coef_init=coef_init, intercept_init=intercept_init)

    def _solve(self, source: Source, call: FitCall) -> None:
        if len(self.classes_) == 1:
            self._machines, self.n_mistakes_, self.margin_ = [], np.zeros(0, dtype=np.int64), np.zeros(0)
            self.t_, self.radius_, self.n_iter_ = 1.0, 0.0, 0
            self._constant(source, call.watch)
            return
        coef, intercept, before = call.options["coef_init"], call.options["intercept_init"], call.before
        if before is not None and before[1].shape[1] == source.n_features and np.array_equal(before[0], self.classes_):
            coef, intercept = before[1] if coef is None else coef, before[2] if intercept is None else intercept
        factors = class_factors(self.class_weight, self.classes_, class_counts(source))
        self._machines = start_machines(len(self.classes_), source.n_features, factors, coef, intercept, self.variant)
        self.t_, self.radius_ = 1.0, 0.0
        self._learn(source, call.watch, int(self.max_iter))
        self._place_classes(source)

    def _warn(self) -> None:
        at_the_limit = self.n_iter_ == self.max_iter and not all(machine.done for machine in self._machines)
        self._warn_if_short(also=self.tol is not None and at_the_limit)

    def _add_rows(self, call: FitCall) -> None:
        self._refuse_in_parts()
        first = not hasattr(self, "fit_")
        known = self._known_classes(call.options["classes"], first)
        source = self._labelled(call.X, call.y, call.sample_weight, known, call.watch, reset=first)
        if first:
            check_class_weight(self.class_weight, known)
            self.classes_ = known
            factors = class_factors(self.class_weight, known, np.ones(len(known)))
            self._machines = start_machines(len(known), source.n_features, factors, None, None, self.variant)
            self.t_, self.radius_ = 1.0, 0.0
        else:
            self._machines = deepcopy(self._machines)  # those of the model so far stay as they are, if this is refused
        self._learn(source, call.watch, 1)

    def _rule(self, source: Source, max_iter: int) -> Rule:
        return Rule(
            eta=float(self.eta0),
            lift_squared=squared_lift(source) if self.fit_intercept else 0.0,
            alpha=0.0 if self.penalty is None else float(self.alpha),
            l1_ratio={"l1": 1.0, "elasticnet": float(self.l1_ratio)}.get(self.penalty or "", 0.0),
            variant=self.variant,
            shuffle=bool(self.shuffle),
            seed=_seed_of(self.random_state),
            max_iter=max_iter,
            tol=None if self.tol is None else float(self.tol),
            patience=int(self.n_iter_no_change),
            workers=config.threads if self.n_jobs is None else effective_n_jobs(self.n_jobs),
        )

    def _learn(self, source: Source, watch: Stopwatch, max_iter: int) -> None:
        rule, machines = self._rule(source, max_iter), self._machines
        source.lay_in_rows()  # every epoch reads row by row
        self.radius_ = max(self.radius_, largest_norm(source, rule.lift_squared))
        share, shuffle = self.validation_fraction, bool(self.shuffle)
        held_out = hold_out(source, share, self.random_state, shuffle) if self.early_stopping else None
        for machine in machines:
            machine.begin()
        progress = Progress(type(self).__name__, int(self.verbose))
        try:
            path = MistakePath() if self.record else None
            happened = train(
                source, machines, rule, held_out, lambda now: progress({**now, "gap": now["objective"]}), path
            )
        finally:
            progress.close()
        answers = [machine.answer for machine in machines]
        self.coef_, self.intercept_ = np.stack([w for w, _ in answers]), np.array([b for _, b in answers])
        self.n_iter_, found = happened.epochs, survey(source, machines, answers)
        self.t_ += happened.epochs * (happened.rows + (0 if held_out is None else int(held_out.sum())))
        self.n_mistakes_ = np.array([machine.get("mistakes") for machine in machines], dtype=np.int64)
        lift = np.sqrt(rule.lift_squared) or np.inf  # without an intercept in φ its share of the norm is zero
        lengths = np.hypot(np.linalg.norm(dense(self.coef_), axis=1), self.intercept_ / lift)
        self.margin_ = np.divide(found.least, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
        wrong = float(found.wrong.sum())
        status = Status.SEPARATES if wrong == 0 else Status.MISTAKES_LEFT
        status = Status.INTERRUPTED if happened.interrupted else status
        detail = happened.sentence(rule, machines, found.wrong, self.classes_)
        certificate = Certificate(wrong, wrong, "rows on the wrong side; no rule has fewer than none")
        fit = watch.fit(status, source.passes, detail, certificate, happened.epochs)
        history = None if path is None else path.history(source, machines)
        self.fit_ = replace(fit, trace=happened.trace, history=history)

    def objective_at(
        self, X: Any, y: ArrayLike | None, coef: ArrayLike, intercept: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Float:
        """The perceptron criterion Σ s max(0, −t f) at any coefficients, summed over the machines, without a penalty.

        Parameters
        ----------
        coef : array-like of shape (n_points, *coef_.shape)
        intercept : array-like of shape (n_points, *intercept_.shape)

        Returns
        -------
        ndarray of shape (n_points,)
        """
        self._check_ready()
        source = self._labelled(X, y, sample_weight, self._counted, Stopwatch(), reset=False)
        return criterion(source, self._machines, np.asarray(coef, np.float64), np.asarray(intercept, np.float64))

    def mistake_bound(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Float:
        """(D/δ)²: how many mistakes each machine can make at most on these rows, in any order and any number of epochs.

        δ = max min t uᵀφ(x) over ‖u‖ = 1 is the best margin through the origin of the space of φ. It is found with a
        duality gap, and the bound is that of the smaller end. The theorem is about a start at zero and no penalty. Where
        rows have different weights, or stand several times among shuffled ones, the bound is multiplied with the ratio
        of the greatest step to the least.

        Parameters
        ----------
        X, y, sample_weight : the rows that the model was fitted to
            Rows of weight 0 do not count.

        Returns
        -------
        ndarray of shape (1,) or (n_classes,)

        Raises
        ------
        ValueError
            If no hyperplane separates the classes: nothing bounds the number of mistakes.

        Examples
        --------
        >>> from separatrix import Perceptron
        >>> X, y = [[-1.0], [1.0]], [0, 1]
        >>> Perceptron(fit_intercept=False).fit(X, y).mistake_bound(X, y).round(6).tolist()
        [1.0]
        """
        self._check_ready()
        if self.penalty is not None:
            raise ValueError(
                f"With penalty={self.penalty!r} nothing bounds the number of mistakes; the theorem is about penalty=None."
            )
        source = self._labelled(X, y, sample_weight, self._counted, Stopwatch(), reset=False)
        squared = squared_lift(source) if self.fit_intercept else 0.0
        radius, bounds = largest_norm(source, squared), []
        for machine in self._machines:
            pair, label = Regrouped.one_against_rest(source, machine.code), shown(self._counted[machine.code])
            margin = origin_margin(pair, float(np.sqrt(squared)), radius)
            if margin.lower <= 0.0:
                verdict = separability(pair, fit_intercept=bool(self.fit_intercept)).verdict
                found = (
                    f"a hyperplane separates class {label} from the others, but by less than rounding"
                    if verdict == "complete"
                    else f"no hyperplane separates class {label} from the others"
                )
                raise ValueError(f"Nothing bounds the number of mistakes: {found} (separability: {verdict!r}).")
            bounds.append(machine.greatest_step / machine.least_step * (radius / margin.lower) ** 2)
        return np.array(bounds)
