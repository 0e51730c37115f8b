"""docs/architecture.md shows the tree as it is: every file and function it names exists, no walk is longer than seven."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "separatrix"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
sys.path.insert(0, str(ROOT / "tools"))

from check_house import private_reads  # noqa: E402  # found through the line above


def defined(file: Path) -> set[str]:
    """Functions of a file, methods with their class."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return names


def test_every_hop_is_a_function_and_no_walk_is_longer_than_seven() -> None:
    walks = PAGE.split("## Three walks")[1].split("\n## ")[0].split("### ")[1:]
    assert len(walks) == 3
    for walk in walks:
        hops = re.findall(r"^\d\. `([\w/]+\.py): ([\w.]+)`", walk, flags=re.M)
        numbered = re.findall(r"^\d\. ", walk, flags=re.M)
        assert 1 < len(hops) == len(numbered) <= 7
        for file, name in hops:
            assert name in defined(SOURCE / file), (file, name)


def test_the_tree_of_the_page_is_the_tree() -> None:
    tree = PAGE.split("```")[1]
    rooms = {folder.name for folder in SOURCE.iterdir() if folder.is_dir() and (folder / "__init__.py").exists()}
    drawn = re.findall(r"^  (\w+)/ ", tree, flags=re.M)
    assert set(drawn) == rooms
    room = SOURCE
    for line in tree.splitlines():
        if found := re.match(r"  (\w+)/ ", line):
            room = SOURCE / found[1]
        for file in re.findall(r"\b\w+\.py\b", line):
            assert (room / file).exists() or list(room.rglob(file)), f"{file} is not in {room.name}/"


def test_files_that_the_page_names_elsewhere_exist() -> None:
    for file in re.findall(r"`([\w/]+/\w+\.py)`", PAGE):
        assert (SOURCE / file).exists() or (ROOT / file).exists(), file


def test_the_checker_of_private_names_finds_them() -> None:
    """Reads through another object count, those of one's own class and of a base do not."""
    read = "class A:\n    def f(self, other):\n        return self._own, other._own, super()._base\n"
    assert private_reads(ast.parse(read)) == []
    assert private_reads(ast.parse("def f(model):\n    return model._secret.x\n")) == [(2, "model._secret")]
    assert private_reads(ast.parse("def f(x):\n    return x.__dict__, x._X, x.public\n")) == []


def test_what_is_private_in_scikit_learn_is_imported_in_one_place() -> None:
    found = []
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
                parts = [*node.module.split("."), *(name.name for name in node.names)]
                found += [file.relative_to(SOURCE).as_posix() for part in parts if part.startswith("_")]
    assert set(found) == {"models/scikit_learn.py"}
