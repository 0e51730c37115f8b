"""What pages print: run the Python of a page from top to bottom, and keep its output below each block that prints.

`python tools/page_outputs.py` writes the outputs of README.md and docs/*.md anew; tests/test_docs.py checks that they are those
of a run. Numbers differ from machine to machine, and seconds from run to run: the words are compared.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?P<shown>\n```text\n(?P<text>.*?)```\n)?", flags=re.S)
_MOST_LINES, _MOST_CHARACTERS = 30, 160
_TEMPORARY = re.compile(re.escape(tempfile.gettempdir()) + r"/\w+")
_NUMBER = re.compile(r"-?\d+(\.\d*)?(e[+-]?\d+)?")


@dataclass
class Shown:
    """A block of a page: its code, the output that stands below it (or ``None``), and that of a run."""

    code: str
    text: str | None
    found: str


def run(page: str, space: dict[str, object] | None = None) -> list[Shown]:
    """Run the blocks of a page in order, each with what it printed."""
    space = {} if space is None else space
    blocks = []
    for match in BLOCK.finditer(page):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(match["code"], "page", "exec"), space)
        blocks.append(Shown(match["code"], match["text"], cut(out.getvalue())))
    return blocks


def cut(text: str) -> str:
    """The first lines of a long output, and the beginnings of long lines."""
    text = _TEMPORARY.sub("…", text)  # such a folder has another name the next time
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    lines = [line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]} …" for line in lines]
    return "\n".join([*lines[:_MOST_LINES], "…"] if len(lines) > _MOST_LINES else lines) + "\n" if text.strip() else ""


def alike(one: str, other: str) -> bool:
    """Whether two outputs say the same, but for their numbers."""
    first, second = (" ".join(_NUMBER.sub("#", text).split()) for text in (one, other))
    return first == second


def filled(page: str, blocks: list[Shown]) -> str:
    """The page with the outputs of its blocks."""
    following = iter(blocks)

    def block(match: re.Match[str]) -> str:
        shown = next(following)
        kept = shown.text is not None and alike(shown.text, shown.found)
        text = shown.text if kept else shown.found
        return f"```python\n{match['code']}```\n" + (f"\n```text\n{text}```\n" if text else "")

    return BLOCK.sub(block, page)


def main() -> None:
    """Write the outputs of every page anew. What the pages themselves write is left in a folder that goes away."""
    paths = [Path(name).resolve() for name in sys.argv[1:]] or [
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
    ]
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "examples").symlink_to(ROOT / "examples")
            os.chdir(folder)
            page = path.read_text(encoding="utf-8")
            path.write_text(filled(page, run(page)), encoding="utf-8")
            os.chdir(ROOT)


if __name__ == "__main__":
    main()
