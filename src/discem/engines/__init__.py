"""Engines: how the one update is run."""

from ._protocol import Data, Done, Engine, Rule, check_needs
from .sequential import Sequential
from .threads import Threads, count_jobs, with_jobs

__all__ = [
    "Data",
    "Done",
    "Engine",
    "Rule",
    "Sequential",
    "Threads",
    "check_needs",
    "count_jobs",
    "with_jobs",
]
