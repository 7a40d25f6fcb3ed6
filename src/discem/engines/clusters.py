"""Workers for as long as a command needs them: a cluster of this machine, or one that is there."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..exceptions import EngineError, needing

_SECONDS = 10.0  # to wait for a scheduler to answer


@contextmanager
def open_client(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    """A client of so many workers of this machine, or of the scheduler at an address.

    Parameters
    ----------
    workers : int or None
        Processes of one thread each.
    scheduler : str or None
        Such as ``tcp://10.0.0.7:8786``.

    Yields
    ------
    distributed.Client
    """
    with needing("workers need dask and distributed", "'discem[dask]'"):
        import distributed
    for name in ("distributed", "asyncio"):  # what matters is an error here
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
    """Processes of one thread each on this machine, without a dashboard."""
    from distributed import LocalCluster

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Port", UserWarning)  # of a dashboard
        return LocalCluster(threads_per_worker=1, dashboard_address=None, **options)


def _leave_interrupts_to_us() -> None:
    """Ctrl-C goes to all processes of a terminal, and workers would end with a page each."""
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
