"""Rows in, blocks out: the only room that knows storage."""

from separatrix.data.affine import Intercept, Standardised
from separatrix.data.block import Block
from separatrix.data.dense import DenseBlock
from separatrix.data.dispatch import as_source
from separatrix.data.source import Source
from separatrix.data.sparse import SparseBlock
from separatrix.data.views import Mapped

__all__ = [
    "Block",
    "DenseBlock",
    "Intercept",
    "Mapped",
    "Source",
    "SparseBlock",
    "Standardised",
    "as_source",
]
