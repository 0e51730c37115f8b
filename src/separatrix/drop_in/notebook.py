"""%load_ext separatrix: the swap in a notebook, and %unload_ext separatrix: back."""

from __future__ import annotations

from typing import Any

from separatrix.drop_in.swapping import accelerate, restore


def load_ipython_extension(shell: Any) -> None:
    """Swap, also the names that cells have imported already."""
    accelerate()


def unload_ipython_extension(shell: Any) -> None:
    """Swap back."""
    restore()
