"""B8, second half: regularised discriminants, (α, γ) chosen from a 10 × 10 grid by exact leave-one-out.

Leaving out 20 000 rows by refitting is out of reach, so the peer is what a user has today: 5-fold cross-validation of
scikit-learn's QDA over 10 values of its shrinkage, which is the line α = 1, γ = 1 − shrinkage of our grid.

Quality is the larger of two errors: the decision values at the chosen (α, γ), and, for a model that chooses by
leave-one-out, the regret of its choice on a small problem where each row is really left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contender import OURS
from benchmarks.data import Data, gaussian_classes
from benchmarks.goals import AtMostTimes, Faster
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.reference import centred_scores, class_moments, discriminant_scores, relative_error
from benchmarks.workload import Check, FitWorkload

GRID = np.linspace(0.0, 1.0, 10)
RDA = "separatrix:RegularizedDiscriminantAnalysis"
SINGLE = "separatrix RDA, leave-one-out of one grid point"


def leave_one_out(alphas: Any, gammas: Any) -> dict[str, Any]:
    return {"alpha": "loo", "gamma": "loo", "alphas": alphas, "gammas": gammas}


def cross_validated_qda() -> Any:
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.model_selection import GridSearchCV

    return GridSearchCV(QuadraticDiscriminantAnalysis(solver="eigen"), {"shrinkage": GRID}, cv=5)


def chosen(model: Any) -> tuple[float, float]:
    """(α, γ) of a fitted model, ours or scikit-learn's."""
    if hasattr(model, "alpha"):
        return getattr(model, "alpha_", model.alpha), getattr(model, "gamma_", model.gamma)
    model = getattr(model, "best_estimator_", model)
    return 1.0, 1.0 - (model.shrinkage or 0.0)


def loss_without_each_row(data: Data, alpha: float, gamma: float) -> float:
    """Mean of −log p(y_i | x_i) under the model of all rows but i, each row really left out."""
    losses = []
    for i, (row, label) in enumerate(zip(data.X, data.y, strict=True)):
        others = np.arange(len(data.y)) != i
        moments = class_moments(Data(data.X[others], data.y[others], ""))
        scores = discriminant_scores(moments, alpha, gamma, row[None, :])[0]
        losses.append(np.logaddexp.reduce(scores) - scores[label])
    return float(np.mean(losses))


def regret() -> Callable[[Any], float]:
    """The function from a leave-one-out model to how far its choice is from the best of the grid, on 45 rows."""
    small = gaussian_classes(45, 3, 3, seed=1)(1.0)
    points: NDArray[np.float64] = np.linspace(0.0, 1.0, 4)
    losses = np.array([[loss_without_each_row(small, alpha, gamma) for gamma in points] for alpha in points])
    best = losses.min()

    def of(model: Any) -> float:
        again = type(model)(**{**model.get_params(), "alphas": points, "gammas": points}).fit(small.X, small.y)
        row, column = (int(np.abs(points - value).argmin()) for value in chosen(again))
        return float((losses[row, column] - best) / best)

    return of


def check(data: Data) -> Check:
    moments = class_moments(data)
    regret_of = regret()

    def error(model: Any) -> float:
        reference = discriminant_scores(moments, *chosen(model), data.probe)
        apart = relative_error(centred_scores(model.decision_function(data.probe)), reference)
        return max(apart, regret_of(model)) if getattr(model, "alpha", None) == "loo" else apart

    return error


WORKLOAD = FitWorkload(
    module=__name__,
    id="B8",
    title="RDA, exact leave-one-out over a 10 × 10 grid",
    goals=(Faster(5), AtMostTimes(5, SINGLE)),
    data=gaussian_classes(20_000, 50, 10),
    contenders=(
        OURS.contender("RDA, leave-one-out over the grid", RDA, leave_one_out(GRID, GRID)),
        OURS.contender(SINGLE.removeprefix("separatrix "), RDA, leave_one_out([0.5], [0.5]), role="context"),
        OURS.contender("RDA, no choice", RDA, {"alpha": 0.5, "gamma": 0.5}, role="context"),
        SKLEARN.contender(
            "QDA eigen, no choice",
            "sklearn.discriminant_analysis:QuadraticDiscriminantAnalysis",
            {"solver": "eigen"},
            role="context",
        ),
        SKLEARN.contender(
            "GridSearchCV of QDA eigen", cross_validated_qda, note="10 values of shrinkage, 5 folds: 50 fits"
        ),
    ),
    check=check,
    quality="larger of the relative error of the decision values at the chosen point (2 000 rows) and the relative "
    "regret of a leave-one-out choice on a small problem solved by really leaving rows out",
)
