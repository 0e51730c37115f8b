"""Hyperplanes and the other shapes of decision boundaries; score forms, which classifiers give by `score_form`."""

from separatrix.geometry.additive_form import Additive
from separatrix.geometry.boundary import Hyperplane, Quadric, Surface
from separatrix.geometry.score_form import KernelExpansion, Linear, Quadratic, ScoreForm

__all__ = ["Additive", "Hyperplane", "KernelExpansion", "Linear", "Quadratic", "Quadric", "ScoreForm", "Surface"]
