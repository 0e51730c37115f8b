"""The report as a browser shows it: quiet, self-contained, readable on a phone, in the dark and on paper."""

from __future__ import annotations

import io
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from test_report import BOLD, SCRIPT, hostile_table
from typer.testing import CliRunner

import separatrix as sx
from separatrix.cli.main import app

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser, and it is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine to open the report with")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    found = sx.compare(hostile_table(), "kind", families=["naive-bayes", "lda", "perceptron"], cv=3)
    path = tmp_path_factory.mktemp("report") / "report.html"
    sx.write_report(found, path)
    return path


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def wordy_report(tmp_path_factory):
    """Two classes and six columns with long names."""
    rng = np.random.default_rng(0)
    codes = np.arange(90) % 2
    names = ["a_name_without_any_space_" * 4, "mean concave points of the nucleus of the cell in the worst image"]
    table = pd.DataFrame(rng.normal(size=(90, 6)) + codes[:, None], columns=[*names, "b", "c", "d", "e"])
    table["kind"] = np.array(["neither_improved_nor_deteriorated_since_the_last_visit", "improved a good deal"])[codes]
    path = tmp_path_factory.mktemp("wordy") / "report.html"
    sx.write_report(sx.compare(table, "kind", families=["lda"], cv=3), path)
    return path


@pytest.fixture
def open_page(browser, report):
    contexts = []

    def opened(width: int = 1280, report=report, **options):
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.requests = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (page.complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(report.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


def test_nothing_is_asked_for_and_nothing_complains(open_page, report):
    page = open_page()
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    outside = [url for url in page.requests if not url.startswith("data:")]
    assert outside == [report.as_uri()] and page.complaints == []
    assert report.stat().st_size < 3_000_000


def test_every_picture_has_words(open_page):
    page = open_page()
    names = page.eval_on_selector_all(
        "img, svg", "all => all.map(one => one.getAttribute('aria-label') || one.alt || '')"
    )
    assert len(names) > 10 and all(len(name) > 30 for name in names)
    assert page.get_by_role("img").count() > 5  # as a screen reader finds them


def test_names_from_the_table_are_shown_as_text(open_page):
    page = open_page()
    shown = page.inner_text("main")
    assert SCRIPT in shown and BOLD in shown
    assert page.locator("script").count() == 1 and page.locator("main b").count() == 0
    drawn = page.eval_on_selector_all("svg text", "all => all.map(one => one.textContent)")
    assert any("$a_{b$" in text for text in drawn)
    fonts = page.eval_on_selector_all("body, svg text", "all => all.map(one => getComputedStyle(one).fontFamily)")
    assert len(set(fonts)) == 1  # the page's own


@pytest.mark.parametrize("width", [320, 360, 768, 1440])
def test_the_page_never_scrolls_sideways(open_page, width):
    page = open_page(width)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.evaluate(
        "[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll, svg')"
        " && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.tagName + one.className)"
    )
    assert wide == []


def test_a_wide_table_scrolls_in_its_own_box(open_page):
    page = open_page(360)
    boxes = page.eval_on_selector_all(".scroll", "all => all.map(one => one.scrollWidth - one.clientWidth)")
    assert max(boxes) > 100
    assert page.locator(".scroll:not([tabindex='0'])").count() == 0  # the keyboard reaches them


def right_edge(box) -> tuple[int, ...]:
    """The colour beside the caption of a table, a few points inside the right end of its box."""
    picture = Image.open(io.BytesIO(box.screenshot())).convert("RGB")
    return picture.getpixel((picture.width - 3, 3))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_shadow_shows_where_a_table_goes_on(open_page, scheme):
    page = open_page(360, color_scheme=scheme)
    background = tuple(map(int, page.evaluate("getComputedStyle(document.body).backgroundColor")[4:-1].split(",")))
    classes = page.locator("#data .scroll").first
    assert classes.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert right_edge(classes) == background
    ranking = page.locator("#ranking .scroll").first
    assert ranking.evaluate("one => one.scrollWidth > one.clientWidth")
    contrast = np.abs(np.subtract(right_edge(ranking), background)).max()
    assert contrast > 40
    ranking.evaluate("one => one.scrollLeft = one.scrollWidth")
    assert right_edge(ranking) == background


@pytest.mark.parametrize("width", [360, 1280])
def test_long_names_leave_tables_readable(open_page, wordy_report, width):
    page = open_page(width, wordy_report)
    confusion = page.locator(".shaded").first
    assert confusion.evaluate("one => one.closest('.scroll').scrollWidth <= one.closest('.scroll').clientWidth")
    heights = page.eval_on_selector_all("thead", "all => all.map(one => one.getBoundingClientRect().height)")
    assert max(heights) <= 200
    widest = page.eval_on_selector_all("thead th", "all => all.map(one => one.getBoundingClientRect().width)")
    assert max(widest) <= 22 * 16 + 1
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


CONTRAST = """
selector => {
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const page = light(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll(selector)].map(one => {
    const style = getComputedStyle(one), ink = light(one instanceof SVGElement ? style.fill : style.color);
    return (Math.max(ink, page) + 0.05) / (Math.min(ink, page) + 0.05);
  });
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_by_day_and_by_night(open_page, scheme):
    page = open_page(color_scheme=scheme)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) > 384) == (scheme == "light")
    assert min(page.evaluate(CONTRAST, "p, li, td:not(.zero), th, dd, h1, h2, h3")) >= 4.5
    assert min(page.evaluate(CONTRAST, "caption, figcaption, dt, a")) >= 4.5
    assert min(page.evaluate(CONTRAST, "svg text")) >= 4.5


def test_on_paper_everything_is_open_and_nothing_is_cut(open_page):
    page = open_page(680)  # A4 less its margins
    hidden = page.locator("details.model h4").first
    assert not hidden.is_visible()
    page.emulate_media(media="print", color_scheme="dark")
    heights = page.eval_on_selector_all(
        "details.model > div", "all => all.map(one => one.getBoundingClientRect().height)"
    )
    assert len(heights) == 2 and min(heights) > 500
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ends = page.eval_on_selector_all("table", "all => all.map(one => one.getBoundingClientRect().right)")
    assert max(ends) <= 681
    assert page.eval_on_selector_all(".scroll", "all => all.every(one => getComputedStyle(one).overflowX == 'visible')")


def test_the_contents_lead_to_every_section_and_open_it(open_page):
    page = open_page(reduced_motion="reduce")
    for link in page.locator("nav a").all():
        target = page.locator(link.get_attribute("href"))
        link.click()
        assert target.is_visible()


# -- the script -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_class_report(tmp_path_factory):
    """Two classes with overlap, a comparison of several families, and what was found."""
    rng = np.random.default_rng(2)
    codes = np.arange(160) % 2
    table = pd.DataFrame(rng.normal(size=(160, 3)) + 0.8 * codes[:, None], columns=["a", "b", "it's"])
    table["kind"] = np.array(['it\'s "bad"', "good, really"])[codes]
    found = sx.compare(table, "kind", families=["baseline", "lda", "naive-bayes"], cv=3, holdout=0.2)
    path = tmp_path_factory.mktemp("two") / "report.html"
    sx.write_report(found, path)
    return path, found, table


def test_the_chooser_counts_what_the_rule_does(open_page, two_class_report):
    path, found, _ = two_class_report
    page = open_page(report=path)
    proba, codes = found.recommended.proba[:, 1], found.codes
    for step in (20, 90, 100, 150):
        page.eval_on_selector(
            "[name=threshold]",
            f"one => {{ one.value = {step}; one.dispatchEvent(new Event('input', {{bubbles: true}})) }}",
        )
        said = proba >= step / 200
        shown = [int(page.inner_text(f"[data-out={name}]")) for name in ("tn", "fp", "fn", "tp")]
        expected = [int(((codes == k) & (said == answer)).sum()) for k in (0, 1) for answer in (False, True)]
        assert shown == expected
        cost = float(page.inner_text("[data-out=cost]"))
        assert cost == pytest.approx((expected[1] + expected[2]) / len(codes), rel=5e-3)
    page.fill("[name=miss]", "5")
    page.click("text=Cheapest")
    chosen = float(page.inner_text("[data-out=threshold]"))
    costs = [((proba >= t) & (codes == 0)).sum() + 5 * ((proba < t) & (codes == 1)).sum() for t in np.arange(201) / 200]
    assert costs[round(200 * chosen)] == min(costs) and chosen < 0.5
    assert page.complaints == []


@pytest.mark.parametrize("asking", [False, True])
def test_the_command_of_the_chooser_is_its_rule(open_page, two_class_report, tmp_path, asking):
    path, found, table = two_class_report
    page = open_page(report=path)
    page.fill("[name=miss]", "3")
    page.eval_on_selector(
        "[name=threshold]", "one => { one.value = 60; one.dispatchEvent(new Event('input', {bubbles: true})) }"
    )
    if asking:
        page.check("[name=asking]")
        page.fill("[name=fee]", "0.4")
    command = page.inner_text("[data-out=command]")
    assert command.splitlines()[-1].startswith("separatrix predict 'model.safetensors' new.csv --loss costs.csv -o ")
    subprocess.run(["sh", "-c", command.splitlines()[0]], cwd=tmp_path, check=True)
    sx.save_model(found.best, tmp_path / "model.safetensors")
    table.to_csv(tmp_path / "new.csv", index=False)
    arguments = ["predict", tmp_path / "model.safetensors", tmp_path / "new.csv", "--loss", tmp_path / "costs.csv"]
    run = CliRunner().invoke(app, [str(one) for one in arguments] + ["-o", str(tmp_path / "p.csv"), "--quiet"])
    assert run.exit_code == 0, run.stderr
    given, p = pd.read_csv(tmp_path / "p.csv")["prediction"], found.best.predict_proba(table)[:, 1]
    first, second = (str(name) for name in found.classes)
    expected = np.where(p >= 0.3, second, first).astype(object)
    if asking:  # T = 1 + 3: asked between 0.4/(0.7 T) and 1 − 0.4/(0.3 T)
        expected[(p > 0.4 / 2.8) & (p < 1 - 0.4 / 1.2)] = "ask"
        assert 0 < (given == "ask").sum() < len(given)
    assert (given == expected).all()


def test_tables_sort_and_sums_stay_below(open_page, two_class_report):
    page = open_page(report=two_class_report[0])
    column = page.locator("#ranking table thead th").nth(4)
    for order in ("ascending", "descending"):
        column.locator("button").click()
        assert column.get_attribute("aria-sort") == order
        cells = page.eval_on_selector_all(
            "#ranking table tbody tr:not(.total)", "all => all.map(row => parseFloat(row.cells[4].textContent))"
        )
        assert cells == sorted(cells, reverse=order == "descending")


def test_a_point_tells_its_numbers(open_page, two_class_report):
    page = open_page(report=two_class_report[0], reduced_motion="reduce")
    figure = page.locator("#ranking figure").first
    figure.evaluate("one => one.scrollIntoView({block: 'center', behavior: 'instant'})")
    x, y, text = figure.evaluate(
        "one => { const [x, y, text] = JSON.parse(one.dataset.tips)[0], svg = one.querySelector('svg'),"
        " box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;"
        " return [box.left + x * scale, box.top + y * scale, text]; }"
    )
    page.mouse.move(x - 1, y)
    page.mouse.move(x, y)
    page.locator("#tip").wait_for(state="visible", timeout=20_000)  # the page hears of the pointer when it comes to it
    assert page.inner_text("#tip") == text
    page.mouse.move(2, 2)
    page.locator("#tip").wait_for(state="hidden", timeout=20_000)


# -- pictures of every section ------------------------------------------------------------------------------------------

SECTIONS = ["answer", "mistakes", "rule", "why", "ranking", "recommended", "data", "others", "facts"]


@pytest.mark.parametrize("width, scheme", [(1400, "light"), (1400, "dark"), (400, "light")])
def test_every_section_is_a_calm_picture(open_page, two_class_report, width, scheme):
    page = open_page(width, two_class_report[0], color_scheme=scheme, reduced_motion="reduce")
    background = tuple(map(int, page.evaluate("getComputedStyle(document.body).backgroundColor")[4:-1].split(",")))
    assert page.eval_on_selector_all("main > section", "all => all.map(one => one.id)") == SECTIONS
    for name in SECTIONS:
        picture = Image.open(io.BytesIO(page.locator(f"#{name}").screenshot())).convert("RGB")
        pixels = np.asarray(picture).reshape(-1, 3).astype(int)
        empty = (np.abs(pixels - background).max(axis=1) <= 12).mean()
        assert 0.6 < empty < 0.995, (name, empty)  # neither crowded nor blank
        assert picture.width <= width
        text = page.locator(f"#{name}").inner_text()
        assert "CodedText" not in text and "np." not in text and "nan" not in text.lower().split()
    overlapping = page.evaluate(
        "() => { const all = [...document.querySelectorAll('main h2, main h3, main p, main figure, main .scroll')]"
        ".filter(one => !one.closest('details:not([open])') && !one.parentElement.closest('.scroll, figure'));"
        " const boxes = all.map(one => one.getBoundingClientRect());"
        " return boxes.filter((a, i) => boxes.some((b, j) => i < j && a.bottom > b.top + 2 && b.bottom > a.top + 2"
        " && a.right > b.left + 2 && b.right > a.left + 2)).length; }"
    )
    assert overlapping == 0
    assert page.complaints == []


@pytest.mark.parametrize(("classes", "name"), [(10, "class number"), (12, "a species with the number")])
def test_ten_classes_fit_without_scrolling(open_page, tmp_path, classes, name):
    rng = np.random.default_rng(0)
    codes = np.arange(360) % classes
    table = pd.DataFrame(rng.normal(size=(classes, 4))[codes] * 2 + rng.normal(size=(360, 4)), columns=list("abcd"))
    table["kind"] = np.array([f"{name} {k}" for k in range(classes)])[codes]
    costs = (1.0 - np.eye(classes)).tolist()
    families = ["lda", "logistic-l1", "least-squares", "naive-bayes", "rda"]
    found = sx.compare(table, "kind", families=families, cv=2, loss=costs)
    sx.write_report(found, tmp_path / "ten.html")
    page = open_page(1400, tmp_path / "ten.html")
    for box in [*page.locator("#mistakes .scroll").all(), page.locator("#ranking .scroll").first]:
        assert box.evaluate("one => one.scrollWidth <= one.clientWidth"), box.get_attribute("aria-label")
    zero = page.locator("#mistakes td.zero").first
    assert zero.evaluate("one => getComputedStyle(one).color") != page.evaluate("getComputedStyle(document.body).color")


def test_rows_of_free_text_stay_low(open_page, tmp_path):
    rng = np.random.default_rng(0)
    codes = np.arange(120) % 2
    words = [" ".join(f"w{i}" for i in rng.integers(0, 40, 30)) for _ in codes]
    table = pd.DataFrame({"review": words, "x": rng.normal(size=120), "kind": codes})
    sx.write_report(sx.compare(table, "kind", families=["lda"], cv=2), tmp_path / "words.html")
    for width in (400, 1400):
        page = open_page(width, tmp_path / "words.html")
        rows = page.locator("#mistakes tbody tr").all()
        heights = [row.bounding_box()["height"] for row in rows]
        assert len(heights) > 4 and max(heights) < 160, heights
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
