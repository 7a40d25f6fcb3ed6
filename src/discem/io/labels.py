"""Convert labels of any kind to a NumPy vector, without loss.

A label is a text, a whole number (also as a float, a decimal or a fraction), a boolean, a date, a
time or a duration; all labels of a vector have the same kind. Missing labels are NaN or NaT if
NumPy has them for the type, and None among texts, whole numbers and booleans. Labels that NumPy
would round, cut or confuse are kept as objects, or refused with an error that names them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from ..exceptions import InputError
from .cells import LARGEST, first, is_inexact, is_missing, shown, with_unit
from .vectors import cells_of

_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (  # the first match wins: True is an int, too
    ("text", (str,)),
    ("bytes", (bytes,)),
    ("time", (datetime,)),
    ("date", (date,)),
    ("duration", (timedelta, np.timedelta64)),
    ("number", (bool, np.bool_, int, float, np.integer, np.floating, Decimal, Fraction)),
)
_OF_ARRAYS = {"U": "text", "S": "bytes", "M": "time", "m": "duration"} | dict.fromkeys(
    "biufO", "number"
)
ONCE = "OUS"  # kinds of arrays for which `known_labels` is unique
_DAYS = ("Y", "M", "W", "D")  # units of dates without a time of day
_A_LABEL = "a label is a text, a whole number, a boolean or a date"
_IN64, _IN64U = range(-(2**63), 2**63), range(2**64)


def read_labels(y: Any, what: str = "y") -> np.ndarray:
    """Return the labels of a sequence, an array or a column; errors name it `what`.

    Examples
    --------
    >>> from decimal import Decimal
    >>> read_labels([Decimal(2), None, Decimal(1)])
    array([2, None, 1], dtype=object)
    """
    cells = cells_of(y, what)
    if isinstance(cells, np.ndarray):
        return _read_array(cells, what)
    types = set(map(type, cells)) - {type(None)}
    if not types <= {str, int, bool}:  # of which none stands for nothing
        cells = [None if is_missing(cell) else cell for cell in cells]
        types = set(map(type, cells)) - {type(None)}
    kinds = {each: _kind_of(each) for each in types}
    if types & {np.datetime64}:  # their unit tells
        kinds[np.datetime64] = _kind_of_dates(cells, what)
    if "" in kinds.values():
        raise _no_label(cells, kinds, what)
    if len(set(kinds.values())) > 1:
        raise _unlike(cells, kinds, what)
    if not kinds:
        return np.array(cells, dtype=object)
    return _READERS[kinds.popitem()[1]](cells, types, what)


def is_kind_of_label(kind: type) -> bool:
    """Return whether a type is a type of labels."""
    return issubclass(kind, np.datetime64) or bool(_kind_of(kind))


def are_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same label, regardless of their types."""
    try:
        both = read_labels([one, other])
    except InputError:
        return False
    return bool(both[0] == both[1])


def plain_labels(labels: np.ndarray) -> list[Any]:
    """Return the labels of a vector as Python objects; times unknown to Python stay NumPy's."""
    plain = labels.tolist()
    lost = labels.dtype.kind in "mM" and any(isinstance(label, int) for label in plain)
    return list(labels) if lost else plain


def missing_labels(y: np.ndarray) -> np.ndarray:
    """Return which labels of a vector are missing."""
    match y.dtype.kind:
        case "f":
            return np.isnan(y)
        case "M" | "m":
            return np.isnat(y)
        case "O":
            return np.fromiter((label is None for label in y.tolist()), dtype=bool, count=len(y))
    return np.zeros(len(y), dtype=bool)


def known_labels(y: np.ndarray) -> np.ndarray:
    """Return the labels of a vector that are not missing, with their own type.

    Texts and objects, which are slow to compare, are returned only once each.
    """
    if y.dtype.kind not in ONCE:
        return y[~missing_labels(y)]
    known = [label for label in dict.fromkeys(y.tolist()) if label is not None]
    return read_labels(known) if known else np.zeros(0)


def with_missing(labels: np.ndarray, n: int) -> np.ndarray:
    """Return the labels of a vector, and n more that are missing."""
    if labels.dtype.kind in "mM":
        return np.append(labels, np.full(n, "NaT", dtype=labels.dtype))
    if labels.dtype.kind == "f":
        return np.append(labels, np.full(n, np.nan))
    return np.append(labels.astype(object), np.full(n, None))


def join_labels(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the sorted, unique labels of both."""
    if not (len(one) and len(other)):
        return np.unique(other if len(other) else one)
    if label_kind(one) != label_kind(other):
        raise InputError(f"the classes {one} and {other} are not of one kind")
    if one.dtype.kind == other.dtype.kind != "O":
        if one.dtype.kind in "mM":
            return np.unique(_in_one_unit([one, other], "y"))
        return np.union1d(one, other)
    return np.unique(read_labels([*one.tolist(), *other.tolist()]))


def places_of(known: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the index of each label in the sorted classes; -1 if it is not a class."""
    if not (len(known) and len(classes)) or label_kind(known) != label_kind(classes):
        return np.full(len(known), -1, dtype=np.int64)
    if known.dtype.kind != classes.dtype.kind:  # NumPy would compare them as floats
        known, classes = known.astype(object), classes.astype(object)
    elif known.dtype.kind in "mM":
        both = _in_one_unit([known, classes], "y")
        known, classes = both[: len(known)], both[len(known) :]
    place = np.minimum(np.searchsorted(classes, known), len(classes) - 1)
    return np.where(classes[place] == known, place, -1)


def label_kind(labels: np.ndarray) -> str:
    """Return the kind of the labels of a vector."""
    kind = _OF_ARRAYS[labels.dtype.kind]
    if kind == "time" and np.datetime_data(labels.dtype)[0] in _DAYS:
        return "date"
    if kind == "number" and labels.dtype == object and isinstance(labels[0], str):
        return "text"
    return kind


# --- arrays ---------------------------------------------------------------------------------------


def _read_array(labels: np.ndarray, what: str) -> np.ndarray:
    if labels.dtype.kind == "f":
        bad = np.isinf(labels)
        if bad.any():
            raise InputError(f"Input {what} contains infinity at row {first(bad)}")
        bad = (labels != np.rint(labels)) & ~np.isnan(labels)
        if bad.any():
            raise _continuous(labels[first(bad)].item(), first(bad), what)
    elif labels.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {what} holds {labels.dtype}")
    elif labels.dtype.kind not in _OF_ARRAYS:
        raise InputError(f"{what} holds {labels.dtype}: {_A_LABEL}")
    return labels


def _in_one_unit(parts: Sequence[np.ndarray], what: str) -> np.ndarray:
    """Return dates or durations of several units in one unit; NumPy itself would overflow."""
    try:
        joined = np.concatenate(parts)
        ends = np.cumsum([len(part) for part in parts])
        pairs = zip(parts, np.split(joined, ends[:-1]), strict=True)
        exact = all(
            (np.isnat(part) | (part == own.astype(part.dtype))).all() for part, own in pairs
        )
    except (TypeError, OverflowError):  # years and months have no fixed length
        exact = False
    if not exact:
        units = " and ".join(sorted({str(part.dtype) for part in parts}))
        raise InputError(f"{what} holds {units}, which no unit holds together: make them of one")
    return joined


# --- objects --------------------------------------------------------------------------------------


def _kind_of(kind: type) -> str:
    return next((name for name, types in _KINDS if issubclass(kind, types)), "")


def _kind_of_dates(cells: Sequence[Any], what: str) -> str:
    units = {np.datetime_data(each.dtype)[0] for each in cells if isinstance(each, np.datetime64)}
    return "date" if units <= {*_DAYS} else "time"


def _read_text(cells: list[Any], types: set[type], what: str) -> np.ndarray:
    """Return texts; a text that ends with NUL is an error, as NumPy pads with NUL."""
    plain: Any = str.__str__
    nul: Any = "\0"
    if issubclass(next(iter(types)), bytes):
        plain, nul = bytes, b"\0"
    if not types <= {str, bytes}:
        cells = [None if cell is None else plain(cell) for cell in cells]
    for label in dict.fromkeys(cells):
        if label is not None and label.endswith(nul):
            raise InputError(
                f"{what} has {shown(label)} in row {cells.index(label)}, a label that ends with a "
                "NUL, which arrays of NumPy drop: leave it out"
            )
    return _vector(cells)


def _vector(cells: list[Any], dtype: Any = None) -> np.ndarray:
    """Return an array of labels, of objects if one of them is missing."""
    return np.array(cells, dtype=object if None in cells else dtype)


def _read_numbers(cells: list[Any], types: set[type], what: str) -> np.ndarray:
    """Return booleans, whole numbers, or floats with NaN for missing."""
    if types <= {bool, np.bool_}:
        return _vector([None if cell is None else bool(cell) for cell in cells])
    if any(issubclass(each, np.generic) for each in types):
        cells = [_of_python(cell) for cell in cells]
    plain: dict[Any, int | float | None] = {None: None}
    for cell in dict.fromkeys(cells):
        if cell is not None:
            plain[cell] = _plain_number(cell, cells, what)
    labels = [plain[cell] for cell in cells]
    floats = any(isinstance(label, float) for label in plain.values())
    if floats and not any(map(_is_lost, plain.values())):
        return np.array(labels, dtype=np.float64)
    whole = {label: int(label) for label in plain.values() if label is not None}
    inside = [each for each in (_IN64, _IN64U) if all(n in each for n in whole.values())]
    dtype: Any = object
    if inside:
        dtype = np.int64 if inside[0] is _IN64 else np.uint64
    return _vector([None if label is None else whole[label] for label in labels], dtype)


def _is_lost(label: int | float | None) -> bool:
    return isinstance(label, int) and is_inexact(label) and label != float(label)


def _of_python(cell: Any) -> Any:
    """Return a number of NumPy as a Python number, as others cannot always be compared with it."""
    if isinstance(cell, np.longdouble):
        return int(cell) if np.isfinite(cell) and cell == np.rint(cell) else float(cell)
    return cell.item() if isinstance(cell, np.generic) else cell


def _plain_number(cell: Any, cells: list[Any], what: str) -> int | float:
    """Return a whole number, or a float with the same value."""
    if not -LARGEST <= cell <= LARGEST:
        number = "infinity" if cell in (np.inf, -np.inf) else f"a label beyond {LARGEST:g}"
        raise InputError(f"Input {what} contains {number} at row {cells.index(cell)}")
    if cell != int(cell):
        raise _continuous(cell, cells.index(cell), what)
    return cell if isinstance(cell, float) else int(cell)


def _read_dates(cells: list[Any], types: set[type], what: str) -> np.ndarray:
    """Return dates, times and durations; None becomes NaT."""
    for row, cell in enumerate(cells):
        if isinstance(cell, datetime) and cell.tzinfo is not None:
            raise InputError(
                f"{what} has {shown(cell)} in row {row}, a time with a time zone, which labels do "
                "not keep: make them texts, or leave the zone out"
            )
    labels = [None if cell is None else _plain_time(cell, what) for cell in cells]
    dtypes = dict.fromkeys(label.dtype for label in labels if label is not None)
    own = [
        [row for row, each in enumerate(labels) if each is not None and each.dtype == dtype]
        for dtype in dtypes
    ]
    parts = [np.array([labels[row] for row in rows]) for rows in own]
    joined = _in_one_unit(parts, what)
    vector = np.full(len(cells), "NaT", dtype=joined.dtype)
    vector[np.concatenate(own)] = joined
    return vector


def _plain_time(cell: Any, what: str) -> Any:
    """Return a date or a duration in a unit that holds it."""
    cell = with_unit(cell)
    if isinstance(cell, np.generic):
        return cell
    if isinstance(cell, timedelta):
        length = cell // timedelta(microseconds=1)  # NumPy would overflow
        if length in _IN64:
            return np.timedelta64(length, "us")
        if length % 10**6:
            raise InputError(f"{what} has {shown(cell)}, too long for microseconds: round it")
        return np.timedelta64(length // 10**6, "s")
    return np.datetime64(cell)


_READERS: dict[str, Callable[[list[Any], set[type], str], np.ndarray]] = {
    "text": _read_text,
    "bytes": _read_text,
    "number": _read_numbers,
    "date": _read_dates,
    "time": _read_dates,
    "duration": _read_dates,
}


# --- what is said of bad ones ---------------------------------------------------------------------


def _continuous(label: Any, row: int, what: str) -> InputError:
    """Return the error for a number that is not whole; scikit-learn's tests expect its words."""
    return InputError(
        f"Unknown label type: continuous. {what} has {shown(label)} in row {row}: {_A_LABEL}"
    )


def _no_label(cells: list[Any], kinds: dict[type, str], what: str) -> InputError:
    row = next(r for r, cell in enumerate(cells) if cell is not None and not kinds[type(cell)])
    if isinstance(cells[row], complex | np.complexfloating):
        return InputError(f"Complex data not supported: {what} has {cells[row]!r} in row {row}")
    return InputError(
        f"Unknown label type: {what} has {shown(cells[row])} in row {row}, which can be no label: "
        f"{_A_LABEL}; convert it to a text"
    )


def _unlike(cells: list[Any], kinds: dict[type, str], what: str) -> InputError:
    """Return the error for labels of several kinds."""
    seen: dict[str, Any] = {}
    for cell in cells:
        if cell is not None:
            seen.setdefault(kinds[type(cell)], cell)
    one = min(seen, key=lambda kind: kind != "text")
    other = next(kind for kind in seen if kind != one)
    word = one if one in ("text", "bytes") else f"{one}s"
    return InputError(
        f"{what} mixes {word}, as {shown(seen[one])}, with other labels, as {shown(seen[other])}"
    )
