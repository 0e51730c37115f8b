"""Compiled loops of Bayesian models: expectations under a Gaussian, Pólya–Gamma draws."""
