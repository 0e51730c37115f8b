"""What is shown of a family beside its regions: one function for each name that `families` lists.

Each takes the fitted rule and a grid over the view, and yields what `drawing` makes: marks in the plane, charts, tables, facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from separatrix.explore.extras.decisions import decisions
from separatrix.explore.extras.generative import densities, ellipses, projection
from separatrix.explore.extras.likelihood import coefficient_posterior, coefficients, posterior, separation, trace
from separatrix.explore.extras.machines import ambiguity, margin
from separatrix.explore.extras.margins import margin_loss, masking, mistakes
from separatrix.explore.fitting import FittedRule
from separatrix.explore.surfaces import Contours

EXTRAS: dict[str, Callable[[FittedRule, Contours], Iterator[dict[str, Any]]]] = {
    "ambiguity": ambiguity,
    "coefficient_posterior": coefficient_posterior,
    "coefficients": coefficients,
    "densities": densities,
    "ellipses": ellipses,
    "margin": margin,
    "margin_loss": margin_loss,
    "masking": masking,
    "mistakes": mistakes,
    "posterior": posterior,
    "projection": projection,
    "separation": separation,
    "trace": trace,
}


def extras_of(fitted: FittedRule) -> list[dict[str, Any]]:
    """All that is shown of a fitted rule."""
    contours = Contours(fitted.state.view, fitted.state.grid)
    # A calibrated rule stands before the model of the family: what is shown of that one is not to be had.
    calibrated = fitted.decides and not hasattr(fitted.family.build(**fitted.parameters), "predict_proba")
    own = () if calibrated else fitted.family.extras
    shown = [one for name in own for one in EXTRAS[name](fitted, contours)]
    return [*shown, *decisions(fitted)]
