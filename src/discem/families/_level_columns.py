"""Columns of levels: categories, and whole numbers with few values."""

from __future__ import annotations

from ..io.column_kinds import LEVEL, ColumnKind, Found, Sample, common, register_column
from ._distributions import OfLevels

ROWS_PER_LEVEL = 10  # cells per level that whole numbers need to be levels


class CategoricalColumn(ColumnKind):
    """Text, categories, and whole numbers of few values with many cells of each.

    A level with fewer than `rare` cells has no code, because identifiers teach nothing. With fewer
    than two levels left, the column is ignored.
    """

    name = "categorical"
    slots = (LEVEL,)
    turn = 20
    takes = "levels"
    has_levels = True

    def recognise(self, sample):
        if sample.kind == "level":
            return _found(sample)
        levels = len(sample.distinct)
        if not (sample.kind == "number" and sample.has_few_values and sample.is_whole):
            return None
        if len(sample.values) < ROWS_PER_LEVEL * levels:
            return None
        left = common(sample.counts, sample.rare)
        return Found(f"whole numbers, {len(left)} levels", left)

    def levels_of(self, sample):
        return common(sample.counts, sample.rare) or sorted(sample.counts)

    def distribution(self, column, said):
        return OfLevels(said.mixed(), column.levels if column.counts_as_number else None)


def _found(sample: Sample) -> Found:
    counts = sample.counts
    levels, rare = common(counts, sample.rare), sample.rare
    if max(counts.values()) == 1 < rare:
        return Found("every value is different", ignored=True)
    if len(levels) < 2:
        return Found(f"{len(levels) or 'no'} level of {rare} rows or more", ignored=True)
    what = "text" if sample.content.is_text else "categories"
    return Found(f"{what}, {len(levels)} levels", levels)


register_column(CategoricalColumn())
