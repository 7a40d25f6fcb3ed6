"""Rows grouped by their observed cells: results that only depend on these are shared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import beside, clipped, here, namespace_of, segment_sum

_AT_ONCE = 1 << 22  # numbers of inverses to keep at a time


class Slab(NamedTuple):
    """Some of the patterns, and their groups of rows."""

    patterns: slice
    groups: slice
    own: Any  # (groups,) the pattern of each group


class Grouped(NamedTuple):
    """A batch of rows in groups of equal size, each of rows with the same observed cells.

    A pattern with many rows has several groups. The last places of a group may be empty.
    """

    cells: Any  # (G, size, d); zero for a missing cell, and in places without a row
    there: Any  # (P, d) 1 for an observed cell of the pattern, 0 for a missing one
    first: np.ndarray  # (P + 1,) the first group of each pattern
    place: Any  # (n,) the place of each row, among all G * size places
    row: Any  # (G * size,) the row of each place; n where there is none
    base: Any  # (n,) ln h(x), the same for all components; None is 0

    @property
    def pattern(self) -> Any:
        """Return the pattern of each group, (G,)."""
        sizes = np.diff(self.first)
        return beside(np.repeat(np.arange(len(sizes)), sizes), self.cells)

    def slabs(self, size: int) -> list[Slab]:
        """Return some patterns at a time, for which `size` numbers per group fit into memory."""
        most, n_patterns, found, start = (
            max(_AT_ONCE // max(size, 1), 1),
            len(self.first) - 1,
            [],
            0,
        )
        while start < n_patterns:
            end = int(np.searchsorted(self.first, self.first[start] + most, side="right")) - 1
            end = max(end, start + 1)
            own = np.repeat(np.arange(end - start), np.diff(self.first[start : end + 1]))
            groups = slice(int(self.first[start]), int(self.first[end]))
            found.append(Slab(slice(start, end), groups, beside(own, self.cells)))
            start = end
        return found

    def by_place(self, numbers: Any) -> Any:
        """Arrange numbers of rows, (n, K), by place, (K, G, size); zero without a row."""
        xp, K = namespace_of(numbers), numbers.shape[1]
        nothing = xp.zeros((K, 1), dtype=numbers.dtype, device=numbers.device)
        padded = xp.concat([numbers.T, nothing], axis=1)
        return xp.reshape(xp.take(padded, self.row, axis=1), (K, *self.cells.shape[:2]))

    def by_row(self, numbers: Any) -> Any:
        """Arrange numbers of places, (K, G, size), by row, (n, K)."""
        xp, K = namespace_of(numbers), numbers.shape[0]
        return xp.take(xp.reshape(numbers, (K, self.row.shape[0])), self.place, axis=1).T

    def by_pattern(self, numbers: Any, slab: Slab) -> Any:
        """Sum numbers of the groups of a slab, on the first axis, by pattern."""
        if slab.groups.stop - slab.groups.start == slab.patterns.stop - slab.patterns.start:
            return numbers
        first = self.first[slab.patterns.start : slab.patterns.stop + 1] - slab.groups.start
        return segment_sum(numbers, first)


def group(values: Any, shift: Any, scale: Any, farthest: float, base: Any = None) -> Grouped:
    """Group the rows of a table in units of its columns; columns without a scale are left out."""
    xp = namespace_of(shift)
    missing = namespace_of(values).isnan(values)
    there, first, place, row = _arrange(here(missing))
    varies = xp.isfinite(scale)
    factor = xp.where(varies, 1.0 / scale, xp.zeros_like(scale))
    units = (beside(values, shift) - shift) * factor
    units = clipped(units, -farthest, farthest)
    units = xp.where(xp.isnan(units), xp.zeros_like(units), units)
    units = xp.concat([units, xp.zeros_like(shift)[None, :]], axis=0)
    place, row = beside(place, shift), beside(row, shift)
    n_groups = int(first[-1])
    cells = xp.take(units, row, axis=0)
    cells = xp.reshape(cells, (n_groups, row.shape[0] // n_groups, values.shape[1]))
    there = beside(there.astype(np.float64), shift) * xp.astype(varies, shift.dtype)
    base = None if base is None else beside(base, shift)
    return Grouped(cells, there, first, place, row, base)


def _arrange(missing: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the cells and first group of each pattern, the place of each row, and the inverse."""
    n = len(missing)
    if not missing.any():
        there = np.ones((1, missing.shape[1]), dtype=bool)
        return there, np.array([0, 1]), np.arange(n), np.arange(n)
    packed = np.ascontiguousarray(np.packbits(missing, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, example, code, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    size = -(-n // len(counts))
    first = np.concatenate([[0], np.cumsum(-(-counts // size))])
    order = np.argsort(code, kind="stable")
    rank = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
    place, row = np.empty(n, dtype=np.int64), np.full(int(first[-1]) * size, n)
    place[order] = first[code[order]] * size + rank
    row[place] = np.arange(n)
    return ~missing[example], first, place, row
