"""Model files: skops, never bare pickle, so that opening a file cannot run code."""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from ..exceptions import DiscemError, ModelFileError

# What a model of this library is made of beyond numbers, arrays and built-in containers.
_OWN = ("discem.",)


class MissingFilesExtra(DiscemError, ImportError):
    """The optional dependency for model files is not installed."""


def _skops():
    try:
        import skops.io
    except ImportError as error:
        raise MissingFilesExtra(
            "model files need skops: pip install 'discem[files]'"
        ) from error
    return skops.io


def save(model: Any, path) -> None:
    """Write a model; the file appears whole or not at all."""
    from .. import __version__

    path = Path(path)
    callback, model.callback = model.callback, None  # code does not belong into a file
    try:
        data = _skops().dumps({"format": "discem", "version": __version__, "model": model})
    finally:
        model.callback = callback
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def load(path) -> Any:
    """Read a model written by `save`.

    Only types of this library are trusted: a file that holds anything else is refused.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib, discem
    >>> X, y = np.array([[0.0], [0.1], [1.0], [1.1]]), ["a", "a", "b", "b"]
    >>> model = discem.GaussianNB(random_state=0).fit(X, y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.skops"
    >>> model.save(path)
    >>> discem.load(path).predict([[0.05]]).tolist()
    ['a']
    """
    io = _skops()
    path = Path(path)
    data = path.read_bytes()
    try:
        unknown = io.get_untrusted_types(data=data)
        foreign = [name for name in unknown if not name.startswith(_OWN)]
        if foreign:
            raise ModelFileError(f"{path}: refused, it holds a type that is not ours: {foreign[0]}")
        content = io.loads(data, trusted=unknown)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, ImportError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path} is no model file of discem, or it is damaged") from error
    if not isinstance(content, dict) or content.get("format") != "discem":
        raise ModelFileError(f"{path} is a skops file, but no model of discem")
    return content["model"]
