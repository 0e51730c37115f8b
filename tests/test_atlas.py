"""The atlas: what is drawn, how a ladder is climbed, what a problem's rows come to, and a whole run on two small problems."""

from __future__ import annotations

import json
import math
import sys
import time
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.atlas import __main__ as atlas  # noqa: E402
from benchmarks.atlas.draw import BUDGET, ENTRIES, FAMILIES, draw  # noqa: E402
from benchmarks.atlas.field import field  # noqa: E402
from benchmarks.atlas.named import problem as named  # noqa: E402
from benchmarks.atlas.quality import quality  # noqa: E402
from benchmarks.atlas.race import CutOff, Track  # noqa: E402
from benchmarks.atlas.rows import make  # noqa: E402
from benchmarks.atlas.verdict import Summary, judge  # noqa: E402
from benchmarks.data import logistic_rows  # noqa: E402
from benchmarks.ladder import climb, shown  # noqa: E402
from benchmarks.posterior import importance_sampled  # noqa: E402


def test_a_seed_is_a_problem():
    first, again = [draw(seed) for seed in range(40)], [draw(seed) for seed in range(40)]
    assert first == again
    assert len({problem.estimator for problem in first}) > 8
    small = min(first, key=lambda problem: problem.entries)
    one, two = make(small), make(small)
    assert np.array_equal(one.y, two.y)
    assert (abs(one.X - two.X)).max() == 0


# Only scikit-learn is there without `make bench`, and some problems are for the other peers.
PEERS = all(find_spec(name) for name in ("liblinear", "skglm", "celer", "glum", "sklearnex"))


@pytest.mark.parametrize("estimator", list(FAMILIES))
def test_what_is_drawn_can_be_fitted(estimator):
    for seed in range(25):
        problem = draw(seed, estimator)
        family = FAMILIES[estimator]
        assert problem.entries <= ENTRIES
        assert family.work(problem) <= BUDGET
        assert 2 <= problem.classes <= max(2, family.most)
        ours, *peers = field(problem)
        assert ours.ours
        assert peers or not PEERS
        assert not any(peer.ours for peer in peers)
        assert len({each.name for each in (ours, *peers)}) == len(peers) + 1


def test_rows_are_what_the_problem_says():
    for columns, extra in [
        ("random", {}),
        ("correlated", {}),
        ("smooth", {}),
        ("text", {"nonzeros": 5}),
        ("counts", {"nonzeros": 5}),
        ("categories", {}),
    ]:
        data = make(named("softmax", 60, 25, 3, columns=columns, dtype="float32", order="F", **extra))
        assert data.X.shape == (60, 25)
        assert sorted(set(data.y)) == [0, 1, 2]
        if columns in ("text", "counts"):
            assert sp.issparse(data.X)
            assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
        if columns == "categories":
            assert data.X.dtype == np.int64
        else:
            assert data.X.dtype == np.float32


def test_the_loosest_rung_that_reaches_is_chosen():
    errors = {None: 1e-2, 1e-4: 5e-7, 1e-6: 0.0}
    tried = []

    def fit(rung):
        tried.append(rung)
        return 1.0, errors[rung]

    climbed = climb((None, 1e-4, 1e-6), 1e-6, fit)
    assert climbed.reached.rung == 1e-4
    assert tried == [None, 1e-4]
    short = climb((None, 1e-4), 1e-9, fit)
    assert short.reached is None
    assert short.nearest.rung == 1e-4
    cut = climb((None, 1e-4), 1e-9, lambda rung: None)
    assert (cut.reached, cut.nearest) == (None, None)
    unknown = climb((None, 1e-4), 1e-9, lambda rung: (1.0, math.nan if rung else 1.0))
    assert unknown.nearest.rung is None
    assert (shown(None), shown(1e-4)) == ("default", "tol=1e-4")


def row(name, seconds, status="reached", error=0.0, ours=False, limit=4.0):
    common = {"rung": None, "repeats": 5, "note": ""}
    return {"name": name, "ours": ours, "status": status, "error": error, "seconds": seconds, "limit": limit, **common}


def test_verdicts():
    problem = draw(0)
    ours = row("separatrix", 2.0, ours=True)
    level = judge(problem, [ours, row("a", 1.92), row("b", 9.0), row("c", 0.1, "short of the quality")])
    assert (level.ratio, level.peer, level.won) == (pytest.approx(0.96), "a", True)
    assert not judge(problem, [ours, row("a", 1.8)]).won
    alone = judge(
        problem, [ours, row("c", 1.0, "short of the quality", 1e-3), row("d", 0.1, "short of the quality", 1.0)]
    )
    assert (alone.won, alone.alone, alone.ratio, alone.peer) == (True, True, 0.5, "c")
    cut = judge(problem, [ours, row("a", None, "cut off"), row("b", None, "cut off", limit=6.0)])
    assert (cut.ratio, cut.bound, cut.won) == (2.0, True, True)
    missed = judge(problem, [row("separatrix", 1.0, "short of the quality", 1e-5, ours=True), row("a", 5.0)])
    assert (missed.ratio, missed.won) == (0.0, False)
    undecided = judge(problem, [row("separatrix", None, "cut off", ours=True), row("a", None, "cut off")])
    assert undecided.undecided
    summary = Summary.of([level, alone, cut, missed, undecided])
    assert (summary.problems, summary.share, summary.least) == (4, 0.75, 0.0)
    assert not summary.met
    assert Summary.of([level, alone]).least == pytest.approx(0.96)


@pytest.mark.parametrize("estimator", ["logistic", "hinge", "squared hinge", "SVC", "Ridge", "LDA", "GaussianNB"])
def test_all_contenders_of_a_small_problem_agree(estimator):
    more = {"SVC": {"variant": "rbf"}}.get(estimator, {})
    problem = named(estimator, 80, 4, **more)
    data = make(problem)
    measure = quality(problem, data)
    values = {}
    for each in field(problem):
        rung = each.rungs[-1] if len(each.rungs) > 1 else None
        values[each.name] = measure.see(each.build(rung).fit(data.X, data.y), each.aim)
    assert len(values) > 1
    assert max(measure.error(value, "") for value in values.values()) <= measure.limit


def test_a_wrong_answer_is_short_of_the_quality():
    problem = named("logistic", 80, 4)
    data = make(problem)
    measure = quality(problem, data)
    model = field(problem)[0].build(1e-8).fit(data.X, data.y)
    measure.see(model, "")
    model.coef_ = model.coef_ * 1.1
    assert measure.error(measure.see(model, ""), "") > 1e-4
    model.coef_ = model.coef_ * np.nan
    assert measure.error(measure.see(model, ""), "") == math.inf


def test_scores_that_are_equal_to_rounding_are_level():
    problem = named("BernoulliNB", 90, 4, 3, columns="counts")
    data = make(problem)
    data = type(data)(np.ones_like(data.X), data.y, data.description)  # nothing to tell the classes by
    measure = quality(problem, data)
    for each in field(problem):
        assert measure.error(measure.see(each.build(None).fit(data.X, data.y), ""), "") == 0.0


def test_importance_sampling_knows_the_posterior():
    data = logistic_rows(200, 2, 2)(1.0)
    found = importance_sampled(data.X, data.y.astype(float), 4_000)
    axes = [np.linspace(m - 6 * s, m + 6 * s, 31) for m, s in zip(found.mean, found.deviations, strict=True)]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    eta = np.column_stack([data.X, np.ones(len(data.y))]) @ grid.T
    log = data.y @ eta - np.logaddexp(0, eta).sum(axis=0) - 0.5 * np.square(grid[:, :2]).sum(axis=1)
    weights = np.exp(log - log.max())
    mean = weights @ grid / weights.sum()
    assert found.effective > 2_000
    assert np.abs((found.mean - mean) / found.deviations).max() < 0.1


def test_a_problem_without_a_reference_is_passed_over(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(atlas, "draw", lambda seed, estimator: named("QDA", 20, 30))
    assert atlas.main(["--only", "1", "--output", str(tmp_path / "ATLAS.md")]) == 0
    assert "cannot be raced" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_whole_run(tmp_path, capsys):
    output = tmp_path / "ATLAS.md"
    seeds = [seed for seed in range(400) if draw(seed, "GaussianNB").entries < 5_000][:2]
    command = ["--estimator", "GaussianNB", "--only", *map(str, seeds), "--output", str(output)]
    assert atlas.main(command) == 0
    page = output.read_text()
    assert page.startswith("# Atlas: 2 problems: won or level (≥ 0.95×) on ")
    assert "## The worst 2" in page
    assert all(str(seed) in page for seed in seeds)
    assert (tmp_path / "atlas.svg").read_text().lstrip().startswith("<?xml")
    stored = json.loads((tmp_path / "atlas.json").read_text())
    assert [entry["problem"]["seed"] for entry in stored] == seeds
    assert {line["status"] for entry in stored for line in entry["rows"]} == {"reached"}
    assert "--only" in capsys.readouterr().out
    assert "| B24 the atlas | no ratio below 0.7× | least " in (tmp_path / "RESULTS.md").read_text()


def test_a_fit_that_waits_for_numbas_compiler_is_not_cut_off():
    """Compiling is done once on a machine; a fit that takes as long by itself is cut off."""
    from separatrix.kernels import COMPILER

    class Slow:
        def __init__(self, lock):
            self.lock = lock

        def fit(self, X, y):
            with self.lock:
                end = time.process_time() + 0.4
                while time.process_time() < end:
                    pass

    told = []
    track = Track(SimpleNamespace(X=None, y=None), None, told.append)
    seconds, _ = track.run(SimpleNamespace(name="ours", build=lambda rung: Slow(COMPILER)), None, 0.1, "climb")
    assert seconds >= 0.4
    assert len([event for event in told if event["event"] == "begin"]) > 1  # the supervisor waits, too
    with pytest.raises(CutOff):
        track.run(SimpleNamespace(name="ours", build=lambda rung: Slow(nullcontext())), None, 0.1, "climb")
