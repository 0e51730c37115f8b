"""A table as a matrix: what the linear models see of mixed columns with holes.

    value    ((x if observed else fill) − centre)/scale      fill: the median of the training rows
    missing  (1[x missing] − centre)/½                        where enough training rows had holes of their own
    level    (1[x = level] − centre)/½                        all categories but the most frequent, and but rare ones
    target   (t_k(x) − centre)/scale                          of a column of many categories (target_encoding.py)

Centre and scale are the mean and the standard deviation of the feature over the training rows, 0 and 1 without
standardisation. A list of such features is all that a transformation needs.

The scale of a category is ½, whatever its share p of the rows: the standard deviation of half of them, so that a penalty
shrinks the effects of frequent and of rare categories alike. With its own, √(p(1 − p)), an effect is shrunk the less the rarer
the category, and there is the less to learn it from. Reference: Gelman, Statistics in Medicine 27, 2008 (a step from 0 to 1 as
one of two standard deviations).

An indicator that is 1 (or 0) in a row or two has no variance in some class: it separates by accident, and Gaussian models break
on it. The default least number of rows is 5, fewer where there are fewer than 100 rows: min(5, n/20).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from separatrix.data.block import Codes
from separatrix.tables.columns import MOST_LEVELS
from separatrix.tables.encoding.encoding_sums import CategorySums, EncodingSums
from separatrix.tables.encoding.target_encoding import LevelScores, crossed, encoded, level_scores
from separatrix.tables.encoding.text_scores import RegressionPath, TextScores, learn_text
from separatrix.tables.rows import CodedText, TableRows
from separatrix.tables.schema import TableSchema

_ENOUGH_ROWS = 5
_INDICATOR_SCALE = 0.5


@dataclass(frozen=True)
class EncodedFeature:
    """One column of the matrix."""

    name: str  # what people read: "age", "age is missing", "sex = male"
    column: str  # of the table
    what: Literal["value", "missing", "level", "target", "text"]
    level: str = ""  # the category that is 1
    fill: float = 0.0  # the value of a hole
    centre: float = 0.0
    scale: float = 1.0
    place: int = 0  # of a target or a text the class that it speaks for, less one


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Numbers, holes and categories as a matrix of numbers, learnt from the training rows alone.

    Parameters
    ----------
    schema : TableSchema
        What the columns are.
    standardise : bool, default=True
        Give every feature mean 0, and numbers variance 1, over the training rows.
    min_count : int or "auto", default="auto"
        A category, and the mark of a hole, has a feature if it stands in so many training rows, and does not in as many.
        "auto" is 5, and n/20 where the rows are fewer than 100. A rare category is treated like the most frequent one, a rare
        hole like the median.

    Attributes
    ----------
    features_ : list of EncodedFeature
        The columns of the matrix: everything that `transform` needs.
    feature_names_, origin_ : list of str
        The name of every feature, and the column of the table it comes from.
    medians_ : dict of str to float
        What stands for a hole, by numeric and boolean column.
    centres_, scales_ : ndarray of shape (n_features,)
    levels_ : dict of str to list of str
        The categories that have a feature, by categorical column: all but the most frequent one, at most 50. A category
        never seen in training is treated like the most frequent one.
    targets_ : dict of str to dict of str to list of float
        What classes say of each category, by column that is encoded so (target_encoding.py): where `fit` is given classes.
    texts_ : dict of str to TextScores
        What words say, by column of free text (text_scores.py): where `fit` is given classes and a regression.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from separatrix.tables import TableEncoder, TableSchema
    >>> table = pa.table({"age": [30.0, None, 50.0], "sex": ["f", "m", "f"], "ill": [0, 1, 1]})
    >>> schema = TableSchema.infer(table, target="ill")
    >>> encoder = TableEncoder(schema, standardise=False)
    >>> encoder.fit_transform(schema.read(table))
    array([[30.,  0.,  0.],
           [40.,  1.,  1.],
           [50.,  0.,  0.]])
    >>> encoder.feature_names_
    ['age', 'age is missing', 'sex = m']
    """

    features_: list[EncodedFeature]
    feature_names_: list[str]
    origin_: list[str]
    medians_: dict[str, float]
    centres_: NDArray[np.float64]
    scales_: NDArray[np.float64]
    levels_: dict[str, list[str]]
    targets_: Mapping[str, LevelScores] = MappingProxyType(
        {}
    )  # this and the next two for encoders of older model files
    texts_: Mapping[str, TextScores] = MappingProxyType({})
    min_count: int | Literal["auto"] = "auto"

    def __init__(
        self, schema: TableSchema, *, standardise: bool = True, min_count: int | Literal["auto"] = "auto"
    ) -> None:
        self.schema = schema
        self.standardise = standardise
        self.min_count = min_count

    def fit(
        self,
        rows: TableRows,
        y: Codes | None = None,
        weights: NDArray[np.float64] | None = None,
        groups: Codes | None = None,
        regression: RegressionPath | None = None,
    ) -> Self:
        """Learn fills, levels, centres and scales.

        Parameters
        ----------
        rows : TableRows
        y : ndarray of int, optional
            Their classes, as places in those of the schema; without them columns of many categories have indicators.
        weights : ndarray, optional
            How often rows count for centres, scales and the classes of categories.
        groups : ndarray of int, optional
            Rows that belong together: none is encoded by the class of another.
        regression : callable, optional
            What learns from words; without it free text has no features.

        Returns
        -------
        self
        """
        self._fit(rows, y, weights, groups, regression)
        return self

    def fit_transform(
        self,
        X: TableRows,
        y: Codes | None = None,
        weights: NDArray[np.float64] | None = None,
        groups: Codes | None = None,
        regression: RegressionPath | None = None,
    ) -> NDArray[np.float64]:
        """Learn as `fit` does, and give the training rows as a model may learn from them: none is encoded by its own class."""
        own = self._fit(X, y, weights, groups, regression)
        return self._replaced(self._matrix(X), own)

    def _fit(
        self,
        rows: TableRows,
        y: Codes | None,
        weights: NDArray[np.float64] | None,
        groups: Codes | None,
        regression: RegressionPath | None,
    ) -> dict[str, NDArray[np.float64]]:
        """Learn, and give the targets of the rows, by column, each from the classes of others."""
        if not len(rows):
            raise ValueError("There are no rows to learn from; give at least one.")
        coded = {name: CodedText.of(x) if x.dtype == object else x for name, x in rows.columns.items()}
        k, own = len(self.schema.classes), dict[str, NDArray[np.float64]]()
        self.targets_, self.texts_ = {}, {}
        for column in self.schema.used if y is not None else ():
            text = coded.get(column.name)
            if column.encoding == "target" and isinstance(text, CodedText):
                assert y is not None
                self.targets_[column.name] = level_scores(text, y, k, weights)
                own[column.name] = crossed(text, y, k, weights, groups)
            if column.encoding == "text" and isinstance(text, CodedText) and regression is not None:
                assert y is not None
                found = learn_text(text, y, k, regression, weights, groups)
                self.texts_[column.name], own[column.name] = found
        sums = EncodingSums.of(TableRows(coded, rows.booleans, len(rows)))
        observed = {name: x[~np.isnan(x)] for name, x in coded.items() if not isinstance(x, CodedText)}
        self.learn(sums, {name: float(np.median(x)) for name, x in observed.items() if len(x)})
        if self.standardise and (own or weights is not None):
            matrix = self._replaced(self._matrix(rows), own)
            self._with(self._measured(matrix, weights))
        return own

    def _replaced(self, matrix: NDArray[np.float64], own: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The matrix with the targets of its rows that are given."""
        for j, feature in enumerate(self.features_):
            if feature.what in ("target", "text") and feature.column in own:
                matrix[:, j] = (own[feature.column][:, feature.place] - feature.centre) / feature.scale
        return matrix

    def _measured(self, matrix: NDArray[np.float64], weights: NDArray[np.float64] | None) -> list[EncodedFeature]:
        """The features with means and deviations of weighted rows; without weights only targets do not have them yet."""
        shares = np.full(len(matrix), 1.0 / len(matrix)) if weights is None else weights / weights.sum()
        means = shares @ matrix
        spreads = np.sqrt(shares @ (matrix - means) ** 2)
        indicators = [one.what in ("level", "missing") for one in self.features_]
        spreads[indicators | (matrix.min(axis=0) == matrix.max(axis=0))] = 1.0
        return [
            replace(one, centre=float(one.centre + one.scale * mean), scale=float(one.scale * spread))
            if weights is not None or one.what in ("target", "text")
            else one
            for one, mean, spread in zip(self.features_, means, spreads, strict=True)
        ]

    def learn(self, sums: EncodingSums, medians: Mapping[str, float] | None = None) -> Self:
        """Learn from sums over the rows of a table, and from medians where the sums only have them roughly.

        Parameters
        ----------
        sums : EncodingSums
        medians : dict of str to float, optional
            By column.

        Returns
        -------
        self
        """
        least = rare_below(sums.n) if self.min_count == "auto" else max(1, self.min_count)
        found = _distinct_names(self._found(sums, medians or {}, least))
        if not found and self.min_count == "auto":  # rare categories are better than nothing
            found = _distinct_names(self._found(sums, medians or {}, 1))
        return self._with(found)

    def only(self, kept: NDArray[np.bool_]) -> TableEncoder:
        """The same encoding with some of its features: where the mask (n_features,) is true."""
        part = copy(self)
        return part._with([feature for feature, own in zip(self.features_, kept, strict=True) if own])

    def _with(self, features: list[EncodedFeature]) -> Self:
        self.features_ = features
        self.feature_names_ = [feature.name for feature in self.features_]
        self.origin_ = [feature.column for feature in self.features_]
        self.centres_ = np.array([feature.centre for feature in self.features_])
        self.scales_ = np.array([feature.scale for feature in self.features_])
        return self

    def _found(self, sums: EncodingSums, medians: Mapping[str, float], least: int) -> Iterator[EncodedFeature]:
        self.medians_, self.levels_ = {}, {}
        marked = set()
        for column in self.schema.used:
            name, found = column.name, sums.columns[column.name]
            if isinstance(found, CategorySums):
                counts, scored = found.counts, name in self.targets_ or name in self.texts_
                for place in range(len(self.schema.classes) - 1) if scored else ():
                    toward = "" if len(self.schema.classes) == 2 else f" ({self.schema.classes[place + 1]})"
                    if name in self.texts_:
                        yield EncodedFeature(f"{name} by words{toward}", name, "text", place=place)
                    else:
                        yield EncodedFeature(f"{name} by target{toward}", name, "target", place=place)
                # The most frequent category, the first of those that tie, has no feature: it is what the others are against.
                order = sorted(counts, key=lambda level: (-counts[level], level))
                kept = [] if scored or column.encoding == "text" else order[1 : MOST_LEVELS + 1]
                self.levels_[name] = sorted(level for level in kept if least <= counts[level] <= sums.n - least)
                for level in self.levels_[name]:
                    feature = EncodedFeature(f"{name} = {level}", name, "level", level)
                    yield self._standardised(feature, counts[level] / sums.n, _INDICATOR_SCALE)
            else:
                fill = medians.get(name, found.quantiles.median()) if found.observed else 0.0
                self.medians_[name] = fill
                yield self._standardised(EncodedFeature(name, name, "value", fill=fill), *found.moments(fill))
            # Measurements that are always missing together need one mark: copies of it would add nothing to a model.
            rare = found.missing < least or 0 < sums.n - found.missing < least
            if not rare and found.holes not in marked:
                marked.add(found.holes)
                feature = EncodedFeature(f"{name} is missing", name, "missing")
                yield self._standardised(feature, found.missing / sums.n, _INDICATOR_SCALE)

    def _standardised(self, feature: EncodedFeature, centre: float, scale: float) -> EncodedFeature:
        return replace(feature, centre=centre, scale=scale) if self.standardise else feature

    def transform(self, rows: TableRows) -> NDArray[np.float64]:
        """The rows as a matrix of shape (n_rows, n_features), without NaN."""
        check_is_fitted(self, "features_")
        return self._matrix(rows)

    def _matrix(self, rows: TableRows) -> NDArray[np.float64]:
        matrix = np.empty((len(rows), len(self.features_)), order="F")
        categories: dict[str, dict[Any, int]] = {}
        targets: dict[str, NDArray[np.float64]] = {}
        ones = np.array([(1.0 - feature.centre) / feature.scale for feature in self.features_])
        for j, feature in enumerate(self.features_):
            values, column = rows.columns[feature.column], matrix[:, j]
            if feature.what in ("target", "text"):
                if feature.column not in targets:
                    text, classes, by_words = CodedText.of(values), len(self.schema.classes), self.texts_
                    targets[feature.column] = (
                        by_words[feature.column].of(text)
                        if feature.what == "text"
                        else encoded(text, self.targets_[feature.column], classes)
                    )
                column[:] = (targets[feature.column][:, feature.place] - feature.centre) / feature.scale
                continue
            if values.dtype == object:  # all the features of such a column are found at once, below
                categories.setdefault(feature.column, {})[feature.level if feature.what == "level" else None] = j
                column[:] = (0.0 - feature.centre) / feature.scale
                continue
            if feature.what == "value":
                np.copyto(column, values)
                column[np.isnan(column)] = feature.fill
            else:
                np.copyto(column, np.isnan(values))
            column -= feature.centre
            column /= feature.scale
        for name, places in categories.items():
            text = CodedText.of(rows.columns[name])
            found = np.array([places.get(level, -1) for level in [*text.levels, None]], dtype=np.intp)[text.places]
            at = np.flatnonzero(found >= 0)
            matrix[at, found[at]] = ones[found[at]]
        return matrix

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the features, as an array."""
        check_is_fitted(self, "features_")
        return np.asarray(self.feature_names_, dtype=object)


def rare_below(n: int) -> int:
    """How many of n rows a category, or the mark of a hole, needs to have a feature of its own."""
    return max(1, min(_ENOUGH_ROWS, n // 20))


def _distinct_names(features: Iterable[EncodedFeature]) -> list[EncodedFeature]:
    """The features, each with a name of its own: a column may be called like the category of another one."""
    taken: dict[str, EncodedFeature] = {}
    for feature in features:
        name = feature.name
        while name in taken:
            name += "*"
        taken[name] = replace(feature, name=name)
    return list(taken.values())
