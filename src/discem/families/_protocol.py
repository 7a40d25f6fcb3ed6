"""What compiled code asks of the factors of a model; each family registers its own answer."""

from __future__ import annotations

from .._compile import generic

SHARES = 4  # the row of the room where a model leaves p(y)
LEVERAGE = 5  # and the one where a family leaves how much a step would move the row's own score


@generic
def joint_scores(block, rows, i, a, room):
    """Write ``ln p(y=k) + ln p(x_i | k)`` into ``a[k]`` for every class k.

    A missing cell adds nothing. Row SHARES of the room holds p(y=k), whose logarithm is best taken
    with the others. Row LEVERAGE gets the derivative of a_k by the weight r_k
    that `move` would apply, or 0 where the family has no need of damping.
    """


@generic
def move(block, rows, i, r, decay, pull, floor, projection, room):
    """Move the statistics: mu <- mu + sum_k r_k s(k, x_i) - decay mu + pull (alpha - nu mu).

    The projection keeps every factor in its domain (`floor` is the paper's rho / n). Row SHARES of
    the room holds p(y=k). Returns how many factors had their step shortened.
    """


@generic
def tick(block, weight):
    """Let the current statistics enter their running average with `weight`."""
