"""Words of free text are learnt within the time of a stage, for all rows and for every fold; or their columns are left out.

It is done before any family is fitted: families that are compared read the same columns in every fold.
"""

from __future__ import annotations

from dataclasses import replace

from separatrix.comparison.suitable_features import listed
from separatrix.comparison.validation import Step, Task
from separatrix.geometry.programmes import Deadline, OutOfTime
from separatrix.tables.columns import ColumnSchema, read_by_words


def steps_of_words(task: Task) -> int:
    """How many steps `with_words` takes."""
    return (1 + len(task.folds) * task.n_folds) * bool(task.schema.prose)


def with_words(task: Task, step: Step) -> tuple[Task, list[str]]:
    """The task with the words of its texts learnt, or without these columns, and what is to be said of that."""
    prose = task.schema.prose
    if not prose:
        return task, []
    try:
        task.learn(Deadline(task.stage_seconds), step)
    except OutOfTime:
        after = f"was given up after {task.stage_seconds:.3g} s; raise stage_seconds (--stage-seconds) to wait."
        return _without(task, prose, f"Learning its words {after}"), [f"Learning the words of {listed(prose)} {after}"]
    return task, []


def _without(task: Task, names: tuple[str, ...], reason: str) -> Task:
    """The task without some of its columns."""
    columns = tuple(
        ColumnSchema(one.name, "left_out", reason, missing=one.missing) if one.name in names else one
        for one in task.schema.columns
    )
    untrue = {read_by_words(name) for name in names}
    findings = tuple(one for one in task.schema.findings if one not in untrue)
    schema = replace(task.schema, columns=columns, findings=findings)
    if not schema.used:
        raise ValueError(f"No column is left to learn {schema.target!r} from. {listed(names)}: {reason}")
    return replace(task, schema=schema, rows=task.rows.of([one.name for one in schema.used]))
