"""Checks of what comes out of a file, before anything uses it.

Every kind that can stand in a model file says itself what a good one is, by these; see
`estimators._files`.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from .exceptions import ModelFileError

NUMBER = int | float | np.integer | np.floating
_LARGEST = 1e300  # sums of more would overflow
_MOST = 2**53  # of counts: beyond, numbers are not whole any more


def demand(holds: Any, reason: str) -> None:
    """Refuse a model, for this reason, unless something holds."""
    if not holds:
        raise ModelFileError(reason)


def check_array(
    name: str,
    value: Any,
    shape: tuple[int, ...],
    least: float = -inf,
    above: float = -inf,
    most: float = inf,
    dtype: Any = np.float64,
    holes: bool = False,
) -> None:
    """See that it is an array of that type and shape, in one piece, of finite numbers in bounds.

    With `holes`, they may be NaN.
    """
    demand(isinstance(value, np.ndarray), f"{name} is not an array")
    demand(value.dtype == dtype, f"{name} holds {value.dtype}, not {np.dtype(dtype)}")
    demand(value.shape == shape, f"{name} has the shape {value.shape}, not {shape}")
    demand(value.flags.c_contiguous, f"{name} is not in one piece")
    numbers = value[~np.isnan(value)] if holes else value
    if numbers.size:
        _check_bounds(name, numbers.min(), numbers.max(), least, above, most)


def check_number(
    name: str,
    value: Any,
    least: float = -inf,
    above: float = -inf,
    most: float = inf,
    kind: Any = NUMBER,
) -> None:
    """See that it is a finite number of that kind, in bounds."""
    demand(isinstance(value, kind) and not isinstance(value, bool), f"{name} is not a number")
    _check_bounds(name, value, value, least, above, most)


class Array(NamedTuple):
    """What an array of a model is, see `check_array`."""

    shape: tuple[int, ...]
    least: float = -inf
    above: float = -inf
    most: float = inf
    dtype: Any = np.float64
    holes: bool = False

    def check(self, name: str, value: Any) -> None:
        check_array(name, value, *self)


class Number(NamedTuple):
    """What a number of a model is, see `check_number`."""

    least: float = -inf
    above: float = -inf
    most: float = inf
    kind: Any = float

    def check(self, name: str, value: Any) -> None:
        check_number(name, value, *self)


def check_weight(name: str, value: Any) -> None:
    """See that it can be the total weight of a running average, by which sums are divided."""
    check_number(name, value, least=0.0)
    demand(value == 0.0 or value > 1e-5, f"{name} is next to nothing")


def check_count(name: str, value: Any, least: int = 0, most: int = _MOST) -> None:
    """See that it is a whole number in bounds."""
    demand(isinstance(value, int | np.integer), f"{name} is not a whole number")
    check_number(name, value, least, most=most)


def check_plain(name: str, value: Any) -> None:
    """See that it is made of texts, numbers, lists and dicts, or tuples of the library."""
    if isinstance(value, dict):
        demand(all(isinstance(key, str) for key in value), f"{name} has a key that is no text")
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            check_plain(name, each)
    else:
        plain = value is None or isinstance(value, str | bool | NUMBER)
        demand(plain, f"{name} holds a {type(value).__name__}")


def _check_bounds(name: str, low: Any, high: Any, least: float, above: float, most: float) -> None:
    small = low > -_LARGEST and high < _LARGEST  # NaN is neither
    demand(small, f"{name} is not finite, or beyond all use")
    demand(low >= least, f"{name} is below {least:g}")
    demand(low > above, f"{name} is not above {above:g}")
    demand(high <= most, f"{name} is above {most:g}")
