"""Check output paths, and report progress."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..exceptions import DiscemError
from ..io.files import is_same_file, refuse_special

Named = str | os.PathLike[str] | int
"""A file by its path, or an open one by its number."""

Progress = Callable[[str, float, float | None], None]
"""Called with the name of the step, the share of all work done, and the training loss."""


class OutputError(DiscemError, OSError):
    """Raised if results cannot be written to a place."""


# --- what may be written over what ----------------------------------------------------------------
# Nothing that the work reads from, by whatever name. Patterns of names must be expanded before.


def output_folder(path: str | os.PathLike[str], inputs: Iterable[Named] = ()) -> Path:
    """Create the folder if necessary, and check before the work that it is writable."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from error
    _refuse_inputs(folder, folder, inputs, "folders")
    return folder


def output_file(path: str | os.PathLike[str], inputs: Iterable[Named] = ()) -> Path:
    """Check, before the work, that the file can be written."""
    file = Path(path)
    folder = Path(os.path.realpath(file)).parent  # of the file that a link leads to
    try:
        refuse_special(file)
    except OSError as error:
        raise OutputError(f"cannot write to {file}: {error.strerror}") from error
    if not folder.is_dir():
        raise OutputError(f"cannot write to {file}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"cannot write to {file}: no permission to write to {folder}")
    _refuse_inputs(file, file, inputs)
    return file


def standard_output(inputs: Iterable[Named]) -> None:
    """Check that the standard output is not an input file, which would grow without end."""
    try:
        is_file = stat.S_ISREG(os.fstat(1).st_mode)  # a terminal may be an input, too
    except OSError:  # it is closed
        return
    if is_file:
        _refuse_inputs(1, "standard output", inputs)


def _refuse_inputs(output: Named, name: Any, inputs: Iterable[Named], what: str = "files") -> None:
    if any(is_same_file(output, each) for each in inputs):
        raise OutputError(f"cannot write to {name}: it is one of the {what} that are read")
