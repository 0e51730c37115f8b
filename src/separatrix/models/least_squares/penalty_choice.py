"""Choosing the penalty of ridge regression from a grid: what RidgeCV and RidgeClassifierCV share.

Without folds every row is left out in turn, exactly and for the whole grid, in one more pass: see leave_one_out.py in
solvers/least_squares, and few_rows_left_out.py for few rows, whose products then serve the fit as well. With folds the sums of
each come from one pass, and all penalties from one decomposition: fold_rules.py. The largest score wins; of those that tie, the
first in the grid.
"""

from __future__ import annotations

from abc import abstractmethod
from inspect import signature
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils import check_scalar
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from separatrix.data import Source
from separatrix.data.block import Codes, Float
from separatrix.data.folds import number_of_folds, splits
from separatrix.models.base import Estimator, FitCall
from separatrix.models.checkpoint import Checkpoint
from separatrix.models.scikit_learn import (
    Interval,
    StrOptions,
    check_method_params,
    raise_for_params,
    routing_enabled,
    scorer_parts,
)
from separatrix.solvers.least_squares.few_rows_left_out import FewRowsLeftOut, few_rows
from separatrix.solvers.least_squares.fold_rules import fold_rules, resolved_spectrum
from separatrix.solvers.least_squares.leave_one_out import LeaveOneOut, RowsLeftOut, Weighing
from separatrix.solvers.least_squares.weighted_rows import GramRows
from separatrix.statistics.gram import NormalEquations

GRID_PARAMETERS: dict[str, list[Any]] = {
    "alphas": ["array-like", Interval(Real, 0, None, closed="neither")],
    "fit_intercept": ["boolean"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "cv": ["cv_object"],
    "store_cv_results": ["boolean"],
}


class _Routed(NamedTuple):
    """Metadata for the splitter, and for the scorer where scikit-learn's routing is enabled."""

    split: dict[str, Any]
    score: dict[str, Any] | None


class PenaltyChoice(Estimator):
    """A model that chooses its penalty among `alphas`."""

    alphas: Any
    fit_intercept: bool
    scoring: Any
    cv: Any
    store_cv_results: bool
    alpha_per_target: bool = False
    whole_rows = False
    """Whether a row of weight 2 is left out as one row, as scikit-learn does, and not as one of two. No parameter."""
    alpha_: Any
    best_score_: Any
    cv_results_: Float
    _usual_scoring: str
    _dtype: np.dtype[Any]

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: Checkpoint = None,
        **params: Any,
    ) -> Self:
        """Choose the penalty and fit the model.

        Parameters
        ----------
        **params : dict
            Metadata for the splitter and the scorer, such as groups, when scikit-learn's metadata routing is enabled.

        Returns
        -------
        self
        """
        raise_for_params(params, self, "fit")
        return self._fit(X, y, sample_weight, checkpoint, **params)

    def get_metadata_routing(self) -> MetadataRouter:
        """What is passed where: to the splitter's `split`, such as groups, and to the scorer.

        Returns
        -------
        MetadataRouter
        """
        split, score = (MethodMapping().add(caller="fit", callee=callee) for callee in ("split", "score"))
        router = MetadataRouter(owner=self).add_self_request(self).add(scorer=self._scorer(), method_mapping=score)
        return router.add(splitter=self.cv, method_mapping=split)

    def _scorer(self) -> Any:
        if self.scoring is None and routing_enabled():
            return get_scorer(self._usual_scoring).set_score_request(sample_weight=True)
        return get_scorer(self.scoring or self._usual_scoring)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.cv is None:
            return
        for name in ("store_cv_results", "alpha_per_target"):
            if getattr(self, name):
                raise ValueError(f"cv!=None and {name}=True are incompatible")

    def _second_pass_parameter(self) -> str:
        return "The choice among alphas"

    @abstractmethod
    def _given(self, targets: Float) -> NDArray[Any]:
        """The targets of rows as y has them."""

    @abstractmethod
    def _of_predictions(self, predictions: Float) -> tuple[Any, Float]:
        """A model that answers predictions (n, m) of some rows as this one would, and what it has to be given for them."""

    @abstractmethod
    def _of_rule(self, coef: Float, intercept: Float) -> Any:
        """The model with other coefficients."""

    def _grid(self) -> Float:
        """The penalties, checked; without folds they are positive."""
        values = self.alphas if np.ndim(self.alphas) else [self.alphas]
        bounds = "neither" if self.cv is None else "left"
        for at, value in enumerate(values):
            name = f"alphas[{at}]" if len(values) > 1 else "alphas"
            check_scalar(value, name, Real, min_val=0.0, include_boundaries=bounds)
        grid = np.asarray(values, dtype=np.float64)
        if grid.ndim != 1 or not len(grid) or not np.isfinite(grid).all():
            raise ValueError("alphas must be a list of finite numbers, at least one.")
        return grid

    def _choose(
        self,
        source: Source,
        equations: NormalEquations,
        call: FitCall,
        factors: Float | None = None,
        codes: Codes | None = None,
    ) -> None:
        """Set the penalty and its score, from rows with real targets and their normal equations about the mean.

        `factors` of the weights of the classes, and the `codes` of these, where targets stand for classes.
        """
        grid = self._grid()
        if self.cv is None:
            used, spectrum = resolved_spectrum(equations, lambda: source, self.fit_intercept, float(grid.min()))
            weighing = Weighing(factors, self.whole_rows)
            left_out = LeaveOneOut(source, used, spectrum, grid, self.fit_intercept, weighing)
            scores = self._scores_of_rows(left_out, self._routed(call).score)
        else:
            scores = self._scores_of_folds(source, grid, self._routed(call), codes)
        self._take_best(grid, scores)

    def _choose_by_rows(self, source: Source, call: FitCall, factors: Float | None = None) -> GramRows | None:
        """The same where few rows are left out in turn: their products, by which the penalty was chosen; else None."""
        if self.cv is not None:
            return None
        grid = self._grid()
        rows = few_rows(source, self.fit_intercept)
        if rows is None:
            return None
        left_out = FewRowsLeftOut(rows, grid, Weighing(factors, self.whole_rows))
        if not left_out.resolved:
            return None
        self._take_best(grid, self._scores_of_rows(left_out, self._routed(call).score))
        return rows

    def _routed(self, call: FitCall) -> _Routed:
        """Metadata for the splitter and the scorer."""
        if not routing_enabled():
            return _Routed({}, None)
        routed = process_routing(self, "fit", **self._metadata(call))
        return _Routed(dict(routed.splitter.split), dict(routed.scorer.score))

    def _take_best(self, grid: Float, scores: Float) -> None:
        scores = np.where(np.isnan(scores), -np.inf, scores)
        best = scores.argmax(axis=0)
        if self.alpha_per_target and scores.shape[1:] > (1,):
            self.alpha_, self.best_score_ = grid[best], scores.max(axis=0)
        else:
            self.alpha_, self.best_score_ = float(grid[best.ravel()[0]]), float(scores.max())

    def _metadata(self, call: FitCall) -> dict[str, Any]:
        weights = {} if call.sample_weight is None else {"sample_weight": call.sample_weight}
        return {**call.options, **weights}

    def _scores_of_rows(self, left_out: LeaveOneOut | FewRowsLeftOut, for_score: dict[str, Any] | None) -> Float:
        """(A,) or, with a penalty per target, (A, m) scores of the rows left out in turn."""
        if self.scoring is None and not self.store_cv_results:
            losses = left_out.losses()
            return -losses if self.alpha_per_target else -losses.mean(axis=1)
        rows = left_out.rows()
        if self.store_cv_results:
            stored = rows.squares() if self.scoring is None else rows.all_predictions()
            self.cv_results_ = (stored[:, 0] if self._one_vector() else stored).astype(self._dtype, copy=False)
        if self.scoring is None:
            size = rows.repeated.sum() if left_out.repetitions else len(rows.weights)
            losses = np.tensordot(rows.weights, np.square(rows.errors), axes=1).T / size
            return -losses if self.alpha_per_target else -losses.mean(axis=1)
        return self._scored(rows, for_score)

    def _scored(self, rows: RowsLeftOut, for_score: dict[str, Any] | None) -> Float:
        scorer, predictions = self._scorer(), rows.predictions()
        if for_score is None:
            for_score = _weights_for(scorer, rows.weights)
        else:
            for_score = check_method_params(rows.kept, for_score, np.flatnonzero(rows.kept))
        if self.alpha_per_target:
            columns = [(predictions[:, j], rows.targets[:, j]) for j in range(rows.targets.shape[1])]
            return np.array(
                [
                    [scorer(*self._of_predictions(part[:, a : a + 1]), truth, **for_score) for part, truth in columns]
                    for a in range(predictions.shape[2])
                ]
            )
        truth = self._given(rows.targets)
        return np.array(
            [
                scorer(*self._of_predictions(predictions[:, :, a]), truth, **for_score)
                for a in range(predictions.shape[2])
            ]
        )

    @abstractmethod
    def _one_vector(self) -> bool:
        """Whether y is one column of numbers."""

    def _scores_of_folds(
        self,
        source: Source,
        grid: Float,
        routed: _Routed,
        codes: Codes | None,
    ) -> Float:
        """(A,) means over the folds of the scores of the rows that are left out."""
        X, targets, weights = _in_memory(source)
        kept = np.flatnonzero(weights)
        n_rows, X, targets, weights = len(weights), X[kept], targets[kept], weights[kept]
        codes = np.zeros(len(kept), dtype=np.intp) if codes is None else codes[kept]
        truth = self._given(targets)
        number = number_of_folds(self.cv)
        for_split, for_score = check_method_params(X, routed.split, kept), routed.score
        folds = list(splits(self.cv, X, codes if number is not None else truth, kept, n_rows, **for_split))
        for at, (train, test) in enumerate(folds):
            if not len(train) or not len(test):
                raise ValueError(
                    f"Fold {at} learns from {len(train)} rows and tests {len(test)}; give it at least one each."
                )
        scorer = self._scorer()
        if for_score is None:
            for_score = _weights_for(scorer, weights)
        else:
            for_score = check_method_params(np.empty(n_rows), for_score, kept)
        uneven = None if (weights == 1).all() else weights  # sums without weights are quicker
        scores = np.empty((len(folds), len(grid)))
        rules = fold_rules(X, targets, uneven, folds, grid, self.fit_intercept)
        for f, ((_, test), (coefs, intercepts)) in enumerate(zip(folds, rules, strict=True)):
            params = check_method_params(X, for_score, test)
            part = X[test]
            for a, rule in enumerate(zip(coefs, intercepts, strict=True)):
                scores[f, a] = scorer(self._of_rule(*rule), part, truth[test], **params)
        return scores.mean(axis=0)


def _in_memory(source: Source) -> tuple[Any, Float, Float]:
    """Rows, targets and weights."""
    parts = [(block.y, block.row_weights) for block in source.blocks()]
    targets, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    X = source.matrix()
    return X.tocsr() if hasattr(X, "tocsr") else X, targets, weights


def _weights_for(scorer: Any, weights: Float) -> dict[str, Any]:
    """Weights for a scorer that takes some, where they differ from 1."""
    parts = scorer_parts(scorer)
    taken = signature(scorer if parts is None else parts.function).parameters
    return {"sample_weight": weights} if "sample_weight" in taken and (weights != 1).any() else {}
