"""Every classifier's score form against the classifier itself: scores, probabilities, decisions."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import having
from sklearn.base import ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import SGDClassifier

import separatrix as sx
from separatrix.geometry import Linear, Quadratic
from separatrix.geometry.combined_forms import Composition, Placed
from separatrix.geometry.score_form import NoScoreForm, score_form_of

X, CODES = (part[7:] for part in load_iris(return_X_y=True))  # classes of unequal shares
X = np.round(2.0 * X)
Y = np.array(["a", "b", "c"])[CODES]
TWO = np.where(CODES > 0, "yes", "no")
CLASSIFIERS = having(classifier=True, score_form=True, folds=False, only_for=("", "four columns", "labels a, b, c"))
del CLASSIFIERS["svc, scores of pairs"]  # its scores are of pairs, those of its form are of classes
WEIGHTS = {
    "all": None,
    "one class without": np.where(CODES == 1, 0.0, 1.0),
    "one class with": np.where(CODES == 0, 1.0, 0),
}


def fitted(name, y, weights=None):
    model = clone(CLASSIFIERS[name])
    if isinstance(model, sx.BayesRule) and model.priors is not None and len(np.unique(y)) == 2:
        model.set_params(priors={"no": 0.9, "yes": 0.1})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y) if weights is None else model.fit(X, y, sample_weight=weights)


def close(found, expected):
    known = np.isfinite(expected)
    assert np.array_equal(found[~known], expected[~known])
    scale = np.abs(expected[known]).max(initial=0.0)
    np.testing.assert_allclose(found[known], expected[known], rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_form_is_the_classifier(name, n_classes, weights):
    y = Y if n_classes == 3 else TWO
    model = fitted(name, y, WEIGHTS[weights])
    form = model.score_form()
    scores = form.scores(X)
    assert scores.shape in {(len(X), n_classes), (len(X), 1 if n_classes == 2 else n_classes)}
    if hasattr(model, "decision_function"):
        expected = model.decision_function(X).reshape(len(X), -1)
        single = scores[:, 1:] - scores[:, :1] if n_classes == 2 and scores.shape[1] == 2 else scores
        if single.shape[1] > 1 and form.link == "softmax":  # up to what all classes share
            best = np.arange(len(X)), expected.argmax(axis=1)
            single, expected = single - single[best][:, None], expected - expected[best][:, None]
        close(single, expected)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(form.probabilities(X), model.predict_proba(X), rtol=1e-9, atol=1e-12)
    else:
        assert form.link == "none"
        with pytest.raises(ValueError, match="no probabilities"):
            form.probabilities(X)


def test_every_public_classifier_is_here():
    public = {getattr(sx, name) for name in sx.__all__ if isinstance(getattr(sx, name), type)}
    classifiers = {kind for kind in public if issubclass(kind, ClassifierMixin)} - {
        sx.TableModel
    }  # its estimator has the form
    assert classifiers <= {type(model) for model in CLASSIFIERS.values()}


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "sigmoid", "precomputed"])
def test_kernels_of_every_kind_on_sparse_and_given_values(kernel):
    given = X @ X.T if kernel == "precomputed" else X
    model = sx.SVC(kernel=kernel, gamma=0.1).fit(given, Y)
    close(model.score_form().scores(given), model.decision_function(given))
    pairs = sx.OneVsOneClassifier(sx.SVC(kernel=kernel, gamma=0.1)).fit(given, Y)
    close(pairs.score_form().scores(given), pairs.decision_function(given))
    if kernel != "precomputed":
        sparse = sp.csr_array(X)
        model = sx.SVC(kernel=kernel, gamma=0.1).fit(sparse, Y)
        close(model.score_form().scores(sparse), model.decision_function(sparse))


def test_a_table_of_every_kind_of_column_with_holes():
    table = pd.DataFrame(
        {"number": X[:, 0], "count": X[:, 1], "word": np.where(CODES == 1, "u", "v"), "flag": CODES > 0}
    )
    table.loc[::7, "number"] = np.nan
    table.loc[::5, "word"] = None
    model = sx.MixedNB({"count": "poisson"}).fit(table, Y)
    form = model.score_form()
    assert dict(form.columns) == {"number": "number", "count": "number", "word": "text", "flag": "flag"}
    np.testing.assert_allclose(form.probabilities(table), model.predict_proba(table), rtol=1e-11)


def test_forms_are_of_the_kind_that_they_should_be():
    assert isinstance(fitted("lda", Y).score_form(), Linear)
    assert isinstance(fitted("against rest of logistic", Y).score_form(), Linear)
    shared = fitted("rda of one covariance", Y).score_form()
    assert isinstance(shared, Quadratic) and shared.factors[0] is shared.factors[1]
    assert isinstance(fitted("mapped lda", Y).score_form(), Composition)
    assert isinstance(fitted("svc", Y, WEIGHTS["one class without"]).score_form(), Placed)
    labels = sx.RidgeClassifier().fit(X, (X[:, :2] > 8).astype(int))
    assert labels.score_form().link == "labels"
    assert np.array_equal(labels.score_form().scores(X) > 0, labels.predict(X) > 0)


def test_estimators_of_other_libraries_have_none():
    calibrated = sx.BayesRule(sx.LinearSVC(), calibration="sigmoid").fit(X, Y)
    for model in (calibrated, sx.OneVsRestClassifier(SGDClassifier(random_state=0)).fit(X, Y)):
        with pytest.raises(NoScoreForm, match="has no score_form") as refusal:
            model.score_form()
        assert isinstance(refusal.value.estimator, CalibratedClassifierCV | SGDClassifier)
    constant = DummyClassifier(strategy="prior").fit(X, Y)
    np.testing.assert_allclose(score_form_of(constant).probabilities(X), constant.predict_proba(X), rtol=1e-14)
    with pytest.raises(NoScoreForm) as refusal:
        score_form_of(DummyClassifier(strategy="uniform").fit(X, Y))
    assert refusal.value.at_random
