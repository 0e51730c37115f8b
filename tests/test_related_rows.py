"""Rows that belong together, a group or the past, are never on both sides of an inner fold either."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from separatrix import SVC, compare
from separatrix.comparison.families import FAMILIES
from separatrix.comparison.folds import UNRELATED, Related, inner_folds

MEMBERS, GROUPS = 8, 30


@pytest.fixture(scope="module")
def patients():
    """Visits of patients who are known by their columns, and whose class is chance: memory helps, learning does not."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(GROUPS), MEMBERS)
    X = rng.standard_normal((GROUPS, 12))[groups] + 0.05 * rng.standard_normal((GROUPS * MEMBERS, 12))
    return X, rng.permutation(np.arange(GROUPS) % 2)[groups], groups


@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(4, 12), st.integers(2, 5), st.booleans())
def test_inner_folds_keep_what_belongs_together(seed, n_classes, n_groups, most, in_time):
    rng = np.random.default_rng(seed)
    groups, y = rng.integers(0, n_groups, 60), rng.integers(0, n_classes, 60)
    times = rng.integers(0, 20, 60).astype(float)
    related = Related(times=times) if in_time else Related(groups=groups)
    for inside, outside in inner_folds(y, most, seed, related):
        assert len(outside) and set(y[inside]) == set(y)
        if in_time:
            assert times[inside].max() < times[outside].min()
        else:
            assert not set(groups[inside]) & set(groups[outside])


def test_without_relations_folds_are_stratified_and_single_rows_have_none():
    y = np.array([0] * 10 + [1] * 5)
    folds = inner_folds(y, 5, 0)
    assert sorted(np.concatenate([outside for _, outside in folds])) == list(range(15))
    assert all((y[outside] == 1).sum() == 1 for _, outside in folds)
    assert inner_folds(np.array([0, 0, 1]), 5, 0) == []


def penalty(name, chosen):
    """How far a choice shrinks: the larger the farther."""
    if name == "rda":
        return -chosen["alpha"] - chosen["gamma"]
    return chosen["alpha"] if name == "least-squares" else 1.0 / chosen["C"]


@pytest.mark.parametrize("name", ["least-squares", "logistic", "logistic-l1", "rda"])
def test_memory_of_a_group_does_not_choose_the_penalty(patients, name):
    X, y, groups = patients
    tune = FAMILIES[name].tune
    apart, together = (penalty(name, tune(X, y, 0, None, related)) for related in (UNRELATED, Related(groups=groups)))
    assert together > apart


def test_a_comparison_by_group_chooses_as_its_families_do(patients):
    X, y, groups = patients
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(patient=groups, y=y)
    families = ["logistic", "least-squares", "svm-rbf"]
    found = compare(frame, "y", group="patient", families=families)
    for one in found.candidates:
        tune = FAMILIES[one.family].tune
        assert one.tuned == tune(found.encoded, found.codes, 0, None, Related(groups=groups))
        assert one.model.family == one.family and one.tuned["C" if one.family != "least-squares" else "alpha"] > 0
    by_row = {
        one.family: one.tuned for one in compare(frame.drop(columns="patient"), "y", families=families).candidates
    }
    assert any(by_row[one.family] != one.tuned for one in found.candidates)


def test_a_comparison_forward_in_time_chooses_forward_in_time(monkeypatch):
    rng = np.random.default_rng(1)
    times = rng.permutation(200).astype(float)
    y = (times / 200 + rng.standard_normal(200) > 0.5).astype(int)
    asked, family = [], FAMILIES["logistic"]

    def tune(X, y, seed, weights, related):
        assert np.corrcoef(X[:, 0], related.times)[0, 1] > 0.999999  # of the same rows
        asked.append(related.times)
        return family.tune(X, y, seed, weights, related)

    monkeypatch.setitem(FAMILIES, "logistic", replace(family, tune=tune))
    compare(pd.DataFrame({"a": 2.0 * times, "day": times, "y": y}), "y", time="day", families=["logistic"])
    assert [len(one) for one in asked] == sorted(len(one) for one in asked) and len(asked) == 6
    assert all(sorted(one) == list(range(len(one))) for one in asked)  # nothing later than the rows that are left out


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_calibration_by_group_does_not_take_memory_for_knowledge(patients, kernel):
    X, y, groups = patients
    apart = SVC(kernel=kernel, C=100.0, calibration="sigmoid", random_state=0).fit(X, y)
    together = SVC(kernel=kernel, C=100.0, calibration="sigmoid", random_state=0).fit(X, y, groups=groups)
    np.testing.assert_array_equal(apart.decision_function(X), together.decision_function(X))
    sure, humble = (np.abs(model.predict_proba(X)[:, 1] - 0.5).mean() for model in (apart, together))
    assert sure > humble + 0.15 and humble < 0.1


def test_groups_of_another_number_or_of_one_class_are_refused(patients):
    X, y, groups = patients
    with pytest.raises(ValueError, match=r"groups has shape \(5,\); give one for each of the 240 rows"):
        SVC(calibration="sigmoid").fit(X, y, groups=groups[:5])
    with pytest.raises(ValueError, match="every class needs rows of at least two groups"):
        SVC(calibration="sigmoid").fit(X, y, groups=y)


def test_a_machine_in_time_is_calibrated_by_periods():
    """A value that drifts is known from its neighbours in time: between rows left out one by one scores look right."""
    rng = np.random.default_rng(1)
    times = np.arange(300.0)
    X, y = np.cumsum(rng.standard_normal((300, 2)), axis=0), (np.arange(300) // 15) % 2
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(day=times, y=y)
    by_time = compare(frame, "y", time="day", families=["svm-rbf"]).candidates[0]
    by_row = compare(frame.drop(columns="day"), "y", families=["svm-rbf"]).candidates[0]
    sharpest = [np.abs(one.model.predict_proba(frame[["a", "b"]]) - 0.5).max() for one in (by_time, by_row)]
    assert sharpest[0] < sharpest[1]


def test_periods_keep_a_time_together_and_are_none_where_a_class_is_brief():
    times = np.repeat(np.arange(12.0), 5)
    periods = Related(times=times).together(np.arange(60) % 2)
    assert all(len(np.unique(periods[times == t])) == 1 for t in range(12)) and len(np.unique(periods)) > 5
    assert Related(times=times).together((np.arange(60) < 3).astype(int)) is None
    assert UNRELATED.together(np.arange(4) % 2) is None
