"""Open Dask clients: a local cluster for one command, or an existing scheduler."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..exceptions import EngineError, needing

_SECONDS = 10.0  # seconds to wait for a scheduler to answer


@contextmanager
def open_client(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    """Open a client of a new local cluster, or of the scheduler at an address.

    Parameters
    ----------
    workers : int or None
        Number of processes, each with one thread.
    scheduler : str or None
        Address such as ``tcp://10.0.0.7:8786``.

    Yields
    ------
    distributed.Client
    """
    with needing("workers need dask and distributed", "'discem[dask]'"):
        import distributed
    for name in ("distributed", "asyncio"):  # their messages would hide the actual error
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if scheduler is not None:
        with _connected(distributed, scheduler) as client:
            yield client
        return
    cluster = local_cluster(n_workers=workers, silence_logs=logging.CRITICAL)
    with cluster, distributed.Client(cluster) as client:
        client.run(_leave_interrupts_to_us)
        yield client


def local_cluster(**options: Any) -> Any:
    """Return a cluster of single-threaded processes on this machine, without a dashboard."""
    from distributed import LocalCluster

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Port", UserWarning)  # from the dashboard
        return LocalCluster(threads_per_worker=1, dashboard_address=None, **options)


def _leave_interrupts_to_us() -> None:
    """Ignore Ctrl-C in workers: the terminal sends it to all processes, with long tracebacks."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=_SECONDS)
    except (OSError, ValueError, TypeError) as error:
        raise EngineError(f"{address}: no scheduler of dask answers there") from error
    with client:
        if not client.nthreads():
            raise EngineError(f"{address}: the scheduler has no workers; start some")
        yield client
