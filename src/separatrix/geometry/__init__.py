"""Hyperplanes and the other shapes of decision boundaries; score forms."""

from separatrix.geometry.boundary import Hyperplane, Quadric, Surface
from separatrix.geometry.score_form import KernelExpansion, Linear, Quadratic, ScoreForm

__all__ = ["Hyperplane", "KernelExpansion", "Linear", "Quadratic", "Quadric", "ScoreForm", "Surface"]
