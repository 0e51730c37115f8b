"""scikit-learn's classes become ours and back: names, pickles, processes, scripts, notebooks, and what is handed back."""

from __future__ import annotations

import logging
import pickle
import re
import subprocess
import sys
import types
import warnings
from copy import copy, deepcopy
from pathlib import Path
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.calibration
import sklearn.discriminant_analysis
import sklearn.ensemble
import sklearn.feature_selection
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.svm
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC  # before any swap: the tests see what becomes of it

import separatrix as sx
from separatrix.drop_in.swaps import SWAPS

X, Y = load_iris(return_X_y=True)
ORIGINALS = {name: swap.original for name, swap in SWAPS.items()}
SETTINGS = {
    "LogisticRegressionCV": {"Cs": 2, "l1_ratios": (0,), "use_legacy_attributes": False, "scoring": "accuracy"},
    "RidgeCV": {"scoring": "r2"},  # without, scikit-learn's own get_metadata_routing recurses until it is stopped
    "RidgeClassifierCV": {"scoring": "accuracy"},
    "SGDClassifier": {"random_state": 0},
    "PassiveAggressiveClassifier": {"random_state": 0},
}

BY_CHANCE = ("Perceptron",)  # visits the rows in an order of its own


@pytest.fixture
def swapped():
    sx.accelerate()
    yield
    sx.restore()


@pytest.fixture(autouse=True)
def left_as_found():
    yield
    sx.restore()
    assert SVC is ORIGINALS["SVC"]


def attributes_of_scikit_learn() -> dict[tuple[str, str], int]:
    """The identity of everything that a loaded module of scikit-learn, or this one, has a name for."""
    modules = {name: m for name, m in sys.modules.items() if name.startswith("sklearn") or name == __name__}
    return {(name, key): id(value) for name, module in modules.items() for key, value in list(vars(module).items())}


def make(name: str, **parameters):
    swap = SWAPS[name]
    return getattr(sys.modules[swap.module], name)(**SETTINGS.get(name, {}), **parameters)


def test_names_are_swapped_wherever_they_are_and_restored_to_the_last_one():
    before = attributes_of_scikit_learn()
    for _ in range(2):
        sx.accelerate()
        assert SVC is sklearn.svm.SVC is sys.modules["sklearn.svm._classes"].SVC is not ORIGINALS["SVC"]
        assert sys.modules["sklearn.calibration"].LinearSVC is sklearn.svm.LinearSVC is not ORIGINALS["LinearSVC"]
        assert all(getattr(sys.modules[swap.module], name) is not swap.original for name, swap in SWAPS.items())
        sx.restore()
        after = attributes_of_scikit_learn()
        assert after == {key: before.get(key, value) for key, value in after.items()} and before.keys() <= after.keys()


def test_names_are_chosen_and_a_second_call_replaces_the_first():
    sx.accelerate(only=["SVC", "Ridge"])
    assert {row.name for row in sx.accelerated().rows if row.swapped} == {"SVC", "Ridge"}
    assert sklearn.linear_model.LogisticRegression is ORIGINALS["LogisticRegression"]
    sx.accelerate(without="SVC")
    assert SVC is ORIGINALS["SVC"] and sklearn.linear_model.Ridge is not ORIGINALS["Ridge"]
    with pytest.raises(ValueError, match="Tree: no class of this name is swapped; there are LogisticRegression"):
        sx.accelerate(only=["Tree"])


def test_the_order_of_imports_does_not_matter():
    code = (
        "import separatrix; {}\n"
        "from sklearn.ensemble import StackingClassifier; from sklearn.linear_model import LogisticRegression; {}\n"
        "import sklearn.ensemble._stacking as s, sklearn.linear_model._logistic as l\n"
        "assert LogisticRegression is s.LogisticRegression is l.LogisticRegression and hasattr(LogisticRegression, 'swap')"
    )
    for places in (("separatrix.accelerate()", ""), ("", "separatrix.accelerate()")):
        subprocess.run([sys.executable, "-c", code.format(*places)], check=True)


@pytest.mark.parametrize("name", SWAPS)
def test_a_swapped_class_is_scikit_learns_in_everything_but_the_fit(name, swapped):
    original, model = ORIGINALS[name], make(name)
    theirs = original(**SETTINGS.get(name, {}))
    kind = type(model)
    assert kind is not original and isinstance(model, original) and issubclass(kind, original)
    assert isinstance(theirs, kind) and issubclass(original, kind) and not isinstance(3, kind)
    assert repr(model) == repr(theirs) and model._repr_html_() and kind.__doc__ == original.__doc__
    assert model.get_params() == theirs.get_params() and is_classifier(model) == is_classifier(theirs)
    mine, expected = model.__sklearn_tags__(), theirs.__sklearn_tags__()
    assert mine.input_tags.sparse  # which not all of scikit-learn's classes take
    expected.input_tags.sparse = True
    assert repr(mine) == repr(expected)
    assert repr(model.get_metadata_routing()) == repr(theirs.get_metadata_routing())
    frame = pd.DataFrame(np.round(X), columns=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        assert model.fit(frame, Y) is model and hasattr(model, "fit_")
        theirs.fit(frame, Y)
    assert list(model.feature_names_in_) == list("abcd") and model.n_features_in_ == 4
    if is_classifier(model) and name not in BY_CHANCE:
        assert np.mean(model.predict(frame) == theirs.predict(frame)) > 0.95
    assert not hasattr(clone(model), "fit_") and type(clone(model)) is kind
    missing = {key for key in vars(theirs) if key.endswith("_") and not key.startswith("_")} - set(dir(model))
    assert {key for key in missing if not hasattr(model, key)} == set()


@pytest.mark.parametrize("name", SWAPS)
def test_pickles_are_the_swapped_class_under_the_swap_and_ours_without_it(name, swapped):
    rows, model = np.round(X), make(name)
    fitted = pickle.dumps(make(name).fit(rows, Y))
    blank, kind, answers = pickle.dumps(model), pickle.dumps(type(model)), pickle.loads(fitted).predict(rows)
    assert type(pickle.loads(blank)) is type(pickle.loads(fitted)) is pickle.loads(kind) is type(model)
    sx.restore()
    ours = SWAPS[name].ours
    assert type(pickle.loads(blank)) is type(pickle.loads(fitted)) is pickle.loads(kind) is ours
    np.testing.assert_array_equal(pickle.loads(fitted).predict(rows), answers)


def test_pickles_of_scikit_learns_own_instances_stay_what_they_are():
    before = sklearn.naive_bayes.GaussianNB().fit(X, Y)
    sx.accelerate()
    assert type(pickle.loads(pickle.dumps(before))) is ORIGINALS["GaussianNB"]
    text = pickle.dumps(before)
    sx.restore()
    np.testing.assert_array_equal(pickle.loads(text).predict(X), before.predict(X))


def test_copies_are_alike_and_independent(swapped):
    model = SVC().fit(X, Y)
    for twin in (copy(model), deepcopy(model)):
        assert type(twin) is SVC
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert deepcopy(model).support_ is not model.support_


def test_coefficients_have_the_precision_of_the_rows_and_answers_their_frames(swapped):
    model = sklearn.linear_model.LogisticRegression().fit(X.astype(np.float32), Y)
    assert model.coef_.dtype == np.float32 and model.separatrix_model_.coef_.dtype == np.float64
    lda = sklearn.discriminant_analysis.LinearDiscriminantAnalysis().set_output(transform="pandas")
    assert list(lda.fit_transform(X, Y).columns) == ["lineardiscriminantanalysis0", "lineardiscriminantanalysis1"]


def test_attributes_that_are_set_after_the_fit_count(swapped):
    model = sklearn.linear_model.LogisticRegression().fit(X, Y)
    model.coef_, model.intercept_ = np.zeros((3, 4)), np.array([0.0, 1.0, 0.0])
    assert (model.predict(X) == 1).all()
    assert (model.sparsify().predict(X) == 1).all()
    votes = SVC(decision_function_shape="ovo").fit(np.vstack([X, X + 9]), np.append(Y, Y + 3))
    assert votes.decision_function(X).shape == (150, 15)
    votes.decision_function_shape = "ovr"
    assert votes.decision_function(X).shape == (150, 6)


def test_meta_estimators_use_ours_by_themselves_and_around(swapped):
    def used(name):
        return sx.accelerated()[name].fits

    before = {name: used(name) for name in SWAPS}
    two = Y > 0
    sklearn.calibration.CalibratedClassifierCV(cv=2).fit(X, two)
    sklearn.ensemble.StackingClassifier([("nb", sklearn.naive_bayes.GaussianNB())], cv=2).fit(X, two)
    sklearn.feature_selection.RFE(sklearn.linear_model.Ridge(), n_features_to_select=1).fit(X, Y)
    pipe = make_pipeline(StandardScaler(), SVC())
    search = GridSearchCV(pipe, {"svc__C": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert hasattr(search.best_estimator_[-1], "fit_") and search.best_score_ > 0.9
    used_now = {name: used(name) - before[name] for name in SWAPS if used(name) > before[name]}
    assert used_now == {"LogisticRegression": 1, "Ridge": 4, "GaussianNB": 3, "SVC": 5, "LinearSVC": 2}


def imports_inside() -> tuple[bool, bool]:
    from sklearn.svm import SVC as here

    return hasattr(here, "swap"), hasattr(here().fit([[0.0], [1.0]], [0, 1]), "fit_")


def test_workers_of_joblib_see_the_swap_and_its_end(swapped):
    assert Parallel(n_jobs=2)(delayed(imports_inside)() for _ in range(2)) == [(True, True)] * 2
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2, n_jobs=2).fit(X, Y)
    assert type(search.best_estimator_) is SVC and hasattr(search.best_estimator_, "fit_")
    assert (cross_val_score(SVC(), X, Y, cv=2, n_jobs=2) > 0.9).all()
    sx.restore()
    assert Parallel(n_jobs=2)(delayed(imports_inside)() for _ in range(2)) == [(False, False)] * 2


def test_a_process_that_was_started_under_the_swap_swaps_with_the_first_pickle(swapped, tmp_path):
    (tmp_path / "model").write_bytes(pickle.dumps(SVC().fit(X, Y)))
    code = (
        "import sys, pickle; from sklearn.naive_bayes import GaussianNB; assert not hasattr(GaussianNB, 'swap')\n"
        "model = pickle.load(open(sys.argv[1], 'rb')); import sklearn.svm\n"
        "assert type(model) is sklearn.svm.SVC and hasattr(GaussianNB, 'swap')"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "model")], check=True)


def test_what_is_not_supported_is_handed_back_once_with_a_line_that_says_why(swapped, caplog):
    caplog.set_level(logging.INFO, logger="separatrix.accelerate")
    before = sx.accelerated()["SVC"]

    class Watched(SVC):
        def _decision_function(self, rows):
            return super()._decision_function(rows)

    model = Watched()
    for _ in range(2):
        assert model.fit(X, Y) is model and not hasattr(model, "fit_") and model.score(X, Y) > 0.9
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "SVC: handed back to scikit-learn: Watched defines _decision_function, which scikit-learn's own methods call"
    ]
    after = sx.accelerated()["SVC"]
    assert after.handed_back - before.handed_back == 2 and after.fits == before.fits and after.seconds_handed_back > 0
    assert "Watched defines" in repr(sx.accelerated()) and "SVC" in repr(sx.accelerated())


def test_a_subclass_that_overrides_nothing_is_ours(swapped):
    class Named(SVC):
        def __init__(self, C=1.0, label="x"):
            super().__init__(C=C)
            self.label = label

    model = Named(C=2.0).fit(X, Y)
    assert hasattr(model, "fit_") and isinstance(model, SVC) and not isinstance(SVC(), Named)
    assert model.separatrix_model_.C == 2.0


def test_errors_are_in_scikit_learns_words_and_leave_the_model_as_it_was(swapped):
    model = sklearn.linear_model.LogisticRegression().fit(X, Y)
    answers = model.predict_proba(X)
    with pytest.raises(ValueError, match="This solver needs samples of at least 2 classes in the data"):
        model.fit(X, np.zeros(150))
    np.testing.assert_array_equal(model.predict_proba(X), answers)
    with pytest.raises(ValueError, match="Solver lbfgs supports only 'l2' or None penalties"):
        sklearn.linear_model.LogisticRegression(l1_ratio=1).fit(X, Y)
    with pytest.raises(ValueError, match="The 'C' parameter of LogisticRegression must be"):
        sklearn.linear_model.LogisticRegression(C=-1).fit(X, Y)
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        sklearn.naive_bayes.GaussianNB().partial_fit(X, Y)
    with pytest.raises(ValueError, match="Unknown label type: unknown"):
        sklearn.linear_model.LogisticRegression().fit(X, Y.astype(object))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        sklearn.linear_model.LogisticRegression().fit(X)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="^lbfgs failed to converge after 1 iteration"):
        sklearn.linear_model.LogisticRegression(max_iter=1).fit(1000 * X, Y)
    with pytest.warns(FutureWarning, match="'penalty' was deprecated"):
        sklearn.linear_model.LogisticRegression(penalty="l2").fit(X, Y)


def test_methods_that_are_missing_say_why_in_scikit_learns_words(swapped):
    for model in (sklearn.linear_model.SGDClassifier(), sklearn.linear_model.SGDClassifier().fit(X, Y)):
        with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as error:
            model.predict_proba  # noqa: B018  # reading it is the test
        assert "probability estimates are not available for loss='hinge'" in str(error.value.__cause__)
        assert not hasattr(model, "__name__") and not hasattr(model, "coefficients_")


def test_rows_of_larger_weight_are_left_out_as_scikit_learn_leaves_them_out(swapped):
    weights = 1.0 + np.arange(150) % 3
    for name, targets in (("RidgeCV", X[:, 0] + 0.0), ("RidgeClassifierCV", Y)):
        settings = {"alphas": [0.01, 1.0, 100.0], "store_cv_results": True}
        theirs = ORIGINALS[name](**settings).fit(X[:, 1:], targets, weights)
        model = getattr(sklearn.linear_model, name)(**settings).fit(X[:, 1:], targets, weights)
        np.testing.assert_allclose(model.cv_results_, theirs.cv_results_, rtol=1e-7, atol=1e-12)
        assert model.alpha_ == theirs.alpha_ and hasattr(model, "fit_")
    with pytest.warns(FutureWarning, match="The 'svd' mode is not supported for sparse X"):
        sklearn.linear_model.RidgeCV(gcv_mode="svd").fit(sp.csr_array(X), Y)


def test_folds_are_scikit_learns(swapped):
    for name in ("RidgeCV", "RidgeClassifierCV"):
        theirs, model = (kind(cv=3).fit(X, Y) for kind in (ORIGINALS[name], getattr(sklearn.linear_model, name)))
        assert model.alpha_ == theirs.alpha_
        np.testing.assert_allclose(model.best_score_, theirs.best_score_, rtol=1e-6)


def test_rows_in_parts(swapped):
    model = sklearn.naive_bayes.GaussianNB().partial_fit(X[:75], Y[:75], classes=[0, 1, 2])
    model.partial_fit(X[75:], Y[75:])
    whole = ORIGINALS["GaussianNB"]().fit(X, Y)
    np.testing.assert_allclose(model.theta_, whole.theta_, rtol=1e-12)
    with pytest.raises(ValueError, match="4 features"):
        model.partial_fit(X[:, :2], Y)
    with pytest.raises(ValueError, match="is not the same as on last call to partial_fit"):
        model.partial_fit(X, Y, classes=[0, 1, 2, 3])


def test_after_restore_a_model_goes_on_predicting_and_fits_as_scikit_learn_does():
    sx.accelerate()
    model = SVC().fit(X, Y)
    answers = model.predict(X)
    sx.restore()
    np.testing.assert_array_equal(model.predict(X), answers)
    assert not hasattr(model.fit(X, Y), "fit_")


SCRIPT = """
import sys
import helper
from sklearn.svm import SVC
if __name__ == "__main__":
    model = SVC().fit([[0.0], [1.0]], [0, 1])
    print(sys.argv[1:], hasattr(model, "fit_"), helper.SVC is SVC)
    sys.exit(3)
"""


@pytest.mark.parametrize("call", [["script.py"], ["-m", "script"], ["--report", "--only", "SVC", "script.py"]])
def test_a_script_runs_as_it_stands(call, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "helper.py").write_text("from sklearn.svm import SVC\n", encoding="utf-8")
    command = [sys.executable, "-m", "separatrix", *call, "--report", "-m", "x"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert done.stdout == "['--report', '-m', 'x'] True True\n"
    assert ("swapped" in done.stderr) == (call[0] == "--report")


def test_the_runner_says_how_it_is_called():
    done = subprocess.run([sys.executable, "-m", "separatrix"], capture_output=True, text=True)
    assert done.returncode == 2 and "name a script, or a module with -m" in done.stderr
    done = subprocess.run([sys.executable, "-m", "separatrix", "nowhere.py"], capture_output=True, text=True)
    assert done.returncode == 2 and "there is no file nowhere.py; a module is named after -m" in done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "separatrix", "--only", "Tree", __file__], capture_output=True, text=True
    )
    assert done.returncode and "Tree: no class of this name is swapped" in done.stderr


def test_a_notebook_extension(monkeypatch):
    cell = types.ModuleType("cell")
    cell.SVC = SVC
    monkeypatch.setitem(sys.modules, "cell", cell)
    sx.load_ipython_extension(None)
    assert cell.SVC is SVC is not ORIGINALS["SVC"]
    sx.unload_ipython_extension(None)
    assert cell.SVC is ORIGINALS["SVC"]


def test_scikit_learns_own_test_of_logistic_regression_passes_after_restore(tmp_path):
    code = (
        "import sys, pytest, separatrix, sklearn.linear_model, sklearn.svm\n"
        "for _ in range(2): separatrix.accelerate(); separatrix.restore()\n"
        "sys.exit(pytest.main(['-c', '/dev/null', '-q', '-p', 'no:cacheprovider', '--pyargs',\n"
        "    'sklearn.linear_model.tests.test_logistic', '-k', 'test_predict or test_sparsify or test_nan or test_warm']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout[-2000:]


def test_the_page_of_conformance_reaches_its_goal_with_a_decision_for_the_rest():
    page = (Path(__file__).parent.parent / "docs" / "conformance.md").read_text(encoding="utf-8")
    share = re.search(r"^\d+ of \d+ tests, ([\d.]+) %", page, flags=re.M)
    assert share and float(share[1]) >= 98 and "To be mended" not in page


def test_modules_that_nobody_imports_stay_unloaded_and_are_swapped_when_they_are_loaded():
    code = """
        import sys, separatrix, pickle
        separatrix.accelerate(only=["GaussianNB", "NearestCentroid", "SVC"])
        assert separatrix.accelerated()["GaussianNB"].swapped
        assert not {"sklearn.naive_bayes", "sklearn.neighbors", "sklearn.svm"} & sys.modules.keys()
        from sklearn.naive_bayes import GaussianNB
        import sklearn.naive_bayes
        assert GaussianNB is sklearn.naive_bayes.GaussianNB and hasattr(GaussianNB, "swap")
        assert type(sklearn.naive_bayes.__loader__).__module__.startswith("_frozen_importlib")
        assert sklearn.naive_bayes.__spec__.loader is sklearn.naive_bayes.__loader__
        assert hasattr(GaussianNB().fit([[0.0], [1.0]], [0, 1]), "fit_")
        from separatrix.drop_in.swaps import SWAPS
        original = SWAPS["NearestCentroid"].original  # the first read loads the module
        import sklearn.neighbors
        assert not hasattr(original, "swap") and issubclass(sklearn.neighbors.NearestCentroid, original)
        assert sklearn.neighbors.NearestCentroid is not original
        finders = len(sys.meta_path)
        separatrix.restore()
        assert len(sys.meta_path) == finders - 1 and sklearn.neighbors.NearestCentroid is original
        from sklearn.svm import SVC
        assert not hasattr(SVC, "swap") and not hasattr(sklearn.naive_bayes.GaussianNB, "swap")
    """
    subprocess.run([sys.executable, "-c", dedent(code)], check=True)


def test_parameters_that_were_valid_before_say_nothing_about_others(swapped):
    for C in (1.0, 10.0, 1.0):
        assert SVC(C=C, degree=3).fit(X, Y).fit_
    for wrong in ({"degree": 3.5}, {"C": -1.0}, {"C": "1"}, {"kernel": "cubic"}):
        with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of SVC must be"):
            SVC(**wrong).fit(X, Y)


def test_kernel_values_with_other_names_are_refused_for_the_names(swapped):
    values = pd.DataFrame(X @ X.T, columns=[f"row {i}" for i in range(len(X))])
    model = SVC(kernel="precomputed").fit(values, Y)
    with pytest.raises(ValueError, match="The feature names should match those that were passed"):
        model.predict(pd.DataFrame(np.full(values.shape, np.nan), columns=values.columns[::-1]))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(values.where(values > 1e9))
