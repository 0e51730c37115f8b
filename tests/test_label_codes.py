"""Labels become codes by a table, by a search or by a sort, whichever their type and range allow: always the same codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from separatrix import config
from separatrix.data.labels import UnknownLabel, encode, unique_labels

LABELS: dict[str, list[Any]] = {
    "codes": [0, 1, 1, 0, 2],
    "one class of many": [2, 2, 2],
    "negative": [-3, 4, -3, 0],
    "far apart": [0, 10**15, 5, 0],
    "wide apart and negative": [-(2**63), 2**63 - 1, 0],
    "whole floats": [1.0, 3.0, -2.0, 1.0],
    "booleans": [True, False, True],
    "text": ["b", "a", "b"],
}


@pytest.mark.parametrize("dtype", [None, np.int8, np.int32, np.uint8, np.uint64, np.float32, object])
@pytest.mark.parametrize("name", LABELS)
def test_codes_are_places_among_the_sorted_labels(name: str, dtype: Any) -> None:
    given = np.array(LABELS[name])
    with np.errstate(invalid="ignore"):
        y = given if dtype is None or given.dtype.kind == "U" else given.astype(dtype)
    sorted_labels, places = np.unique(y, return_inverse=True)
    found = unique_labels(y)
    assert found.dtype == sorted_labels.dtype
    np.testing.assert_array_equal(found, sorted_labels)
    for classes in (None, sorted_labels):
        known, codes = encode(y, classes, None)
        np.testing.assert_array_equal(known, sorted_labels)
        np.testing.assert_array_equal(codes, places)
        assert codes.dtype == np.intp


@pytest.mark.parametrize("classes", [[-5, 0, 1, 2, 7], [0, 2], [1, 2], [0.0, 1.0, 2.0], [0.5, 1.0], [10**15], [True]])
def test_given_classes_may_be_more_or_fewer(classes: list[Any]) -> None:
    known, y = np.array(classes), np.array([2, 0, 1, 2])
    there = np.isin(y, known)
    weights = there.astype(float)
    if there.all():
        np.testing.assert_array_equal(known[encode(y, known, None)[1]], y)
        return
    with pytest.raises(UnknownLabel, match=str(y[np.flatnonzero(~there)[0]])):
        encode(y, known, None)
    codes = encode(y, known, weights)[1]  # rows of weight zero may hold anything
    np.testing.assert_array_equal(known[codes[there]], y[there])
    np.testing.assert_array_equal(codes[~there], 0)


def test_no_whole_numbers_no_table() -> None:
    np.testing.assert_array_equal(unique_labels(np.array([0.5, 0.25, 0.5])), [0.25, 0.5])
    y = np.arange(10)[::2]
    assert not np.shares_memory(encode(y, None, None)[1], y)
    codes = np.array([0, 1, 0])
    assert encode(codes, np.array([0, 1]), None)[1] is codes


@pytest.mark.parametrize("last", [None, 7, 3.5, np.nan])
@pytest.mark.parametrize("low", [0, -2, 5])
@pytest.mark.parametrize("dtype", [np.intp, np.int16, np.float64, np.float32])
def test_long_targets_are_read_in_parts_to_the_same_codes(dtype: Any, low: int, last: Any) -> None:
    y = (np.random.default_rng(0).integers(0, 4, 200_000) + low).astype(dtype)
    if last is not None:
        if last != 7 and y.dtype.kind == "i":
            return
        y[-1] = last
    weights = np.ones(len(y))
    weights[:150_000:2] = 0.0
    if last not in (None, 7):
        for given in (None, weights):
            with pytest.raises(ValueError, match="continuous"):
                encode(y, None, given)
        return
    expected, places = np.unique(y, return_inverse=True)
    for threads in (1, 3):
        with config(threads=threads):
            for given in (None, weights):
                known, codes = encode(y, None, given)
                np.testing.assert_array_equal(known, expected)
                np.testing.assert_array_equal(codes, places)
            np.testing.assert_array_equal(encode(y, expected, None)[1], places)
    before = y.copy()
    encode(y, None, None)[1].sum()
    np.testing.assert_array_equal(y, before)


def test_a_class_whose_first_row_comes_late_is_a_class() -> None:
    y = np.zeros(10_000, dtype=np.intp)
    y[-1] = 2
    known, codes = encode(y, None, None)
    np.testing.assert_array_equal(known, [0, 2])
    assert (codes[0], codes[-1]) == (0, 1)
    weights = np.ones(len(y))
    weights[-1] = 0.0  # a row that does not count makes no class
    np.testing.assert_array_equal(encode(y, None, weights)[0], [0])
