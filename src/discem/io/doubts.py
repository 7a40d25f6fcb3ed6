"""Warnings about odd columns of a table that may be a mistake."""

from __future__ import annotations

import re

import numpy as np

from ..exceptions import warn
from .cells import Content, shown
from .column_kinds import IGNORED
from .columns import Column
from .frames import Table
from .tables import Layout
from .written import stray

_DECIMAL_COMMA = re.compile(r"[-+]?\d+(?:\.\d{3})*,\d+")
_NAME = re.compile(r"[\w-]+")
_ENOUGH = 50  # cells from which a column can be odd
_STRAY = 0.1  # of the cells; fewer are mistakes
_DENSE = 2.0  # distinct whole numbers per cell; running numbers have no more
_DIGITS = 4  # of an identifier or a postal code, at least, if all have the same length


def warn_of_doubts(table: Table, layout: Layout) -> None:
    """Warn of columns that are probably not what they were taken for."""
    for j, column in enumerate(layout.columns):
        if column.why == "given":
            continue
        content = table.content(j)
        doubt = _of_text(content, column) if content.is_text else _of_numbers(content, column)
        if doubt:
            warn(f"column {column.name!r} {doubt}", UserWarning)


def _of_text(content: Content, column: Column) -> str:
    if column.written or content.named or column.has_texts:
        return ""
    counts = np.bincount(content.values[content.values >= 0], minlength=len(content.levels))
    total = int(counts.sum())
    if total < _ENOUGH:
        return ""
    odd = stray(content.levels, counts.tolist(), _STRAY)
    if odd is not None:
        return (
            f"holds numbers as text, but for a few cells such as {shown(odd)}: it is taken for "
            "text; make these cells missing, and the others numbers"
        )
    commas = [bool(_DECIMAL_COMMA.fullmatch(text.strip())) for text in content.levels]
    if counts @ commas > (1.0 - _STRAY) * total:
        example = shown(content.levels[commas.index(True)])
        return (
            f"holds numbers with decimal commas, as {example}: they are taken for text; write them "
            "with a point, as pandas.read_csv(decimal=',') reads them"
        )
    single = counts == 1
    if 2 * single.sum() <= total:
        return ""
    if single.all() and all(map(_NAME.fullmatch, content.levels)):
        return ""  # names of rows, which are not missed
    example = shown(content.levels[int(single.argmax())])
    return (
        f"holds texts of which most occur once, as {example}: these count as missing; "
        "split the column into parts that repeat, leave it out, or let TableClassifier read its "
        f"words: families={{{column.name!r}: 'text'}}"
    )


def _of_numbers(content: Content, column: Column) -> str:
    if content.kind != "number" or column.family == IGNORED:
        return ""
    values = content.values[~np.isnan(content.values)]
    if len(values) < _ENOUGH or (values != np.rint(values)).any() or values.min() < 0:
        return ""
    low, high = values.min(), values.max()
    running = high - low < _DENSE * len(values)
    coded = len(str(int(low))) == len(str(int(high))) > _DIGITS
    if not (running or coded) or len(np.unique(values)) < len(values):
        return ""
    return (
        f"has a different whole number in every row, as {shown(float(values[0]))}: if it is an "
        'identifier or a code, leave it out, or give it the family "ignored" or "categorical"'
    )
