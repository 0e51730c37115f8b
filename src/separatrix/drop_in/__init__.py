"""scikit-learn's classes become ours without a line of a script being changed.

    separatrix.accelerate()            python -m separatrix script.py            %load_ext separatrix

- `accelerate`, `restore`: swap and swap back
- `accelerated`: a `SwapTable` of what was swapped, how many fits ours made and which were handed back, with times and reasons
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.drop_in.record import SwapTable
    from separatrix.drop_in.swapping import accelerate, accelerated, restore
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["SwapTable", "accelerate", "accelerated", "restore"]
