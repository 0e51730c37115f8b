"""Priors of the classes: given and checked, or their shares in the data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data.block import Float
from separatrix.data.checks import real_numbers
from separatrix.data.labels import listed
from separatrix.errors import ClassName, Message
from separatrix.models.counted_classes import Undetermined
from separatrix.settings import outside


def class_priors(priors: ArrayLike | None, counts: Float, classes: NDArray[Any], waiting: bool) -> Float:
    """Priors as given, checked, or the shares of the classes in the data.

    A class without rows has the prior 0, whatever is given for it; or, while `waiting` for more rows, none yet.
    """
    if priors is None:
        return counts / counts.sum()
    given = real_numbers(priors, "priors").copy()
    if given.shape != (len(classes),):
        raise ValueError(
            f"priors has shape {given.shape}, but there are {len(classes)} classes: give one prior per class, in the order "
            f"{listed(classes)}."
        )
    if not np.isfinite(given).all() or (given < 0).any():
        raise ValueError("priors must be non-negative and finite.")
    if abs(given.sum() - 1.0) > 1e-5:
        if given.sum() == 0:
            raise ValueError("priors are all zero; at least one class must be possible.")
        warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=outside())
        given = given / given.sum()
    empty = np.flatnonzero((counts == 0) & (given > 0))
    if len(empty) and waiting:
        name = ClassName(classes[empty[0]])
        raise Undetermined(Message.of("Class ", name, " has a positive prior but no rows to learn from."))
    if len(empty):
        given = np.where(counts > 0, given, 0.0)
        if not given.any():
            raise ValueError("priors are 0 for every class that has rows; give at least one a positive prior.")
        given = given / given.sum()
    return given
