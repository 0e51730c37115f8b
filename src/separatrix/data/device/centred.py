"""Class means and second moments of rows on a device.

    scatter within classes = Σ s(x − g)(x − g)ᵀ − Σ_k n_k (m_k − g)(m_k − g)ᵀ          g near the mean of all rows
    squares of class k     = Σ s(x − g_k)² − (Σ s(x − g_k))²/n_k                        g_k a guess of its mean

Rows of single precision are summed about guesses by one compiled pass where it is there; otherwise a run of rows at a time in
double precision, by PyTorch's operations. The scatter of many rows without weights is made by halves (kernels/device/halves.py)
where the columns are far enough from being dependent that their digits suffice: an error E of the correlations R moves what is
solved with them by at most ‖R⁻¹‖‖E‖, and E is some 2⁻²² of what was added.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import lapack

from separatrix.data.block import Centred, Float
from separatrix.data.device.tensors import host, powers_of_two, pytorch
from separatrix.kernels.device import class_sums, guesses, moments
from separatrix.kernels.device.torch_losses import runs
from separatrix.settings import one_blas_thread

if TYPE_CHECKING:
    from separatrix.data.device.block import DeviceBlock

# Rows that give guesses of the class means; rows that follow each other which show whether the columns are dependent, from a
# boundary that the copy engine can read from.
_GUESSED, _LOOKED_AT, _ALIGNED = 8192, 8192, 64
# Numbers from which on sums by halves pay, and the largest ‖R⁻¹‖ with which their digits do: 3e-7 of it is 6e-6.
_MANY, _INDEPENDENT = 1 << 27, 20.0


class DeviceCentred(Centred):
    """Moments about guesses, read once; rows themselves only where they are asked for."""

    def __init__(self, block: DeviceBlock, codes: Any, n_classes: int) -> None:
        self._block, self._codes, self.n_classes = block, codes, n_classes
        self._weights = block.device_weights()

    def _membership(self, at: slice) -> Any:
        """(n, K) the weight of each row in the column of its class."""
        share = pytorch().nn.functional.one_hot(self._codes[at].long(), self.n_classes).double()
        return share if self._weights is None else share * self._weights[at][:, None]

    @cached_property
    def _looked(self) -> tuple[Float, Float, Float]:
        """(K, d) class means of some rows, (d,) the mean of them and their variance within classes: guesses to begin from."""
        X, torch = self._block.X, pytorch()
        if self._block.whole_rows() and guesses.fits(X, self._codes, self.n_classes):
            means, overall, within = guesses.class_guesses(X, self._codes, self.n_classes)
        else:
            step = max(1, self._block.n // _GUESSED)
            rows, codes = self._block.doubles(slice(None, None, step)), self._codes[::step].long()
            share = torch.nn.functional.one_hot(codes, self.n_classes).double()
            found = share.T @ rows / share.sum(dim=0)[:, None]
            apart = torch.square(rows - found[codes]).mean(dim=0)
            means, overall, within = (host(part) for part in (found, rows.mean(dim=0), apart))
        overall = np.where(np.isfinite(overall), overall, 0.0)
        means = np.where(np.isfinite(means), means, overall)
        if X.element_size() == 4:  # as the compiled passes take them
            means, overall = (part.astype(np.float32).astype(np.float64) for part in (means, overall))
        return means, overall, within

    @cached_property
    def _guess(self) -> Any:
        """(K, d) guesses of the class means as a tensor."""
        return self._block.on_device(self._looked[0])

    @cached_property
    def _scattered(self) -> tuple[Float, Float, Float, Float] | None:
        """(K,) n_k, (K, d) Σ s(x − g_k), (d, d) scatter within classes and g, by halves; ``None`` with too few digits."""
        block, n_classes, X = self._block, self.n_classes, self._block.X
        many = self._weights is None and block.whole_rows() and block.n * block.shape[1] >= _MANY
        if not (many and moments.fits(X, self._codes, n_classes)):
            return None
        means, overall, within = self._looked
        units = powers_of_two(np.sqrt(within))
        if units is None:
            return None
        # Means that are within a spread of each other need no centre each: the pass is quicker about one.
        apart = bool((np.abs(means - overall) * units > 1.0).any())
        guess = means if apart else overall[None]
        middle = slice(begin := block.n // 2 // _ALIGNED * _ALIGNED, min(begin + _LOOKED_AT, block.n))
        looked = moments.moment_sums(X[middle], self._codes[middle], guess, units, n_classes)
        summed = moments.moment_sums(X, self._codes, guess, units, n_classes)  # which takes longer than the look
        _, products = looked()
        if _inverse_norm(_correlations(products, products)) > _INDEPENDENT:
            return None
        first, products = summed()
        counts = block.class_rows(n_classes).astype(np.float64)
        scatter = products - (first / np.maximum(counts, 1.0)[:, None]).T @ first
        if _inverse_norm(_correlations(scatter, products)) > 2.0 * _INDEPENDENT:
            return None
        return counts, first / units, scatter / np.outer(units, units), np.broadcast_to(guess, means.shape)

    @cached_property
    def _sums(self) -> tuple[Float, Float, Float]:
        """(K,) n_k, (K, d) Σ s(x − g_k) and Σ s(x − g_k)²: one reading."""
        block, torch = self._block, pytorch()
        if block.whole_rows() and class_sums.fits(block.shape[1], self.n_classes) and self._codes.element_size() == 1:
            return class_sums.class_sums(block.X, self._codes, self._weights, self._guess, self.n_classes)
        place = {"dtype": torch.float64, "device": block.X.device}
        shape = (self.n_classes, block.shape[1])
        counts, first, second = (
            torch.zeros(self.n_classes, **place),
            torch.zeros(shape, **place),
            torch.zeros(shape, **place),
        )
        for at in runs(*block.shape):
            share = self._membership(at)
            rows = block.doubles(at) - self._guess[self._codes[at].long()]
            rows = torch.where(share.sum(dim=1, keepdim=True) > 0, rows, torch.zeros_like(rows))
            counts += share.sum(dim=0)
            first += share.T @ rows
            second += share.T @ torch.square(rows)
        return counts.cpu().numpy(), first.cpu().numpy(), second.cpu().numpy()

    @property
    def _first(self) -> tuple[Float, Float]:
        """(K,) n_k and (K, d) Σ s(x − g_k), of the reading that made the scatter if there was one."""
        found = self.__dict__.get("_scattered") or self._sums
        return found[0], found[1]

    @property
    def _centres(self) -> Float:
        """(K, d) what was subtracted from rows in that reading."""
        found = self.__dict__.get("_scattered")
        return self._looked[0] if found is None else found[3]

    @property
    def _size(self) -> Float:
        counts = self._first[0]
        return np.where(counts > 0, counts, 1.0)[:, None]

    @property
    def counts(self) -> Float:  # type: ignore[override]  # known once the rows have been read
        """(K,) total weight of each class."""
        return self._first[0]

    @property
    def mean_high(self) -> Float:  # type: ignore[override]  # as above
        """(K, d) guesses of the class means."""
        return np.where(self._first[0][:, None] > 0, self._centres, 0.0)

    @property
    def mean_low(self) -> Float:  # type: ignore[override]  # as above
        """(K, d) what is missing of them."""
        return self._first[1] / self._size

    def squares(self) -> Float:
        _, first, second = self._sums
        return np.maximum(second - np.square(first) / self._size, 0.0)

    def _product(self, chosen: int | None, centre: Float) -> Float:
        """Σ s(x − centre)(x − centre)ᵀ over the rows of a class, or of all."""
        torch, block = pytorch(), self._block
        quick = block.about(centre, lambda: self._weights_of(chosen), self._weights is not None)
        if quick is not None:
            return quick
        d = block.shape[1]
        total, about = torch.zeros((d, d), dtype=torch.float64, device=block.X.device), block.on_device(centre)
        for at in runs(*block.shape):
            rows = block.doubles(at) - about
            weights = None if self._weights is None else self._weights[at]
            if chosen is not None:
                own = self._codes[at] == chosen
                rows, weights = rows[own], None if weights is None else weights[own]
            if weights is not None:
                rows = torch.where(weights[:, None] > 0, rows * weights.sqrt()[:, None], torch.zeros_like(rows))
            total += rows.T @ rows
        result: Float = total.cpu().numpy()
        return result

    def _weights_of(self, chosen: int | None) -> Any:
        """(n,) weights, zero for the rows of other classes than the chosen one; None where all are one."""
        if chosen is None:
            return self._weights
        own = (self._codes == chosen).double()
        return own if self._weights is None else own * self._weights

    def scatter(self) -> Float:
        if self._scattered is not None:
            return self._scattered[2]
        means = self.mean_high + self.mean_low
        centre = self.counts @ means / max(float(self.counts.sum()), np.finfo(np.float64).tiny)
        apart = (self.mean_high - centre) + self.mean_low
        return self._product(None, centre) - (apart * self.counts[:, None]).T @ apart

    def scatter_of(self, k: int) -> Float:
        return self._product(k, self.mean_high[k] + self.mean_low[k])

    def rows(self) -> Float:
        return np.concatenate([self.rows_of(k) for k in range(self.n_classes)])

    def rows_of(self, k: int) -> Float:
        torch, own = pytorch(), self._codes == k
        rows = (
            self._block.doubles(own)
            - self._block.on_device(self.mean_high[k])
            - self._block.on_device(self.mean_low[k])
        )
        if self._weights is not None:
            weights = self._weights[own]
            rows = torch.where(weights[:, None] > 0, rows * weights.sqrt()[:, None], torch.zeros_like(rows))[
                weights > 0
            ]
        result: Float = rows.cpu().numpy()
        return result


def _correlations(scatter: Float, products: Float) -> Float:
    """Scatter in the units of what was added, which cancels where classes are far apart."""
    added = np.sqrt(np.diag(products))
    added = np.where(np.isfinite(added) & (added > 0), added, np.nan)
    return scatter / np.outer(added, added)


def _inverse_norm(correlations: Float) -> float:
    """A bound on the spectral norm of the inverse, from its sums of columns; infinite for a matrix that has none."""
    if not np.isfinite(correlations).all():
        return np.inf
    with one_blas_thread():
        factor, failed = lapack.dpotrf(correlations, lower=1)
        inverse, failed = (factor, failed) if failed else lapack.dpotri(factor, lower=1)
    if failed:
        return np.inf
    lower = np.abs(inverse)  # zeros above the diagonal
    norm = float((lower.sum(axis=0) + lower.sum(axis=1) - np.diag(lower)).max())
    return norm if np.isfinite(norm) else np.inf
