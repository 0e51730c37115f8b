"""The workload of scikit-learn's gallery: what counts as the same output, what is timed, what is published. No network."""

import io
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imsave

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import report  # noqa: E402
from benchmarks.children import ChildFailed, call  # noqa: E402
from benchmarks.gallery.likeness import number_difference, pixel_difference  # noqa: E402
from benchmarks.gallery.observe import Watch  # noqa: E402
from benchmarks.gallery.scripts import SCRIPTS, address_of, fetch, unpack  # noqa: E402
from benchmarks.result import Result  # noqa: E402
from benchmarks.workload import Settings  # noqa: E402
from benchmarks.workloads import b25_gallery  # noqa: E402

SCRIPT = """
import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

X, y = make_blobs(centers=2, random_state=0)
model = LogisticRegression().fit(X, y)
LogisticRegression(C=0.1).fit(X, y)
print(f"Accuracy: {model.score(X, y):.2f}")
plt.scatter(*X.T, c=model.predict(X))
plt.show()
"""


def test_printed_numbers_are_compared_and_words_are_equal():
    assert number_difference("Accuracy: 0.95 of 100", "Accuracy: 0.95 of 100") == 0
    assert number_difference("Accuracy: 0.95\n", "Accuracy: 0.96\n") == pytest.approx(0.01)
    assert number_difference("loss 1e3", "loss 1.1e3") == pytest.approx(100 / 1100)
    assert number_difference("loss 1e-9", "loss -2e-9") < 1e-8
    assert number_difference("Accuracy: 0.95", "Score: 0.95") is None
    assert number_difference("[1 2 3]", "[1 2]") is None


def test_the_worst_pair_of_figures_counts(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    picture = np.zeros((10, 10, 3))
    for folder in (one, other):
        imsave(folder / "0.png", picture)
    assert pixel_difference(str(one), str(other)) == 0
    imsave(one / "1.png", picture)
    assert pixel_difference(str(one), str(other)) == 1
    changed = picture.copy()
    changed[0, :5] = 1.0
    changed[1] = 0.05  # not to be seen
    imsave(other / "1.png", changed)
    assert pixel_difference(str(one), str(other)) == pytest.approx(0.05)


def test_fits_inside_of_fits_count_once():
    watch = Watch()
    inner = watch.around(lambda: 1)
    outer = watch.around(lambda: inner() + inner())
    assert outer() == 2
    assert inner() == 1
    assert len(watch.seconds) == 2


def test_the_index_gives_address_and_hash():
    address = "https://files/scikit_learn-1.9.1.tar.gz"
    page = f'<a href="{address}#sha256={"0a" * 32}" >scikit_learn-1.9.1.tar.gz</a>'
    assert address_of("scikit_learn-1.9.1.tar.gz", page) == (address, "0a" * 32)
    with pytest.raises(LookupError, match="has no other"):
        address_of("other.tar.gz", page)


def test_only_examples_are_unpacked_and_they_are_kept(tmp_path, monkeypatch):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as files:
        for name in ("sk-1/examples/svm/plot_a.py", "sk-1/setup.py"):
            files.addfile(tarfile.TarInfo(name))
    unpack(archive.getvalue(), tmp_path)
    assert [path.name for path in tmp_path.rglob("*.py")] == ["plot_a.py"]
    monkeypatch.setattr("benchmarks.gallery.scripts.metadata.version", lambda name: "1")
    (tmp_path / "scikit_learn-1" / "examples").mkdir(parents=True)
    assert fetch(str(tmp_path)) == str(tmp_path / "scikit_learn-1" / "examples")


def test_ten_scripts_or_more():
    assert len(SCRIPTS) == len({Path(script).name for script in SCRIPTS}) >= 10


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "plot_blobs.py"
    path.write_text(SCRIPT)
    return str(path)


def test_a_script_by_both_sides(script):
    found = b25_gallery.compared(script, 1)
    assert found.numbers == 0
    assert found.pixels <= 0.01
    assert [len(found.watched[side][0]["seconds"]) for side in b25_gallery.SIDES] == [2, 2]
    assert found.fit_ratio > 0
    verdict, fits = found.verdicts()
    assert fits.goal == "plot_blobs.py: a fit ≥ 1×"
    assert verdict.goal == "plot_blobs.py: ≥ 1×, the same output and figures"
    page = report.render({"b25": report.entry("B25", "gallery", {"scale": 1.0}, CONDITIONS, Result(found.rows()))})
    assert "| plot_blobs.py, separatrix |" in page
    assert "| 2 fits, " in page


def test_a_script_that_breaks_ends_neither_the_others_nor_the_page(script, tmp_path, monkeypatch):
    (tmp_path / "plot_broken.py").write_text("1 / 0")
    monkeypatch.setattr(b25_gallery, "SCRIPTS", ("plot_broken.py",))
    monkeypatch.setattr(
        b25_gallery, "call", lambda name, **given: str(tmp_path) if "fetch" in name else call(name, **given)
    )
    result = b25_gallery.WORKLOAD.run(Settings(repeats=1))
    assert [verdict.met for verdict in result.verdicts] == [False, False]
    assert "ZeroDivisionError" in result.rows[0].note
    with pytest.raises(ChildFailed, match="ZeroDivisionError"):
        b25_gallery.process_seconds(b25_gallery.THEIRS, str(tmp_path / "plot_broken.py"))


@pytest.mark.parametrize(
    ("theirs", "ours", "numbers", "pixels", "met"),
    [
        (2.0, 1.0, 0.0, 0.0, True),
        (1.0, 2.0, 0.0, 0.0, False),
        (2.0, 1.0, None, 0.0, False),
        (2.0, 1.0, 0.0, 0.5, False),
    ],
)
def test_a_verdict_is_about_time_and_output(theirs, ours, numbers, pixels, met):
    seconds = {b25_gallery.THEIRS: [theirs], b25_gallery.OURS: [ours]}
    watched = {side: [{"seconds": [value, value], "handed_back": 0}] for side, (value,) in seconds.items()}
    found = b25_gallery.Comparison("plot_a.py", seconds, watched, numbers, pixels)
    assert found.total_ratio == found.fit_ratio == theirs / ours
    whole, fits = found.verdicts()
    assert whole.met is met
    assert fits.met is (theirs >= ours)


def wait():
    time.sleep(60)


def test_a_script_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    (tmp_path / "plot_slow.py").write_text("import time; time.sleep(60)")
    monkeypatch.setattr(b25_gallery, "LIMIT", 0.5)
    with pytest.raises(ChildFailed, match="not done after"):
        b25_gallery.process_seconds(b25_gallery.THEIRS, str(tmp_path / "plot_slow.py"))
    with pytest.raises(ChildFailed, match=r"wait was not done after 0.5 s"):
        call("tests.test_gallery:wait", limit=0.5)


def test_the_workload_imports_no_numerical_library():
    code = "import sys, benchmarks.workloads.b25_gallery; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


CONDITIONS = {"date": "2020-01-01", "commit": "abc", "cpu": "C", "threads": "1", "versions": {"numpy": "2"}}
