"""Displays, one per file: numbers first, then a plot of exactly these.

- Of a model: `DecisionBoundaryDisplay`, `CoefficientDisplay`, `DiscriminantCoordinatesDisplay`, `PosteriorPredictiveDisplay`.
- Of its predictions: `CalibrationDisplay`, `RiskCoverageDisplay`, `ScoreDistributionDisplay`.
- Of a path of penalties: `CoefficientPathDisplay`; of the path of a fit: `TrajectoryDisplay`. Of losses: `MarginLossDisplay`.

matplotlib is imported when something is drawn, not with this module.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.plots.calibration import CalibrationDisplay
    from separatrix.plots.coefficient_path import CoefficientPathDisplay
    from separatrix.plots.coefficients import CoefficientDisplay
    from separatrix.plots.decision_boundary import DecisionBoundaryDisplay
    from separatrix.plots.discriminant_coordinates import DiscriminantCoordinatesDisplay
    from separatrix.plots.margin_losses import MarginLossDisplay
    from separatrix.plots.posterior_predictive import PosteriorPredictiveDisplay
    from separatrix.plots.risk_coverage import RiskCoverageDisplay
    from separatrix.plots.score_distribution import ScoreDistributionDisplay
    from separatrix.plots.trajectory import TrajectoryDisplay
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CoefficientDisplay",
    "DecisionBoundaryDisplay",
    "DiscriminantCoordinatesDisplay",
    "PosteriorPredictiveDisplay",
]
__all__ += ["CalibrationDisplay", "RiskCoverageDisplay", "ScoreDistributionDisplay"]
__all__ += ["CoefficientPathDisplay", "MarginLossDisplay", "TrajectoryDisplay"]
