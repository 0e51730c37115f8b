"""The families a column can have in a mixed naive Bayes: what they accept, what they count, what a value is worth.

    gaussian      log p(x|k) = −½ log 2πσ² − (x−μ)²/2σ²
    bernoulli     θ_k = (N_k + α)/(n_k + 2α)
    categorical   θ_kc = (N_kc + α)/(n_k + αC);  a value never seen: α/(n_k + αC), or no evidence when α = 0
    poisson       λ_k = (Σx + αλ)/(n_k + α),  λ the mean of the column: α rows of it in every class
    multinomial   Σ_j x_j log θ_kj over a group of columns, θ renormalised over those observed

A missing value is left out: it contributes 0 to every class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.special import gammaln

from separatrix.data.block import Codes, Float
from separatrix.geometry.additive_form import GaussianTerm, GroupTerm, RateTerm, TableTerm, Term, gaussian_logs
from separatrix.lazy import compiled_pays
from separatrix.statistics.columns import ColumnMoments, ValueCounts
from separatrix.statistics.counts import ClassCounts
from separatrix.tables.column_table import Column
from separatrix.tables.rows import CodedText

ColumnStatistic = ColumnMoments | ClassCounts | ValueCounts
# Values worth a compiled loop, and seconds that it saves on each.
_MANY, _SAVED = 1 << 14, 3e-8
FAMILIES = ("gaussian", "bernoulli", "categorical", "poisson", "multinomial")


class ColumnFamily(str):
    """The name of a family, with the reason why a column has it."""

    reason: str

    def __new__(cls, name: str, reason: str) -> ColumnFamily:
        family = super().__new__(cls, name)
        family.reason = reason
        return family

    def __reduce__(self) -> Any:
        return ColumnFamily, (str(self), self.reason)


def infer_family(column: Column) -> ColumnFamily:
    """By the type of the column; 0 and 1 as whole numbers are flags."""
    if column.kind == "boolean":
        return ColumnFamily("bernoulli", "it holds booleans")
    if column.kind == "text":
        return ColumnFamily("categorical", "it holds text or categories")
    if column.kind == "integer" and np.isin(column.values[column.observed], (0.0, 1.0)).all():
        return ColumnFamily("bernoulli", "it holds only the whole numbers 0 and 1")
    return ColumnFamily("gaussian", f"it holds {'whole' if column.kind == 'integer' else 'real'} numbers")


def check_column(column: Column, family: str) -> None:
    """Refuse values the family cannot have, naming the column."""
    if family == "categorical":
        return
    if family == "gaussian" and column.kind != "text":
        with np.errstate(invalid="ignore", over="ignore"):
            # Most columns are without holes: their sum tells in one reading.
            if np.isfinite(column.values.sum()) or not np.isinf(column.values).any():
                return
    values, counts = column.values[column.observed], family in ("poisson", "multinomial")
    if column.kind == "text":
        text = next(iter(values), None)
        why = f"holds text such as {text!r}, but its family is {family!r}, which needs numbers; use 'categorical'."
    elif np.isinf(values).any():
        why = f"contains infinity in {int(np.isinf(values).sum())} rows; only what is missing is left out."
    elif family == "bernoulli" and not np.isin(values, (0.0, 1.0)).all():
        why = "holds values other than 0 and 1, but its family is 'bernoulli'; use 'categorical'."
    elif counts and (values < 0).any():
        why = f"holds negative numbers, but its family is {family!r}, which counts; use 'gaussian'."
    elif counts and (values != np.floor(values)).any():
        why = f"holds numbers that are not whole, but its family is {family!r}; use 'gaussian'."
    else:
        return
    raise ValueError(f"{column} {why}")


def count(family: str, columns: list[Column], codes: Codes, weights: Float, n_classes: int) -> ColumnStatistic:
    """The statistic of a column, or of a multinomial group."""
    if family == "multinomial":
        values = np.column_stack([np.nan_to_num(column.values, nan=0.0) for column in columns])
        return ClassCounts.of_columns(values, codes, weights, n_classes)
    (column,) = columns
    if family == "gaussian" and len(codes) >= _MANY and compiled_pays(_SAVED * len(codes)):
        return ColumnMoments.of_run(column.values, codes, weights, n_classes)
    if family == "categorical" and isinstance(column.values, CodedText):
        return ValueCounts.of_places(column.values.levels, column.values.places, codes, weights, n_classes)
    observed = column.observed
    if family == "categorical":
        return ValueCounts.of_levels(*column.levels(), codes[observed], weights[observed], n_classes)
    values, codes, weights = column.values[observed], codes[observed], weights[observed]
    if family == "gaussian":
        return ColumnMoments.of_columns(values, codes, weights, n_classes)
    return ClassCounts.of_columns(values[:, None], codes, weights, n_classes)


class ColumnReader(ABC):
    """A column, or a group of m columns, under a family."""

    @abstractmethod
    def log_prob(self, columns: list[Column]) -> Float:
        """(n, m, K) log p(x | k) of every row and column."""

    @abstractmethod
    def term(self, columns: list[str]) -> Term:
        """What the columns add to the scores."""

    @abstractmethod
    def draw(self, codes: Codes, rng: Any) -> Any:
        """(n,) or (n, m) values, one row for every class code."""


class GaussianReader(ColumnReader):
    """Means and variances of a column; a class without observed values has the column's own."""

    def __init__(self, moments: ColumnMoments, floor: float) -> None:
        mean, variance = moments.overall()
        known = moments.counts > 0
        self.mean = np.where(known, moments.mean, mean)
        self.variance = np.where(known, moments.square / np.where(known, moments.counts, 1.0), variance) + floor

    def log_prob(self, columns: list[Column]) -> Float:
        values = columns[0].values
        constants = -0.5 * np.log(2.0 * np.pi * self.variance)
        logs = gaussian_logs(values, self.mean, np.sqrt(self.variance), constants)
        return np.where(np.isnan(values)[:, None], 0.0, logs)[:, None, :]

    def term(self, columns: list[str]) -> GaussianTerm:
        constants = -0.5 * np.log(2.0 * np.pi * self.variance)
        return GaussianTerm(columns[0], self.mean, np.sqrt(self.variance), constants)

    def draw(self, codes: Codes, rng: Any) -> Any:
        return self.mean[codes] + np.sqrt(self.variance[codes]) * rng.standard_normal(len(codes))


class BernoulliReader(ColumnReader):
    """Probability of a one."""

    def __init__(self, counts: ClassCounts, alpha: float) -> None:
        size = counts.counts + 2.0 * alpha
        self.rate = np.where(size > 0, (counts.sums[:, 0] + alpha) / np.where(size > 0, size, 1.0), 0.5)

    def log_prob(self, columns: list[Column]) -> Float:
        values = columns[0].values[:, None]
        with np.errstate(divide="ignore"):  # α = 0: what a class never had is impossible in it
            logs = np.where(values == 1.0, np.log(self.rate), np.log1p(-self.rate))
        logs[np.isneginf(logs).all(axis=1)] = 0.0
        return np.where(np.isnan(values), 0.0, logs)[:, None, :]

    def term(self, columns: list[str]) -> TableTerm:
        with np.errstate(divide="ignore"):  # α = 0: what a class never had is impossible in it
            logs = np.stack([np.log1p(-self.rate), np.log(self.rate)])
        return TableTerm(columns[0], [0, 1], logs, np.zeros(len(self.rate)))

    def draw(self, codes: Codes, rng: Any) -> Any:
        return (rng.random_sample(len(codes)) < self.rate[codes]).astype(float)


class CategoricalReader(ColumnReader):
    """Probabilities of the values seen, and of one never seen."""

    def __init__(self, table: ValueCounts, alpha: float) -> None:
        self.values = sorted(table.by_value)
        counts = np.stack([table.by_value[value] for value in self.values])
        size = table.counts + alpha * len(self.values)
        with np.errstate(divide="ignore"):  # α = 0: what a class never had is impossible in it
            logs = np.log((counts + alpha) / np.where(size > 0, size, 1.0))
            unseen = np.log(alpha / np.where(size > 0, size, 1.0)) if alpha > 0 else np.zeros(len(size))
        logs[:, (size == 0)] = 0.0
        self.logs = np.vstack([logs, unseen])
        self.place = {value: row for row, value in enumerate(self.values)}

    def log_prob(self, columns: list[Column]) -> Float:
        (column,) = columns
        observed = column.observed
        levels, inverse = column.levels()
        rows = np.array([self.place.get(value, len(self.values)) for value in levels], dtype=np.intp)
        logs = np.zeros((len(observed), self.logs.shape[1]))
        logs[observed] = self.logs[rows[inverse]] if len(rows) else 0.0
        return logs[:, None, :]

    def term(self, columns: list[str]) -> TableTerm:
        values = [value.item() if isinstance(value, np.generic) else value for value in self.values]
        return TableTerm(columns[0], values, self.logs[:-1], self.logs[-1])

    def draw(self, codes: Codes, rng: Any) -> Any:
        cumulative = np.cumsum(np.exp(self.logs[:-1]), axis=0).T[codes]
        at = (rng.random_sample(len(codes))[:, None] * cumulative[:, -1:] >= cumulative).sum(axis=1)
        return np.array(self.values, dtype=object)[np.minimum(at, len(self.values) - 1)]


class PoissonReader(ColumnReader):
    """Rates."""

    def __init__(self, counts: ClassCounts, alpha: float) -> None:
        overall = float(counts.sums.sum() / counts.counts.sum())
        size = counts.counts + alpha
        self.rate = np.where(size > 0, (counts.sums[:, 0] + alpha * overall) / np.where(size > 0, size, 1.0), overall)

    def log_prob(self, columns: list[Column]) -> Float:
        values = columns[0].values[:, None]
        counted = np.nan_to_num(values, nan=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):  # rate 0: only 0 is possible
            logs = np.where(counted > 0, counted * np.log(self.rate), 0.0) - self.rate - gammaln(counted + 1.0)
        logs[np.isneginf(logs).all(axis=1)] = 0.0
        return np.where(np.isnan(values), 0.0, logs)[:, None, :]

    def term(self, columns: list[str]) -> RateTerm:
        return RateTerm(columns[0], self.rate)

    def draw(self, codes: Codes, rng: Any) -> Any:
        return rng.poisson(self.rate[codes]).astype(float)


class MultinomialReader(ColumnReader):
    """Shares of the columns of a group."""

    def __init__(self, counts: ClassCounts, alpha: float) -> None:
        smoothed = counts.sums + alpha
        totals = smoothed.sum(axis=1, keepdims=True)
        self.share = np.where(totals > 0, smoothed / np.where(totals > 0, totals, 1.0), 1.0 / smoothed.shape[1])
        self.length = counts.sums.sum(axis=1) / np.where(counts.counts > 0, counts.counts, 1.0)

    def log_prob(self, columns: list[Column]) -> Float:
        return self.term([]).of_columns(columns)

    def term(self, columns: list[str]) -> GroupTerm:
        return GroupTerm(tuple(columns), self.share)

    def draw(self, codes: Codes, rng: Any) -> Any:
        lengths = np.rint(self.length).astype(int)
        return np.stack([rng.multinomial(lengths[k], self.share[k]) for k in codes]).astype(float)


COUNT_READERS: dict[str, Any] = {
    "bernoulli": BernoulliReader,
    "categorical": CategoricalReader,
    "poisson": PoissonReader,
    "multinomial": MultinomialReader,
}
"""Readers that are made of a statistic and α."""
