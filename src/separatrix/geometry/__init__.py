"""Hyperplanes and other decision boundaries, the algebraic forms of scores, and what is computed from them.

- Boundaries, which `boundary` of a model gives: `Hyperplane`, `Quadric`, `Surface`.
- Score forms, which `score_form` of a model gives: `Linear`, `Quadratic`, `Additive`, `KernelExpansion`; made of others:
  `OneVsRest`, `PairVote`, `Composition`, `Placed`, `Integrated`. `ScoreForm` is their base, `NoScoreForm` the error of a model
  without one.
- Separable data: `separability`, `Separability`; `geometric_margin`, `canonical`.
- `counterfactual`, `Counterfactual`: the nearest point with another decision.
- `adjacency`, `Adjacency`: which regions of a linear classifier touch.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.geometry.additive_form import Additive
    from separatrix.geometry.boundary import Hyperplane, Quadric, Surface
    from separatrix.geometry.combined_forms import Composition, Integrated, OneVsRest, PairVote, Placed
    from separatrix.geometry.counterfactuals import Counterfactual, counterfactual
    from separatrix.geometry.regions import Adjacency, adjacency
    from separatrix.geometry.score_form import KernelExpansion, Linear, NoScoreForm, Quadratic, ScoreForm
    from separatrix.geometry.separation import Separability, canonical, geometric_margin, separability
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Hyperplane", "Quadric", "Surface"]
__all__ += [
    "Additive",
    "Composition",
    "Integrated",
    "KernelExpansion",
    "Linear",
    "NoScoreForm",
    "OneVsRest",
    "PairVote",
    "Placed",
    "Quadratic",
    "ScoreForm",
]
__all__ += ["Separability", "canonical", "geometric_margin", "separability"]
__all__ += ["Counterfactual", "counterfactual"]
__all__ += ["Adjacency", "adjacency"]
