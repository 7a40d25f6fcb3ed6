"""Questions about rows that are not there yet: answers are collections of dask, too."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any

import numpy as np

from ..exceptions import InputError
from ..io.partitions import is_collection, lazily
from ._threads import Method


def by_partition(
    width: Callable[[Any], int | None] | None = None, dtype: Any = None
) -> Callable[[Method], Method]:
    """Let a question about X be one about each partition, where X is a collection of dask.

    Parameters
    ----------
    width : callable, optional
        From a model to the columns of the answer; None is that an answer is one number, or class.
    dtype : callable, optional
        From a model to the type of the answer; None is float.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def call(self, X, *args, **kwargs):
            if not is_collection(X):
                return method(self, X, *args, **kwargs)
            if args or kwargs:
                raise InputError(f"{method.__name__} of a collection of dask takes X alone")
            columns = None if width is None else width(self)
            answer = _Question(_alone(self), method.__name__)
            return lazily(X, answer, columns, np.float64 if dtype is None else dtype(self))

        return call  # type: ignore[return-value]

    return decorate


def n_classes(model: Any) -> int:
    """The columns of what is said of every class."""
    return len(model.classes_)


class _Question:
    """A method of a model that can be sent to others."""

    def __init__(self, model: Any, method: str):
        self.model, self.method = model, method

    def __call__(self, X: Any) -> Any:
        return getattr(self.model, self.method)(X)


def _alone(model: Any) -> Any:
    """The model as it is now, without what belongs to this process."""
    alone = copy(model)
    alone.set_params(callback=None, engine=None)
    return alone
