"""One pass: mergeable statistics and how they are read."""

from separatrix.statistics.conditioning import condition_gaussian
from separatrix.statistics.gram import Gram, NormalEquations
from separatrix.statistics.moments import ClassMoments
from separatrix.statistics.scatter import Scatter
from separatrix.statistics.statistic import Statistic

__all__ = ["ClassMoments", "Gram", "NormalEquations", "Scatter", "Statistic", "condition_gaussian"]
