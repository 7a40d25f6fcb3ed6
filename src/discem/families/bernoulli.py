"""The Bernoulli family: flags, which are levels with at most two values."""

from __future__ import annotations

from ..exceptions import InputError
from ..io.cells import plain_number
from ..io.column_kinds import Found, register_column
from ._family import register
from ._level_columns import CategoricalColumn
from .categorical import CategoricalFamily


class BernoulliFamily(CategoricalFamily):
    """Flags, 0 or 1."""

    name = "bernoulli"
    levels = 2


register(BernoulliFamily())


class BernoulliColumn(CategoricalColumn):
    """Booleans, and numbers of exactly two values."""

    name = "bernoulli"
    turn = 10
    grows = False

    def recognise(self, sample):
        if sample.kind == "bool":
            return Found("booleans", [False, True])
        if sample.kind == "number" and len(sample.distinct) == 2:
            return Found("two values", [*map(plain_number, sample.distinct.tolist())])
        return None

    def levels_of(self, sample):
        if sample.counts.keys() <= {0, 1}:  # the other value may still occur
            return [False, True] if sample.kind == "bool" else [0, 1]
        levels = sorted(sample.counts)
        if len(levels) != 2:
            some = ", ".join(map(sample.content.shown, levels[:3]))
            raise InputError(
                f"{sample.where} is given as {self.name!r}, but holds {len(levels)} values, as "
                f"{some}: it takes two"
            )
        return levels


register_column(BernoulliColumn())
