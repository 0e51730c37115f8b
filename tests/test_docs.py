"""The examples of the README run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from sklearn.datasets import load_wine

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md") if "```python" in path.read_text(encoding="utf-8"))


def examples(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.S)


def test_readme_examples_run_in_order(tmp_path, monkeypatch, capsys):
    X, y = load_wine(return_X_y=True, as_frame=True)
    (tmp_path / "clicks").mkdir()
    table = X.assign(bought=pd.Series(["no", "yes", "yes"])[y].to_numpy(), times_seen=1.0)
    table.iloc[:100].to_parquet(tmp_path / "clicks" / "a.parquet")
    table.iloc[100:].to_parquet(tmp_path / "clicks" / "b.parquet")
    X.to_parquet(tmp_path / "tomorrow.parquet")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    blocks = examples("README.md")
    assert len(blocks) == 10
    for code in blocks:
        exec(code, space)
    assert space["proba"].shape == (178, 2)
    assert "1 pass over the data" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES)
def test_pages_run(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    space: dict[str, object] = {}
    for code in examples(f"docs/{page}"):
        exec(code, space)
