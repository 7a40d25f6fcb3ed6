"""Averages of blocks whose steps change only a part of their arrays.

A change at weight W is missing from the share W / total of the average. So each step adds it to the
arrays of `past` (the lag), and scalars that act on whole arrays are summed by name.
"""

from __future__ import annotations

from typing import ClassVar

from ._family import Family


class Lazily(Family):
    """A family that keeps its averages as lags."""

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
