"""Where results go, and how far the work is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..exceptions import DiscemError
from ..io.files import is_same_file, refuse_special

Progress = Callable[[str, float, float | None], None]
"""Called with the name of the step, the share of all work done, and the training loss."""


class OutputError(DiscemError, OSError):
    """A place that results cannot be written to."""


def output_folder(path: str | os.PathLike[str]) -> Path:
    """Make the folder if need be, and try to write to it: better now than after the work."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from error
    return folder


def output_file(
    path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | int] = ()
) -> Path:
    """See that a file can be written there, before the work that makes it.

    It may be none of `inputs`, paths or open files that the work reads from.
    """
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
    if any(is_same_file(file, each) for each in inputs):
        raise OutputError(f"cannot write to {file}: it is one of the files that are read")
    return file


class Steps:
    """Tells `progress` how far a known amount of work has come, also within a training run."""

    def __init__(self, progress: Progress | None, total: float):
        self.progress, self.total = progress, total
        self.name, self.done, self.cost = "", 0.0, 0.0

    def begin(self, name: str, cost: float = 1.0) -> None:
        """End the step before, start one that is `cost` out of `total`."""
        self.name, self.done, self.cost = name, self.done + self.cost, cost
        self._tell(0.0, None)

    def epoch(self, estimator: Any, record: dict[str, float]) -> None:
        """The `callback` of an estimator that trains within this step."""
        self._tell(record["epoch"] / estimator.max_iter, record["loss"])

    def _tell(self, share: float, loss: float | None) -> None:
        if self.progress is not None:
            self.progress(self.name, (self.done + share * self.cost) / self.total, loss)
