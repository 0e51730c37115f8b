"""The badges of README.md: small pictures kept in the repository, so that no page needs a network to show them.

What they say comes from pyproject.toml and benchmarks/results.json. `python tools/figures.py` writes them; tests/test_docs.py
fails when one is stale.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from benchmarks.report import Entry
from benchmarks.result import Result

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"
_LETTER, _MARGIN, _HEIGHT = 6.6, 8, 20  # pixels of a letter of 11 px, at the sides of a word, of a badge


def badges(entries: dict[str, Entry]) -> dict[Path, str]:
    """Each badge's file and text."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pythons = [name.rsplit(" ", 1)[1] for name in project["classifiers"] if "Python :: 3." in name]
    verdicts = [verdict for entry in entries.values() for verdict in Result.from_json(entry["result"]).verdicts]
    met = sum(verdict.met is True for verdict in verdicts)
    said = {
        "version": project["version"],
        "python": f"{pythons[0]} – {pythons[-1]}",
        "licence": project["license"],
        "types": "py.typed",
        "goals-met": f"{met} of {len(verdicts)}",
    }
    return {FOLDER / f"badge-{name}.svg": badge(name.replace("-", " "), value) for name, value in said.items()}


def badge(name: str, value: str) -> str:
    """A grey name and a blue value side by side."""
    left, right = (len(text) * _LETTER + 2 * _MARGIN for text in (name, value))
    style = 'fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right:g}" height="{_HEIGHT}" role="img" '
        f'aria-label="{name}: {value}"><title>{name}: {value}</title>'
        f'<clipPath id="round"><rect width="{left + right:g}" height="{_HEIGHT}" rx="3"/></clipPath>'
        f'<g clip-path="url(#round)"><rect width="{left:g}" height="{_HEIGHT}" fill="#505050"/>'
        f'<rect x="{left:g}" width="{right:g}" height="{_HEIGHT}" fill="#2457a6"/></g>'
        f'<g {style}><text x="{left / 2:g}" y="14">{name}</text>'
        f'<text x="{left + right / 2:g}" y="14">{value}</text></g></svg>\n'
    )
