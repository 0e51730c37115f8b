"""Model files: what is loaded predicts the same bits, and no file makes load_model do anything but say no."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
import scipy.sparse as sp
from estimators import each, having, named
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import SplineTransformer
from typer.testing import CliRunner

import separatrix as sx
from separatrix.cli.main import app
from separatrix.comparison.families import FAMILIES
from separatrix.comparison.table_model import TableModel
from separatrix.data.writing import replacing
from separatrix.export import model_file, registry
from separatrix.export.state import decode, encode
from separatrix.models.naive_bayes.families import ColumnFamily
from separatrix.result import Fit, Status

X, CODES = load_iris(return_X_y=True)
X = np.round(2.0 * X)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
TWO = CODES > 0

ESTIMATORS = having(only_for=("", "three classes", "four columns", "rejection"))
for name in ("rule, isotonic", "rule, isotonic, two folds", "mapped ridge"):  # not to be held
    del ESTIMATORS[name]
# Models that hold arrays of their own kind, each of which is spoilt in turn.
SPOILT = having(basic=True) | named(
    "lda eigen, ledoit-wolf",
    "lda lsqr",
    "qda, priors",
    "rda, leave one out",
    "multinomial, not smoothed",
    "bernoulli above 6",
    "mixed, four families",
    "maximum likelihood",
    "bayesian",
    "bayesian diagonal",
    "margin hinge, l1",
    "svc, platt",
    "svc poly, isotonic",
    "svc linear against rest",
    "svc of kernels",
    "perceptron averaged",
    "perceptron pocket",
    "rule, losses or rejection",
    "rule of linear svc, sigmoid",
    "against rest of logistic",
    "pairs of ridge",
)
ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "log_density", "mahalanobis")


def fitted(estimator):
    target = CODES.astype(float) if is_regressor(estimator) else Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, target)


def copied(model, folder):
    path = folder / "model.safetensors"
    sx.save_model(model, path)
    return sx.load_model(path)


def same(one, two):
    """Equal in type, shape and bits."""
    one, two = np.asarray(one), np.asarray(two)
    assert one.dtype == two.dtype and one.shape == two.shape
    if one.dtype.kind in "UO":
        assert one.tolist() == two.tolist()
    else:
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_loaded_model_gives_the_same_bits(name, tmp_path):
    model = fitted(ESTIMATORS[name])
    loaded = copied(model, tmp_path)
    assert type(loaded) is type(model)
    asked = 0
    for method in ANSWERS:
        try:
            expected = getattr(model, method)(X)
        except (AttributeError, NotImplementedError):
            continue
        same(getattr(loaded, method)(X), expected)
        asked += 1
    assert asked
    assert repr(loaded) == repr(model)
    assert loaded.get_params().keys() == model.get_params().keys()


def test_names_of_classes_are_those_of_the_registry():
    for name in registry._HOMES:
        assert registry.name_of(registry.class_named(name)) == name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_and_single_precision(dtype, tmp_path):
    rows = sp.csr_array((X - 8.0).astype(dtype))
    for estimator in (sx.SVC(), sx.LinearSVC(), sx.RidgeClassifier()):
        model = estimator.fit(rows, Y)
        loaded = copied(model, tmp_path)
        same(loaded.decision_function(rows), model.decision_function(rows))
        assert np.asarray(loaded.intercept_).dtype == np.asarray(model.intercept_).dtype


@pytest.mark.parametrize(
    "estimator",
    [
        sx.MixedNB(),
        sx.MixedNB({"n": "poisson"}),
        sx.MixedNB({("n", "m"): "multinomial"}),
        sx.BayesRule(sx.MixedNB()),
        sx.BayesRule(sx.MixedNB(), calibration="sigmoid", cv=3),
        sx.OneVsOneClassifier(sx.MixedNB()),
        sx.OneVsRestClassifier(sx.MixedNB()),
    ],
    ids=str,
)
def test_models_of_a_frame_with_columns_of_every_kind(estimator, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": X[:, 0], "n": rng.integers(5, size=150), "m": rng.integers(9, size=150)})
    frame["kind"], frame["on"] = rng.choice(list("xyz"), 150), rng.random(150) < 0.5
    model = clone(estimator).fit(frame, Y)
    method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    same(getattr(copied(model, tmp_path), method)(frame), getattr(model, method)(frame))


def test_precomputed_kernels_and_machines_of_them(tmp_path):
    values = X @ X.T
    for estimator in (sx.SVC(kernel="precomputed"), sx.OneVsOneClassifier(sx.SVC(kernel="precomputed"))):
        model = estimator.fit(values, Y)
        same(copied(model, tmp_path).decision_function(values), model.decision_function(values))


def test_a_loaded_model_goes_on_learning(tmp_path):
    model = sx.LinearDiscriminantAnalysis().partial_fit(X[::2], Y[::2])
    loaded = copied(model, tmp_path)
    same(loaded.partial_fit(X[1::2], Y[1::2]).coef_, model.partial_fit(X[1::2], Y[1::2]).coef_)
    online = sx.Perceptron().fit(X, Y)
    again = copied(online, tmp_path)
    same(again.partial_fit(X, Y).coef_, online.partial_fit(X, Y).coef_)


def patients(n=240, seed=0):
    rng = np.random.default_rng(seed)
    age, city = rng.normal(50, 15, n), rng.choice(["Ghent", "Lyon", "Turin", "Bonn"], n, p=[0.4, 0.3, 0.2, 0.1])
    smoker = rng.random(n) < 0.4
    score = 0.08 * (age - 50) + smoker + (city == "Turin") + rng.logistic(size=n)
    return pa.table(
        {
            "age": pa.array(np.where(rng.random(n) < 0.1, np.nan, age), from_pandas=True),
            "smoker": pa.array(np.where(smoker, "yes", "no"), mask=rng.random(n) < 0.1),
            "city": pa.array(city, mask=rng.random(n) < 0.1),
            "ill": np.select([score < -0.5, score < 1.0], ["no", "a little"], "very"),
        }
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_table_models(name, tmp_path):
    family, table = FAMILIES[name], patients()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TableModel.fit(
            table,
            "ill",
            family.build(),
            family=name,
            encode=family.encoded,
            loss=[[0, 1, 2], [1, 0, 1], [5, 3, 0]] if hasattr(family.build(), "predict_proba") else None,
        )
    model.scores = {"accuracy": {"mean": 0.5, "folds": np.array([0.4, 0.6])}, "log_loss": np.float64(0.7)}
    loaded = copied(model, tmp_path)
    new = patients(50, seed=1)
    same(loaded.predict(new), model.predict(new))
    if model.has_probabilities:
        same(loaded.predict_proba(new), model.predict_proba(new))
    assert loaded.schema == model.schema
    about = sx.inspect_model(tmp_path / "model.safetensors")
    assert about["family"] == name and about["classes"] == ["a little", "no", "very"] and about["intact"]
    assert about["schema"] == json.loads(json.dumps(model.schema.to_json()))
    assert about["scores"] == {"accuracy": {"mean": 0.5, "folds": [0.4, 0.6]}, "log_loss": 0.7}
    assert about["library_version"] == sx.__version__


def test_a_loss_needs_probabilities():
    for estimator, labels in ((sx.Perceptron(), None), (sx.RidgeClassifier(), ["no", "yes"])):
        table = patients()
        if labels:
            table = table.set_column(3, "ill", pa.array(np.array(labels)[np.arange(240) % 2]))
        n_classes = 2 if labels else 3
        with pytest.raises(ValueError, match="A loss is weighed by probabilities, and the model 'p' gives none"):
            TableModel.fit(table, "ill", estimator, family="p", loss=1 - np.eye(n_classes))


@pytest.mark.parametrize(
    "labels", [[0, 1], [-3.0, 2.0], [False, True], ["a", "ä\n"], np.array(["u", "v"], dtype=object)]
)
def test_labels_keep_their_type(labels, tmp_path):
    y = np.asarray(labels)[TWO.astype(int)]
    model = sx.GaussianNB().fit(X, y)
    loaded = copied(model, tmp_path)
    same(loaded.classes_, model.classes_)
    same(loaded.predict(X), model.predict(X))


# -- the encoding of values -----------------------------------------------------------------------------------------------


def returned(value):
    node, tensors = encode(value, "value")
    return decode(json.loads(json.dumps(node, allow_nan=False)), tensors)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint64", "bool"]
)
def test_arrays_keep_type_shape_bits_and_layout(dtype):
    base = np.arange(24).reshape(4, 6).astype(dtype)
    for array in (
        *(
            base,
            base.T,
            base[::2, 1::2],
            base[::-1],
            np.asfortranarray(base),
            base[:, :0],
            base[0, 0],
            base.ravel()[:5],
        ),
        *(np.array(7).astype(dtype), base.reshape(2, 3, 4), base.reshape(2, 3, 4).T, base[:0]),
    ):
        back = returned(array)
        same(back, array)
        assert type(back) is type(array)
        if isinstance(array, np.ndarray) and array.ndim == 2:
            assert back.flags.f_contiguous == array.copy(order="K").flags.f_contiguous


def test_special_floats_and_foreign_byte_order():
    values = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308])
    same(returned(values), values)
    same(returned(values.astype(">f8")), values)
    for value in (np.inf, -np.inf, -0.0, 0.1, 5e-324, np.nan):
        assert np.array(returned(value)).tobytes() == np.array(value).tobytes()


def test_other_values():
    record = np.zeros(2, dtype=[("scale", np.float64), ("n", np.int64)])
    record["scale"] = [1.5, -2.0]
    same(returned(record)["scale"], record["scale"])
    assert returned(record).dtype == record.dtype
    matrix = sp.random_array((5, 4), density=0.4, format="csr", rng=np.random.default_rng(0))
    assert (returned(matrix) != matrix).nnz == 0 and type(returned(matrix)) is sp.csr_array
    assert returned(np.dtype(np.float32)) == np.float32
    family = returned(ColumnFamily("gaussian", "it holds real numbers"))
    assert (family, family.reason) == ("gaussian", "it holds real numbers")
    assert returned(Status.CONVERGED) is Status.CONVERGED
    assert returned(Fit(Status.EXACT, 1, 0.5)) == Fit(Status.EXACT, 1, 0.5)
    assert returned({("a", 1): [None, True], 2: (3.5, "x"), None: {}}) == {
        ("a", 1): [None, True],
        2: (3.5, "x"),
        None: {},
    }
    same(returned(np.array([["a", "bc"], ["", "é\x00d"]])), np.array([["a", "bc"], ["", "é\x00d"]]))
    same(returned(np.array(["x", None, 1.5], dtype=object)), np.array(["x", None, 1.5], dtype=object))
    assert returned(np.str_("x")) == "x" and type(returned(np.str_("x"))) is np.str_


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.text(), st.integers()), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(plain_values)
def test_plain_values_come_back(value):
    back = returned(value)
    assert repr(back) == repr(value)


def test_shared_arrays_are_written_once():
    shared = np.arange(5.0)
    node, tensors = encode([shared, shared, {"again": shared}], "value")
    assert len(tensors) == 1
    assert len(decode(node, tensors)) == 3


# -- what is refused when saving --------------------------------------------------------------------------------------------


def test_what_cannot_be_saved_is_named(tmp_path):
    path = tmp_path / "model.safetensors"
    rule = sx.BayesRule(sx.GaussianNB(), loss=lambda truth, action: float(truth != action)).fit(X, Y)
    with pytest.raises(ValueError, match=r"BayesRule\.loss holds a function, which a model file cannot"):
        sx.save_model(rule, path)
    with pytest.raises(ValueError, match=r"SVC\.kernel holds a function"):
        sx.save_model(sx.SVC(kernel=lambda a, b: a @ b.T).fit(X, Y), path)
    with pytest.raises(ValueError, match=r"SVC\.random_state holds .* Give random_state a whole number"):
        sx.save_model(sx.SVC(random_state=np.random.RandomState(0)).fit(X, Y), path)
    mapped = sx.FeatureMap(SplineTransformer(), sx.LinearDiscriminantAnalysis()).fit(X, Y)
    with pytest.raises(ValueError, match=r"FeatureMap\.transformer holds a SplineTransformer"):
        sx.save_model(mapped, path)

    class LinearDiscriminantAnalysis(sx.LinearDiscriminantAnalysis):
        pass

    with pytest.raises(TypeError, match="takes a fitted model of separatrix"):
        sx.save_model(LinearDiscriminantAnalysis().fit(X, Y), path)
    with pytest.raises(TypeError, match="this is a dict"):
        sx.save_model({"coef": 1}, path)
    with pytest.raises(NotFittedError):
        sx.save_model(sx.LogisticRegression(), path)
    model = sx.GaussianNB().fit(X, Y)
    model.itself = [model]
    with pytest.raises(ValueError, match=r"GaussianNB\.itself\[0\] contains itself"):
        sx.save_model(model, path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_an_interruption_leaves_the_old_file_and_nothing_else(fault, where, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    sx.save_model(sx.GaussianNB().fit(X, Y), path)
    before = path.read_bytes()

    def stop(*_):
        raise fault("stopped")

    monkeypatch.setattr(os, where, stop)
    with pytest.raises(fault):
        sx.save_model(sx.LinearDiscriminantAnalysis().fit(X, Y), path)
    assert list(tmp_path.iterdir()) == [path] and path.read_bytes() == before


def test_saving_honours_the_usual_permissions(tmp_path):
    path, plain = tmp_path / "model.safetensors", tmp_path / "plain"
    sx.save_model(sx.GaussianNB().fit(X, Y), path)
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_link_stays_a_link(tmp_path):
    path, link = tmp_path / "model.safetensors", tmp_path / "link"
    path.write_bytes(b"")
    link.symlink_to(path)
    sx.save_model(sx.GaussianNB().fit(X, Y), link)
    assert link.is_symlink()
    same(sx.load_model(path).classes_, np.unique(Y))


def test_the_longest_name_can_be_saved(tmp_path):
    assert isinstance(copied(sx.GaussianNB().fit(X, Y), tmp_path), sx.GaussianNB)
    path = tmp_path / ("m" * 255)
    sx.save_model(sx.GaussianNB().fit(X, Y), path)
    assert list(path.parent.glob("m" * 255)) == [path]


def test_errors_name_the_path_that_was_given(tmp_path):
    model = sx.GaussianNB().fit(X, Y)
    with pytest.raises(IsADirectoryError) as folder:
        sx.save_model(model, tmp_path)
    assert folder.value.filename == str(tmp_path) and folder.value.filename2 is None
    with pytest.raises(FileNotFoundError) as nowhere:
        sx.save_model(model, tmp_path / "nowhere" / "model")
    assert nowhere.value.filename == str(tmp_path / "nowhere" / "model")
    assert list(tmp_path.parent.glob(".separatrix-*")) == []


# -- what is refused when loading -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def content():
    return model_file._serialised(sx.LogisticRegression().fit(X, Y))


def test_damaged_files_are_never_a_model(content, tmp_path):
    path, rng = tmp_path / "model.safetensors", np.random.default_rng(0)
    header = 8 + int.from_bytes(content[:8], "little")
    places = {*range(8), *rng.integers(0, header, 150).tolist(), *rng.integers(header, len(content), 60).tolist()}
    for at in places:
        damaged = bytearray(content)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged))
        with pytest.raises(ValueError, match="model"):
            sx.load_model(path)
        with contextlib.suppress(ValueError):  # where the header itself cannot be read
            assert sx.inspect_model(path)["intact"] is False
    for length in (0, 1, 7, 8, 9, header - 1, header, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"not a model file|damaged"):
            sx.load_model(path)
    for longer in (content + b"\x00", content + content):
        path.write_bytes(longer)
        with pytest.raises(ValueError, match="damaged"):
            sx.load_model(path)
    path.write_bytes(content)
    same(sx.load_model(path).predict(X), sx.LogisticRegression().fit(X, Y).predict(X))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=400))
def test_noise_is_not_a_model(data, tmp_path):
    path = tmp_path / "noise"
    for noise in (data, len(data).to_bytes(8, "little") + data):
        path.write_bytes(noise)
        with pytest.raises(ValueError, match="is not a model file"):
            sx.load_model(path)


def signed(header, buffer):
    """A file with any header, and the checksum that belongs to it."""
    header["__metadata__"]["checksum"] = "0" * 64
    head = json.dumps(header, separators=(",", ":")).encode()
    raw = len(head).to_bytes(8, "little") + head + buffer
    digest = hashlib.sha256(raw).hexdigest()
    return raw.replace(b'"checksum":"' + b"0" * 64, b'"checksum":"' + digest.encode(), 1)


def forged(content, change):
    """The file after a change of its header or its state, with a right checksum."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    state = json.loads(header["__metadata__"]["state"])
    state = change(header, state) or state
    header["__metadata__"]["state"] = json.dumps(state)
    return signed(header, content[8 + length :])


def attributes(state):
    return state["state"]


def set_attribute(name, node):
    def change(header, state):
        attributes(state)[name] = node

    return change


def drop_attribute(name):
    def change(header, state):
        del attributes(state)[name]

    return change


def metadata(**values):
    def change(header, state):
        header["__metadata__"].update(values)

    return change


def tensor_type(dtype):
    def change(header, state):
        header[attributes(state)["coef_"]["tensor"]]["dtype"] = dtype

    return change


def tensor_shape(shape):
    def change(header, state):
        header[attributes(state)["coef_"]["tensor"]]["shape"] = shape

    return change


def nested(depth):
    node = []
    for _ in range(depth):
        node = [node]
    return node


def twice(header, state):
    attributes(state)["classes_"]["items"] = ["setosa", "setosa", "virginica"]
    header["__metadata__"]["classes"] = '["setosa", "setosa", "virginica"]'


def replaced(header, state, name, shape):
    """The array is the beginning of the one that was there; the rest of its place goes to an array nobody asks for."""
    entry = header[attributes(state)[name]["tensor"]]
    start, end = entry["data_offsets"]
    middle = start + 8 * int(np.prod(shape))
    entry.update(shape=shape, data_offsets=[start, middle])
    header[f"rest of {name}"] = {"dtype": "F64", "shape": [(end - middle) // 8], "data_offsets": [middle, end]}


FORGERIES = {
    "newer format": (metadata(format_version="2.0"), "upgrade separatrix"),
    "older format": (metadata(format_version="0.1"), "save the model again"),
    "endless version": (metadata(format_version="1" * 5000), "upgrade separatrix"),
    "another family": (metadata(family='"SVC"'), "disagree about the family"),
    "other classes": (metadata(classes='["a", "b", "c"]'), "disagree about the classes"),
    "other columns": (metadata(schema='{"columns": 5}'), "disagree about the schema"),
    "classes twice": (lambda header, state: twice(header, state), "a class occurs twice in classes_"),
    "one row for three classes": (
        lambda header, state: replaced(header, state, "coef_", [1, 4]),
        r"coef_ has the shape \(1, 4\) and intercept_ \(3,\)",
    ),
    "one score for three classes": (
        lambda header, state: replaced(header, state, "coef_", [1, 4]) or replaced(header, state, "intercept_", [1]),
        r"coef_ has the shape \(1, 4\), for 3 classes",
    ),
    "too few columns": (lambda header, state: replaced(header, state, "coef_", [3, 1]), r"\(3, 1\), for 4 columns"),
    "no version": (metadata(format_version="x"), "upgrade separatrix"),
    "another format": (metadata(format="something else"), "save_model did not write it"),
    "unknown class": (
        lambda header, state: {"$": "object", "class": "os.system", "state": {}},
        "unknown class 'os.system'",
    ),
    "builtin": (lambda header, state: {"$": "object", "class": "eval", "state": {}}, "unknown class 'eval'"),
    "unknown kind": (set_attribute("coef_", {"$": "pickle", "data": "gASV"}), "unknown kind 'pickle'"),
    "no kind": (set_attribute("coef_", {}), "does not describe a model"),
    "dunder": (set_attribute("__class__", "x"), "sets the attribute '__class__'"),
    "not a name": (set_attribute("a b", 1), "sets the attribute 'a b'"),
    "unknown tensor": (set_attribute("coef_", {"$": "array", "tensor": "t999", "transposed": False}), "'t999'"),
    "texts of objects": (
        set_attribute("coef_", {"$": "texts", "dtype": "<f8", "shape": [1], "items": ["1"]}),
        "texts of the type float64",
    ),
    "dtype": (set_attribute("coef_", {"$": "dtype", "name": "object"}), "'object'"),
    "enumeration": (set_attribute("coef_", {"$": "enum", "class": "Status", "name": "mro"}), "does not have"),
    "enum of a class": (set_attribute("coef_", {"$": "enum", "class": "SVC", "name": "fit"}), "does not have"),
    "object of an enum": (set_attribute("coef_", {"$": "object", "class": "Status", "state": {}}), "enumeration"),
    "list as key": (set_attribute("coef_", {"$": "dict", "items": [[[1], 2]]}), "does not describe a model"),
    "plain value": (lambda header, state: 5, "do not fit together"),
    "a part": (lambda header, state: {"$": "enum", "class": "Status", "name": "EXACT"}, "do not fit together"),
    "missing attribute": (drop_attribute("coef_"), "do not fit together"),
    "not an array": (set_attribute("coef_", "many"), "do not fit together"),
    "wrong shape": (tensor_shape([4, 3]), "do not fit together"),
    "impossible shape": (tensor_shape([4, 300]), "cannot be read as a model"),
    "unexpected type": (tensor_type("F8_E5M2"), "cannot be read as a model"),
    "other type of the same size": (tensor_type("BF16"), "cannot be read as a model"),
    "half of the classes": (
        set_attribute("classes_", {"$": "texts", "dtype": "<U1", "shape": [1], "items": ["a"]}),
        "fit",
    ),
    "deep": (set_attribute("coef_", nested(600)), "do not fit together|cannot be read"),
    "family is no JSON": (metadata(state="{"), "cannot be read as a model"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_files_are_refused_in_words(name, content, tmp_path):
    change, words = FORGERIES[name]
    path = tmp_path / "model.safetensors"
    length = int.from_bytes(content[:8], "little")
    if name == "family is no JSON":
        header = json.loads(content[8 : 8 + length])
        change(header, None)
        path.write_bytes(signed(header, content[8 + length :]))
    else:
        path.write_bytes(forged(content, change))
    with pytest.raises(ValueError, match=words):
        sx.load_model(path)


@pytest.mark.parametrize("name", ["coef_", "intercept_"])
@pytest.mark.parametrize("kind", [np.nan, np.inf, bool])
def test_weights_that_are_no_numbers_are_refused(name, kind, tmp_path):
    model = sx.LogisticRegression().fit(X, Y)
    values = getattr(model, name)
    if kind is bool:
        setattr(model, name, values > 0)
    else:
        values[-1] = kind
    path = tmp_path / "model.safetensors"
    path.write_bytes(model_file._serialised(model))
    with pytest.raises(ValueError, match=f"{name} holds what is not a number"):
        sx.load_model(path)


def test_a_class_of_prior_zero_is_no_fault(tmp_path):
    for priors in ([0.0, 0.5, 0.5], [1.0, 0.0, 0.0]):
        model = sx.LinearDiscriminantAnalysis(priors=priors).fit(X, Y)
        same(copied(model, tmp_path).predict_proba(X), model.predict_proba(X))
    model = sx.MultinomialNB(class_prior=[0.0, 1.0]).fit(X, TWO)
    same(copied(model, tmp_path).predict_proba(X), model.predict_proba(X))


def test_machines_inside_are_looked_at_as_well(tmp_path):
    for model in (sx.BayesRule(sx.LogisticRegression()), sx.OneVsRestClassifier(sx.LogisticRegression())):
        model.fit(X, Y)
        inner = getattr(model, "estimator_", None) or model.estimators_[1]
        inner.coef_ = inner.coef_ > 0
        path = tmp_path / "model.safetensors"
        path.write_bytes(model_file._serialised(model))
        with pytest.raises(ValueError, match="coef_ holds what is not a number"):
            sx.load_model(path)


def other_classes(model):
    model.classes_ = np.array(["x", "y", "z"])


def codes_out_of_range(model):
    model.estimator.classes_ = np.array([0, 1, 7])


def codes_of_text(model):
    model.estimator.classes_ = np.array(["0", "1", "2"])


def half_a_loss(model):
    model.loss, model.actions = np.ones((2, 3)), model.classes_


def infinite_loss(model):
    model.loss, model.actions = np.full((3, 3), np.inf), model.classes_


def loss_without_probabilities(model):
    model.estimator = sx.RidgeClassifier().fit(model.encode(patients()), CODES[np.arange(240) % 150])
    model.loss, model.actions = np.ones((3, 3)), model.classes_


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_classes, "the classes are not those of the schema"),
        (codes_out_of_range, "not among the codes of 3 classes"),
        (codes_of_text, "not among the codes of 3 classes"),
        (half_a_loss, "its loss is not a table of 3 classes times 3 actions"),
        (infinite_loss, "its loss is not a table of 3 classes times 3 actions"),
        (loss_without_probabilities, "its estimator has no probabilities"),
    ],
)
def test_table_models_whose_parts_do_not_fit(change, words, tmp_path):
    model = TableModel.fit(patients(), "ill", sx.LogisticRegression(), family="logistic")
    change(model)
    path = tmp_path / "model.safetensors"
    path.write_bytes(model_file._serialised(model))
    with pytest.raises(ValueError, match=words):
        sx.load_model(path)


def test_probabilities_that_are_no_numbers_are_found(tmp_path):
    model = sx.GaussianNB().fit(X, Y)
    model.theta_[0, 0] = np.nan
    path = tmp_path / "model.safetensors"
    path.write_bytes(model_file._serialised(model))
    with pytest.raises(ValueError, match="probabilities that sum to nan"):
        sx.load_model(path)


def floats(state):
    """The places of a state that hold tensors, with the names of the attributes on the way."""
    if isinstance(state, dict):
        if state.get("$") == "array":
            yield (), state
        for key, item in state.items():
            yield from (((key, *path), node) for path, node in floats(item))
    elif isinstance(state, list):
        for item in state:
            yield from floats(item)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", SPOILT)
def test_no_tensor_of_any_model_may_be_anything_but_numbers(name, value, tmp_path):
    """Every array of floats of every model, one after another, with a checksum that matches."""
    content = model_file._serialised(fitted(SPOILT[name]))
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    path = tmp_path / "model.safetensors"
    records = {"fit_", "scores_", "selection_", "_inference"}
    for way, node in floats(json.loads(header["__metadata__"]["state"])):
        told = header[node["tensor"]]
        first, last = told["data_offsets"]
        if told["dtype"] != "F64" or first == last or records & set(way):
            continue
        buffer = bytearray(content[8 + length :])
        buffer[last - 8 : last] = np.float64(value).tobytes()
        path.write_bytes(signed(header, bytes(buffer)))
        with pytest.raises(ValueError, match=r"cannot be (used|read)"):
            sx.load_model(path)


def test_what_is_infinite_for_a_reason_is_loaded(tmp_path):
    half = np.minimum(X, 3.0)
    for model in (
        sx.LogisticRegression(C=np.inf).fit(X, (np.arange(len(X)) % 2)),
        sx.CategoricalNB(alpha=0.0).fit(half, Y),
        sx.LinearDiscriminantAnalysis(priors=[1.0, 0.0, 0.0]).fit(X, Y),
        sx.RegularizedDiscriminantAnalysis(alpha="cv").fit(X, Y),
        sx.Perceptron(variant="pocket").fit(X, Y),
    ):
        same(copied(model, tmp_path).predict(half), model.predict(half))


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    model = sx.SVC().fit(X, Y)
    model.support_vectors_[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"cannot be saved.*holds NaN"):
        sx.save_model(model, tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_file_does_not_choose_how_wide_texts_are():
    node, tensors = encode(np.array(["a", "bc"]), "value")
    assert decode({**node, "dtype": "<U500000000"}, tensors).dtype == np.dtype("<U2")
    assert decode({**node, "dtype": "<U500000000", "items": ["", ""]}, tensors).tolist() == ["", ""]


def test_headers_without_end(content, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes((1 << 62).to_bytes(8, "little") + content[8:])
    with pytest.raises(ValueError, match="shorter than its header states"):
        sx.load_model(path)
    with open(path, "wb") as file:  # a sparse file: its length costs nothing
        file.write((model_file.LARGEST_HEADER + 1).to_bytes(8, "little"))
        file.truncate(model_file.LARGEST_HEADER + 100)
    with pytest.raises(ValueError, match="more than the 100000000 that are allowed"):
        sx.load_model(path)
    deep = b"[" * 100_000
    path.write_bytes(len(deep).to_bytes(8, "little") + deep)
    with pytest.raises(ValueError, match="header is not JSON"):
        sx.load_model(path)


def test_inspection_makes_no_model(content, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(forged(content, lambda header, state: {"$": "object", "class": "nothing we have", "state": {}}))
    about = sx.inspect_model(path)
    assert about["family"] == "LogisticRegression" and about["classes"] == ["setosa", "versicolor", "virginica"]
    assert about["schema"] == {"columns": 4} and about["intact"]
    damaged = bytearray(content)
    damaged[-1] ^= 1
    path.write_bytes(bytes(damaged))
    assert sx.inspect_model(path)["intact"] is False


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    for read in (sx.load_model, sx.inspect_model):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "nowhere.safetensors")


# -- where a file may be written ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    return sx.compare(patients(), "ill", families=["lda"])


def write_json(found, path):
    saved = path.parent / "saved.safetensors"
    sx.save_model(found.best, saved)
    ran = CliRunner().invoke(app, ["export", str(saved), "--to", "json", "-o", str(path)])
    if ran.exit_code:
        raise OSError(ran.output)


def write_predictions(found, path):
    folder = path.parent
    sx.save_model(found.best, folder / "saved.safetensors")
    pa.csv.write_csv(patients(), folder / "rows.csv")
    ran = CliRunner().invoke(
        app, ["predict", str(folder / "saved.safetensors"), str(folder / "rows.csv"), "-o", str(path)]
    )
    if ran.exit_code:
        raise OSError(ran.output)


WRITERS = {
    "save_model": lambda found, path: sx.save_model(found.best, path),
    "write_report": sx.write_report,
    "export": write_json,
    "predict": write_predictions,
}
each_writer = pytest.mark.parametrize("writer", WRITERS)


@each_writer
def test_what_is_no_regular_file_is_left_alone(writer, found, tmp_path):
    pipe, folder = tmp_path / "pipe.csv", tmp_path / "folder.csv"
    os.mkfifo(pipe)
    folder.mkdir()
    link = tmp_path / "device.csv"
    link.symlink_to("/dev/null")
    for place, what in ((pipe, "a pipe"), (folder, "a folder"), (link, "a device")):
        before = os.stat(place)
        with pytest.raises(OSError, match=what):
            WRITERS[writer](found, place)
        assert (os.stat(place).st_mode, os.stat(place).st_ino) == (before.st_mode, before.st_ino)
    assert link.is_symlink()
    assert not list(tmp_path.glob(".separatrix-*"))


@each_writer
@pytest.mark.parametrize("mode", [0o600, 0o666])
def test_a_file_that_is_replaced_keeps_its_mode_and_its_links(writer, mode, found, tmp_path):
    (tmp_path / "kept").mkdir()
    path, link = tmp_path / "kept" / "file.csv", tmp_path / "link.csv"
    path.write_bytes(b"old")
    path.chmod(mode)
    link.symlink_to(path)
    for place in (path, link):
        WRITERS[writer](found, place)
        assert path.read_bytes() != b"old" and stat.S_IMODE(path.stat().st_mode) == mode
    assert link.is_symlink()


@each_writer
def test_a_link_to_a_file_that_is_not_there_yet_makes_it(writer, found, tmp_path):
    link, nowhere = tmp_path / "link.csv", tmp_path / "nowhere.csv"
    link.symlink_to(tmp_path / "new.csv")
    nowhere.symlink_to(tmp_path / "missing" / "new.csv")
    WRITERS[writer](found, link)
    assert link.is_symlink() and (tmp_path / "new.csv").stat().st_size
    with pytest.raises(OSError, match="no folder"):
        WRITERS[writer](found, nowhere)
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match=r"loop\.csv|links"):
        WRITERS[writer](found, loop)


_KILLED = """
import os, signal, sys
from separatrix.data.writing import replacing
with replacing(sys.argv[1]) as part:
    part.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    path, model = tmp_path / "model.safetensors", sx.GaussianNB().fit(X, Y)
    assert subprocess.run([sys.executable, "-c", _KILLED, str(path)], timeout=60).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    folder = tmp_path / ".separatrix-0123456789abcdef"  # and of a comparison
    folder.mkdir()
    (folder / "report.html").write_bytes(b"half")
    with replacing(tmp_path / "another") as working:
        working.write_bytes(b"at work")
        for old in (left, folder, working):
            os.utime(old, (1.0, 1.0))
        sx.save_model(model, path)
        assert set(tmp_path.iterdir()) == {path, working}  # that one is alive
    assert set(tmp_path.iterdir()) == {path, tmp_path / "another"}


def test_a_comparison_writes_its_folder_whole_or_not_at_all(tmp_path):
    pa.csv.write_csv(patients(), tmp_path / "rows.csv")
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / "report.html")
    run = ["compare", str(tmp_path / "rows.csv"), "--target", "ill", "--families", "lda", "--out", str(out), "--quiet"]
    refused = CliRunner().invoke(app, run)
    assert refused.exit_code == 1 and "a pipe" in refused.output
    assert [entry.name for entry in out.iterdir()] == ["report.html"]
    (out / "report.html").unlink()
    (out / "report.html").write_bytes(b"")
    (out / "report.html").chmod(0o600)
    assert CliRunner().invoke(app, run).exit_code == 0
    assert stat.S_IMODE((out / "report.html").stat().st_mode) == 0o600
    assert sorted(entry.name for entry in out.iterdir()) == ["model.safetensors", "report.html"]


@each("model", having(classifier=True, basic=True, weights=True, counts=False, missing=False))
@pytest.mark.parametrize("absent", [0, 1])
def test_a_model_with_a_class_without_weight_is_held(model, absent, tmp_path):
    """Its constant is −∞ and its coefficients are 0: that is no damage."""
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sample_weight=(y != absent).astype(float))
    sx.save_model(model, tmp_path / "model.safetensors")
    loaded = sx.load_model(tmp_path / "model.safetensors")
    assert (loaded.predict(X) == model.predict(X)).all() and not (loaded.predict(X) == absent).any()
