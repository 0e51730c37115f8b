"""Objectives: what is minimised, evaluated block by block.

- Losses: `Loss`; of two classes (`Margin`) `Logistic`, `Squared`, `Hinge`, `SquaredHinge`, `PerceptronLoss`, `Huberised`,
  `Exponential`, `Sigmoid`, `SigmoidSquared`, by name in `MARGIN_LOSSES`, and `ZeroOne` to compare them with; of any number of
  classes `Softmax`.
- `Penalty`.
- `LinearObjective`: loss and penalty over a source. `LinearProblem`: the same with units of C, views of the rows and the start;
  `minimise` of `separatrix.solvers` takes it and gives a `Solution`.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.objectives.linear import LinearObjective
    from separatrix.objectives.linear_problem import LinearProblem
    from separatrix.objectives.losses import Loss, Softmax
    from separatrix.objectives.margin_losses import (
        MARGIN_LOSSES,
        Exponential,
        Hinge,
        Huberised,
        Logistic,
        Margin,
        PerceptronLoss,
        Sigmoid,
        SigmoidSquared,
        Squared,
        SquaredHinge,
        ZeroOne,
    )
    from separatrix.objectives.penalties import Penalty
    from separatrix.objectives.solution import Solution
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "MARGIN_LOSSES",
    "Exponential",
    "Hinge",
    "Huberised",
    "Logistic",
    "Loss",
    "Margin",
    "PerceptronLoss",
    "Sigmoid",
    "SigmoidSquared",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "ZeroOne",
]
__all__ += ["Penalty"]
__all__ += ["LinearObjective", "LinearProblem", "Solution"]
