"""Standard errors, tests, intervals and summaries of estimates.

`summary` of a model gives one of the tables: `Summary`, `FirthSummary`, `PosteriorSummary`, `RegressionSummary`. Their rows are
`CoefficientRow`, `TestedRow`, `PosteriorRow` and `RegressionRow`. `anova` and `likelihood_ratio_test` compare nested fits;
`marginal_effects` and `influence` of a logistic regression give `MarginalEffects` and `InfluenceMeasures`.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.inference.influence import InfluenceMeasures
    from separatrix.inference.least_squares_summary import RegressionRow, RegressionSummary
    from separatrix.inference.marginal_effects import MarginalEffects
    from separatrix.inference.nested import anova, likelihood_ratio_test
    from separatrix.inference.summary import (
        CoefficientRow,
        FirthSummary,
        PosteriorRow,
        PosteriorSummary,
        Summary,
        TestedRow,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["CoefficientRow", "FirthSummary", "PosteriorRow", "PosteriorSummary", "Summary", "TestedRow"]
__all__ += [
    "InfluenceMeasures",
    "MarginalEffects",
    "RegressionRow",
    "RegressionSummary",
    "anova",
    "likelihood_ratio_test",
]
