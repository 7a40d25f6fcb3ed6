"""Cells that rows lack, as the mixtures of a table say: filled in, drawn, and as distributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..exceptions import OptionError
from ..io.cells import as_times
from ..io.columns import CODED, Column
from ..io.filling import Filling, filled
from ..io.frames import check_table
from ..io.tables import Cells, Layout
from ..models import Given, given
from ._distributions import OfColumn, OfCounts, OfLevels, number_of
from ._options import is_count
from ._tables import Encoded

HOWS = ("mean", "mode", "draw")
_AT_ONCE = 1 << 23  # numbers to keep at a time
_NUMBERS, _CODES, _COUNTS = range(3)  # the blocks of a table


def check_how(how: Any, n_draws: Any) -> None:
    """Refuse options of `impute` that cannot be."""
    if how not in HOWS:
        raise OptionError(f"how={how!r} must be 'mean', 'mode' or 'draw'")
    if not is_count(n_draws):
        raise OptionError(f"n_draws={n_draws!r} must be a whole number >= 1")
    if n_draws > 1 and how != "draw":
        raise OptionError(f"n_draws={n_draws} goes with how='draw', not with how={how!r}")


def impute(
    models: Sequence[Any], X: Any, allowed: np.ndarray | None, how: str, n_draws: int, rng: Any
) -> Any:
    """The table with its missing cells filled in; a list of tables of more than one draw.

    With several models, distributions are averaged. `allowed` says which classes each row may
    have, (n, K); None: any.
    """
    table, layout = check_table(X), models[0].layout_
    cells = layout.encode(table)
    masks = {}
    for column in layout.columns:
        if column.name in table.names:
            masks[column.name] = table.content(table.names.index(column.name)).missing
        elif table.backend == "dicts":
            masks[column.name] = np.ones(table.n_rows, dtype=bool)
    masks = {name: mask for name, mask in masks.items() if mask.any()}
    rows = np.flatnonzero(np.logical_or.reduce([*masks.values(), np.zeros(table.n_rows, bool)]))
    encoded = Encoded(cells, layout)
    tables = []
    for _ in range(n_draws):
        values = _values(models, encoded.take(rows), _some(allowed, rows), how, rng)
        filling = {}
        for column, found in zip(layout.columns, values, strict=True):
            if column.name in masks and found is not None:
                mask = masks[column.name]
                filling[column.name] = Filling(mask, found[mask[rows]])
        tables.append(filled(X, filling))
    return tables if n_draws > 1 else tables[0]


def draw(models: Sequence[Any], encoded: Encoded, allowed: np.ndarray | None, rng: Any) -> tuple:
    """The rows, each missing cell drawn, and their components in the first of the models."""
    drawn, codes = [], []
    for some, answers in _answers(models, encoded, allowed):
        one, code = _drawn(encoded.take(some), answers, rng)
        drawn.append(one)
        codes.append(code)
    return Cells(*map(np.concatenate, zip(*drawn, strict=True))), np.concatenate(codes)


def distribution(
    models: Sequence[Any], encoded: Encoded, allowed: np.ndarray | None, j: int
) -> OfColumn:
    """The distribution of a column in a few rows that lack it."""
    (found,) = distributions(models, encoded, allowed, [j])
    return found


def distributions(
    models: Sequence[Any], encoded: Encoded, allowed: np.ndarray | None, columns: Sequence[int]
) -> list[OfColumn]:
    """Those of some columns, each given the cells that rows have."""
    answers = [given(m.learner_.model, encoded.view(), allowed) for m in models]
    return [distribution_of(encoded.layout, answers, j) for j in columns]


def _some(allowed: np.ndarray | None, rows: Any) -> np.ndarray | None:
    return None if allowed is None else allowed[rows]


def _answers(
    models: Sequence[Any], encoded: Encoded, allowed: np.ndarray | None
) -> Iterator[tuple[slice, list[Given]]]:
    """Some rows at a time, and what each model says of them."""
    n, columns = encoded.shape
    wide = columns + len(encoded.layout.numbers) ** 2  # covariances are of pairs of numbers
    size = sum(int(m.learner_.model.first[-1]) for m in models) * wide
    step = max(_AT_ONCE // size, 16)
    for first in range(0, n, step):
        some = slice(first, min(first + step, n))
        view = encoded.take(some).view()
        yield some, [given(m.learner_.model, view, _some(allowed, some)) for m in models]


def _values(
    models: Sequence[Any], encoded: Encoded, allowed: np.ndarray | None, how: str, rng: Any
) -> list[np.ndarray | None]:
    """What to put into each column, by row; None: nothing is known of it."""
    layout, n = encoded.layout, encoded.shape[0]
    columns = layout.columns
    if how == "draw":
        cells, _ = draw(models, encoded, allowed, rng) if n else (encoded.cells, None)
        return [
            _constant(column, n) if column.family == "ignored" else values
            for column, values in zip(columns, layout.values(cells), strict=True)
        ]
    found: list[list[np.ndarray]] = [[] for _ in columns]
    for _, answers in _answers(models, encoded, allowed):
        for j, column in enumerate(columns):
            if column.family != "ignored":
                found[j].append(getattr(distribution_of(layout, answers, j), how)())
    return [
        restored(column, np.concatenate(parts), how) if parts else _constant(column, n)
        for column, parts in zip(columns, found, strict=True)
    ]


def _constant(column: Column, n: int) -> np.ndarray | None:
    """The only cell that a column ever had."""
    if not column.span or column.span[0] != column.span[1]:
        return None
    if isinstance(column.span[0], float):
        return restored(column, np.full(n, column.span[0]), "mean")
    return np.full(n, column.span[0], dtype=object)


def restored(column: Column, values: np.ndarray, how: str) -> np.ndarray:
    """Codes and numbers as cells of a column."""
    if column.family in CODED and not (how == "mean" and column.counts_as_number):
        return column.decode({"codes": values}, len(values))
    if how == "mode" and column.whole:
        values = np.rint(values)
    return as_times(values, column.kind) if column.kind in ("date", "duration") else values


def _drawn(encoded: Encoded, answers: list[Given], rng: Any) -> tuple[Cells, np.ndarray]:
    """Rows, of which each asks one of the answers, and the component of each in it."""
    each = [answer.drawn(rng) for answer in answers]
    own = rng.randint(len(each), size=encoded.shape[0])
    code, numbers, codes, counts = (
        np.stack(parts)[own, np.arange(len(own))] for parts in zip(*each, strict=True)
    )
    layout, cells = encoded.layout, encoded.cells
    for vector, before, j in zip(numbers.T, cells.numbers.T, layout.numbers, strict=True):
        vector[:] = np.where(np.isnan(before), layout.columns[j].within(vector), before)
    for vector, before, j in zip(counts.T, cells.counts.T, layout.counts, strict=True):
        vector[:] = np.where(np.isnan(before), layout.columns[j].within(vector), before)
    return Cells(numbers, codes.astype(np.int32), counts), code


def distribution_of(layout: Layout, answers: list[Given], j: int) -> OfColumn:
    """The distribution of a column in each row, the mean of what the answers say."""
    column = layout.columns[j]
    shares = np.concatenate([answer.shares for answer in answers], axis=1) / len(answers)
    if column.family in CODED:
        place = layout.place_of_code(j)
        parts = [a.shares @ a.blocks[_CODES].column(place)[0][0] for a in answers]
        numbers = column.levels if column.counts_as_number else None
        return OfLevels(sum(parts[1:], parts[0]) / len(answers), numbers)
    if column.family == "poisson":
        (rate,) = _side_by_side(answers, _COUNTS, layout.counts.index(j))
        return OfCounts(shares, rate, *(column.span or (0.0, np.inf)))
    normal = _side_by_side(answers, _NUMBERS, layout.numbers.index(j))
    if column.family != "hurdle":
        return number_of(column, shares, normal)
    (levels,) = _side_by_side(answers, _CODES, layout.place_of_code(j))
    return number_of(column, shares, normal, levels[..., 1])


def _side_by_side(answers: list[Given], block: int, place: int) -> list[np.ndarray]:
    """Parameters of one column in the components of all answers."""
    parts = []
    for answer in answers:
        found = answer.blocks[block].column(place)
        n = len(answer.shares)
        parts.append([np.broadcast_to(each, (n, *each.shape[1:])) for each in found])
    return [np.concatenate(each, axis=1) for each in zip(*parts, strict=True)]
