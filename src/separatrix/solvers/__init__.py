"""Solvers: from an objective or a statistic to an answer with its certificate."""
