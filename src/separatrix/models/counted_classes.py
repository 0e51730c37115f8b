"""Classes that have weight, and classes that have none: those keep their place, and are never chosen.

    s_k(x) = −∞,  p(k | x) = 0          where every row of class k has weight 0, or class_weight is 0 for it

A model is fitted to the classes that have weight, exactly as if the rows of the others were not there, and then published for
all of them, so that every fit to the same labels has the same columns whatever the weights: bagging and boosting need that.
One score s for two classes stands for −s and s, or for −s/2 and s/2 where scores are log-odds. One class left is always chosen.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data import Source
from separatrix.data.block import Codes, Float
from separatrix.data.labels import listed, shown
from separatrix.data.views import Regrouped
from separatrix.errors import ClassName, Message
from separatrix.geometry.combined_forms import Placed
from separatrix.geometry.combined_forms import among_all as among_all
from separatrix.geometry.combined_forms import shares_among_all as shares_among_all
from separatrix.geometry.score_form import ScoreForm
from separatrix.models.sparse_coefficients import dense
from separatrix.settings import outside


class Undetermined(ValueError):
    """The data so far do not determine the model: one class, too few rows."""


def check_two_classes(classes: NDArray[Any]) -> None:
    """Refuse data of one class."""
    if len(classes) < 2:
        only = shown(classes[0]) if len(classes) else "none"
        raise Undetermined(
            f"A classifier needs rows of at least two classes, but y has only one class: {only}. Add rows of another class."
        )


def check_class_weight(class_weight: Any, classes: NDArray[Any]) -> None:
    """Refuse factors that are negative or not finite, and labels that are not in y."""
    if not isinstance(class_weight, Mapping):
        return
    bad = [value for value in class_weight.values() if not (np.isfinite(value) and value >= 0)]
    if bad:
        raise ValueError(f"class_weight has the value {bad[0]!r}; weights must be finite and ≥ 0.")
    unknown = [label for label in class_weight if label not in set(classes.tolist())]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not among the classes {listed(classes)}.")


def check_some_class(counted: NDArray[Any]) -> None:
    """Refuse a class_weight that leaves no class with weight."""
    if not len(counted):
        raise ValueError("class_weight is 0 for every class that has rows; give at least one a positive weight.")


def with_weight(source: Source, class_weight: Any) -> Source:
    """A labelled source under the classes that have weight; an error where y has one label, or no class has weight."""
    classes, known = source.classes, source.known_classes
    assert classes is not None and known is not None, "label the source first"
    check_two_classes(known)
    check_class_weight(class_weight, known)
    if isinstance(class_weight, Mapping):
        kept = np.flatnonzero([class_weight.get(label, 1.0) > 0 for label in classes.tolist()])
        check_some_class(classes[kept])
        if len(kept) < len(classes):
            return Regrouped.only(source, kept)
    return source


def only_class(label: Any) -> Message:
    """The detail of a fit in which a single class has weight."""
    return Message.of(
        "Only class ", ClassName(label), " has rows of positive weight, so it is predicted for every row."
    )


def warn_of_one_class(classes: NDArray[Any]) -> None:
    """Warn where a single class has weight."""
    if len(classes) == 1:
        warnings.warn(only_class(classes[0]), UserWarning, stacklevel=outside())


def rule_among_all(
    coef: Float, intercept: Float, places: Codes, n_classes: int, *, halved: bool
) -> tuple[Float, Float]:
    """Coefficients and intercepts of all classes, as `among_all`."""
    full = np.zeros((1 if n_classes == 2 else n_classes, coef.shape[1]), dtype=coef.dtype)
    if len(places) > 1:
        full[:] = among_all(coef.T, places, n_classes, halved=halved, fill=0.0).T
    return full, among_all(intercept[None], places, n_classes, halved=halved)[0].astype(intercept.dtype)


class CountedClasses:
    """`classes_` of a classifier: all of y, though some have no weight."""

    classes_: NDArray[Any]
    _places: Codes | None = None
    """Where the classes that have weight stand among `classes_`; None where all have."""

    @property
    def _counted(self) -> NDArray[Any]:
        """The labels that have weight."""
        return self.classes_ if self._places is None else self.classes_[self._places]

    def _count_classes(self, source: Source, class_weight: Any = None) -> Source:
        """Labelled rows under the classes that have weight, which `classes_` holds until `_place_classes`."""
        source = with_weight(source, class_weight)
        assert source.classes is not None
        self.classes_, self._places = source.classes, None
        warn_of_one_class(self.classes_)
        return source

    def _label(self, source: Source) -> Source:
        return self._count_classes(source.labelled(), getattr(self, "class_weight", None))

    def _place_classes(self, source: Source) -> None:
        """The labels of all rows in `classes_`, at the end of a fit."""
        assert source.known_classes is not None, "label the source first"
        self._place_among(source.known_classes)

    def _place_among(self, known: NDArray[Any]) -> None:
        if len(known) > len(self.classes_):
            self._places = np.searchsorted(known, self.classes_)
            self.classes_ = known

    def _has_weight(self, code: int) -> bool:
        return self._places is None or code in self._places

    def score_form(self) -> ScoreForm:
        """The scores as a formula of the columns: what exports, boundaries and risks are computed from.

        Returns
        -------
        ScoreForm
            With ``scores(X)``, equal to `decision_function` but for what all classes share and rounding, and ``link``, how they
            become probabilities. Two classes have one score or two.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from separatrix import LogisticRegression, QuadraticDiscriminantAnalysis
        >>> X, y = load_iris(return_X_y=True)
        >>> form = LogisticRegression().fit(X, y).score_form()
        >>> type(form).__name__, form.weights.shape, form.link
        ('Linear', (3, 4), 'softmax')
        >>> form = QuadraticDiscriminantAnalysis().fit(X, y).score_form()
        >>> type(form).__name__, form.scores(X).shape
        ('Quadratic', (150, 3))
        """
        raise NotImplementedError  # every classifier of the library has its own

    def _placed(self, form: ScoreForm, *, halved: bool) -> ScoreForm:
        """A form of the classes that have weight, among all."""
        return form if self._places is None else Placed(form, self._places, len(self.classes_), halved)

    def _counted_rule(self) -> tuple[Float, Float]:
        """Coefficients and intercepts of the classes that have weight: the inverse of `rule_among_all`, where halved."""
        model: Any = self
        if self._places is None:
            return model.coef_, model.intercept_
        coef, intercept = model.coef_[self._places], model.intercept_[self._places]
        return (coef[1:] - coef[:1], intercept[1:] - intercept[:1]) if len(coef) == 2 else (coef, intercept)

    def _before(self) -> tuple[NDArray[Any], Float, Float] | None:
        """Classes, coefficients and intercepts that a warm start begins with."""
        model: Any = self
        known = getattr(model, "warm_start", False) and hasattr(model, "coef_") and self._places is None
        return (self.classes_, dense(model.coef_), model.intercept_) if known else None
