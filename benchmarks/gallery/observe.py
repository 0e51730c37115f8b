"""One script in this process, watched: what it prints, its figures, and every fit of a class that is swapped.

The same watch is around scikit-learn's classes and around those that stand for them, so what the swap itself takes is counted.
What a first fit loads counts for the time of the whole process, which is measured elsewhere, and not here: the script is run
twice, and the fits are those of the second time. One that takes long, and so has many fits or long ones, is run once. Fits
inside of fits count once, fits in other processes not at all.
"""

from __future__ import annotations

import io
import os
import runpy
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

LONG = 5.0  # seconds of a script


class Watch:
    """Seconds of each outermost call of the functions it is around."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._inside = False

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        @wraps(function)
        def watched(*arguments: Any, **options: Any) -> Any:
            if self._inside:
                return function(*arguments, **options)
            self._inside, start = True, time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds.append(time.perf_counter() - start)
                self._inside = False

        return watched


def observe(script: str, swapped: bool, folder: str) -> dict[str, Any]:
    """Run it; figures go to `folder` as 0.png, 1.png and so on, in the order in which they were made."""
    os.environ["MPLBACKEND"] = "Agg"
    drop_in = import_module("separatrix.drop_in")
    if swapped:
        drop_in.accelerate()
    watch = Watch()
    for swap in import_module("separatrix.drop_in.swaps").SWAPS.values():
        kind = getattr(import_module(swap.module), swap.name)
        for name in ("fit", "partial_fit"):
            if hasattr(kind, name):
                setattr(kind, name, watch.around(getattr(kind, name)))
    os.chdir(folder)
    start = time.perf_counter()
    printed = _run(script)
    if time.perf_counter() - start < LONG:
        import_module("matplotlib.pyplot").close("all")
        watch.seconds.clear()
        printed = _run(script)
    pyplot = import_module("matplotlib.pyplot")
    numbers = pyplot.get_fignums()
    for place, number in enumerate(numbers):
        pyplot.figure(number).savefig(Path(folder) / f"{place}.png", dpi=80)
    handed_back = sum(row.handed_back for row in drop_in.accelerated().rows)
    return {
        "seconds": watch.seconds,
        "handed_back": handed_back,
        "printed": printed,
        "figures": len(numbers),
    }


def _run(script: str) -> str:
    """What it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(script, run_name="__main__")
    return printed.getvalue()
