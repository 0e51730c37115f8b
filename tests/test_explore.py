"""The explorer without a browser: messages in, answers out; the server's door; the copied code; the build that ships."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.path import Path as Polygon
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

import separatrix
from separatrix.explore.answering import Conversation
from separatrix.explore.desk import Desk
from separatrix.explore.families import FAMILIES
from separatrix.explore.fitting import fit
from separatrix.explore.plane_table import PlaneTable
from separatrix.explore.protocol import read_state

ROOT = Path(__file__).parent.parent
STATIC = ROOT / "src" / "separatrix" / "explore" / "static"
pytestmark = pytest.mark.filterwarnings("ignore")


def request(name="blobs", family="lda", **more):
    points = Conversation().answer({"kind": "dataset", "name": name})
    return {**points, "kind": "fit", "grid": 61, "model": {"family": family, "parameters": {}}, **more}


def actions_at(answer, X):
    """What the drawn regions say: the action whose polygons hold a place, by the even-odd rule; −9 where none does."""
    found = np.full(len(X), -9)
    for region in answer["regions"]:
        inside = np.zeros(len(X), dtype=bool)
        for polygon in region["shapes"]:
            for ring in polygon:
                inside ^= Polygon(np.reshape(ring, (-1, 2))).contains_points(X)
        found[inside] = region["action"]
    return found


def away_from_edges(answer, X, cells):
    """Which places are further from the drawn boundary than so many cells of the grid."""
    vertices = [np.reshape(path, (-1, 2)) for path in answer["boundary"]]
    if not vertices:
        return np.ones(len(X), dtype=bool)
    size = [(answer["view"][axis][1] - answer["view"][axis][0]) / (answer["grid"] - 1) for axis in ("x", "y")]
    fine = [np.linspace(a, b, 9) for path in vertices for a, b in pairwise(path)]
    return cKDTree(np.vstack(fine) / size).query(X / size)[0] > cells


@pytest.mark.parametrize("dataset", ["blobs", "three"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_drawn_regions_are_those_of_the_model(family, dataset):
    asked = request(dataset, family)
    answer = Conversation().answer(asked)
    assert "error" not in answer
    json.dumps(answer, allow_nan=False)
    state = read_state(asked)
    # Fitted again, on its own: what is drawn is compared with another fit than the one that drew it.
    model = FAMILIES[family].build(**FAMILIES[family].parameters({})).fit(state.points.X, state.points.codes)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(*state.view.x, 400), rng.uniform(*state.view.y, 400)])
    clear = away_from_edges(answer, X, 1.5)
    assert clear.mean() > 0.7
    np.testing.assert_array_equal(actions_at(answer, X)[clear], model.predict(X)[clear])
    right = np.mean(model.predict(state.points.X) == state.points.codes)
    assert answer["measures"]["accuracy"] == pytest.approx(right)
    if dataset == "blobs" and hasattr(model, "decision_function"):  # along the drawn line the score vanishes
        at = np.vstack([np.reshape(path, (-1, 2)) for path in answer["boundary"]])
        step = 1e-4
        score = model.decision_function
        if family in ("centroid", "fisher"):  # which decide by plain distances, but score in deviations
            last, before = (model, lambda X: X) if family == "centroid" else (model[-1], model[0].transform)
            score = lambda X: np.diff(-(cdist(before(X), last.centroids_) ** 2))[:, 0]  # noqa: E731
        slopes = [score(at + step * e) - score(at - step * e) for e in np.eye(2)]
        distance = np.abs(score(at)) / np.maximum(np.hypot(*slopes) / (2 * step), 1e-12)
        cell = (state.view.x[1] - state.view.x[0]) / (state.grid - 1)
        assert np.median(distance) < 0.1 * cell and distance.max() < cell


def settings_of(family):
    """Every option of every menu and box, and the ends of every slider, one at a time."""
    for control in FAMILIES[family].controls:
        if control.kind == "choice":
            values = [value for value, _ in control.options]
        elif control.kind == "switch":
            values = [True, False]
        else:
            values = [control.low, control.high] + ["inf"] * control.unlimited
        yield from ({control.name: value} for value in values if value != control.default)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_setting_of_every_control_gives_a_fit(family):
    page, asked = Conversation(), request("blobs", family)
    page.answer(asked)
    drawn = {}
    for parameters in settings_of(family):
        answer = page.answer({**asked, "model": {"family": family, "parameters": parameters}})
        assert "error" not in answer, (parameters, answer["error"])
        drawn[str(parameters)] = json.dumps(answer["boundary"])
    assert len(drawn) < 2 or len(set(drawn.values())) > 1  # a control that changes nothing is none


# With weights and a decision, one of each kind: calibration takes five fits.
COPIED = [(family, *how) for family in FAMILIES for how in ((False, False), (False, True), (True, False))]
COPIED += [(family, True, True) for family in ("lda", "fisher", "svm")]


@pytest.mark.parametrize(("family", "decided", "weighted"), COPIED)
def test_the_copied_code_gives_the_same_predictions(family, decided, weighted):
    asked = request("blobs", family)
    if weighted:
        asked["points"]["weight"] = [1.0, 3.0] * (len(asked["points"]["x"]) // 2)
    if decided:
        asked["decision"] = {"loss": [[0, 4], [1, 0]], "reject": 0.4, "priors": [0.3, 0.7]}
    written = Conversation().answer({**asked, "kind": "code"})
    assert "error" not in written, written
    scope = {}
    exec(written["code"].replace("print(", "str("), scope)
    fitted = fit(read_state(asked))
    last = scope["rule" if decided else "model"]
    X = fitted.state.view.grid(25)
    np.testing.assert_array_equal(last.predict(X), fitted.predict(X))


def test_the_code_of_many_points_reads_the_exported_file(tmp_path, monkeypatch):
    rng, n = np.random.default_rng(0), 2500
    codes = np.arange(n) % 2
    X = (rng.normal(size=(n, 2)) + codes[:, None]).round(3)
    points = {"x": X[:, 0].tolist(), "y": X[:, 1].tolist(), "label": codes.tolist(), "weight": (1.0 + codes).tolist()}
    asked = {**request(), "points": points, "classes": ["a, # b", 'c "d"']}
    quoted = ['"a, # b"', '"c ""d"""']
    rows = [f"{a},{b},{k},{1 + k},{quoted[k]}" for (a, b), k in zip(X.tolist(), codes, strict=True)]
    (tmp_path / "points.csv").write_text("\n".join(['"x, #1","y",label,weight,class', *rows, ""]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(Conversation().answer({**asked, "kind": "code"})["code"].replace("print(", "str("), scope)
    fitted = fit(read_state(asked))
    np.testing.assert_allclose(scope["model"].coef_, fitted.model.coef_, rtol=1e-12)


def test_moved_points_are_the_same_as_all_points():
    asked, page = request("blobs", "qda"), Conversation()
    page.answer(asked)
    asked["points"]["x"][3], asked["points"]["y"][3] = 2.5, -1.5
    whole = Conversation().answer(asked)
    part = {name: value for name, value in asked.items() if name != "points"} | {"moved": [[3, 2.5, -1.5]]}
    moved = page.answer(part)
    assert moved["boundary"] == whole["boundary"] and moved["measures"] == whole["measures"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"points": None}, "points are missing"),
        (
            {"points": {"x": [1, 2], "y": [1], "label": [0, 1], "weight": [1, 1]}},
            "y must be a list of 2 finite numbers",
        ),
        ({"points": {"x": [1, "a"], "y": [1, 2], "label": [0, 1]}}, "x must be a list"),
        ({"points": {"x": [1, 2], "y": [1, 2], "label": [0, 7]}}, "none of the 2 classes"),
        ({"points": {"x": [1, 2], "y": [1, 2], "label": [0, 1], "weight": [1, -1]}}, "negative"),
        ({"points": {"x": [1, 2], "y": [1, 2], "label": [0, 0]}}, "at least two classes"),
        ({"points": {"x": [0] * 50_001, "y": [0] * 50_001, "label": [0] * 50_001}}, "at most 50000"),
        ({"model": {"family": "oracle"}}, "no family 'oracle'"),
        ({"model": {"family": "lda", "parameters": {"priors": 1}}}, "no control 'priors'"),
        ({"model": {"family": "lda", "parameters": {"shrinkage": 4}}}, "number from 0 to 1"),
        ({"model": {"family": "svm", "parameters": {"kernel": "__import__('os')"}}}, "choose from"),
        ({"view": {"x": [1, 1], "y": [0, 1]}}, "view is empty"),
        ({"grid": 100_000}, "8 to 240"),
        ({"classes": []}, "list of 1 to 12 names"),
        ({"decision": {"loss": [[0, 1]]}}, "one row per class"),
        ({"decision": {"loss": [[0, 1], [1, "x"]]}}, "finite numbers"),
        ({"panel": 5}, "0 or 1"),
    ],
)
def test_what_cannot_be_done_is_answered_with_a_sentence(change, words):
    answer = Conversation().answer({**request(), "id": 7, **change})
    assert words in answer["error"] and answer["id"] == 7 and answer["kind"] == "fit"


def test_a_refusal_of_the_library_is_passed_on():
    points = {"x": [0.0, 0.0, 1.0], "y": [0.0, 0.0, 1.0], "label": [0, 0, 1]}
    answer = Conversation().answer({**request(family="qda"), "points": points})
    assert "error" in answer and len(answer["error"]) > 20


def test_films_end_where_the_fit_does():
    asked = {**request("blobs", "logistic"), "kind": "film"}
    film, whole = Conversation().answer(asked), Conversation().answer({**asked, "kind": "fit"})
    assert film["frames"][0]["caption"].startswith("step 0")
    last, edge = np.reshape(film["frames"][-1]["paths"][0], (-1, 2)), np.reshape(whole["boundary"][0], (-1, 2))
    np.testing.assert_allclose(last[[0, -1]], edge[[0, -1]], atol=1e-3)
    made = Conversation().answer({**request("separable", "perceptron"), "kind": "film"})["frames"]
    assert 1 <= len(made) < 100 and all(frame["place"] is not None for frame in made)
    assert "no steps" in Conversation().answer({**asked, "model": {"family": "lda"}})["error"]


def test_extras_say_what_is_special():
    def shown(name, family, **parameters):
        asked = request(name, family, model={"family": family, "parameters": parameters})
        extras = Conversation().answer(asked)["extras"]
        return {one.get("name") or one.get("title") or one.get("role"): one for one in extras}

    assert "orange" in shown("masking", "least-squares")["masked"]["value"]
    assert shown("three", "least-squares")["masked"]["value"] == "no class"
    assert "no maximum" in shown("separable", "logistic")["the classes"]["value"]
    assert shown("blobs", "logistic", C="inf")["Coefficients"]["heads"][-1] == "p"
    assert len(shown("blobs", "bayesian")["draw"]["paths"]) > 5
    assert "none" in shown("blobs", "perceptron")["bound (D/δ)²"]["value"]
    found = shown("separable", "perceptron")
    assert float(found["mistakes"]["value"]) <= float(found["bound (D/δ)²"]["value"])
    machine = shown("blobs", "linear-svm")
    assert set(machine["slack"]["places"]) <= set(machine["support"]["places"])
    assert machine["margin"]["paths"]
    assert shown("three", "many-classes")["ambiguous"]["value"] != "0 % of the picture"
    assert "Bayes rule" in shown("overlap", "qda")["error on 10 000 new points"]["value"]


def test_a_probe_says_what_the_model_says():
    page, asked = Conversation(), request("blobs", "logistic")
    page.answer(asked)
    state = read_state(asked)
    model = fit(state).model
    answer = page.answer({"kind": "probe", "panel": 0, "at": [0.3, -0.2]})
    assert answer["probabilities"]["1"] == pytest.approx(model.predict_proba([[0.3, -0.2]])[0, 1])
    assert answer["distance"] == pytest.approx(model.signed_distance([[0.3, -0.2]])[0])
    assert "error" in page.answer({"kind": "probe", "panel": 1, "at": [0, 0]})
    assert "error" in page.answer({"kind": "probe", "panel": 0, "at": [0]})


def test_tables_show_columns_or_discriminant_coordinates(tmp_path):
    hostile = "<script>alert(1)</script>"
    path = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    rows = [
        f'{rng.normal() + k:.3f},{rng.normal():.3f},{rng.normal():.3f},"{hostile if k else "b"}"' for k in (0, 1) * 30
    ]
    path.write_text(f'"{hostile}",u,v,kind\n' + "\n".join(rows), encoding="utf-8")
    page = Conversation(PlaneTable.of_table(path, "kind"))
    assert page.answer({"kind": "hello"})["table"] == {"target": "kind", "columns": [hostile, "u", "v"]}
    both = page.answer({"kind": "dataset", "name": "table", "columns": ["u", hostile]})
    assert both["axes"] == ["u", hostile] and sorted(both["classes"]) == sorted(["b", hostile])
    found = page.answer({"kind": "dataset", "name": "table"})
    assert found["axes"][0] == "discriminant coordinate" and len(found["points"]["x"]) == 60
    assert "no column" in page.answer({"kind": "dataset", "name": "table", "columns": ["u", "w"]})["error"]
    for name in ("iris", "wine", "cancer"):
        answer = page.answer({"kind": "dataset", "name": name})
        assert "error" not in page.answer({**answer, "kind": "fit", "model": {"family": "lda"}})


# ---- fits off the event loop


def run_desk(scenario, **options):
    async def main():
        answers = []
        desk = Desk(answers.append, **options)
        await scenario(desk, answers)
        return desk, answers

    return asyncio.run(main())


def test_only_the_newest_waiting_state_is_fitted():
    gate = threading.Event()

    async def scenario(desk, answers):
        desk.submit("a", lambda: {"first": gate.wait(5)}, {})
        for k in range(20):
            desk.submit("a", lambda k=k: {"k": k}, {})
        desk.submit("b", lambda: {"b": 1}, {})
        gate.set()
        while len(answers) < 3:
            await asyncio.sleep(0.01)

    desk, answers = run_desk(scenario, patience=30.0)
    assert answers == [{"first": True}, {"k": 19}, {"b": 1}] and desk.overtaken == 0


def test_a_newer_state_overtakes_a_fit_that_takes_long():
    gate = threading.Event()

    async def scenario(desk, answers):
        for k in range(3):  # two may be left to their own ends, the third has to be waited for
            desk.submit("a", lambda k=k: {"old": k, "late": gate.wait(30)}, {})
            while desk.overtaken < k:
                await asyncio.sleep(0.01)
        desk.submit("a", lambda: {"new": 1}, {})
        await asyncio.sleep(0.2)
        assert desk.overtaken == 2 and not answers
        gate.set()
        while not any("new" in answer for answer in answers):
            await asyncio.sleep(0.01)

    answers = run_desk(scenario, patience=0.05)[1]
    assert answers in ([{"new": 1}], [{"old": 2, "late": True}, {"new": 1}])  # the third may still be in time


def test_a_fit_over_its_budget_is_let_go_of_and_said_so():
    gate = threading.Event()

    async def scenario(desk, answers):
        desk.submit("a", lambda: {"late": gate.wait(30)}, {"error": "too long"})
        while not answers:
            await asyncio.sleep(0.01)
        desk.submit("a", lambda: {"next": 1}, {})
        while len(answers) < 2:
            await asyncio.sleep(0.01)
        gate.set()
        await asyncio.sleep(0.1)

    assert run_desk(scenario, budget=0.05)[1] == [{"error": "too long"}, {"next": 1}]


def test_an_older_fit_that_ends_later_is_not_the_one_that_is_probed():
    page = Conversation()
    old, new = ({**request("blobs", family), "panel": 0} for family in ("lda", "qda"))
    states = page.read(old), page.read(new)
    page.work(new, states[1])
    page.work(old, states[0])
    assert page.fitted[0].family.name == "qda"


# ---- the server's door


@pytest.fixture(scope="module")
def served():
    pytest.importorskip("uvicorn", reason="the server is an extra")
    code = "from separatrix.cli.main import main; main()"
    command = [sys.executable, "-c", code, "explore", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    address = re.search(r"http\S+", process.stdout.readline()).group(0)
    yield address, process
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0
    assert "The explorer has ended." in process.stdout.read()
    assert process.stderr.read() == ""


def status_of(address, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_the_page_is_served_below_its_token_only(served):
    address, _ = served
    origin, token = re.match(r"(http://127\.0\.0\.1:\d+)/([\w-]{32,})/$", address).groups()
    with urllib.request.urlopen(address, timeout=5) as page:
        assert b"separatrix-explorer" in page.read()
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert status_of(address + "explorer.js") == status_of(address + "explorer.css") == 200
    assert status_of(address + "build.json") == status_of(address + "..%2f__init__.py") == 404
    for path in ("/", "/explorer.js", f"/{token[:-1]}/", f"/x/{token}/", f"//{token[::-1]}/"):
        assert status_of(origin + path) == 403, path
    assert status_of(address, Origin="http://evil.example") == status_of(address, Host="evil.example") == 403
    assert status_of(address, Origin=origin) == 200


def test_the_socket_asks_for_token_and_origin(served):
    client = pytest.importorskip("websockets.sync.client", reason="the server is an extra")
    exceptions = pytest.importorskip("websockets.exceptions", reason="the server is an extra")
    address, _ = served
    socket, origin = address.replace("http", "ws") + "socket", address.split("/", 3)
    own = "/".join(origin[:3])
    with client.connect(socket, origin=own) as connection:
        for text in ("{", "[]", '{"kind": "nothing"}', json.dumps({"kind": "hello", "id": 3})):
            connection.send(text)
        answers = [json.loads(connection.recv(timeout=10)) for _ in range(4)]
        assert sum("error" in answer for answer in answers) == 3
        assert any(answer.get("id") == 3 and len(answer["families"]) == len(FAMILIES) for answer in answers)
        connection.send(json.dumps(request()))
        assert json.loads(connection.recv(timeout=20))["fit"]["status"] == "EXACT"
    wrong = [
        (socket, "http://evil.example"),
        (socket, None),
        (socket.replace("socket", "").rstrip("/")[:-1] + "/socket", own),
    ]
    for place, who in wrong:
        with pytest.raises(exceptions.InvalidStatus) as refused:
            client.connect(place, origin=who)
        assert refused.value.response.status_code == 403


def test_two_conversations_do_not_mix(served):
    client = pytest.importorskip("websockets.sync.client", reason="the server is an extra")
    address, _ = served
    own, socket = "/".join(address.split("/", 3)[:3]), address.replace("http", "ws") + "socket"
    with client.connect(socket, origin=own) as one, client.connect(socket, origin=own) as two:
        one.send(json.dumps(request("blobs", "lda")))
        two.send(json.dumps(request("three", "lda")))
        first, second = json.loads(one.recv(timeout=20)), json.loads(two.recv(timeout=20))
    assert (len(first["regions"]), len(second["regions"])) == (2, 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["t.csv"], "--target"),
        (["no-such.csv", "--target", "y"], "no file"),
        (["--token", "short"], "16"),
    ],
)
def test_the_command_refuses_in_a_sentence(arguments, words, capsys):
    from separatrix.cli.main import app

    with pytest.raises(SystemExit) as ended:
        app(["explore", "--no-browser", *arguments], standalone_mode=False)
    assert ended.value.code == 1 and words in capsys.readouterr().err


# ---- notebooks, and what ships


def test_the_widget_answers_as_the_server_does():
    pytest.importorskip("anywidget", reason="the widget is an extra")
    from separatrix.explore.widget import (
        explorer_widget,  # with the module there, separatrix.explore can still be called
    )

    assert callable(explorer_widget)

    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    widget = separatrix.explore(X, y, family="qda")
    sent = []
    widget.send = sent.append
    widget._handle_custom_msg({"kind": "dataset", "name": "table", "id": 1}, [])
    widget._handle_custom_msg({**sent[0], "kind": "fit", "model": {"family": "qda"}, "id": 2}, [])
    assert sent[1]["id"] == 2 and sent[1]["fit"]["status"] == "EXACT"
    assert widget.family == "qda" and "render" in widget._esm and ".separatrix-explorer" in widget._css
    with pytest.raises(ValueError, match="together"):
        separatrix.explore(X)
    with pytest.raises(ValueError, match="no family"):
        separatrix.explore(family="oracle")
    for bad in (X[:, :1], np.where(X > 2, np.nan, X) * np.nan):
        with pytest.raises(ValueError, match="explorer shows"):
            separatrix.explore(bad, y)


def digest(names, base):
    found = hashlib.sha256()
    for name in sorted(names):
        found.update(f"{name}\0".encode() + (base / name).read_bytes() + b"\0")
    return found.hexdigest()


def test_the_build_is_of_these_sources():
    """Run `make explorer` after a change of the page."""
    base, stamp = ROOT / "explorer", json.loads((STATIC / "build.json").read_text())
    if not base.is_dir():
        pytest.skip("only in the repository are there sources")
    sources = [p.relative_to(base).as_posix() for d in ("src", "public") for p in (base / d).rglob("*") if p.is_file()]
    sources += ["package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "stamp.mjs"]
    assert stamp["sources"] == digest(sources, base)
    assert stamp["built"] == digest(["explorer.css", "explorer.js", "index.html"], STATIC)
    lock = json.loads((base / "package-lock.json").read_text())
    assert not any("resolved" in one for one in lock["packages"].values())  # packages by name, from no host
    text = "".join(
        (STATIC / name).read_text(encoding="utf-8") for name in ("explorer.css", "explorer.js", "index.html")
    )
    hosts = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
    assert not hosts


def test_importing_the_explorer_asks_for_no_extra():
    code = (
        "import sys, separatrix; separatrix.explore; import separatrix.explore.server, separatrix.explore.widget; "
        "print([m for m in ('starlette', 'uvicorn', 'anywidget', 'websockets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
