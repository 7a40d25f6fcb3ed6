"""Processes that do work one piece at a time, and none of which outlives the one that waits."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from discem.exceptions import DiscemError

_NEW = get_context("spawn")  # a fork would copy the locks of threads that it does not copy


class NotPossibleError(DiscemError):
    """Raised by work that this machine cannot do, with the reason and the remedy."""


class Outcome(NamedTuple):
    """What became of a piece of work: one of the three texts is there."""

    seconds: float
    result: str = ""  # as JSON
    impossible: str = ""  # why this machine cannot do it
    failed: str = ""  # a line that says what went wrong, and the way there


class Workers:
    """`jobs` processes, each on one thread; a ``with`` block ends them, however it is left.

    Ctrl-C is for the process that waits, so they do not get it.
    """

    def __init__(self, jobs: int, environment: dict[str, str]):
        self.processes: dict[Any, Any] = {}
        self.jobs, self.environment = jobs, environment

    def __enter__(self) -> Workers:
        with _no_interrupts():
            for _ in range(self.jobs):
                ours, theirs = _NEW.Pipe()
                process = _NEW.Process(target=_serve, args=(theirs, self.environment), daemon=True)
                process.start()
                theirs.close()  # so that ours ends when the process does
                self.processes[ours] = process
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
        for pipe, process in self.processes.items():
            process.join()
            pipe.close()

    def do(self, calls: Sequence[tuple[Callable, dict[str, Any]]]) -> Iterator[tuple[int, Outcome]]:
        """Begin ``work(**settings)`` in the order given; places and outcomes, as they come."""
        left = iter(range(len(calls)))
        busy: dict[Any, int] = {}

        def give(pipe: Any) -> None:
            place = next(left, None)
            if place is not None:
                pipe.send(calls[place])
                busy[pipe] = place

        for pipe in self.processes:
            give(pipe)
        while busy:
            ready: Any = wait(list(busy))
            for pipe in ready:
                place = busy.pop(pipe)
                try:
                    outcome = pipe.recv()
                except (EOFError, OSError):
                    process = self.processes[pipe]
                    process.join()
                    why = f"the process died, exit code {process.exitcode}; is there enough memory?"
                    outcome = Outcome(0.0, failed=why)
                else:
                    give(pipe)
                yield place, outcome


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C for a moment: processes that are started meanwhile do so for ever."""
    if threading.current_thread() is not threading.main_thread():  # others cannot, nor get it
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _serve(pipe: Connection, environment: dict[str, str]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.update(environment)
    while True:
        try:
            work, settings = pipe.recv()
        except EOFError:
            return
        pipe.send(_outcome(work, settings))


def _end_with_parent() -> None:
    """End also in the midst of work if whoever waits for it was killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _outcome(work: Callable, settings: dict[str, Any]) -> Outcome:
    begun = time.perf_counter()
    try:
        with threadpool_limits(1):
            result = json.dumps(work(**settings), allow_nan=False)
    except NotPossibleError as error:
        return Outcome(0.0, impossible=str(error))
    except Exception as error:
        line = traceback.format_exception_only(error)[-1].strip()
        return Outcome(0.0, failed=f"{line}\n{traceback.format_exc()}")
    return Outcome(round(time.perf_counter() - begun, 2), result)
