"""Scores that are sums over columns, each with a term of its own; a missing value adds nothing.

    s_k = b_k + Σ_j t_jk(x_j)

    GaussianTerm   b_k − ½((x − m_k)/s_k)²
    TableTerm      the log of x's place in a table
    RateTerm       x log λ_k − λ_k
    GroupTerm      Σ_j x_j log(θ_kj/Σθ_k), both sums over the columns of the group that are observed

A term of −∞ makes a class impossible; a term, or a row, that is impossible in every class adds nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from separatrix.data.block import Float
from separatrix.geometry.score_form import LogPosteriors
from separatrix.tables.column_table import Column, ColumnTable

ColumnKind = Literal["number", "flag", "text"]


@dataclass(frozen=True)
class OneColumnTerm(ABC):
    """What a column adds to the scores."""

    column: str

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (self.column,)

    def contribution(self, columns: list[Column]) -> Float:
        """(n, K) what every row adds."""
        (column,) = columns
        with np.errstate(divide="ignore", invalid="ignore"):  # of rates 0, and of what is missing
            return np.where(column.observed[:, None], self._of(column.values), 0.0)

    @abstractmethod
    def _of(self, x: Any) -> Float:
        """(n, K) of the values; those that are missing may have anything."""


def gaussian_logs(x: Float, means: Float, scales: Float, constants: Float) -> Float:
    """(n, K) b_k − ½((x − m_k)/s_k)²; a value so far away that every square overflows counts as one nearer by."""
    limit = 1e150 * float(scales.min()) + float(np.abs(means).max())
    return constants - 0.5 * np.square((np.clip(x, -limit, limit)[:, None] - means) / scales)


@dataclass(frozen=True)
class GaussianTerm(OneColumnTerm):
    """b_k − ½((x − m_k)/s_k)²."""

    means: Float
    scales: Float
    constants: Float

    def _of(self, x: Any) -> Float:
        return gaussian_logs(x, self.means, self.scales, self.constants)


@dataclass(frozen=True)
class TableTerm(OneColumnTerm):
    """The (K,) row of `logs` of the value, or `other` for a value that is not among them."""

    values: list[Any]
    logs: Float
    other: Float

    def _of(self, x: Any) -> Float:
        place = {value: row for row, value in enumerate(self.values)}
        rows = [place.get(value, len(place)) for value in x.tolist()]
        return np.vstack([self.logs, self.other])[rows]


@dataclass(frozen=True)
class RateTerm(OneColumnTerm):
    """x log λ_k − λ_k."""

    rates: Float

    def _of(self, x: Any) -> Float:
        counts = x[:, None]
        return np.where(counts > 0, counts * np.log(self.rates), 0.0) - self.rates


@dataclass(frozen=True)
class GroupTerm:
    """Σ_j x_j log(θ_kj/Σθ_k), both sums over the columns of the group that are observed: (K, m) shares."""

    columns: tuple[str, ...]
    shares: Float

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.columns

    def of_columns(self, columns: list[Column]) -> Float:
        """(n, m, K) what every row and column adds."""
        x = np.column_stack([column.values for column in columns])
        observed = ~np.isnan(x)
        counts = np.where(observed, x, 0.0)[:, :, None]
        with np.errstate(divide="ignore", invalid="ignore"):  # shares of 0
            left = np.log(observed.astype(np.float64) @ self.shares.T)[:, None, :]
            logs = np.where(counts > 0, counts * (np.log(self.shares.T) - left), 0.0)
        logs[np.isneginf(logs).all(axis=2)] = 0.0
        return logs

    def contribution(self, columns: list[Column]) -> Float:
        """(n, K) what every row adds."""
        return self.of_columns(columns).sum(axis=1)


Term = GaussianTerm | TableTerm | RateTerm | GroupTerm


@dataclass(frozen=True)
class Additive(LogPosteriors):
    """b_k and the terms of the columns; `columns` has all names in the order of X, and how each is read."""

    terms: list[Term]
    constants: Float
    columns: Mapping[str, ColumnKind]

    def scores(self, X: Any) -> Float:
        table = ColumnTable(X.toarray() if hasattr(X, "toarray") else X, None, None)
        named = dict(zip(self.columns, table.columns, strict=True))
        total = np.zeros((table.n_rows, len(self.constants)))
        for term in self.terms:
            added = term.contribution([named[name] for name in term.names])
            added[np.isneginf(added).all(axis=1)] = 0.0
            total += added
        total[np.isneginf(total).all(axis=1)] = 0.0
        return total + self.constants
