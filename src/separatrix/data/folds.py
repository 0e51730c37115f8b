"""Folds by row identity: a weight of 2 is the row twice and a weight of 0 is no row, also where rows are left out in turn.

    h(x) = mix(seed + Σ_j mix(mix(bits(x_j))·a_j))  mod 2⁶⁴          zeros add nothing, so sparse and dense rows have one hash

Every class's different rows, in the order of their hashes, are dealt to the folds in turn, and the next class goes on where the
last one stopped. So equal rows share a fold; neither the order of the rows nor how often they stand there, nor their weights,
have a part in it; and the folds differ by at most one different row, within each class and in all. Rows with the same hash but
different contents, which 2⁶⁴ values make rare, would share a fold too, which does no harm.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, check_cv

from separatrix.data.block import Block, Codes, Float
from separatrix.data.frames import as_table, is_frame

Keys = NDArray[np.uint64]
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]

# Odd constants of splitmix64: Steele, Lea and Flood (2014), OOPSLA.
GOLDEN, _FIRST, _SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
# Entries whose hashes are held at once.
_AT_ONCE = 1 << 20
# Equal kernel rows stay equal, and most different points differ after so many rounds.
_ROUNDS = 2


def mixed(values: Keys) -> Keys:
    """Every bit of a value spread over all bits of the result, as splitmix64 ends; 0 stays 0."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))


def _bits(values: Any) -> Keys:
    """64 mixed bits of numbers as doubles, 0 for zero; −0 as 0, and every NaN alike.

    Mixed, since those of small whole numbers differ in the first few bits only, which a product would leave at that.
    """
    numbers = np.array(values, dtype=np.float64, order="C")
    numbers[numbers == 0] = 0.0
    numbers[np.isnan(numbers)] = np.nan
    return mixed(numbers.view(np.uint64))


def _multipliers(n: int) -> Keys:
    with np.errstate(over="ignore"):
        return mixed(np.arange(1, n + 1, dtype=np.uint64) * GOLDEN) | np.uint64(1)


def row_keys(X: Any) -> Keys:
    """(n,) a hash of the contents of every row of an array, a sparse matrix or a data frame.

    Numbers differ where their values as doubles do, anything else where its text does.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.folds import row_keys
    >>> keys = row_keys(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -0.0]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    with np.errstate(over="ignore"):
        if sp.issparse(X):
            return mixed(_sparse_sums(X))
        if is_frame(X):
            import narwhals.stable.v1 as nw

            frame = nw.from_native(as_table(X), eager_only=True)
            return mixed(_column_sums((np.asarray(column.to_numpy()) for column in frame.iter_columns()), frame.shape))
        rows = np.asarray(X)
        rows = rows.reshape(len(rows), -1)
        if rows.dtype.kind not in "fiub":
            return mixed(_column_sums(rows.T, rows.shape))
        sums, multipliers = np.zeros(len(rows), dtype=np.uint64), _multipliers(rows.shape[1])
        step = max(1, _AT_ONCE // max(1, rows.shape[1]))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            sums[part] = mixed(_bits(rows[part]) * multipliers).sum(axis=1, dtype=np.uint64)
        return mixed(sums)


def _sparse_sums(X: Any) -> Keys:
    rows = sp.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    entries = mixed(_bits(rows.data) * _multipliers(rows.shape[1])[rows.indices])
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(entries, dtype=np.uint64)])
    return total[rows.indptr[1:]] - total[rows.indptr[:-1]]  # modulo 2⁶⁴ differences of running sums are exact


def _column_sums(columns: Iterable[NDArray[Any]], shape: tuple[int, ...]) -> Keys:
    sums = np.zeros(shape[0], dtype=np.uint64)
    for column, a in zip(columns, _multipliers(shape[1]), strict=True):
        sums += mixed(_column_bits(column) * a)
    return sums


def _column_bits(values: NDArray[Any]) -> Keys:
    """Of a column of any type: numbers as numbers, anything else as its text."""
    if values.dtype.kind in "fiub":
        return _bits(values)
    try:
        return _bits(values.astype(np.float64))
    except (TypeError, ValueError):
        pass
    found, at = np.unique(np.array([repr(value) for value in values.tolist()]), return_inverse=True)
    digests = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") for text in found.tolist()]
    return np.array(digests, dtype=np.uint64)[at]


def kernel_keys(values: Float, codes: Codes) -> tuple[Keys, Keys]:
    """Of the (n, n) values of a kernel among rows: which rows are the same point, and an order that does not depend on theirs.

    Points differ in their values with all others, round by round with what was found of these. Points that stay
    alike are placed alike among the others, so that any order of them gives the same machines.
    """
    same = row_keys(values)
    with np.errstate(over="ignore"):
        own = mixed((codes.astype(np.uint64) + np.uint64(1)) * GOLDEN)
        _, first, at = np.unique(mixed(same + own), return_index=True, return_inverse=True)  # points of a class
        bits, order = _bits(values[np.ix_(first, first)]), own[first]
        for _ in range(_ROUNDS):
            order = mixed(mixed(bits * _FIRST + order[None, :] * _SECOND).sum(axis=1, dtype=np.uint64) + order)
    return same, order[at]


def different_rows(keys: Keys, codes: Codes, n_classes: int) -> Codes:
    """(K,) number of different rows of every class."""
    return np.array([len(np.unique(keys[codes == k])) for k in range(n_classes)], dtype=np.intp)


def stratified_folds(
    keys: Keys, codes: Codes, n_folds: int, *, order: Keys | None = None, seed: int = 0
) -> NDArray[np.intp]:
    """(n,) the fold that leaves out each row: equal rows together, classes spread evenly, see the head of the file.

    `keys` are equal for equal rows (`row_keys`); the different rows of a class are sorted by `order`, the keys by default.
    Another seed gives other folds.
    """
    folds, dealt = np.empty(len(keys), dtype=np.intp), 0
    for own, ranks in _ranked(keys, codes, keys if order is None else order, seed):
        folds[own] = (ranks + dealt) % n_folds
        dealt += int(ranks.max()) + 1
    return folds


def grouped_folds(groups: Codes, codes: Codes, most: int, seed: int = 0) -> NDArray[np.intp] | None:
    """(n,) the fold that leaves out each row, all rows of a group together, every class on the other side of every fold.

    As many folds as there can be; None where two are too many.
    """
    classes = np.unique(codes)
    for n_folds in range(min(most, *(len(np.unique(groups[codes == k])) for k in classes)), 1, -1):
        folds = np.empty(len(codes), dtype=np.intp)
        splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
        for number, (_, outside) in enumerate(splitter.split(codes, codes, groups)):
            folds[outside] = number
        if all(len(np.unique(codes[folds != number])) == len(classes) for number in range(n_folds)):
            return np.unique(folds, return_inverse=True)[1]
    return None


def _ranked(keys: Keys, codes: Codes, order: Keys, seed: int) -> Iterator[tuple[Codes, Codes]]:
    """Of every class its rows, and the rank of each among the different rows of the class in a random order."""
    with np.errstate(over="ignore"):
        sorting = mixed(order + np.uint64(seed) * GOLDEN)
    for code in np.unique(codes):
        own = np.flatnonzero(codes == code)
        _, first, at = np.unique(keys[own], return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.intp)
        rank[np.lexsort((first, sorting[own][first]))] = np.arange(len(first))
        yield own, rank[at]


def held_out(keys: Keys, codes: Codes, share: float, seed: int = 0) -> NDArray[np.bool_]:
    """(n,) which rows are held out: a share of the different rows of every class, equal rows together.

    The numbers of the classes are rounded so that all together are rounded up; a class keeps at least one row to learn from.
    """
    classes = np.unique(codes)
    different = different_rows(keys, codes, int(codes.max()) + 1)[classes]
    wanted = share * different
    numbers = np.floor(wanted).astype(np.intp)
    more = int(np.ceil(wanted.sum() - 1e-9)) - int(numbers.sum())
    numbers[np.argsort(numbers - wanted, kind="stable")[:more]] += 1
    numbers = np.minimum(numbers, different - 1)
    if not numbers.any():
        raise ValueError(
            f"A share of {share:g} of {different.sum()} different rows leaves no row to hold out beside one of every class to "
            "learn from; give more rows."
        )
    mask = np.zeros(len(keys), dtype=bool)
    for (own, ranks), number in zip(_ranked(keys, codes, keys, seed), numbers, strict=True):
        mask[own] = ranks < number
    return mask


def block_keys(block: Block) -> Keys:
    """`row_keys` of a block."""
    stored = block.stored_rows()
    return row_keys(sp.csr_array(stored, shape=block.shape) if isinstance(stored, tuple) else stored)


def dealt_folds(keys: Keys, codes: Codes, n_folds: int) -> NDArray[np.intp]:
    """`stratified_folds`, of at most as many folds as there are different rows; two at least, or an error.

    A warning, as scikit-learn's, where a class has fewer rows than there are folds: some fold then has no row of it to test.
    """
    different = different_rows(keys, codes, int(codes.max(initial=-1)) + 1)
    if n_folds < 2 or different.sum() < 2:
        raise ValueError(
            f"{n_folds} folds cannot be made of n_samples = {different.sum()} different rows; give at least two folds, and a "
            "different row for each."
        )
    n_folds = min(n_folds, int(different.sum()))
    fewest = int(different[different > 0].min())
    if fewest < n_folds:
        warnings.warn(
            f"The least populated class in y has only {fewest} different rows, which is less than the {n_folds} folds.",
            UserWarning,
            stacklevel=3,
        )
    return stratified_folds(keys, codes, n_folds)


def number_of_folds(cv: Any) -> int | None:
    """`cv` as a number (None is 5, as in scikit-learn); ``None`` for splitters and lists of splits."""
    if cv is None:
        return 5
    return int(cv) if isinstance(cv, Integral) and not isinstance(cv, bool) else None


def splits(cv: Any, X: Any, codes: Codes, kept: NDArray[np.intp], n_rows: int, **params: Any) -> Iterator[Fold]:
    """Training and test rows of every fold, as positions among the rows that count.

    A number `cv` draws `stratified_folds`. A splitter keeps scikit-learn's meaning: it is given the rows that count, X and
    codes, and `params` such as groups, so that the copies of a row may part. So does a list of (train, test) positions,
    which are those of all `n_rows` rows; of these `kept` count, and rows of weight zero are left out.
    """
    number = number_of_folds(cv)
    if number is not None:
        folds = dealt_folds(row_keys(X), codes, number)
        for fold in range(int(folds.max()) + 1):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        return
    if hasattr(cv, "split"):
        yield from cv.split(X, codes, **params)
        return
    places = np.full(n_rows, -1, dtype=np.intp)
    places[kept] = np.arange(len(kept))
    for parts in check_cv(cv).split():
        inside, outside = (places[np.arange(n_rows)[part]] for part in parts)
        yield inside[inside >= 0], outside[outside >= 0]
