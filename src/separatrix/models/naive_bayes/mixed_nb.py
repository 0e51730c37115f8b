"""Naive Bayes for a real table: numbers, flags, categories as strings, counts, and holes.

    log p(k|x) = log π_k + Σ_j log p_j(x_j|k) + const,      the sum over the columns that are observed

Each column has its own family (families.py). Leaving a missing value out of the product is what summing over all
its possible values gives, so it is exact, in training and in prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import column_or_1d, validate_data

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.checks import check_rows
from separatrix.data.frames import is_frame
from separatrix.data.labels import listed, shown
from separatrix.models.base import Undetermined
from separatrix.models.generative import class_priors
from separatrix.models.naive_bayes import families as kinds
from separatrix.models.naive_bayes.families import FAMILIES, Family, Reader, check_column, infer_family
from separatrix.models.naive_bayes.naive_bayes import NaiveBayesClassifier, draw_classes
from separatrix.result import Status
from separatrix.statistics.columns import MixedCounts, Moments
from separatrix.tables.column_table import Column, ColumnTable

Group = tuple[Any, ...]


class MixedNB(NaiveBayesClassifier):
    """Naive Bayes whose columns each have their own family, with missing values marginalised exactly.

    Parameters
    ----------
    families : "auto", mapping or sequence, default="auto"
        Family of every column: "gaussian", "bernoulli", "categorical", "poisson" or "multinomial". A mapping from column
        names (numbers, for an array) may leave columns out: these are inferred from their type. All columns that are
        "multinomial" form one group of counts; a tuple of columns as a key makes a group of its own. A sequence has one
        family a column.
    alpha : float, default=1.0
        Smoothing of every family but the Gaussian; 0 is pure maximum likelihood.
    var_smoothing : float, default=1e-9
        Share of the largest variance of the Gaussian columns that is added to each.
    priors : array-like of shape (n_classes,), optional
        Class probabilities; by default their shares in the data.

    Attributes
    ----------
    families_ : dict
        Family of every column, a string with the attribute ``reason``.
    class_count_, class_log_prior_ : ndarray of shape (n_classes,)
    classes_ : ndarray
    fit_ : Fit

    Examples
    --------
    >>> import pandas as pd
    >>> from separatrix import MixedNB
    >>> table = pd.DataFrame({
    ...     "income": ["low", "high", "middle", "high", "low", None],
    ...     "charitable": [True, True, False, False, None, False],
    ...     "sleep": [7.5, 8.0, None, 5.5, 6.0, 5.0],
    ... })
    >>> model = MixedNB().fit(table, ["happy", "happy", "happy", "sad", "sad", "sad"])
    >>> model.families_
    {'income': 'categorical', 'charitable': 'bernoulli', 'sleep': 'gaussian'}
    >>> model.predict(pd.DataFrame({"income": [None], "charitable": [None], "sleep": [8.0]}))
    array(['happy'], dtype='<U5')
    """

    families_: dict[Any, Family]

    _parameter_constraints: dict[str, list[Any]] = {
        "families": [StrOptions({"auto"}), dict, list, tuple, Mapping, "array-like"],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
        "priors": ["array-like", None],
    }

    def __init__(
        self,
        families: str | Mapping[Any, str] | Sequence[str] = "auto",
        *,
        alpha: float = 1.0,
        var_smoothing: float = 1e-9,
        priors: ArrayLike | None = None,
    ) -> None:
        self.families = families
        self.alpha = alpha
        self.var_smoothing = var_smoothing
        self.priors = priors

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.classifier_tags.poor_score = False
        return tags

    # -- reading the table ----------------------------------------------------------------------------------------

    def _read(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        reset: bool,
        min_rows: int = 1,
        multi_output: bool = False,
        numeric: bool = False,
    ) -> Any:
        if isinstance(X, Source):
            raise TypeError(
                "MixedNB reads tables with their own column types; read the file in parts and use partial_fit."
            )
        X = check_rows(X)
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
        else:
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False, ensure_min_samples=min_rows)
        table = ColumnTable(X, None if y is None else column_or_1d(y, warn=True), sample_weight)
        if reset:
            self._choose_families(table)
        else:  # columns of an array have numbers where those of a frame have names: the place counts, as in scikit-learn
            named = zip(table.columns, self.families_, strict=True)
            table.columns = [replace(column, name=name) for column, name in named]
        for column in table.columns:
            check_column(column, self.families_[column.name])
        return table

    def _choose_families(self, table: ColumnTable) -> None:
        names = [column.name for column in table.columns]
        given, self._groups = self._given_families(names)
        self.families_ = {}
        for column in table.columns:
            family = given.get(column.name)
            if family is None:
                self.families_[column.name] = infer_family(column)
            elif family in FAMILIES:
                self.families_[column.name] = Family(family, "it was named so")
            else:
                raise ValueError(f"{column} has the unknown family {family!r}; the families are {', '.join(FAMILIES)}.")
        grouped = {name for group in self._groups for name in group}
        loose = tuple(
            name for name, family in self.families_.items() if family == "multinomial" and name not in grouped
        )
        self._groups += [loose] if loose else []

    def _given_families(self, names: list[Any]) -> tuple[dict[Any, str], list[Group]]:
        if isinstance(self.families, str):
            return {}, []
        if not isinstance(self.families, Mapping):
            if len(self.families) != len(names):
                raise ValueError(
                    f"families has {len(self.families)} entries, but X has {len(names)} columns; give one a column."
                )
            return dict(zip(names, self.families, strict=True)), []
        given: dict[Any, str] = {}
        groups: list[Group] = []
        for key, family in self.families.items():
            members = key if isinstance(key, tuple) else (key,)
            for member in members:
                if member not in names:
                    raise ValueError(
                        f"families names the column {member!r}, which X does not have; it has {listed(names)}."
                    )
                if member in given:
                    raise ValueError(f"families names the column {member!r} twice; give each column one family.")
                given[member] = family
            if isinstance(key, tuple) and len(key) > 1:
                if family != "multinomial":
                    raise ValueError(f"families makes a group of {key}, but only 'multinomial' takes several together.")
                groups.append(key)
        return given, groups

    def _parts(self, table: ColumnTable) -> list[tuple[Group, str, list[Column]]]:
        """Every column, or group of columns, with its family."""
        columns = {column.name: column for column in table.columns}
        grouped = {name for group in self._groups for name in group}
        parts = [((name,), family, [columns[name]]) for name, family in self.families_.items() if name not in grouped]
        return parts + [(group, "multinomial", [columns[name] for name in group]) for group in self._groups]

    def _measure(self, source: Any) -> Any:
        table: ColumnTable = source
        n_classes = len(table.classes) if table.classes is not None else 0
        table.passes = 1
        counts = np.bincount(table.codes, table.weights, minlength=n_classes).astype(np.float64)
        return MixedCounts(
            counts,
            {
                key: kinds.count(family, columns, table.codes, table.weights, n_classes)
                for key, family, columns in self._parts(table)
            },
        )

    def _check_mergeable(self, other: Any) -> None:
        super()._check_mergeable(other)
        for name, family in self.families_.items():
            if other.families_.get(name) != family:
                raise ValueError(
                    f"Cannot merge: column {name!r} is {family!r} here and {other.families_.get(name)!r} there."
                )

    def _adopt_features(self, other: Any) -> None:
        super()._adopt_features(other)
        self.families_, self._groups = other.families_, other._groups

    # -- reading the statistic ------------------------------------------------------------------------------------

    def _unpack(self, source: Any) -> tuple[Status, str]:
        statistic: MixedCounts = self._moments
        self.class_count_ = statistic.counts
        self.priors_ = class_priors(self.priors, statistic.counts, self.classes_, source is None)
        with np.errstate(divide="ignore"):  # a class without rows has prior 0: it is never chosen
            self.class_log_prior_ = np.log(self.priors_)
        for key, part in statistic.parts.items():
            if not part.n.any():
                raise Undetermined(
                    f"column {key[0]!r} has no observed value; leave it out, or give rows that have one."
                )
        spreads = [part.overall()[1] for part in statistic.parts.values() if isinstance(part, Moments)]
        floor = self.var_smoothing * max(spreads, default=0.0)
        self._readers: dict[Group, Reader] = {}
        for key, part in statistic.parts.items():
            family = "multinomial" if len(key) > 1 else str(self.families_[key[0]])
            if isinstance(part, Moments):
                if not np.isfinite(part.square).all():
                    raise ValueError(
                        f"column {key[0]!r} has values so large that their squares overflow; divide it by a power of ten first."
                    )
                reader = kinds.GaussianReader(part, floor)
                flat = np.flatnonzero((reader.variance <= 0) & (statistic.counts > 0))
                if len(flat):
                    raise Undetermined(
                        f"column {key[0]!r} does not vary in class {shown(self.classes_[flat[0]])}; leave it out or raise "
                        "var_smoothing."
                    )
                self._readers[key] = reader
            else:
                make: Any = {
                    "bernoulli": kinds.BernoulliReader,
                    "categorical": kinds.CategoricalReader,
                    "poisson": kinds.PoissonReader,
                    "multinomial": kinds.MultinomialReader,
                }[family]
                self._readers[key] = make(part, float(self.alpha))
        return Status.EXACT, ""

    def feature_log_odds(self, X: Any) -> Float:
        """What every column adds to the log posterior of every class; a missing value adds nothing.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features, n_classes)
            Their sum over the columns plus ``class_log_prior_`` is `predict_joint_log_proba`.
        """
        self._check_ready()
        table = self._read(X, reset=False)
        place = {column.name: j for j, column in enumerate(table.columns)}
        odds = np.zeros((table.n_rows, len(table.columns), len(self.classes_)))
        for key, _, columns in self._parts(table):
            odds[:, [place[name] for name in key]] = self._readers[key].log_prob(columns)
        return odds

    def _log_likelihood(self, X: Any) -> Float:
        return self.feature_log_odds(X).sum(axis=1)

    def _log_joint(self, X: Any) -> Float:
        return self._log_likelihood(X) + self.class_log_prior_

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, Any]:
        """Draw rows of the fitted model, complete ones.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Of objects where some column is not numeric.
        y : ndarray of shape (n_samples,)
        """
        codes, rng = draw_classes(self, n_samples, random_state)
        place = {name: j for j, name in enumerate(self.families_)}
        rows = np.empty((n_samples, len(place)), dtype=object)
        for key, reader in self._readers.items():
            drawn = np.asarray(reader.draw(codes, rng), dtype=object).reshape(n_samples, -1)
            rows[:, [place[name] for name in key]] = drawn
        numeric = all(family != "categorical" for family in self.families_.values())
        return (rows.astype(np.float64) if numeric else rows), self.classes_[codes]
