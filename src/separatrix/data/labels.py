"""Labels in, codes 0…K−1 out, in the sorted order of the labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data.block import Codes, Float
from separatrix.data.checks import check_unmasked, real_numbers
from separatrix.data.workers import share, threads_here
from separatrix.errors import shown as shown  # where other rooms look for it

_CHUNK = 65536
# Labels among which all of a few classes are usually found.
_FIRST = 4096
# An integer range this much wider than the number of rows is not worth a lookup table.
_TABLE_FACTOR = 4


def as_target(y: ArrayLike, n_rows: int) -> NDArray[Any]:
    """`y` as a one- or two-dimensional array with as many rows as X."""
    check_unmasked(y, "y")
    target = np.asarray(y)
    if target.dtype.kind in "cmM":
        real_numbers(target, "y")
    if target.ndim == 0 or target.ndim > 2:
        raise ValueError(f"y should be a 1d array, got an array of shape {target.shape} instead.")
    if target.shape[0] != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows and y has "
            f"{target.shape[0]}; give one target per row."
        )
    if target.dtype.kind == "f":
        check_finite_target(target)
    return target


def check_finite_target(target: NDArray[Any]) -> None:
    """Refuse NaN and infinity, counting the rows that have them."""
    finite = np.isfinite(target)
    if not finite.all():
        bad = ~finite
        rows = int(bad.reshape(len(target), -1).any(axis=1).sum())
        raise ValueError(f"Input y contains NaN or infinity in {rows} rows; drop the rows without a target.")


def as_weights(sample_weight: ArrayLike | None, n_rows: int) -> Float | None:
    """Weights as a float64 vector, checked; ``None`` stays ``None``."""
    if sample_weight is None:
        return None
    weights = real_numbers(sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got an array of shape {weights.shape}.")
    if weights.shape[0] != n_rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}: give one weight per row.")
    check_weights(weights)
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if np.isinf(total):
        raise ValueError(
            "The total of sample_weight is beyond double precision; divide the weights by a power of ten first."
        )
    if total == 0:
        raise ValueError("The total of sample_weight is zero, so no row counts; give at least one positive weight.")
    if (largest := float(weights.max())) < np.finfo(float).tiny:
        raise ValueError(
            f"sample_weight is at most {largest:.1e}, where numbers have few digits left; give larger weights."
        )
    return weights


class UnknownLabel(ValueError):
    """A label in y that is none of the classes."""

    def __init__(self, label: Any, classes: NDArray[Any]) -> None:
        super().__init__(label, classes)
        self.label, self.classes = label, classes

    @property
    def fact(self) -> str:
        """What is wrong, without advice."""
        return f"The label {shown(self.label)} in y is not among the classes {listed(self.classes)}"

    def __str__(self) -> str:
        return f"{self.fact}; list it in `classes`."


def as_plain_number(value: Any) -> int | float:
    """Text or a number as a number, whole where it is."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+", value):
        return int(value)
    number = value if isinstance(value, int) else float(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def as_label(value: Any, like: Any) -> Any:
    """A value of the target as a label of the type that the classes have; None when it cannot be one."""
    try:
        if isinstance(like, bool):
            return {"true": True, "false": False, "1": True, "0": False}.get(str(value).lower())
        if isinstance(like, int | float):
            return None if isinstance(value, bool) else as_plain_number(value)
        return str(value)
    except (ValueError, OverflowError):
        return None


def listed(values: Iterable[Any]) -> str:
    """A list as Python writes it; of a long one the first ten values, and how many there are more."""
    found = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return repr(found) if len(found) <= 10 else f"{repr(found[:10])[:-1]}, … and {len(found) - 10} more]"


def check_weights(weights: Float) -> None:
    """Refuse NaN, infinite and negative weights."""
    if not np.isfinite(weights).all():
        raise ValueError(f"sample_weight contains NaN or infinity in {int((~np.isfinite(weights)).sum())} rows.")
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight is negative in {int((weights < 0).sum())} rows; weights count rows, so they must be ≥ 0."
        )


def check_label_kind(y: NDArray[Any]) -> None:
    """Refuse targets that are measurements, not labels."""
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array of labels, got an array of shape {y.shape} instead.")
    if y.dtype.kind == "c" or (y.dtype.kind == "f" and not _whole(y)):
        raise ValueError(
            "Unknown label type: continuous. A classifier needs class labels (strings, integers, booleans); use "
            "Ridge or LinearRegression for a continuous target, or cut it into classes first."
        )


def _whole(y: NDArray[Any]) -> bool:
    """Whether all numbers are whole; NaN is not."""
    found: list[bool] = []
    _by_chunks(lambda _, rows: found.append(bool((y[rows] == np.floor(y[rows])).all())), len(y))
    return all(found)


def is_missing(value: Any) -> bool:
    """None, NaN, or a data frame's own mark of a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def unique_labels(y: NDArray[Any]) -> NDArray[Any]:
    """The sorted distinct labels."""
    if y.dtype.kind == "O":
        missing = sum(map(is_missing, y.tolist()))
        if missing:
            raise ValueError(f"Input y contains NaN or None in {missing} rows; drop the rows without a label.")
        kinds = {type(value) for value in y.tolist()}
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        if len(kinds) > 1 and any(issubclass(kind, str) for kind in kinds):
            raise TypeError(f"y mixes labels of types {names}; give all labels as one type.")
        try:
            return np.unique(y)
        except (TypeError, ValueError):
            raise TypeError(f"y holds labels of type {names}, which have no order; give strings or integers.") from None
    if (narrow := _narrow(y)) is not None:
        low, shifted, high = narrow
        return (_distinct(shifted, high) + low).astype(y.dtype)
    found: dict[int, NDArray[Any]] = {}
    share(lambda at, rows: found.__setitem__(at, np.unique(y[rows])), _chunks(len(y)), threads_here())
    return np.unique(np.concatenate([found[at] for at in range(len(found))])) if len(found) > 1 else found[0]


def _chunks(n_rows: int) -> list[slice]:
    """Runs of rows that threads share out; one at least."""
    return [slice(start, start + _CHUNK) for start in range(0, max(1, n_rows), _CHUNK)]


def _by_chunks(work: Callable[[int, slice], None], n_rows: int) -> None:
    """The work of every run of rows, on the workers where there are several."""
    if n_rows <= _CHUNK:
        work(0, slice(0, n_rows))
    else:
        share(work, _chunks(n_rows), threads_here())


def encode(y: NDArray[Any], classes: NDArray[Any] | None, weights: Float | None) -> tuple[NDArray[Any], Codes]:
    """Sorted classes and the code of every row.

    Rows of weight zero do not create classes; where such a row has a label of its own it gets code 0, which is
    harmless because every statistic leaves it out.
    """
    check_label_kind(y)
    counted = y if weights is None or weights.all() else y[weights > 0]
    if classes is None and y.dtype.kind in "iubf" and y.size:
        table = _encode_by_table(y, counted)
        if table is not None:
            return table
    known = unique_labels(counted) if classes is None else np.asarray(classes)
    if classes is not None and (codes_there := _codes_by_table(y, known)) is not None:
        return known, codes_there
    if weights is not None and y.dtype.kind == "O" and len(known):  # a row of weight zero may hold anything
        y = np.where((weights > 0) | np.isin(y, known), y, known[0])
    if known.dtype.kind in "US" and y.dtype.kind == "O":
        y = y.astype(str)
    codes, wrong = np.zeros(len(y), dtype=np.intp), np.ones(len(y), dtype=bool)

    def look(_: int, rows: slice) -> None:
        codes[rows] = np.minimum(np.searchsorted(known, y[rows]), len(known) - 1)
        wrong[rows] = known[codes[rows]] != y[rows]

    if len(known):
        _by_chunks(look, len(y))
    if wrong.any():
        strange = wrong if weights is None else wrong & (weights > 0)
        if strange.any():
            raise UnknownLabel(y[int(np.flatnonzero(strange)[0])], known)
        codes[wrong] = 0
    return known, codes


def known_labels(y: NDArray[Any], classes: NDArray[Any], weights: Float | None) -> NDArray[Any]:
    """The sorted labels of all rows: the classes that have weight, and those whose rows all have weight zero.

    A row of weight zero may hold anything, so a missing label there, or one of another type, is passed over.
    """
    if weights is None or weights.all():
        return classes
    idle = y[weights == 0]
    if idle.dtype.kind == "O":
        text = _is_text(classes)
        idle = np.array([v for v in idle.tolist() if not is_missing(v) and isinstance(v, str) == text], dtype=object)
    return np.union1d(classes, idle) if len(idle) else classes


def _encode_by_table(y: NDArray[Any], counted: NDArray[Any]) -> tuple[NDArray[Any], Codes] | None:
    """Whole numbers in a narrow range: a lookup table instead of a sort."""
    if (narrow := _narrow(y)) is None:
        return None
    low, shifted, high = narrow
    values = _distinct(shifted if counted is y else counted.astype(np.intp) - low, high)
    return (values + low).astype(y.dtype), _looked_up(y, shifted, values, high)


def _distinct(shifted: Codes, high: int) -> Codes:
    """The sorted distinct values of whole numbers from 0 to `high`."""
    if high < _FIRST < len(shifted) and np.bincount(shifted[:_FIRST], minlength=high + 1).all():
        return np.arange(high + 1)
    return np.flatnonzero(np.bincount(shifted, minlength=high + 1))


def _codes_by_table(y: NDArray[Any], known: NDArray[Any]) -> Codes | None:
    """Codes of whole numbers in a narrow range among known classes; ``None`` where one of them is not a class."""
    narrow = _narrow(y) if known.dtype.kind in "iubf" and len(known) else None
    if narrow is None or not np.isfinite(known).all() or (known != np.floor(known)).any():
        return None
    low, shifted, high = narrow
    there = known[(known >= low) & (known <= low + high)]
    values = there.astype(np.intp) - low
    if not np.isin(_distinct(shifted, high), values).all():
        return None
    first = int(np.searchsorted(known, there[0]))
    codes = _looked_up(y, shifted, values, high)
    return codes + first if first else codes


def _narrow(y: NDArray[Any]) -> tuple[int, Codes, int] | None:
    """The least label, how far each is above it, and how far the largest: of whole numbers in a range worth a table."""
    if y.dtype.kind not in "iubf" or y.ndim != 1 or not y.size:
        return None
    integers = y.view(np.uint8) if y.dtype == bool else y
    least, largest = integers.min(), integers.max()
    if not np.isfinite([least, largest]).all():
        return None
    low, high = int(least), int(largest)
    if high - low > _TABLE_FACTOR * len(y) + 1024 or high >= 2**62 or low <= -(2**62):
        return None
    if low == 0 and y.dtype == np.intp:
        return low, y, high
    shifted = np.empty(len(y), dtype=np.intp)
    whole = True  # written one way only

    def shift(_: int, rows: slice) -> None:
        nonlocal whole
        own, part = integers[rows], shifted[rows]
        part[:] = own
        if y.dtype.kind == "f" and not np.array_equal(part, own):
            whole = False
        if low:
            part -= low

    _by_chunks(shift, len(y))
    return (low, shifted, high - low) if whole else None


def _looked_up(y: NDArray[Any], shifted: Codes, values: Codes, high: int) -> Codes:
    """Places of shifted labels, `high` at most, among the sorted values, 0 for those that are none of them."""
    plain = shifted is y and y.flags.carray  # laid out as compiled loops take it
    if len(values) == high + 1 and values[-1] == high and (plain or shifted is not y):  # they are codes already
        return shifted
    code_of = np.zeros(high + 1, dtype=np.intp)
    code_of[values] = np.arange(len(values))
    return np.take(code_of, shifted)


def _is_text(classes: NDArray[Any]) -> bool:
    return classes.dtype.kind in "US" or (classes.dtype.kind == "O" and any(isinstance(c, str) for c in classes))


def merged_classes(mine: NDArray[Any], theirs: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.intp]]:
    """Union of two sets of classes, and where each one's classes stand in it."""
    if len(mine) and len(theirs) and _is_text(mine) != _is_text(theirs):
        kinds = " and ".join(f"{shown(c[0])} ({type(c.tolist()[0]).__name__})" for c in (mine, theirs))
        raise ValueError(f"The labels {kinds} are of different types; give all labels as one type.")
    union = np.union1d(mine, theirs)
    return union, np.searchsorted(union, mine), np.searchsorted(union, theirs)


def as_names(names: Iterable[Any]) -> NDArray[Any]:
    """Names in one array: of their own type where they share one, else of objects as they were given."""
    listed = list(names)
    array = np.asarray(listed)
    strings = sum(isinstance(name, str) for name in listed)
    plain = array.ndim == 1 and (array.dtype.kind in "iufb" if strings == 0 else strings == len(listed))
    if plain and len({isinstance(name, bool | np.bool_) for name in listed}) <= 1:
        return array
    objects = np.empty(len(listed), dtype=object)
    objects[:] = [name.item() if isinstance(name, np.generic) else name for name in listed]
    return objects
