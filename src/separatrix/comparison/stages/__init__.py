"""Stages of a comparison beside the families: words, the association of columns and classes, the learning curve."""
