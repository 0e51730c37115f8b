"""What is installed: the wheel has every file, and a stranger's first five minutes work with nothing but it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "separatrix"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def other_files() -> set[str]:
    """What the package needs beside its modules."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE).as_posix() for path in files if path.suffix not in {".py", ".pyc"}}


def test_every_file_of_the_package_is_named_as_its_data() -> None:
    patterns = SETTINGS["tool"]["setuptools"]["package-data"]["separatrix"]
    named = {path.relative_to(PACKAGE).as_posix() for pattern in patterns for path in PACKAGE.glob(pattern)}
    assert other_files() <= named
    for needed in ("py.typed", "explore/static/index.html", "report/templates/report.html.j2"):
        assert needed in named
    assert any(name.endswith(".cu") for name in named)


def test_every_folder_of_the_package_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert all((folder / "__init__.py").exists() for folder in folders)


def test_the_extras_of_the_readme_exist() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith("pip install separatrix"))
    named = set(re.findall(r"\[(\w+)\]", line))
    assert named
    assert named <= SETTINGS["project"]["optional-dependencies"].keys()


@pytest.mark.slow
def test_a_stranger_builds_installs_and_uses_it(tmp_path: Path) -> None:
    """Build → new environment → install → compare, predict, export (tools/release.sh) → the examples of README.md."""
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    release = subprocess.run(
        [ROOT / "tools" / "release.sh", tmp_path],
        env=clean | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert release.returncode == 0, release.stdout + release.stderr
    (wheel,) = tmp_path.glob("separatrix-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    modules = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    assert {f"separatrix/{name}" for name in other_files() | modules} <= inside

    python = tmp_path / "fresh" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "pandas"], check=True, env=clean)  # what README's reader has
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "examples").symlink_to(ROOT / "examples")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    code = "\n".join([*blocks, "import separatrix", "print(separatrix.__file__)"])
    ran = subprocess.run([python, "-c", code], cwd=empty, env=clean, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert str(tmp_path) in ran.stdout.splitlines()[-1]
    assert "Certificate: proven" in ran.stdout
    assert (empty / "report.html").stat().st_size > 10_000
