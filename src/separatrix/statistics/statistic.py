"""Statistics: sums over rows, from one pass, that models are algebra on.

    S(A) ⊕ S(B) = S(A ∪ B)        `merge`; any split of the rows, merged in any order, is the whole
    S(∅) ⊕ S(A) = S(A)            `empty` is the unit
    take(classes)                 the rows of some classes, which are called 0, 1, … in the order given
    regroup(groups, G)            the same rows where class k is called groups[k], of G groups

A row of weight s counts as s rows, sparse rows as the same rows dense. take(all classes) and regroup(0, 1, …, K−1) change
nothing; the rows of a group are those of its classes: regroup(groups).take([g]) = take(classes of g).regroup([0, …, 0]). So one
pass with K classes serves one class against the rest (`regroup`) and every pair of classes (`take`).

A statistic is made by `of_block` from the rows of one block, and by `of_source` from all of them, which is
source.reduce(of_block, merge) and a check that the sums are finite. Hyper-parameters are applied when it is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Self

import numpy as np

from separatrix.data.block import Codes, Float
from separatrix.data.source import Source


class Mergeable(ABC):
    """A sum over rows: a commutative monoid under `merge`."""

    __slots__ = ()

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Add another's rows to this, in place; the other is left as it is."""

    @abstractmethod
    def copy(self) -> Self:
        """The same statistic, which can be merged into without changing this one."""


class Statistic(Mergeable):
    """A sum over rows by class.

    Attributes
    ----------
    counts : ndarray of shape (K,)
        Weight of every class.
    """

    counts: Float

    @abstractmethod
    def take(self, classes: Codes) -> Self:
        """The statistic of the rows of some classes, in the order given."""

    @abstractmethod
    def regroup(self, groups: Codes, n_groups: int) -> Self:
        """The statistic of the same rows with class k in group groups[k], of `n_groups`; a group may be empty."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns d."""

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return len(self.counts)

    @property
    def total(self) -> float:
        """Weight of all rows, Σ n_k."""
        return float(self.counts.sum())

    def copy(self) -> Self:
        return self.take(np.arange(self.n_classes))


def number_of_classes(source: Source) -> int:
    """K of a labelled source."""
    assert source.classes is not None, "label the source first"
    return len(source.classes)


def weights_by_class(codes: Codes, weights: Float | None, n_classes: int) -> Float:
    """(K,) sums of weights, or numbers of rows, by class."""
    return np.bincount(codes, weights, minlength=n_classes).astype(np.float64, copy=False)


def summed(part: Float, groups: Codes, n_groups: int) -> Float:
    """Sums over the classes of every group, along the first axis."""
    total = np.zeros((n_groups, *part.shape[1:]))
    for k, group in enumerate(groups):
        total[group] += part[k]
    return total


def turns(groups: Codes) -> Iterator[tuple[Codes, Codes]]:
    """Classes and their groups, with no group twice: the first class of every group, then the second of each, …"""
    groups = np.asarray(groups)
    turn = np.array([np.count_nonzero(groups[:k] == group) for k, group in enumerate(groups)])
    for number in range(turn.max(initial=-1) + 1):
        classes = np.flatnonzero(turn == number)
        yield classes, groups[classes]
