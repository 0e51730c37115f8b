"""Which classes are swapped: one line each.

    scikit-learn's module and name  ↦  the class of the same name in separatrix.models, and how its parameters are read

A reader (parameters.py) gives ours from scikit-learn's, or raises `HandBack` with the reason where there is no counterpart:
scikit-learn's own class does that fit. A presenter and a warner (attributes.py) give the attributes and the words of
scikit-learn where ours differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np

from separatrix.drop_in.attributes import (
    Answerer,
    Presenter,
    Warner,
    as_found,
    discriminant_attributes,
    gaussian_attributes,
    in_single,
    kernel_machine_attributes,
    kernel_machine_warning,
    linear_machine_warning,
    logistic_attributes,
    logistic_cv_attributes,
    logistic_warning,
    perceptron_warning,
    quadratic_attributes,
    ridge_attributes,
    ridge_classifier_attributes,
    ridge_classifier_cv_attributes,
    ridge_cv_attributes,
    stochastic_attributes,
    without_volume,
)
from separatrix.drop_in.chance import (
    KERNEL_MACHINE,
    LINEAR_MACHINE,
    LOGISTIC,
    LOGISTIC_CV,
    PERCEPTRON,
    RIDGE,
    SeedsDrawn,
)
from separatrix.drop_in.parameters import (
    Reader,
    as_given,
    kernel_machine,
    linear_machine,
    logistic,
    logistic_cv,
    nu_machine,
    ridge,
    ridge_classifier_cv,
    ridge_cv,
    stochastic,
)
from separatrix.models.scikit_learn import check_parameters

_CONSTANTS, _REMEMBERED = (bool, int, float, str, type(None), np.float64), 256


@dataclass(frozen=True)
class Swap:
    """A class of scikit-learn, ours of the same name, and how to get from one to the other."""

    module: str
    name: str
    reader: Reader = as_given
    presenter: Presenter = as_found
    warner: Warner | None = None
    habits: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of ours that no parameter of scikit-learn's stands for, and how scikit-learn's class has them."""
    answers: Mapping[str, Answerer] = field(default_factory=dict)
    """Methods whose answers scikit-learn's class gives otherwise."""
    draws: SeedsDrawn | None = None
    """How many random numbers scikit-learn's fit takes, where ours takes another number of them."""
    text_labels: bool = False
    """Whether `classes_` are strings where y has Python objects that are strings, and no longer than the longest of them."""
    rows_balance: bool = False
    """Whether ``class_weight="balanced"`` counts rows, whatever they weigh."""

    @cached_property
    def original(self) -> type[Any]:
        """scikit-learn's class; the first read comes before the first swap, or loads the module and is that swap."""
        found = getattr(import_module(self.module), self.name)
        return vars(self).get("original", found)

    @cached_property
    def ours(self) -> type[Any]:
        """The class that does the work."""
        return getattr(import_module("separatrix.models"), self.name)

    @cached_property
    def parameter_names(self) -> list[str]:
        """The parameters of scikit-learn's class."""
        return list(signature(self.original).parameters)

    @cached_property
    def _accepted(self) -> dict[str, set[tuple[type, Any]]]:
        """For each parameter values that scikit-learn found valid, each by itself: its check takes as long as a small fit."""
        return {name: set() for name in self.parameter_names}

    def check(self, given: dict[str, Any], constraints: Mapping[str, Any], owner: str) -> None:
        """Refuse values that are not valid, in scikit-learn's words; those that passed before are known."""
        known = self._accepted
        fresh = {
            name: value
            for name, value in sorted(given.items())  # the first of them is named
            if type(value) not in _CONSTANTS or (type(value), value) not in known[name]
        }
        if not fresh:
            return
        check_parameters(constraints, fresh, owner)
        for name, value in fresh.items():
            if type(value) in _CONSTANTS and len(known[name]) < _REMEMBERED:
                known[name].add((type(value), value))

    def given(self, instance: Any) -> dict[str, Any]:
        """Their values; a subclass may have more."""
        return {name: getattr(instance, name) for name in self.parameter_names}


SWAPS: dict[str, Swap] = {
    swap.name: swap
    for swap in (
        Swap(
            "sklearn.linear_model",
            "LogisticRegression",
            logistic,
            logistic_attributes,
            logistic_warning,
            draws=LOGISTIC,
        ),
        Swap(
            "sklearn.linear_model",
            "LogisticRegressionCV",
            logistic_cv,
            logistic_cv_attributes,
            logistic_warning,
            draws=LOGISTIC_CV,
        ),
        Swap("sklearn.linear_model", "LinearRegression", presenter=in_single),
        Swap("sklearn.linear_model", "Ridge", ridge, ridge_attributes, draws=RIDGE),
        Swap(
            "sklearn.linear_model",
            "RidgeClassifier",
            ridge,
            ridge_classifier_attributes,
            draws=RIDGE,
            text_labels=True,
            rows_balance=True,
        ),
        Swap("sklearn.linear_model", "RidgeCV", ridge_cv, ridge_cv_attributes, habits={"whole_rows": True}),
        Swap(
            "sklearn.linear_model",
            "RidgeClassifierCV",
            ridge_classifier_cv,
            ridge_classifier_cv_attributes,
            habits={"whole_rows": True},
            text_labels=True,
            rows_balance=True,
        ),
        Swap(
            "sklearn.linear_model",
            "Perceptron",
            presenter=in_single,
            warner=perceptron_warning,
            draws=PERCEPTRON,
            text_labels=True,
            rows_balance=True,
        ),
        Swap(
            "sklearn.linear_model",
            "SGDClassifier",
            stochastic,
            stochastic_attributes,
            perceptron_warning,
            text_labels=True,
            rows_balance=True,
        ),
        Swap(
            "sklearn.linear_model",
            "PassiveAggressiveClassifier",
            presenter=stochastic_attributes,
            warner=perceptron_warning,
            text_labels=True,
        ),
        Swap(
            "sklearn.discriminant_analysis",
            "LinearDiscriminantAnalysis",
            presenter=discriminant_attributes,
            text_labels=True,
        ),
        Swap(
            "sklearn.discriminant_analysis",
            "QuadraticDiscriminantAnalysis",
            presenter=quadratic_attributes,
            answers={"decision_function": without_volume},
        ),
        Swap("sklearn.neighbors", "NearestCentroid"),
        Swap("sklearn.naive_bayes", "GaussianNB", presenter=gaussian_attributes, text_labels=True),
        Swap("sklearn.naive_bayes", "MultinomialNB", text_labels=True),
        Swap("sklearn.naive_bayes", "ComplementNB", text_labels=True),
        Swap("sklearn.naive_bayes", "BernoulliNB", text_labels=True),
        Swap("sklearn.naive_bayes", "CategoricalNB", text_labels=True),
        Swap(
            "sklearn.svm",
            "SVC",
            kernel_machine,
            kernel_machine_attributes,
            kernel_machine_warning,
            draws=KERNEL_MACHINE,
            rows_balance=True,
        ),
        Swap(
            "sklearn.svm", "NuSVC", nu_machine, kernel_machine_attributes, kernel_machine_warning, draws=KERNEL_MACHINE
        ),
        Swap("sklearn.svm", "LinearSVC", linear_machine, warner=linear_machine_warning, draws=LINEAR_MACHINE),
    )
}


def chosen(only: Iterable[str] | None, without: Iterable[str]) -> list[Swap]:
    """The swaps of these names, of all for ``None``, less those of the others."""
    names = set(SWAPS if only is None else [only] if isinstance(only, str) else only)
    without = {without} if isinstance(without, str) else set(without)
    unknown = sorted((names | without) - SWAPS.keys())
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: no class of this name is swapped; there are {', '.join(SWAPS)}.")
    return [swap for name, swap in SWAPS.items() if name in names - without]
