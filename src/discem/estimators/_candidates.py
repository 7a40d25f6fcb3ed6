"""What `TableClassifier` tries: kinds of models, one after the other, then options of the best."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..io.frames import Table
from ..io.tables import Layout
from ..losses import NLL, Blend, resolve_loss
from ._choice import Options, Result
from ._tables import Encoded

HIDDEN = 0.8  # the largest share of a row's cells that training hides by default
_STRENGTHS = (0.25, 4.0)  # of priors, beside 1
_SIZES = {8: 3, 16: 8, 32: 16}  # of a class, beside 3 and 1; where so many are best so far
_MEMBERS = 2  # rows that a component should have, to be tried at all
_MANY = 100  # .. from 16 components on, and of each column where these are correlated, one
_CERTAIN = 0.01  # nats a row: nobody needs more
_HOPELESS = 1.0  # standard errors behind the best: what is like it need not be tried
_DEAR = 3e8  # products of a pass over correlated columns, which take too long
_COPIES, _PATTERNS = 3, 300  # of rows, and of cells that are hidden, in such a pass

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
    """The loss of an option."""
    return resolve_loss(Blend(0.1) if name == "blend" else name)


class Readings:
    """A table as candidates read it: what a column is depends on their options."""

    def __init__(self, table: Table, families: Any, layout: Layout):
        self.table, self.families, self.layout = table, families, layout
        self.numbers = numbers_of(layout, families)
        self._read: dict[tuple, Encoded] = {}

    def of(self, options: Options) -> Encoded:
        """The rows as a candidate reads them; each way is taken once."""
        way = options["missing"] == "informative", options["whole_numbers"] == "numbers"
        if way not in self._read:
            layout = self.layout
            if any(way):
                given = self.families if isinstance(self.families, dict) else {}
                families = given | self.numbers if way[1] else self.families
                layout = Layout.learn(self.table, families, informative=way[0])
            self._read[way] = Encoded.read(layout, self.table)
        return self._read[way]

    def with_layout(self, layout: Layout) -> Encoded:
        """The rows as a model of this layout reads them."""
        known = (rows for rows in self._read.values() if rows.layout == layout)
        return next(known, None) or Encoded.read(layout, self.table)

    @property
    def tells_missing(self) -> bool:
        """Whether any cell is missing."""
        return any(column.holes for column in self.layout.columns)


def numbers_of(layout: Layout, families: Any) -> dict[Any, str]:
    """Families that make numbers of whole numbers with few values, where none is given."""
    if isinstance(families, str) and families != "auto":
        return {}
    return {
        column.name: "gaussian"
        for column in layout.columns
        if column.family == "categorical" and column.kind == "number" and len(column.levels) > 2
        if isinstance(families, str) or column.name not in families
    }


class Sizes(NamedTuple):
    """How much there is to learn from."""

    rows: float  # of a class, on average
    all_rows: int
    classes: int
    numbers: int  # columns of numbers
    whole_numbers: int  # that may be numbers or levels

    @classmethod
    def of(cls, readings: Readings, codes: np.ndarray, most: int) -> Sizes:
        """Of a table whose labelled rows have these codes; `most` are chosen on."""
        counts = np.bincount(codes)
        layout, there = readings.layout, int(np.count_nonzero(counts))
        numbers, whole = len(layout.numbers), len(readings.numbers)
        return cls(len(codes) / there, min(len(codes), most), there, numbers, whole)

    def takes(self, options: Options) -> bool:
        """Whether there are enough rows for so many components, and time for the covariance."""
        each, size = self.rows / options["n_components"], options["n_components"]
        if each < (_MEMBERS if size <= 8 else _MANY):
            return size == 1
        if options["covariance"] == "diag":
            return True
        whole = self.whole_numbers if options["whole_numbers"] == "numbers" else 0
        d = self.numbers + whole
        if d < 2:
            return False
        if options["covariance"] == "tied":
            return True
        visits = size * self.classes * d * d * (_COPIES * self.all_rows + _PATTERNS * d)
        return each >= 0.5 * d and visits <= _DEAR


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
    for ways in (_kinds(sizes), _variations(readings)):
        for way in ways:
            if best.mark.log_loss < _CERTAIN:
                return
            if fixed.keys() & way.keys() or _is_hopeless(way, results, best):
                continue
            base = first if "covariance" in way or "loss" in way else best.options
            options = base | way
            generative = isinstance(loss_of(options["loss"]), NLL)
            if options in seen or not sizes.takes(options) or (generative and "hide" in way):
                continue
            least = _SIZES[way["n_components"]] if way.keys() == {"n_components"} else 0
            if best.options["n_components"] < least:
                continue
            seen.append(options)
            best = yield options


def how_many(sizes: Sizes, readings: Readings, fixed: Options) -> int:
    """How many candidates there are at most."""
    ways = [
        way for way in (*_kinds(sizes), *_variations(readings)) if not fixed.keys() & way.keys()
    ]
    return 1 + sum(sizes.takes(DEFAULTS | fixed | way) for way in ways)


def _kinds(sizes: Sizes) -> Iterator[Options]:
    """What is modelled, by which loss, with how many components."""
    for size, loss in ((3, "ncll"), (1, "ncll"), (3, "nll"), (1, "nll")):
        yield {"n_components": size, "loss": loss}
    for wide in ({}, {"whole_numbers": "numbers"}) if sizes.whole_numbers else ({},):
        for covariance in ("tied", "full"):
            for size, loss in ((1, "blend"), (3, "blend"), (1, "nll")):
                yield {"covariance": covariance, "n_components": size, "loss": loss, **wide}
    if sizes.whole_numbers:
        yield {"whole_numbers": "numbers"}
    for size in _SIZES:
        yield {"n_components": size}


def _variations(readings: Readings) -> Iterator[Options]:
    """Options of the best."""
    if readings.tells_missing:
        yield {"missing": "informative"}
    yield {"hide": HIDDEN / 2}
    for strength in _STRENGTHS:
        yield {"prior_strength": strength}


def _is_hopeless(way: Options, results: Sequence[Result], best: Result) -> bool:
    """Whether a smaller model of that kind is far behind the best."""
    kind = {name: way[name] for name in ("covariance", "whole_numbers") if name in way}
    if not kind:
        return False
    alike = [each for each in results if kind.items() <= each.options.items()]
    return bool(alike) and all(_is_behind(each, best) for each in alike)


def _is_behind(result: Result, best: Result) -> bool:
    lost = (result.mark.losses - best.mark.losses).mean(axis=0)
    return bool(lost.sum() > _HOPELESS * np.sqrt((lost**2).sum()))
