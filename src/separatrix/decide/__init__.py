"""From posterior to action: loss matrices, the reject option, risk, calibration, changed priors.

- `BayesRule`: the actions of least expected loss under any classifier; `PosteriorRegions` and `PlaneRegions` are its regions.
- Risk: `risk`, `Risk`; `risk_coverage_curve`, `RiskCoverage`; the least possible one: `bayes_risk`, `GaussianClasses`.
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
    from separatrix.decide.least_risk import GaussianClasses, bayes_risk
    from separatrix.decide.prior_shift import PriorEstimate, estimate_priors, shift_priors
    from separatrix.decide.regions import PlaneRegions, PosteriorRegions
    from separatrix.decide.summaries import posterior_summary
    from separatrix.decide.thresholds import CostCurve, cost_curve, threshold_for
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BayesRule",
    "CostCurve",
    "GaussianClasses",
    "PlaneRegions",
    "PosteriorRegions",
    "PriorEstimate",
    "Reliability",
    "Risk",
    "RiskCoverage",
    "bayes_risk",
    "cost_curve",
    "estimate_priors",
    "expected_calibration_error",
    "posterior_summary",
    "reliability_diagram",
    "risk",
    "risk_coverage_curve",
    "shift_priors",
    "threshold_for",
]
