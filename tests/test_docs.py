"""Pages print what they show, their figures are those that were measured, the site builds, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import commands  # noqa: E402  # after the path
import figures  # noqa: E402
import page_outputs  # noqa: E402
from badges import badges  # noqa: E402  # after the path
from site_links import broken_links  # noqa: E402

PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
# Written from the classes, the commands, or a run of scikit-learn's tests; what is in them is checked where they are made.
GENERATED = {"docs/conformance.md", "docs/differences.md", "docs/commands.md"}
# Their examples are commands; tests/test_cli.py runs them.
COMMANDS = {"docs/command-line.md"}
MADE = {"gallery", "reference"}  # folders that the build of the site writes
SITE = ["sphinx", "pydata_sphinx_theme", "myst_parser", "sphinx_gallery", "numpydoc", "sphinx_copybutton"]


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in PAGES if "```python" in text_of(page)])
def test_pages_print_what_they_show(page, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)  # what a page writes is not left in the tree
    if page == "docs/accelerate.md":  # it counts the fits of its process, where other tests have made some
        check = (
            f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); import page_outputs; text = sys.stdin.read(); "
            "sys.exit(not all(page_outputs.alike(one.text or '', one.found) for one in page_outputs.run(text)))"
        )
        done = subprocess.run([sys.executable, "-c", check], input=text_of(page), text=True, check=False)
        assert done.returncode == 0, f"python tools/page_outputs.py {page}"
        return
    for shown in page_outputs.run(text_of(page)):
        assert page_outputs.alike(shown.text or "", shown.found), f"python tools/page_outputs.py {page}\n{shown.code}"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_an_example_that_runs(page):
    assert page in GENERATED | COMMANDS or "```python" in text_of(page)


def test_an_output_that_differs_is_noticed():
    page = "```python\nprint('one', 0.25)\n```\n\n```text\ntwo 0.5\n```\n"
    (shown,) = page_outputs.run(page)
    assert not page_outputs.alike(shown.text, shown.found)
    assert "```text\none 0.25\n```" in page_outputs.filled(page, [shown])


@pytest.mark.parametrize("page", [figures.README, figures.PERFORMANCE], ids=["README", "performance"])
def test_figures_are_those_of_the_last_benchmarks(page):
    stored = page.read_text(encoding="utf-8")
    assert "<!-- end of" in stored
    entries = figures.read(ROOT / "benchmarks" / "results.json")
    assert figures.filled(stored, entries) == stored, "stale: run python tools/figures.py"


def test_badges_say_what_the_project_says():
    for path, text in badges(figures.read(ROOT / "benchmarks" / "results.json")).items():
        assert path.read_text(encoding="utf-8") == text, "stale: run python tools/figures.py"
        assert f"docs/images/{path.name}" in text_of("README.md")


def test_stale_figures_are_noticed():
    entries = figures.read(ROOT / "benchmarks" / "results.json")
    entries["b07_lda"]["result"]["rows"][0]["seconds"] = [1e-9]
    for page in (figures.README, figures.PERFORMANCE):
        stored = page.read_text(encoding="utf-8")
        assert figures.filled(stored, entries) != stored


def test_the_page_of_commands_is_that_of_the_command_line():
    assert commands.page() == commands.PAGE.read_text(encoding="utf-8"), "stale: run python tools/commands.py"


def test_links_between_pages_lead_to_files():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
            path = urlsplit(target).path
            if path and not urlsplit(target).scheme and path.split("/")[0] not in MADE:
                assert (ROOT / page).parent.joinpath(path).exists(), f"{page} links to {target}"


def test_broken_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a id="here"></a><a href="#here"></a><a href="b.html#there"></a><a href="c.html"></a>'
    )
    (tmp_path / "b.html").write_text('<p id="elsewhere"></p>')
    assert broken_links(tmp_path) == ["a.html → b.html#there", "a.html → c.html"]


@pytest.mark.slow
@pytest.mark.skipif(
    any(find_spec(name) is None for name in SITE),
    reason="the extra `docs` is not installed: pip install 'separatrix[docs]'",
)
def test_the_site_builds_without_a_warning_and_its_links_resolve(tmp_path):
    """The pages, the reference and the gallery, as `make docs` builds them."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    ran = subprocess.run(
        [*command, "-d", tmp_path / "doctrees", "docs", tmp_path / "site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert broken_links(tmp_path / "site") == []
