"""Boundaries of the machines of a support vector classifier, and the distances of rows from them."""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.kernels import Kernel
from separatrix.dual.points import Points
from separatrix.geometry import Hyperplane, KernelExpansion, Linear, ScoreForm, Surface
from separatrix.geometry.combined_forms import PairVote
from separatrix.geometry.votes import class_pairs
from separatrix.models.counted_classes import rule_among_all
from separatrix.models.linear_rule import Boundaries, Boundary, SignedDistance
from separatrix.models.svm.machine_probabilities import MachineProbabilities


class MachineBoundaries(MachineProbabilities, SignedDistance, Boundaries):
    """Boundaries and distances for a classifier made of machines."""

    intercept_: Float
    _kernel: Kernel
    _support: Points
    _coefficients: Float
    _intercepts: Float
    _centre: Float | None

    @property
    def coef_(self) -> Float:
        """Weights of the columns, where the kernel is linear."""
        raise NotImplementedError  # the classifier has them

    def linear_form(self) -> tuple[Float, Float]:
        W = self.coef_
        if self._paired:
            raise ValueError("A vote of pairs is not a linear rule; fit with multi_class='ovr', or ask boundary(k, l).")
        if self._places is None:
            return W, self.intercept_
        return rule_among_all(W, self.intercept_, self._places, len(self.classes_), halved=False)

    def score_form(self) -> ScoreForm:
        self._check_ready()
        link = self._link()
        form: ScoreForm
        if len(self._counted) == 1:
            form = Linear.of(np.zeros((1, self.n_features_in_)), np.zeros(1), link)
        elif self._kernel.linear:
            centre = np.zeros(self.n_features_in_) if self._centre is None else self._centre
            form = Linear(self.coef_, self._intercepts, centre, link=link)
        else:
            form = KernelExpansion(self._support, self._coefficients, self._intercepts, self._kernel, link=link)
        form = PairVote(form, len(self._counted), link=link) if self._paired else form
        return self._placed(form, halved=False)

    def _between(self, first: int, second: int) -> Boundary:
        combination = np.zeros(len(self.intercept_))
        if self._places is not None:
            first, second = np.searchsorted(self._places, (first, second)).tolist()
        if len(self._counted) == 2:
            combination[0] = 1.0 if first == 1 else -1.0
        elif self._paired:
            order = (first, second) if first < second else (second, first)
            combination[class_pairs(len(self._counted)).index(order)] = 1.0 if first < second else -1.0
        else:
            combination[first], combination[second] = 1.0, -1.0
        if self._kernel.linear:
            return Hyperplane(combination @ self.coef_, float(combination @ self.intercept_))
        return Surface(lambda X: self._machine_scores(X) @ combination)
