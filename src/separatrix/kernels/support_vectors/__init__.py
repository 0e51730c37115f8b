"""Compiled inner loops of support vector machines, one subject per file."""
