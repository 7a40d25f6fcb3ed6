"""Errors that name what was wrong. Each is also the built-in one that scikit-learn users expect."""

import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches

Warned = list[tuple[str, type[Warning]]]

_PACKAGE = os.path.dirname(__file__) + os.sep
_warned: ContextVar[Warned | None] = ContextVar("warned", default=None)


class DiscemError(Exception):
    """Base of all errors raised by this library."""


class InputError(DiscemError, ValueError):
    """Data that a model cannot take: the message names the row, column or value."""


class NoNumberError(InputError, TypeError):
    """A cell that holds neither a number nor text."""


class OptionError(DiscemError, ValueError):
    """An option with a value that does not exist or does not fit the others."""


class UnknownOptionError(OptionError, TypeError):
    """An option that does not exist."""


class ModelFileError(DiscemError, ValueError):
    """A file that is no model of this library, or a damaged one."""


class EngineError(DiscemError, RuntimeError):
    """Workers that are gone for good, or a scheduler that does not answer."""


class MissingExtraError(DiscemError, ImportError):
    """An optional dependency that is not installed."""


class SortedStreamWarning(UserWarning):
    """Labels of a stream come in long runs, from which a model learns the last classes only."""


class ConflictingLabelsWarning(UserWarning):
    """Documents of the same words have different labels."""


@contextmanager
def needing(what: str, install: str) -> Iterator[None]:
    """Say what an import in the block is for, and what to install, where it is not there."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(f"{what}: pip install {install}") from error


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Say in one line that a library cannot give its cells: a date that Python has not, say."""
    try:
        yield
    except DiscemError:
        raise
    except (ValueError, OverflowError, NotImplementedError) as error:
        message = " ".join(str(error).split())
        raise InputError(f"{what} cannot be read: {message}") from error


def hint_of(name: str, known: Iterable[str], otherwise: str) -> str:
    """What may have been meant by a name that is not known."""
    meant = get_close_matches(name, list(known), 1)
    return f"did you mean {meant[0]!r}?" if meant else otherwise


def warn(message: str, category: type[Warning]) -> None:
    """Warn whoever called this library, by the line of theirs that did."""
    warned = _warned.get()
    if warned is not None:
        warned.append((message, category))
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def collecting() -> Iterator[Warned]:
    """Keep the warnings of this thread instead of showing them: on a worker nobody sees them."""
    warned: Warned = []
    token = _warned.set(warned)
    try:
        yield warned
    finally:
        _warned.reset(token)
