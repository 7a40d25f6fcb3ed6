"""Exponential families, one a file, each with the same things in the same order.

Numbers (NumPy): ``statistics``, ``natural`` (theta of mu), ``mean`` (mu of theta),
``log_normalizer``. State: a NamedTuple of arrays over (feature, class), with ``collect`` (of the
data), ``start``, ``averaged``, ``with_classes``, ``penalty``. Compiled: ``joint_scores``, ``move``,
``tick``.
"""

from types import ModuleType
from typing import Any

from . import gaussian, words
from ._logs import Room, make_room
from ._protocol import LEVERAGE, SHARES, joint_scores, move, tick

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
    "family_of",
    "gaussian",
    "joint_scores",
    "make_room",
    "move",
    "tick",
    "words",
]
