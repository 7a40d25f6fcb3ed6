"""Parse cells that are text, as in CSV files: numbers, booleans, dates, or names.

The observed cells determine the kind of a column. If they are of several kinds, the column holds
names. A column of numbers or dates with a few other cells probably has mistakes, so it is an error
unless its family is given.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import InputError
from .cells import LARGEST, WORDS_OF_KINDS, Content, is_inexact, read_objects, shown

MISSING = ("?", "NA", "N/A", "NaN", "null", "None")  # or empty, in upper or lower case
_MISSING = frozenset(word.casefold() for word in (*MISSING, ""))
_STRAY = 0.1  # of the cells of a column; fewer are mistakes
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_WHOLE = re.compile(r"[+-]?\d+")
_TRUTHS = {"true": True, "false": False}

Place = Callable[[int], str]  # formats a row for a message


def is_missing(cell: str) -> bool:
    """Return whether the text of a cell means "missing"."""
    return cell.strip().casefold() in _MISSING


def read_texts(
    cells: Sequence[str | None],
    name: str,
    place: Place,
    *,
    kind: str | None = None,
    typed: bool = False,
    given: bool = False,
) -> Content:
    """Read a column of texts.

    Parameters
    ----------
    cells : sequence of str
        None is missing, and so are the texts in `MISSING`, unless cells are `typed`.
    name : str
        The name of the column.
    place : callable
        Formats a row number for a message.
    kind : {"number", "bool", "date", "level", "whole"}, optional
        The required kind, from a fitted model; "whole" is a whole number used as a name. By default
        the cells determine the kind.
    typed : bool
        Whether the file has types, as JSON, so that numbers and booleans are not texts.
    given : bool
        Whether the family is given, so that a column of several kinds holds names.

    Examples
    --------
    >>> read_texts(["1", " 2.5", "?"], "size", str).numbers()
    array([1. , 2.5, nan])
    >>> read_texts(["1", "b", "?"], "size", str).levels
    ['1', 'b']
    """
    plain = {cell: _plain(cell, typed) for cell in dict.fromkeys(cells)}
    seen = {text for text in plain.values() if text is not None}
    if kind is None:
        kinds = {text: _kind_of(text, typed) for text in seen}
        kind = _only_kind(set(kinds.values())) or common_kind(
            _find(kinds, cells, plain, place), name, given
        )
    if kind == "level":
        return _read_names(cells, plain)
    read = _READERS.get(kind, _number)
    values: dict[str | None, Any] = {None: None}
    for text in seen:
        values[text] = read(text)
        if values[text] is None:
            raise _unlike(name, text, kind, _first(cells, plain, text, place))
    if kind in ("date", "whole"):
        return read_objects([values[plain[cell]] for cell in cells], f"column {name!r}")
    numbers = {
        cell: np.nan if text is None else float(values[text]) for cell, text in plain.items()
    }
    column = np.fromiter(map(numbers.__getitem__, cells), dtype=np.float64, count=len(cells))
    beyond = np.abs(column) > LARGEST
    if beyond.any():
        row = int(beyond.argmax())
        raise InputError(
            f"{place(row)}, column {name!r}: {shown(cells[row])} is beyond {LARGEST:g}"
        )
    return Content(kind, column)


def _plain(cell: str | None, typed: bool) -> str | None:
    if cell is None or typed:
        return cell
    return None if is_missing(cell) else cell.strip()


def _kind_of(text: str, typed: bool) -> str:
    if not typed:
        if _number(text) is not None:
            large = _WHOLE.fullmatch(text) and is_inexact(int(text[:400]))
            return "level" if large else "number"
        if text.casefold() in _TRUTHS:
            return "bool"
    return "level" if iso_date(text) is None else "date"


# --- what a column is -----------------------------------------------------------------------------


class Found(NamedTuple):
    """Cells of one kind: their number, and the first one with its text and place."""

    cells: int
    first: tuple[int, ...]
    text: str
    place: str


def kinds_of(cells: Sequence[str | None], place: Place, typed: bool = False) -> dict[str, Found]:
    """Return the kinds of the cells of a part of a column, for `common_kind`."""
    plain = {cell: _plain(cell, typed) for cell in dict.fromkeys(cells)}
    kinds = {text: _kind_of(text, typed) for text in plain.values() if text is not None}
    return _find(kinds, cells, plain, place)


def _find(
    kinds: dict[str, str], cells: Sequence[str | None], plain: Any, place: Place
) -> dict[str, Found]:
    counts: Counter[str] = Counter()
    texts: dict[str, Any] = {}  # the first of each kind: a Counter has cells in their order
    for cell, n in Counter(cells).items():
        if plain[cell] is not None:
            kind = kinds[plain[cell]]
            counts[kind] += n
            texts.setdefault(kind, cell)
    rows = {kind: list(cells).index(cell) for kind, cell in texts.items()}
    return {
        kind: Found(counts[kind], (row,), plain[texts[kind]], place(row))
        for kind, row in rows.items()
    }


def merge_kinds(parts: Iterable[dict[str, Found]]) -> dict[str, Found]:
    """Merge the kinds of the cells of all parts of a column, in order."""
    merged: dict[str, Found] = {}
    for place, part in enumerate(parts):
        for kind, found in part.items():
            known = merged.get(kind)
            if known is None:
                merged[kind] = found._replace(first=(place, *found.first))
            else:
                merged[kind] = known._replace(cells=known.cells + found.cells)
    return merged


def _only_kind(found: set[str]) -> str | None:
    if len(found) > 1:
        return None
    return found.pop() if found else "number"


def common_kind(found: dict[str, Found], name: str, given: bool = False) -> str:
    """Return the kind of a column whose cells have these kinds; see `read_texts`."""
    only = _only_kind(set(found))
    if only or given:
        return only or "level"
    kind = max(found, key=lambda each: (found[each].cells, [-row for row in found[each].first]))
    most, total = found[kind].cells, sum(each.cells for each in found.values())
    if kind in ("number", "date") and most > (1.0 - _STRAY) * total:
        others = [each for other, each in found.items() if other != kind]
        stray = min(others, key=lambda each: each.first)
        raise InputError(
            f"{stray.place}, column {name!r}: {shown(stray.text)}, while {most:,} cells are "
            f"{WORDS_OF_KINDS[kind]}; leave a missing cell empty, or name what the column is, as "
            f"in --family {name}=categorical"
        )
    return "level"


def _unlike(name: str, text: str, kind: str, where: str) -> InputError:
    held = "whole numbers" if kind == "whole" else WORDS_OF_KINDS.get(kind, "numbers")
    return InputError(
        f"{where}, column {name!r}: {shown(text)}, but the model knows {held} in it; leave a "
        "missing cell empty"
    )


def _first(cells: Sequence[Any], plain: Any, text: str, place: Place) -> str:
    return place(next(row for row, cell in enumerate(cells) if plain[cell] == text))


def _read_names(cells: Sequence[Any], plain: dict[Any, str | None]) -> Content:
    levels = [text for text in dict.fromkeys(plain.values()) if text is not None]
    code: dict[str | None, int] = {text: place for place, text in enumerate(levels)} | {None: -1}
    codes = {cell: code[text] for cell, text in plain.items()}
    column = np.fromiter(map(codes.__getitem__, cells), dtype=np.int64, count=len(cells))
    return Content("level", column, levels)


# --- one cell -------------------------------------------------------------------------------------


def _number(text: str) -> float | None:
    """Return a number, or a boolean as 1 or 0."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _truth(text: str) -> float | None:
    return float(_TRUTHS[text.casefold()]) if text.casefold() in _TRUTHS else _number(text)


def iso_date(text: str) -> datetime | None:
    """Return the date or time of a text in ISO 8601; None if it is not one."""
    try:
        return datetime.fromisoformat(text) if _DATE.match(text) else None
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) and len(text) < 400 else None


_READERS: dict[str, Callable[[str], Any]] = {
    "number": _truth,
    "bool": _truth,
    "date": iso_date,
    "whole": _whole,
}
