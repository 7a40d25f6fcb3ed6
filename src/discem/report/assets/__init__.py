"""The styles, scripts and templates of all pages."""

from pathlib import Path


def asset(name: str) -> str:
    """Return the content of a file in this folder."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
