"""Standard errors, tests, intervals and summaries of estimates.

`summary` of a model gives one of the tables: `Summary`, `FirthSummary`, `PosteriorSummary`. Their rows are `CoefficientRow`,
`TestedRow` and `PosteriorRow`.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
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
