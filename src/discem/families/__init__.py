"""Exponential families, one a file, each with the same things in the same order.

A family is one record, see `Family`, and a few compiled functions, see `_protocol`; `register` is
the only place that hears of it. `docs/add-a-family.md` writes one.
"""

from .._checks import check_array, check_number
from . import bernoulli, categorical, gaussian, lognormal, poisson, product, words
from ._protocol import (
    LEVERAGE,
    PENDING,
    POWER,
    PRODUCT,
    SHARES,
    SLOWNESS,
    ClassRoom,
    add_leverage,
    add_scores,
    add_to_average,
    gather,
    make_class_room,
    move,
    settle,
)
from ._record import FAMILIES, Accepts, Family, family_of, register
from .product import multiply

__all__ = [
    "FAMILIES",
    "LEVERAGE",
    "PENDING",
    "POWER",
    "PRODUCT",
    "SHARES",
    "SLOWNESS",
    "Accepts",
    "ClassRoom",
    "Family",
    "add_leverage",
    "add_scores",
    "add_to_average",
    "bernoulli",
    "categorical",
    "check_array",
    "check_number",
    "family_of",
    "gather",
    "gaussian",
    "lognormal",
    "make_class_room",
    "move",
    "multiply",
    "poisson",
    "product",
    "register",
    "settle",
    "words",
]
