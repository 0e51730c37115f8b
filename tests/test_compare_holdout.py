"""Rows that are set aside: their classes are those that are learnt, groups stay whole, and nothing is found out too late."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from separatrix.comparison.comparison import compare
from separatrix.comparison.holdout import set_aside
from separatrix.comparison.inputs import read_for_comparison


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 104
    y = np.array(["rare"] * 3 + ["odd"] * 4 + ["p", "q"] * 48 + [None], dtype=object)
    place = np.arange(n)
    return pd.DataFrame(
        {"a": rng.normal(size=n), "b": rng.normal(size=n), "w": 1.0, "t": place % 90, "who": place // 2, "y": y}
    )


@pytest.mark.parametrize("seed", range(3))
def test_rare_classes_are_treated_alike_in_rows_to_learn_from_and_rows_to_judge_on(table, seed):
    options = {"families": ["lda"], "drop": ["w", "t", "who"], "random_state": seed, "holdout": 0.4}
    dropped = compare(table, "y", rare_class="drop", **options)
    assert dropped.holdout is not None and dropped.holdout.classes.tolist() == ["p", "q"]
    assert any("not judged, whose class is not learnt" in note for note in dropped.notes)
    merged = compare(table, "y", rare_class="merge", **options)
    assert merged.holdout is not None and "(other)" in merged.holdout.classes.tolist()
    assert merged.holdout.n_rows > dropped.holdout.n_rows and merged.holdout.n_rows + merged.n_rows == 103


@pytest.mark.parametrize(
    "options", [{}, {"rare_class": "drop"}, {"holdout": 0.3}, {"rare_class": "drop", "holdout": 0.3}]
)
@pytest.mark.parametrize("at", [20, 50, 90])
def test_a_row_that_cannot_be_read_has_its_own_number_whatever_is_left_out(table, options, at):
    table.loc[at, "a"] = np.inf
    with pytest.raises(ValueError, match=rf"column 'a', row {at + 1} \(") as found:
        read_for_comparison(table, "y", **options)
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)


@pytest.mark.parametrize(("option", "value"), [("weight", -1.0), ("time", np.nan)])
def test_a_weight_or_a_time_that_cannot_be_read_too(table, option, value):
    name = {"weight": "w", "time": "t"}[option]
    table[name] = table[name].astype(float)
    table.loc[50, name] = value
    with pytest.raises(ValueError, match=f"column '{name}', row 51"):
        read_for_comparison(table, "y", rare_class="drop", **{option: name})


@pytest.mark.parametrize(
    "spoil", [lambda t: t.drop(columns="a"), lambda t: t.assign(a=np.inf), lambda t: t.assign(y="x")]
)
def test_a_table_to_judge_on_that_cannot_be_read_is_refused_before_any_work(table, spoil):
    fitted: list[str] = []
    with pytest.raises(ValueError, match="holdout"):
        compare(table, "y", holdout=spoil(table), progress=lambda label, _: fitted.append(label))
    assert not fitted


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_set_aside_whole_and_about_as_many_rows_of_each_class(table, seed):
    read = read_for_comparison(table, "y", group="who", holdout=0.3, seed=seed)
    judged, learnt = set(read.aside["who"].to_pylist()), set(table["who"][read.rows.numbers - 1])
    assert not judged & learnt and len(judged | learnt) == 52
    assert 25 <= read.aside.num_rows <= 37
    shares = pd.Series(read.aside["y"].to_pylist()).value_counts()
    assert 10 <= shares["p"] <= 19 and 10 <= shares["q"] <= 19
    assert read.groups is not None and np.array_equal(read.rows.numbers - 1 >= 0, read.groups >= 0)


def test_groups_that_leave_nothing_to_learn_of_a_class_are_refused(table):
    with pytest.raises(ValueError, match="no groups aside"):
        set_aside(table, "y", 0.5, 0, np.zeros(len(table), dtype=np.intp))
