"""Class means and pooled scatter of coded rows: sums of numbers and counts of categories, not products of zeros and ones.

    numbers x numbers          Σ s·vvᵀ − Σ_k n_k c_k c_kᵀ,     c_k = Σ s·v / n_k, about a guess of the mean of class k
    indicator a x numbers      Σ_{a} s·v − Σ_k n_ka c_k        n_ka the weight of the rows of class k where a is 1
    indicators a, b            n_ab − Σ_k n_ka n_kb / n_k

in units of the encoder's scales. A row of p numbers, q columns of categories costs p² + p·q + q² sums, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module

import numpy as np

from separatrix.data.block import Centred, Codes, Float
from separatrix.tables.coded.coded_rows import CodedRows, RowCoding

_PIECE = 4096
_SAMPLE = 256


class CodedCentred(Centred):
    """Rows of a table less their class means; what is not pooled is left to the features themselves (`dense`)."""

    def __init__(
        self,
        rows: CodedRows,
        coding: RowCoding,
        codes: Codes,
        n_classes: int,
        weights: Float | None,
        dense: Callable[[], Centred],
    ) -> None:
        self._rows, self._coding, self._codes, self.n_classes = rows, coding, codes, n_classes
        self._weights, self._dense = np.empty(0) if weights is None else weights, dense
        self.counts = np.bincount(codes, weights, n_classes).astype(np.float64, copy=False)
        self._size = np.where(self.counts > 0, self.counts, 1.0)[:, None]
        self._means: Float | None = None
        self._guess, seen = np.zeros((n_classes, len(coding.value_at))), np.zeros(n_classes, dtype=np.intp)
        kernels = import_module("separatrix.kernels.centring")  # numba takes a while to import
        step = max(1, len(codes) // _SAMPLE)
        sample = coding.scaled_numbers(rows.some_numbers(slice(None, None, step)))
        self.far_from_origin = kernels.guess_means(sample, codes[::step], 1, self._guess, seen)
        unseen = np.flatnonzero((self.counts > 0) & (seen == 0))
        if len(unseen):
            some_row = np.zeros(n_classes, dtype=np.intp)
            some_row[codes[::-1]] = np.arange(len(codes))[::-1]  # the first of every class is written last
            self._guess[unseen] = coding.scaled_numbers(rows.some_numbers(some_row[unseen]))

    @cached_property
    def _full(self) -> Centred:
        return self._dense()

    @property
    def mean_high(self) -> Float:  # type: ignore[override]  # known once the rows have been read
        """Class means."""
        return self._full.mean_high if self._means is None else self._means

    @property
    def mean_low(self) -> Float:  # type: ignore[override]  # as above
        """What rounding left of them; nothing near the origin."""
        return self._full.mean_low if self._means is None else np.zeros_like(self._means)

    def scatter(self) -> Float:
        from separatrix.kernels.coded_rows import add_coded_rows  # numba takes a while to import

        coding, p, d = self._coding, len(self._coding.value_at), self._coding.n_features
        centre, scale, at = coding.centre, coding.scale, coding.value_at
        sums, shares = np.zeros((self.n_classes, p)), np.zeros((self.n_classes, d))
        across, together, squares = np.zeros((d, p)), np.zeros((d, d)), np.zeros((p, p))
        scratch = np.empty((min(_PIECE, self._rows.n), p))
        for piece, numbers, places in self._rows.runs(_PIECE):
            out = scratch[: numbers.shape[1]]
            add_coded_rows(
                numbers,
                places,
                coding.hole_at,
                coding.fill,
                centre[at],
                scale[at],
                self._codes[piece],
                self._weights[piece],
                self._guess,
                sums,
                shares,
                across,
                together,
                out,
            )
            squares += np.dot(out.T, out)
        shift, share = sums / self._size, shares / self._size
        together += together.T - shares.T @ share
        np.fill_diagonal(together, (shares * (1.0 - share)).sum(axis=0))
        together /= np.outer(scale, scale)
        across = (across - shares.T @ shift) / scale[:, None]
        together[:, at], together[at] = across, across.T
        together[np.ix_(at, at)] = squares - shift.T @ sums
        means = (share - centre) / scale
        means[:, at] = self._guess + shift
        self._means = np.where(self.counts[:, None] > 0, means, 0.0)
        return together

    def scatter_of(self, k: int) -> Float:
        return self._full.scatter_of(k)

    def squares(self) -> Float:
        return self._full.squares()

    def rows(self) -> Float:
        return self._full.rows()

    def rows_of(self, k: int) -> Float:
        return self._full.rows_of(k)
