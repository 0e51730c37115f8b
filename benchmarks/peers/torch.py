"""PyTorch, as somebody uses it who writes Laplace's approximation by hand: L-BFGS, the Hessian, the probit rule.

The Hessian comes from autograd, or from the formula as one product.

Double precision, since the Hessian of single-precision scores does not reach the quality.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from benchmarks.contender import Peer

PEER = Peer("PyTorch", distribution="torch", module="torch")


class Laplace:
    """Mode, covariance and predictive probabilities of a logistic regression, precision 1, flat intercept."""

    def __init__(self, autograd: bool) -> None:
        self.autograd = autograd

    def fit(self, X: Any, y: Any) -> Laplace:
        torch: Any = import_module("torch")
        rows = torch.cat([torch.from_numpy(X), torch.ones(len(X), 1, dtype=torch.float64)], dim=1)
        targets = torch.from_numpy(y).double()
        theta = torch.zeros(rows.shape[1], dtype=torch.float64, requires_grad=True)
        optimiser = torch.optim.LBFGS([theta], max_iter=500, tolerance_grad=1e-2, line_search_fn="strong_wolfe")
        loss = torch.nn.BCEWithLogitsLoss(reduction="sum")

        def energy(at: Any) -> Any:
            return loss(rows @ at, targets) + 0.5 * at[:-1].square().sum()

        def closure() -> Any:
            optimiser.zero_grad()
            value = energy(theta)
            value.backward()
            return value

        optimiser.step(closure)
        hessian = torch.autograd.functional.hessian(energy, theta.detach()) if self.autograd else None
        with torch.no_grad():
            eta = rows @ theta
            p = torch.sigmoid(eta)
            if hessian is None:
                prior = torch.ones(len(theta), dtype=torch.float64)
                prior[-1] = 0.0
                hessian = (rows * (p * (1 - p))[:, None]).T @ rows + torch.diag(prior)
            covariance = torch.linalg.inv(hessian)
            variance = ((rows @ covariance) * rows).sum(dim=1)
            self.proba_ = torch.sigmoid(eta / torch.sqrt(1 + math.pi / 8 * variance)).numpy()
        self.mean_, self.covariance_ = theta.detach().numpy(), covariance.numpy()
        return self
