"""What the report says: the words and numbers of its HTML, and that data stay data in it."""

from __future__ import annotations

import base64
import colorsys
import hashlib
import re
import warnings
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup
from scipy.stats import chi2
from sklearn.metrics import average_precision_score, confusion_matrix, precision_recall_fscore_support, roc_auc_score

import separatrix as sx
from separatrix.cli import inspect
from separatrix.comparison.families import FAMILIES
from separatrix.comparison.planes import Plane, discriminant_plane
from separatrix.comparison.table_model import TableModel
from separatrix.plots import style
from separatrix.report.figures import Drawing
from separatrix.report.sections import cross_table, mistake_table, model_section, outlier_table
from separatrix.report.svg import inline_svg, page_style
from separatrix.report.tables import count, number, percent
from separatrix.tables.encoder import TableEncoder

SCRIPT, BOLD = "<script>alert(1)</script>", "<b>x</b>"


def hostile_table(n: int = 140, n_classes: int = 3) -> pd.DataFrame:
    """Three classes with markup and formulas in their names, holes, a category, a flag and a column of names."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, n_classes, n)
    table = pd.DataFrame(
        {
            SCRIPT: codes + rng.normal(0, 0.6, n),
            "$a_{b$ & \"q'": rng.normal(size=n) - codes,
            "_hidden\x07": rng.normal(size=n),
            "colour": np.array(["red", "<i>green</i>", "blue"])[(codes + (rng.random(n) < 0.4)) % 3],
            "ringed": np.where(rng.random(n) < 0.5, "yes", "no"),
            "name": [f"N{i}A{7 * i}" for i in range(n)],
            "kind": np.array([BOLD, "_under", "$c$"])[codes],
        }
    )
    table.loc[table.index[:5], "_hidden\x07"] = np.nan
    return table


@pytest.fixture(scope="module")
def comparison():
    families = ["baseline", "naive-bayes", "lda", "logistic", "bayesian-logistic"]
    return sx.compare(hostile_table(), "kind", families=families, cv=3)


@pytest.fixture(scope="module")
def html(comparison, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    sx.write_report(comparison, path)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def two_classes():
    return sx.compare(hostile_table(90, 2), "kind", families=["lda", "logistic", "perceptron"], cv=3)


class Page(HTMLParser):
    """Elements of a page with their attributes, and the text of it all."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_one_small_file_that_asks_for_nothing(html):
    page = Page(html)
    assert len(html.encode()) < 3_000_000
    script = re.search(r"<script>(.*?)</script>", html, flags=re.S)[1]
    assert len(page.all("script")) == 1 and not page.all("img")
    for tag, attributes in page.elements:
        for key in ("src", "href", "xlink:href", "action", "data"):
            link = attributes.get(key)
            assert link is None or link.startswith(("#", "data:")), (tag, link)
        assert not any(key.startswith("on") for key in attributes), (tag, attributes)
    assert "url(http" not in html and "@import" not in html
    policy = [one["content"] for one in page.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy and policy[0].startswith("default-src 'none'") and "script-src" in policy[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy[0].endswith(f"script-src 'sha256-{digest}'")  # no other script can run


def test_structure_for_those_who_cannot_see_it(html):
    page = Page(html)
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1 and levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.all("html")[0]["lang"] == "en"
    assert page.all("meta")[1]["name"] == "viewport"
    assert len(page.all("caption")) == len(page.all("table")) > 10
    assert all(one.get("scope") in {"row", "col", "colgroup"} for one in page.all("th"))
    figures = page.all("svg")
    assert len(figures) > 20 and len(page.all("figcaption")) == len(page.all("figure")) == len(figures)
    for one in figures:
        assert one["role"] == "img" and len(one["aria-label"]) > 30 and re.search(r"\d", one["aria-label"])


def test_ids_are_unique_and_every_reference_has_its_place(html):
    page = Page(html)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = {attributes["href"][1:] for _, attributes in page.elements if (attributes.get("href") or "").startswith("#")}
    used |= set(re.findall(r'clip-path="url\(#([^)]+)\)', html))
    assert used and used <= set(ids)


def test_names_are_text_everywhere(html, comparison):
    page = Page(html)
    assert SCRIPT in page.text and BOLD in page.text and "<i>green</i>" in page.text
    assert not page.all("b")
    labels = "".join(one["aria-label"] for one in page.all("svg"))
    assert SCRIPT in labels and BOLD in labels
    drawn = "".join(re.findall(r"<text[^>]*>(.*?)</text>", html, flags=re.S))
    assert "$a_{b$ &amp;" in drawn  # no formula, no markup
    assert "_hidden" in drawn and "\x07" not in "".join(re.findall(r"<svg.*?</svg>", html, flags=re.S))
    for name in comparison.classes:
        assert str(name) in page.text


def test_no_control_character_comes_through(html, comparison, tmp_path, capsys):
    assert "\x07" in "".join(column.name for column in comparison.schema.columns)
    assert re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", html) is None
    assert "_hidden\ufffd" in html
    table = pd.DataFrame({"z\x1b[31mred": np.sqrt(np.arange(20.0)), "kind": ["a\x07", "b"] * 10})
    found = sx.compare(table, "kind", families=["lda"], cv=2)
    sx.save_model(found.best, tmp_path / "model.safetensors")
    inspect.run(tmp_path / "model.safetensors")
    for said in (capsys.readouterr().out, str(found), found._repr_html_()):
        assert "\x1b" not in said and "\x07" not in said
    inspect.run(tmp_path / "model.safetensors")
    said = capsys.readouterr().out
    assert r"z\x1b[31mred: numeric" in said and r"classes: a\x07, b" in said


def page_colours() -> list[tuple[str, list[str]]]:
    """The background and the colours of the classes by day, by night and on paper."""
    css = files("separatrix.report").joinpath("templates/style.css").read_text(encoding="utf-8")
    found = [block for block in re.findall(r":root \{(.*?)\}", css, flags=re.S) if "--class-0" in block]
    return [
        (
            re.search(r"--page: (#\w+)", block)[1],
            [re.search(rf"--class-{k}: (#\w+)", block)[1] for k in range(len(style.COLOURS))],
        )
        for block in found
    ]


def test_colours_of_the_page_are_those_of_the_regions():
    def channels(colour: str) -> list[float]:
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        return [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]

    def light(colour: str) -> float:
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in channels(colour)]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    schemes = page_colours()
    assert len(schemes) == 3
    for page, classes in schemes:
        for own, drawn in zip(classes, style.COLOURS, strict=True):
            turn = abs(colorsys.rgb_to_hls(*channels(own))[0] - colorsys.rgb_to_hls(*channels(drawn))[0])
            assert min(turn, 1 - turn) < 8 / 360, (own, drawn)
            dark, bright = sorted([light(own), light(page)])
            assert (bright + 0.05) / (dark + 0.05) >= 3.0, (own, page)


def test_every_class_of_twelve_has_its_own_place_in_the_legend():
    classes = [f"class {k}" for k in range(12)]
    css = files("separatrix.report").joinpath("templates/style.css").read_text(encoding="utf-8")
    for points in (False, True):
        looks = [look for look, _ in Drawing(Markup(), "", classes, points).legend]
        assert len(set(looks)) == 12
        marks = {look.split()[1] for look in looks} - {"l0", "p1"}  # a plain bar is a full line, and a square
        assert all(f".{mark} {{" in css for mark in marks)


def test_twelve_classes_are_told_apart_in_the_page():
    from separatrix.report.page import render_report

    rng = np.random.default_rng(5)
    codes = np.arange(240) % 12
    table = pd.DataFrame(rng.normal(size=(12, 3))[codes] * 3 + rng.normal(size=(240, 3)), columns=list("abc"))
    page = render_report(sx.compare(table.assign(kind=codes), "kind", families=["lda"], cv=2))
    legends = re.findall(r'<span class="legend">(.*?)</span></span>', page)
    marks = [re.findall(r'<i class="([^"]+)">', legend) for legend in legends]
    assert [len(set(one)) for one in marks if len(one) > 2] == [12] * 7  # three effects among them
    assert all(len({mark.split()[0] for mark in one}) == 12 for one in marks if len(one) > 2)  # no colour stands twice
    assert "Colours repeat" not in page


def test_colours_of_figures_are_the_page_s_own(html):
    figures = "".join(re.findall(r"<svg.*?</svg>", html, flags=re.S))
    assert set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", figures)) == set()
    assert "currentColor" in figures and "var(--class-0)" in figures


def test_the_ranking_the_reason_and_the_failures(comparison, html):
    page = Page(html)
    assert comparison.reason in page.text
    for candidate in comparison.candidates:
        score = candidate.scores["accuracy"]
        assert f"{score.mean:.3f} ± {score.standard_error:.3f}" in page.text
        assert candidate.label.capitalize()[:4] in page.text
    table = hostile_table(40)
    table["dose"] = np.where(table["kind"] == BOLD, 1.5, np.arange(40) % 7)  # constant in one class
    failing = sx.compare(table, "kind", families=["lda", "qda"], cv=2)
    assert set(failing.failures) == {"qda"}
    from separatrix.report.page import render_report

    text = Page(render_report(failing)).text
    assert failing.failures["qda"] in text and "could not be fitted" in text


def test_the_data_are_described(comparison, html):
    text = Page(html).text
    for column in comparison.schema.columns:
        assert column.name.replace("\x07", "\ufffd") in text and column.reason in text
    assert comparison.schema.findings
    for sentence in comparison.schema.findings:
        assert sentence.replace("\x07", "\ufffd") in text
    for n in np.bincount(comparison.codes):
        assert percent(n / len(comparison.codes)) in text


def test_certificates_and_parameters_are_told(comparison, html):
    text = Page(html).text
    logistic = next(one for one in comparison.candidates if one.family == "logistic")
    fit = logistic.model.estimator.fit_
    assert str(fit.status) in text
    assert str(fit.certificate) in text
    assert number(logistic.tuned["C"]) in text


def test_areas_are_those_of_scikit_learn(comparison, html):
    candidate = next(one for one in comparison.candidates if one.family == "lda")
    for k, name in enumerate(comparison.classes):
        is_class = comparison.codes == k
        for measure in (roc_auc_score, average_precision_score):
            assert f"{name}: {measure(is_class, candidate.proba[:, k]):.3f}" in Page(html).text


def test_confusion_is_that_of_scikit_learn(comparison):
    candidate, classes = comparison.candidates[0], [str(name) for name in comparison.classes]
    table = cross_table(comparison.codes, candidate.predicted, classes, classes, "predicted")
    expected = confusion_matrix(comparison.codes, candidate.predicted)
    assert [[int(cell) for cell in row[1:4]] for row in table.rows[:3]] == expected.tolist()
    np.testing.assert_allclose(np.sum(table.shades, axis=1), [1.0, 1.0, 1.0, 0.0, 0.0])
    precision, recall, _, support = precision_recall_fscore_support(comparison.codes, candidate.predicted)
    assert [row[-2:] for row in table.rows[:3]] == [[str(n), percent(r)] for n, r in zip(support, recall, strict=True)]
    assert table.rows[4] == ["precision", *map(percent, precision), "", ""] and table.totals == {3, 4}
    assert table.rows[3][1:-2] == list(map(str, expected.sum(axis=0)))
    assert table.rows[3][-2:] == [str(len(comparison.codes)), percent(np.trace(expected) / len(comparison.codes))]
    assert cross_table(np.arange(31), np.arange(31), ["c"] * 31, ["c"] * 31, "predicted") is None


def test_the_largest_mistakes_are_the_surest_ones(comparison):
    candidate = next(one for one in comparison.candidates if one.family == "lda")
    table = mistake_table(comparison, candidate)
    rows = np.array([int(row[0]) - 1 for row in table.rows])
    codes, predicted, proba = comparison.codes, candidate.predicted, candidate.proba
    assert (predicted[rows] != codes[rows]).all()
    lead = proba[np.arange(len(codes)), predicted] - proba[np.arange(len(codes)), codes]
    assert np.all(np.diff(lead[rows]) <= 0)
    others = np.setdiff1d(np.flatnonzero(predicted != codes), rows)
    assert lead[rows].min() >= lead[others].max(initial=0.0)
    at = table.head.index(SCRIPT)
    assert table.rows[0][at] == number(comparison.rows.columns[SCRIPT][rows[0]], 6)
    assert {row[table.head.index("ringed")] for row in table.rows} <= {"yes", "no"}
    never_wrong = sx.compare(hostile_table(), "kind", families=["lda"], cv=2)
    never_wrong.recommended.predicted = never_wrong.codes
    assert mistake_table(never_wrong, never_wrong.recommended) is None


def test_outliers_have_the_tail_of_their_distance(comparison):
    table = outlier_table(comparison, comparison.outliers, "distance")
    X, codes = comparison.encoded, comparison.codes
    within = X - np.stack([X[codes == k].mean(axis=0) for k in range(3)])[codes]
    inverse = np.linalg.pinv(within.T @ within / len(X))
    means = np.stack([X[codes == k].mean(axis=0) for k in range(3)])
    gaps = X[:, None, :] - means
    nearest = np.einsum("nki,ij,nkj->nk", gaps, inverse, gaps).min(axis=1)
    farthest = int(nearest.argmax())
    row = table.rows[0]
    assert row[0] == str(farthest + 1)
    assert float(row[table.head.index("distance")]) == pytest.approx(np.sqrt(nearest[farthest]), abs=0.006)
    tail = chi2.sf(nearest[farthest], np.linalg.matrix_rank(within))
    assert row[table.head.index("tail")] == number(tail, 2)


def test_doubts_are_sentences(comparison):
    section = model_section_of(comparison, "baseline")
    masked = [name for k, name in enumerate(comparison.classes) if k != np.bincount(comparison.codes).argmax()]
    assert any(note.startswith("Never predicted") and all(str(m) in note for m in masked) for note in section.notes)
    assert any(note.startswith("Confused") and "100.0 %" in note for note in section.notes)
    lda = next(one for one in comparison.candidates if one.family == "lda")
    two = np.sort(lda.proba, axis=1)[:, -2:]
    undecided = int((two[:, 1] - two[:, 0] <= 0.05).sum())
    notes = model_section_of(comparison, "lda").notes
    assert any(f"Undecided: in {count(undecided, 'row')}" in note for note in notes) == (undecided > 0)


def model_section_of(comparison, family):
    candidate = next(one for one in comparison.candidates if one.family == family)
    with page_style():
        return model_section(comparison, candidate, 100)


def test_intervals_of_the_logistic_are_laplace_s():
    rng = np.random.default_rng(5)
    codes = np.arange(400) % 2
    table = pd.DataFrame(rng.normal(size=(400, 3)) + 0.5 * codes[:, None], columns=list("abc")).assign(kind=codes)
    two_classes = sx.compare(table, "kind", families=["logistic"], cv=3)  # rows enough for a Gaussian
    section = model_section_of(two_classes, "logistic")
    candidate = next(one for one in two_classes.candidates if one.family == "logistic")
    X = candidate.model.encode(two_classes.rows)
    eta = X @ candidate.model.estimator.coef_[0] + candidate.model.estimator.intercept_[0]
    p = 1 / (1 + np.exp(-eta))
    design = np.column_stack([X, np.ones(len(X))])
    hessian = design.T @ (design * (p * (1 - p))[:, None])
    hessian[range(X.shape[1]), range(X.shape[1])] += 1 / candidate.model.estimator.C
    error = np.sqrt(np.linalg.inv(hessian).diagonal()[:-1])
    names = candidate.model.encoder.feature_names_
    cells = {row[0]: row[1:] for row in section.coefficients.rows}
    for name, estimate, spread in zip(names, candidate.model.estimator.coef_[0], error, strict=True):
        told = [float(text.replace("−", "-")) for text in cells[name]]
        expected = [estimate, estimate - 1.959964 * spread, estimate + 1.959964 * spread]
        np.testing.assert_allclose(told, expected, rtol=0.01, atol=2e-3)


def test_intervals_of_others_are_ranges_over_folds_and_say_so(two_classes):
    section = model_section_of(two_classes, "lda")
    candidate = next(one for one in two_classes.candidates if one.family == "lda")
    assert "range over 3 folds" in section.coefficients.caption
    names = candidate.model.encoder.feature_names_
    first = section.coefficients.rows[0]
    j = names.index(first[0])
    assert first[2:] == [number(candidate.fold_coefs[:, 0, j].min()), number(candidate.fold_coefs[:, 0, j].max())]


def test_intervals_of_a_perceptron_compare_directions(two_classes):
    candidate = next(one for one in two_classes.candidates if one.family == "perceptron")
    estimates = candidate.model.estimator.coef_[0]
    folds = candidate.fold_coefs[:, 0]
    scaled = folds / np.linalg.norm(folds, axis=1, keepdims=True) * np.linalg.norm(estimates)
    section = model_section_of(two_classes, "perceptron")
    assert "direction alone" in section.coefficients.caption
    cells = {row[0]: row[2:] for row in section.coefficients.rows}
    for j, name in enumerate(candidate.model.encoder.feature_names_):
        assert cells[name] == [number(scaled[:, j].min()), number(scaled[:, j].max())]


def test_a_constant_model_has_no_curves(comparison):
    section = model_section_of(comparison, "baseline")
    starts = [drawing.caption.split(",")[0] for drawing in section.drawings]
    assert not any(start.startswith(("ROC", "Precision", "The lead")) for start in starts)
    assert any("same for every row" in note for note in section.notes)
    assert any(drawing.caption.startswith("ROC") for drawing in model_section_of(comparison, "lda").drawings)


def test_fits_are_told_in_the_words_of_the_table():
    rng = np.random.default_rng(2)
    codes = np.repeat([0, 1, 2], [60, 30, 60])  # least squares masks a class between larger ones
    table = pd.DataFrame({"a": codes + rng.normal(0, 0.3, 150), "b": rng.normal(size=150)})
    table["kind"] = np.array(["low", "middle", "high"])[codes]
    found = sx.compare(table, "kind", families=["least-squares", "rda", "perceptron", "logistic"], cv=2)
    told = {family: dict(model_section_of(found, family).fit) for family in by_family(found)}
    assert "never predicts 'middle'" in told["least-squares"]["fit"]
    for facts in told.values():
        assert "nothing to tune" not in facts["fit"] and "variant" not in facts["fit"]
    assert "the average of all rules" in told["perceptron"]["fit"]
    assert by_family(found)["logistic"].certificate in told["logistic"]["certificate"]
    assert "relative gap" in told["logistic"]["certificate"]


def by_family(comparison):
    return {candidate.family: candidate for candidate in comparison.candidates}


def test_letters_that_a_font_lacks_are_no_warning(tmp_path):
    table = hostile_table(60, 2).rename(columns={"ringed": "日本語"})
    found = sx.compare(table, "kind", families=["lda"], cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sx.write_report(found, tmp_path / "report.html")
    drawn = re.findall(r"<text[^>]*>(.*?)</text>", (tmp_path / "report.html").read_text(encoding="utf-8"), flags=re.S)
    assert any("日本語" in text for text in drawn)


def test_models_without_probabilities_are_shown_by_their_scores(two_classes):
    candidate = next(one for one in two_classes.candidates if one.family == "perceptron")
    scores = candidate.decision_scores
    assert (scores.argmax(axis=1) == candidate.predicted).all()
    section = model_section_of(two_classes, "perceptron")
    assert any("no probabilities" in note for note in section.notes)
    assert any(drawing.caption.startswith("ROC") for drawing in section.drawings)
    assert not any(drawing.caption.startswith("Reliability") for drawing in section.drawings)


def test_a_loss_shows_its_matrix_and_the_actions():
    from separatrix.report.page import render_report

    loss = {BOLD: {"wait": 0, "act": 3}, "_under": {"wait": 7, "act": 0}, "$c$": {"wait": 1, "act": 1}}
    found = sx.compare(hostile_table(), "kind", families=["lda"], loss=loss, cv=2)
    text = Page(render_report(found)).text
    assert "What an action costs" in text and "What is done at least expected cost" in text
    counts = np.bincount(found.recommended.taken[found.codes == 0], minlength=2)
    table = model_section_of(found, "lda").actions
    assert [int(cell) for cell in table.rows[0][1:3]] == counts.tolist()


def test_the_plane_of_two_classes_has_a_second_axis_without_difference(two_classes):
    plane = two_classes.plane
    assert isinstance(plane, Plane) and plane.points.shape == (len(two_classes.codes), 2)
    centred = plane.points - plane.points.mean(axis=0)
    assert abs(centred[:, 0] @ centred[:, 1]) < 1e-8 * len(centred)
    means = np.stack([plane.points[two_classes.codes == k].mean(axis=0) for k in range(2)])
    assert abs(means[0, 1] - means[1, 1]) < 1e-8
    assert len(plane.sample(20)) == 20 and plane.sample(10**6).tolist() == list(range(len(centred)))


def test_no_plane_is_a_sentence():
    codes = np.repeat([0, 1], 10)
    line = np.random.default_rng(0).normal(size=(20, 1)) + codes[:, None]
    assert "one encoded column" in discriminant_plane(line, codes)
    assert "one line" in discriminant_plane(np.column_stack([line, 2 * line]), codes)


def test_one_column_is_enough_for_a_report(tmp_path):
    table = hostile_table()[[SCRIPT, "kind"]]
    found = sx.compare(table, "kind", families=["lda", "naive-bayes"], cv=2)
    sx.write_report(found, tmp_path / "one.html")
    assert "one encoded column" in (tmp_path / "one.html").read_text(encoding="utf-8")


def test_many_columns_show_those_that_tell_the_classes_apart(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 80)
    table = pd.DataFrame(rng.normal(size=(80, 20)), columns=[f"noise {j}" for j in range(20)])
    table["noise 17"] += 2 * codes
    found = sx.compare(table.assign(y=codes), "y", families=["lda"], cv=2)
    assert len(found.columns) == 12 and "noise 17" in [column.name for column in found.columns]
    assert "12 of 20 columns" in outlier_table(found, found.outliers, "distance").caption


@pytest.mark.parametrize("n_columns", [30, 31])
def test_a_long_list_of_columns_is_folded(n_columns):
    from separatrix.report.page import render_report

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, n_columns)), columns=[f"c{j}" for j in range(n_columns)])
    page = render_report(sx.compare(table.assign(y=np.arange(80) % 2), "y", families=["baseline"], cv=2))
    assert ("<summary>The columns, one by one</summary>" in page) == (n_columns > 30)
    assert all(f">c{j}</th>" in page for j in range(n_columns))


def test_long_names_are_cut_where_they_head_a_narrow_column():
    name = "a very long name of a column " * 5 + "of length"
    table = hostile_table().rename(columns={SCRIPT: name})
    found = sx.compare(table, "kind", families=["lda"], cv=2)
    heads = outlier_table(found, found.outliers, "distance").head
    assert max(map(len, heads)) <= 48 and any(head.endswith("of length") for head in heads)


def test_many_classes_get_tables_but_no_tangle_of_curves():
    rng = np.random.default_rng(1)
    codes = np.arange(130) % 13
    table = pd.DataFrame({"a": codes + rng.normal(0, 0.5, 130), "b": rng.normal(size=130), "kind": codes})
    section = model_section_of(sx.compare(table, "kind", families=["lda"], cv=2), "lda")
    assert section.confusion is not None and any("With 13 classes" in note for note in section.notes)
    assert [drawing.caption.split(",")[0] for drawing in section.drawings + section.leading][1:] == ["Reliability"]


def test_nothing_half_written(comparison, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("the old one")
    with pytest.raises(FileNotFoundError, match="no folder"):
        sx.write_report(comparison, tmp_path / "nowhere" / "report.html")
    monkeypatch.setattr("separatrix.report.page.render_report", lambda comparison: "half")
    monkeypatch.setattr("separatrix.report.page.os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        sx.write_report(comparison, path)
    assert path.read_text() == "the old one" and [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_a_report_depends_on_the_comparison_alone(tmp_path):
    import matplotlib as mpl

    found = sx.compare(hostile_table(60, 2), "kind", families=["lda"], cv=2)
    sx.write_report(found, tmp_path / "plain.html")
    own = {"text.parse_math": True, "axes.facecolor": "red", "font.size": 31, "svg.fonttype": "path"}
    with mpl.rc_context(own):
        sx.write_report(found, tmp_path / "styled.html")
        assert mpl.rcParams["font.size"] == 31  # what the user has set stays as it is
    assert (tmp_path / "plain.html").read_bytes() == (tmp_path / "styled.html").read_bytes()


def test_a_report_fits_encodes_and_predicts_nothing(tmp_path, monkeypatch):
    """The comparison keeps what it has computed, and the report only draws it."""
    table = hostile_table(90, 2)
    found = sx.compare(table, "kind", cv=2)
    assert {one.family for one in found.candidates} | set(found.failures) == set(FAMILIES)
    called = []

    def count_calls(cls, method):
        def counted(self, *args, **kwargs):
            called.append(f"{cls.__name__}.{method}")
            return own(self, *args, **kwargs)

        own = getattr(cls, method)
        monkeypatch.setattr(cls, method, counted)

    models = {type(one.model.estimator) for one in found.candidates} | {sx.FisherDiscriminant, TableEncoder, TableModel}
    methods = ("fit", "transform", "encode", "predict", "predict_proba", "decision_function", "mahalanobis")
    for cls in models:
        for method in methods:
            if hasattr(cls, method):
                count_calls(cls, method)
    sx.write_report(found, tmp_path / "report.html")
    assert str(found) and found._repr_html_() and found.table() and called == []
    next(one for one in found.candidates if one.family == "lda").model.predict(table)
    assert "TableModel.encode" in called and "TableEncoder.transform" in called  # calls are counted


def test_what_is_kept_is_what_the_models_give(two_classes):
    np.testing.assert_array_equal(two_classes.encoded, two_classes.encoder.transform(two_classes.rows))
    for candidate in two_classes.candidates:
        assert len(candidate.fold_models) == 3
        for k, model in enumerate(candidate.fold_models):
            left_out = two_classes.rows.take(np.flatnonzero(two_classes.folds == k))
            if candidate.proba is None:
                kept, given = candidate.decision_scores[:, 1], model.decision_function(left_out)
            else:
                kept, given = candidate.proba, model.predict_proba(left_out)
            np.testing.assert_array_equal(kept[two_classes.folds == k], given)


def test_svg_text_is_escaped_and_ids_are_its_own():
    from matplotlib.figure import Figure

    with page_style():
        figure = Figure()
        ax = figure.add_subplot()
        ax.plot([0, 1], [0, 1], "o", label="x")
        ax.set_title('</svg><script>"$x$" id="figure_1"')
        svg = str(inline_svg(figure, "one", 'says "a" & <b>'))
    assert "<script" not in svg and "&lt;/svg&gt;&lt;script&gt;" in svg
    assert 'aria-label="says &quot;a&quot; &amp; &lt;b&gt;"' in svg
    assert all(name.startswith("one-") for name in re.findall(r'<\w+[^>]* id="([^"]+)"', svg))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"),
        (-0.5, "−0.5"),
        (0.123456, "0.123"),
        (1e-9, "1.00e−09"),
        (np.nan, "missing"),
        (np.inf, "∞"),
        (0.0, "0"),
    ],
)
def test_numbers_are_written_to_be_read(value, text):
    assert number(value) == text
