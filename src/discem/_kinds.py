"""The names that parts of a model have in files.

A file names the kind and the fields of what it holds, not the module that happens to define it: a
module may move and a tuple may gain a field with a default, and old files stay readable.
"""

from __future__ import annotations

from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type[Any])

KINDS: dict[str, type] = {}


def savable(kind: Kind) -> Kind:
    """Let objects of this class stand in model files, under the name of the class."""
    KINDS[kind.__name__] = kind
    return kind
