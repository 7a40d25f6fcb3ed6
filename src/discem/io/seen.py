"""Remember which files a stream has learnt, so that no row is learnt twice.

For each file, a model stores the number of learnt rows and an identity: a hash of its name (models
are shared, names are private), its size, and a checksum of its first bytes. A file written again
under the same name counts as another file; a file that grew has new rows at its end. Standard input
and pipes cannot be identified.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .._kinds import savable
from .sources import STDIN

_HEAD = 1 << 16  # bytes that identify a file


@savable
class Seen(NamedTuple):
    """What was learnt of a file."""

    rows: int
    size: int  # its size in bytes
    check: int  # checksum of its first bytes
    whole: bool = False  # whether all rows were learnt

    def check_numbers(self) -> None:
        """Validate the numbers, which may come from any file."""
        from .._checks import check_count, demand  # they load NumPy, which commands defer

        for name in ("rows", "size", "check"):
            check_count(f"{name} of a file", getattr(self, name))
        demand(isinstance(self.whole, bool), "what was learnt of a file is not said")


class Trail:
    """Track what a stream learns of its files, given what it learnt before."""

    def __init__(self, known: dict[str, Seen]):
        self.known = dict(known)
        self._now: str | None = None  # the current file

    def begin(self, path: str) -> int | None:
        """Start a file: return how many of its rows to skip; None is all of them."""
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
        """Return the number of rows learnt of these files, or of others with their names."""
        return sum(self.known[key].rows for key in map(_key, paths) if key in self.known)

    def learnt(self, rows: Mapping[str, int]) -> None:
        """Count rows that were learnt."""
        for path, count in rows.items():
            old = self.known.get(_key(path))
            if old is not None:
                self.known[_key(path)] = old._replace(rows=old.rows + count)

    def end(self) -> None:
        """End the last file."""
        if self._now is not None:
            self.known[self._now] = self.known[self._now]._replace(whole=True)
            self._now = None


def _key(path: str) -> str:
    return hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:16]


def _checksum(path: str, size: int = _HEAD) -> int:
    with open(path, "rb") as file:
        return zlib.crc32(file.read(min(size, _HEAD)))
