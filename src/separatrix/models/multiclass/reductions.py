"""What the reductions from K classes to two share: one binary machine per problem, from one pass where that is enough.

A problem sends every class to group 1, to group 0, or nowhere (−1):

    one against the rest   k → 1, all others → 0
    one against one        k → 0, l → 1, all others → −1

For a model that is algebra on a statistic one pass with K classes serves every problem: the machine of a problem reads
statistic.take(classes).regroup(groups).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter, validate_data

from separatrix.data import Source
from separatrix.data.block import Codes, Float
from separatrix.data.checks import check_unmasked
from separatrix.data.labels import as_names, as_target, as_weights, encode, known_labels
from separatrix.data.views import Regrouped
from separatrix.geometry.combined_forms import Composition, Machines
from separatrix.geometry.score_form import ScoreForm, score_form_of
from separatrix.models.base import Estimator, FitCall
from separatrix.models.checkpoint import Checkpoint
from separatrix.models.classifier import Classifier
from separatrix.models.counted_classes import among_all, check_two_classes, warn_of_one_class
from separatrix.models.generative import MomentEstimator
from separatrix.models.logistic.logistic_regression import LogisticRegression
from separatrix.models.scikit_learn import check_method_params, num_samples, safe_split


@dataclass(frozen=True)
class Indeterminate:
    """Where a scheme of binary machines does not settle the class, and what was made of it.

    Parameters
    ----------
    mask : ndarray of bool, (n,)
        The rows that the machines leave open.
    reason : ndarray of str, (n,)
        "none claims", "several claim" or "votes tie"; empty for the other rows.
    prediction : ndarray, (n,)
        The class that every row was given.
    resolution : str
        How the open rows were settled.
    """

    mask: NDArray[np.bool_]
    reason: NDArray[np.str_]
    prediction: NDArray[Any]
    resolution: str

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows for every reason that occurs."""
        reasons, numbers = np.unique(self.reason[self.mask], return_counts=True)
        return dict(zip(reasons.tolist(), numbers.tolist(), strict=True))

    def __str__(self) -> str:
        if not self.mask.any():
            return f"None of {len(self.mask)} rows is indeterminate."
        parts = ", ".join(f"{reason} ({number})" for reason, number in self.counts.items())
        return f"{int(self.mask.sum())} of {len(self.mask)} rows are indeterminate: {parts}. {self.resolution}"


class Reduction(MetaEstimatorMixin, Classifier):  # type: ignore[misc]  # scikit-learn ships no types
    """K classes by binary machines; a scheme defines the problems they solve and how their answers become a class."""

    estimator: Any
    n_jobs: int | None
    estimators_: list[Any]
    passes_: int | None
    # Weights are for the machines: the scheme hands them on.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": UNUSED}

    @abstractmethod
    def _problems(self, n_classes: int) -> list[Codes]:
        """For every machine the group (1, 0 or −1) of every class."""

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return len(self.classes_)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.classifier_tags.poor_score |= inner.classifier_tags is not None and inner.classifier_tags.poor_score
        tags.non_deterministic = inner.non_deterministic
        return tags

    def get_metadata_routing(self) -> Any:
        """Where metadata go: what `fit` is given is handed to the machines that ask for it."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add_self_request(self).add(estimator=self.estimator, method_mapping=mapping)

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: Checkpoint = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the machines; in one pass over the rows where the estimator needs no more.

        Parameters
        ----------
        sample_weight : array-like of shape (n_samples,), optional
            Handed to the machines, whose `fit` must take it.
        **fit_params : dict
            Further arguments of the machines' `fit`; those with one entry per row are cut as the rows are.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, checkpoint, **fit_params)

    def _train(self, call: FitCall) -> None:
        X, y = call.X, call.y
        if not (hasattr(self.estimator, "decision_function") or hasattr(self.estimator, "predict_proba")):
            raise TypeError(
                f"{type(self.estimator).__name__} has neither decision_function nor predict_proba, so its machines have no "
                "scores to compare; give a classifier that has one of them."
            )
        params = self._machine_params(call.sample_weight, dict(call.options))
        if y is None and not isinstance(X, Source):
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        one_pass = isinstance(self.estimator, MomentEstimator) and is_classifier(self.estimator)
        shared = one_pass and params.keys() <= {"sample_weight"} and self.estimator.reads_statistic(X)
        machines, self.passes_, known = (self._fit_together if shared else self._fit_apart)(X, y, params)
        if machines:
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(machines[0], name):
                    setattr(self, name, getattr(machines[0], name))
                elif name in self.__dict__:
                    delattr(self, name)
        elif not isinstance(X, Source):
            validate_data(self, X, reset=True, skip_check_array=True)
        self.estimators_ = machines
        self._place_among(known)

    def _machine_params(self, sample_weight: ArrayLike | None, fit_params: dict[str, Any]) -> dict[str, Any]:
        given = {**fit_params} if sample_weight is None else {**fit_params, "sample_weight": sample_weight}
        if get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", **given).estimator.fit)
        if sample_weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"{type(self.estimator).__name__}.fit takes no sample_weight; give an estimator that does, or enable "
                "scikit-learn's metadata routing for one that hands it on."
            )
        return given

    def _fit_apart(
        self, X: Any, y: ArrayLike | None, params: dict[str, Any]
    ) -> tuple[list[Any], int | None, NDArray[Any]]:
        """Every machine reads the rows of its own problem; also the labels of all rows."""
        source, codes, known = self._labelled(X, y, params)
        problems = self._problems(len(self.classes_)) if len(self.classes_) > 1 else []
        jobs: Any = (
            (Regrouped(source, groups), None, groups) if source is not None else (X, groups[codes], groups)
            for groups in problems
        )
        machines = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_fit_machine)(self._named(groups), rows, target, params) for rows, target, groups in jobs
        )
        # Rows that precomputed kernels are taken with: those of the machine's own problem.
        pairwise = get_tags(self.estimator).input_tags.pairwise
        self._kept = [np.flatnonzero(groups[codes] >= 0) for groups in problems] if pairwise else None
        counted = all(hasattr(machine, "fit_") for machine in machines)
        return machines, sum(machine.fit_.passes for machine in machines) if counted else None, known

    def _named(self, groups: Codes) -> Any:
        """A machine to be fitted; its messages name the labels of its two groups where that is possible."""
        machine = clone(self.estimator)
        if isinstance(machine, LogisticRegression):
            members = [self.classes_[groups == group].tolist() for group in (0, 1)]
            machine.class_names = as_names([own[0] if len(own) == 1 else "the rest" for own in members])
        return machine

    def _labelled(self, X: Any, y: ArrayLike | None, params: dict[str, Any]) -> tuple[Source | None, Any, NDArray[Any]]:
        """A source with class codes, or the codes of the rows of anything else, and all labels; sets the classes."""
        if isinstance(X, Source):
            if not isinstance(self.estimator, Estimator):
                raise TypeError(
                    f"X is a source, which {type(self.estimator).__name__} cannot read; give arrays, or an estimator of "
                    "separatrix."
                )
            source = self._count_classes(self._read(X, y, params.pop("sample_weight", None), reset=True).labelled())
            assert source.known_classes is not None
            return source, None, source.known_classes
        n_rows = num_samples(X)
        weights = as_weights(params.get("sample_weight"), n_rows)
        if weights is not None:
            params["sample_weight"] = weights
        check_unmasked(y, "y")
        target = as_target(column_or_1d(y, warn=True), n_rows)
        self.classes_, codes = encode(target, None, weights)
        known, self._places = known_labels(target, self.classes_, weights), None
        check_two_classes(known)
        warn_of_one_class(self.classes_)
        return None, codes, known

    def _fit_together(self, X: Any, y: ArrayLike | None, params: dict[str, Any]) -> tuple[list[Any], int, NDArray[Any]]:
        """One pass for all machines; also the labels of all rows."""
        given = self._read(X, y, params.get("sample_weight"), reset=True)
        before = given.passes
        source = self._count_classes(given.labelled())
        self._kept = None
        assert source.known_classes is not None
        if len(self.classes_) == 1:
            return [], source.passes - before, source.known_classes
        problems = self._problems(len(self.classes_))
        reader: MomentEstimator = clone(self.estimator)
        statistic = reader.statistic_of(source, separable=any((groups < 0).any() for groups in problems))
        machines = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(clone(reader).fit_statistic)(
                _two_groups(statistic, groups),
                (0, 1),
                feature_names=getattr(self, "feature_names_in_", None),
                dtype=source.dtype,
            )
            for groups in problems
        )
        return machines, source.passes - before, source.known_classes

    def _check_ready(self) -> None:
        if not hasattr(self, "estimators_"):
            check_is_fitted(self, "estimators_")

    def _inputs(self, X: Any) -> Sequence[Any]:
        """What every machine scores: the rows, or their kernels with the machine's own training rows."""
        self._check_ready()
        return [X] * len(self.estimators_) if self._kept is None else [np.asarray(X)[:, at] for at in self._kept]

    @property
    def machine_rows_(self) -> list[Codes] | None:
        """The training rows of every machine where kernels are given as values; else None."""
        return self._kept

    def _machine_forms(self, threshold: float) -> Machines:
        """Score forms of the machines; without decision_function they are measured by p − `threshold`."""
        forms: list[ScoreForm] = [score_form_of(machine) for machine in self.estimators_]
        if self._kept is not None:
            forms = [
                Composition(form, itemgetter((slice(None), at))) for form, at in zip(forms, self._kept, strict=True)
            ]
        scored = all(hasattr(machine, "decision_function") for machine in self.estimators_)
        return Machines(tuple(forms), None if scored else threshold)

    @abstractmethod
    def _own_scores(self, X: Any) -> Float:
        """(n, k) scores of the classes that have weight, or (n, 1) for two."""

    @abstractmethod
    def _indeterminate(self, X: Any) -> Indeterminate:
        """The rows that the machines leave open, of two classes or more."""

    def indeterminate(self, X: Any) -> Indeterminate:
        """The rows that the machines leave open, and the class they were given all the same.

        One against the rest: rows that no machine claims (with K−1 machines these are the last class's, and not
        indeterminate), or several do. One against one: rows whose votes tie.

        Returns
        -------
        Indeterminate
        """
        self._check_ready()
        check_two_classes(self._counted)
        return self._indeterminate(X)

    def _scores(self, X: Any) -> Float:
        self._check_ready()
        own = self._own_scores(X) if self.estimators_ else np.zeros((number_of_rows(X), 1))
        return own if self._places is None else among_all(own, self._places, len(self.classes_), halved=False)


def number_of_rows(X: Any) -> int:
    """How many rows a source or anything else has."""
    return sum(block.n for block in X.blocks()) if isinstance(X, Source) else num_samples(X)


def machine_scores(machine: Any, X: Any) -> Float:
    """A binary machine's score of every row: positive for its group 1."""
    if hasattr(machine, "decision_function"):
        return np.ravel(machine.decision_function(X))
    return np.asarray(machine.predict_proba(X))[:, 1] - 0.5


def _fit_machine(machine: Any, X: Any, target: Codes | None, params: dict[str, Any]) -> Any:
    if target is None:
        return machine.fit(X, **params)
    if (target >= 0).all():
        return machine.fit(X, target, **params)
    rows = np.flatnonzero(target >= 0)
    inside, _ = safe_split(machine, X.tocsr() if sp.issparse(X) else X, None, rows)
    return machine.fit(inside, target[rows], **check_method_params(X, params, rows))


def _two_groups(statistic: Any, groups: Codes) -> Any:
    """The statistic of the two groups of a problem."""
    kept = np.flatnonzero(groups >= 0)
    return statistic.take(kept).regroup(groups[kept], 2)
