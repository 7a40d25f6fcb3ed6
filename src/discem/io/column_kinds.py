"""Kinds of table columns: how a kind recognises its columns, and how it reads their cells.

A kind is defined in the file of the family that reads its cells; `families/poisson.py` has the kind
of counts. After registration, `TableClassifier`, files and commands know it by its name.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..exceptions import OptionError
from .cells import Content, counted

if TYPE_CHECKING:
    from .columns import Column

FEW = 12  # the most values of a numeric column of levels
_HEAD = 1000  # cells that are enough to count the values of most columns


class Slot(NamedTuple):
    """The destination of a number of each cell: the family that reads it, and its role."""

    family: str
    role: str = "number"  # NaN is missing; for codes, -1 is missing: see below

    @property
    def is_code(self) -> bool:
        return self.role != "number"


NUMBER = Slot("gaussian")
LEVEL = Slot("categorical", "level")  # the index of the level in the column
ZERO = Slot("categorical", "zero")  # 0: the cell is 0; 1: it is not
MISSING = Slot("categorical", "missing")  # 0: the cell is there; 1: it is not


class Found(NamedTuple):
    """The result of recognising a column: the reason, and the levels that get codes."""

    why: str
    levels: list[Any] = []  # noqa: RUF012  nobody changes it
    ignored: bool = False  # the column is of this kind, but has nothing to learn from


class Sample:
    """The observed cells of a column in the first rows."""

    def __init__(self, content: Content, rare: int, where: str):
        self.content, self.kind, self.values = content, content.kind, content.values
        self.rare = rare  # levels with fewer cells get no code
        self.where = where  # the column, for errors

    @cached_property
    def distinct(self) -> np.ndarray:
        """Return the distinct values; if there are more than `FEW`, maybe only some of them."""
        return distinct(self.values)

    @property
    def has_few_values(self) -> bool:
        return len(self.distinct) <= FEW

    @cached_property
    def is_whole(self) -> bool:
        """Return whether the cells are whole numbers."""
        return bool((self.values == np.rint(self.values)).all())

    @cached_property
    def counts(self) -> dict[Any, int]:
        """Return the number of cells of each level."""
        return counted(self.content)


class ColumnKind:
    """A kind of columns. Subclass it, and `register_column` an instance.

    A column has this kind if a user names it, or if `recognise` returns a result.
    """

    name: ClassVar[str]
    slots: ClassVar[tuple[Slot, ...]] = ()  # what a cell becomes
    turn: ClassVar[int] = 0  # the order in which kinds are tried; the first match wins
    takes: ClassVar[str] = "numbers"  # for messages
    has_levels: ClassVar[bool] = False  # whether cells are levels (text or numbers)
    has_texts: ClassVar[bool] = False  # whether cells are texts that are read word by word
    grows: ClassVar[bool] = True  # whether later rows of a stream may add levels
    rounds: ClassVar[bool] = False  # whether `join` after `split` has rounding errors

    # --- which columns ----------------------------------------------------------------------------

    def recognise(self, sample: Sample) -> Found | None:
        """Return a result if the column is of this kind and no family is given, else None."""
        return None

    def levels_of(self, sample: Sample) -> list[Any]:
        """Return the levels that get codes in a column that a user assigned to this kind."""
        return []

    # --- cells ------------------------------------------------------------------------------------

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Return which numbers have no probability; NaN, a missing cell, is not one of them."""
        return np.zeros(1, dtype=bool)

    def split(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the values for the slots; NaN is a missing cell."""
        return (values,)

    def join(self, parts: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return the numbers that were split."""
        return parts[0].copy()

    def log_base(self, parts: np.ndarray) -> np.ndarray | None:
        """Return ln h(x) of the first slot, by row, (n, columns) -> (n,); None is 0.

        It includes the change of variable if `split` is one.
        """
        return None

    def within(self, column: Column, part: np.ndarray) -> np.ndarray:
        """Clip numbers drawn for a slot to the observed range of the column."""
        return column.clipped(part)

    # --- what a model says of a column ------------------------------------------------------------

    @property
    def has_distribution(self) -> bool:
        return type(self).distribution is not ColumnKind.distribution

    def distribution(self, column: Column, said: Any) -> Any:
        """Return the distribution of missing cells, see `families/_distributions.py`.

        ``said.shares`` are the shares of the components, (n, M). ``said.of(slot)`` are the
        parameters of the family of a slot in each component, as returned by its `given`.
        """
        raise OptionError(
            f"column {column.name!r}: columns of kind {self.name!r} cannot be asked for their "
            "distribution"
        )


IGNORED = "ignored"  # the kind of columns that no model reads
COLUMN_KINDS: dict[str, ColumnKind] = {}


class Ignored(ColumnKind):
    """Columns that no model reads."""

    name = IGNORED


def register_column(kind: ColumnKind) -> ColumnKind:
    """Register a kind of table columns for estimators, files and commands."""
    COLUMN_KINDS[kind.name] = kind
    return kind


def column_names() -> tuple[str, ...]:
    """Return the valid families of a column; those recognised last come first, then "ignored"."""
    kinds = sorted(COLUMN_KINDS.values(), key=lambda kind: -kind.turn)
    return (*(kind.name for kind in kinds), IGNORED)


# --- what kinds look at ---------------------------------------------------------------------------


def distinct(values: np.ndarray) -> np.ndarray:
    """Return the distinct values; if there are more than `FEW`, maybe only some of them."""
    head = np.unique(values[:_HEAD])
    return head if len(head) > FEW else np.unique(values)


def skewness(values: np.ndarray) -> float:
    """Return the third standardised moment."""
    centred = values - values.mean()
    size = np.abs(centred).max()
    if size == 0.0:
        return 0.0
    centred /= size  # so that cubes neither overflow nor underflow
    return float((centred**3).mean() / (centred**2).mean() ** 1.5)


def common(counts: dict[Any, int], rare: int) -> list[Any]:
    """Return the levels that are not rare, in order."""
    return sorted(level for level, count in counts.items() if count >= rare)
