"""A table in, a ranked comparison of the whole family out.

- `compare`, `Comparison`; its models are `Candidate`, its figures `Score`.
- `FAMILIES`, `ModelFamily`: what is compared.
- `TableModel`: a model with the schema and the encoder of its table.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.comparison.comparison import Comparison, compare
    from separatrix.comparison.families import FAMILIES, ModelFamily
    from separatrix.comparison.measures import Score
    from separatrix.comparison.scores import Candidate
    from separatrix.comparison.table_model import TableModel
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Candidate", "Comparison", "Score", "compare"]
__all__ += ["FAMILIES", "ModelFamily"]
__all__ += ["TableModel"]
