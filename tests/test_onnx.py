"""ONNX graphs against predict_proba, in ONNX Runtime."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from estimators import EXPORTED, EXPORTED_OF_TWO_CLASSES, EXPORTED_WITH_KERNELS, named
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import separatrix as sx
from separatrix.comparison.families import FAMILIES
from separatrix.comparison.table_model import TableModel

X, CODES = load_iris(return_X_y=True)
X = np.round(2.0 * X)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
TWO = CODES > 0

BARE = named(*EXPORTED, *EXPORTED_WITH_KERNELS)
TWO_CLASSES = named(*EXPORTED_OF_TWO_CLASSES)


def quiet_fit(model, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*arguments)


def session(model):
    made = sx.to_onnx(model)
    onnx.checker.check_model(made, full_check=True)
    return onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


def agrees(model, feed, given):
    run = session(model)
    values, labels = run.run(None, feed)
    has = hasattr(model, "predict_proba") and getattr(model, "has_probabilities", True)
    assert [output.name for output in run.get_outputs()] == ["probabilities" if has else "scores", "label"]
    assert values.dtype == np.float64
    expected = (
        model.predict_proba(given) if has else np.asarray(model.decision_function(given)).reshape(len(values), -1)
    )
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)
    assert labels.tolist() == model.predict(given).tolist()


@pytest.mark.parametrize("name", BARE)
def test_bare_estimators(name):
    agrees(quiet_fit(BARE[name], X, Y), {"X": X}, X)


@pytest.mark.parametrize("name", TWO_CLASSES)
def test_two_classes(name):
    agrees(quiet_fit(TWO_CLASSES[name], X, TWO), {"X": X}, X)


KERNELS = {
    "rbf": sx.SVC(gamma=0.1),
    "rbf of sharp peaks": sx.SVC(gamma=1e4),
    "polynomial": sx.SVC(kernel="poly", degree=5, gamma=0.1, coef0=1.0),
    "sigmoid": sx.SVC(kernel="sigmoid", gamma=1e-3, coef0=0.1),
    "laplacian": sx.SVC(kernel=sx.LaplacianKernel(0.2)),
    "sums and products": sx.SVC(kernel=0.5 * sx.RBFKernel(0.1) * sx.LaplacianKernel(0.2) + sx.LinearKernel()),
    "pairs that break ties": sx.SVC(gamma=0.1, break_ties=True),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_far_from_the_origin(name, classes):
    rows = X + (0.0 if name in ("polynomial", "sigmoid") else 1e3)
    agrees(quiet_fit(clone(KERNELS[name]), rows, Y if classes == 3 else TWO), {"X": rows}, rows)


def test_votes_that_tie_go_to_the_class_that_predict_gives():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    new = rng.normal(size=(4000, 2))
    for breaks in (False, True):
        model = quiet_fit(sx.SVC(gamma=1.0, break_ties=breaks), rows, y)
        found = session(model).run(["label"], {"X": new})[0]
        assert found.tolist() == model.predict(new).tolist()
        if not breaks:  # some rows have one vote for each class
            scores = model.decision_function(new)
            assert ((np.round(scores) == 1).all(axis=1) & (scores.argmax(axis=1) != found)).any()


def test_sparse_rows_of_a_machine():
    rows = sp.csr_array(np.where(X > 6, X, 0.0))
    model = quiet_fit(sx.SVC(gamma=0.1), rows, Y)
    agrees(model, {"X": rows.toarray()}, rows)


def test_ordered_classes_far_out():
    rows = np.vstack([X, X * 1e3, -X * 1e3])
    model = sx.OrderedLogisticRegression(order=["virginica", "setosa", "versicolor"]).fit(X, Y)
    agrees(model, {"X": rows}, rows)


def test_extreme_scores_give_probabilities_and_not_nan():
    model = sx.LogisticRegression().fit(X, TWO)
    model.coef_, model.intercept_ = np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([0.0])
    rows = np.zeros((5, 4))
    rows[:, 0] = [-800.0, -40.0, 0.0, 40.0, 800.0]
    agrees(model, {"X": rows}, rows)
    small = session(model).run(["probabilities"], {"X": rows})[0][3, 0]
    assert small == pytest.approx(np.exp(-40.0), rel=1e-12)


def test_missing_values_of_mixed_naive_bayes_are_nan():
    rows = X.copy()
    rows[np.random.default_rng(0).random(rows.shape) < 0.3] = np.nan
    rows[0] = np.nan
    model = sx.MixedNB(["gaussian", "poisson", "multinomial", "multinomial"], priors=[0.2, 0.3, 0.5]).fit(rows, Y)
    agrees(model, {"X": rows}, rows)


def test_labels_of_every_type():
    for labels in ([3, 5], [False, True], [1.0, 2.0], ["a", "b"]):
        model = sx.GaussianNB().fit(X, np.array(labels)[TWO.astype(int)])
        found = session(model).run(["label"], {"X": X})[0]
        assert found.tolist() == model.predict(X).tolist()
    assert session(sx.GaussianNB().fit(X, CODES)).run(["label"], {"X": X})[0].dtype == np.int64


def test_no_rows_are_no_rows():
    values, labels = session(sx.LinearDiscriminantAnalysis().fit(X, Y)).run(None, {"X": X[:0]})
    assert values.shape == (0, 3) and labels.shape == (0,)


# -- tables ---------------------------------------------------------------------------------------------------------------


def people(n=300, seed=0, unseen=False):
    rng = np.random.default_rng(seed)
    age, city = rng.normal(50, 15, n), rng.choice(["Ghent", "Lyon", "Turin"], n)
    smoker = rng.random(n) < 0.4
    score = 0.06 * (age - 50) + smoker + (city == "Ghent") + rng.logistic(size=n)
    if unseen:
        city[::7] = "Nowhere"
        age[::5] *= 1e4
    return pa.table(
        {
            "label": pa.array(np.where(rng.random(n) < 0.15, np.nan, age), from_pandas=True),  # the name of an output
            "smoker": pa.array(smoker, mask=rng.random(n) < 0.15),
            "a column; --": np.exp(rng.normal(10, 1, n)),
            "city": pa.array(city.tolist(), mask=rng.random(n) < 0.15),
            "ill": np.select([score < -0.5, score < 1.2], ["no", "a little"], "very"),
        }
    )


def feed_of(model, table):
    rows = model.schema.read(table)
    feed = {}
    for name, values in rows.columns.items():
        column = np.array(["" if value is None else value for value in values]) if values.dtype == object else values
        feed["column label" if name == "label" else name] = column.reshape(-1, 1)
    return feed


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_on_a_table_with_holes_and_unseen_values(name, two):
    family, table = FAMILIES[name], people()
    if two:
        table = table.set_column(4, "ill", pa.array((np.asarray(table["ill"]) == "very").tolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TableModel.fit(table, "ill", family.build(), family=name, encode=family.encoded)
    if name in ("svm-rbf", "linear-svm", "bayesian-logistic") and not two:
        with pytest.raises(ValueError, match=r"cannot be written as ONNX: .* (Use|Write|keep) "):
            sx.to_onnx(model)
        return
    new = people(150, seed=1, unseen=True)
    agrees(model, feed_of(model, new), new)


@pytest.mark.parametrize("scale", [1e-150, 1e-50, 1e-30, 1.0, 1e100])
@pytest.mark.parametrize("name", ["logistic", "lda", "qda", "bayesian-logistic", "linear-svm", "naive-bayes"])
def test_one_column_on_any_scale_keeps_its_digits(name, scale):
    # ONNX Runtime's optimiser compares and keeps single numbers in single precision: more than 1e-9 was lost here.
    rng, family = np.random.default_rng(0), FAMILIES[name]
    x = rng.normal(3.0, 1.0, 200)
    table = pa.table({"x": x * scale, "ill": x + rng.normal(size=200) > 3.0})
    for standardise in (True, False) if name in ("lda", "qda") else (True,):  # these centre by themselves
        model = TableModel.fit(
            table, "ill", family.build(), family=name, encode=family.encoded, standardise=standardise
        )
        found = session(model).run(["probabilities"], {"x": (x * scale).reshape(-1, 1)})[0]
        np.testing.assert_allclose(found, model.predict_proba(table), rtol=1e-12, atol=1e-13)


def test_a_scale_next_to_one_is_not_taken_for_one():
    table = pa.table({"x": np.tile([-1.0, 1.0], 50) * (1.0 + 3e-8), "ill": np.arange(100) % 3 > 0})
    model = TableModel.fit(table, "ill", sx.LogisticRegression(C=np.inf), family="logistic")
    model.estimator.coef_ = np.array([[1.0 + 2e-8]])
    far = pa.table({"x": np.linspace(-9.0, 9.0, 7)})
    assert model.encoder.features_[0].scale != 1.0 and np.float32(model.encoder.features_[0].scale) == 1.0
    found = session(model).run(["probabilities"], {"x": np.linspace(-9.0, 9.0, 7).reshape(-1, 1)})[0]
    np.testing.assert_allclose(found, model.predict_proba(far), rtol=1e-13)


def test_a_class_that_is_one_point():
    rows = X.copy()
    rows[CODES == 1] = 3.0
    agrees(sx.QuadraticDiscriminantAnalysis(singular="pseudo").fit(rows, Y), {"X": rows}, rows)


@pytest.mark.parametrize("labels", [[3, 5, 8], [1.0, 2.0, 4.0], ["a", "b", "c"], [False, True]], ids=str)
@pytest.mark.parametrize("reject", ["reject", -1])
def test_rejection_beside_labels_of_every_type(labels, reject):
    y = np.array(labels)[CODES] if len(labels) == 3 else CODES > 1
    model = sx.BayesRule(sx.LinearDiscriminantAnalysis(), reject_below=0.99, reject_action=reject).fit(X, y)
    found = session(model).run(["label"], {"X": X})[0].tolist()
    names = {label: label if type(labels[0]) is type(reject) else str(label) for label in (*labels, reject)}
    assert found == [names[label] for label in model.predict(X).tolist()]
    assert 0 < found.count(names[reject]) < len(X)


def test_columns_may_have_the_names_of_outputs_and_their_replacements():
    names = ["label", "column label", "column column label", "separatrix/0", "probabilities"]
    table = pa.table({**dict(zip(names, np.random.default_rng(0).normal(size=(5, 90)), strict=True)), "y": CODES[:90]})
    model = TableModel.fit(table, "y", sx.LogisticRegression(), family="logistic")
    run = session(model)
    inputs = [entry.name for entry in run.get_inputs()]
    assert inputs[1:3] == names[1:3] and len(set(inputs)) == 5
    feed = {own: table[name].to_numpy().reshape(-1, 1) for own, name in zip(inputs, names, strict=True)}
    np.testing.assert_allclose(run.run(["probabilities"], feed)[0], model.predict_proba(table), rtol=1e-12)


def test_losses_choose_an_action():
    loss, actions = [[0, 2, 1], [9, 0, 1], [9, 1, 1]], ["send home", "operate", "ask"]
    model = TableModel.fit(people(), "ill", sx.LogisticRegression(), family="logistic", loss=loss, actions=actions)
    new = people(100, seed=2)
    agrees(model, feed_of(model, new), new)
    assert len(set(model.predict(new).tolist())) > 1


def test_texts_that_stand_for_a_missing_value():
    model = TableModel.fit(people(), "ill", sx.LogisticRegression(), family="logistic")
    feed = feed_of(model, people(40, seed=3))
    run = session(model)
    expected = run.run(["probabilities"], feed)[0]
    feed["city"] = np.where(feed["city"] == "", "NA", feed["city"])
    np.testing.assert_array_equal(run.run(["probabilities"], feed)[0], expected)


def test_a_frame_of_texts_has_an_input_a_column():
    frame = pd.DataFrame(
        {"words": [3.0, 0.0, 5.0, 1.0, np.nan, 2.0] * 10, "kind": ["a", "b", None, "a", "c", "b"] * 10}
    )
    model = sx.MixedNB({"words": "poisson"}).fit(frame, np.tile(["p", "q", "p"], 20))
    feed = {
        "words": frame[["words"]].to_numpy(),
        "kind": frame[["kind"]].fillna("").to_numpy(dtype=object),
    }
    agrees(model, feed, frame)


def test_the_graph_asks_for_old_operators_only():
    made = sx.to_onnx(sx.LinearDiscriminantAnalysis().fit(X, Y))
    assert {entry.domain: entry.version for entry in made.opset_import} == {"": 13, "ai.onnx.ml": 2}
    assert made.ir_version == 7 and made.producer_name == "separatrix"


def test_what_cannot_be_written_says_why():
    for words, model in {
        "a Python function": sx.SVC(kernel=lambda a, b: np.asarray(a) @ np.asarray(b).T),
        "system of equations": sx.SVC(calibration="sigmoid", random_state=0),
        "alpha > 0": sx.CategoricalNB(alpha=0),
        "its machines are not linear": sx.OneVsOneClassifier(sx.QuadraticDiscriminantAnalysis()),
    }.items():
        with pytest.raises(ValueError, match=words):
            sx.to_onnx(model.fit(X, Y))


def test_without_the_package_the_sentence_says_what_to_install(monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *arguments, **keywords):
        if name == "onnx":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'separatrix\[onnx\]'"):
        sx.to_onnx(sx.GaussianNB().fit(X, Y))
