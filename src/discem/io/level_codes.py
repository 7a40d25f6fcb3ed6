"""The codes of levels: the index of the level of each cell, text or number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .cells import Content, is_inexact, levels_of

_CLOSE = 1e-7  # relative tolerance of levels that are not whole, for floats of 32 bits
_SPAN = 100_000  # range of whole numbers that are looked up in a table


class LevelCodes:
    """The codes of some levels, their indices; -1 is missing or unknown."""

    def __init__(self, levels: list[Any]):
        self.levels = levels
        self.is_text = bool(levels) and isinstance(levels[0], str)
        self._last: tuple[Sequence[Any], np.ndarray] | None = None

    def of(self, content: Content) -> np.ndarray:
        """Return the codes of cells."""
        if content.kind == "level":
            return self.lookup(content.levels)[content.values]
        if self.is_text:  # then all cells are missing
            return np.full(len(content.values), -1, dtype=np.int32)
        if self.is_exact:  # as floats, some would be the same
            exact = levels_of(content)
            return self.lookup(exact.levels)[exact.values]
        if self._table is not None:
            low, table = self._table
            offset = content.values - low
            offset[~((offset >= 0.0) & (offset < len(table)))] = -1.0  # the last entry: no level
            whole = offset.astype(np.int64)
            return np.where(whole == offset, table[whole], np.int32(-1))
        levels, steps, width, codes = self._ladder
        near = np.searchsorted(steps, content.values)
        same = np.abs(content.values - levels[near]) <= width[near]
        return np.where(same, codes[near], np.int32(-1))

    def lookup(self, levels: Sequence[Any]) -> np.ndarray:
        """Return the codes of levels, followed by -1, which missing cells refer to.

        The result is cached, as the parts of a large table have the same levels.
        """
        last = self._last  # one consistent pair, even with several threads
        if last is None or last[0] != levels:
            known = [self._places.get(level, -1) for level in levels]
            last = self._last = levels, np.array([*known, -1], dtype=np.int32)
        return last[1]

    @cached_property
    def is_exact(self) -> bool:
        """Return whether levels are numbers that floats could not tell apart."""
        return any(map(is_inexact, self.levels))

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {level: code for code, level in enumerate(self.levels)}

    @cached_property
    def _table(self) -> tuple[int, np.ndarray] | None:
        """Return the smallest level and a table of codes for whole numbers from there, or None."""
        low, high = min(self.levels), max(self.levels)
        if high - low > _SPAN or any(level != int(level) for level in self.levels):
            return None
        table = np.full(int(high - low) + 2, -1, dtype=np.int32)
        table[[int(level - low) for level in self.levels]] = np.arange(len(self.levels))
        return int(low), table

    @cached_property
    def _ladder(self) -> tuple[np.ndarray, ...]:
        """Return numeric levels in order, with midpoints, widths and codes."""
        values = np.array(self.levels, dtype=np.float64)
        order = np.argsort(values)
        values = values[order]
        width = np.where(values == np.rint(values), 0.0, _CLOSE * np.abs(values))
        return values, values[:-1] / 2 + values[1:] / 2, width, order.astype(np.int32)
