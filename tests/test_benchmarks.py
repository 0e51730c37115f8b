"""The benchmark runner, on tiny fakes: what counts, what is left out, what is written. Nothing here asserts a time."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import optimum, reference, report, run, timing  # noqa: E402
from benchmarks.contender import OURS, Contender, Peer  # noqa: E402
from benchmarks.data import gaussian_classes, logistic_rows, weighted_documents  # noqa: E402
from benchmarks.goals import AtMostMemory, AtMostSeconds, AtMostTimes, Faster, FasterThan  # noqa: E402
from benchmarks.result import FAILED, MISSED_QUALITY, NOT_INSTALLED, OK, Result, Row, Verdict, one_line  # noqa: E402
from benchmarks.workload import discover  # noqa: E402
from benchmarks.workloads import b13_tables, b18_growth, b19_small  # noqa: E402

INSTALLED = Peer("other", distribution="numpy", module="numpy")
ABSENT = Peer("absent", distribution="no-such-thing", module="no_such_thing")
DATA = SimpleNamespace(X=None, y=None)


class Clock:
    """Time that passes only when a fake model is fitted."""

    def __init__(self):
        self.now = 0.0
        self.fitted = []

    def __call__(self):
        return self.now

    def model(self, name, seconds=1.0, error=0.0):
        def fit(X, y):
            self.fitted.append(name)
            if error is None:
                raise ValueError("cannot be fitted")
            self.now += seconds

        return lambda: SimpleNamespace(fit=fit, error=error)

    def race(self, *contenders, repeats=3):
        return timing.alternate(contenders, DATA, lambda model: model.error, 1e-8, repeats, self)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(timing, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(timing, "gc", SimpleNamespace(collect=lambda: None))


@pytest.fixture
def clock():
    return Clock()


def test_contenders_take_turns_after_a_warm_up(clock):
    rows = clock.race(OURS.contender("a", clock.model("a")), INSTALLED.contender("b", clock.model("b")))
    assert clock.fitted == ["a", "b"] * 4
    assert [len(row.seconds) for row in rows] == [3, 3]


def test_a_slow_contender_is_timed_twice(clock):
    rows = clock.race(
        OURS.contender("a", clock.model("a")), INSTALLED.contender("b", clock.model("b", seconds=6.0)), repeats=5
    )
    assert [len(row.seconds) for row in rows] == [5, 2]


def test_a_hopeless_contender_is_not_timed_again(clock):
    rows = clock.race(
        OURS.contender("a", clock.model("a")), INSTALLED.contender("b", clock.model("b", seconds=11.0)), repeats=5
    )
    assert [row.seconds for row in rows] == [[1.0] * 5, [11.0]]
    assert Result(rows).ratio(rows[1]) == pytest.approx(11.0)


def test_a_hopeless_contender_does_not_climb_on(clock):
    ladder = Contender(
        "b", INSTALLED, lambda rung: clock.model(rung, seconds=11.0, error=1.0)(), "peer", rungs=(0.1, 0.2)
    )
    rows = clock.race(OURS.contender("a", clock.model("a")), ladder)
    assert clock.fitted.count(0.1) == 1
    assert 0.2 not in clock.fitted
    assert rows[1].status == MISSED_QUALITY
    assert rows[1].note == "10 times slower than the best before it reaches it"


def test_quick_fits_are_timed_in_batches(clock):
    (row,) = clock.race(OURS.contender("a", clock.model("a", seconds=0.005)))
    assert clock.fitted == ["a"] * (2 + 3 * 4)
    assert row.seconds == pytest.approx([0.005] * 3)


def test_code_that_the_first_fit_loads_does_not_make_batches_short(clock):
    seconds = iter([0.1])
    (row,) = clock.race(OURS.contender("a", lambda: clock.model("a", seconds=next(seconds, 0.0045))()))
    assert clock.fitted == ["a"] * (2 + 3 * 4)
    assert row.seconds == pytest.approx([0.0045] * 3)


def test_contenders_climb_to_the_loosest_rung_that_reaches_the_quality(clock):
    error = {1e-1: 1.0, 1e-2: 1e-9, 1e-3: 0.0}

    def make(rung):
        return clock.model(rung, error=error[rung])()

    ladder = Contender("other b", INSTALLED, make, "peer", rungs=(1e-1, 1e-2, 1e-3))
    (row,) = clock.race(ladder)
    assert (row.rung, row.status, row.error) == (1e-2, OK, 1e-9)
    assert clock.fitted == [1e-1, 1e-2, 1e-2, 1e-2, 1e-2]
    assert "tol=1e-2" in report._note(row)


def test_one_that_misses_the_quality_in_a_round_climbs_on(clock):
    errors = iter([0.0, 0.0, 1.0, 0.0, 0.0])
    ladder = Contender("b", INSTALLED, lambda rung: clock.model(rung, error=next(errors))(), "peer", rungs=(1e-1, 1e-2))
    (row,) = clock.race(ladder)
    assert clock.fitted == [1e-1, 1e-1, 1e-1, 1e-2, 1e-2]
    assert (row.rung, row.status, len(row.seconds)) == (1e-2, OK, 1)


@pytest.mark.parametrize("error", [1e-3, float("nan"), float("inf")])
def test_a_wrong_contender_is_marked_and_out_of_the_ratio(clock, error):
    rows = clock.race(
        OURS.contender("a", clock.model("a", seconds=1.0)),
        INSTALLED.contender("wrong", clock.model("wrong", seconds=0.5, error=error)),
        INSTALLED.contender("right", clock.model("right", seconds=4.0, error=1e-9), default=True),
    )
    result = Result(rows)
    assert [row.status for row in rows] == [OK, MISSED_QUALITY, OK]
    assert result.ratio(rows[1]) is None
    assert result.ratio(rows[2]) == pytest.approx(4.0)
    verdict = Faster(5).judge(result)
    assert verdict.met is False
    assert "4.00× (other right)" in verdict.value
    assert Faster(3).judge(result).met is True


def test_absent_and_broken_peers_are_marked(clock):
    rows = clock.race(
        OURS.contender("a", clock.model("a")),
        ABSENT.contender("b", "no_such_thing:Model"),
        INSTALLED.contender("c", clock.model("c", error=None)),
    )
    assert [row.status for row in rows] == [OK, NOT_INSTALLED, FAILED]
    assert rows[2].note == "ValueError: cannot be fitted"
    verdict = Faster(5).judge(Result(rows))
    assert verdict.met is None
    assert "absent b" in verdict.value


def test_our_own_failure_is_a_missed_goal(clock):
    rows = clock.race(OURS.contender("a", clock.model("a", error=1.0)), INSTALLED.contender("b", clock.model("b")))
    assert Faster(5).judge(Result(rows)) == Verdict("≥ 5× the best peer", f"separatrix a: {MISSED_QUALITY}", False)


def test_medians_and_limits():
    ours = Row("ours", "ours", seconds=[9.0, 1.0, 2.0], peak_extra=9)
    other = Row("other", "context", seconds=[1.0, 0.5])
    result = Result([ours, other], x_bytes=100)
    assert (ours.median, other.median) == (2.0, 0.75)
    assert AtMostTimes(3, "other").judge(result).met is True
    assert AtMostTimes(2, "other").judge(result).met is False
    assert AtMostTimes(2, "nobody").judge(result).met is None
    assert FasterThan(0.3, "other").judge(result) == Verdict("≥ 0.3× other", "0.38×", True)
    assert FasterThan(0.5, "other").judge(result).met is False
    assert FasterThan(0.5, "nobody").judge(result).met is None
    assert AtMostSeconds(0.75, "other").judge(result).met is True
    assert AtMostSeconds(0.7, "other").judge(result).met is False
    assert AtMostMemory(0.10).judge(result).met is True
    assert AtMostMemory(0.08).judge(result).met is False
    assert AtMostMemory(0.10).judge(Result([Row("ours", "ours")], x_bytes=100)).met is None


def entry(title, met, seconds=1.0):
    conditions = {"date": "2020-01-01", "commit": "abc", "cpu": "C", "threads": "1", "versions": {"numpy": "2"}}
    result = Result(
        [Row("ours", "ours", seconds=[seconds]), Row("peer", "peer", status=MISSED_QUALITY, seconds=[seconds])],
        verdicts=[Verdict("≥ 5× the best peer", "4.00×", met)],
    )
    return report.entry("B1", title, {"repeats": 1, "scale": 1.0}, conditions, result)


def test_one_table_says_what_is_won_then_what_is_missed():
    page = report.render({"a": entry("first", False), "b": entry("second", True), "c": entry("third", None)})
    lines = [line for line in page.splitlines() if line]
    assert lines[0] == "# Benchmarks: 1 of 3 goals met, 1 missed"
    assert lines[3:6] == [
        "| met | B1 second | ≥ 5× the best peer | 4.00× |",
        "| **missed** | B1 first | ≥ 5× the best peer | 4.00× |",
        "| could not be judged | B1 third | ≥ 5× the best peer | 4.00× |",
    ]
    assert MISSED_QUALITY in page
    assert report.render({"a": entry("first", True)}).startswith("# Benchmarks: 1 of 1 goals met, none missed\n")


def test_other_workloads_are_kept(tmp_path):
    output = tmp_path / "new" / "RESULTS.md"
    report.save(output, {"b": entry("second", True), "a": entry("first", True)})
    entries = report.read(output.with_name("results.json"))
    entries["b"] = entry("second", True, seconds=7.0)
    report.save(output, entries)
    page = output.read_text()
    assert page.index("## B1 first") < page.index("## B1 second")
    assert "| ours | 1.00 |" in page
    assert "| ours | 7.00 |" in page
    assert sorted(path.name for path in output.parent.iterdir()) == ["RESULTS.md", "results.json"]
    assert report.read(output.with_name("results.json")) == entries


def test_errors_are_published_without_paths():
    message = "cannot import name 'A' from 'separatrix' (/home/me/src/separatrix/__init__.py)\nmore"
    assert one_line(ImportError(message)) == "ImportError: cannot import name 'A' from 'separatrix'"
    assert one_line("a ratio of 1/2 | n/a") == "a ratio of 1/2 / n/a"


def test_a_data_set_that_no_peer_solves_is_said_to_be_so():
    alone = b19_small.verdict("≥ 1×", [(2.0, "iris"), (np.inf, "wine")])
    assert (alone.value, alone.met) == ("iris 2.00×, wine (no peer reaches the quality)", True)
    assert not b19_small.verdict("≥ 1×", [(np.inf, "iris"), (0.5, "wine")]).met


def test_workloads_are_found_by_listing_the_folder():
    workloads = discover()
    assert {"b07_lda", "b08_qda", "b08_rda_grid", "b10_ridge", "b16_import", "b17_memory"} <= set(workloads)
    assert {"b01_logistic", "b02_softmax", "b11_lda", "b18_growth", "b19_small", "b23_threads"} <= set(workloads)
    assert list(run.select(workloads, ["B4"])) == ["b04_l1_fit", "b04_l1_path"]
    assert list(run.select(workloads, ["B3"])) == [f"b03_sparse_logistic_{key}" for key in ("c0.05", "c1", "c20")]
    assert list(run.select(workloads, ["B8"])) == ["b08_qda", "b08_rda_grid"]
    assert list(run.select(workloads, ["b07_lda", "b10"])) == ["b07_lda", "b10_ridge"]
    assert run.select(workloads, None) == workloads
    with pytest.raises(SystemExit, match="No workload b99"):
        run.select(workloads, ["B99"])


def test_the_import_workload_imports_no_numerical_library():
    code = "import sys, benchmarks.workloads.b16_import; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    ("model", "alpha", "gamma"),
    [
        (LinearDiscriminantAnalysis(), 0.0, 1.0),
        (QuadraticDiscriminantAnalysis(), 1.0, 1.0),
        (QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.3), 1.0, 0.7),
    ],
)
def test_reference_discriminants_agree_with_scikit_learn(model, alpha, gamma):
    data = gaussian_classes(600, 4, 3)(1.0)
    scores = reference.discriminant_scores(reference.class_moments(data), alpha, gamma, data.probe)
    answer = reference.centred_scores(model.fit(data.X, data.y).decision_function(data.probe))
    assert reference.relative_error(answer, scores) < 1e-12
    assert reference.relative_error(answer[:, :2], scores) == np.inf


def test_reference_ridge_agrees_with_scikit_learn():
    data = gaussian_classes(600, 4, 3)(1.0)
    scores = reference.ridge_scores(reference.class_moments(data), 1.0, data.probe)
    answer = RidgeClassifier().fit(data.X, data.y).decision_function(data.probe)
    assert reference.relative_error(answer, scores) < 1e-12


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_smooth_bounds_lie_just_below_every_point(classes, fit_intercept):
    data = logistic_rows(600, 4, classes)(1.0)
    best = optimum.smooth_optimum(data, 0.7, "newton-cholesky", fit_intercept)
    gaps = []
    for tol in (1e-1, 1e-3, 1e-12):
        model = LogisticRegression(C=0.7, tol=tol, fit_intercept=fit_intercept).fit(data.X, data.y)
        gaps.append(optimum.relative_gap(data, best, 0.7)(model))
        bound = optimum.smooth_bound(data, model.coef_, model.intercept_, 0.7, fit_intercept)
        assert bound <= best * (1 + 1e-12)
    assert gaps[0] > 1e-5
    assert abs(gaps[-1]) < 1e-12


def test_l1_bounds_lie_just_below_every_point():
    data = weighted_documents(400, 500, 20)(1.0)
    assert np.allclose((data.X.multiply(data.X)).sum(axis=1), 1.0)
    strongest = optimum.strongest(data.X, data.y)
    best = optimum.l1_optimum(data, 5 / strongest)
    gaps = []
    for tol in (1.0, 1e-2, 1e-7):
        model = LogisticRegression(C=5 / strongest, l1_ratio=1, solver="liblinear", tol=tol, fit_intercept=False)
        model.set_params(random_state=0, max_iter=1000).fit(data.X, data.y)
        gaps.append(optimum.relative_gap(data, best, 5 / strongest, 1.0)(model))
        assert optimum.l1_bound(data, model.coef_, 5 / strongest) <= best * (1 + 1e-7)
    assert gaps[0] > gaps[-1]
    assert -1e-12 < gaps[-1] < 1e-6
    none = optimum.l1_bound(data, np.zeros((1, 500)), 1 / strongest)
    assert none == pytest.approx(optimum.objective(data, np.zeros((1, 500)), 0.0, 1 / strongest, 1.0), rel=1e-12)


@pytest.mark.skipif(find_spec("liblinear") is None, reason="the reference is LIBLINEAR's, which make bench installs")
def test_an_intercept_lowers_the_l1_optimum():
    data = weighted_documents(400, 500, 20)(1.0)
    C = 5 / optimum.strongest(data.X, data.y)
    best = optimum.l1_optimum(data, C, fit_intercept=True)
    saga = LogisticRegression(C=C, l1_ratio=1, solver="saga", tol=1e-9, max_iter=10_000, random_state=0)
    assert optimum.relative_gap(data, best, C, 1.0)(saga.fit(data.X, data.y)) < 1e-6
    assert best <= optimum.l1_optimum(data, C)


def test_the_objective_refuses_other_shapes_and_loose_references():
    data = logistic_rows(600, 4, 3)(1.0)
    assert optimum.objective(data, np.zeros((3, 4)), 0.0, 1.0) == pytest.approx(len(data.y) * np.log(3))
    assert optimum.objective(data, np.zeros((1, 4)), 0.0, 1.0) == np.inf
    with pytest.raises(ArithmeticError, match="only known to"):
        optimum._proven(1.0, 0.9)


def test_slopes_are_those_of_the_counted_medians():
    sizes = [10, 100, 1000]
    rows = [Row(str(n), "context", seconds=[2e-3 * n**1.5]) for n in sizes]
    assert b18_growth.slope(sizes, rows) == pytest.approx(1.5)
    verdict = b18_growth.WORKLOAD.verdict("goal", rows, 1.5, 0.8)
    assert verdict == Verdict("goal", "1.50 (against log columns 0.80)", False)
    rows[1].status = MISSED_QUALITY
    assert b18_growth.slope(sizes, rows) is None
    assert b18_growth.WORKLOAD.verdict("goal", rows, None, None).value == f"100: {MISSED_QUALITY}"


FAKE_WORKLOAD = """
from benchmarks.contender import OURS, Peer
from benchmarks.data import gaussian_classes
from benchmarks.goals import AtMostMemory, Faster
from benchmarks.workload import FitWorkload

class Mean:
    def fit(self, X, y):
        self.mean_ = X.mean(axis=0)

class Zero:
    def fit(self, X, y):
        self.mean_ = 0 * X[0]

def check(data):
    reference = data.X.mean(axis=0)
    return lambda model: abs(model.mean_ - reference).max()

PEER = Peer("numpy", distribution="numpy", module="numpy")
WORKLOAD = FitWorkload(
    module=__name__, id="F1", title="fake", goals=(Faster(1e9), AtMostMemory(1e9)), data=gaussian_classes(1000, 4, 2),
    contenders=(OURS.contender("mean", Mean), PEER.contender("mean", Mean), PEER.contender("zero", Zero)),
    check=check, quality="error of the mean",
)
"""


def test_a_whole_run(tmp_path, monkeypatch, capsys):
    package = tmp_path / "fake_workloads"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "f01_fake.py").write_text(FAKE_WORKLOAD)
    (package / "f02_broken.py").write_text(FAKE_WORKLOAD.replace("def check(data):", "def check(data):\n    1 / 0"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    output = tmp_path / "RESULTS.md"
    report.save(output, {"a": entry("kept", True)})
    assert run.main(["--quick", "--output", str(output)], package="fake_workloads") == 0
    page = output.read_text()
    assert page.startswith("# Benchmarks: 2 of 4 goals met, 2 missed\n")
    assert "the workload runs: ZeroDivisionError: division by zero" in page
    assert f"| {MISSED_QUALITY} |" in page
    assert "B1 kept" in page
    assert "smoke run at scale 0.01" in page
    assert str(ROOT) not in page
    assert "F1 fake" in capsys.readouterr().out


def test_mixed_parquet_is_made_and_fitted(tmp_path):
    n_rows = b13_tables.make(str(tmp_path), 1)
    assert n_rows == b13_tables.GROUP_ROWS and len(list(tmp_path.iterdir())) == 1
    done = b13_tables.fit(str(tmp_path), "MixedNB")
    assert len(done["seconds"]) == done["passes"] == 2
    assert min(*done["seconds"], done["reading"], done["peak"]) > 0
