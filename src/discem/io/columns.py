"""What a column of a table is: its family, its levels, and how its cells become numbers.

The family is chosen by the first rows of a table, unless it is given. The first rule that fits
counts; "seen" cells are those that are not missing.

| cells | family |
|---|---|
| all missing | ignored |
| all seen cells are equal | ignored |
| booleans | bernoulli |
| text, categories (also those of numbers), whole numbers beyond 2**53 | categorical, see below |
| dates (as days since 1970-01-01 UTC), durations (as days) | gaussian |
| numbers of exactly two values | bernoulli |
| whole numbers, at most `FEW` values, on average `ROWS_PER_LEVEL` seen cells or more of each | \
categorical |
| whole numbers, the least is 0, more than `FEW` values, variance between half the mean and twice \
the mean | poisson |
| at least `ZEROS` of the seen cells are 0, all others positive; of the others there are at least \
`POSITIVES`, of more than 3 values; and their skewness is above `SKEWED`, or more than half of the \
seen cells are 0 | hurdle |
| all positive, skewness above `SKEWED`, and that of their logarithms is closer to 0 | lognormal |
| other numbers | gaussian |

A level of a categorical column that has fewer than `rare` cells has no code: identifiers would
teach nothing. If less than two levels are left, the column is ignored. Columns of text are refused
if they hold documents: `ROWS_OF_TEXT` cells or more, more different texts than half of the cells,
and more than `WORDS` words in a text, on average.

A hurdle column has two parts: whether the cell is positive, and if it is, how large.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np

from .._checks import NUMBER, demand
from .._kinds import savable
from ..exceptions import InputError
from .cells import (
    LARGEST,
    WORDS_OF_KINDS,
    Content,
    as_times,
    first,
    is_inexact,
    levels_of,
    plain_number,
    shown,
)

FEW = 12
ROWS_PER_LEVEL = 10
ZEROS, POSITIVES = 0.2, 20
SKEWED = 1.0
ROWS_OF_TEXT, WORDS = 20, 5
SUPPORT = {
    "lognormal": "numbers above 0",
    "hurdle": "0 and numbers above",
    "poisson": "whole numbers from 0",
}
CODED = ("bernoulli", "categorical")
FAMILIES = ("gaussian", *SUPPORT, *CODED, "ignored")
Parts = dict[str, np.ndarray]  # of a column, by the names of `Cells`
_CLOSE = 1e-7  # of a level that is not whole: as a float of 32 bits it is still the same
_LOWEST_LOG = log(np.finfo(np.float64).tiny)  # below, a number drawn would be 0
_LARGEST_LOG = log(LARGEST)
_SPAN = 100_000  # of whole numbers that are looked up in a table
_HEAD = 1000  # cells that tell of most columns how many values they have


@savable
@dataclass
class Column:
    """What a column is, and why."""

    name: str | int
    family: str
    why: str
    kind: str  # of its cells: "number", "bool", "date", "duration" or "level"
    levels: list[Any]  # by their codes: texts, or numbers; of bernoulli and categorical columns
    holes: bool = False  # whether cells were missing in the first rows
    span: list[Any] = field(default_factory=list)  # least and largest cell of the first rows
    whole: bool = False  # whether these were whole numbers, or whole days

    @classmethod
    def learn(cls, name: str | int, content: Content, family: str, rare: int) -> Column:
        """Decide what a column is, of the family that is given if it is not "auto"."""
        missing = content.missing
        if missing.all():
            return cls(name, "ignored", "all missing", "number", [])
        seen = content.only(~missing)
        if family == "auto":
            family, why, levels = _choose(seen, rare, place(name))
        else:
            _refuse_cells(content, family, place(name))
            why, levels = "given", _given_levels(seen, family, rare, place(name))
        coded = content.kind == "level" and family in (*CODED, "ignored")
        kind = content.kind if content.kind != "level" or coded else "number"
        span, whole = _range(seen)
        return cls(name, family, why, kind, levels, bool(missing.any()), span, whole)

    def with_levels(self, counted: dict[Any, int], rare: int) -> Column:
        """The same column, with the levels that are not rare of those counted elsewhere, too."""
        more = {level: counted.get(level, rare) for level in (*self.levels, *counted)}
        levels = _common(more, rare)
        why = re.sub(r"\d+ levels$", f"{len(levels)} levels", self.why)
        return replace(self, levels=levels, why=why)

    @property
    def is_text(self) -> bool:
        return bool(self.levels) and isinstance(self.levels[0], str)

    @property
    def counts_as_number(self) -> bool:
        """Whether cells are numbers and nobody said that they are categories: they have a mean."""
        return self.kind == "number" and not (self.family in CODED and self.why == "given")

    # --- cells ------------------------------------------------------------------------------------

    def encode(self, content: Content) -> tuple[Parts, bool]:
        """The cells as numbers, and whether some are outside of the family."""
        if self.family == "ignored":
            return {}, False
        self._refuse_other_kinds(content)
        if self.family in CODED:
            return {"codes": self._codes(content)}, False
        values = np.full(len(content.values), np.nan) if content.is_text else content.numbers()
        outside = _outside(self.family, values)
        wrong = bool(outside.any())
        if wrong:
            values = np.where(outside, np.nan, values)
        if self.family == "gaussian":
            return {"numbers": values}, False
        if self.family == "poisson":
            return {"counts": values}, wrong
        if self.family == "lognormal":
            return {"numbers": np.log(values)}, wrong
        codes = np.where(np.isnan(values), -1, values > 0.0)
        return {"numbers": np.log(np.where(codes == 1, values, np.nan)), "codes": codes}, wrong

    def decode(self, parts: Parts, n_rows: int) -> np.ndarray:
        """The cells as they were: floats, times, or objects of which None is missing."""
        if self.family == "ignored":
            return np.full(n_rows, np.nan)
        if self.is_text or self.kind == "bool" or any(map(is_inexact, self.levels)):
            return np.array([*self.levels, None], dtype=object)[parts["codes"]]
        if self.family in CODED:
            values = np.array([*self.levels, np.nan], dtype=np.float64)[parts["codes"]]
        elif self.family == "poisson":
            values = parts["counts"].copy()
        elif self.family == "gaussian":
            values = parts["numbers"].copy()
        else:
            values = np.exp(np.clip(parts["numbers"], _LOWEST_LOG, _LARGEST_LOG))
        if self.family == "hurdle":
            values[parts["codes"] < 0] = np.nan
            values[parts["codes"] == 0] = 0.0
        return as_times(values, self.kind) if self.kind in ("date", "duration") else values

    def within(self, part: np.ndarray) -> np.ndarray:
        """Numbers, as parts, moved into the range that was seen; whole where cells were."""
        logarithm = self.family in ("lognormal", "hurdle")
        values = np.exp(np.clip(part, _LOWEST_LOG, _LARGEST_LOG)) if logarithm else part
        values = np.rint(values) if self.whole else values
        if self.span:
            values = np.clip(values, *self.span)
        if not logarithm:
            return values
        return np.log(np.maximum(values, 1.0 if self.whole else np.finfo(np.float64).tiny))

    def unknown(self, content: Content) -> list[Any]:
        """The levels of cells that have no code as yet, in order."""
        self._refuse_other_kinds(content)
        if content.kind == "level" and self._lookup(content.levels)[:-1].min(initial=0) == 0:
            return []
        new = (self._codes(content) < 0) & ~content.missing
        return sorted(_counted(content.only(new))) if new.any() else []

    def _refuse_other_kinds(self, content: Content) -> None:
        """See that the cells are of the kind that the column had in the first rows."""
        times = ("date", "duration")
        if self.is_text:
            alike = content.is_text
        elif self.kind in times:
            alike = content.kind == self.kind
        else:
            alike = not content.is_text and content.kind not in times
        if alike:
            return
        seen = ~content.missing
        if seen.any():
            had = "text" if self.is_text else WORDS_OF_KINDS.get(self.kind, "numbers")
            raise InputError(
                f"{place(self.name)} held {had} when the model was fitted, and now it holds "
                f"{content.describe(first(seen))}"
            )

    def _codes(self, content: Content) -> np.ndarray:
        """The codes of cells; -1 is missing, or a level that is not known."""
        if content.kind == "level":
            return self._lookup(content.levels)[content.values]
        if self.is_text:  # then all cells are missing
            return np.full(len(content.values), -1, dtype=np.int32)
        if any(map(is_inexact, self.levels)):  # as floats, some would be the same
            exact = levels_of(content)
            return self._lookup(exact.levels)[exact.values]
        if self._table is not None:
            low, table = self._table
            offset = content.values - low
            offset[~((offset >= 0.0) & (offset < len(table)))] = -1.0  # the last: no level
            whole = offset.astype(np.int64)
            return np.where(whole == offset, table[whole], np.int32(-1))
        levels, steps, width, codes = self._ladder
        near = np.searchsorted(steps, content.values)
        same = np.abs(content.values - levels[near]) <= width[near]
        return np.where(same, codes[near], np.int32(-1))

    def _lookup(self, levels: Sequence[Any]) -> np.ndarray:
        """The codes of levels, and -1 at the end, which is where that of missing cells points.

        It is kept, for the parts of a large table have the same levels.
        """
        last: tuple[Sequence[Any], np.ndarray] | None = self.__dict__.get("_last")
        if last is None or last[0] != levels:
            known = [self._places.get(level, -1) for level in levels]
            last = self.__dict__["_last"] = levels, np.array([*known, -1], dtype=np.int32)
        return last[1]

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The codes of the levels."""
        return {level: code for code, level in enumerate(self.levels)}

    @cached_property
    def _table(self) -> tuple[int, np.ndarray] | None:
        """The least level and the codes of all whole numbers from there, if levels are such."""
        low, high = min(self.levels), max(self.levels)
        if high - low > _SPAN or any(level != int(level) for level in self.levels):
            return None
        table = np.full(int(high - low) + 2, -1, dtype=np.int32)
        table[[int(level - low) for level in self.levels]] = np.arange(len(self.levels))
        return int(low), table

    @cached_property
    def _ladder(self) -> tuple[np.ndarray, ...]:
        """Levels that are numbers in order, what is between them, their widths and codes."""
        values = np.array(self.levels, dtype=np.float64)
        order = np.argsort(values)
        values = values[order]
        width = np.where(values == np.rint(values), 0.0, _CLOSE * np.abs(values))
        return values, values[:-1] / 2 + values[1:] / 2, width, order.astype(np.int32)

    # --- files ------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self) -> None:
        """Refuse what cannot have been learnt; it may come from anywhere."""
        named = isinstance(self.name, str | int) and not isinstance(self.name, bool)
        demand(named, "a column has no name")
        what, levels = place(self.name), self.levels
        demand(self.family in FAMILIES, f"{what} is of no known family")
        demand(isinstance(self.why, str), f"{what} has no reason")
        demand(self.kind in (*WORDS_OF_KINDS, "level"), f"{what} is of no known kind")
        demand(isinstance(self.holes, bool), f"{what} has no word on missing cells")
        demand(isinstance(levels, list), f"{what} has no levels")
        demand(isinstance(self.whole, bool), f"{what} has no word on whole numbers")
        self._check_span(what)
        if self.family not in CODED:
            demand(not levels, f"{what} has levels, and its family has none")
            coded = self.kind == "level" and self.family != "ignored"
            demand(not coded, f"{what} has cells that its family cannot have")
            return
        text = all(isinstance(level, str) for level in levels)
        numbers = all(isinstance(level, NUMBER) for level in levels)
        if numbers:
            demand(all(abs(level) <= LARGEST for level in levels), f"{what} has endless levels")
        demand(levels and (text or numbers), f"{what} has levels that are none")
        demand(numbers or self.kind == "level", f"{what} has levels of another kind")
        demand(len(set(levels)) == len(levels), f"{what} has a level twice")
        two = self.family != "bernoulli" or len(levels) == 2
        demand(two, f"{what} has {len(levels)} levels, not two")

    def _check_span(self, what: str) -> None:
        """Refuse a range that cells cannot have had."""
        span = self.span
        demand(isinstance(span, list) and len(span) in (0, 2), f"{what} has no range")
        if span and not all(isinstance(cell, str) for cell in span):
            numbers = all(isinstance(cell, NUMBER) for cell in span)
            good = numbers and -LARGEST <= span[0] <= span[1] <= LARGEST
            demand(good, f"{what} has a range that is none")


def place(name: str | int) -> str:
    """A column in a message."""
    return f"column {name!r}"


def seen_of(content: Content) -> tuple[dict[Any, int] | None, bool]:
    """The cells of each level, None where numbers have more than a few; and whether some miss."""
    missing = content.missing
    seen, holes = content.only(~missing), bool(missing.any())
    if content.kind == "level" or len(_distinct(seen.values)) <= FEW:
        return _counted(seen), holes
    return None, holes


def merged_counts(name: str | int, counts: list[dict[Any, int] | None]) -> dict[Any, int] | None:
    """The cells of each level in all parts of a column."""
    total: dict[Any, int] = {}
    for each in counts:
        if each is None:
            return None
        for level, count in each.items():
            total[level] = total.get(level, 0) + count
    if len({isinstance(level, str) for level in total}) > 1:
        text = next(level for level in total if isinstance(level, str))
        other = next(level for level in total if not isinstance(level, str))
        raise InputError(
            f"{place(name)} holds text in some partitions, as {shown(text)}, and other cells in "
            f"others, as {shown(other)}"
        )
    return total


def _counted(seen: Content) -> dict[Any, int]:
    """How many cells each level has, all of them being seen."""
    if seen.kind != "level":
        values, counts = np.unique(seen.values, return_counts=True)
        levels = [*map(bool if seen.kind == "bool" else plain_number, values.tolist())]
        return dict(zip(levels, counts.tolist(), strict=True))
    counts = np.bincount(seen.values, minlength=len(seen.levels))
    counted: dict[Any, int] = {}
    for code in np.flatnonzero(counts).tolist():  # two codes may stand for one level
        level = seen.levels[code]
        counted[level] = counted.get(level, 0) + int(counts[code])
    return counted


def _range(seen: Content) -> tuple[list[Any], bool]:
    """The least and the largest cell, and whether all are whole; of levels, the only one."""
    if seen.kind == "level":
        only = set(_counted(seen))
        return (2 * [*only], False) if len(only) == 1 else ([], False)
    whole = bool((seen.values == np.rint(seen.values)).all())
    return [float(seen.values.min()), float(seen.values.max())], whole


def _common(counted: dict[Any, int], rare: int) -> list[Any]:
    """The levels that are not rare, in order."""
    return sorted(level for level, count in counted.items() if count >= rare)


# --- families that are chosen ---------------------------------------------------------------------

Choice = tuple[str, str, list[Any]]  # a family, why, and the levels that have codes


def _choose(seen: Content, rare: int, where: str) -> Choice:
    """The family of a column by the rules of this module."""
    if seen.kind == "level":
        return _choose_for_levels(seen, rare, where)
    distinct = _distinct(seen.values)
    if len(distinct) == 1:
        return "ignored", "never varies", []
    if seen.kind == "bool":
        return "bernoulli", "booleans", [False, True]
    if seen.kind == "date":
        return "gaussian", "dates, as days since 1970-01-01", []
    if seen.kind == "duration":
        return "gaussian", "durations, as days", []
    if len(distinct) == 2:
        return "bernoulli", "two values", [*map(plain_number, distinct.tolist())]
    return _choose_for_numbers(seen, len(distinct), rare)


def _choose_for_levels(seen: Content, rare: int, where: str) -> Choice:
    counted = _counted(seen)
    if seen.is_text and _are_documents([*counted], len(seen.values)):
        raise InputError(
            f"{where} holds text, as {shown(next(iter(counted)))}: "
            "TextClassifier reads text, or leave the column out"
        )
    levels = _common(counted, rare)
    if len(counted) == 1:
        return "ignored", "never varies", []
    if max(counted.values()) == 1 < rare:
        return "ignored", "every value is different", []
    if len(levels) < 2:
        return "ignored", f"{len(levels) or 'no'} level of {rare} rows or more", []
    return (
        "categorical",
        f"{'text' if seen.is_text else 'categories'}, {len(levels)} levels",
        levels,
    )


def _choose_for_numbers(seen: Content, n_distinct: int, rare: int) -> Choice:
    values = seen.values
    whole = bool((values == np.rint(values)).all())
    few = n_distinct <= FEW
    if whole and few and len(values) >= ROWS_PER_LEVEL * n_distinct:
        levels = _common(_counted(seen), rare)
        return "categorical", f"whole numbers, {len(levels)} levels", levels
    low, mean = values.min(), values.mean()
    if whole and not few and low == 0 and mean / 2 <= values.var() <= mean * 2:
        return "poisson", "counts", []
    if low == 0 and _has_spike(values):
        return "hurdle", "zero or positive", []
    if low > 0:
        skewness = _skewness(values)
        if skewness > SKEWED and abs(_skewness(np.log(values))) < skewness:
            return "lognormal", "positive and skewed", []
    return "gaussian", "numbers", []


def _distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values, or some of them, if there are more than `FEW` for sure."""
    head = np.unique(values[:_HEAD])
    return head if len(head) > FEW else np.unique(values)


def _has_spike(values: np.ndarray) -> bool:
    """Whether many of numbers >= 0 are 0, and the others are as a logarithm would have them."""
    positive = values[values > 0]
    zeros = 1.0 - len(positive) / len(values)
    if zeros < ZEROS or len(positive) < POSITIVES or len(_distinct(positive)) <= 3:
        return False
    return zeros > 0.5 or _skewness(positive) > SKEWED


def _skewness(values: np.ndarray) -> float:
    centred = values - values.mean()
    size = np.abs(centred).max()
    if size == 0.0:
        return 0.0
    centred /= size  # cubes neither overflow nor vanish
    return float((centred**3).mean() / (centred**2).mean() ** 1.5)


def _are_documents(texts: list[str], n_cells: int) -> bool:
    if n_cells < ROWS_OF_TEXT or 2 * len(texts) <= n_cells:
        return False
    return sum(len(text.split()) for text in texts) > WORDS * len(texts)


# --- families that are given ----------------------------------------------------------------------


def _refuse_cells(content: Content, family: str, where: str) -> None:
    """See that a family that was given can have the cells."""
    if family in CODED:
        return
    but = f"{where} is given as {family!r}, but holds"
    if content.is_text:
        row = first(~content.missing)
        raise InputError(f"{but} {content.describe(row)}: give 'categorical', or leave it out")
    values = content.numbers()
    outside = _outside(family, values)
    if outside.any():
        row = first(outside)
        value = content.shown(values[row].item())
        raise InputError(f"{but} {value} in row {row}: it takes {SUPPORT[family]}")


def _given_levels(seen: Content, family: str, rare: int, where: str) -> list[Any]:
    """The levels of a column whose family was given."""
    if family not in CODED:
        return []
    counted = _counted(seen)
    if family == "categorical":
        return _common(counted, rare) or sorted(counted)
    if counted.keys() <= {0, 1}:  # one of them may be still to come
        return [False, True] if seen.kind == "bool" else [0, 1]
    levels = sorted(counted)
    if len(levels) != 2:
        some = ", ".join(map(seen.shown, levels[:3]))
        raise InputError(
            f"{where} is given as {family!r}, but holds {len(levels)} values, as {some}: "
            "it takes two"
        )
    return levels


def _outside(family: str, values: np.ndarray) -> np.ndarray:
    """Which cells a family gives no probability to."""
    match family:
        case "lognormal":
            return values <= 0.0
        case "hurdle":
            return values < 0.0
        case "poisson":
            return (values < 0.0) | (np.abs(values - np.rint(values)) > 0.0)
    return np.zeros(1, dtype=bool)
