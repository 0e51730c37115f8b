"""From posterior to action: loss matrices, the reject option, risk, calibration, changed priors.

- `BayesRule`: the actions of least expected loss under any classifier; `PosteriorRegions` and `PlaneRegions` are its regions.
- Risk: `risk`, `Risk`; `risk_coverage_curve`, `RiskCoverage`; the least possible one: `bayes_risk`, `GaussianClasses`;
  as rows become more: `risk_over_n`, `RiskOverN`.
- Thresholds: `threshold_for`, `cost_curve`, `CostCurve`.
- Calibration: `reliability_diagram`, `Reliability`, `expected_calibration_error`.
- Changed priors: `shift_priors`, `estimate_priors`, `PriorEstimate`.
- Point estimates from a posterior: `posterior_summary`.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.decide.bayes_rule import BayesRule
    from separatrix.decide.calibration import Reliability, expected_calibration_error, reliability_diagram
    from separatrix.decide.empirical_risk import Risk, RiskCoverage, risk, risk_coverage_curve
    from separatrix.decide.gaussian_classes import GaussianClasses
    from separatrix.decide.least_risk import bayes_risk
    from separatrix.decide.prior_shift import PriorEstimate, estimate_priors, shift_priors
    from separatrix.decide.regions import PlaneRegions, PosteriorRegions
    from separatrix.decide.summaries import posterior_summary
    from separatrix.decide.thresholds import CostCurve, cost_curve, threshold_for
    from separatrix.decide.training_sizes import RiskOverN, risk_over_n
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["BayesRule", "PlaneRegions", "PosteriorRegions"]
__all__ += [
    "GaussianClasses",
    "Risk",
    "RiskCoverage",
    "RiskOverN",
    "bayes_risk",
    "risk",
    "risk_coverage_curve",
    "risk_over_n",
]
__all__ += ["CostCurve", "cost_curve", "threshold_for"]
__all__ += ["Reliability", "expected_calibration_error", "reliability_diagram"]
__all__ += ["PriorEstimate", "estimate_priors", "shift_priors"]
__all__ += ["posterior_summary"]
