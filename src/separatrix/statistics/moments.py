"""Class moments: counts, means and centred scatter of every class, from one pass, merged exactly.

    n_k = Σ sᵢ,   m_k = Σ sᵢxᵢ / n_k,   S_k = Σ sᵢ (xᵢ−m_k)(xᵢ−m_k)ᵀ        (sums over the rows of class k)
    merge:  S = S_a + S_b + (n_a n_b / n) δδᵀ,   m = m_a + (n_b/n) δ,   δ = m_b − m_a

Reference: Chan, Golub, LeVeque (1983), The American Statistician 37, eq. 2.1. Means are kept as high + low so that
δ has full relative accuracy for rows far from the origin (see data/block.py). No Σxxᵀ − n·mmᵀ is ever formed.

Discriminants, least-squares classifiers and Gaussian naive Bayes are algebra on this statistic; shrinkage,
priors, divisors and penalties are applied when it is read.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from separatrix.data.block import Block, Codes, Float
from separatrix.data.source import Source, rows_to_multiply
from separatrix.statistics.scatter import Scatter, combine
from separatrix.statistics.statistic import Statistic, number_of_classes, turns

# Values below this have no square in double precision.
_NO_SQUARE = float(np.sqrt(np.finfo(np.float64).tiny))

Form = Literal["pooled", "per_class", "diagonal"]
Divisor = Literal["mle", "unbiased"]
# A column that deviates from its mean by no more than this share of it is constant: the rest is rounding.
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


class ClassMoments(Statistic):
    """Moments of the classes.

    Parameters
    ----------
    counts : ndarray of shape (K,)
    mean_high, mean_low : ndarray of shape (K, d)
    scatters : list of Scatter
        One (pooled), K (per class), or none (diagonal).
    squares : ndarray of shape (K, d) or None
        Diagonals of the class scatters, in the diagonal form only.
    """

    _flat = False  # whether constant columns are zero in the scatters

    def __init__(
        self,
        form: Form,
        counts: Float,
        mean_high: Float,
        mean_low: Float,
        scatters: list[Scatter],
        squares: Float | None = None,
    ) -> None:
        self.form, self.counts = form, counts
        self._high, self._low = mean_high, mean_low
        self._scatters, self._squares = scatters, squares

    # -- building -------------------------------------------------------------------------------------------------

    @classmethod
    def empty(cls, n_classes: int, n_features: int, form: Form = "pooled") -> ClassMoments:
        """The moments of no rows."""
        zeros = np.zeros((n_classes, n_features))
        parts = {"pooled": 1, "per_class": n_classes, "diagonal": 0}[form]
        scatters = [Scatter.empty(n_features) for _ in range(parts)]
        squares = zeros.copy() if form == "diagonal" else None
        return cls(form, np.zeros(n_classes), zeros, zeros.copy(), scatters, squares)

    @classmethod
    def of_block(cls, block: Block, n_classes: int, form: Form = "pooled", wide: bool = False) -> ClassMoments:
        """The moments of one block; `wide` data (fewer rows than columns) keep the rows."""
        centred = block.centre_classes(n_classes)
        scatters: list[Scatter] = []
        squares = None
        if form == "diagonal":
            squares = centred.squares()
        elif form == "pooled":
            keep_rows = wide and block.n < block.shape[1]
            scatters = [Scatter(rows=centred.rows()) if keep_rows else Scatter(matrix=centred.scatter())]
        else:
            for k, length in enumerate(block.class_rows(n_classes)):
                # A class with few rows in the block is cheaper to carry as rows than as a d×d matrix.
                if length < block.shape[1]:
                    scatters.append(Scatter(rows=centred.rows_of(k).copy()))
                else:
                    scatters.append(Scatter(matrix=centred.scatter_of(k)))
        return cls(form, centred.counts, centred.mean_high, centred.mean_low, scatters, squares)

    @classmethod
    def of_source(cls, source: Source, form: Form = "pooled") -> ClassMoments:
        """One pass over a labelled source."""
        n_classes = number_of_classes(source)
        wide = source.n_rows is None or source.n_rows < source.n_features
        shared = form == "pooled" and source.n_rows is not None and source.entries is None and not wide
        rows = rows_to_multiply(source.n_rows or 1, source.n_features) if shared else None
        moments = source.reduce(lambda block: cls.of_block(block, n_classes, form, wide), cls.merge, rows)
        moments.check(source)
        return moments

    def check(self, source: Source) -> None:
        """Refuse NaN, infinity, overflow and underflow, naming the column; refuse data whose weights are all zero."""
        if self.form == "pooled":
            spread = self.pooled().diagonal()[None]
        else:
            spread = self.variances() if self.form == "diagonal" else self._class_diagonals().sum(axis=0)[None]
        source.check_finite(self._high, spread)
        if not spread.all():
            tiny = (self._high != 0.0) & (np.abs(self._high) < _NO_SQUARE) & (spread == 0.0)
            if tiny.any():  # the squares of such values are zero in double precision, whatever they are
                raise ValueError(source.explain_range())
        if not self.counts.any():
            raise ValueError("The total weight of the rows is zero, so nothing can be learned; give positive weights.")

    def merge(self, other: ClassMoments) -> ClassMoments:
        before, added = self.counts, other.counts
        after, self._flat = before + added, False
        share = np.divide(added, after, out=np.zeros_like(after), where=after > 0)[:, None]
        with np.errstate(invalid="ignore", over="ignore"):  # NaN and inf are found by `check`, and named
            gap = (other._high - self._high) + (other._low - self._low)
            self._low = self._low + gap * share
            fresh = (before == 0) & (added > 0)
            if fresh.any():
                self._high = np.where(fresh[:, None], other._high, self._high)
                self._low = np.where(fresh[:, None], other._low, self._low)
            moved = (before > 0) & (added > 0)
            if not moved.all():
                gap[~moved] = 0.0
            rows = np.sqrt(before[:, None] * share) * gap
            if self.form == "diagonal":
                assert self._squares is not None and other._squares is not None
                self._squares = self._squares + other._squares + np.square(rows)
            elif self.form == "pooled":
                self._scatters[0].merge(other._scatters[0])
                self._scatters[0].add_rows(rows[moved])
            else:
                for k in np.flatnonzero(added):
                    self._scatters[k].merge(other._scatters[k])
                for k in np.flatnonzero(moved):
                    self._scatters[k].add_rows(rows[k : k + 1])
        self.counts = after
        return self

    def take(self, classes: Codes) -> ClassMoments:
        """The moments of some classes; pooled moments, whose scatter is of all classes together, cannot leave one out."""
        if self.form == "pooled" and len(np.setdiff1d(np.flatnonzero(self.counts), classes)):
            raise ValueError("Pooled moments have one scatter for all classes; take classes from the per_class form.")
        scatters = self._scatters if self.form == "pooled" else [self._scatters[k] for k in classes if self._scatters]
        squares = None if self._squares is None else self._squares[classes]
        copies = [scatter.copy() for scatter in scatters]
        return ClassMoments(self.form, self.counts[classes], self._high[classes], self._low[classes], copies, squares)

    def regroup(self, groups: Codes, n_groups: int) -> ClassMoments:
        """The moments of groups of classes, merged by the formula that merges blocks."""
        total = ClassMoments.empty(n_groups, self.n_features, self.form)
        for classes, places in turns(groups):
            part = ClassMoments.empty(n_groups, self.n_features, self.form)
            part.counts[places] = self.counts[classes]
            part._high[places], part._low[places] = self._high[classes], self._low[classes]
            if self._squares is not None and part._squares is not None:
                part._squares[places] = self._squares[classes]
            elif self.form == "per_class":
                for k, place in zip(classes, places, strict=True):
                    part._scatters[place] = self._scatters[k]
            total.merge(part)
        if self.form == "pooled":  # within classes; what the means of a group add to it was merged above
            total._scatters[0].merge(self._scatters[0])
        return total

    def in_form(self, form: Form) -> ClassMoments:
        """These moments, or those with one scatter for all classes made of them."""
        if form == self.form:
            return self
        if (self.form, form) != ("per_class", "pooled"):
            raise ValueError(f"Moments of the form {self.form!r} cannot be read in the form {form!r}.")
        return ClassMoments("pooled", self.counts, self._high, self._low, [self.pooled()])

    # -- reading --------------------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        return int(self._high.shape[1])

    @property
    def means(self) -> Float:
        """(K, d) class means."""
        return self._high + self._low

    def mean(self) -> Float:
        """The mean of all rows."""
        return self.counts @ self.means / self.total

    def offsets(self) -> Float:
        """(K, d) class means less the mean of all rows, to full relative accuracy; 0 for classes without rows."""
        reference = int(np.argmax(self.counts))
        relative = (self._high - self._high[reference]) + (self._low - self._low[reference])
        relative[self.counts == 0] = 0.0
        return np.where((self.counts > 0)[:, None], relative - self.counts @ relative / self.total, 0.0)

    def pooled(self) -> Scatter:
        """Within-class scatter Σ_k S_k."""
        if self.form == "pooled":
            if not self._flat:
                largest = np.abs(self.means).max(axis=0, initial=0.0)
                self._scatters[0].flatten(rounding_scatter(self.total, largest))
                self._flat = True
            return self._scatters[0]
        assert self.form == "per_class", "the diagonal form has no scatter matrices"
        return combine(((1.0, self.of_class(k)) for k in range(self.n_classes)), self.n_features)

    def of_class(self, k: int) -> Scatter:
        """Scatter S_k of one class."""
        assert self.form == "per_class", "only the per-class form has one scatter per class"
        if not self._flat:
            self._class_diagonals()
        return self._scatters[k]

    def _class_diagonals(self) -> Float:
        """(K, d) diagonals of the class scatters, in which constant columns are made zero first."""
        diagonals = np.stack([scatter.diagonal() for scatter in self._scatters])
        if not self._flat:  # all classes at once: for each alone it would take longer than a small fit's algebra
            limits = rounding_scatter(self.counts[:, None], self.means)
            for k in np.flatnonzero((diagonals <= limits).any(axis=1)):
                self._scatters[k].flatten(limits[k])
                diagonals[k] = self._scatters[k].diagonal()
            self._flat = True
        return diagonals

    def variances(self, divisor: Divisor = "mle") -> Float:
        """(K, d) variance of every feature in every class."""
        squares = self._squares
        if squares is None:
            squares = self._class_diagonals()
        else:
            flat = (squares <= rounding_scatter(self.counts[:, None], self.means)) & np.isfinite(squares)
            squares = np.where(flat, 0.0, squares)
        size = self.counts if divisor == "mle" else self.counts - 1.0
        return squares / np.where(size > 0, size, 1.0)[:, None]

    def class_divisor(self, k: int, divisor: Divisor) -> float:
        """What S_k is divided by to become a covariance."""
        return float(self.counts[k]) - (divisor == "unbiased")

    def pooled_divisor(self, divisor: Divisor) -> float:
        """What the pooled scatter is divided by to become a covariance."""
        return self.total - (int((self.counts > 0).sum()) if divisor == "unbiased" else 0)

    def between_rows(self) -> Float:
        """(K, d) rows √n_k (m_k − m): their scatter is the between-class scatter."""
        return np.sqrt(self.counts)[:, None] * self.offsets()

    def total_scatter(self) -> Scatter:
        """Scatter of all rows about their common mean: within + between."""
        total = combine([(1.0, self.pooled())], self.n_features)
        total.add_rows(self.between_rows())
        return total


def rounding_scatter(count: Any, means: Float) -> Float:
    """The scatter that rounding alone leaves in a constant column."""
    with np.errstate(over="ignore"):  # means beyond 1e154: the overflow of the squares is reported elsewhere
        return count * np.square(_ROUNDING * means)
