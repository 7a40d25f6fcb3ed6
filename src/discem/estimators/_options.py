"""The options of estimators: declared once, as fields, and their validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from sklearn.utils import check_random_state

from .._checks import NUMBER
from ..engines import count_jobs, resolve_device, resolve_engine
from ..exceptions import OptionError, UnknownOptionError, hint_of

Estimator = TypeVar("Estimator", bound=type)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def with_options(estimator: Estimator) -> Estimator:
    """Make the fields of a class its options, after those of its base classes."""
    dataclass(kw_only=True, eq=False, repr=False)(estimator)
    estimator.__init__.__annotations__.clear()  # type: ignore[misc]  # which would say Any
    return estimator


def of(path: str) -> Any:
    """Return a property that reads an attribute of a part, such as "learner_.stream"."""
    return property(attrgetter(path))


class Named:
    """An estimator whose options have names; unknown names are an error."""

    def __new__(cls, *args, **options):
        known = cls._get_param_names()  # type: ignore[attr-defined]
        for name in options:
            if name not in known:
                hint = hint_of(name, known, f"there are: {known}")
                raise UnknownOptionError(f"{cls.__name__} has no option {name!r}; {hint}")
        return super().__new__(cls)


def is_count(value) -> bool:
    """Return whether an option is a whole number >= 1."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def check_whole(name: str, value, *others) -> None:
    """Check that an option is a whole number >= 1, or one of the other values."""
    if value not in others and not is_count(value):
        words = "".join(f"{other!r} or " for other in others)
        raise OptionError(f"{name}={value!r} must be {words}a whole number >= 1")


def check_words(estimator, **allowed: Sequence) -> None:
    """Check that options with a set of words have one of these words."""
    for name, words in allowed.items():
        value = getattr(estimator, name)
        if value not in words:
            *most, last = map(repr, words)
            raise OptionError(f"{name}={value!r} must be {', '.join(most)} or {last}")


def check_positive(name: str, value, *others) -> None:
    """Check that an option is a number > 0, or one of the other values."""
    number = isinstance(value, NUMBER) and not isinstance(value, bool)
    if value not in others and not (number and 0 < value < np.inf):
        words = "".join(f"{other!r} or " for other in others)
        raise OptionError(f"{name}={value!r} must be {words}a number > 0")


def check_common_options(estimator) -> None:
    """Check the options that several estimators share."""
    verbose, callback = estimator.verbose, estimator.callback
    if not (isinstance(verbose, int | np.integer) and verbose >= 0):
        raise OptionError(f"verbose={verbose!r} must be a whole number >= 0")
    if callback is not None and not callable(callback):
        raise OptionError(f"callback={callback!r} must be None or a function of (model, record)")
    count_jobs(estimator.n_jobs)
    if resolve_device(estimator.device) and resolve_engine(estimator.engine):
        raise OptionError("device and engine do not go together: rows are here, or on workers")
    resolve_engine(estimator.engine)
    try:
        check_random_state(estimator.random_state)
    except ValueError as error:
        raise OptionError(f"random_state: {error}") from error


def check_share(name: str, value) -> None:
    """Check that an option is a share between 0 and 1, exclusive."""
    if not (isinstance(value, NUMBER) and 0 < value < 1):
        raise OptionError(f"{name}={value!r} must be between 0 and 1")


def check_unlabelled_weight(value) -> None:
    """Check that an option is a valid weight of unlabelled rows."""
    if value != "auto" and not (isinstance(value, NUMBER) and 0 <= value < np.inf):
        raise OptionError(f"unlabelled_weight={value!r} must be 'auto' or a number >= 0")
