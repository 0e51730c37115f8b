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

from separatrix.data.block import Centred, Float
from separatrix.data.device.tensors import pytorch
from separatrix.kernels.device import cuda, moments
from separatrix.kernels.device.torch_losses import runs

if TYPE_CHECKING:
    from separatrix.data.device.block import DeviceBlock

# Rows that give guesses of the class means.
_GUESSED = 8192
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
    def _some(self) -> tuple[Any, Any]:
        """Rows spread over the data in double precision, and the memberships of them."""
        torch, step = pytorch(), max(1, self._block.n // _GUESSED)
        rows, codes = self._block.doubles(slice(None, None, step)), self._codes[::step].long()
        return rows, torch.nn.functional.one_hot(codes, self.n_classes).double()

    @cached_property
    def _guess(self) -> Any:
        """(K, d) class means of some rows; that of all of them for a class that is not among these."""
        torch, (rows, share) = pytorch(), self._some
        counts = share.sum(dim=0)[:, None]
        guess = torch.where(counts > 0, share.T @ rows / counts.clamp(min=1.0), rows.mean(dim=0))
        guess = torch.where(torch.isfinite(guess), guess, torch.zeros_like(guess))
        return guess.float().double() if self._block.X.element_size() == 4 else guess

    @cached_property
    def _units(self) -> tuple[Any, Float] | None:
        """Powers of two near one over the spread within classes, and correlations of some rows; or ``None``."""
        torch, (rows, share) = pytorch(), self._some
        apart = rows - share @ self._guess
        spread = torch.sqrt(torch.square(apart).mean(dim=0))
        usable = (spread > 1e-30) & (spread < 1e30)
        apart = apart / torch.where(usable, spread, 1.0)
        correlations = (apart.T @ apart / len(rows)).cpu().numpy()
        if not bool(usable.all()):
            return None
        return torch.exp2(-torch.round(torch.log2(spread))), correlations

    @cached_property
    def _scattered(self) -> tuple[Float, Float, Float] | None:
        """(K,) n_k, (K, d) Σ s(x − g_k) and (d, d) scatter within classes by halves; ``None`` with too few digits."""
        block, n_classes = self._block, self.n_classes
        many = self._weights is None and block.whole_rows() and block.n * block.shape[1] >= _MANY
        if not (many and moments.fits(block.X, self._codes, n_classes)):
            return None
        if self._units is None or _inverse_norm(self._units[1]) > _INDEPENDENT:
            return None
        units = self._units[0]
        first, products = moments.moment_sums(block.X, self._codes, self._guess, units, n_classes)
        counts = block.class_rows(n_classes).astype(np.float64)
        scatter = products - (first / np.maximum(counts, 1.0)[:, None]).T @ first
        added = np.sqrt(np.diag(products))
        if not (np.isfinite(scatter).all() and (added > 0).all()):
            return None
        if _inverse_norm(scatter / np.outer(added, added)) > 2.0 * _INDEPENDENT:
            return None
        back = units.cpu().numpy()
        return counts, first / back, scatter / np.outer(back, back)

    @cached_property
    def _sums(self) -> tuple[Float, Float, Float]:
        """(K,) n_k, (K, d) Σ s(x − g_k) and Σ s(x − g_k)²: one reading."""
        block, torch = self._block, pytorch()
        if (
            block.whole_rows()
            and cuda.class_sums_fit(block.shape[1], self.n_classes)
            and self._codes.element_size() == 1
        ):
            return cuda.class_sums(block.X, self._codes, self._weights, self._guess, self.n_classes)
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
        guess: Float = self._guess.cpu().numpy()
        return np.where(self._first[0][:, None] > 0, guess, 0.0)

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


def _inverse_norm(correlations: Float) -> float:
    """A bound on the spectral norm of the inverse, from its sums of columns; infinite for a matrix that has none."""
    try:
        inverse = np.linalg.inv(correlations)
    except np.linalg.LinAlgError:
        return np.inf
    norm = float(np.abs(inverse).sum(axis=0).max())
    return norm if np.isfinite(norm) and (np.diag(inverse) > 0).all() else np.inf
