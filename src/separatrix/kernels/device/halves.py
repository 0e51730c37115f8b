"""Kernels that multiply by the tensor cores of half precision: numbers as two of these, powers of two as their units.

A number z = h + l keeps 22 bits, and products of two numbers as many, so that sums over rows have about the digits of single
precision: their entries are off by some 1e-7 of what is added. Out of the range of half precision, 65504 units, sums are not
finite, which is how it is noticed; far below a unit, numbers lose digits but the sum hardly does.
"""

from __future__ import annotations

from importlib import import_module, resources
from typing import Any

# Blocks of threads are shared out over so many multiprocessors; a block has four warps.
MULTIPROCESSORS, WARPS, LANES = 132, 4, 32
THREADS = WARPS * LANES


def compiled(name: str, constants: dict[str, int]) -> Any:
    """The module of a file of kernels, with what is shared by them, for constants that are known at compile time."""
    head = "constexpr int " + ", ".join(f"{key} = {value}" for key, value in constants.items()) + ";\n"
    files = resources.files(__package__)
    body = "".join(files.joinpath(part).read_text() for part in ("split.cu", "halves.cu", name))
    return import_module("cupy").RawModule(code=head + body, options=("-std=c++17",))
