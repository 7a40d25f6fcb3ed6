"""The columns of a table: their kind and levels, and the conversion of cells to numbers.

The user names the kind of a column, or its first rows decide: a constant column is ignored;
otherwise the first kind that recognises the column is used. Each kind defines `recognise` in the
file of its family. `docs/tables.md` lists all rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._checks import NUMBER, demand
from .._kinds import savable
from ..exceptions import InputError
from .cells import LARGEST, WORDS_OF_KINDS, Content, as_times, counted, first, shown
from .column_kinds import (
    COLUMN_KINDS,
    FEW,
    IGNORED,
    ColumnKind,
    Found,
    Ignored,
    Sample,
    Slot,
    common,
    distinct,
)
from .level_codes import LevelCodes
from .written import Written, is_known, written

_SENTINELS = (-99.0, -999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0, 999999.0)
_ROUNDED = 1e-12  # relative error of a logarithm and back
_FAR = 3.0  # times the range of all others, and their distance from 0
_IGNORED = Ignored()
_OTHERS = 20  # other cells that are needed to decide


@savable
@dataclass
class Column:
    """A column: its kind, and the reason for it."""

    name: str | int
    family: str
    why: str
    kind: str  # of its cells: "number", "bool", "date", "duration" or "level"
    levels: list[Any]  # by their codes: texts or numbers; for bernoulli and categorical columns
    holes: bool = False  # whether cells were missing in the first rows
    span: list[Any] = field(default_factory=list)  # smallest and largest cell of the first rows
    whole: bool = False  # whether these were whole numbers, or whole days
    written: list[str] = field(default_factory=list)  # for texts: the fields of `Written`
    sentinels: list[float] = field(default_factory=list)  # numbers that mean "missing"
    dtype: list[Any] = field(default_factory=list)  # for data frames: the type, see `dtype_of`

    @classmethod
    def learn(cls, name: str | int, content: Content, family: str, rare: int) -> Column:
        """Determine a column, with the given family unless it is "auto"."""
        how = _written_in(content, family)
        content = content if how is None else how.read(content)
        sentinels = sentinels_of(content) if family == "auto" else []
        content = _without(content, sentinels)
        missing = content.missing
        if missing.all():
            return cls(name, IGNORED, "all missing", "number", [])
        seen = content.only(~missing)
        sample = Sample(seen, rare, place(name))
        if family == "auto":
            family, found = _recognised(sample)
            why, levels = found.why, found.levels
            why += f"; {how.message}" if how is not None else ""
            why += f"; {listed(sentinels)} is missing" if sentinels else ""
        else:
            given = COLUMN_KINDS[family]
            _refuse_cells(content, given, sample.where)
            why, levels = "given", given.levels_of(sample)
        kind_of_column = COLUMN_KINDS.get(family, _IGNORED)
        coded = family == IGNORED or kind_of_column.has_levels or kind_of_column.has_texts
        kind = content.kind if content.kind != "level" or coded else "number"
        span, whole = _range(seen)
        found_holes = bool(missing.any())
        how_fields = [] if how is None else [*how]
        return cls(name, family, why, kind, levels, found_holes, span, whole, how_fields, sentinels)

    def with_levels(self, counts: dict[Any, int], rare: int) -> Column:
        """Return the column with all frequent levels, given counts from elsewhere."""
        more = {level: counts.get(level, rare) for level in (*self.levels, *counts)}
        levels = common(more, rare)
        why = re.sub(r"\d+ levels$", f"{len(levels)} levels", self.why)
        return replace(self, levels=levels, why=why)

    @property
    def of_kind(self) -> ColumnKind:
        """The kind that reads its cells."""
        return COLUMN_KINDS.get(self.family, _IGNORED)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots that a cell fills."""
        return self.of_kind.slots

    @property
    def has_levels(self) -> bool:
        return self.of_kind.has_levels

    @property
    def grows(self) -> bool:
        """Whether later rows may add levels."""
        return self.of_kind.has_levels and self.of_kind.grows

    @property
    def is_text(self) -> bool:
        return self.has_texts or self._codes.is_text

    @property
    def has_texts(self) -> bool:
        """Whether its cells are read word by word, and by no family of the table."""
        return self.of_kind.has_texts

    @property
    def is_modelled(self) -> bool:
        """Whether a family of the table reads its cells; other columns have no density."""
        return bool(self.slots)

    @property
    def counts_as_number(self) -> bool:
        """Whether cells are numbers with a mean, not numbers declared as categories."""
        return self.kind == "number" and not (self.has_levels and self.why == "given")

    # --- cells ------------------------------------------------------------------------------------

    @property
    def _how(self) -> Written | None:
        """The format of its numbers or dates, if they are texts."""
        return Written(*self.written) if self.written else None

    def read(self, content: Content) -> Content:
        """Return the cells as the column defines them: parsed texts, with sentinels missing."""
        how = self._how
        if how is None and content.is_text and self.kind in ("number", "date"):
            how = written(content.levels)  # the first rows had no texts
            how = how if how is not None and how.kind == self.kind else None
        return _without(content if how is None else how.read(content), self.sentinels)

    def as_written(self, values: np.ndarray) -> np.ndarray:
        """Return cells in the format of the first rows: as texts, if they were texts."""
        how = self._how
        if how is None:
            return values
        if values.dtype.kind == "M":
            days = (values - np.datetime64(0, "us")) / np.timedelta64(1, "D")
            return how.write(np.where(np.isnat(values), np.nan, days))
        return how.write(np.array([np.nan if v is None else v for v in values], dtype=np.float64))

    def encode(self, content: Content) -> tuple[tuple[np.ndarray, ...], bool]:
        """Return the values for each slot, and whether some cells have no probability."""
        kind = self.of_kind
        if not kind.slots:
            return (), False
        strays = self._how is not None and self._how.strays(content)
        content = self.read(content)
        self._refuse_other_kinds(content)
        if kind.has_levels:
            return (self._codes.of(content),), False
        values = np.full(len(content.values), np.nan) if content.is_text else content.numbers()
        outside = kind.outside(values)
        wrong = bool(outside.any())
        return kind.split(np.where(outside, np.nan, values) if wrong else values), wrong or strays

    def texts(self, content: Content) -> list[str]:
        """Return the cells of a column of texts; a missing one is an empty text."""
        self._refuse_other_kinds(content)
        if content.kind != "level":
            return [""] * len(content.values)
        texts = [*content.levels, ""]
        return [texts[code] for code in content.values.tolist()]

    def decode(self, parts: tuple[np.ndarray, ...], n_rows: int) -> np.ndarray:
        """Return the original cells: floats, times, or objects with None for missing."""
        kind = self.of_kind
        if not kind.slots:
            return self.constant(n_rows)
        if not kind.has_levels:
            values = kind.join(parts)
            values = self._settled(values) if kind.rounds else values
        elif self.is_text or self.kind == "bool" or self._codes.is_exact:
            return np.array([*self.levels, None], dtype=object)[parts[0]]
        else:
            values = np.array([*self.levels, np.nan], dtype=np.float64)[parts[0]]
        return as_times(values, self.kind) if self.kind in ("date", "duration") else values

    @property
    def is_constant(self) -> bool:
        """Return whether all cells of the first rows were equal."""
        return bool(self.span) and self.span[0] == self.span[1]

    def constant(self, n_rows: int) -> np.ndarray:
        """Return the only cell ever seen in all rows, or missing cells if there were several."""
        only = self.span[0] if self.is_constant else np.nan
        if isinstance(only, str) or (self.kind == "bool" and self.is_constant):
            cell = only if isinstance(only, str) else bool(only)
            return np.full(n_rows, cell, dtype=object)
        values = np.full(n_rows, only, dtype=np.float64)
        return as_times(values, self.kind) if self.kind in ("date", "duration") else values

    def _settled(self, values: np.ndarray) -> np.ndarray:
        """Undo rounding of whole numbers and of the ends of the range."""
        for exact in (np.rint(values) if self.whole else values, *self.span):
            values = np.where(abs(values - exact) <= _ROUNDED * abs(exact), exact, values)
        return values

    def within(self, part: np.ndarray) -> np.ndarray:
        """Clip numbers drawn for a slot to the observed range of the column."""
        return self.of_kind.within(self, part)

    def clipped(self, values: np.ndarray) -> np.ndarray:
        """Clip numbers to the observed range; round them if cells were whole."""
        values = np.rint(values) if self.whole else values
        return np.clip(values, *self.span) if self.span else values

    def unknown(self, content: Content) -> list[Any]:
        """Return the levels of cells without a code, in order."""
        content = self.read(content)
        self._refuse_other_kinds(content)
        codes = self._codes
        if content.kind == "level" and codes.lookup(content.levels)[:-1].min(initial=0) == 0:
            return []
        new = (codes.of(content) < 0) & ~content.missing
        return sorted(counted(content.only(new))) if new.any() else []

    @cached_property
    def _codes(self) -> LevelCodes:
        return LevelCodes(self.levels)

    def _refuse_other_kinds(self, content: Content) -> None:
        """Check that the cells have the kind that the column had in the first rows."""
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

    # --- files ------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self) -> None:
        """Validate the column, which may come from any file."""
        named = isinstance(self.name, str | int) and not isinstance(self.name, bool)
        demand(named, "a column has no name")
        what, levels = place(self.name), self.levels
        known = isinstance(self.family, str) and self.family in (IGNORED, *COLUMN_KINDS)
        demand(known, f"{what} is of no known family")
        demand(isinstance(self.why, str), f"{what} has no reason")
        demand(self.kind in (*WORDS_OF_KINDS, "level"), f"{what} is of no known kind")
        demand(isinstance(self.holes, bool), f"{what} has no word on missing cells")
        demand(isinstance(levels, list), f"{what} has no levels")
        demand(isinstance(self.whole, bool), f"{what} has no word on whole numbers")
        named = isinstance(self.dtype, list) and (not self.dtype or isinstance(self.dtype[0], str))
        demand(named, f"{what} is of no type")
        self._check_span(what)
        self._check_texts(what)
        if not self.has_levels:
            demand(not levels, f"{what} has levels, and its family has none")
            coded = self.kind == "level" and self.family != IGNORED and not self.has_texts
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

    def _check_texts(self, what: str) -> None:
        """Validate the format of numbers or dates, and the sentinels."""
        known = self.written == [] or (
            isinstance(self.written, list) and len(self.written) == 2 and is_known(*self.written)
        )
        demand(known, f"{what} is written in no known way")
        numbers = isinstance(self.sentinels, list)
        numbers = numbers and all(isinstance(each, NUMBER) for each in self.sentinels)
        demand(numbers, f"{what} has sentinels that are no numbers")

    def _check_span(self, what: str) -> None:
        """Validate the range of the cells."""
        span = self.span
        demand(isinstance(span, list) and len(span) in (0, 2), f"{what} has no range")
        if span and not all(isinstance(cell, str) for cell in span):
            numbers = all(isinstance(cell, NUMBER) for cell in span)
            good = numbers and -LARGEST <= span[0] <= span[1] <= LARGEST
            demand(good, f"{what} has a range that is none")


def _written_in(content: Content, family: str) -> Written | None:
    """Return the format of numbers or dates in a text column that need not be categories."""
    kind = COLUMN_KINDS.get(family, _IGNORED)
    may = family == "auto" or not (family == IGNORED or kind.has_levels or kind.has_texts)
    if not may or content.named or not content.is_text:
        return None
    return written(content.levels)


def _without(content: Content, sentinels: list[float]) -> Content:
    """Return the cells with sentinels replaced by missing cells."""
    if not sentinels or content.kind != "number":
        return content
    gone = np.isin(content.values, sentinels)
    return (
        content._replace(values=np.where(gone, np.nan, content.values)) if gone.any() else content
    )


def sentinels_of(content: Content) -> list[float]:
    """Return numbers such as -999 that occur several times, far outside all others."""
    if content.kind != "number":
        return []
    candidates = [each for each in _SENTINELS if np.count_nonzero(content.values == each) > 1]
    if not candidates:
        return []
    others = content.values[~np.isnan(content.values) & ~np.isin(content.values, candidates)]
    if len(others) < _OTHERS:
        return []
    low, high = float(others.min()), float(others.max())
    width = max(high - low, abs(high), abs(low))
    return [v for v in candidates if max(low - v, v - high) > _FAR * width]


def listed(values: list[float]) -> str:
    return " and ".join(f"{value:g}" for value in values)


def place(name: str | int) -> str:
    """Format a column for a message."""
    return f"column {name!r}"


def seen_of(content: Content) -> tuple[dict[Any, int] | None, bool]:
    """Return the cells per level (None for numbers with many values), and if any is missing."""
    missing = content.missing
    seen, holes = content.only(~missing), bool(missing.any())
    if content.kind == "level" or len(distinct(seen.values)) <= FEW:
        return counted(seen), holes
    return None, holes


def merged_counts(name: str | int, counts: list[dict[Any, int] | None]) -> dict[Any, int] | None:
    """Merge the cells per level of all parts of a column."""
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


def _range(seen: Content) -> tuple[list[Any], bool]:
    """Return smallest and largest cell, and whether all are whole; for levels, the only one."""
    if seen.kind == "level":
        only = set(counted(seen))
        return (2 * [*only], False) if len(only) == 1 else ([], False)
    whole = bool((seen.values == np.rint(seen.values)).all())
    return [float(seen.values.min()), float(seen.values.max())], whole


def _recognised(sample: Sample) -> tuple[str, Found]:
    """Return the kind of a column, and the reason."""
    if len(sample.counts if sample.kind == "level" else sample.distinct) == 1:
        return IGNORED, Found("never varies")
    for kind in sorted(COLUMN_KINDS.values(), key=lambda kind: kind.turn):
        found = kind.recognise(sample)
        if found is not None:
            return IGNORED if found.ignored else kind.name, found
    raise InputError(f"{sample.where} is of no kind that any family takes")


def _refuse_cells(content: Content, kind: ColumnKind, where: str) -> None:
    """Check that the given kind can have the cells."""
    if kind.has_levels or (kind.has_texts and content.is_text):
        return
    but = f"{where} is given as {kind.name!r}, but holds"
    if kind.has_texts:
        row = first(~content.missing)
        raise InputError(f"{but} {content.describe(row)}: give another family, or 'auto'")
    if content.is_text:
        row = first(~content.missing)
        raise InputError(f"{but} {content.describe(row)}: give 'categorical', or leave it out")
    values = content.numbers()
    outside = kind.outside(values)
    if outside.any():
        row = first(outside)
        value = content.shown(values[row].item())
        raise InputError(f"{but} {value} in row {row}: it takes {kind.takes}")
