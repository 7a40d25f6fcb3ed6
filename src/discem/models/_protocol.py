"""What an engine asks of a model; each model registers its own answer."""

from __future__ import annotations

from .._compile import generic


@generic
def n_classes(model):
    """Number of classes K."""


@generic
def scores(model, rows, i, a, room):
    """Write ``a[k] = ln p(y=k, x_i)`` for every class k, missing cells summed out."""


@generic
def update(model, rows, i, r, decay, pull, floor, projection, room):
    """Move the statistics: mu <- mu + sum_k r_k E[s(k, z, x_i)] - decay mu + pull (alpha - nu mu).

    The projection keeps mu in its domain. Returns how many factors had their step shortened.
    """


@generic
def remember(model, weight):
    """Let the current statistics enter their running average with `weight`."""
