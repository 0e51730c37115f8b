"""Displays in scikit-learn's style: numbers first, then a plot of exactly these."""

import matplotlib as mpl
import numpy as np
import pytest

import separatrix as sx

mpl.use("Agg")


def test_losses_are_their_formulas_and_bound_the_misclassification():
    display = sx.MarginLossDisplay.from_losses()
    m, values = display.margins, display.values
    np.testing.assert_allclose(values["logistic"], np.logaddexp(0.0, -m), rtol=1e-14)
    np.testing.assert_allclose(values["hinge"], np.maximum(0.0, 1.0 - m))
    np.testing.assert_allclose(values["perceptron"], np.maximum(0.0, -m))
    np.testing.assert_allclose(values["sigmoid"], 1.0 / (1.0 + np.exp(m)), rtol=1e-13)
    for name in ("hinge", "squared_hinge", "huberised"):
        assert (values[name] >= (m < 0)).all()


def test_the_plot_shows_these_numbers():
    display = sx.MarginLossDisplay.from_losses(["hinge", "logistic"]).plot()
    lines = {line.get_label(): line for line in display.ax_.get_lines()}
    assert set(lines) == {"misclassification", "hinge", "logistic"}
    np.testing.assert_array_equal(lines["hinge"].get_ydata(), display.values["hinge"])
    again = sx.MarginLossDisplay.from_losses().plot(display.ax_)
    assert again.figure_ is display.figure_


def test_an_unknown_loss_is_named():
    with pytest.raises(ValueError, match="'cubic' is not a loss; the losses are logistic"):
        sx.MarginLossDisplay.from_losses(["cubic"])
