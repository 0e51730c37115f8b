"""Hyperplanes and the other shapes of decision boundaries."""

from separatrix.geometry.boundary import Hyperplane, Quadric, Surface

__all__ = ["Hyperplane", "Quadric", "Surface"]
