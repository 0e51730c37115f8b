"""The oldest versions that pyproject.toml allows, as requirements: `pip install $(python tools/lowest_versions.py)`.

"numpy>=2.0" becomes "numpy==2.0.*"; of the packages for development only the tables that we read, and what runs the tests.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
TABLES, RUNNERS = ("pandas", "polars"), ("pytest", "hypothesis", "mpmath", "statsmodels")


def lowest(requirement: str) -> str:
    """The requirement with its lower bound as the version, whatever the last places are."""
    name, version = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement).groups()  # type: ignore[union-attr]  # our own file
    return f"{name}=={version}.*"


def main() -> None:
    """Print them on one line."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    tables = [line for line in project["optional-dependencies"]["dev"] if line.startswith(TABLES)]
    print(*map(lowest, [*project["dependencies"], *tables]), *RUNNERS)


if __name__ == "__main__":
    main()
