"""The candidates of `TableClassifier`: kinds of models first, then options of the best kind."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..io.columns import Column
from ..io.frames import Table
from ..io.tables import Layout
from ..losses import Blend, resolve_loss
from ._choice import Options, Result, is_behind
from ._tables import MOST_PATTERNS, Encoded

HIDDEN = 0.8  # the default of the largest share of the cells of a row that training hides
_STRENGTHS = {0.25: 1.0, 4.0: 1.0, 0.0625: 0.25}  # of priors; where the second is best so far
_SIZES = {8: 3, 16: 8, 32: 16}  # of a class, beside 3 and 1; where so many are best so far
_MEMBERS = 2  # rows that a component should have, to be tried at all
_MANY = 100  # .. from 16 components on, and of each column where these are correlated, one
_CERTAIN = 0.01  # nats a row: nobody needs more
_HOPELESS = 2.0  # standard errors behind the best: what is like it need not be tried
_SAME = 0.9  # of the cells of a column: where more are the same it is hardly one of numbers
_FEW = 100  # the largest of them
_DEAR = 4e8  # products of a pass over correlated columns, which take too long
_COPIES = 3  # of rows in such a pass: as they are, and twice with cells hidden

DEFAULTS: Options = {
    "n_components": 3,
    "loss": "blend",
    "hide": HIDDEN,
    "missing": "ignore",
    "whole_numbers": "levels",
    "prior_strength": 1.0,
    "covariance": "diag",
}
STREAM: Options = {"n_components": 1, "loss": "ncll"}  # one pass: what is simple is learnt sooner


def loss_of(name: Any) -> Any:
    """Return the loss that the option names."""
    return resolve_loss(Blend(0.1) if name == "blend" else name)


class Readings:
    """A table as candidates read it: their options determine the columns."""

    def __init__(self, table: Table, families: Any, layout: Layout):
        self.table, self.families, self.layout = table, families, layout
        self.numbers: dict[Any, str] = {}
        self._read: dict[tuple, Encoded] = {}
        self.numbers = numbers_of(self.of(DEFAULTS), families)

    def of(self, options: Options) -> Encoded:
        """Return the rows as a candidate reads them; each reading is cached."""
        way = options["missing"] == "informative", options["whole_numbers"] == "numbers"
        if way not in self._read:
            layout = self.layout
            if any(way):
                given = self.families if isinstance(self.families, dict) else {}
                families = given | self.numbers if way[1] else self.families
                layout = Layout.learn(self.table, families, informative=way[0])
                for column in layout.columns if way[1] else []:
                    if column.name in self.numbers:
                        column.why = "whole numbers, taken as numbers"
            self._read[way] = Encoded.read(layout, self.table)
        return self._read[way]

    def with_layout(self, layout: Layout) -> Encoded:
        """Return the rows as a model with this layout reads them."""
        known = (rows for rows in self._read.values() if rows.layout == layout)
        return next(known, None) or Encoded.read(layout, self.table)

    @property
    def tells_missing(self) -> bool:
        """Return whether any cell is missing."""
        return any(column.holes for column in self.layout.columns)


def numbers_of(rows: Encoded, families: Any) -> dict[Any, str]:
    """Return families that read whole numbers with few values as numbers, unless given.

    Columns with nearly constant values are not normal, and are left out.
    """
    if isinstance(families, str) and families != "auto":
        return {}
    given = {} if isinstance(families, str) else families
    found, layout = {}, rows.layout
    for j, codes in zip(layout.codes, rows.cells.codes.T, strict=True):
        column, counts = layout.columns[j], np.bincount(codes[codes >= 0], minlength=1)
        nearly_same = counts.max() > _SAME * counts.sum()
        if _has_few_values(column) and column.name not in given and not nearly_same:
            found[column.name] = "gaussian"
    return found


def _has_few_values(column: Column) -> bool:
    """Return whether the column has few distinct whole numbers, as levels or with many zeros."""
    if column.family == "categorical":
        return column.kind == "number" and len(column.levels) > 2
    return column.family == "hurdle" and column.whole and column.span[1] <= _FEW


class Numbers(NamedTuple):
    """The numbers of a table, for models of correlated columns."""

    columns: int
    patterns: int  # of cells that are there, in a pass over the rows and copies with hidden cells

    @classmethod
    def of(cls, rows: Encoded, most: int) -> Numbers:
        """Describe the first rows, at most `most`."""
        missing = np.isnan(rows.cells.numbers[:most])
        own = len(np.unique(np.packbits(missing, axis=1), axis=0)) if missing.any() else 1
        return cls(missing.shape[1], (_COPIES - 1) * min(MOST_PATTERNS * own, len(missing)) + own)


class Sizes(NamedTuple):
    """The amount of data to learn from."""

    rows: float  # of a class, on average
    all_rows: int
    classes: int
    numbers: dict[str, Numbers]  # by what whole numbers are

    @classmethod
    def of(cls, readings: Readings, codes: np.ndarray, most: int) -> Sizes:
        """Of a table whose labelled rows have these codes; `most` are chosen on."""
        there = int(np.count_nonzero(np.bincount(codes)))
        ways = ("levels", "numbers") if readings.numbers else ("levels",)
        numbers = {
            way: Numbers.of(readings.of(DEFAULTS | {"whole_numbers": way}), most) for way in ways
        }
        return cls(len(codes) / there, min(len(codes), most), there, numbers)

    def takes(self, options: Options) -> bool:
        """Return whether there are enough rows for the components, and time for the covariance."""
        each, size = self.rows / options["n_components"], options["n_components"]
        if each < (_MEMBERS if size <= 8 else _MANY):
            return size == 1
        if options["covariance"] == "diag":
            return True
        d, patterns = self.numbers.get(options["whole_numbers"], self.numbers["levels"])
        visits = d * d * (_COPIES * self.all_rows + patterns * d)
        if options["covariance"] == "tied":  # whose inverses serve several passes
            return d > 1 and 0.1 * visits <= _DEAR
        return d > 1 and each >= 0.5 * d and size * self.classes * visits <= _DEAR


def candidates(
    sizes: Sizes, readings: Readings, fixed: Options, results: Sequence[Result]
) -> Generator[Options, Result, None]:
    """The options of candidates, except for what is `fixed`; the best so far comes back for each.

    `results` are those of all that were tried so far.
    """
    first = DEFAULTS | fixed
    if not sizes.takes(first) and "n_components" not in fixed:
        first["n_components"] = 1
    best = yield first
    seen = [first]
    for base, ways in ((first, _kinds(sizes)), (None, _variations(sizes, readings))):
        for way in ways:
            if best.mark.log_loss < _CERTAIN:
                return
            if fixed.keys() & way.keys() or _is_hopeless(way, results, best):
                continue
            options = (base or best.options) | way
            if options in seen or not sizes.takes(options):
                continue
            least = _SIZES[way["n_components"]] if way.keys() == {"n_components"} else 0
            if best.options["n_components"] < least:
                continue
            strength = None if base else way.get("prior_strength")
            if strength and best.options["prior_strength"] != _STRENGTHS[strength]:
                continue
            seen.append(options)
            best = yield options


def of_complete_rows(sizes: Sizes, fixed: Options, best: Options) -> Iterator[Options]:
    """What a model of rows without missing cells may be: it need not learn to do without some."""
    if "hide" in fixed:
        return
    seen: list[Options] = []
    for way in (
        {},
        {"covariance": "diag", "n_components": 3},
        {"covariance": "full", "n_components": 3},
    ):
        options = best | {"hide": 0.0, "loss": "ncll", "missing": "ignore"} | way | fixed
        if options not in seen and sizes.takes(options):
            seen.append(options)
            yield options


def how_many(sizes: Sizes, readings: Readings, fixed: Options) -> int:
    """Return the largest number of candidates."""
    ways = [*_kinds(sizes), *_variations(sizes, readings)]
    own = [way for way in ways if not fixed.keys() & way.keys()]
    return 1 + sum(sizes.takes(DEFAULTS | fixed | way) for way in own)


def _kinds(sizes: Sizes) -> Iterator[Options]:
    """Yield kinds of models: losses, with numbers of components."""
    for size, loss in ((1, "blend"), (3, "nll"), (1, "nll")):
        yield {"n_components": size, "loss": loss}
    for size in (3, 1):  # counting can do with weaker priors
        yield {"n_components": size, "loss": "nll", "prior_strength": 0.25}
    for wide in ({}, {"whole_numbers": "numbers"}) if "numbers" in sizes.numbers else ({},):
        for covariance in ("tied", "full"):
            for size, loss in ((1, "blend"), (3, "blend"), (1, "nll")):
                yield {"covariance": covariance, "n_components": size, "loss": loss, **wide}


def _variations(sizes: Sizes, readings: Readings) -> Iterator[Options]:
    """Yield variations of the best options."""
    if "numbers" in sizes.numbers:
        yield {"whole_numbers": "numbers"}
    for strength in _STRENGTHS:
        yield {"prior_strength": strength}
    for size in _SIZES:
        yield {"n_components": size}
    yield {"loss": "ncll"}
    if readings.tells_missing:
        # counting hides no cells, so it trusts too much in what is missing
        yield {"missing": "informative", "loss": "blend"}
        yield {"missing": "informative"}


def _is_hopeless(way: Options, results: Sequence[Result], best: Result) -> bool:
    """Return whether the tried candidates of this kind are far behind the best."""
    kind = {name: way[name] for name in ("covariance", "whole_numbers") if name in way}
    if not kind:
        return False
    alike = [each for each in results if kind.items() <= each.options.items()]
    return bool(alike) and all(is_behind(each.mark, best.mark, _HOPELESS) for each in alike)
