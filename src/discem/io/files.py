"""Write result files atomically: complete, or not at all."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import IO, Any, Literal

try:
    import fcntl
except ImportError:  # Windows, where temporary files of a killed process stay
    fcntl = None  # type: ignore[assignment]

_TEMPORARY = re.compile(r"\.discem-[0-9a-f]{16}\.part")


@contextmanager
def write_atomically(
    path: str | os.PathLike[str], mode: Literal["w", "wb"] = "w"
) -> Iterator[IO[Any]]:
    """Open a file for writing that appears complete at the end of the block, or not at all.

    The block writes to a temporary file in the same folder, which replaces `path` when all of it is
    on the disk. On any error before that, Ctrl-C included, the temporary file is removed and an
    existing file stays unchanged. Temporary files of killed processes are removed by the next
    process that writes to the folder.

    As with `open`, links are followed, a replaced file keeps its permissions, and a new file
    follows the umask. Special files such as a pipe or ``/dev/null`` are an error.

    Parameters
    ----------
    path : path
        The file to write.
    mode : {"w", "wb"}
        Text, in UTF-8, or bytes. Halves of characters, which UTF-8 cannot hold, are escaped.

    Yields
    ------
    file object
        Write to it, but do not close it: the block does that.

    Raises
    ------
    OSError
        If the file cannot be written or replaced.

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
    old = _status(path)
    refuse_special(path, old)
    permissions = 0o666 if old is None else old.st_mode & 0o777
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    _remove_orphans(folder)
    try:
        temporary, descriptor = _create(folder, permissions)
    except OSError as error:
        error.filename = os.fspath(path)  # the name that the caller knows
        raise
    encoding, errors = ("utf-8", "backslashreplace") if mode == "w" else (None, None)
    try:
        closing = fcntl is None
        with open(descriptor, mode, encoding=encoding, errors=errors, closefd=closing) as file:
            if old is not None:
                os.chmod(temporary, permissions)  # also what the umask took away
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        if error.filename == temporary:
            error.filename = os.fspath(path)
        raise
    finally:
        with suppress(OSError):
            os.unlink(temporary)
        if fcntl is not None:
            os.close(descriptor)  # and with it the lock: not before the file has its final name


def refuse_special(path: str | os.PathLike[str], status: os.stat_result | None = None) -> None:
    """Raise OSError if `path` is a folder, a device or a pipe."""
    status = status or _status(path)
    if status is None or stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", os.fspath(path))
    raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", os.fspath(path))


def is_same_file(one: str | os.PathLike[str] | int, other: str | os.PathLike[str] | int) -> bool:
    """Return whether two paths or open files are the same file, also through links."""
    try:
        return os.path.samestat(os.stat(one), os.stat(other))
    except OSError:
        return False


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


# --- temporary files ------------------------------------------------------------------------------
# Whoever writes one holds a lock on it, which the system lets go of when the process ends, however
# it ends. So one that can be locked has been left by a process that was killed.


def _create(folder: str, permissions: int) -> tuple[str, int]:
    """Create a locked temporary file, with no more permissions than `path`."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        path = os.path.join(folder, f".discem-{token_hex(8)}.part")
        descriptor = os.open(path, flags, permissions)
        if _lock(descriptor) and os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # another process removed it before it was locked
        with suppress(OSError):
            os.unlink(path)


def _lock(descriptor: int) -> bool:
    """Lock a file unless another process has; return True on systems without locks."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
    return True


def _remove_orphans(folder: str) -> None:
    """Remove our temporary files that no process holds."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_orphan(entry.path)


def _remove_orphan(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError: it is being written
            os.unlink(path)
    finally:
        os.close(descriptor)
