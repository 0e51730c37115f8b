"""python -m separatrix [options] script.py [arguments]: a script of scikit-learn's users, unchanged, on our classes.

    python -m separatrix script.py --its own --arguments
    python -m separatrix -m package.module
    python -m separatrix --only SVC,Ridge --report script.py

The script runs as Python would run it: it is ``__main__``, its folder comes first among the places of imports, and
``sys.argv`` is its own.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import runpy
import sys
from collections.abc import Sequence
from typing import Any

from separatrix.drop_in.record import LOGGER
from separatrix.drop_in.swapping import accelerate, accelerated

_OBJECTS = 10_000  # that are new, between two searches for garbage


def main(arguments: Sequence[str] | None = None) -> None:
    """Swap, then run a script or a module with the arguments that follow its name."""
    asked = _parser().parse_args(arguments)
    called = asked.module or asked.script
    if not called:
        _parser().error("name a script, or a module with -m")
    if asked.script and not os.path.exists(asked.script[0]):
        _parser().error(f"there is no file {asked.script[0]}; a module is named after -m")
    if asked.report:
        _show_log()
    accelerate(only=asked.only, without=asked.without)
    if not gc.isenabled():  # by __main__, for the imports
        gc.freeze()  # all of it is there until the end; Python's own end looks through what is not set aside, twice
        # Scripts begin with imports of their own, which make many objects and no garbage: look for it less often.
        gc.set_threshold(_OBJECTS)
        gc.enable()
    try:
        sys.argv = list(called)
        if asked.module:
            sys.path[0] = os.getcwd()
            runpy.run_module(called[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(called[0]))
            runpy.run_path(called[0], run_name="__main__")
    finally:
        if asked.report:
            print(accelerated(), file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m separatrix",
        description="Run a script with scikit-learn's linear classifiers, naive Bayes, discriminants, SVMs and least squares "
        "replaced by separatrix's. The commands for tables are those of `separatrix`.",
        allow_abbrev=False,
    )
    names: dict[str, Any] = {"metavar": "A,B", "type": lambda text: text.split(",")}
    parser.add_argument("--only", help="names of the classes to replace; all by default", **names)
    parser.add_argument("--without", help="names of classes to leave as they are", default=[], **names)
    parser.add_argument(
        "--report", action="store_true", help="say what was handed back and why, and what each class did"
    )
    rest: dict[str, Any] = {"nargs": argparse.REMAINDER, "default": []}
    parser.add_argument("-m", dest="module", metavar="MODULE", help="a module, as python -m runs it", **rest)
    parser.add_argument("script", help="the script, and its own arguments", **rest)
    return parser


def _show_log() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
