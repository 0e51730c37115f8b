"""B12: the Laplace posterior of a logistic regression and the predictive probabilities of the rows it was fitted on.

The quality is the largest of three errors, against Newton's method written out in a few lines: that of the mode in posterior
standard deviations, the relative one of these, and that of the probabilities.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.contender import OURS, construct
from benchmarks.data import Data, logistic_rows
from benchmarks.goals import FasterThan
from benchmarks.peers import numpyro, torch
from benchmarks.posterior import mode
from benchmarks.workload import Check, FitWorkload


class Ours:
    """Our posterior and its predictions, under the names that the check reads."""

    def fit(self, X: Any, y: Any) -> Ours:
        model = construct("separatrix:BayesianLogisticRegression", {"prior_precision": 1.0}).fit(X, y)
        self.proba_ = model.predict_proba(X)[:, 1]
        self.mean_, self.covariance_ = np.append(model.coef_[0], model.intercept_), model.covariance_
        return self


def check(data: Data) -> Check:
    rows = np.column_stack([data.X, np.ones(len(data.y))])
    theta, hessian = mode(rows, data.y.astype(np.float64), np.append(np.ones(data.X.shape[1]), 0.0))
    covariance = np.linalg.inv(hessian)
    deviations = np.sqrt(covariance.diagonal())
    variance = np.einsum("ij,ij->i", rows @ covariance, rows)
    proba = expit(rows @ theta / np.sqrt(1 + math.pi / 8 * variance))

    def error(model: Any) -> float:
        mean = np.abs((model.mean_ - theta) / deviations).max()
        spread = np.abs(np.sqrt(model.covariance_.diagonal()) / deviations - 1).max()
        return float(max(mean, spread, np.abs(model.proba_ - proba).max()))

    return error


WORKLOAD = FitWorkload(
    module=__name__,
    id="B12",
    title="Laplace posterior and its predictive probabilities",
    goals=(FasterThan(5, "PyTorch L-BFGS, Hessian by the formula"),),
    data=logistic_rows(100_000, 50, 2),
    contenders=(
        OURS.contender("BayesianLogisticRegression", Ours),
        torch.PEER.contender("L-BFGS, Hessian by autograd", lambda: torch.Laplace(autograd=True), default=True),
        torch.PEER.contender("L-BFGS, Hessian by the formula", lambda: torch.Laplace(autograd=False)),
        numpyro.PEER.contender("AutoLaplaceApproximation", numpyro.Laplace),
    ),
    check=check,
    quality="error of the mode in posterior standard deviations, of these (relative), and of the probabilities",
    tolerance=1e-3,
)
