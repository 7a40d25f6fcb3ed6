"""Numeric answers: reading them, and the scale on which models see them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr
from sklearn.utils.validation import column_or_1d

from .._checks import NUMBER, check_number, demand
from .._kinds import savable
from ..exceptions import InputError, NoNumberError, warn
from ..families.lognormal import SKEWED
from ..io.cells import LARGEST, as_floats, is_missing, shown
from ..io.column_kinds import skewness
from ..io.frames import check_table
from ..io.vectors import cells_of, check_there, columns_of, plain_name, unmasked

TARGETS = ("real", "positive", "count")
_ABSURD = 1e5  # times the usual distance from the median; numbers beyond are mistakes
_WIDEST = 600.0  # of a logarithm whose exponential may be squared


class Given(NamedTuple):
    """The answers of rows, as given."""

    values: np.ndarray  # (n, q), NaN if missing
    names: list[Any]  # column names of a frame; [] for a vector or an array
    flat: bool  # whether y was a vector


def read_numbers(y: Any, n_rows: int, needed: bool = True) -> Given:
    """Read a vector or several columns of numbers; None or NaN are missing."""
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    check_there(y, "y")
    found = _read(y)
    if len(found.values) != n_rows:
        raise InputError(f"X has {n_rows} rows but y has {len(found.values)}")
    values = found.values
    wrong = np.argwhere(np.isinf(values) | (np.abs(np.nan_to_num(values)) > LARGEST))
    if len(wrong):
        row, column = wrong[0]
        what = "infinity" if np.isinf(values[row, column]) else f"a value beyond {LARGEST:g}"
        where = f"row {row}" if found.flat else f"row {row}, column {_name(found, column)}"
        raise InputError(f"Input y contains {what} in {where}")
    empty = np.isnan(values).all(axis=0)
    if needed and empty.any():
        what = "y" if found.flat else f"column {_name(found, int(np.argmax(empty)))} of y"
        raise InputError(f"{what} has no number at all: every row is None or NaN")
    return found


def _name(found: Given, column: int) -> str:
    return repr(found.names[column]) if found.names else str(column)


def _read(y: Any) -> Given:
    names, column = columns_of(y) or ([], None)
    if column is not None and names:
        columns = [_numbers(column(j), f"column {name!r} of y") for j, name in enumerate(names)]
        return Given(np.column_stack(columns), [plain_name(name) for name in names], False)
    y = unmasked(y) if isinstance(y, np.ma.MaskedArray) else y
    if isinstance(y, list | tuple) and any(isinstance(row, list | tuple | np.ndarray) for row in y):
        check_table(y)  # names the row of a different length
        y = np.array([list(row) for row in y], dtype=object)
    if getattr(y, "ndim", 1) > 2 or getattr(y, "ndim", 1) == 0:
        raise InputError(f"y must be a vector or have columns, and has {y.ndim} axes")
    if getattr(y, "ndim", 1) == 2:
        if hasattr(y, "toarray"):
            raise InputError("y is a sparse matrix: give it as an array, by toarray()")
        if not y.shape[1]:
            raise InputError("y has no columns")
        columns = [_numbers(y[:, j], f"column {j} of y") for j in range(y.shape[1])]
        return Given(np.column_stack(columns), [], False)
    return Given(_numbers(y, "y")[:, None], [], True)


def _numbers(cells: Any, what: str) -> np.ndarray:
    """Read a column of numbers; an error names the row of other cells."""
    cells = cells_of(cells, "y")
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind == "c":
            column_or_1d(cells)
            raise InputError(f"Complex data not supported: {what} holds {cells.dtype}")
        if cells.dtype.kind in "buif":
            return cells.astype(np.float64)
        cells = cells.tolist()
    for row, cell in enumerate(cells):
        plain = isinstance(cell, NUMBER | Decimal | Fraction | np.bool_) or is_missing(cell)
        if isinstance(cell, np.timedelta64) or not plain:
            kind = InputError if isinstance(cell, str) else NoNumberError
            raise kind(
                f"{what} has {shown(cell)} in row {row}: a regressor needs numbers; for labels "
                "there is TableClassifier"
            )
    return as_floats([None if is_missing(cell) else cell for cell in cells])


# --- the scale of models --------------------------------------------------------------------------


@savable
class Response(NamedTuple):
    """The type of an answer: models see it unchanged, or its logarithm.

    "positive" answers are modelled by their logarithms. "count" answers, whole numbers from 0, are
    modelled by ln(1 + y), and their distribution is rounded.
    """

    kind: str  # one of TARGETS
    low: float  # the observed range, on the scale of the models
    high: float
    middle: float = 0.0  # the median on this scale
    spread: float = 0.0  # half the interquartile range; 0: no number is a mistake

    @classmethod
    def learn(cls, y: np.ndarray, kind: str, what: str) -> Response:
        """Determine the type of the numbers, if it is "auto"."""
        y = y[~np.isnan(y)]
        whole = bool((y == np.rint(y)).all())
        if kind == "auto":
            kind = _kind_of(y, whole)
        elif kind == "positive" and y.min() <= 0.0:
            raise InputError(f"target='positive', but {what} has {y.min():g}")
        elif kind == "count" and not (whole and y.min() >= 0.0):
            raise InputError(f"target='count', but {what} has numbers that are no counts")
        found = cls(kind, 0.0, 0.0)
        z = found.seen(y)
        first, middle, last = np.quantile(z, [0.25, 0.5, 0.75])
        found = found._replace(middle=float(middle), spread=float(last - first) / 2.0)
        taught = found.taught(y)
        absurd = np.isnan(taught)
        if absurd.any():
            warn(
                f"{what} has {y[absurd][0]:g}, which is nothing like the rest: {int(absurd.sum())} "
                f"of {len(y)} numbers are taken for missing, being {_ABSURD:g} times as far from "
                "the median as the usual one",
                UserWarning,
            )
        return found._replace(low=float(np.nanmin(taught)), high=float(np.nanmax(taught)))

    def seen(self, y: Any) -> Any:
        """Return answers on the scale of the models; impossible ones are missing."""
        y = np.asarray(y, dtype=np.float64)
        if self.kind == "real":
            return y
        more = 1.0 if self.kind == "count" else 0.0
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(y + more > 0.0, np.log(y + more), np.nan)

    def taught(self, y: Any) -> Any:
        """Return answers for training, on the scale of the models; mistakes are missing."""
        z = self.seen(y)
        if self.spread == 0.0:
            return z
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(z - self.middle) > _ABSURD * self.spread, np.nan, z)

    def given(self, z: Any) -> Any:
        """Convert from the scale of the models to the original scale."""
        if self.kind == "real":
            return z
        y = np.exp(np.clip(z, -700.0, 700.0))
        return np.maximum(y - 1.0, 0.0) if self.kind == "count" else y

    def moments(self, mean: Any, variance: Any) -> tuple[Any, Any]:
        """Return E[y] and E[y^2] of components, given means and variances on the models' scale.

        Exponentials have no bound, so values above twice the largest observed answer are clipped
        there.
        """
        if self.kind == "real":
            return mean, mean**2 + variance
        root, top = np.sqrt(variance), self.high + np.log(2.0)
        above = np.exp(log_ndtr((mean - top) / root))
        first, second = (
            np.exp(np.minimum(p * mean + 0.5 * p * p * variance, _WIDEST)
                   + log_ndtr((top - mean - p * variance) / root)) + np.exp(p * top) * above
            for p in (1, 2)
        )  # fmt: skip
        if self.kind == "positive":
            return first, second
        return first - 1.0, second - 2.0 * first + 1.0

    def log_prob(self, y: Any, mean: Any, variance: Any) -> Any:
        """Return ``ln p(y)`` in components: a probability for counts, else a density."""
        if self.kind == "count":
            root, whole = np.sqrt(variance), np.rint(y) == y
            with np.errstate(divide="ignore", invalid="ignore"):
                above = (np.log(y + 1.5) - mean) / root
                below = (np.log(np.maximum(y, 0.0) + 0.5) - mean) / root
            below = np.where(y < 0.5, -np.inf, below)
            turned = above + below > 0.0  # in the upper tail differences lose precision
            p = np.where(turned, ndtr(-below) - ndtr(-above), ndtr(above) - ndtr(below))
            near = -0.5 * np.minimum(np.abs(above), np.abs(below)) ** 2 - 40.0
            with np.errstate(divide="ignore"):
                found = np.where(p > 1e-290, np.log(np.maximum(p, 1e-300)), near)
            return np.where(whole & (y >= 0.0), found, -np.inf)
        z = self.seen(y)
        slope = z if self.kind == "positive" else 0.0
        found = -0.5 * ((z - mean) ** 2 / variance + np.log(2.0 * np.pi * variance)) - slope
        return np.where(np.isnan(z), -np.inf, found)

    def check(self) -> None:
        demand(self.kind in TARGETS, "it does not know what its answers are")
        check_number("least answer", self.low)
        check_number("largest answer", self.high, least=self.low)
        check_number("middle answer", self.middle)
        check_number("spread of answers", self.spread, least=0.0)


def _kind_of(y: np.ndarray, whole: bool) -> str:
    """Return the type of numbers: logarithms if they reduce the skewness of skewed numbers."""
    if len(np.unique(y)) <= 3 or y.min() < 0.0 or skewness(y) <= SKEWED:
        return "real"
    if y.min() > 0.0:
        return "positive" if abs(skewness(np.log(y))) < skewness(y) else "real"
    return "count" if whole and abs(skewness(np.log1p(y))) < skewness(y) else "real"
