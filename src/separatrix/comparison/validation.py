"""Stratified folds, shared by all families, and the predictions of each family for the rows that a fold leaves out.

Everything that is learnt, the encoding of the columns and the penalty included, is learnt from the training part of the fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.comparison.costs import decided_classes
from separatrix.comparison.drift import profile
from separatrix.comparison.families import ModelFamily
from separatrix.comparison.fitting import Note, in_words, predictions, train
from separatrix.comparison.folds import UNRELATED, Related
from separatrix.comparison.inspection import rank_within_classes
from separatrix.comparison.planes import Plane, discriminant_plane, score_columns
from separatrix.comparison.stages.association import association
from separatrix.comparison.suitable_features import (
    constant_within_classes,
    gaussian_in_classes,
    separating,
    unread,
    unsuited,
)
from separatrix.comparison.table_model import TableModel, learn_encoder
from separatrix.data.block import Codes, Float
from separatrix.geometry.programmes import NEVER, Deadline, OutOfTime, aside
from separatrix.tables.encoder import TableEncoder
from separatrix.tables.rows import TableRows
from separatrix.tables.schema import TableSchema

Step = Callable[[str], None]


@dataclass(frozen=True)
class Part:
    """The rows that are learnt from and those that are left out, as each kind of family reads them."""

    rows: TableRows
    schema: TableSchema
    codes: Codes
    inside: Codes
    outside: Codes
    fitted: TableEncoder | None = None
    all_weights: Float | None = None
    related: Related = UNRELATED

    @cached_property
    def _learnt(self) -> tuple[TableEncoder, Float]:
        """The encoder, learnt from the rows inside unless it is known, and these as it gives them to learn from."""
        return self._learn()

    def _learn(self) -> tuple[TableEncoder, Float]:
        if self.fitted is not None:
            return self.fitted, self.fitted.transform(self._rows[0])
        codes = self.codes[self.inside]
        groups = self.related.take(self.inside).together(codes)
        return learn_encoder(self.schema, self._rows[0], codes, weights=self.weights, groups=groups)

    def learn(self, limit: Deadline) -> Self:
        """Learn the encoding now, within a limit and ready for Ctrl-C: that of words takes a while."""
        self.__dict__["_learnt"] = aside(lambda _: self._learn(), limit)  # no lock of a property is held meanwhile
        return self

    @cached_property
    def encoder(self) -> TableEncoder:
        """Learnt from the rows inside, unless it is known."""
        return self._learnt[0]

    @property
    def weights(self) -> Float | None:
        """How often each row inside counts."""
        return None if self.all_weights is None else self.all_weights[self.inside]

    @cached_property
    def _rows(self) -> tuple[TableRows, TableRows]:
        return self.rows.take(self.inside), self.rows.take(self.outside)

    @cached_property
    def _encoded(self) -> tuple[Float, Float]:
        return self._learnt[1], self.encoder.transform(self._rows[1])

    @cached_property
    def _frames(self) -> tuple[Any, Any]:
        return self.schema.plain_frame(self._rows[0]), self.schema.plain_frame(self._rows[1])

    @cached_property
    def _suited(self) -> NDArray[np.bool_]:
        """The features that a Gaussian of each class can read; all that a known encoder has left."""
        X = self._encoded[0]
        if self.fitted is not None:
            return np.ones(X.shape[1], dtype=bool)
        return gaussian_in_classes(X, self.codes[self.inside]) | self._separating

    @cached_property
    def _separating(self) -> NDArray[np.bool_]:
        return constant_within_classes(self._encoded[0], self.codes[self.inside])

    def encoder_of(self, family: ModelFamily) -> TableEncoder | None:
        """What makes numbers of columns for a family."""
        if not family.encoded:
            return None
        return self.encoder.only(self._suited) if family.by_class and not self._suited.all() else self.encoder

    def of(self, family: ModelFamily) -> tuple[Any, Any]:
        """The inside and the outside, for a family; one that cannot read them is refused with the reason."""
        if not family.encoded:
            return self._frames
        X, X_left_out = self._encoded
        if family.within_classes and self._separating.any():
            raise ValueError(separating(self._named(self._separating)))
        if not family.by_class or self._suited.all():
            return X, X_left_out
        if not self._suited.any():
            raise ValueError(unsuited(self._named(~self._suited)))
        return X[:, self._suited], X_left_out[:, self._suited]

    def remarks(self, family: ModelFamily) -> list[str]:
        """What a family does without."""
        if not family.encoded and (prose := self.schema.prose):
            return [unread(prose)]
        missing = family.encoded and family.by_class and not self._suited.all()
        return [unsuited(self._named(~self._suited))] if missing else []

    def _named(self, which: NDArray[np.bool_]) -> list[str]:
        return [name for name, own in zip(self.encoder.feature_names_, which, strict=True) if own]


@dataclass(frozen=True)
class Task:
    """The table, its classes, the folds of every repeat, and what actions cost."""

    rows: TableRows
    schema: TableSchema
    codes: Codes
    classes: NDArray[Any]
    folds: Codes
    loss: Float | None
    actions: list[Any] | None
    seed: int
    stage_seconds: float = np.inf
    """How long each stage, and each family, may take."""
    weights: Float | None = None
    """How often each row counts."""
    related: Related = UNRELATED
    """Which rows belong together. With times a fold is predicted from those before it, and the rows of fold −1 by none."""

    @property
    def forward(self) -> bool:
        """Whether a fold is predicted from those before it."""
        return self.related.times is not None

    @property
    def n_folds(self) -> int:
        """Of each repeat."""
        return int(self.folds.max()) + 1

    @cached_property
    def _learnt(self) -> tuple[TableEncoder, Float]:
        return self._learn()

    def _learn(self) -> tuple[TableEncoder, Float]:
        groups = self.related.together(self.codes)
        return learn_encoder(self.schema, self.rows, self.codes, weights=self.weights, groups=groups)

    def learn(self, limit: Deadline, step: Step) -> None:
        """Learn the encodings of all rows and of every fold now, within a limit, and keep them."""
        step("learning words: all rows")
        self.__dict__["_learnt"] = aside(lambda _: self._learn(), limit)
        for r, k in product(range(len(self.folds)), range(self.n_folds)):
            step(f"learning words: fold {k + 1}")
            self._parts[r, k] = self.part(*self.fold(k, r)).learn(limit)

    @cached_property
    def _parts(self) -> dict[tuple[int, int], Part]:
        return {}

    @cached_property
    def encoder(self) -> TableEncoder:
        """Learnt from all rows."""
        return self._learnt[0]

    @cached_property
    def encoded(self) -> Float:
        """All rows as numbers."""
        return self._learnt[1]

    @cached_property
    def whole(self) -> Part:
        """All rows, to learn from."""
        part = self.part(np.arange(len(self.codes)), np.arange(0))
        part.__dict__["encoder"] = self.encoder  # these are known, and need not be made again
        part.__dict__["_encoded"] = self.encoded, self.encoded[:0]
        return part

    @cached_property
    def profile(self) -> dict[str, Any]:
        """How the columns are distributed."""
        return profile(self.rows, self.schema.prose)

    @cached_property
    def chance(self) -> float | None:
        """The probability of the association of columns and classes by chance.

        None where it is not known: rows are related, or columns are encoded by the classes.
        """
        by_class = any(one.what in ("target", "text") for one in self.encoder.features_)
        return None if by_class or self.related else association(self.encoded, self.codes, self.weights)

    @cached_property
    def plane(self) -> Plane | str:
        """The plane in which the classes differ most, or a sentence why there is none."""
        return discriminant_plane(self.encoded, self.codes)

    @cached_property
    def rank(self) -> int:
        """The dimension of the encoded rows within their classes."""
        return rank_within_classes(self.encoded, self.codes)

    def part(self, inside: Codes, outside: Codes, fitted: TableEncoder | None = None) -> Part:
        """Rows to learn from and rows that are left out, with the encoder learnt from the first where it is known."""
        return Part(self.rows, self.schema, self.codes, inside, outside, fitted, self.weights, self.related)

    def fold(self, number: int, repeat: int = 0) -> tuple[Codes, Codes]:
        """The rows that a fold learns from, and those that it leaves out."""
        folds = self.folds[repeat]
        return np.flatnonzero(folds < number if self.forward else folds != number), np.flatnonzero(folds == number)

    def part_of_fold(self, number: int, repeat: int = 0) -> Part:
        """The same as a part, with its encoding where that is learnt."""
        return self._parts.get((repeat, number)) or self.part(*self.fold(number, repeat))

    @cached_property
    def predicted(self) -> Codes:
        """The rows that some fold leaves out."""
        return np.flatnonzero(self.folds[0] >= 0)

    @cached_property
    def judged(self) -> Task:
        """The rows that some fold leaves out, encoded as all rows are: what scores, tables and pictures are about."""
        at = self.predicted
        if len(at) == len(self.codes):
            return self
        weights = None if self.weights is None else self.weights[at]
        kept: dict[str, Any] = {"rows": self.rows.take(at), "codes": self.codes[at], "folds": self.folds[:, at]}
        part = replace(self, **kept, weights=weights, related=self.related.take(at))
        part.__dict__["encoder"], part.__dict__["encoded"] = self.encoder, self.encoded[at]
        return part


@dataclass
class Trial:
    """A family on its way through the folds."""

    family: ModelFamily
    build: Callable[..., Any]
    predicted: Codes
    proba: Float | None = None
    decision_scores: Float | None = None
    models: list[TableModel] = field(default_factory=list)
    parameters: list[dict[str, Any]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    limit: Deadline = NEVER
    """Of all its fits together."""


def start_trials(wanted: list[ModelFamily], task: Task) -> tuple[dict[str, Trial], dict[str, str], list[str]]:
    """What will be tried, what is left out for its cost, and notes on what stands in."""
    trials: dict[str, Trial] = {}
    failures: dict[str, str] = {}
    notes: list[str] = []
    n = len(task.codes)
    for family in wanted:
        build = family.build
        if family.limit is not None and n > family.limit:
            if family.beyond is None:
                failures[family.name] = (
                    f"It is compared up to {family.limit} rows, and there are {n}: it would take long."
                )
                continue
            build = family.beyond
            notes.append(
                f"The {family.label} is fitted without probabilities beyond {family.limit} rows, so it is ranked by calibrated "
                "scores where probabilities rank."
            )
        predicted = np.zeros(task.folds.shape, dtype=np.intp)
        trials[family.name] = Trial(family, build, predicted, limit=Deadline(task.stage_seconds))
    return trials, failures, notes


def cross_validate(task: Task, trials: dict[str, Trial], step: Step) -> dict[str, str]:
    """Fill the trials fold by fold; a family that fails is taken out of them, and why is returned."""
    failures: dict[str, str] = {}
    for r in range(len(task.folds)):
        for k in range(task.n_folds):
            part = task.part_of_fold(k, r)
            for name, trial in list(trials.items()):
                step(f"fold {k + 1}: {trial.family.label}")
                try:
                    _try(task, trial, part, r)
                except OutOfTime:
                    failures[name] = (
                        f"It was given up in fold {k + 1}, after {task.stage_seconds:.3g} s in all; raise stage_seconds "
                        "(--stage-seconds) to wait."
                    )
                    del trials[name]
                except Exception as error:  # whatever it is, the other families go on
                    where = f"In fold {k + 1}, which learns from {len(part.inside)} rows"
                    failures[name] = f"{where}: {in_words(error, task.classes)}"
                    del trials[name]
    return failures


def _try(task: Task, trial: Trial, part: Part, r: int) -> None:
    family = trial.family
    X, X_left_out = part.of(family)
    given: dict[str, Any] = {"limit": trial.limit, "weights": part.weights, "related": task.related.take(part.inside)}
    trained = train(family, trial.build, X, task.codes[part.inside], task.seed, **given)
    predicted, proba = predictions(trained.estimator, X_left_out)
    if proba is not None:
        predicted = decided_classes(proba, task.loss, task.actions, task.classes)
        if not np.isfinite(proba).all():
            raise ValueError("Its probabilities of left-out rows are not finite.")
        if trial.proba is None:
            trial.proba = np.zeros((*task.folds.shape, len(task.classes)))
        trial.proba[r, part.outside] = proba
    elif hasattr(trained.estimator, "decision_function"):
        if trial.decision_scores is None:
            trial.decision_scores = np.zeros((*task.folds.shape, len(task.classes)))
        scores = score_columns(trained.estimator.decision_function(X_left_out))
        trial.decision_scores[r][np.ix_(part.outside, trained.estimator.classes_)] = scores
    trial.predicted[r, part.outside] = predicted
    trial.parameters.append(trained.parameters)
    trial.notes.extend(trained.notes)
    trial.models.append(TableModel(task.schema, part.encoder_of(family), trained.estimator, family=family.name))


def aligned_coefs(models: list[TableModel], names: list[str]) -> Float | None:
    """(folds, m, p) coefficients in the encoded columns of these names; 0 where a fold had no such column."""
    places = {name: j for j, name in enumerate(names)}
    found = []
    for model in models:
        if model.encoder is None or not hasattr(model.estimator, "coef_"):
            return None
        coef = np.atleast_2d(model.estimator.coef_)
        shared = [(i, places[name]) for i, name in enumerate(model.encoder.feature_names_) if name in places]
        found.append(np.zeros((len(coef), len(names))))
        found[-1][:, [j for _, j in shared]] = coef[:, [i for i, _ in shared]]
    return np.stack(found)
