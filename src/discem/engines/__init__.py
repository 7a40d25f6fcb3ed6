"""Engines: how the one update of the method is run."""
