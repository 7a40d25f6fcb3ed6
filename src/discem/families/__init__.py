"""Exponential families, one per file, with the same methods in the same order.

Register a family with `register`, and a kind of table columns with `register_column`; nothing else
needs to know them. `docs/add-a-family.md` writes one of each.
"""

from ..io.column_kinds import COLUMN_KINDS, ColumnKind, Slot, register_column
from . import (
    bernoulli,
    categorical,
    gaussian,
    hurdle,
    levels,
    lognormal,
    normal,
    planes,
    poisson,
    tied,
    words,
)
from ._block import Accepts, Block, Schema, Statistics, Step
from ._family import FAMILIES, Family, family_of, register
from .product import multiply

__all__ = [
    "COLUMN_KINDS",
    "FAMILIES",
    "Accepts",
    "Block",
    "ColumnKind",
    "Family",
    "Schema",
    "Slot",
    "Statistics",
    "Step",
    "bernoulli",
    "categorical",
    "family_of",
    "gaussian",
    "hurdle",
    "levels",
    "lognormal",
    "multiply",
    "normal",
    "planes",
    "poisson",
    "register",
    "register_column",
    "tied",
    "words",
]
