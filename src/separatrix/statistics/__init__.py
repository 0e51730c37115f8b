"""One pass: mergeable statistics and how they are read.

- The protocol: `Statistic`.
- Numbers: `ClassMoments`, `Scatter`, `ColumnMoments`; with targets `Gram`, `NormalEquations`.
- Counts: `ClassCounts`, `CategoryCounts`, `ValueCounts`; of columns of mixed kinds `MixedCounts`.
- `condition_gaussian`: a Gaussian given some of its coordinates.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.statistics.columns import ColumnMoments, MixedCounts, ValueCounts
    from separatrix.statistics.conditioning import condition_gaussian
    from separatrix.statistics.counts import CategoryCounts, ClassCounts
    from separatrix.statistics.gram import Gram, NormalEquations
    from separatrix.statistics.moments import ClassMoments
    from separatrix.statistics.scatter import Scatter
    from separatrix.statistics.statistic import Statistic
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Statistic"]
__all__ += ["ClassMoments", "ColumnMoments", "Gram", "NormalEquations", "Scatter"]
__all__ += ["CategoryCounts", "ClassCounts", "MixedCounts", "ValueCounts"]
__all__ += ["condition_gaussian"]
