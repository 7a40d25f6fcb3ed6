"""What compiled code asks of the factors of a model; each family registers its own answer.

A row (or a batch of rows) is taken in three moves: `add_scores`; the loss, which makes weights r of
the scores; then `gather` and `settle`, or `move`, which is both for a batch of one. The scratch
memory of a family, its room, begins with the fields `numbers` and `bits` of a `ClassRoom`, which
all families of a model share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._compile import Generic, generic
from ..io.rows import copied

# Rows of `ClassRoom.numbers`; what comes before is for whoever is at work.
SHARES = 4  # p(y), which the model leaves there
LEVERAGE = 5  # how much a step would move the row's own scores, to which families add
PENDING = 6  # weights of a batch, gathered by the model
PRODUCT = 7  # what families would rather multiply: the model takes the logarithm, once for all
POWER = 8  # .. and powers of two set aside from it, as whole numbers, in bits
SLOWNESS = 9  # what families divided the last step of a class by, and the model does with them
_ROWS = 10


class ClassRoom(NamedTuple):
    """One number per class, for several purposes; also as bits."""

    numbers: np.ndarray  # (10, K)
    bits: np.ndarray  # the same memory as unsigned integers


def make_class_room(n_classes: int) -> ClassRoom:
    numbers = copied(np.zeros((_ROWS, n_classes)))
    numbers[SLOWNESS] = 1.0
    return ClassRoom(numbers, numbers.view(np.uint64))


@generic
def add_scores(block, rows, i, a, room):
    """Add ``ln p(x_i | k)`` to ``a[k]`` for every class k; a missing cell adds nothing.

    Or multiply it into row PRODUCT, whose numbers are about 1 when they come and must be when they
    go, see `_logs.set_exponents_aside`: logarithms are the cost of scoring.
    Add to row LEVERAGE the derivative of a_k by the weight r_k that `move` would apply, unless
    `add_leverage` does, or nothing where the family has no need of damping. Row SHARES holds
    p(y=k).
    """


@generic
def add_leverage(block, rows, i, r, floor, room):
    """Add to row LEVERAGE of the room, for classes that a step with weights r would move.

    For a family to which it is not a by-product of scoring: most rows of most classes teach little.
    `floor` is as for `settle`.
    """


def no_leverage(block, rows, i, r, floor, room):
    """Of a family that has no more to add."""


@generic
def gather(block, rows, i, r, room):
    """Add the statistics ``sum_k r_k s(k, x_i)`` of a row to those that wait in the room."""


@generic
def settle(block, decay, pull, floor, projection, room):
    """Take one step with what was gathered: mu <- mu + sum - decay mu + pull (alpha - nu mu).

    The projection keeps every factor in its domain (`floor` is the paper's rho / n). Row SHARES
    holds p(y=k). Nothing is left waiting. Returns how many factors had their step shortened.
    """


@generic
def move(block, rows, i, r, decay, pull, floor, projection, room):
    """Gather one row and settle, at one go."""


def gather_and_settle(block, rows, i, r, decay, pull, floor, projection, room):
    """The `move` of a family that has no faster way."""
    gather(block, rows, i, r, room)
    return settle(block, decay, pull, floor, projection, room)


@generic
def add_to_average(block, weight):
    """Let the current statistics enter their running average with `weight`."""


COMPILED: dict[str, Generic] = {
    "add_scores": add_scores,
    "add_leverage": add_leverage,
    "gather": gather,
    "settle": settle,
    "move": move,
    "add_to_average": add_to_average,
}
