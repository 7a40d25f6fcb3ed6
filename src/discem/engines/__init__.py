"""Engines: how the one update is run."""

from ._protocol import Data, Done, Engine, Rule, check_needs
from .sequential import Sequential

__all__ = ["Data", "Done", "Engine", "Rule", "Sequential", "check_needs"]
