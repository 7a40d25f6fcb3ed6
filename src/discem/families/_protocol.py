"""What compiled code asks of the factors of a model; each family registers its own answer."""

from __future__ import annotations

from .._compile import generic


@generic
def add_scores(block, rows, i, a, room):
    """Add ``ln p(x_i | k)`` to ``a[k]`` for every class k; a missing cell adds nothing."""


@generic
def absorb(block, rows, i, r):
    """Add ``r_k >= 0`` times the statistics of row i to class k of a block made by `empty`."""


@generic
def move(block, rows, i, r, decay, pull, floor, projection):
    """Move the statistics: mu <- mu + sum_k r_k s(k, x_i) - decay mu + pull (alpha - nu mu).

    The projection keeps every factor in its domain (`floor` is the paper's rho / n). Returns how
    many factors had their step shortened.
    """


@generic
def tick(block, weight):
    """Let the current statistics enter their running average with `weight`."""
