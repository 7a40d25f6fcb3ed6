"""What pages are made of: styles, scripts and templates, one set for all of them."""

from pathlib import Path


def asset(name: str) -> str:
    """The content of a file of this folder."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
