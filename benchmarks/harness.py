"""What benchmarks share: fresh processes on one core, peak memory, seconds, log-loss, results."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
STATUS, STAT, RESET = (Path("/proc/self", name) for name in ("status", "stat", "clear_refs"))


class FailedError(RuntimeError):
    """Work in another process that ended without an answer; the message says why."""


# --- processes ------------------------------------------------------------------------------------


def in_process(work: Callable[..., Any], *arguments: Any, limit: float | None = None) -> Any:
    """What `work(*arguments)` returns in a fresh interpreter on one core, within `limit` seconds.

    A fresh interpreter, so that no method profits from what another has loaded or allocated.
    """
    os.environ.update(ONE_THREAD)  # read by libraries as the child loads them
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    try:
        if not ours.poll(limit):
            raise FailedError(f"stopped after {limit:g} s")
        good, answer = ours.recv()
    except EOFError:
        process.join()
        raise FailedError(f"the process died, exit code {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
    if not good:
        raise FailedError(answer)
    return answer


def _answer(connection: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    use_one_core()
    try:
        connection.send((True, work(*arguments)))
    except Exception as error:
        traceback.print_exc()
        connection.send((False, f"{type(error).__name__}: {error}".split("\n")[0]))


def _end_with_parent() -> None:
    """So that a benchmark which was killed leaves nothing running."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def use_one_core() -> None:
    """Stay on one core: a limit of threads does not bind those that a method starts itself.

    It is the core that we were started on, which was idle: two benchmarks at once then have two.
    """
    if STAT.exists() and hasattr(os, "sched_setaffinity"):
        fields = STAT.read_text().rpartition(")")[2].split()  # the name before may have blanks
        os.sched_setaffinity(0, {int(fields[36])})


# --- memory ---------------------------------------------------------------------------------------


def peak_memory() -> int:
    """The most bytes that this process has held since `reset_peak`, or ever where that fails."""
    if STATUS.exists():  # getrusage would count the peak of the parent process as well
        return _status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> int:
    """Forget the peak so far; the bytes held now."""
    if not STATUS.exists():
        return peak_memory()
    RESET.write_text("5")
    return _status("VmRSS")


def _status(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


# --- figures --------------------------------------------------------------------------------------


def clock(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """What `work(*arguments)` returns, and its seconds."""
    begun = time.perf_counter()
    result = work(*arguments)
    return result, time.perf_counter() - begun


def seconds_of(work: Callable[..., Any], *arguments: Any) -> float:
    """Seconds of `work(*arguments)`."""
    return clock(work, *arguments)[1]


@contextmanager
def words_clock() -> Iterator[list[float]]:
    """Seconds of each use of scikit-learn's CountVectorizer by what runs inside."""
    seconds: list[float] = []

    def timed(original: Callable[..., Any]) -> Callable[..., Any]:
        def work(*arguments: Any) -> Any:
            result, spent = clock(original, *arguments)
            seconds.append(spent)
            return result

        return work

    with ExitStack() as patches:
        for name in ("fit_transform", "transform"):
            timer = timed(getattr(CountVectorizer, name))
            patches.enter_context(mock.patch.object(CountVectorizer, name, timer))
        yield seconds


def log_loss(labels: np.ndarray, probabilities: np.ndarray, classes: np.ndarray) -> float:
    """Mean -ln p(label), no p below 1e-15; a label that is not among the classes has p = 0."""
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    p = np.where(classes[place] == labels, probabilities[np.arange(len(labels)), place], 0.0)
    return float(-np.log(np.clip(p, 1e-15, 1.0)).mean())


# --- results --------------------------------------------------------------------------------------


def versions(*peers: str) -> dict[str, str]:
    """Versions of what takes part, also of `peers` that are installed."""
    import laboratory  # here, so that a process of a peer does not load it

    found = laboratory.versions(*peers)
    return found | {"machine": f"{found['machine']}, {os.cpu_count()} cores, one used"}


def write_json(path: str | Path, content: Any) -> None:
    """Write results, so that hours of work are not lost to an interruption of the writing."""
    from discem.io.files import write_atomically

    with write_atomically(path) as file:
        file.write(json.dumps(content, indent=2) + "\n")
