"""Missing cells under the mixtures of a table: imputed, drawn, or as distributions."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

import numpy as np

from ..exceptions import InputError, OptionError
from ..families._distributions import OfColumn, OfCounts, OfNumbers
from ..io.cells import as_times, read_objects, shown
from ..io.columns import Column
from ..io.filling import Filling, filled
from ..io.frames import check_table
from ..io.tables import Cells, Layout
from ..models import Given, given
from ._options import check_share, check_whole
from ._tables import Encoded

HOWS = ("mean", "mode", "draw")
_AT_ONCE = 1 << 23  # numbers to keep in memory at a time


def check_how(how: Any, n_draws: Any) -> None:
    """Validate the options of `impute`."""
    if how not in HOWS:
        raise OptionError(f"how={how!r} must be 'mean', 'mode' or 'draw'")
    check_whole("n_draws", n_draws)
    if n_draws > 1 and how != "draw":
        raise OptionError(f"n_draws={n_draws} goes with how='draw', not with how={how!r}")


def impute(
    models: Sequence[Any], X: Any, allowed: np.ndarray | None, how: str, n_draws: int, rng: Any
) -> Any:
    """Return the table with its missing cells filled in, or a list of tables for several draws.

    Distributions of several models are averaged. `allowed` says which classes each row may have,
    (n, K); None allows all classes.
    """
    table, layout = check_table(X), models[0]._layout()
    cells = layout.encode(table)
    masks = {}
    for column in layout.columns:
        if not column.slots and not column.is_constant:
            continue  # the models know nothing about this column
        if column.name in table.names:
            content = table.content(table.names.index(column.name))
            masks[column.name] = column.read(content).missing
        elif table.backend == "dicts":
            masks[column.name] = np.ones(table.n_rows, dtype=bool)
    masks = {name: mask for name, mask in masks.items() if mask.any()}
    rows = np.flatnonzero(np.logical_or.reduce([*masks.values(), np.zeros(table.n_rows, bool)]))
    encoded = Encoded(cells, layout)
    tables = []
    for _ in range(n_draws):
        values = _values(models, encoded.take(rows), _some(allowed, rows), how, rng, masks)
        filling = {}
        for column, found in zip(layout.columns, values, strict=True):
            if column.name in masks:
                mask = masks[column.name]
                filling[column.name] = Filling(mask, found[mask[rows]])
        tables.append(filled(X, filling))
    return tables if n_draws > 1 else tables[0]


def draw(models: Sequence[Any], encoded: Encoded, allowed: np.ndarray | None, rng: Any) -> tuple:
    """Draw every missing cell; return the rows, and their components in the first model."""
    drawn, codes = [], []
    for some, answers in _answers(models, encoded, allowed):
        one, code = _drawn(encoded.take(some), answers, rng)
        drawn.append(one)
        codes.append(code)
    return Cells(map(np.concatenate, zip(*drawn, strict=True))), np.concatenate(codes)


def distribution(
    models: Sequence[Any], encoded: Encoded, allowed: np.ndarray | None, j: int
) -> OfColumn:
    """Return the distribution of a column in a few rows that lack it."""
    (found,) = distributions(models, encoded, allowed, [j])
    return found


def distributions(
    models: Sequence[Any], encoded: Encoded, allowed: np.ndarray | None, columns: Sequence[int]
) -> list[OfColumn]:
    """Return the distributions of some columns, given the observed cells of the rows."""
    answers = [_given(m, encoded, allowed) for m in models]
    return [distribution_of(encoded.layout, answers, j) for j in columns]


def _some(allowed: np.ndarray | None, rows: Any) -> np.ndarray | None:
    return None if allowed is None else allowed[rows]


def _answers(
    models: Sequence[Any], encoded: Encoded, allowed: np.ndarray | None
) -> Iterator[tuple[slice, list[Given]]]:
    """Yield some rows at a time, with the conditionals of each model."""
    n, columns = encoded.shape
    wide = columns + len(encoded.layout.numbers) ** 2  # covariances are of pairs of numbers
    size = sum(int(m.learner_.model.first[-1]) for m in models) * wide
    step = max(_AT_ONCE // size, 16)
    for first in range(0, n, step):
        some = slice(first, min(first + step, n))
        rows, own = encoded.take(some), _some(allowed, some)
        yield some, [_given(m, rows, own) for m in models]


def _given(model: Any, encoded: Encoded, allowed: np.ndarray | None) -> Given:
    """Return the conditionals of a model, with the current class frequencies."""
    log_odds = model._normalized_shift()[None]
    if allowed is not None:
        log_odds = np.where(allowed, log_odds, -np.inf)
    return given(model.learner_.model, model._rows(encoded), log_odds)


def _values(
    models: Sequence[Any], encoded: Encoded, allowed: np.ndarray | None, how: str, rng: Any,
    wanted: Container[Any],
) -> list[np.ndarray]:  # fmt: skip
    """Return the values to fill into each of the `wanted` columns, by row."""
    layout, n = encoded.layout, encoded.shape[0]
    columns = layout.columns
    if how == "draw":
        cells, _ = draw(models, encoded, allowed, rng) if n else (encoded.cells, None)
        return layout.values(cells)
    found: list[list[np.ndarray]] = [[] for _ in columns]
    for _, answers in _answers(models, encoded, allowed):
        for j, column in enumerate(columns):
            if column.is_modelled and column.name in wanted:
                found[j].append(getattr(distribution_of(layout, answers, j), how)())
    return [
        restored(column, np.concatenate(parts), how) if parts else column.constant(n)
        for column, parts in zip(columns, found, strict=True)
    ]


def restored(column: Column, values: np.ndarray, how: str) -> np.ndarray:
    """Return codes and numbers as cells of a column."""
    if column.has_levels and not (how == "mean" and column.counts_as_number):
        return column.as_written(column.decode((values,), len(values)))
    times = column.kind in ("date", "duration")
    if column.whole and (how == "mode" or (times and column.written)):  # texts of days have no time
        values = np.rint(values)
    return column.as_written(as_times(values, column.kind) if times else values)


def _drawn(encoded: Encoded, answers: list[Given], rng: Any) -> tuple[Cells, np.ndarray]:
    """Draw rows, each from one of the answers; return also the component of each row."""
    each = [answer.drawn(rng) for answer in answers]
    own = rng.randint(len(each), size=encoded.shape[0])
    code, *arrays = (np.stack(parts)[own, np.arange(len(own))] for parts in zip(*each, strict=True))
    layout, cells = encoded.layout, encoded.layout.cells(arrays)
    for part, before, drawn in zip(layout.parts, encoded.cells, cells, strict=True):
        if not part.is_code:
            for place, j in enumerate(part.columns):
                cell, column = before[:, place], layout.columns[j]
                within = column.within(drawn[:, place])
                drawn[:, place] = np.where(np.isnan(cell), within, cell)
    return cells, code


def distribution_of(layout: Layout, answers: list[Given], j: int) -> OfColumn:
    """Return the distribution of a column in each row: the mean of the answers."""
    column = layout.columns[j]
    return column.of_kind.distribution(column, _Said(answers, layout.slots[j]))


class _Said:
    """The parameters of one column in the components of all models."""

    def __init__(self, answers: list[Given], slots: list[tuple[int, int]]):
        self._answers, self._slots = answers, slots

    @property
    def shares(self) -> np.ndarray:
        """Return the shares of all components, (n, M)."""
        return np.concatenate([a.shares for a in self._answers], axis=1) / len(self._answers)

    def of(self, slot: int = 0) -> list[np.ndarray]:
        """Return the parameters of the family of a slot in each component, (n, M, ..)."""
        parts = []
        for answer in self._answers:
            n = len(answer.shares)
            found = self._column(answer, slot)
            parts.append([np.broadcast_to(each, (n, *each.shape[1:])) for each in found])
        return [np.concatenate(each, axis=1) for each in zip(*parts, strict=True)]

    def mixed(self) -> np.ndarray:
        """Return the probabilities of levels, over all components, (n, levels)."""
        parts = [a.shares @ self._column(a, 0)[0][0] for a in self._answers]
        return sum(parts[1:], parts[0]) / len(parts)

    def _column(self, answer: Given, slot: int) -> tuple[np.ndarray, ...]:
        part, place = self._slots[slot]
        return answer.blocks[part].column(place)


# --- what users are told of a distribution --------------------------------------------------------


class Distribution:
    """The distribution of a column of numbers or dates, in one row.

    Parameters
    ----------
    answer : OfNumbers or OfCounts
        Of one row.
    kind : str
        That of the cells.
    """

    def __init__(self, answer: OfNumbers | OfCounts, kind: str):
        self._answer, self._kind = answer, kind

    @property
    def mean(self) -> Any:
        """The mean, within the range that was seen."""
        return self._cell(self._answer.mean())

    @property
    def mode(self) -> Any:
        """The most probable value."""
        return self._cell(self._answer.mode())

    @property
    def std(self) -> Any:
        """The standard deviation; of dates, a duration."""
        return self._cell(np.sqrt(self._answer.variance_of()), "duration")

    def quantile(self, q: float) -> Any:
        """The least value that a share q does not exceed."""
        check_share("q", q)
        return self._cell(self._answer.quantile(q))

    def cdf(self, x: Any) -> float:
        """p(cell <= x), of a number, date or duration; of dates, x may be days since 1970-01-01."""
        content = read_objects([x], "x")
        if content.kind not in (self._kind, "number") or content.missing[0]:
            raise InputError(f"x={shown(x)} must be as the cells of the column: {self._kind}s")
        return float(self._answer.cdf(content.numbers())[0])

    def __repr__(self) -> str:
        return f"Distribution(mean={self.mean}, std={self.std})"

    def _cell(self, value: np.ndarray, of_dates: str = "date") -> Any:
        if self._kind not in ("date", "duration"):
            return float(value[0])
        return as_times(value, of_dates if self._kind == "date" else "duration")[0]
