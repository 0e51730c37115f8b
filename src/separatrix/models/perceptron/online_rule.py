"""Linear rules that are learnt row by row, and can be taught further rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data import Source
from separatrix.data.labels import listed, unique_labels
from separatrix.models.base import OptionalArray
from separatrix.models.counted_classes import check_two_classes
from separatrix.models.linear_rule import LinearRule
from separatrix.models.sparse_coefficients import SparseCoefficients
from separatrix.models.stopwatch import Stopwatch


class OnlineRule(SparseCoefficients, LinearRule):
    """A linear rule with a `partial_fit`."""

    early_stopping: bool
    class_weight: Any

    def partial_fit(
        self, X: Any, y: OptionalArray = None, classes: OptionalArray = None, sample_weight: OptionalArray = None
    ) -> Self:
        """Visit the rows once, going on from where the last call stopped; the first call needs `classes`.

        Returns
        -------
        self
        """
        return self._fit_part(X, y, sample_weight, classes=classes)

    def _refuse_in_parts(self) -> None:
        """Refuse what needs all rows."""
        if self.early_stopping:
            raise ValueError(
                "partial_fit visits the rows once, so there is no epoch to stop after; set early_stopping=False."
            )
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs the shares of the classes in all rows, which partial_fit does not see; give "
                "class_weight as a dict (sklearn.utils.class_weight.compute_class_weight computes one)."
            )

    def _known_classes(self, classes: ArrayLike | None, first: bool) -> NDArray[Any]:
        if self._places is not None:
            raise ValueError("The last fit left classes without weight, which cannot be learnt now; fit a new model.")
        if classes is None:
            if first:
                raise ValueError("classes must be passed on the first call to partial_fit: all labels there will be.")
            return self.classes_
        given = unique_labels(np.asarray(classes))
        if first:
            check_two_classes(given)
        elif not np.array_equal(given, self.classes_):
            raise ValueError(f"`classes={listed(given)}` is not the same as on the last call, {listed(self.classes_)}.")
        return given

    def _labelled(self, X: Any, y: Any, weight: Any, classes: Any, watch: Stopwatch, *, reset: bool) -> Source:
        source = self._read(X, y, weight, reset=reset)
        watch.start_at(source.passes)
        return source.labelled(classes)
