"""Objectives: what is minimised, evaluated block by block."""
