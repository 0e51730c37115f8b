"""Naive Bayes for a real table: numbers, flags, categories as strings, counts, and holes.

    log p(k|x) = log π_k + Σ_j log p_j(x_j|k) + const,      the sum over the columns that are observed

Each column has its own family (families.py). Leaving a missing value out of the product is what summing over all
its possible values gives, so it is exact, in training and in prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import column_or_1d, validate_data

from separatrix.data import Block, Source, as_source
from separatrix.data.block import Codes, Float
from separatrix.data.checks import check_rows, check_unmasked
from separatrix.data.frames import is_frame
from separatrix.data.labels import listed
from separatrix.data.readers import named
from separatrix.errors import ClassName, Message
from separatrix.geometry import ScoreForm
from separatrix.geometry.additive_form import Additive, ColumnKind, TableTerm, Term
from separatrix.models.class_priors import class_priors
from separatrix.models.counted_classes import Undetermined
from separatrix.models.naive_bayes import families as kinds
from separatrix.models.naive_bayes.families import FAMILIES, ColumnFamily, ColumnReader, check_column, infer_family
from separatrix.models.naive_bayes.naive_bayes import NaiveBayesClassifier
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.result import Status
from separatrix.statistics.columns import ColumnMoments, MixedCounts
from separatrix.statistics.statistic import weights_by_class
from separatrix.tables.column_table import Column, ColumnTable, columns_of
from separatrix.tables.columns import ColumnSchema, Kind
from separatrix.tables.frame_table import read_frame
from separatrix.tables.scan_engines import scan_elsewhere
from separatrix.tables.table_scan import TableEncoding
from separatrix.tables.table_source import TableBlock

Group = tuple[Any, ...]
_KINDS: dict[str, Any] = {"numeric": "float", "boolean": "boolean", "categorical": "text"}


class MixedNB(NaiveBayesClassifier):
    """Naive Bayes whose columns each have their own family, with missing values marginalised exactly.

    Parameters
    ----------
    families : "auto", mapping or sequence, default="auto"
        ColumnFamily of every column: "gaussian", "bernoulli", "categorical", "poisson" or "multinomial". A mapping from column
        names (numbers, for an array) may leave columns out: these are inferred from their type. All columns that are
        "multinomial" form one group of counts; a tuple of columns as a key makes a group of its own. A sequence has one
        family per column.
    alpha : float, default=1.0
        Smoothing of every family but the Gaussian; 0 is pure maximum likelihood.
    var_smoothing : float, default=1e-9
        Share of the largest variance of the Gaussian columns that is added to each.
    priors : array-like of shape (n_classes,), optional
        Class probabilities; by default their shares in the data.

    Attributes
    ----------
    families_ : dict
        ColumnFamily of every column, a string with the attribute ``reason``.
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

    families_: dict[Any, ColumnFamily]

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
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *, reset: bool, **options: Any
    ) -> Any:
        if self._encoding is not None and not reset and is_frame(X):
            X = read_frame(X, self._encoding)
        if isinstance(X, Source):
            return self._read_source(as_source(X, y, sample_weight), reset)
        if reset:
            self._encoding = None
        X = check_rows(X)
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
        else:
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        check_unmasked(y, "y")
        table = ColumnTable(X, None if y is None else column_or_1d(y, warn=True), sample_weight)
        if reset:
            self._choose_families(table.columns)
        else:  # columns of an array have numbers where those of a frame have names: the place counts, as in scikit-learn
            named = zip(table.columns, self.families_, strict=True)
            table.columns = [replace(column, name=name) for column, name in named]
        self._checked(table.columns)
        return table

    def _elsewhere(self, X: Any, y: Any, sample_weight: Any) -> Source:
        return scan_elsewhere(X, y, sample_weight)

    def _read_source(self, source: Source, reset: bool) -> Source:
        if not reset:
            return self._columns_of(source)
        source = source.table()
        encoding = source.encoding
        names = [column.name for column in encoding.schema.used]
        self._encoding, self.n_features_in_ = encoding, len(names)
        self.feature_names_in_ = np.asarray(names, dtype=object)
        none = np.empty(0)
        self._choose_families(
            [
                Column(column.name, "integer" if column.name in encoding.bits else _KINDS[column.kind], none)
                for column in encoding.schema.used
            ]
        )
        return source

    def _columns_of(self, source: Source) -> Source:
        """The columns of the model by their names; those of a model that was fitted in memory are read by its families."""
        return source.table().read_as(self._encoding or self._reading(), None)

    def _reading(self) -> TableEncoding:
        columns = []
        for name, family in self.families_.items():
            reader = self._readers.get((name,))
            text = isinstance(reader, kinds.CategoricalReader) and any(isinstance(x, str) for x in reader.values)
            kind: Kind = "categorical" if text else "boolean" if family == "bernoulli" else "numeric"
            columns.append(ColumnSchema(name, kind, family.reason, ("false", "true"), true="true"))
        return TableEncoding.of_columns(tuple(columns), tuple(self.classes_.tolist()))

    def _checked(self, columns: list[Column]) -> list[Column]:
        for column in columns:
            check_column(column, self.families_[column.name])
        return columns

    def _columns_in(self, block: Block) -> list[Column]:
        assert isinstance(block, TableBlock), "the blocks of a table"
        rows = block.rows  # what cannot be read is named with the file
        with named(block.path):
            return self._checked(columns_of(rows))

    def _choose_families(self, columns: list[Column]) -> None:
        names = [column.name for column in columns]
        given, self._groups = self._given_families(names)
        self.families_ = {}
        for column in columns:
            family = given.get(column.name)
            if family is None:
                self.families_[column.name] = infer_family(column)
            elif family in FAMILIES:
                self.families_[column.name] = ColumnFamily(family, "it was named so")
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
                    f"families has {len(self.families)} entries, but X has {len(names)} columns; give one per column."
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

    def _parts(self, given: list[Column]) -> list[tuple[Group, str, list[Column]]]:
        """Every column, or group of columns, with its family."""
        columns = {column.name: column for column in given}
        grouped = {name for group in self._groups for name in group}
        parts = [((name,), family, [columns[name]]) for name, family in self.families_.items() if name not in grouped]
        return parts + [(group, "multinomial", [columns[name] for name in group]) for group in self._groups]

    def reads_statistic(self, X: Any) -> bool:
        """False: families are chosen by the rows of each problem."""
        return False

    def statistic_of(self, source: Any, *, separable: bool = False) -> MixedCounts:
        """One statistic per column or group of columns, of a labelled table."""
        assert source.classes is not None, "label the table first"
        n_classes = len(source.classes)

        def count(columns: list[Column], codes: Codes, weights: Float) -> MixedCounts:
            parts = {
                key: kinds.count(family, members, codes, weights, n_classes)
                for key, family, members in self._parts(columns)
            }
            return MixedCounts(weights_by_class(codes, weights, n_classes), parts)

        def of_block(block: Block) -> MixedCounts:
            weights = np.ones(block.n) if block.weights is None else block.weights
            return count(self._columns_in(block), block.codes, weights)

        if isinstance(source, Source):
            return source.reduce(of_block, MixedCounts.merge)
        source.passes = 1
        return count(source.columns, source.codes, source.weights)

    def _same_encoding(self, other: Any) -> bool:
        return True  # columns are counted as they are

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
            if not part.counts.any():
                raise Undetermined(
                    f"column {key[0]!r} has no observed value; leave it out, or give rows that have one."
                )
        spreads = [part.overall()[1] for part in statistic.parts.values() if isinstance(part, ColumnMoments)]
        floor = self.var_smoothing * max(spreads, default=0.0)
        self._readers: dict[Group, ColumnReader] = {}
        for key, part in statistic.parts.items():
            if isinstance(part, ColumnMoments):
                if not np.isfinite(part.square).all():
                    raise ValueError(
                        f"column {key[0]!r} has values so large that their squares overflow; divide it by a power of ten first."
                    )
                reader = kinds.GaussianReader(part, floor)
                flat = np.flatnonzero((reader.variance <= 0) & (statistic.counts > 0))
                if len(flat):
                    name = ClassName(self.classes_[flat[0]])
                    advice = "; leave it out or raise var_smoothing."
                    raise Undetermined(Message.of(f"column {key[0]!r} does not vary in class ", name, advice))
                self._readers[key] = reader
            else:
                family = "multinomial" if len(key) > 1 else str(self.families_[key[0]])
                self._readers[key] = kinds.COUNT_READERS[family](part, float(self.alpha))
        return Status.EXACT, ""

    def feature_log_odds(self, X: Any) -> Float:
        """What every column adds to the log posterior of every class; a missing value adds nothing.

        Parameters
        ----------
        X : array-like, data frame or Source of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features, n_classes)
            Their sum over the columns plus ``class_log_prior_`` is `predict_joint_log_proba`.
        """
        return self._of_rows(X, lambda odds: odds)

    def _of_rows(self, X: Any, read: Callable[[Float], Float]) -> Float:
        """What is read off the log odds (n, d, K) of all rows, a block at a time for rows in files."""
        self._check_ready()
        table = self._read(X, reset=False)
        if not isinstance(table, Source):
            return read(self._odds(table.columns))
        parts = table.map(lambda block: read(self._odds(self._columns_in(block))))
        if not parts:
            raise ValueError("The data have no rows: at least one is needed.")
        return np.concatenate(parts)

    def _odds(self, given: list[Column]) -> Float:
        place = {name: j for j, name in enumerate(self.families_)}
        odds = np.zeros((len(given[0].values), len(given), len(self.classes_)))
        for key, _, columns in self._parts(given):
            odds[:, [place[name] for name in key]] = self._readers[key].log_prob(columns)
        return odds

    def score_form(self) -> ScoreForm:
        self._check_ready()
        numbered = all(isinstance(name, int) for name in self.families_)
        names = {name: f"x{name}" if numbered else str(name) for name in self.families_}
        kinds: dict[str, ColumnKind] = {
            names[name]: "flag" if family == "bernoulli" else "number" for name, family in self.families_.items()
        }
        terms: list[Term] = []
        for key, reader in self._readers.items():
            term = reader.term([names[name] for name in key])
            terms.append(term)
            if isinstance(term, TableTerm) and any(isinstance(value, str) for value in term.values):
                kinds[term.column] = "text"
        return Additive(terms, self.class_log_prior_, kinds)

    def _log_likelihood(self, X: Any) -> Float:
        return self._of_rows(X, lambda odds: odds.sum(axis=1))

    def _draw_rows(self, codes: Codes, rng: Any) -> Any:
        place = {name: j for j, name in enumerate(self.families_)}
        rows = np.empty((len(codes), len(place)), dtype=object)
        for key, reader in self._readers.items():
            drawn = np.asarray(reader.draw(codes, rng), dtype=object).reshape(len(codes), -1)
            rows[:, [place[name] for name in key]] = drawn
        numeric = all(family != "categorical" for family in self.families_.values())
        return rows.astype(np.float64) if numeric else rows
