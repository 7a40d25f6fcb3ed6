"""Exponential families, one a file, each with the same things in the same order.

Numbers (NumPy): ``statistics``, ``natural`` (theta of mu), ``mean`` (mu of theta),
``log_normalizer``. State: a NamedTuple of arrays over (feature, class), with ``empty``, ``start``,
``averaged``, ``with_classes``, ``penalty``, ``sample``. Compiled: ``add_scores``, ``absorb``,
``move``, ``tick``.
"""

from types import ModuleType
from typing import Any

from . import gaussian, words
from ._logs import Room, make_room, take_logs
from ._protocol import LEVERAGE, SHARES, absorb, add_scores, move, tick

FAMILIES: dict[str, ModuleType] = {"gaussian": gaussian, "words": words}
_MODULE_OF = {gaussian.Gaussian: gaussian, words.Words: words}


def family_of(block: Any) -> Any:
    """The family a state belongs to."""
    return _MODULE_OF[type(block)]


__all__ = [
    "FAMILIES",
    "LEVERAGE",
    "SHARES",
    "Room",
    "absorb",
    "add_scores",
    "family_of",
    "gaussian",
    "make_room",
    "move",
    "take_logs",
    "tick",
    "words",
]
