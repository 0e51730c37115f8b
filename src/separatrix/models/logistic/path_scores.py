"""What folds say about a grid of penalties, and how a model that chose from it scores and hands on metadata.

The best pair (C, ρ) has the largest mean score; of those that tie, up to rounding, the strongest penalty, then the first ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import get_scorer, make_scorer
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from separatrix.data.block import Codes, Float
from separatrix.models.counted_classes import rule_among_all
from separatrix.models.scikit_learn import raise_for_params, routing_enabled, scorer_parts
from separatrix.objectives.solution import Solution
from separatrix.result import Status

# Means of scores this close are equal but for rounding, which must not choose between penalties.
_TIE = 1e-10


def labelled_scorer(scoring: Any, classes: NDArray[Any]) -> Any:
    """The scorer, told the labels where it asks for them: a fold may lack some."""
    scorer = get_scorer(scoring or "accuracy")
    parts = scorer_parts(scorer)
    asked = {} if parts is None else signature(parts.function).parameters
    if parts is None or "labels" not in asked:
        return scorer
    known = {"labels": classes, **({"pos_label": classes[-1]} if len(classes) == 2 and "pos_label" in asked else {})}
    return make_scorer(
        parts.function,
        greater_is_better=parts.greater_is_better,
        response_method=parts.response_method,
        **{**known, **parts.options},
    )


@dataclass
class PathScores:
    """Scores (folds, ratios, Cs), coefficients of each fit, steps of the solver, and how the fits ended."""

    scores: Float
    n_iter: NDArray[np.int32]
    paths: NDArray[Any]
    statuses: list[Status] = field(default_factory=list)

    @classmethod
    def empty(cls, folds: int, ratios: int, Cs: int) -> PathScores:
        """Of so many fits, to be filled."""
        shape = (folds, ratios, Cs)
        return cls(np.full(shape, np.nan), np.zeros(shape, dtype=np.int32), np.empty(shape, dtype=object))

    def put(self, at: tuple[int, int, int], score: float, rule: tuple[Float, Float], solution: Solution | None) -> None:
        """The fit at a place; its rule is (coefficients, intercepts)."""
        self.scores[at], self.paths[at] = score, rule
        if solution is not None:
            self.n_iter[at] = solution.iterations
            self.statuses.append(solution.status)

    @property
    def interrupted(self) -> bool:
        """Whether the last fit was."""
        return bool(self.statuses) and self.statuses[-1] is Status.INTERRUPTED

    def so_far(self, folds: int) -> PathScores:
        """After an interruption: the folds that are complete, or what there is of the first."""
        if np.isnan(self.scores[0]).all():
            raise KeyboardInterrupt("Interrupted before any penalty had its score; nothing is kept.")
        part = slice(0, max(1, folds))
        return PathScores(self.scores[part], self.n_iter[part], self.paths[part], self.statuses)

    def best(self) -> tuple[int, int]:
        """Ratio and C, by number, of the largest mean score."""
        return _largest(self.scores.mean(axis=0))

    def averaged(self) -> tuple[list[tuple[int, int]], Float, Float]:
        """The best pair of every fold, and the mean of their rules; for a class over the folds that have learnt it."""
        chosen = [_largest(fold) for fold in self.scores]
        rules = [path[at] for path, at in zip(self.paths, chosen, strict=True)]
        coefs, intercepts = (np.stack([rule[i] for rule in rules]) for i in (0, 1))
        learnt = np.isfinite(intercepts)
        times = np.maximum(learnt.sum(axis=0), 1)
        coef = np.where(learnt[:, :, None], coefs, 0.0).sum(axis=0) / times[:, None]
        intercept = np.where(learnt, intercepts, 0.0).sum(axis=0) / times
        return chosen, coef, np.where(learnt.any(axis=0), intercept, intercepts[0])

    def shortfall(self) -> str:
        """A sentence if some of the fits did not reach the tolerance."""
        short = [status for status in self.statuses if status.fell_short]
        if not short:
            return ""
        return (
            f"{len(short)} of {len(self.statuses)} fits in the folds did not reach the tolerance ({Status.worst(short).name}), "
            "so that their scores are not those of the optimum."
        )

    def table(self, places: Codes | None, n_classes: int, intercept: bool) -> Float:
        """(folds, ratios, Cs, m, p) coefficients of all classes, the intercept last if there is one."""
        rows = []
        some = next(rule for rule in self.paths.ravel() if rule is not None)
        nothing = tuple(
            np.full_like(part, np.nan) for part in some
        )  # a penalty that an interruption left without a fit
        for rule in self.paths.ravel():
            coef, constant = nothing if rule is None else rule
            if places is not None:
                coef, constant = rule_among_all(coef, constant, places, n_classes, halved=True)
            rows.append(np.column_stack([coef, constant]) if intercept else coef)
        return np.stack(rows).reshape(*self.paths.shape, *rows[0].shape)


def _largest(scores: Float) -> tuple[int, int]:
    """(ratio, C) of the largest score, the first in the order of scikit-learn: by C, then by ratio."""
    by_C = np.where(np.isnan(scores), -np.inf, scores).T
    top = float(np.max(by_C))
    at = int(np.argmax(by_C >= top - _TIE * max(1.0, abs(top))))
    c, ratio = np.unravel_index(at, by_C.shape)
    return int(ratio), int(c)


def legacy_attributes(model: Any, labels: Sequence[Any]) -> None:
    """The shapes that scikit-learn gave before 1.10: one entry per class, the ratios last, none where none were given."""
    m = len(labels)
    scores, n_iter = model.scores_.transpose(0, 2, 1), model.n_iter_.transpose(0, 2, 1)[None]
    paths = model.coefs_paths_.transpose(3, 0, 2, 1, 4)
    if model.l1_ratios is None:
        scores, n_iter, paths = scores[..., 0], n_iter[..., 0], paths[..., 0, :]
    model.scores_, model.n_iter_ = {label: scores.copy() for label in labels}, n_iter
    model.coefs_paths_ = dict(zip(labels, paths, strict=True))
    model.C_, model.l1_ratio_ = np.full(m, model.C_), np.full(m, model.l1_ratio_)


class ScoredChoice:
    """`score` by `scoring`, and the routing of metadata to the splitter and the scorer."""

    cv: Any
    scoring: Any

    def _scorer(self) -> Any:
        return get_scorer(self.scoring or "accuracy")

    def get_metadata_routing(self) -> MetadataRouter:
        """What is passed where: to the splitter's `split`, such as groups, and to the scorer.

        Returns
        -------
        MetadataRouter
        """
        split = MethodMapping().add(caller="fit", callee="split")
        score = MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(splitter=self.cv, method_mapping=split).add(scorer=self._scorer(), method_mapping=score)

    def _routed(self, sample_weight: ArrayLike | None, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What `fit` hands to the splitter, and to the scorer."""
        if routing_enabled():
            routed: Bunch = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return dict(routed.splitter.split), dict(routed.scorer.score)
        return {}, {} if sample_weight is None else {"sample_weight": sample_weight}

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **score_params: Any) -> float:
        """The score by `scoring`: accuracy by default.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        **score_params : dict
            Further metadata for the scorer, when scikit-learn's metadata routing is enabled.

        Returns
        -------
        float
        """
        raise_for_params(score_params, self, "score")
        given = score_params if sample_weight is None else {**score_params, "sample_weight": sample_weight}
        if routing_enabled():
            given = dict(process_routing(self, "score", **given).scorer.score)
        return float(self._scorer()(self, X, y, **given))
