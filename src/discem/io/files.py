"""Result files that are whole, whatever happens while they are written."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import IO, Any, Literal


@contextmanager
def write_atomically(
    path: str | os.PathLike[str], mode: Literal["w", "wb"] = "w"
) -> Iterator[IO[Any]]:
    """Open a file to write that appears at the end of the block, whole, or not at all.

    What the block writes goes to a temporary file in the same folder, which takes the place of
    `path` when all of it is on the disk. If anything goes wrong before, Ctrl-C included, the
    temporary file is removed and a file that was there before is as it was.

    As with `open`, a link leads to its file, a file that is replaced keeps its permissions, and a
    new one has those of the user's umask. What is no file, such as a pipe or ``/dev/null``, cannot
    be replaced and is written to directly.

    Parameters
    ----------
    path : path
        The file to write.
    mode : {"w", "wb"}
        Text, in UTF-8, or bytes.

    Yields
    ------
    file object
        To write to. It is closed at the end of the block, so leave that to the block.

    Raises
    ------
    OSError
        If the file cannot be written, or not be replaced.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "result.txt"
    >>> with write_atomically(path) as file:
    ...     size = file.write("all of it")
    ...     path.exists()
    False
    >>> path.read_text()
    'all of it'
    """
    encoding = "utf-8" if mode == "w" else None
    old = _status(path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(path, mode, encoding=encoding) as file:
            yield file
        return
    permissions = 0o666 if old is None else old.st_mode & 0o777
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".discem-{token_hex(8)}.part")

    def create(name: str, flags: int) -> int:
        return os.open(name, flags, permissions)  # never open to more people than the old file

    try:
        with open(temporary, mode.replace("w", "x"), encoding=encoding, opener=create) as file:
            if old is not None:
                os.chmod(temporary, permissions)  # also what the umask took away
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        if error.filename == temporary:
            error.filename = os.fspath(path)  # the name that the caller knows
        raise
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    """What is known of a file, if it is there."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
