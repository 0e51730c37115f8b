"""Numbers near the columns of rows on a device, from some rows: differences from them keep their digits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from separatrix.data.block import Codes, Float
from separatrix.data.device.tensors import powers_of_two, pytorch

# Rows that are looked at.
_SOME = 4096


class Hints:
    """(d,) means of some rows, and powers of two near one over their spread; looked up when they are first asked for.

    Units are ``None`` where a column has no spread to speak of.
    """

    def __init__(self, look: Callable[[], tuple[Float, Float | None]]) -> None:
        self._look = look

    @classmethod
    def none(cls, n_columns: int) -> Hints:
        """Nothing is known."""
        return cls(lambda: (np.zeros(n_columns), None))

    @classmethod
    def known(cls, means: Float, spreads: Float) -> Hints:
        """Of means and standard deviations."""
        return cls(lambda: (means, powers_of_two(spreads)))

    @classmethod
    def of(cls, X: Any) -> Hints:
        """Of some rows of a tensor that are spread over it."""

        def look() -> tuple[Float, Float | None]:
            if not X.shape[0]:
                return np.zeros(int(X.shape[1])), None
            torch, some = pytorch(), X[:: max(1, X.shape[0] // _SOME)][:_SOME].double()
            spread, means = torch.std_mean(some, dim=0, correction=0)
            found: Float = torch.stack([means, spread]).cpu().numpy()
            return np.where(np.isfinite(found[0]), found[0], 0.0), powers_of_two(found[1])

        return cls(look)

    def columns(self, which: Codes) -> Hints:
        """Of some of the columns."""
        return Hints(lambda: (self.means[which], None if self.units is None else self.units[which]))

    @cached_property
    def _found(self) -> tuple[Float, Float | None]:
        return self._look()

    @property
    def means(self) -> Float:
        """(d,) means."""
        return self._found[0]

    @property
    def units(self) -> Float | None:
        """(d,) powers of two."""
        return self._found[1]
