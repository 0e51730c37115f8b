"""results.json, one entry a workload with its own conditions, and RESULTS.md rendered from it.

A run replaces the entries of the workloads it ran and leaves the others. Both files are written whole
and renamed, so an interrupted run leaves the last complete state.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.ladder import shown
from benchmarks.result import OK, Result, Row, Verdict

Entry = dict[str, Any]
Entries = dict[str, Entry]


def entry(id: str, title: str, settings: Mapping[str, Any], conditions: dict[str, Any], result: Result) -> Entry:
    """What is stored of one workload."""
    stored = {"settings": dict(settings), "conditions": conditions, "result": result.to_json()}
    return {"id": id, "title": title, **stored}


def read(path: Path) -> Entries:
    """The stored entries, by the workload's file name."""
    stored: Entries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return stored


def write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def save(output: Path, entries: Entries) -> None:
    """RESULTS.md at `output`, results.json beside it."""
    output.parent.mkdir(parents=True, exist_ok=True)
    ordered = dict(sorted(entries.items()))
    write(output.with_name("results.json"), json.dumps(ordered, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    write(output, render(ordered))


def render(entries: Entries) -> str:
    """The page: missed goals first, then the conditions, then a table a workload."""
    results = {name: Result.from_json(stored["result"]) for name, stored in entries.items()}
    heading = {name: _heading(stored) for name, stored in entries.items()}
    judged = [(heading[name], verdict) for name, result in results.items() for verdict in result.verdicts]
    sections = [_summary(judged), _conditions(entries)]
    for name, result in results.items():
        sections.append(_section(heading[name], result))
    return "\n\n".join(sections) + "\n"


def _heading(stored: Entry) -> str:
    scale = stored["settings"]["scale"]
    smoke = f" (smoke run at scale {scale:g}: the times say nothing)" if scale != 1 else ""
    return f"{stored['id']} {stored['title']}{smoke}"


def _summary(judged: list[tuple[str, Verdict]]) -> str:
    """One table: what is won, then what is missed, then what could not be judged."""
    words = {True: "met", False: "**missed**", None: "could not be judged"}
    counts = {met: sum(verdict.met is met for _, verdict in judged) for met in words}
    missed = f"{counts[False]} missed" if counts[False] else "none missed"
    title = f"# Benchmarks: {counts[True]} of {len(judged)} goals met, {missed}"
    lines = [_line(["", "workload", "goal", "measured"]), _line(["---"] * 4)]
    for met, word in words.items():
        lines += [_line([word, name, v.goal, v.value]) for name, v in judged if v.met is met]
    source = "Written by `python -m benchmarks.run`, never edited by hand. What is measured, and how: README.md."
    return "\n\n".join([title, "\n".join(lines), source])


def _conditions(entries: Entries) -> str:
    """Each set of conditions once, with the workloads that were run under it."""
    groups: dict[str, list[str]] = {}
    for stored in entries.values():
        conditions = stored["conditions"]
        versions = ", ".join(f"{name} {version}" for name, version in conditions["versions"].items())
        text = "\n".join(
            [
                f"- date {conditions['date']}, commit {conditions['commit']}",
                f"- CPU: {conditions['cpu']}",
                f"- threads: {conditions['threads']}",
                f"- versions: {versions}",
            ]
        )
        groups.setdefault(text, []).append(f"{stored['id']} {stored['title']}")
    parts = [f"{'; '.join(names)}:\n\n{text}" for text, names in groups.items()]
    return "\n\n".join(["## Conditions", *parts])


def _section(heading: str, result: Result) -> str:
    parts = [f"## {heading}"]
    parts += [f"Data: {result.data}."] if result.data else []
    parts.append(_table(result))
    parts += [f"Error: {result.quality}."] if result.quality else []
    words = {True: "met", False: "**missed**", None: "could not be judged"}
    parts.append("\n".join(f"- Goal {v.goal}: {v.value}: {words[v.met]}" for v in result.verdicts))
    return "\n\n".join(part for part in parts if part)


def _table(result: Result) -> str:
    """Contenders down, measures across; a measure nobody has is left out."""
    if not result.rows:
        return ""
    columns = {
        "contender": [row.name for row in result.rows],
        "median s": [_seconds(row.median) for row in result.rows],
        "min–max s": [_spread(row) for row in result.rows],
        "time / ours": [_format(result.ratio(row), "{:.2f}×") for row in result.rows],
        "peak extra MB": [_format(row.peak_extra, "{:.1f}", 1e-6) for row in result.rows],
        "of X": [_format(row.peak_extra, "{:.1%}", 1 / (result.x_bytes or 1)) for row in result.rows],
        "error": [_format(row.error, "{:.1e}") for row in result.rows],
        "note": [_note(row) for row in result.rows],
    }
    shown = {title: cells for title, cells in columns.items() if any(cells)}
    lines = [_line(shown), _line("---" for _ in shown)]
    lines += [_line(cells) for cells in zip(*shown.values(), strict=True)]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _format(value: float | None, template: str, factor: float = 1.0) -> str:
    return "" if value is None else template.format(value * factor)


def _seconds(value: float | None) -> str:
    return _format(value, "{:.3g}" if value is not None and value < 1 else "{:.2f}")


def _spread(row: Row) -> str:
    if not row.seconds:
        return ""
    return f"{_seconds(min(row.seconds))}–{_seconds(max(row.seconds))} ({len(row.seconds)})"


def _note(row: Row) -> str:
    status = "" if row.status == OK else row.status
    default = "the library's default" if row.default else ""
    rung = "" if row.rung is None else shown(row.rung)
    return "; ".join(part for part in (status, default, rung, row.note) if part)
