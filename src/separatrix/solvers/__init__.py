"""Methods of minimisation: `minimise` picks one from the registry, the driver runs it.

- `minimise`, `METHODS` (the registry), `Method`.
- Which solver is taken: `choose_solver`, `choose_least_squares`, `choose_svm`.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.solvers.choose import choose_solver, choose_svm
    from separatrix.solvers.least_squares.choose import choose_least_squares
    from separatrix.solvers.method import Method
    from separatrix.solvers.registry import METHODS, minimise
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["METHODS", "Method", "minimise"]
__all__ += ["choose_least_squares", "choose_solver", "choose_svm"]
