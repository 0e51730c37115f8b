"""Whether a likelihood has a maximum, asked once its scores have grown without bound.

The fit stands where the classes overlap. Where they can be separated no maximum exists, and the fit says so
(geometry/separation.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from separatrix.data import Source
from separatrix.geometry.recession import ProgrammeFailed
from separatrix.geometry.separation import Separability, separability
from separatrix.result import Fit, Status


def diagnosed(
    fit: Fit, source: Source, fit_intercept: bool, class_names: NDArray[Any] | None
) -> tuple[Fit, Separability | None]:
    """The fit with what was found, and the verdict; no verdict where the linear programme failed."""
    try:
        verdict = separability(source, None, fit_intercept=fit_intercept)
    except ProgrammeFailed as reason:  # the fit stands; whether the classes can be separated stays open
        return replace(fit, detail=f"Whether the classes can be separated is not known. {reason}"), None
    if class_names is not None:
        verdict = replace(verdict, classes=class_names)
    if verdict.verdict == "overlap":
        return fit, verdict
    unbounded = None if fit.certificate is None else replace(fit.certificate, method="no maximum exists")
    return replace(fit, status=Status.SEPARATED, detail=verdict.message(), certificate=unbounded), verdict
