"""The names that parts of a model have in files.

A file names the kind and the fields of what it holds, not the module that happens to define it: a
module may move and a tuple may gain a field with a default, and old files stay readable.
"""

from __future__ import annotations

from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type[Any])

KINDS: dict[str, type] = {}
_NAMES: dict[type, str] = {}


def savable(kind: Kind, name: str = "") -> Kind:
    """Let objects of this class stand in model files, under that name or the one of the class."""
    _NAMES[kind] = name or kind.__name__
    KINDS[_NAMES[kind]] = kind
    return kind


def name_of(kind: type) -> str | None:
    """The name that objects of this class have in files, if they can stand there."""
    name = _NAMES.get(kind)
    return name if name is not None and KINDS.get(name) is kind else None
