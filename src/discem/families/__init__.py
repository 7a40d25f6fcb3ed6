"""Exponential families, one a file, each with the same things in the same order.

`register` is the only place that hears of a family. `docs/add-a-family.md` writes one.
"""

from . import (
    bernoulli,
    categorical,
    gaussian,
    levels,
    lognormal,
    normal,
    planes,
    poisson,
    tied,
    words,
)
from ._family import (
    FAMILIES,
    Accepts,
    Block,
    Family,
    Statistics,
    Step,
    family_of,
    register,
)
from .product import multiply

__all__ = [
    "FAMILIES",
    "Accepts",
    "Block",
    "Family",
    "Statistics",
    "Step",
    "bernoulli",
    "categorical",
    "family_of",
    "gaussian",
    "levels",
    "lognormal",
    "multiply",
    "normal",
    "planes",
    "poisson",
    "register",
    "tied",
    "words",
]
