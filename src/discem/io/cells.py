"""The cells of one column as numbers, or as codes of levels, from any library.

NaN, None, NaT, the NA of pandas and masked cells are missing. Dates are days since 1970-01-01 UTC,
durations are days. Columns of whole numbers (integers, decimals or fractions) with some beyond
2**53 are read as levels, because floats could not tell such numbers apart.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import InputError, NoNumberError

LARGEST = 1e150  # squares of larger numbers overflow
_EXACT = 2**53  # larger whole numbers cannot be told apart as floats
_EPOCH, _DAY = datetime(1970, 1, 1), timedelta(days=1)
_FIRST_DAY, _END = -719162.0, 2932897.0  # of the years 1 to 9999
_LONGEST = 1e8  # days that 64 bits of microseconds hold
_SECONDS = {
    "W": 604800.0, "D": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0,
    "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "fs": 1e-15, "as": 1e-18,
}  # fmt: skip
_NUMBERS = (int, float, np.integer, np.floating, Decimal, Fraction)
_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (  # the first match wins: True is an int, too
    ("bool", (bool, np.bool_)),
    ("level", (str,)),
    ("date", (date, np.datetime64)),
    ("duration", (timedelta, np.timedelta64)),
    ("number", _NUMBERS),
)
WORDS_OF_KINDS = {"number": "numbers", "bool": "booleans", "date": "dates", "duration": "durations"}


class Content(NamedTuple):
    """A column: numbers, or codes of levels."""

    kind: str  # "number", "bool", "date", "duration" or "level"
    values: np.ndarray  # float64, NaN missing; of kind "level", codes, -1 missing
    levels: Sequence[Any] = ()  # texts or numbers, all of one kind
    named: bool = False  # whether the library marks the column as categories

    @property
    def missing(self) -> np.ndarray:
        """Return which cells are missing."""
        return self.values < 0 if self.kind == "level" else np.isnan(self.values)

    @property
    def is_text(self) -> bool:
        return self.kind == "level" and (not self.levels or isinstance(self.levels[0], str))

    def numbers(self) -> np.ndarray:
        """Return the values of a column without text."""
        if self.kind != "level":
            return self.values
        return np.array([*self.levels, np.nan], dtype=np.float64)[self.values]

    def only(self, rows: np.ndarray) -> Content:
        """Return the given rows."""
        return self._replace(values=self.values[rows])

    def describe(self, row: int) -> str:
        """Describe the content of the column, with the cell of one row as an example."""
        word = "text" if self.is_text else WORDS_OF_KINDS.get(self.kind, "numbers")
        value = self.levels[self.values[row]] if self.kind == "level" else self.values[row].item()
        return f"{word}, as {self.shown(value)} in row {row}"

    def shown(self, value: Any) -> str:
        """Format a value of the column for a message: dates and booleans as such."""
        if self.kind not in ("date", "duration"):
            return shown(bool(value) if self.kind == "bool" else value)
        return str(as_times(np.array([value]), self.kind)[0].item()).removesuffix(" 00:00:00")


def join_contents(parts: Sequence[Content]) -> Content:
    """Concatenate the parts of a column; parts without cells fit any kind."""
    kinds = {part.kind for part in parts if not part.missing.all()} or {parts[0].kind}
    if kinds <= {"number", "bool"}:
        kind = "number" if "number" in kinds else "bool"
        return Content(kind, np.concatenate([part.numbers() for part in parts]))
    if "level" not in kinds:
        return Content(kinds.pop(), np.concatenate([part.numbers() for part in parts]))
    place: dict[Any, int] = {}
    codes = []
    for part in parts:
        own = levels_of(part)  # numbers, if whole numbers elsewhere are too large for floats
        lookup = [place.setdefault(level, len(place)) for level in own.levels]
        codes.append(np.array([*lookup, -1], dtype=np.int64)[own.values])
    return Content("level", np.concatenate(codes), list(place))


def levels_of(content: Content) -> Content:
    """Return the same cells as levels."""
    if content.kind == "level":
        return content
    seen = ~np.isnan(content.values)
    found, own = np.unique(content.values[seen], return_inverse=True)
    codes = np.full(len(seen), -1, dtype=np.int64)
    codes[seen] = own
    return Content("level", codes, [*map(plain_number, found.tolist())])


def counted(seen: Content) -> dict[Any, int]:
    """Return the number of cells of each level."""
    if seen.kind != "level":
        values, counts = np.unique(seen.values, return_counts=True)
        levels = [*map(bool if seen.kind == "bool" else plain_number, values.tolist())]
        return dict(zip(levels, counts.tolist(), strict=True))
    counts = np.bincount(seen.values, minlength=len(seen.levels))
    found: dict[Any, int] = {}
    for code in np.flatnonzero(counts).tolist():  # two codes may have the same level
        level = seen.levels[code]
        found[level] = found.get(level, 0) + int(counts[code])
    return found


def shown(value: Any) -> str:
    """Format a value for a message, in one line."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    try:
        text = reprlib.repr(value)
    except ValueError:  # Python does not format whole numbers of thousands of digits
        text = f"<{type(value).__name__}>"
    return " ".join(text.splitlines())


def refusal(where: str, what: Any) -> InputError:
    """Return the error for an unreadable column; scikit-learn's tests expect its words."""
    return NoNumberError(
        f"{where} holds {what}: cells of this argument must be a string, a number, a boolean "
        "or a date; convert the column, or leave it out"
    )


def first(bad: np.ndarray) -> int:
    """Return the first row where `bad` holds."""
    return int(np.argmax(bad))


# --- arrays ---------------------------------------------------------------------------------------


def read_array(cells: np.ndarray, where: str) -> Content:
    """Read a column given as a vector; `where` names it in errors."""
    match cells.dtype.kind:
        case "f":
            return Content("number", _bounded(np.ascontiguousarray(cells, np.float64), where))
        case "i" | "u":
            return read_integers(cells)
        case "b":
            return Content("bool", cells.astype(np.float64))
        case "M":
            return Content("date", _as_days(cells, where))
        case "m":
            return Content("duration", _lengths(_as_days(cells, where), where))
        case "c":
            raise InputError(f"Complex data not supported: {where} holds {cells.dtype}")
        case "O" | "U" | "T":
            return read_objects(cells.tolist(), where)
    raise refusal(where, cells.dtype)


def read_levels(codes: np.ndarray, levels: Sequence[Any], where: str) -> Content:
    """Read a column of codes, -1 missing, and their levels."""
    if set(map(type, levels)) <= {str}:  # the usual case, and there may be many
        return Content("level", codes, levels)
    if any(isinstance(level, bytes) for level in levels):
        raise refusal(where, "bytes")
    plain = [_plain(level) for level in levels]
    if np.inf in plain:
        raise InputError(f"{where} has a level that is infinite, or beyond {LARGEST:g}")
    texts = [level for level in plain if isinstance(level, str)]
    others = [level for level in plain if level is not None and not isinstance(level, str)]
    if texts and others:
        raise InputError(
            f"{where} has the levels {shown(texts[0])}, a text, and {shown(others[0])}, a number: "
            "make all of them texts"
        )
    if len(texts) + len(others) < len(plain):  # one of the levels means "missing"
        known = np.array([level is not None for level in plain] + [False])
        codes = np.where(known, np.cumsum(known) - 1, -1)[codes]
        plain = [level for level in plain if level is not None]
    return Content("level", codes, plain)


def _plain(level: Any) -> str | int | float | bool | None:
    """Return a level that files can hold; an interval becomes text, for example."""
    if isinstance(level, str):
        return str.__str__(level)  # the value of an enumeration
    if is_missing(level):
        return None
    if isinstance(level, bool | np.bool_):
        return bool(level)
    if not isinstance(level, _NUMBERS) or isinstance(level, np.timedelta64):
        return str(level)
    if not -LARGEST <= level <= LARGEST:
        return np.inf
    return int(level) if level == int(level) else float(level)


def plain_number(value: float) -> int | float:
    """Return a whole number as int, whatever its type."""
    return int(value) if value.is_integer() else value


def _bounded(values: np.ndarray, where: str) -> np.ndarray:
    beyond = np.abs(values) > LARGEST
    if beyond.any():
        row = first(beyond)
        what = "infinity" if np.isinf(values[row]) else f"a value beyond {LARGEST:g}"
        raise InputError(f"Input X contains {what} at row {row}, {where}")
    return values


def read_integers(cells: np.ndarray, missing: np.ndarray | None = None) -> Content:
    """Read a column of whole numbers; `missing` cells may hold anything."""
    if cells.itemsize == 8 and is_inexact(cells.min()) | is_inexact(cells.max()):
        levels, codes = np.unique(cells, return_inverse=True)
        if missing is not None:
            codes[missing] = -1
        return Content("level", codes, levels.tolist())
    values = cells.astype(np.float64)
    if missing is not None:
        values[missing] = np.nan
    return Content("number", values)


def is_inexact(whole: Any) -> bool:
    """Return whether a float cannot represent the whole number exactly."""
    return bool(whole < -_EXACT or whole > _EXACT)


def _as_days(cells: np.ndarray, where: str, rows: Sequence[int] | None = None) -> np.ndarray:
    """Return days; for dates, day 0 is 1970-01-01.

    Cells may be only some `rows` of a column.
    """
    unit, count = np.datetime_data(cells.dtype)
    dates = cells.dtype.kind == "M"
    missing = np.isnat(cells)
    days = cells.astype(np.int64).astype(np.float64)
    if unit in _SECONDS:
        days *= count * _SECONDS[unit] / 86400.0
    elif dates and unit in ("Y", "M"):  # units of varying length
        near = np.abs(days) * count < -_FIRST_DAY
        days[near] = cells[near].astype("M8[D]").astype(np.int64)
        days[~near] = np.inf
    elif not missing.all():
        raise InputError(f"{where} holds {cells.dtype}: give it in days, or in seconds")
    days[missing] = np.nan
    if dates:
        beyond = (days < _FIRST_DAY) | (days >= _END)
        if beyond.any():
            row = first(beyond)
            raise _beyond_calendars(where, row if rows is None else rows[row])
    return days


def _lengths(days: np.ndarray, where: str) -> np.ndarray:
    """Return durations, if they can be converted back."""
    beyond = np.abs(days) > _LONGEST
    if beyond.any():
        raise InputError(f"{where} holds more than {_LONGEST:g} days in row {first(beyond)}")
    return days


def _beyond_calendars(where: str, row: int) -> InputError:
    return InputError(f"{where} holds a date beyond the years 1 to 9999 in row {row}")


def as_times(days: np.ndarray, kind: str) -> np.ndarray:
    """Convert days to dates or durations, to the microsecond; impossible dates are clipped."""
    if kind == "date":
        days = np.clip(days, _FIRST_DAY, _END - 1.0)
    days = np.clip(days, -_LONGEST, _LONGEST)
    missing = np.isnan(days)
    times = np.rint(np.where(missing, 0.0, days) * 86400e6).astype(np.int64)
    return np.where(missing, np.iinfo(np.int64).min, times).view(
        "M8[us]" if kind == "date" else "m8[us]"
    )


# --- objects --------------------------------------------------------------------------------------


def read_objects(cells: list[Any], where: str) -> Content:
    """Read a column of Python objects, which must be of one kind."""
    if set(map(type, cells)) == {str}:
        return _read_names(cells)
    cells = [None if is_missing(cell) else cell for cell in cells]
    kinds = {each: _kind_of(each) for each in set(map(type, cells)) - {type(None)}}
    found = set(kinds.values())
    if "" in found or (len(found) > 1 and found != {"bool", "number"}):
        raise _unlike(cells, kinds, where)
    if found == {"level"}:
        return _read_names(cells)
    if found == {"date"}:
        return Content("date", _read_times(cells, where))
    if found == {"duration"}:
        return Content("duration", _lengths(_read_times(cells, where), where))
    values = _bounded(as_floats(cells), where)
    if found == {"bool"}:
        return Content("bool", values)
    if may_be_rounded(values) and not all(map(_is_float, kinds)):
        names = _whole(cells)
        if names is not None:
            return _read_names(names)
    return Content("number", values)


def _kind_of(kind: type) -> str:
    """Return the kind of cells of a type; None if tables cannot have it."""
    return next((name for name, types in _KINDS if issubclass(kind, types)), "")


def is_missing(cell: Any) -> bool:
    """Return whether the object in a cell means "missing"."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True  # those of pandas, and of masked arrays
    if isinstance(cell, float | np.floating):
        return bool(cell != cell)
    if isinstance(cell, Decimal):
        return cell.is_nan()  # a signalling NaN cannot be compared
    return isinstance(cell, np.datetime64 | np.timedelta64) and bool(np.isnat(cell))


def _unlike(cells: list[Any], kinds: dict[type, str], where: str) -> InputError:
    """Return the error for cells of several kinds, or of an unknown kind."""
    rows: dict[str, int] = {}
    for row, cell in enumerate(cells):
        if cell is not None:
            rows.setdefault(kinds[type(cell)], row)
    if "" in rows:
        row = rows[""]
        if isinstance(cells[row], complex | np.complexfloating):
            return InputError(f"Complex data not supported: {where}, row {row}")
        return refusal(where, f"{shown(cells[row])} in row {row}")
    one, other = (
        f"{WORDS_OF_KINDS.get(kind, 'text')}, as {shown(cells[row])} in row {row}"
        for kind, row in [*rows.items()][:2]
    )
    return InputError(f"{where} holds {one}, and {other}: make all of its cells of one kind")


def may_be_rounded(values: np.ndarray) -> bool:
    """Return whether some numbers are so large that floats may have rounded them."""
    return bool((np.abs(values) >= _EXACT).any())


def _is_float(kind: type) -> bool:
    return issubclass(kind, float | np.floating)


def _whole(cells: list[Any]) -> list[Any] | None:
    """Return the cells as ints, if all are whole and one is too large for a float."""
    seen = [cell for cell in cells if cell is not None]
    if not any(is_inexact(cell) for cell in seen if not _is_float(type(cell))):
        return None
    if any(cell != int(cell) for cell in seen):
        return None
    return [None if cell is None else int(cell) for cell in cells]


def _read_names(cells: list[Any]) -> Content:
    """Read texts, or whole numbers too large for floats; None is missing."""
    levels = [cell for cell in dict.fromkeys(cells) if cell is not None]
    place: dict[Any, int] = {level: code for code, level in enumerate(levels)} | {None: -1}
    codes = np.fromiter(map(place.__getitem__, cells), dtype=np.int64, count=len(cells))
    return Content("level", codes, [_plain(level) for level in levels])


def as_floats(cells: list[Any]) -> np.ndarray:
    values = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        try:
            if cell is not None:
                values[row] = cell
        except OverflowError:  # a whole number of hundreds of digits
            values[row] = np.inf
    return values


def _read_times(cells: list[Any], where: str) -> np.ndarray:
    """Read dates or durations as days; those of NumPy and pandas have units."""
    days = np.full(len(cells), np.nan)
    of_unit: dict[Any, dict[int, Any]] = {}
    for row, cell in enumerate(cells):
        cell = with_unit(cell)
        if isinstance(cell, np.generic):
            of_unit.setdefault(cell.dtype, {})[row] = cell
        elif isinstance(cell, timedelta):
            days[row] = cell / _DAY
        elif cell is not None:
            days[row] = _date(row, cell, where)
    for dtype, own in of_unit.items():
        days[[*own]] = _as_days(np.array([*own.values()], dtype=dtype), where, [*own])
    return days


def with_unit(cell: Any) -> Any:
    """Convert a date or duration of pandas to NumPy, which can represent distant dates."""
    for name in ("to_datetime64", "to_timedelta64"):
        if hasattr(cell, name):
            return getattr(cell, name)()
    return cell


def _date(row: int, cell: Any, where: str) -> float:
    if not isinstance(cell, datetime):
        return float(cell.toordinal() - _EPOCH.toordinal())
    try:
        if cell.tzinfo is not None:
            cell = cell.astimezone(UTC).replace(tzinfo=None)
        return (cell - _EPOCH) / _DAY
    except OverflowError as error:
        raise _beyond_calendars(where, row) from error
