"""The examples: short, quick, each with a picture, and titled as a gallery wants them. All run in one process."""

from __future__ import annotations

import re
import runpy
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

mpl.use("Agg")

import matplotlib.pyplot as plt  # after the choice of a backend that needs no window

import separatrix

FOLDER = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(FOLDER.glob("plot_*.py"))
MOST_LINES, MOST_SECONDS = 40, 5.0


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


def test_there_is_one_for_every_idea_of_the_list():
    assert len(SCRIPTS) == 24


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_is_short_and_titled(script):
    text = script.read_text(encoding="utf-8")
    assert text.count("\n") <= MOST_LINES
    head = re.match(r'"""\n(?P<title>[^\n]+)\n(?P<bar>=+)\n\n(?P<words>.+?)\n"""\n', text, flags=re.DOTALL)
    assert head is not None, "a title underlined with =, an empty line, and what there is to see"
    assert len(head["title"]) == len(head["bar"])
    assert "\n\n" not in head["words"] and len(head["words"].split()) >= 30  # one paragraph
    assert "from separatrix" in text and text.endswith("plt.show()\n")


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs_in_time_and_draws(script, monkeypatch):
    monkeypatch.chdir(FOLDER)
    monkeypatch.setattr(plt, "show", lambda: None)
    with separatrix.config(threads=1):
        start = time.process_time()  # a machine that is busy with other work does not count
        runpy.run_path(str(script), run_name="__main__")
        taken = time.process_time() - start
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert len(figures) == 1
    assert all(ax.has_data() for ax in figures[0].axes)
    canvas = FigureCanvasAgg(figures[0])  # whatever backend other tests have chosen
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba()).view(np.uint32)
    assert len(np.unique(pixels)) > 50  # more than axes and text
    assert taken < MOST_SECONDS
