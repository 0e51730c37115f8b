"""Separability: verdicts against exact enumeration, directions that hold on every row, invariances, hard data."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.svm import SVC

from separatrix import LogisticRegression, OneVsOneClassifier, OneVsRestClassifier, SeparationWarning, as_source
from separatrix.data.sparse import SparseBlock
from separatrix.geometry import recession as cone
from separatrix.geometry import separating_direction
from separatrix.geometry.separation import Separability, canonical, geometric_margin, separability
from separatrix.tables import scan_csv

LINE = {
    "complete": ([1, 2, 3, 4], [0, 0, 1, 1]),
    "quasi": ([1, 2, 2, 3], [0, 0, 1, 1]),
    "overlap": ([1, 3, 2, 4], [0, 0, 1, 1]),
}
PLANE = {
    "complete": ([[0, 0], [1, 0], [0, 1], [2, 2], [3, 2]], [0, 0, 0, 1, 1]),
    "quasi": ([[0, 0], [1, 1], [0, 0], [1, 1], [2, 0], [0, 2]], [0, 0, 1, 1, 1, 0]),
    "overlap": ([[0, 0], [1, 1], [1, 0], [0, 1]], [0, 0, 1, 1]),
}
THREE = {
    "complete": ([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 1, 2, 2]),
    "quasi": ([[0.0], [1.0], [1.0], [3.0], [4.0], [5.0]], [0, 0, 1, 1, 2, 2]),
    "overlap": ([[0.0], [4.0], [1.0], [5.0], [2.0], [3.0]], [0, 0, 1, 1, 2, 2]),
}


def differences(X: Any, y: Any, fit_intercept: bool = True) -> np.ndarray:
    """The matrix A with the first class's vector held at zero: no gauge, so it has full rank when [X, 1] has."""
    X, y = np.asarray(X), np.asarray(y)
    rows = np.column_stack([X, np.ones(len(X), dtype=X.dtype)]) if fit_intercept else X
    labels = np.unique(y)
    width, out = rows.shape[1], []
    for row, label in zip(rows, y, strict=True):
        for other in labels[labels != label]:
            line = np.zeros((len(labels), width), dtype=rows.dtype)
            line[labels == label] += row
            line[labels == other] -= row
            out.append(line[1:].ravel())
    return np.array(out)


def exact_verdict(A: np.ndarray) -> str:
    """For integer A of full column rank: the sum of the cone's extreme rays is in its relative interior."""
    p = A.shape[1]
    total = np.zeros(p, dtype=np.int64)
    A = np.unique(A, axis=0)
    for rows in combinations(A, p - 1):
        tight = np.array(rows).reshape(p - 1, p)
        minors = [round(np.linalg.det(np.delete(tight, j, axis=1))) for j in range(p)]
        ray = np.array([(-1) ** j * minor for j, minor in enumerate(minors)], dtype=np.int64)
        for side in (ray, -ray):
            if side.any() and (A @ side >= 0).all():
                total += side
    margins = A @ total
    return "complete" if total.any() and (margins > 0).all() else "quasi" if (margins > 0).any() else "overlap"


def assert_separates(found: Separability, X: Any, y: Any) -> None:
    """The direction is right about every row, strictly about all of them or about some."""
    X, y = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float), np.asarray(y)
    assert found.direction is not None
    coef, intercept = found.direction
    scores = X @ coef.T + intercept
    size = np.abs(X) @ np.abs(coef).T + np.abs(intercept)
    if len(found.classes) == 2:
        scores, size = np.column_stack([0 * scores, scores]), np.column_stack([size, size])
    codes = np.searchsorted(found.classes, y)
    own = scores[np.arange(len(y)), codes][:, None]
    margins = np.where(np.eye(len(found.classes), dtype=bool)[codes], np.inf, own - scores)
    tolerance = 1e-8 * size.max(axis=1, keepdims=True)
    assert (margins >= -tolerance).all()
    if found.verdict == "complete":
        assert (margins > 0).all()
        np.testing.assert_allclose(margins.min(), 1.0, rtol=1e-5)
    else:
        assert (margins[np.isfinite(margins)] > 0.9).any()
        assert (np.abs(margins) <= tolerance).any()


def check(X: Any, y: Any, verdict: str, **how: Any) -> Separability:
    found = separability(X, y, **how)
    assert found.verdict == verdict
    if verdict == "overlap":
        assert found.direction is None and not found.diverges.any() and not found.diverges_intercept.any()
    else:
        assert_separates(found, X, y)
        assert found.diverges.any()
    assert (found.margin > 0) == (verdict == "complete" and len(found.classes) == 2)
    return found


# -- known cases ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", ["complete", "quasi", "overlap"])
def test_known_cases(verdict: str) -> None:
    x, y = LINE[verdict]
    found = check(np.array(x, dtype=float)[:, None], y, verdict)
    if verdict != "overlap":
        assert found.diverges.tolist() == [[1]] and found.diverges_intercept.tolist() == [-1]
    check(np.array(PLANE[verdict][0], dtype=float), PLANE[verdict][1], verdict)
    check(np.array(THREE[verdict][0]), THREE[verdict][1], verdict)


def test_line_direction() -> None:
    x, y = LINE["complete"]
    found = separability(np.array(x, dtype=float)[:, None], y)
    assert found.direction is not None
    np.testing.assert_allclose(found.direction[0], [[2.0]], rtol=1e-5)
    np.testing.assert_allclose(found.direction[1], [-5.0], rtol=1e-5)
    np.testing.assert_allclose(found.margin, 0.5, rtol=1e-5)


def test_only_the_guilty_column_diverges() -> None:
    """A dummy that is 1 only in one class sends its own coefficient to infinity, and no other."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = (X[:, 0] + rng.logistic(size=200) > 0).astype(int)
    X[:, 2] = (rng.random(200) < 0.2) & (y == 0)
    found = check(X, y, "quasi")
    assert found.diverges.tolist() == [[0, 0, -1, 0]]
    assert found.diverges_intercept.tolist() == [0]


def test_three_classes_of_which_one_stands_apart() -> None:
    """Classes 0 and 1 overlap, class 2 is away from both: quasi, and the first two move together."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 2))
    y = np.arange(90) % 3
    X[y == 2, 0] += 30.0
    found = check(X, y, "quasi")
    assert found.direction is not None
    coef, intercept = found.direction
    np.testing.assert_allclose(coef[0], coef[1], atol=1e-8 * np.abs(coef).max())
    np.testing.assert_allclose(coef.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(intercept.sum(), 0.0, atol=1e-9 * np.abs(intercept).max())
    assert found.diverges[:, 0].tolist() == [-1, -1, 1]


def test_without_intercept() -> None:
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    check(X, [0, 0, 1, 1], "overlap", fit_intercept=False)
    check(X - 2.5, [0, 0, 1, 1], "complete", fit_intercept=False)
    check(np.array([[0.0], [1.0], [2.0]]), [0, 1, 1], "quasi", fit_intercept=False)
    assert separability(X - 2.5, [0, 0, 1, 1], fit_intercept=False).diverges_intercept.tolist() == [0]


# -- against enumeration ----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=9))
def test_line_against_brute_force(points: list[tuple[int, bool]]) -> None:
    x, y = np.array([p[0] for p in points], dtype=float), np.array([p[1] for p in points])
    if y.all() or not y.any():
        return
    ordered = [(x[~y], x[y]), (x[y], x[~y])]
    if any(low.max() < high.min() for low, high in ordered):
        verdict = "complete"
    elif any(low.max() <= high.min() and low.min() < high.max() for low, high in ordered):
        verdict = "quasi"
    else:
        verdict = "overlap"
    check(x[:, None], y, verdict)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.booleans()), min_size=4, max_size=9))
def test_plane_against_enumeration(points: list[tuple[int, int, bool]]) -> None:
    X, y = np.array([p[:2] for p in points]), np.array([p[2] for p in points])
    A = differences(X, y)
    if y.all() or not y.any() or np.linalg.matrix_rank(A) < A.shape[1]:
        return
    check(X.astype(float), y, exact_verdict(A))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2)), min_size=3, max_size=7))
def test_three_classes_against_enumeration(points: list[tuple[int, int]]) -> None:
    X, y = np.array([p[:1] for p in points]), np.array([p[1] for p in points])
    if len(set(y)) < 3 or len(set(X.ravel())) < 2:
        return
    check(X.astype(float), y, exact_verdict(differences(X, y)))


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_programme_and_proofs_agree(seed: int) -> None:
    """The linear programme alone says what the cheap proofs say."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 40)), int(rng.integers(1, 6))
    A = rng.integers(-2, 3, (n, p)).astype(float)
    A[:, 0] = np.abs(A[:, 0])
    moved, direction = cone.solve_programme(A)
    assert (A @ direction >= -1e-8).all() and (A @ direction > 0.1)[moved].all()
    for form in (cone._primal, cone._dual):
        message, theta = form(sp.csr_array(A), "highs")
        assert theta is not None, message
        np.testing.assert_array_equal(A @ theta > 0.1, moved)
        assert (A @ theta >= -1e-8).all()
    proven = cone._prove(A)
    if proven is not None:
        np.testing.assert_array_equal(proven[0], moved)
        assert not moved.any() or (A @ proven[1])[moved].min() > 0


# -- invariances ------------------------------------------------------------------------------------------------------


def cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 3))
    noisy = (X @ [1.0, -1.0, 0.5] + rng.logistic(size=120) > 0).astype(int)
    quasi = X.copy()
    quasi[:, 1] = (rng.random(120) < 0.3) & (noisy == 1)
    return {
        "overlap": (X, noisy),
        "quasi": (quasi, noisy),
        "complete": (X, (X @ [1.0, -1.0, 0.5] > 0.1).astype(int)),
        "complete of four": (X, 2 * (X[:, 0] > 0) + (X[:, 1] + X[:, 2] > 0)),
    }


@pytest.mark.parametrize("name", cases())
def test_invariances(name: str) -> None:
    X, y = cases()[name]
    verdict = name.split()[0]
    plain = check(X, y, verdict)

    def same(other: Separability, scale: Any = 1.0, shift: Any = 0.0) -> None:
        np.testing.assert_array_equal(other.diverges, plain.diverges)
        if plain.direction is not None and other.direction is not None:
            coef, intercept = plain.direction
            size = np.abs(coef).max()
            np.testing.assert_allclose(other.direction[0] * scale, coef, atol=2e-5 * size)
            np.testing.assert_allclose(
                other.direction[1] + other.direction[0] @ np.broadcast_to(shift, 3), intercept, atol=1e-4 * size
            )

    order = np.random.default_rng(0).permutation(len(y))
    same(check(X[order], y[order], verdict))
    scale = np.array([1e-6, 1e6, 1.0])
    same(check(X * scale, y, verdict), scale)
    same(check(X + np.array([5.0, -3.0, 100.0]), y, verdict), shift=np.array([5.0, -3.0, 100.0]))
    same(check(sp.csr_array(X), y, verdict))
    same(check(np.repeat(X, 2, axis=0), np.repeat(y, 2), verdict))
    weights = np.random.default_rng(1).integers(1, 5, len(y))
    same(separability(X, y, weights))
    if len(np.unique(y)) == 2:
        flipped = check(X, 1 - y, verdict)
        np.testing.assert_array_equal(flipped.diverges, -plain.diverges)
        np.testing.assert_array_equal(flipped.diverges_intercept, -plain.diverges_intercept)


def test_rows_of_weight_zero_do_not_count() -> None:
    X, y = np.array([[1.0], [2.0], [3.0], [4.0], [0.0]]), np.array([0, 0, 1, 1, 1])
    check(X, y, "overlap")
    weights = np.array([1.0, 2.0, 3.0, 4.0, 0.0])
    assert separability(X, y, weights).verdict == "complete"
    X[4] = np.nan
    y[4] = 7
    found = separability(X, y, weights)
    assert found.verdict == "complete" and found.classes.tolist() == [0, 1]


def test_complete_direction_is_the_maximum_margin() -> None:
    X, y = cases()["complete"]
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = (X - (low + high) / 2) / ((high - low) / 2)
    machine = SVC(kernel="linear", C=1e8, tol=1e-10).fit(scaled, y)
    found = separability(scaled, y)
    assert found.direction is not None
    np.testing.assert_allclose(found.direction[0], machine.coef_, rtol=1e-3)
    np.testing.assert_allclose(found.margin, 1.0 / np.linalg.norm(machine.coef_), rtol=1e-4)
    np.testing.assert_allclose(found.margin, geometric_margin(*found.direction, scaled, y), rtol=1e-10)


# -- hard data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", ["complete", "quasi", "overlap"])
@pytest.mark.parametrize("sparse", [False, True])
def test_redundant_columns(verdict: str, sparse: bool) -> None:
    """Constant, duplicate and zero columns, and sums of others, change no verdict and name no innocent column."""
    X, y = cases()[verdict]
    extra = np.column_stack([X, X[:, 0], np.full(len(X), 7.0), np.zeros(len(X)), X[:, 0] + X[:, 2]])
    found = check(sp.csr_array(extra) if sparse else extra, y, verdict)
    assert found.diverges[:, [4, 5]].tolist() == [[0, 0]]
    np.testing.assert_array_equal(found.diverges[:, 0], found.diverges[:, 3])
    if verdict == "quasi":
        assert found.diverges.tolist() == [[0, 1, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("verdict", ["complete", "quasi", "overlap"])
def test_wild_units_and_far_from_the_origin(verdict: str) -> None:
    X, y = cases()[verdict]
    wild = X * np.array([1e-150, 1e150, 1.0])
    found = separability(wild, y)
    assert found.verdict == verdict
    np.testing.assert_array_equal(found.diverges, separability(X, y).diverges)
    assert separability(X + 1e7, y).verdict == verdict


@pytest.mark.parametrize("gap", [1e-2, 1e-5, 1e-8])
def test_narrow_gaps(gap: float) -> None:
    X = np.array([[-1.0], [-0.3 - gap], [-0.3], [1.0]])
    check(X, [0, 0, 1, 1], "complete")
    check(X, [0, 1, 0, 1], "overlap")
    three = np.column_stack([X, X**2, np.array([0.0, 1.0, 1.0, 0.0])])
    check(three, [0, 0, 1, 1], "complete")


def test_more_columns_than_rows() -> None:
    rng = np.random.default_rng(0)
    check(rng.standard_normal((30, 60)), rng.integers(0, 2, 30), "complete")
    check(rng.standard_normal((30, 60)), np.arange(30) % 4, "complete")


@pytest.mark.parametrize("sparse", [False, True])
def test_many_rows_few_columns(sparse: bool) -> None:
    """A working set finds what the programme on all rows finds, needles in the haystack included."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((20_000, 4))
    score = X @ [1.0, 2.0, -1.0, 0.5]
    y = (score > 0).astype(int)
    see = sp.csr_array if sparse else np.asarray
    check(see(X), y, "complete")
    y[np.argsort(score)[[10, -10]]] = [1, 0]
    check(see(X), y, "overlap")
    noisy = (score + rng.logistic(size=len(X)) > 0).astype(int)
    needle = np.zeros((len(X), 1))
    needle[np.flatnonzero(noisy)[777]] = 1.0
    found = check(see(np.hstack([X, needle])), noisy, "quasi")
    assert found.diverges.tolist() == [[0, 0, 0, 0, 1]]
    needle[np.flatnonzero(noisy == 0)[777]] = 1.0
    check(see(np.hstack([X, needle])), noisy, "overlap")


def test_many_rows_of_three_classes() -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((6_000, 3))
    y = np.argmax(X @ rng.standard_normal((3, 3)), axis=1)
    check(X, y, "complete")
    y[:30] = np.arange(30) % 3
    check(X, y, "overlap")


def test_twelve_classes_of_which_one_stands_apart() -> None:
    """HiGHS gives up on the programme itself here, with any of its methods; its dual has no free unknowns."""
    rng = np.random.default_rng(275326)
    means = rng.normal(size=(12, 5)) * 2
    y = rng.integers(0, 12, 600)
    X = means[y] + rng.normal(size=(600, 5))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    check(X, y, "quasi")
    assert separability(X, y == 9).verdict == "complete"
    check(X[y != 9], y[y != 9], "overlap")


def test_many_columns_stay_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparseBlock, "dense", lambda self: pytest.fail("made dense"))
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 5_000), density=0.01, rng=rng, format="csr")
    y = rng.integers(0, 2, 300)
    assert separability(X, y).verdict == "complete"
    assert separability(X, np.arange(300) % 3).verdict == "complete"
    conflict = sp.vstack([X, X[:2]]).tocsr()
    found = separability(conflict, np.concatenate([y, 1 - y[:2]]))
    assert found.verdict == "quasi"
    assert_separates(found, conflict, np.concatenate([y, 1 - y[:2]]))
    assert separability(sp.vstack([X, X]).tocsr(), np.repeat([0, 1], 300)).verdict == "overlap"


def test_both_ways_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(separating_direction, "_FEW", 0)
    for name, (X, y) in cases().items():
        check(X, y, name.split()[0])
        check(sp.csr_array(X), y, name.split()[0])


# -- entrances, words, errors -----------------------------------------------------------------------------------------


def test_frames_files_and_labels(tmp_path: Any) -> None:
    X, y = cases()["quasi"]
    frame = pd.DataFrame(X, columns=["age", "dose", "mass"])
    labels = np.where(y == 1, "yes", "no")
    found = check(frame, labels, "quasi")
    assert "column 'dose'" in str(found) and "'no' and 'yes'" in str(found) and "Firth" in str(found)
    assert "L2 penalty" in str(found)
    frame.assign(y=labels).to_csv(tmp_path / "rows.csv", index=False)
    read = separability(scan_csv(tmp_path / "rows.csv", target="y"))
    assert read.verdict == "quasi" and read.diverges.tolist() == found.diverges.tolist()


def test_words() -> None:
    X, y = cases()["complete"]
    found = separability(X, y)
    assert sorted(found.columns) == [0, 1, 2]
    assert f"columns {found.columns[0]}, {found.columns[1]} and {found.columns[2]}." in str(found)
    rng = np.random.default_rng(0)
    wide = str(separability(rng.standard_normal((20, 40)), np.arange(20) % 3))
    assert " and 35 more" in wide and "The classes (0, 1 and 2)" in wide
    assert "all 12 of them" in str(separability(rng.standard_normal((24, 40)), np.arange(24) % 12))


def test_the_guilty_column_is_named_first() -> None:
    """All levels of a factor next to an intercept: a level of one class only is shared out among them, but leads."""
    levels = np.arange(400) % 20
    y = (np.random.default_rng(0).random(400) < 0.5).astype(int)
    y[levels == 7] = 1
    found = check(np.eye(20)[levels], y, "quasi")
    assert found.columns[0] == 7 and "columns 7, " in str(found)
    assert check(np.eye(20)[levels], y, "quasi", fit_intercept=False).columns.tolist() == [7]
    assert check(np.eye(20)[levels][:, 1:], y, "quasi").columns.tolist() == [6]
    assert "finite" in str(separability(*cases()["overlap"]))


def test_errors_are_sentences() -> None:
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match="one class only \\(1\\)"):
        separability(X, [1, 1])
    with pytest.raises(ValueError, match="one class only"):
        separability(X, [0, 1], [1.0, 0.0])
    for bad in (np.nan, np.inf):
        broken = X.copy()
        broken[1, 1] = bad
        with pytest.raises(ValueError, match="column 1 has 1 such row"):
            separability(broken, [0, 1])
        with pytest.raises(ValueError, match="column 1 has 1 such row"):
            separability(sp.csr_array(broken), [0, 1])
    with pytest.raises(ValueError, match="no columns"):
        separability(np.zeros((2, 0)), [0, 1])


def test_margin_and_canonical_scale() -> None:
    X, y = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]), np.array(["a", "b", "b"])
    np.testing.assert_allclose(geometric_margin([3.0, 4.0], -5.0, X, y), 1.0)
    np.testing.assert_allclose(geometric_margin([[-3.0, -4.0]], [5.0], X, y), -9.0)
    coef, intercept = canonical([[3.0, 4.0]], [-5.0], X, y)
    np.testing.assert_allclose(np.abs(X @ coef[0] + intercept).min(), 1.0)
    np.testing.assert_allclose(geometric_margin(coef, intercept, sp.csr_array(X), y), 1.0)
    np.testing.assert_allclose(1.0 / np.linalg.norm(coef), 1.0)
    three = separability(np.array(THREE["complete"][0]), THREE["complete"][1])
    assert three.direction is not None
    found = geometric_margin(*three.direction, *THREE["complete"])
    np.testing.assert_allclose(found, 0.5, rtol=1e-5)
    with pytest.raises(ValueError, match="on the boundary"):
        canonical([1.0, 0.0], 0.0, X, y)
    with pytest.raises(ValueError, match="constant"):
        geometric_margin([0.0, 0.0], 1.0, X, y)
    with pytest.raises(ValueError, match="must be"):
        geometric_margin([1.0], 1.0, X, y)


@pytest.mark.parametrize("labels", [["setosa", "versicolor", "virginica"], [True, False], [7, 3, 5], [-1.0, 1.0]])
def test_warnings_name_classes_by_their_labels(labels: list[Any]) -> None:
    """Codes of rows stay inside, whichever way the rows come and whoever fits them."""
    codes = np.arange(90) % len(labels)
    X = np.random.default_rng(0).uniform(-1, 1, (90, 2)) + 9.0 * np.column_stack([codes == 0, codes == 1])
    y = np.array(labels)[codes]
    *first, last = (repr(label) for label in np.unique(y).tolist())
    together, rest = f"({', '.join(first)} and {last})", "'the rest' and" if len(labels) > 2 else first[0]
    logistic, weighted = LogisticRegression(C=np.inf), LogisticRegression(C=np.inf, class_weight="balanced")
    for model, rows, words in (
        (logistic, (X, y), together),
        (logistic, (sp.csr_array(X), y), together),
        (logistic, (as_source(X, y),), together),
        (weighted, (X, y), together),
        (OneVsRestClassifier(logistic), (X, y), rest),
        (OneVsRestClassifier(logistic), (as_source(X, y),), rest),
        (OneVsOneClassifier(logistic), (X, y), f"({first[0]} and {first[1] if len(first) > 1 else last})"),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clone(model).fit(*rows)
        said = [str(one.message) for one in caught if one.category is SeparationWarning]
        assert any(words in sentence for sentence in said), (model, said)
        assert not any("(0 and 1)" in sentence for sentence in said)
