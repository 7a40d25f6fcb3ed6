"""Kinds of table columns: which cells each takes, how it finds its columns, and how it reads them.

A kind stands in the file of the family that reads its cells, as `families/poisson.py` has that of
counts. To register it is enough: `TableClassifier`, files and commands then know it by its name.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..exceptions import OptionError
from .cells import Content, counted

if TYPE_CHECKING:
    from .columns import Column

FEW = 12  # values that a column of levels may have, if these are numbers
_HEAD = 1000  # cells that tell of most columns how many values they have


class Slot(NamedTuple):
    """Where a number of each cell goes: the family that reads it, and what it is to this one."""

    family: str
    role: str = "number"  # NaN is missing; of codes, where -1 is missing: see below

    @property
    def is_code(self) -> bool:
        return self.role != "number"


NUMBER = Slot("gaussian")
LEVEL = Slot("categorical", "level")  # the place among the levels of the column
ZERO = Slot("categorical", "zero")  # 0: the cell is 0; 1: it is not
MISSING = Slot("categorical", "missing")  # 0: the cell is there; 1: it is not


class Found(NamedTuple):
    """That a kind knows a column as its own, and why; levels are those that get codes."""

    why: str
    levels: list[Any] = []  # noqa: RUF012  nobody changes it
    ignored: bool = False  # it is its own, and there is nothing to learn from it


class Sample:
    """The cells of a column in the first rows, without those that are missing."""

    def __init__(self, content: Content, rare: int, where: str):
        self.content, self.kind, self.values = content, content.kind, content.values
        self.rare = rare  # a level with fewer cells gets no code
        self.where = where  # the column, in an error

    @cached_property
    def distinct(self) -> np.ndarray:
        """The distinct values, or some of them, if there are more than `FEW` for sure."""
        return distinct(self.values)

    @property
    def has_few_values(self) -> bool:
        return len(self.distinct) <= FEW

    @cached_property
    def is_whole(self) -> bool:
        """Whether the cells are whole numbers."""
        return bool((self.values == np.rint(self.values)).all())

    @cached_property
    def counts(self) -> dict[Any, int]:
        """How many cells each level has."""
        return counted(self.content)


class ColumnKind:
    """What columns of a kind hold. Subclass it, and `register_column` an instance.

    The columns of a kind are those that a user names, and those that it knows by itself, if it has
    `recognise`.
    """

    name: ClassVar[str]
    slots: ClassVar[tuple[Slot, ...]] = ()  # what a cell becomes
    turn: ClassVar[int] = 0  # in which kinds look at a column: the first that knows it has it
    takes: ClassVar[str] = "numbers"  # in words
    has_levels: ClassVar[bool] = False  # whether cells are levels, text or not
    has_texts: ClassVar[bool] = False  # whether cells are texts, each of which is read by its words
    grows: ClassVar[bool] = True  # .. and whether later rows of a stream may bring new ones
    rounds: ClassVar[bool] = False  # whether `join` of what was split is off by rounding

    # --- which columns ----------------------------------------------------------------------------

    def recognise(self, sample: Sample) -> Found | None:
        """Whether a column is of this kind if nobody says of which it is."""
        return None

    def levels_of(self, sample: Sample) -> list[Any]:
        """The levels that get codes, of a column that is said to be of this kind."""
        return []

    # --- cells ------------------------------------------------------------------------------------

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Which numbers have no probability; NaN, a missing cell, is none of them."""
        return np.zeros(1, dtype=bool)

    def split(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """What goes into the slots; NaN is a missing cell."""
        return (values,)

    def join(self, parts: tuple[np.ndarray, ...]) -> np.ndarray:
        """The numbers that were split."""
        return parts[0].copy()

    def log_base(self, parts: np.ndarray) -> np.ndarray | None:
        """Ln h(x) of what is in the first slot, by row, (n, columns) -> (n,); None is 0.

        With what a change of variable costs, if `split` is one.
        """
        return None

    def within(self, column: Column, part: np.ndarray) -> np.ndarray:
        """Numbers drawn for a slot, moved to where the cells of the column were."""
        return column.clipped(part)

    # --- what a model says of a column ------------------------------------------------------------

    @property
    def has_distribution(self) -> bool:
        return type(self).distribution is not ColumnKind.distribution

    def distribution(self, column: Column, said: Any) -> Any:
        """The distribution of cells that rows lack, see `families/_distributions.py`.

        ``said.shares`` are those of the components, (n, M), and ``said.of(slot)`` the parameters
        that the family of a slot has in each, as its `given` tells them.
        """
        raise OptionError(
            f"column {column.name!r}: columns of kind {self.name!r} cannot be asked for their "
            "distribution"
        )


IGNORED = "ignored"  # what a column is that no model looks at
COLUMN_KINDS: dict[str, ColumnKind] = {}


class Ignored(ColumnKind):
    """Columns that no model looks at."""

    name = IGNORED


def register_column(kind: ColumnKind) -> ColumnKind:
    """Make a kind of table columns known to estimators, files and commands."""
    COLUMN_KINDS[kind.name] = kind
    return kind


def column_names() -> tuple[str, ...]:
    """What a column may be said to be: what is recognised last first, then nothing at all."""
    kinds = sorted(COLUMN_KINDS.values(), key=lambda kind: -kind.turn)
    return (*(kind.name for kind in kinds), IGNORED)


# --- what kinds look at ---------------------------------------------------------------------------


def distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values, or some of them, if there are more than `FEW` for sure."""
    head = np.unique(values[:_HEAD])
    return head if len(head) > FEW else np.unique(values)


def skewness(values: np.ndarray) -> float:
    """The third standardised moment."""
    centred = values - values.mean()
    size = np.abs(centred).max()
    if size == 0.0:
        return 0.0
    centred /= size  # cubes neither overflow nor vanish
    return float((centred**3).mean() / (centred**2).mean() ** 1.5)


def common(counts: dict[Any, int], rare: int) -> list[Any]:
    """The levels that are not rare, in order."""
    return sorted(level for level, count in counts.items() if count >= rare)
