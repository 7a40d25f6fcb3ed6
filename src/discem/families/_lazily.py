"""Averages of blocks whose step changes a part of their arrays only: kept as what they lack.

A change at weight W is missing from the share W / total of the average. So a step adds it to the
arrays of `past`, and the scalars that act on whole arrays are summed up by their names.
"""

from __future__ import annotations

from typing import ClassVar

from ._family import Family


class Lazily(Family):
    """A family whose averages are kept so."""

    scalars: ClassVar[tuple[str, ...]]  # that act on all of an array; their sums are "lag_" of each

    def averaged_in(self, block, weight, total):
        for name in self.scalars:
            block.lazy[f"lag_{name}"] += weight * block.lazy[name]
        block.lazy["weight"] += weight
        return block

    def reweighed(self, block, factor):
        for array in block.past.values():
            array *= factor
        for name in (*(f"lag_{name}" for name in self.scalars), "weight"):
            block.lazy[name] *= factor
        return block
