"""What a stream has learnt of its files, so that no row is learnt twice.

A model remembers, of each file, how many of its rows it has learnt, and by what the file is known
again: a hash of its name, for models are shared and names are private, its size, and a checksum of
its first bytes. A file that was written anew under the same name is another one; a file that grew
has new rows at its end. Standard input and pipes are not known again.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .._kinds import savable
from .sources import STDIN

_HEAD = 1 << 16  # bytes by which a file is known again


@savable
class Seen(NamedTuple):
    """What was learnt of a file."""

    rows: int
    size: int  # bytes that there were
    check: int  # of the first of them
    whole: bool = False  # whether these were all rows

    def check_numbers(self) -> None:
        """Refuse what no stream can have left; it may come from anywhere."""
        from .._checks import check_count, demand  # they load NumPy, which commands do later

        for name in ("rows", "size", "check"):
            check_count(f"{name} of a file", getattr(self, name))
        demand(isinstance(self.whole, bool), "what was learnt of a file is not said")


class Trail:
    """What a stream learns of its files, from what was learnt of them before."""

    def __init__(self, known: dict[str, Seen]):
        self.known = dict(known)
        self._now: str | None = None  # the file that is read now

    def begin(self, path: str) -> int | None:
        """A file is to be read: how many of its rows to leave out; None is all of them."""
        self.end()
        if path == STDIN or not os.path.isfile(path):
            return 0
        key, new = _key(path), Seen(0, os.path.getsize(path), _checksum(path))
        old = self.known.get(key)
        same = old is not None and old.size <= new.size and old.check == _checksum(path, old.size)
        if old is None or not same:
            self.known[key] = new
        elif old.whole and old.size == new.size:
            return None
        else:
            self.known[key] = new._replace(rows=old.rows)
        self._now = key
        return self.known[key].rows

    def rows(self, paths: Iterable[str]) -> int:
        """How many rows were learnt of these files, or of others that had their names."""
        return sum(self.known[key].rows for key in map(_key, paths) if key in self.known)

    def learnt(self, rows: Mapping[str, int]) -> None:
        """So many rows were learnt of files that have begun."""
        for path, count in rows.items():
            old = self.known.get(_key(path))
            if old is not None:
                self.known[_key(path)] = old._replace(rows=old.rows + count)

    def end(self) -> None:
        """The last file has ended."""
        if self._now is not None:
            self.known[self._now] = self.known[self._now]._replace(whole=True)
            self._now = None


def _key(path: str) -> str:
    return hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:16]


def _checksum(path: str, size: int = _HEAD) -> int:
    with open(path, "rb") as file:
        return zlib.crc32(file.read(min(size, _HEAD)))
