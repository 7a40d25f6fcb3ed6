"""Engines: different ways to run the one update over rows."""

from ._rule import Data, Done, Rule
from .dask import Dask, Session, Shards, balanced, is_skewed, join_targets, resolve_engine
from .device import Device, resolve_device
from .sequential import Sequential
from .threads import Threads, count_jobs, one_thread_each, with_jobs

__all__ = [
    "Dask",
    "Data",
    "Device",
    "Done",
    "Rule",
    "Sequential",
    "Session",
    "Shards",
    "Threads",
    "balanced",
    "count_jobs",
    "is_skewed",
    "join_targets",
    "one_thread_each",
    "resolve_device",
    "resolve_engine",
    "with_jobs",
]
