"""The explorer as a browser shows it: points are drawn and dragged, all families and controls used, names shown as text."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from separatrix.explore.families import FAMILIES
from separatrix.explore.fitting import fit
from separatrix.explore.protocol import read_state

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser, and it is not installed")
pytest.importorskip("uvicorn", reason="the server is an extra")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine to open the explorer with"),
    pytest.mark.filterwarnings("ignore"),
]
HOSTILE = "<img src=x onerror=alert(1)>"
ROOT = "document.querySelector('.separatrix-explorer').explorer"
MEASURES = f"() => {ROOT}.panels[0].reply.measures"
STATE = """() => { const e = document.querySelector('.separatrix-explorer').explorer;
  return { ...e.stateOf(0), points: e.store.points }; }"""
SETTLED = """() => { const e = document.querySelector('.separatrix-explorer')?.explorer;
  return e && e.connected && e.shownPanels.every(p => p.idle && p.reply); }"""


class Served:
    """The command in a process of its own."""

    def __init__(self, *arguments):
        code = "from separatrix.cli.main import main; main()"
        command = [sys.executable, "-c", code, "explore", "--no-browser", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"http\S+", self.process.stdout.readline()).group(0)

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        self.process.wait(10)


@pytest.fixture(scope="module")
def server():
    served = Served()
    yield served
    served.end()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser, server):
    contexts = []

    def opened(address=None, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.outside = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (page.complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: page.outside.append(request.url))
        page.goto(address or server.address)
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()


def settle(page):
    page.wait_for_function(SETTLED, timeout=30_000)
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def choose(page, family, panel=0):
    page.select_option(f'[data-family="{panel}"]', family)
    settle(page)


def load(page, name):
    page.select_option("[data-control=dataset]", name)
    page.wait_for_function(
        "name => document.querySelector('.separatrix-explorer').explorer.store.data === name", arg=name
    )
    settle(page)


def n_points(page):
    return page.evaluate("() => document.querySelector('.separatrix-explorer').explorer.store.n")


def canvas(page, panel=0):
    return page.locator(".sx-plot canvas").nth(panel)


def pixels_of(page, places, panel=0):
    """Where places of the plane are on the canvas."""
    script = """([places, k]) => { const plot = document.querySelector('.separatrix-explorer').explorer.panels[k].plot;
      return places.map(([x, y]) => plot.toPixels(x, y)); }"""
    return np.array(page.evaluate(script, [np.asarray(places).tolist(), panel]))


def test_points_are_added_dragged_and_taken_back(open_page):
    page = open_page()
    before, state = n_points(page), page.evaluate(STATE)
    box = canvas(page).bounding_box()
    page.mouse.click(box["x"] + 40, box["y"] + 30)
    settle(page)
    assert n_points(page) == before + 1
    at = pixels_of(page, [[state["points"]["x"][0], state["points"]["y"][0]]])[0]
    reply = "() => document.querySelector('.separatrix-explorer').explorer.panels[0].reply.boundary"
    boundary = page.evaluate(reply)
    page.mouse.move(box["x"] + at[0], box["y"] + at[1])
    page.mouse.down()
    for k in range(1, 11):
        page.mouse.move(box["x"] + at[0] + 25 * k, box["y"] + at[1] - 8 * k)
    page.mouse.up()
    settle(page)
    moved = page.evaluate(STATE)
    assert moved["points"]["x"][0] > state["points"]["x"][0] + 0.5
    assert page.evaluate(reply) != boundary  # the boundary followed
    assert n_points(page) == before + 1
    for _ in range(2):
        page.get_by_role("button", name="Undo").click()
    settle(page)
    assert page.evaluate(STATE)["points"] == state["points"]
    page.get_by_role("button", name="Redo").click()
    settle(page)
    assert n_points(page) == before + 1
    assert page.complaints == []
    assert all(url.startswith((page.url.split("#")[0], "data:", "blob:")) for url in page.outside)


def test_points_are_painted_relabelled_weighted_and_erased(open_page):
    page = open_page()
    box, before = canvas(page).bounding_box(), n_points(page)

    def stroke(*places):
        page.mouse.move(*places[0])
        page.mouse.down()
        for place in places[1:]:
            page.mouse.move(*place, steps=6)
        page.mouse.up()
        settle(page)

    page.click('[data-class="1"]')
    page.click("[data-tool=paint]")
    stroke((box["x"] + 60, box["y"] + 60), (box["x"] + 260, box["y"] + 90))
    painted = n_points(page) - before
    assert painted > 3
    assert page.evaluate(STATE)["points"]["label"][before:] == [1] * painted
    page.click('[data-action="class"]')
    page.click("[data-tool=relabel]")
    last = page.evaluate(STATE)["points"]
    at = pixels_of(page, [[last["x"][-1], last["y"][-1]]])[0]
    page.mouse.click(box["x"] + at[0], box["y"] + at[1])
    settle(page)
    assert 2 in page.evaluate(STATE)["points"]["label"]
    page.click("[data-tool=weight]")
    page.mouse.click(box["x"] + at[0], box["y"] + at[1])
    settle(page)
    assert sorted(set(page.evaluate(STATE)["points"]["weight"])) == [1, 2]
    page.click("[data-tool=erase]")
    page.mouse.click(box["x"] + at[0], box["y"] + at[1])
    settle(page)
    assert n_points(page) == before + painted - 1
    page.click('[data-action="clear"]')
    page.wait_for_function("() => document.querySelector('.sx-bad')")
    assert "at least two classes" in page.inner_text(".sx-status")
    assert page.complaints == []


def test_every_family_and_every_control(open_page):
    page = open_page()
    for family in FAMILIES.values():
        choose(page, family.name)
        assert page.locator(".sx-bad").count() == 0, (family.name, page.inner_text(".sx-status"))
        for control in family.controls:
            field = page.locator(f'.sx-side [data-control="{control.name}"]').first
            if control.kind == "choice":
                field.select_option(index=len(control.options) - 1)
            elif control.kind == "switch":
                field.click()
            else:
                field.focus()
                page.keyboard.press("End")
            settle(page)
            assert page.locator(".sx-bad").count() == 0, (family.name, control.name, page.inner_text(".sx-status"))
            sent = page.evaluate(STATE)["model"]["parameters"][control.name]
            expected = control.options[-1][0] if control.kind == "choice" else None
            if control.kind == "choice":
                assert sent == expected
            elif control.kind == "switch":
                assert sent is not control.default
            else:
                assert sent == ("inf" if control.unlimited else control.high)
    assert page.complaints == []


@pytest.mark.parametrize("family", ["lda", "qda", "svm", "logistic"])
def test_the_drawn_boundary_is_where_the_decision_function_vanishes(open_page, family):
    page = open_page()
    load(page, "blobs")
    choose(page, family)
    fitted = fit(read_state(page.evaluate(STATE)))
    script = """() => { const p = document.querySelector('.separatrix-explorer').explorer.panels[0];
      return { paths: p.reply.boundary, size: p.plot.size, view: p.reply.view }; }"""
    drawn = page.evaluate(script)
    vertices = np.vstack([np.reshape(path, (-1, 2)) for path in drawn["paths"]])
    at = vertices[np.linspace(0, len(vertices) - 1, 50).astype(int)]
    pixel = (drawn["view"]["x"][1] - drawn["view"]["x"][0]) / drawn["size"][0]
    slopes = [fitted.binary_scores(at + pixel * e) - fitted.binary_scores(at - pixel * e) for e in np.eye(2)]
    away = np.abs(fitted.binary_scores(at)) / (np.hypot(*slopes) / 2)  # in pixels
    assert away.max() < 1.0
    # And the picture itself: 50 pixels away from the line have the colour of the class that the model predicts there.
    page.evaluate("""() => { const e = document.querySelector('.separatrix-explorer').explorer;
      e.panels[0].plot.showLevels = e.panels[0].plot.showExtras = false;
      e.store.points = { x: [], y: [], label: [], weight: [] }; e.panels[0].reply.measures.wrong = [];
      e.refresh({ points: true, view: true }); }""")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    picture = np.asarray(Image.open(io.BytesIO(canvas(page).screenshot())).convert("RGB"), dtype=int)
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(*drawn["view"]["x"], 200), rng.uniform(*drawn["view"]["y"], 200)])
    places = pixels_of(page, X).astype(int)
    clear = np.min(np.hypot(*(pixels_of(page, vertices)[:, None] - places).transpose(2, 0, 1)), axis=0) > 8
    X, places = X[clear][:50], places[clear][:50]
    assert len(X) == 50
    red_minus_blue = np.array([picture[y, x, 0] - picture[y, x, 2] for x, y in places])
    np.testing.assert_array_equal(red_minus_blue > 0, fitted.predict(X) == 1)  # class 0 is blue, class 1 orange


def test_the_copied_code_predicts_what_is_drawn(open_page):
    page = open_page()
    load(page, "moons")
    choose(page, "svm")
    page.get_by_role("button", name="Copy code").click()
    text = page.inner_text("dialog pre")
    scope = {}
    exec(text.replace("print(", "str("), scope)
    fitted = fit(read_state(page.evaluate(STATE)))
    X = fitted.state.view.grid(40)
    np.testing.assert_array_equal(scope["model"].predict(X), fitted.predict(X))
    page.get_by_role("dialog").get_by_role("button", name="Close").click()


def test_two_models_share_the_points(open_page):
    page = open_page()
    page.get_by_role("button", name="Two models").click()
    settle(page)
    choose(page, "perceptron", 1)
    box = canvas(page, 1).bounding_box()
    before = n_points(page)
    page.mouse.click(box["x"] + 30, box["y"] + 30)
    settle(page)
    assert n_points(page) == before + 1 and page.locator(".sx-panel").count() == 2
    assert page.complaints == []


def test_losses_rejection_and_priors_change_the_regions(open_page):
    page = open_page()
    choose(page, "lda")
    actions = """() => document.querySelector('.separatrix-explorer').explorer.panels[0].reply.regions
      .filter(r => r.shapes.length).map(r => r.action)"""
    page.check("[data-control=decide]")
    settle(page)
    assert page.evaluate(actions) == [0, 1]
    page.fill('[data-loss="0,1"]', "5")
    page.locator("[data-control=reject]").fill("0.2")
    settle(page)
    assert page.evaluate(actions) == [0, 1, -1]
    right = page.evaluate(MEASURES)["accuracy"]
    page.check("[data-control=priors]")
    settle(page)
    page.locator('[data-prior="0"]').fill("1")
    page.locator('[data-prior="1"]').fill("0.01")
    settle(page)
    now = page.evaluate(MEASURES)["accuracy"]
    assert now < right


@pytest.mark.parametrize(("family", "words"), [("logistic", "step"), ("perceptron", "mistake")])
def test_films_play_and_close(open_page, family, words):
    page = open_page(reduced_motion="reduce")
    choose(page, family)
    page.locator("[data-film]").click()
    page.wait_for_selector(".sx-player p")
    assert words in page.inner_text(".sx-player p")
    first = page.inner_text(".sx-player p")
    page.locator("[data-film-slider]").focus()
    page.keyboard.press("End")
    assert page.inner_text(".sx-player p") != first
    page.get_by_role("button", name="Close").click()
    assert page.locator(".sx-player").count() == 0


def test_a_shared_address_opens_the_same_points(open_page, server):
    page = open_page()
    load(page, "xor")
    choose(page, "qda")
    page.get_by_role("button", name="Share").click()
    page.wait_for_function("() => location.hash.startsWith('#s=')")
    other = open_page(page.url)
    assert other.evaluate(STATE)["points"] == page.evaluate(STATE)["points"]
    assert other.input_value('[data-family="0"]') == "qda"
    broken = open_page(server.address + "#s=nonsense")
    assert n_points(broken) > 0


def test_exports_are_whole(open_page):
    page = open_page()
    load(page, "three")

    def exported(kind):
        with page.expect_download() as download:
            page.select_option("[data-action=export]", kind)
        return open(download.value.path(), "rb").read()

    drawing = exported("svg").decode()
    assert drawing.count("translate(") == n_points(page) and "<script" not in drawing
    assert Image.open(io.BytesIO(exported("png"))).size == (1280, 1040)
    rows = exported("csv").decode().splitlines()
    assert rows[0].endswith("label,weight,class") and len(rows) == n_points(page) + 1


def test_two_tabs_at_once(open_page):
    one, two = open_page(), open_page()
    load(one, "three")
    load(two, "rings")
    choose(two, "svm")
    for page, classes in ((one, 3), (two, 2)):
        assert len(page.evaluate(STATE)["classes"]) == classes and page.locator(".sx-bad").count() == 0


def test_the_page_waits_for_a_server_that_was_killed(open_page):
    served = Served("--token", "a-token-that-stays-the-same")
    port = served.address.split(":")[2].split("/")[0]
    page = open_page(served.address)
    served.end(signal.SIGKILL)
    page.wait_for_selector(".sx-lost:visible")
    before = n_points(page)
    box = canvas(page).bounding_box()
    page.mouse.click(box["x"] + 30, box["y"] + 30)  # goes on to be used
    again = Served("--token", "a-token-that-stays-the-same", "--port", port)
    try:
        page.wait_for_selector(".sx-lost", state="hidden", timeout=15_000)
        settle(page)
        assert n_points(page) == before + 1
        counted = page.evaluate(MEASURES)["confusion"]["counts"]
        assert np.sum(counted) == before + 1  # fitted anew, with the point that was drawn meanwhile
    finally:
        again.end()


def test_names_from_a_table_are_shown_as_text(open_page, tmp_path):
    rng = np.random.default_rng(0)
    rows = [f'{rng.normal() + k},{rng.normal()},{rng.normal() - k},"{HOSTILE if k else "plain"}"' for k in (0, 1) * 30]
    path = tmp_path / "hostile.csv"
    path.write_text(f'"{HOSTILE}",<b>u</b>,v,"<i>kind</i>"\n' + "\n".join(rows), encoding="utf-8")
    served = Served(os.fspath(path), "--target", "<i>kind</i>")
    try:
        page = open_page(served.address)
        page.select_option('[data-column="0"]', HOSTILE)
        page.wait_for_function(f"name => {ROOT}.store.axes[0] === name", arg=HOSTILE)
        settle(page)
        for family in ("logistic", "naive-bayes", "fisher"):
            choose(page, family)
        page.check("[data-control=decide]")
        settle(page)
        assert HOSTILE in page.text_content(".sx-axes")
        assert HOSTILE in page.text_content(".sx-confusion")
        assert page.locator("img, .separatrix-explorer b, .separatrix-explorer script").count() == 0
        page.get_by_role("button", name="Copy code").click()
        assert "import" in page.inner_text("dialog pre")
        assert page.complaints == []
    finally:
        served.end()


def test_the_keyboard_does_what_a_mouse_does(open_page):
    page = open_page()
    before = n_points(page)
    canvas(page).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    settle(page)
    assert n_points(page) == before + 1
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    said = page.locator("[aria-live=polite].sx-hidden")
    assert f"Point 1 of {before + 1}" in said.text_content()
    x = page.evaluate(STATE)["points"]["x"][0]
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("2")
    page.keyboard.press("+")
    settle(page)
    points = page.evaluate(STATE)["points"]
    assert points["x"][0] > x and points["label"][0] == 1 and points["weight"][0] == 2
    page.keyboard.press("Delete")
    settle(page)
    assert n_points(page) == before
    for _ in range(5):
        page.keyboard.press("Control+z")
    settle(page)
    assert n_points(page) == before
    unnamed = page.evaluate("""() => [...document.querySelectorAll('button, select, input, canvas, svg[role=img]')]
      .filter(one => !(one.getAttribute('aria-label') || one.labels?.length || one.textContent.trim()))
      .map(one => one.outerHTML)""")
    assert unnamed == []


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_and_text_stands_out(open_page, width, scheme):
    page = open_page(width=width, color_scheme=scheme)
    load(page, "three")
    for family in ("least-squares", "rda", "logistic"):
        choose(page, family)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    contrast = page.evaluate("""() => {
      const light = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const page = light(getComputedStyle(document.querySelector('.separatrix-explorer')).backgroundColor);
      return [...document.querySelectorAll('p, label, dt, dd, th, h1, h4, .sx-status span, svg text')].map(one => {
        const style = getComputedStyle(one), ink = light(one instanceof SVGElement ? style.fill : style.color);
        return (Math.max(ink, page) + 0.05) / (Math.min(ink, page) + 0.05); }); }""")
    assert len(contrast) > 20 and min(contrast) >= 4.5


def test_a_finger_draws_too(open_page):
    page = open_page(width=400, has_touch=True, is_mobile=True)
    before, box = n_points(page), canvas(page).bounding_box()
    page.touchscreen.tap(box["x"] + 30, box["y"] + 30)
    settle(page)
    assert n_points(page) == before + 1
    heights = page.eval_on_selector_all(
        "button", "all => all.map(one => one.getBoundingClientRect().height).filter(h => h)"
    )
    assert min(heights) >= 36


def test_the_widget_has_the_same_page(browser):
    """As anywidget runs it: `render` with a model whose messages are answered by the library."""
    pytest.importorskip("anywidget", reason="the widget is an extra")
    import separatrix

    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    widget = separatrix.explore(X, y, family="qda")
    context = browser.new_context()
    page = context.new_page()
    page.route(
        "http://notebook.test/", lambda route: route.fulfill(content_type="text/html", body="<div id=cell></div>")
    )
    page.route(
        "http://notebook.test/w.js", lambda route: route.fulfill(content_type="text/javascript", body=widget._esm)
    )
    page.goto("http://notebook.test/")
    page.add_style_tag(content=widget._css)

    def kernel(message):
        sent = []
        widget.send = sent.append
        widget._handle_custom_msg(message, [])
        return json.loads(json.dumps(sent[0]))

    page.expose_function("kernel", kernel)
    page.evaluate("""async () => { const listeners = [];
      const model = { get: name => ({ height: 700, family: 'qda' })[name], on: (_, f) => listeners.push(f), off: () => {},
        send: async message => { const answer = await window.kernel(message); listeners.forEach(f => f(answer)); } };
      (await import('http://notebook.test/w.js')).default.render({ model, el: document.getElementById('cell') }); }""")
    settle(page)
    assert page.input_value('[data-family="0"]') == "qda"
    assert page.evaluate(STATE)["axes"][0] == "discriminant coordinate 1" and n_points(page) == 60
    context.close()
