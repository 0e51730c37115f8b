"""Pickles made under the swap.

    loaded under it        the class that stands for scikit-learn's
    loaded without it      our class; scikit-learn's where the fit was handed back

Processes that were started under the swap inherit SEPARATRIX_ACCELERATE, the names that were swapped, and swap them when they
load the first such pickle. So do the workers of joblib before they do anything (`workers.py`).
"""

from __future__ import annotations

import copyreg
import os
import warnings
from typing import Any

from separatrix.drop_in.swaps import SWAPS, Swap

VARIABLE = "SEPARATRIX_ACCELERATE"


def revive(name: str, state: dict[str, Any]) -> Any:
    """The instance of a swapped class whose attributes these are."""
    made: Any
    stand, swap = _stand_in(name), SWAPS[name]
    model = state.get("separatrix_model_")
    if stand is not None:
        made = object.__new__(stand)
    elif model is not None:
        return model
    else:
        made = _unfitted(swap, state)
        if not isinstance(made, swap.original):
            return made
        state = {key: value for key, value in state.items() if key not in ("separatrix_model_", "_handed_back")}
    made.__setstate__(state)
    return made


def _unfitted(swap: Swap, state: dict[str, Any]) -> Any:
    """Ours with these parameters; an empty instance of scikit-learn's where it fitted, or ours has no counterpart."""
    from separatrix.drop_in.engine import is_fitted
    from separatrix.drop_in.parameters import HandBack

    theirs: Any = object.__new__(swap.original)
    theirs.__dict__.update(state)
    if not is_fitted(theirs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about parameters, which a fit will repeat
            try:
                return swap.ours(**swap.reader({name: state[name] for name in swap.parameter_names}))
            except HandBack:
                pass
    theirs.__dict__.clear()
    return theirs


def revive_class(name: str) -> Any:
    """What the name of a swapped class means here."""
    return _stand_in(name) or SWAPS[name].ours


def revive_original(name: str) -> Any:
    """An empty instance of scikit-learn's own class."""
    return object.__new__(SWAPS[name].original)


def _stand_in(name: str) -> type[Any] | None:
    from separatrix.drop_in import swapping

    inherited = os.environ.get(VARIABLE)
    if inherited and not swapping.is_active():
        swapping.accelerate(only=inherited.split(","))
    return swapping.stand_in_of(name)


def register(swap: Swap) -> None:
    """Let instances of scikit-learn's class be pickled while its name means another class."""
    copyreg.pickle(swap.original, lambda instance: (revive_original, (swap.name,), instance.__getstate__()))


def unregister(swap: Swap) -> None:
    """Pickle them as always."""
    copyreg.dispatch_table.pop(swap.original, None)


def reduce_class(kind: Any) -> Any:
    """A swapped class by its name here; a subclass by its place, as every class is."""
    return (revive_class, (kind.swap.name,)) if "swap" in vars(kind) else kind.__qualname__
