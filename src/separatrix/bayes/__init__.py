"""The Bayesian room: posteriors of the coefficients, what they predict, and how much evidence there is for a prior."""
