"""What a user is told of the distribution of a column, in one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import InputError
from ..families._distributions import OfCounts, OfNumbers
from ..io.cells import as_times, read_objects, shown
from ._options import check_share


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
