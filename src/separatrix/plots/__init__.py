"""Displays, one per file: numbers first, then a plot of exactly these.

- Of a model: `DecisionBoundaryDisplay`, `SupportVectorDisplay`, `CoefficientDisplay`, `ClassDensityDisplay`,
  `DiscriminantCoordinatesDisplay`, `FisherProjectionDisplay`, `PosteriorPredictiveDisplay`, `PredictiveContourDisplay`.
- Of its predictions: `CalibrationDisplay`, `RiskCoverageDisplay`, `RocCurveDisplay`, `ScoreDistributionDisplay`.
- Of a path of penalties: `CoefficientPathDisplay`; of the path of a fit: `TrajectoryDisplay`. Of losses: `MarginLossDisplay`.

Figures suit light and dark pages; `theme` gives them a background. matplotlib is imported when something is drawn, not with
this module.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.plots.calibration import CalibrationDisplay
    from separatrix.plots.class_densities import ClassDensityDisplay
    from separatrix.plots.coefficient_path import CoefficientPathDisplay
    from separatrix.plots.coefficients import CoefficientDisplay
    from separatrix.plots.decision_boundary import DecisionBoundaryDisplay
    from separatrix.plots.discriminant_coordinates import DiscriminantCoordinatesDisplay
    from separatrix.plots.fisher_projection import FisherProjectionDisplay
    from separatrix.plots.margin_losses import MarginLossDisplay
    from separatrix.plots.posterior_predictive import PosteriorPredictiveDisplay
    from separatrix.plots.predictive_contours import PredictiveContourDisplay
    from separatrix.plots.risk_coverage import RiskCoverageDisplay
    from separatrix.plots.roc import RocCurveDisplay
    from separatrix.plots.score_distribution import ScoreDistributionDisplay
    from separatrix.plots.style import theme
    from separatrix.plots.support_vectors import SupportVectorDisplay
    from separatrix.plots.trajectory import TrajectoryDisplay
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ClassDensityDisplay",
    "CoefficientDisplay",
    "DecisionBoundaryDisplay",
    "DiscriminantCoordinatesDisplay",
    "FisherProjectionDisplay",
    "PosteriorPredictiveDisplay",
    "PredictiveContourDisplay",
    "SupportVectorDisplay",
]
__all__ += ["CalibrationDisplay", "RiskCoverageDisplay", "RocCurveDisplay", "ScoreDistributionDisplay"]
__all__ += ["CoefficientPathDisplay", "MarginLossDisplay", "TrajectoryDisplay"]
__all__ += ["theme"]
