"""One model, many threads: a reader sees the model before or after a change, never between.

Methods that ask a model are marked `reads`, methods that change it `writes`. Any number of threads
may read at the same time. A writer is alone. The lock is fair: a waiting writer goes before readers
that arrive later.

Why a lock? Readers of a value that one assignment replaces would need none. But a stream of words
changes its tables and its vocabulary in place, because there may be no room for two of them.
Compiled products over arrays that change under them would not check their bounds, so readers cannot
just try again either.

A method may call other methods of the same model, of both kinds. While training calls back, the
model is `lent`: the callback may ask it, and so may other threads, which the callback may wait for.

Locks are kept beside the models, not in them: a copy, a pickle or a file of a model has none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from itertools import takewhile
from threading import Lock, get_ident
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sklearn.utils.validation import check_is_fitted

Method = TypeVar("Method", bound=Callable[..., Any])


class ModelLock:
    """Held by the threads that read a model, or by the one that writes it, in their order.

    Ctrl-C may strike anywhere in here. It does no harm: all that is held is held by `with`, of
    locks that cannot be interrupted between taking and holding, and `leave` puts the rest in order.
    """

    def __init__(self) -> None:
        self.free()

    def free(self) -> None:
        """Forget all threads: after a fork there are no others."""
        self._mutex = Lock()
        self.inside: dict[int, bool] = {}  # threads, and whether they write
        self.queue: dict[int, bool] = {}  # those that wait, in the order in which they came
        self._lent = False  # whether others may read though there is a writer
        self._change = _held()  # let go of when something changes

    def enter(self, thread: int, writes: bool) -> None:
        """Wait until the thread may read, or write."""
        while True:
            with self._mutex:
                self.queue.setdefault(thread, writes)
                if self._may_enter(thread, writes):
                    self.inside[thread] = writes
                    del self.queue[thread]
                    return
                change = self._change
            with change:
                pass

    def _may_enter(self, thread: int, writes: bool) -> bool:
        """A writer must be alone, and first in the queue; a reader has no writer before it."""
        if self._lent:
            return not writes
        if any(self.inside.values()):
            return False
        if next(iter(self.queue)) == thread:
            return not (writes and self.inside)
        ahead = takewhile(lambda other: other != thread, self.queue)
        return not (writes or any(map(self.queue.__getitem__, ahead)))

    def leave(self, thread: int) -> None:
        """End what the thread did or waited for; once more does no harm."""
        with self._mutex:
            self.queue.pop(thread, None)
            if self.inside.pop(thread, False):
                self._lent = False
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
                if lent or all(self.inside.values()):
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


def _inside(lock: ModelLock, thread: int, writes: bool, method, *args, **kwargs):
    """Call a method between entering a lock and leaving it."""
    try:
        lock.enter(thread, writes)
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
        if thread in lock.inside:
            return method(self, *args, **kwargs)
        return _inside(lock, thread, False, method, self, *args, **kwargs)

    return call  # type: ignore[return-value]


def writes(method: Method) -> Method:
    """A method that changes a model."""

    @wraps(method)
    def call(self, *args, **kwargs):
        lock, thread = _lock_of(self), get_ident()
        if thread not in lock.inside:
            return _inside(lock, thread, True, method, self, *args, **kwargs)
        if not lock.inside[thread]:  # it would wait for itself
            raise RuntimeError("a model cannot be trained by what it calls to make a prediction")
        with lock.lending(False):
            return method(self, *args, **kwargs)

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

    @reads
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that is safe to share; read it with `discem.load`."""
        from ._files import save

        check_is_fitted(self)
        save(self, path)
