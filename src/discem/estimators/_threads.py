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
from threading import Lock, get_ident
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Method = TypeVar("Method", bound=Callable[..., Any])


class ModelLock:
    """Held by the threads that read a model, or by the one that writes it.

    Ctrl-C may strike anywhere in here. It does no harm: all that is held is held by `with`, of
    locks that cannot be interrupted between taking and holding, and `leave` puts the rest in order.
    """

    def __init__(self) -> None:
        self.free()

    def free(self) -> None:
        """Forget all threads: after a fork there are no others."""
        self._mutex = Lock()
        self.readers: set[int] = set()
        self.writer: int | None = None
        self._lent = False  # whether others may read though there is a writer
        self._next_readers: set[int] = set()
        self._next_writers: set[int] = set()
        self._invited: set[int] = set()  # readers that waited for the last writer
        self._change = _held()  # let go of when something changes

    def read(self, thread: int) -> None:
        """Wait until the thread may read."""
        while True:
            with self._mutex:
                if self._may_read(thread):
                    self.readers.add(thread)
                    self._next_readers.discard(thread)
                    self._invited.discard(thread)
                    return
                self._next_readers.add(thread)
                change = self._change
            with change:
                pass

    def _may_read(self, thread: int) -> bool:
        if self.writer is not None:
            return self._lent
        return not self._next_writers or thread in self._invited

    def write(self, thread: int) -> None:
        """Wait until the thread may write."""
        while True:
            with self._mutex:
                if self.writer is None and not self.readers and not self._invited:
                    self.writer = thread
                    self._next_writers.discard(thread)
                    return
                self._next_writers.add(thread)
                change = self._change
            with change:
                pass

    def leave(self, thread: int) -> None:
        """End what the thread did or waited for; once more does no harm."""
        with self._mutex:
            self.readers.discard(thread)
            self._next_readers.discard(thread)
            self._next_writers.discard(thread)
            self._invited.discard(thread)
            if self.writer == thread:
                self._invited = set(self._next_readers)
                self.writer, self._lent = None, False
            if self._next_readers or self._next_writers or self.writer is not None:
                self._tell()

    def _tell(self) -> None:
        """Wake all that wait, to look whether it is their turn."""
        before, self._change = self._change, _held()
        before.release()

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
        while True:
            with self._mutex:
                self._lent = lent
                if lent:
                    self._tell()
                if lent or not self.readers:
                    return
                change = self._change
            with change:
                pass


def _held() -> Any:
    lock = Lock()
    lock.acquire()
    return lock


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


def _inside(lock: ModelLock, enter: Callable[[int], None], thread: int, method, *args, **kwargs):
    """Call a method between entering a lock and leaving it."""
    try:
        enter(thread)
        return method(*args, **kwargs)
    finally:
        try:
            lock.leave(thread)
        except BaseException:  # Ctrl-C on the way out; others wait for us to be gone
            lock.leave(thread)
            raise


def reads(method: Method) -> Method:
    """A method that asks a model, and changes nothing."""

    @wraps(method)
    def call(self, *args, **kwargs):
        lock, thread = _lock_of(self), get_ident()
        if thread in lock.readers or thread == lock.writer:
            return method(self, *args, **kwargs)
        return _inside(lock, lock.read, thread, method, self, *args, **kwargs)

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
        return _inside(lock, lock.write, thread, method, self, *args, **kwargs)

    return call  # type: ignore[return-value]


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
