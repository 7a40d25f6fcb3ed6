"""Any array namespace: the core is written for the Python array API standard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .exceptions import InputError

# what overflows is caught by value where it matters: a step beyond all bounds has no direction
quiet = np.errstate(over="ignore", divide="ignore", invalid="ignore")


def namespace_of(array: Any) -> Any:
    """The module whose functions take this array: NumPy, or whatever names itself.

    Arrays that do not follow the standard by themselves, such as PyTorch's, are taken through
    `array_api_compat`, where it is installed.
    """
    if isinstance(array, np.ndarray | np.generic):
        return np
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    try:
        from array_api_compat import array_namespace
    except ImportError as error:
        kind = type(array).__name__
        raise InputError(f"{kind} is no standard array: pip install array-api-compat") from error
    return array_namespace(array)


def beside(host: Any, array: Any) -> Any:
    """Numbers of the host, in the namespace and on the device of another array."""
    if isinstance(array, np.ndarray):
        return np.asarray(host)
    return namespace_of(array).asarray(host, device=array.device)


def on_device(state: Any, array: Any) -> Any:
    """The state with all its numbers beside another array; whole numbers stay with the host."""
    return mapped(lambda own: beside(own, array) if own.dtype.kind == "f" else own, state)


def mapped(function: Callable[[np.ndarray], Any], state: Any) -> Any:
    """What a function makes of all arrays of the host in tuples, dicts and dataclasses."""
    if isinstance(state, np.ndarray):
        return function(state)
    if isinstance(state, dict):
        return {name: mapped(function, part) for name, part in state.items()}
    if isinstance(state, tuple):
        parts = [mapped(function, part) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    if is_dataclass(state) and not isinstance(state, type):
        names = [field.name for field in fields(state)]
        return replace(state, **{name: mapped(function, getattr(state, name)) for name in names})
    return state


def count_true(flags: Any) -> int:
    """How many of the flags are set."""
    if isinstance(flags, np.ndarray):
        return int(np.count_nonzero(flags))
    xp = namespace_of(flags)
    return int(xp.sum(xp.astype(flags, xp.int64)))


def segment_sum(values: Any, first: np.ndarray) -> Any:
    """Sums over the rows of each segment; segment j is the rows from first[j] to first[j + 1]."""
    if isinstance(values, np.ndarray) and len(first) > 1:
        return np.add.reduceat(values, first[:-1], axis=0)
    return _by_segment(namespace_of(values).sum, values, first)


def segment_max(values: Any, first: np.ndarray) -> Any:
    """The largest of the rows of each segment."""
    if isinstance(values, np.ndarray) and len(first) > 1:
        return np.maximum.reduceat(values, first[:-1], axis=0)
    return _by_segment(namespace_of(values).max, values, first)


def _by_segment(function: Any, values: Any, first: np.ndarray) -> Any:
    xp = namespace_of(values)
    if len(first) < 2:
        return values[:0, ...]
    parts = [function(values[a:b, ...], axis=0) for a, b in pairwise(first.tolist())]
    return xp.stack(parts, axis=0)
