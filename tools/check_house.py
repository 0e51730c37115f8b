"""Rules of the tree that no linter knows: `make check` runs them, and no exceptions are listed.

- A private name (`_name`) is read only in the file that defines it, or by a subclass through `self`.
- A class name means one thing in the whole tree.
- No file has more than 400 lines, no folder more than 24 files.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "separatrix"
MOST_LINES, MOST_FILES = 400, 24


def private_reads(tree: ast.Module) -> list[tuple[int, str]]:
    """(line, expression) of every `other._name` whose name the file does not define."""
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    own |= {node.attr for node in attributes if _is_self(node.value)}
    return [
        (node.lineno, ast.unparse(node))
        for node in attributes
        if re.match(r"_[a-z]", node.attr) and node.attr not in own and not _is_self(node.value)
    ]


def _is_self(node: ast.expr) -> bool:
    of_super = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "super"
    return of_super or (isinstance(node, ast.Name) and node.id in ("self", "cls"))


def faults(root: Path = ROOT) -> list[str]:
    """Every breach of the rules below a folder, in a sentence each."""
    found, homes, folders = [], defaultdict(list), Counter[Path]()
    for file in sorted(root.rglob("*.py")):
        name, text = file.relative_to(root), file.read_text(encoding="utf-8")
        tree, lines = ast.parse(text), len(text.splitlines())
        folders[name.parent] += 1
        if lines > MOST_LINES:
            found.append(f"{name} has {lines} lines, more than {MOST_LINES}: cut it by subject.")
        found += [
            f"{name}:{line} reads {read}, which is private to another file: make it public, or do without."
            for line, read in private_reads(tree)
        ]
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(name))
    found += [f"{name} is a class in {' and in '.join(places)}." for name, places in homes.items() if len(places) > 1]
    found += [
        f"{name} has {count} files, more than {MOST_FILES}." for name, count in folders.items() if count > MOST_FILES
    ]
    return found


if __name__ == "__main__":
    for sentence in (sentences := faults()):
        print(sentence)
    sys.exit(bool(sentences))
