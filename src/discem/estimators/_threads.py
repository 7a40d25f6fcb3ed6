"""One model, many threads: who reads it sees it before or after a change, never between.

Methods that ask a model are marked `reads`, those that change it `writes`. Any number of threads
may read at a time, and one may write while none reads. Nobody waits for ever: a writer goes before
readers that come after it, and readers that waited for a writer go before the next one.

A method may call others of the same model, whatever they do. While training calls back, the model
is `lent`: the callback may ask it, and so may others, such as threads that the callback waits for.

Locks are kept beside the models, not in them: a copy, a pickle or a file of a model has none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from threading import Condition, Lock, get_ident
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Method = TypeVar("Method", bound=Callable[..., Any])


class ModelLock:
    """Held by the threads that read a model, or by the one that writes it."""

    def __init__(self) -> None:
        self.free()

    def free(self) -> None:
        """Forget all threads: after a fork there are no others."""
        self._mutex = Lock()
        self._changed = Condition(self._mutex)
        self.readers: set[int] = set()
        self.writer: int | None = None
        self._lent = False  # whether others may read though there is a writer
        self._waiting: set[int] = set()  # readers
        self._invited: set[int] = set()  # those that waited for the last writer
        self._writers_waiting = 0

    def read(self, thread: int) -> None:
        """Wait until the thread may read."""
        with self._mutex:
            if self.writer is None and not self._writers_waiting:
                self.readers.add(thread)
                return
            self._waiting.add(thread)
            try:
                while not self._may_read(thread):
                    self._changed.wait()
                self.readers.add(thread)
            finally:  # also if the wait was interrupted
                self._waiting.discard(thread)
                if thread in self._invited:
                    self._invited.discard(thread)
                    self._changed.notify_all()

    def _may_read(self, thread: int) -> bool:
        if self.writer is not None:
            return self._lent
        return not self._writers_waiting or thread in self._invited

    def write(self, thread: int) -> None:
        """Wait until the thread may write."""
        with self._mutex:
            self._writers_waiting += 1
            try:
                while self.writer is not None or self.readers or self._invited:
                    self._changed.wait()
                self.writer = thread
            finally:
                self._writers_waiting -= 1
                self._changed.notify_all()

    def leave(self, thread: int) -> None:
        """End what the thread did, if it did anything."""
        with self._mutex:
            self.readers.discard(thread)
            if self.writer == thread:
                self.writer, self._lent = None, False
                self._invited = set(self._waiting)
                self._changed.notify_all()
            elif self._writers_waiting or self.writer is not None:
                self._changed.notify_all()

    @contextmanager
    def lending(self, lent: bool) -> Iterator[None]:
        """Let others read, or not, while this thread is the writer."""
        before = self._lent
        self._lend(lent)
        try:
            yield
        finally:
            self._lend(before)

    def _lend(self, lent: bool) -> None:
        with self._mutex:
            self._lent = lent
            self._changed.notify_all()
            while not lent and self.readers:
                self._changed.wait()


_locks: WeakKeyDictionary[Any, ModelLock] = WeakKeyDictionary()


def _lock_of(model: Any) -> ModelLock:
    try:
        return _locks[model]
    except KeyError:
        return _locks.setdefault(model, ModelLock())


def _free_all() -> None:
    for lock in list(_locks.values()):
        lock.free()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)


def reads(method: Method) -> Method:
    """A method that asks a model, and changes nothing."""

    @wraps(method)
    def call(self, *args, **kwargs):
        lock, thread = _lock_of(self), get_ident()
        if thread in lock.readers or thread == lock.writer:
            return method(self, *args, **kwargs)
        try:
            lock.read(thread)
            return method(self, *args, **kwargs)
        finally:
            _leave(lock, thread)

    return call  # type: ignore[return-value]


def writes(method: Method) -> Method:
    """A method that changes a model."""

    @wraps(method)
    def call(self, *args, **kwargs):
        lock, thread = _lock_of(self), get_ident()
        if thread == lock.writer:
            with lock.lending(False):
                return method(self, *args, **kwargs)
        if thread in lock.readers:  # it would wait for itself
            raise RuntimeError("a model cannot be trained by what it calls to make a prediction")
        try:
            lock.write(thread)
            return method(self, *args, **kwargs)
        finally:
            _leave(lock, thread)

    return call  # type: ignore[return-value]


def _leave(lock: ModelLock, thread: int) -> None:
    try:
        lock.leave(thread)
    except BaseException:  # Ctrl-C on the way out; others wait for us to be gone
        lock.leave(thread)
        raise


@contextmanager
def lent(model: Any) -> Iterator[None]:
    """Let others read a model in training, between two of its steps."""
    with _lock_of(model).lending(True):
        yield


class Shared:
    """What all models are that several threads may use."""

    @reads
    def __getstate__(self) -> dict[str, Any]:
        # a pickle is written after this returns, when the model may be learning again
        state: Any = super().__getstate__()
        options = self.get_params(deep=False)  # type: ignore[attr-defined]
        return {name: state[name] if name in options else deepcopy(state[name]) for name in state}
