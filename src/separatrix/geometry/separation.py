"""Linear separability: can hyperplanes separate the classes without a mistake?

    a_ik = (e_{y_i} − e_k) ⊗ [x_i, 1],  k ≠ y_i      one row for every wrong class; for two classes ỹ_i [x_i, 1]

    complete   Aθ > 0 for some θ
    overlap    Aθ ≥ 0 only where Aθ = 0              the maximum-likelihood estimate of logistic regression exists
    quasi      neither: some rows can be pushed away for ever, the others lie on the boundary

    ρ = min_i ỹ_i(wᵀx_i + b)/‖w‖  the geometric margin;   canonical scale: min_i |wᵀx_i + b| = 1

`recession` has the linear programme that decides, `working_set` the rows it is given.

Reference: Albert and Anderson (1984), Biometrika 71, §2–3.

**Complexity** with p = d + 1 unknowns (K times as many for K > 2 classes) up to 1000: that of `recession` on about 10p
rows, a few times. Beyond: least squares, O(nnz) per step, which finds complete separation whenever the rows are linearly
independent, then one linear programme on all rows; these must fit in memory.
**Passes over the data** two, and one each time the working set grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data.block import Block, Float
from separatrix.data.dispatch import as_source
from separatrix.data.labels import shown
from separatrix.data.source import Source
from separatrix.errors import ClassName, Message
from separatrix.geometry.programmes import Deadline, aside
from separatrix.geometry.separating_direction import Design, class_margins, find_direction

# More classes than this are counted, not listed.
_NAMED = 10


@dataclass(frozen=True)
class Separability:
    """What `separability` found.

    Parameters
    ----------
    verdict : {'complete', 'quasi', 'overlap'}
        A linear rule gets every row right; gets none wrong but has some only on its boundary; or neither.
    direction : (coef, intercept) or None
        A separating direction: (1, d) and (1,), positive towards ``classes[1]``; for K > 2 classes (K, d) and (K,), whose
        rows sum to zero. The least margin among the rows it moves is 1. ``None`` when the classes overlap.
    diverges : ndarray of shape (m, d)
        +1 or −1 where a coefficient of the maximum-likelihood estimate runs away to ±∞, else 0: the signs of the
        direction. Where several directions separate, as they always do with complete separation, it is the one of
        maximum margin in scaled columns, towards which gradient ascent on the likelihood turns (Ji and Telgarsky 2019);
        with more than 1000 unknowns it is the one that was found first.
    diverges_intercept : ndarray of shape (m,)
        The same for the intercepts.
    columns : ndarray of int
        The columns that diverge, first those that move the rows most.
    margin : float
        Distance of the nearest row to the hyperplane of the direction, for two completely separable classes; else 0.
    classes : ndarray
        The labels, sorted.
    feature_names : ndarray or None
        Names of the columns.
    moved : (int, int)
        How many rows the direction sets apart from some other class, and how many rows there are; the others lie on its
        boundary.
    """

    verdict: Literal["complete", "quasi", "overlap"]
    direction: tuple[Float, Float] | None
    diverges: NDArray[np.int8]
    diverges_intercept: NDArray[np.int8]
    columns: NDArray[np.intp]
    margin: float
    classes: NDArray[Any]
    feature_names: NDArray[Any] | None = None
    moved: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        return str(self.message())

    def message(self) -> Message:
        """The verdict in words, with the classes it names."""
        labels = self.classes.tolist()
        which = Message.of(Message.listing(labels[:-1]), " and ", ClassName(labels[-1]))
        which = which if len(labels) <= _NAMED else Message.of(f"all {len(labels)} of them")
        if self.verdict == "overlap":
            what = (
                "overlap: no linear rule is right about some rows without being wrong about others, so the maximum-likelihood "
                "coefficients are finite."
            )
            return Message.of("The classes (", which, ") ", what)
        columns = self.columns
        names = [str(j) if self.feature_names is None else repr(str(self.feature_names[j])) for j in columns[:5]]
        last = f"{len(columns) - 5} more" if len(columns) > 5 else names.pop() if len(names) > 1 else ""
        named = f"column{'s' if last else ''} {', '.join(names)}{' and ' if last else ''}{last}"
        what = (
            "are completely separable: a linear rule gets every row right"
            if self.verdict == "complete"
            else f"are quasi-separable: a linear rule sets apart {self._moved()}, and gets none wrong"
        )
        advice = (
            f" {what}. So the maximum-likelihood estimate does not exist: it runs away to infinity along {named}. Add an L2 "
            "penalty (a finite C), or use Firth's penalty: both keep it finite."
        )
        return Message.of("The classes (", which, ")", advice)

    def _moved(self) -> str:
        moved, n = self.moved
        on = f"the other {n - moved} lie" if n - moved > 1 else "the other one lies"
        return f"{moved} of {n} rows ({on} on its boundary)" if n > moved > 0 else "some rows"


def separability(
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    fit_intercept: bool = True,
    max_seconds: float = np.inf,
) -> Separability:
    """Whether a linear rule separates the classes, and which coefficients of the logistic MLE are infinite.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or Source
        The rows. Sparse ones stay sparse.
    y : array-like of shape (n,)
        Labels of two or more classes.
    sample_weight : array-like of shape (n,), optional
        Rows of weight 0 do not count; how much the others weigh makes no difference.
    fit_intercept : bool, default=True
        Whether the rule has a constant.
    max_seconds : float, default=inf
        How long the search may take; a RuntimeError beyond.

    Returns
    -------
    Separability
        Verdict, direction, diverging coefficients, margin; its ``str`` is a sentence of advice. A gap narrower than about
        10⁻⁹ of the columns' ranges is not distinguished from classes that touch.

    Examples
    --------
    >>> from separatrix import separability
    >>> found = separability([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> found.verdict, round(found.margin, 6), found.diverges.tolist(), found.diverges_intercept.tolist()
    ('complete', 0.5, [[1]], [-1])
    >>> separability([[1.0], [2.0], [2.0], [3.0]], [0, 0, 1, 1]).verdict
    'quasi'
    >>> print(separability([[1.0], [3.0], [2.0], [4.0]], ["no", "no", "yes", "yes"]))
    The classes ('no' and 'yes') overlap: no linear rule is right about some rows without being wrong about others, so
    the maximum-likelihood coefficients are finite.
    """
    source, classes = _labelled(X, y, sample_weight)
    if source.n_features == 0:
        raise ValueError("X has no columns, so there is nothing to tell the classes apart by; give at least one.")
    design, theta, complete, moved = aside(partial(_searched, source, len(classes), fit_intercept), max_seconds)
    d, n = source.n_features, design.n
    if theta is None:
        none = np.zeros((design.vectors, d), dtype=np.int8)
        columns = np.zeros(0, dtype=np.intp)
        return Separability(
            "overlap", None, none, none[:, 0].copy(), columns, 0.0, classes, source.feature_names, (0, n)
        )
    coef, intercept = design.unscaled(theta)
    effect = np.abs(theta[:, :d]).max(axis=0)
    columns = np.flatnonzero(coef.any(axis=0))
    return Separability(
        "complete" if complete else "quasi",
        (coef, intercept),
        np.sign(coef).astype(np.int8),
        np.sign(intercept).astype(np.int8),
        columns[np.argsort(-effect[columns], kind="stable")],
        1.0 / _length(coef[0]) if complete and design.vectors == 1 else 0.0,
        classes,
        source.feature_names,
        (moved, n),
    )


def _searched(
    source: Source, n_classes: int, fit_intercept: bool, deadline: Deadline
) -> tuple[Design, Float | None, bool, int]:
    """The rows, the direction, whether it gets all rows right, and how many are right of all wrong classes."""
    design = Design(source, n_classes, fit_intercept)
    theta, complete = find_direction(design, deadline)
    moved = design.n if complete else 0 if theta is None else design.count_moved(theta)
    return design, theta, complete, moved


def geometric_margin(coef: ArrayLike, intercept: ArrayLike, X: Any, y: ArrayLike | None = None) -> float:
    """ρ = min_i ỹ_i(wᵀx_i + b)/‖w‖: the distance of the nearest row to the boundary, negative when some row is wrong.

    Parameters
    ----------
    coef : array-like of shape (d,), (1, d) or (K, d)
        Coefficients of a rule, positive towards the second class; for K > 2 classes one row each, and the boundaries are
        those between every row's class and each other class.
    intercept : float or array-like of shape (1,) or (K,)
        The constants.
    X, y : rows and labels
        As for `separability`.

    Examples
    --------
    >>> from separatrix.geometry import geometric_margin
    >>> geometric_margin([3.0, 4.0], -5.0, [[3.0, 4.0], [0.0, 0.0]], [1, 0])
    1.0
    """
    source, classes = _labelled(X, y)
    vectors, constants = _rule(coef, intercept, source, classes)
    lengths = np.array([[_length(one - two) for two in vectors] for one in vectors])
    if (lengths[~np.eye(len(vectors), dtype=bool)] == 0).any():
        raise ValueError(
            "The rule is constant between two classes, so there is no hyperplane to measure a distance to."
        )
    np.fill_diagonal(lengths, 1.0)

    def nearest(block: Block) -> float:
        block = block.counted()
        margins = class_margins(block.matvec(vectors.T) + constants, block.codes)
        return float((margins / lengths[block.codes]).min(initial=np.inf))

    return source.reduce(nearest, min)


def canonical(
    coef: ArrayLike, intercept: ArrayLike, X: Any, y: ArrayLike | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same rule scaled to ``min_i |wᵀx_i + b| = 1``, so that its margin is 1/‖w‖; for K > 2 classes, of the differences.

    Takes what `geometric_margin` takes, and returns coefficients and intercept in the shapes they came in.

    Examples
    --------
    >>> from separatrix.geometry import canonical
    >>> canonical([2.0], [-5.0], [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    (array([2.]), array([-5.]))
    >>> canonical([4.0], [-10.0], [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    (array([2.]), array([-5.]))
    """
    source, classes = _labelled(X, y)
    vectors, constants = _rule(coef, intercept, source, classes)

    def smallest(block: Block) -> float:
        block = block.counted()
        return float(np.abs(class_margins(block.matvec(vectors.T) + constants, block.codes)).min(initial=np.inf))

    least = source.reduce(smallest, min)
    if least == 0.0:
        raise ValueError("A row lies on the boundary of this rule, so no scale makes min |f| = 1.")
    return np.asarray(coef, dtype=np.float64) / least, np.asarray(intercept, dtype=np.float64) / least


def _labelled(X: Any, y: Any, sample_weight: Any = None) -> tuple[Source, NDArray[Any]]:
    source = as_source(X, y, sample_weight)
    if source.classes is None:  # to label codes again would lose the names of the classes
        source = source.labelled()
    classes = source.classes
    assert classes is not None
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only ({', '.join(map(shown, classes))}) among the rows that count; separating needs rows of "
            "at least two."
        )
    return source, classes


def _rule(coef: Any, intercept: Any, source: Source, classes: NDArray[Any]) -> tuple[Float, Float]:
    """(K, d) vectors and (K,) constants; of two classes the first has zeros."""
    vectors, constants = np.atleast_2d(np.asarray(coef, dtype=np.float64)), np.asarray(intercept, dtype=np.float64)
    rows = 1 if len(classes) == 2 else len(classes)
    if vectors.shape != (rows, source.n_features) or constants.size != rows:
        raise ValueError(
            f"coef has shape {np.shape(coef)} and intercept {np.shape(intercept)}; for {len(classes)} classes and "
            f"{source.n_features} columns they must be {(rows, source.n_features)} and {(rows,)}."
        )
    vectors, constants = vectors, constants.reshape(rows)
    return (vectors, constants) if rows > 1 else (np.pad(vectors, ((1, 0), (0, 0))), np.pad(constants, (1, 0)))


def _length(vector: Float) -> float:
    """‖vector‖ without squaring what would overflow."""
    largest = float(np.abs(vector).max(initial=0.0))
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0 else 0.0
