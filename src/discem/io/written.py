"""Numbers and dates written as texts: detect the format, and write them back.

A column of texts holds numbers or dates if one format, and only one, fits all of its texts.
"03/04/2024" is the third of April or the fourth of March, so it stays a text, unless another cell
of the column decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from .cells import LARGEST, Content, as_times
from .texts import is_missing, iso_date

_AMOUNT = re.compile(
    r"(?P<sign>[-+]?)(?P<before>[$€£¥]?)\s?(?P<whole>\d{1,3}(?:,\d{3})+|\d*)(?P<rest>\.\d+|\.)?"
    r"(?P<power>[eE][-+]?\d+)?\s?(?P<after>[%$€£¥]?)"
)
_CODE = re.compile(r"[-+]?0\d")  # a number that starts with 0 is an identifier
_DATES = {
    "year/month/day": "%Y/%m/%d",
    "day.month.year": "%d.%m.%Y",
    "day/month/year": "%d/%m/%Y",
    "month/day/year": "%m/%d/%Y",
}
_EPOCH = datetime(1970, 1, 1)
_DAY = 86400.0


class Written(NamedTuple):
    """The format of numbers or dates."""

    kind: str  # "number" or "date"
    name: str  # of numbers, their unit, with "," if thousands are set apart; of dates, their order

    @property
    def message(self) -> str:
        """A description for the reason of a column's kind."""
        if self.kind == "date":
            return f"dates as text, {self.name}"
        unit = self.name.strip(",")
        return "numbers as text" + (f", with {unit}" if unit else "")

    def read(self, content: Content) -> Content:
        """Parse texts, with missing cells for others; without any match, return all unchanged."""
        if not content.is_text or not content.levels:
            return content
        values = [_value(text, self) for text in content.levels]
        if all(value is None for value in values):
            return content
        column = np.array([*values, np.nan], dtype=np.float64)[content.values]
        return Content(self.kind, column)

    def strays(self, content: Content) -> bool:
        """Return whether texts in other formats are among those that are parsed."""
        return content.is_text and any(_value(text, self) is None for text in content.levels)

    def write(self, values: np.ndarray) -> np.ndarray:
        """Format numbers or days as texts; None is missing."""
        texts = np.full(len(values), None, dtype=object)
        for row in np.flatnonzero(~np.isnan(values)).tolist():
            texts[row] = self._text(float(values[row]))
        return texts

    def _text(self, value: float) -> str:
        if self.kind == "date":
            time = as_times(np.array([value]), "date")[0].item()
            if self.name != "year-month-day":
                return time.strftime(_DATES[self.name])
            return str(time).removesuffix(" 00:00:00")
        unit, comma = self.name.strip(","), "," if "," in self.name else ""
        if unit in ("$", "€", "£", "¥"):
            return f"{'-' if value < 0 else ''}{unit}{abs(value):{comma}.2f}"
        text = f"{value:{comma}.0f}" if value == np.rint(value) else f"{value:{comma}.10g}"
        return text + unit


def written(texts: Iterable[str]) -> Written | None:
    """Return the only format that fits all texts, ignoring words for missing cells."""
    seen = [text.strip() for text in texts if not is_missing(text)]
    if not seen:
        return None
    amounts = [_amount(text) for text in seen]
    if all(amount is not None for amount in amounts):
        units = {unit for _, unit in amounts if unit is not None}  # type: ignore[misc]
        comma = "," if any("," in text for text in seen) else ""
        return Written("number", units.pop() + comma) if len(units) == 1 else None
    if all(map(_iso, seen)):
        return Written("date", "year-month-day")
    fit = [name for name in _DATES if all(_date(text, name) is not None for text in seen)]
    return Written("date", fit[0]) if len(fit) == 1 else None


def is_known(kind: str, name: str) -> bool:
    """Return whether the format exists."""
    if kind == "date":
        return name in ("year-month-day", *_DATES)
    return kind == "number" and str(name).strip(",") in ("", "%", "$", "€", "£", "¥")


def stray(texts: Sequence[str], counts: Sequence[int], share: float) -> str | None:
    """Return a text that keeps a column from being numbers, if such texts are few."""
    known = [(text, n) for text, n in zip(texts, counts, strict=True) if text.strip()]
    total = sum(n for _, n in known)
    others = [(text, n) for text, n in known if _amount(text.strip()) is None]
    few = 0 < sum(n for _, n in others) < share * total
    return others[0][0] if few else None


def _value(text: str, how: Written) -> float | None:
    """Return the value; NaN for a missing cell, None in another format."""
    text = text.strip()
    if is_missing(text):
        return np.nan
    if how.kind == "number":
        amount = _amount(text)
        return None if amount is None or amount[1] not in ("", how.name.strip(",")) else amount[0]
    return _iso(text) if how.name == "year-month-day" else _date(text, how.name)


def _amount(text: str) -> tuple[float, str] | None:
    """Return a number, and its unit."""
    found = _AMOUNT.fullmatch(text)
    if found is None or _CODE.match(text) or (found["before"] and found["after"]):
        return None
    digits = found["whole"].replace(",", "") + (found["rest"] or "")
    if not any(c.isdigit() for c in digits):
        return None
    value = float(found["sign"] + digits + (found["power"] or ""))
    if abs(value) > LARGEST or (value == np.rint(value) and abs(value) > 2**53):
        return None
    return value, found["before"] or found["after"]


def _iso(text: str) -> float | None:
    return _days(iso_date(text))


def _date(text: str, name: str) -> float | None:
    try:
        return _days(datetime.strptime(text, _DATES[name]))
    except ValueError:
        return None


def _days(time: datetime | None) -> float | None:
    if time is None:
        return None
    if time.tzinfo is not None:
        time = time.astimezone(UTC).replace(tzinfo=None)
    return (time - _EPOCH).total_seconds() / _DAY
