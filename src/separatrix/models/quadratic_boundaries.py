"""Boundaries of classes with Gaussian densities.

δ_k(x) − δ_l(x) = 0,      δ_k(x) = xᵀA_k x + b_kᵀx + c_k          a quadric; a hyperplane where A_k = A_l
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from separatrix.models.generative import GenerativeClassifier
from separatrix.models.linear_rule import Boundary


class QuadraticBoundaries(GenerativeClassifier):
    """Boundaries of classes with Gaussian densities."""

    @abstractmethod
    def _between(self, first: int, second: int) -> Boundary:
        """The boundary of two classes by their codes, positive on the side of the first."""

    def boundary(self, k: Any = None, l: Any = None) -> Boundary:  # noqa: E741  # names of the formulas
        """The quadric between two classes, or the hyperplane where they share a covariance; positive on the side of the first.

        Parameters
        ----------
        k, l : labels, optional
            Two of ``classes_``. May be left out when there are only two: the positive side is then ``classes_[1]``.

        Returns
        -------
        Quadric or Hyperplane
        """
        self._check_ready()
        return self._between(*self._pair(k, l))
