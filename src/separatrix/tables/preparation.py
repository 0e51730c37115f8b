"""What is said about a table before it is looked at: which columns count, as what, and what becomes of rare classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from separatrix.data.arrow_columns import coded, plain
from separatrix.data.checks import nearest_name
from separatrix.tables.rows import as_arrow
from separatrix.tables.target import infer_labels, label_codes

DECLARED = ("numeric", "categorical", "target", "text", "boolean", "date")
OTHER = "(other)"
"""The class that rare ones are merged into."""
RareClass = Literal["drop", "merge"]


def checked_types(types: Mapping[str, str] | None, names: Sequence[str], target: str) -> dict[str, str]:
    """What columns are declared to be, if there are such columns and such kinds."""
    for name, what in (types or {}).items():
        _check_column(name, names, "a type is given for")
        if name == target:
            raise ValueError(f"A type is given for the target {target!r}, whose values are its classes; leave it out.")
        if what not in DECLARED:
            raise ValueError(f"The type of column {name!r} is {what!r}; give one of {', '.join(DECLARED)}.")
    return dict(types or {})


def columns_used(
    table: Any, target: str, drop: Iterable[str] = (), use: Iterable[str] = (), apart: Iterable[str] = ()
) -> Any:
    """The table as Arrow with the target and the columns in `use` (all, where it is empty), less those to drop or set apart.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from separatrix.tables.preparation import columns_used
    >>> columns_used(pa.table({"a": [1], "b": [2], "y": [0]}), "y", drop=["a"]).column_names
    ['b', 'y']
    """
    table = as_arrow(table)
    drop, use, apart = list(drop), list(use), list(apart)
    for what, names in (("drop names", drop), ("use names", use)):
        for name in names:
            _check_column(name, table.column_names, what)
        if target in names and what == "drop names":
            raise ValueError(f"drop names the target {target!r}; without it there is nothing to learn.")
    if drop and use and (both := sorted(set(drop) & set(use))):
        raise ValueError(f"Column {both[0]!r} is to be used and to be dropped; say one of them.")
    kept = [
        name
        for name in table.column_names
        if name == target or (name not in drop and name not in apart and (not use or name in use))
    ]
    return table.select(kept)


def without_rare_classes(table: Any, target: str, rare: RareClass | None, fewest: int) -> tuple[Any, list[str], Any]:
    """The table without classes of fewer rows, or with these as one class; what was done; and which rows were kept.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from separatrix.tables.preparation import without_rare_classes
    >>> table, notes, _ = without_rare_classes(pa.table({"x": [1, 2, 3, 4, 5], "y": list("aabbc")}), "y", "drop", 2)
    >>> table.num_rows, notes
    (4, ["1 row of 1 class with fewer than 2 rows is dropped: 'c'."])
    """
    import pyarrow as pa

    table = as_arrow(table)
    if rare is None or target not in table.column_names:
        return table, [], None
    if rare not in ("drop", "merge"):
        raise ValueError(f"rare_class is {rare!r}; give 'drop' or 'merge'.")
    labels = infer_labels(target, table.column(target))
    counts = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.classes))
    few = np.flatnonzero(counts < fewest)
    if not len(few):
        return table, [], None
    named = ", ".join(repr(labels.classes[k]) for k in few[:8]) + (" …" if len(few) > 8 else "")
    rows, classes = int(counts[few].sum()), f"class{'' if len(few) == 1 else 'es'}"
    found = f"{rows} row{'' if rows == 1 else 's'} of {len(few)} {classes} with fewer than {fewest} rows"
    at = np.isin(labels.codes, few)
    if rare == "drop":
        kept = np.flatnonzero(~at)
        return table.take(pa.array(kept)), [f"{found} {'is' if rows == 1 else 'are'} dropped: {named}."], kept
    texts = [
        None if code < 0 else OTHER if merged else str(labels.classes[code])
        for code, merged in zip(labels.codes, at, strict=True)
    ]
    place = table.column_names.index(target)
    merged_table = table.set_column(place, target, pa.array(texts, pa.string()))
    return merged_table, [f"{found} {'is' if rows == 1 else 'are'} class {OTHER!r}: {named}."], None


def with_classes(table: Any, target: str, rare: RareClass | None, classes: Sequence[Any]) -> tuple[Any, list[str], Any]:
    """A table to judge on, treated as that of the classes was: without rows of others, or with these as one class.

    Beside the table: what was done, and which rows were kept, if not all. Other classes stay where none were rare.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from separatrix.tables.preparation import with_classes
    >>> with_classes(pa.table({"y": ["a", "c", "b"]}), "y", "merge", ("(other)", "a"))[0]["y"].to_pylist()
    ['a', '(other)', '(other)']
    """
    import pyarrow as pa

    if rare is None or target not in table.column_names:
        return table, [], None
    levels, places = coded(plain(table.column(target), ()))
    codes = np.array([*label_codes(levels, tuple(classes)), -1], dtype=np.intp)[places]
    others = int((codes == -2).sum())
    if others and rare == "drop":
        kept = np.flatnonzero(codes != -2)
        was = "row is" if others == 1 else "rows are"
        return table.take(pa.array(kept)), [f"{others} {was} not judged, whose class is not learnt."], kept
    if others and OTHER in classes:
        texts = [None if code == -1 else OTHER if code == -2 else str(classes[code]) for code in codes.tolist()]
        place = table.column_names.index(target)
        return table.set_column(place, target, pa.array(texts, pa.string())), [], None
    return table, [], None


def table_of_arrays(X: Any, y: Any) -> tuple[Any, str]:
    """X and y as one table, and what its target is called."""
    import pyarrow as pa

    if hasattr(X, "columns") or isinstance(X, pa.Table):
        table = as_arrow(X)
    else:
        values = np.asarray(X)
        if values.ndim != 2:
            raise ValueError(
                f"X has shape {values.shape}; give rows and columns, or a table and the name of its target."
            )
        table = pa.table({f"x{j}": pa.array(values[:, j].tolist()) for j in range(values.shape[1])})
    name = str(getattr(y, "name", None) or "y")
    while name in table.column_names:
        name += "_"
    labels = pa.array(np.asarray(y).tolist(), from_pandas=True)
    if len(labels) != table.num_rows:
        raise ValueError(f"X has {table.num_rows} rows and y {len(labels)}; give one label per row.")
    return table.append_column(name, labels), name


def _check_column(name: str, names: Sequence[str], what: str) -> None:
    if name not in names:
        raise ValueError(f"There is no column {name!r}, which {what}; {nearest_name(name, list(names))}")
