"""Habits of scikit-learn's estimators that scripts rely on: sparse coefficients, float32 answers, arrays for frames."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.discriminant_analysis
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.svm
from estimators import each, having
from sklearn.base import clone

import separatrix as sx

RNG = np.random.default_rng(0)
Y = np.arange(90) % 3
X = np.round(RNG.standard_normal((90, 5)) + 0.8 * Y[:, None], 2)
HALF = X.astype(np.float32)


@pytest.mark.parametrize("y", [Y, Y > 0], ids=["three", "two"])
@each("estimator", having(sparsify=True, folds=False))
def test_sparse_coefficients_change_nothing_but_themselves(estimator, y, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(estimator).fit(X, y)
        twin = clone(estimator).fit(X, y)
    assert twin.sparsify() is twin and sp.issparse(twin.coef_) and twin.coef_.shape == model.coef_.shape
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(twin, method)(X), getattr(model, method)(X))
    for mine, other in zip(model.linear_form(), twin.linear_form(), strict=True):
        np.testing.assert_array_equal(mine, other)
    labels = model.classes_[:2]
    np.testing.assert_array_equal(model.boundary(*labels).normal, twin.boundary(*labels).normal)
    assert sx.to_json(model) == sx.to_json(twin)
    sx.save_model(twin, tmp_path / "model")
    for copy in (sx.load_model(tmp_path / "model"), pickle.loads(pickle.dumps(twin))):
        np.testing.assert_array_equal(copy.predict(sp.csr_array(X)), model.predict(X))
    assert isinstance(twin.densify().coef_, np.ndarray)
    np.testing.assert_array_equal(twin.coef_, model.coef_)


def test_a_warm_start_from_sparse_coefficients():
    for estimator in (
        sx.LogisticRegression(warm_start=True),
        sx.LinearClassifier(warm_start=True),
        sx.Perceptron(warm_start=True),
    ):
        model = clone(estimator).fit(X, Y).sparsify()
        assert isinstance(model.fit(X, Y).coef_, np.ndarray)


@pytest.mark.parametrize("families", ["auto", {1: "poisson"}, ["gaussian"] * 5])
def test_a_table_of_mixed_columns_is_an_array_or_a_frame(families):
    rows = np.abs(np.round(X))
    frame = pd.DataFrame(rows, columns=list("abcde"))
    named = {"b": "poisson"} if isinstance(families, dict) else families
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's, on names
        of_array, of_frame = sx.MixedNB(families).fit(rows, Y), sx.MixedNB(named).fit(frame, Y)
        expected = of_array.predict_proba(rows)
        for model in (of_array, of_frame):
            for asked in (rows, frame):
                np.testing.assert_allclose(model.predict_proba(asked), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        of_frame.predict(frame[list("edcba")])


PEERS = {
    "LogisticRegression": sklearn.linear_model,
    "RidgeClassifier": sklearn.linear_model,
    "Perceptron": sklearn.linear_model,
    "Ridge": sklearn.linear_model,
    "LinearRegression": sklearn.linear_model,
    "LinearDiscriminantAnalysis": sklearn.discriminant_analysis,
    "QuadraticDiscriminantAnalysis": sklearn.discriminant_analysis,
    "GaussianNB": sklearn.naive_bayes,
    "LinearSVC": sklearn.svm,
    "SVC": sklearn.svm,
}


@pytest.mark.parametrize("name", PEERS)
def test_answers_have_the_precision_of_scikit_learns(name):
    mine, peer = getattr(sx, name)(), getattr(PEERS[name], name)()
    for fitted_on in (HALF, X):
        y = Y.astype(fitted_on.dtype) if name in ("Ridge", "LinearRegression") else Y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine.fit(fitted_on, y), peer.fit(fitted_on, y)
        for asked in (HALF, X, pd.DataFrame(HALF)):
            for method in ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform"):
                if hasattr(peer, method):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found, expected = getattr(mine, method)(asked), getattr(peer, method)(asked)
                    assert found.dtype == expected.dtype, (method, fitted_on.dtype, asked.shape)
                    if method != "predict" and found.dtype == np.float32:  # computed in double precision, then rounded
                        full = getattr(mine, method)(np.asarray(asked, dtype=np.float64))
                        np.testing.assert_allclose(found, full, rtol=2e-7, atol=1e-30)
