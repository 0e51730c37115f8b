"""Passes over Dask partitions: they run where the partitions live, and results are merged there in a tree.

    partition → pass over its blocks → result             one task for each, on the worker that has the partition
    result, result, result, result → merged               four neighbours at a time; the last four come back and are merged here

The tree depends on the number of partitions alone: the same bits in every run on the same partition, whoever did the work and
whoever died meanwhile. Values that a pass leaves with its blocks are results of tasks too, which stay on their workers: Dask
moves them with the partition, makes them again when a worker is lost, and drops them when nobody can ask for them any more.

With a `Client` the tasks run on its cluster, otherwise in the threads of this process.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
from dask import compute, delayed, persist

from separatrix.data.block import Block
from separatrix.data.engines.partition import Failed, Reading, merged, run
from separatrix.data.engines.travel import pack
from separatrix.data.held import Held
from separatrix.data.source import Source
from separatrix.settings import config

Result = TypeVar("Result")
_WIDTH = 4
# Digits of the hash that tells one of Dask's keys from others.
_TOKEN = 32
# Functions up to this size travel with every task; larger ones once to each worker.
_SMALL = 1 << 15
# The share of memory, of the workers or of this machine, that partitions may take which stay there from pass to pass.
_SHARE, _SHARE_HERE = 0.4, 0.2


def current_client() -> Any:
    """The `Client` whose cluster is to be used; ``None`` where there is none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def computed(tasks: Sequence[Any], held: Sequence[Any] = ()) -> tuple[list[Any], list[Any]]:
    """Results of tasks, and what stands for those that are `held` where they were computed."""
    client = current_client()
    if client is None:
        found = compute(*tasks, *held, scheduler="threads", num_workers=config.threads)
        return list(found[: len(tasks)]), [delayed(value, traverse=False) for value in found[len(tasks) :]]
    from distributed import futures_of

    there = client.persist([*tasks, *held])
    try:
        return list(client.gather([futures_of(one)[0] for one in there[: len(tasks)]])), there[len(tasks) :]
    except BaseException:  # Ctrl-C, or an error: nothing is left running behind the caller's back
        client.cancel(there)
        raise


def kept_there(tasks: list[Any], size: float) -> list[Any]:
    """What stands for the tasks: their results, kept where they are, if there is memory for so many bytes; else themselves."""
    client = current_client()
    if client is None:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
        return list(persist(*tasks, scheduler="threads")) if size <= _SHARE_HERE * memory else tasks
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    room = _SHARE * sum(worker["memory_limit"] or np.inf for worker in workers)
    return list(client.persist(tasks)) if size <= room else tasks


@dataclass(frozen=True)
class DaskEngine:
    """Partitions: delayed rows, targets and weights (which may be ``None``), class codes, and how they are read."""

    parts: list[tuple[Any, Any, Any]]
    readings: list[Reading]
    codes: list[Any]

    def reading(self, **change: Any) -> DaskEngine:
        """The same partitions, read in another way."""
        return replace(self, readings=[replace(reading, **change) for reading in self.readings])

    @property
    def identity(self) -> list[Any]:
        """What tells these partitions from others, as far as the names of their tasks do."""
        digest = blake2b(digest_size=16)
        for part in self.parts:
            digest.update(repr([None if one is None else str(one.key) for one in part]).encode())
        apart = (self.readings[0].target, self.readings[0].weight) if self.readings else ()
        return [len(self.parts), digest.hexdigest(), *map(str, apart)]

    def kept(self, size: float) -> DaskEngine:
        """The same partitions, kept where they are computed if there is memory for so many bytes."""
        try:
            there = iter(kept_there([one for part in self.parts for one in part if one is not None], size))
        except Exception as error:  # of the user's code that loads partitions
            raise self._explained(error) from error
        parts = [(next(there), *(one if one is None else next(there) for one in part[1:])) for part in self.parts]
        return replace(self, parts=parts)

    def coded(self, n_rows: int) -> DaskEngine:
        """The same partitions with class codes, which are kept beside them if there is memory."""
        return replace(self, codes=kept_there(self.tasks(Reading.codes), 8.0 * n_rows))

    def ask(self, question: Callable[..., Any]) -> list[Any]:
        """question(reading, X, y, weights) of every partition."""
        return self._run(self.tasks(question), ())[0]

    def tasks(self, question: Callable[..., Any]) -> list[Any]:
        """The same, to be computed."""
        ask, mark = delayed(question, pure=False), uuid4().hex  # keys that say which partition they are of
        pairs = enumerate(zip(self.readings, self.parts, strict=True))
        return [ask(reading, *part, dask_key_name=f"separatrix-pass-{mark}-{at}") for at, (reading, part) in pairs]

    def map(self, source: Source, block_fn: Callable[[Block], Result], rows: int | None) -> list[Result]:
        """block_fn of every block of a source that is made of these partitions, in block order."""
        tasks, left, fresh = self._passes((source, block_fn, None, rows))
        found, left = self._run(tasks, left)
        _remember(fresh, left)
        return [result for part in found for result in _checked(part) or []]

    def reduce(
        self,
        source: Source,
        map_fn: Callable[[Block], Result],
        merge: Callable[[Result, Result], Result],
        rows: int | None,
    ) -> Result | None:
        """Merge map_fn of every block; ``None`` where there are no rows."""
        tasks, left, fresh = self._passes((source, map_fn, merge, rows))
        packed, _ = pack(merge)
        join = delayed(merged, pure=False)
        while len(tasks) > _WIDTH:
            tasks = [join(packed, tasks[at : at + _WIDTH]) for at in range(0, len(tasks), _WIDTH)]
        found, left = self._run(tasks, left)
        _remember(fresh, left)
        return _checked(merged(packed, found))

    def _passes(self, things: Any) -> tuple[list[Any], list[Any], list[Held[Any]]]:
        """Results of a pass over every partition, what it leaves with the blocks, and the held values it does so for."""
        packed, mentioned = pack(things)
        fills = [at for at, held in enumerate(mentioned) if held.elsewhere is None]
        payload = packed if len(packed) <= _SMALL else delayed(bytes, pure=False)(packed)
        threads, name, work = self._threads(), uuid4().hex, delayed(run, pure=False)
        tasks = []
        for i, (reading, part) in enumerate(zip(self.readings, self.parts, strict=True)):
            known = [None if held.elsewhere is None else held.elsewhere[i] for held in mentioned]
            given = (payload, reading, *part, self.codes[i], known, fills, threads)
            tasks.append(work(*given, dask_key_name=f"separatrix-pass-{name}-{i}"))
        if not fills:
            return tasks, [], []
        return [task[0] for task in tasks], [task[1] for task in tasks], [mentioned[at] for at in fills]

    def _threads(self) -> int:
        """Threads inside a pass over one partition: several where partitions are fewer than the threads of all workers.

        They are never more than any worker has, on which it may be run.
        """
        client = current_client()
        threads = [config.threads] if client is None else list(client.nthreads().values())
        return max(1, min([*threads, sum(threads) // max(1, len(self.parts))]))

    def _run(self, tasks: Sequence[Any], held: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """`computed`, with errors of the storage and of the cluster said in words."""
        try:
            return computed(tasks, held)
        except Exception as error:  # of the user's code that loads partitions, or of the cluster
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> Exception:
        if type(error).__name__ == "KilledWorker":
            where = self._place_of(str(getattr(error, "task", "")))
            return RuntimeError(
                f"Workers died again and again at {where}, most often for want of memory. Make the partitions smaller "
                "(rechunk an array, repartition a data frame) or give the workers more memory."
            )
        for reading, part in zip(self.readings, self.parts, strict=True):
            try:
                computed([delayed(_loaded, pure=False)(*part)])
            except Exception as reason:  # of the user's code
                return ValueError(f"{reading} could not be read: {type(reason).__name__}: {reason}")
        return error

    def _place_of(self, task: str) -> str:
        """The partition that a task passes over, or that it helps to load."""
        if (where := re.search(r"separatrix-pass-\w+-(\d+)", task)) is not None:
            return str(self.readings[int(where[1])])
        for reading, part in zip(self.readings, self.parts, strict=True):
            for one in part:
                graph: Any = None if one is None else one.__dask_graph__()
                own = graph.cull({one.key}) if hasattr(graph, "cull") else graph  # blocks of one array share its graph
                if any(task in (str(key), _fused(task, key)) for key in own or ()):
                    return str(reading)
        return "a partition"


def _fused(task: str, key: Any) -> str:
    """The name of a task, if it ends as this key does: Dask puts tasks fused with it in front, "('array-load-1f…', 0)"."""
    end = str(key).rpartition("-")[2]
    return task if len(end) >= _TOKEN and task.endswith(f"-{end}") else ""


def _loaded(*part: Any) -> None:
    """Nothing, if the partition could be loaded."""


def _checked(result: Any) -> Any:
    if isinstance(result, Failed):
        raise result.error
    return result


def _remember(fresh: list[Held[Any]], left: list[Any]) -> None:
    for at, held in enumerate(fresh):
        held.elsewhere = [part[at] for part in left]
        if held.make is None or held.room is None:
            Held.lasting += 1  # as the worker noted, in its own process
