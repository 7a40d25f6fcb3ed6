"""The Bernoulli family: flags, which are levels of which there are never more than two."""

from __future__ import annotations

from ._family import register
from .categorical import CategoricalFamily


class BernoulliFamily(CategoricalFamily):
    """Flags, 0 or 1."""

    name = "bernoulli"
    levels = 2


BERNOULLI = register(BernoulliFamily())
