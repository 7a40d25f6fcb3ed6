"""Any array namespace: the core is written for the Python array API standard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from math import copysign, log
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
    kind = type(array)
    if kind not in _COMPATIBLE:
        try:
            from array_api_compat import array_namespace

            _COMPATIBLE[kind] = array_namespace(array)
        except (ImportError, TypeError) as error:
            raise InputError(
                f"{kind.__name__} is no standard array: pip install array-api-compat"
            ) from error
    return _COMPATIBLE[kind]


_COMPATIBLE: dict[type, Any] = {}  # by the kind of an array, for this is asked at every turn


def beside(host: Any, array: Any) -> Any:
    """Numbers of the host, in the namespace, on the device and of the precision of another array.

    Whole numbers and flags stay what they are.
    """
    if isinstance(array, np.ndarray):
        return np.asarray(host)
    xp = namespace_of(array)
    own = xp.asarray(host, device=array.device)
    if xp.isdtype(own.dtype, "real floating") and xp.isdtype(array.dtype, "real floating"):
        return xp.astype(own, array.dtype, copy=False)
    return own


def here(array: Any) -> np.ndarray:
    """An array as NumPy's, which waits for it."""
    return array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()


def on_device(state: Any, array: Any) -> Any:
    """The state with all its numbers beside another array; whole numbers stay with the host."""
    return mapped(lambda own: beside(own, array) if own.dtype.kind == "f" else own, state)


def mapped(function: Callable[[Any], Any], state: Any, kind: Any = np.ndarray) -> Any:
    """What a function makes of all arrays of a kind in tuples, dicts and dataclasses."""
    if isinstance(state, kind):
        return function(state)
    if isinstance(state, dict):
        return {name: mapped(function, part, kind) for name, part in state.items()}
    if isinstance(state, list):
        return [mapped(function, part, kind) for part in state]
    if isinstance(state, tuple):
        parts = [mapped(function, part, kind) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    if is_dataclass(state) and not isinstance(state, type):
        names = [field.name for field in fields(state)]
        changed = {name: mapped(function, getattr(state, name), kind) for name in names}
        return replace(state, **changed)
    return state


def within(limit: float, array: Any) -> float:
    """A limit that suits double precision, as one that suits the precision of an array.

    The limits of the library are powers: what may be squared twice here may be squared twice there.
    """
    if isinstance(array, np.ndarray):
        return limit
    xp = namespace_of(array)
    share = log(float(xp.finfo(array.dtype).max)) / log(float(xp.finfo(xp.float64).max))
    return limit if share == 1.0 else copysign(abs(limit) ** share, limit)


def clipped(array: Any, low: float | None, high: float | None) -> Any:
    """The numbers, within limits that suit double precision."""
    bounds = (None if limit is None else within(limit, array) for limit in (low, high))
    return namespace_of(array).clip(array, *bounds)


def filled(values: Any, seen: Any) -> Any:
    """The numbers, 0 where one is NaN and so not seen."""
    if isinstance(values, np.ndarray):  # a choice for each, by flags in no order, takes longer
        return np.fmax(values, np.finfo(values.dtype).min) * seen
    xp = namespace_of(values)
    return xp.where(seen > 0, values, xp.zeros_like(values))


def count_true(flags: Any) -> Any:
    """How many of the flags are set; on a device nobody waits for the answer."""
    if isinstance(flags, np.ndarray):
        return int(np.count_nonzero(flags))
    xp = namespace_of(flags)
    return xp.sum(xp.astype(flags, xp.int64))


def may_be_true(flags: Any) -> bool:
    """Whether any of the flags may be set; of those on a device this is not waited for."""
    return bool(flags.any()) if isinstance(flags, np.ndarray) else True


def segment_sum(values: Any, first: Any, axis: int = 0) -> Any:
    """Sums over segments of an axis; segment j are the places from first[j] to first[j + 1]."""
    if isinstance(values, np.ndarray) and len(first) > 1:
        return np.add.reduceat(values, first[:-1], axis=axis)
    if hasattr(values, "index_add"):
        shape = list(values.shape)
        shape[axis] = len(first) - 1
        own = beside(segment_of(first, values.shape[axis]), values)
        return values.new_zeros(shape).index_add(axis, own, values)
    xp = namespace_of(values)
    found = _by_segment(xp.sum, xp.moveaxis(values, axis, 0), first)
    return xp.moveaxis(found, 0, axis)


def segment_max(values: Any, first: np.ndarray) -> Any:
    """The largest of the rows of each segment."""
    if isinstance(values, np.ndarray) and len(first) > 1:
        return np.maximum.reduceat(values, first[:-1], axis=0)
    if hasattr(values, "scatter_reduce"):
        nothing = values.new_full((len(first) - 1, *values.shape[1:]), -np.inf)
        own = beside(segment_of(first, len(values)), values)
        own = own.reshape(-1, *[1] * (values.ndim - 1)).expand_as(values)
        return nothing.scatter_reduce(0, own, values, "amax")
    return _by_segment(namespace_of(values).max, values, first)


def segment_of(first: Any, size: int) -> Any:
    """The segment that each of `size` places belongs to, where `first` is."""
    if isinstance(first, np.ndarray):
        return np.repeat(np.arange(len(first) - 1), np.diff(first))
    from torch import repeat_interleave

    return repeat_interleave(first.diff(), output_size=size)  # nobody waits for a length


def _by_segment(function: Any, values: Any, first: np.ndarray) -> Any:
    xp = namespace_of(values)
    if len(first) < 2:
        return values[:0, ...]
    parts = [function(values[a:b, ...], axis=0) for a, b in pairwise(first.tolist())]
    return xp.stack(parts, axis=0)
