"""The files that a command reads: documents, or the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..io.files import is_same_file
from ..io.sources import STDIN, Skip, check_sources, expanded, expected_rows, find_format
from ._screen import Meter, Pace

if TYPE_CHECKING:
    from ..io.file_rows import Rows


class Source(NamedTuple):
    """Files by their names, and what was said of them."""

    data: list[str]
    format: str | None
    max_size: int

    @classmethod
    def of(cls, data: list[str], format: str | None, max_size: int) -> Source:
        """Files by their names, or by patterns of these."""
        return cls(expanded(data), format, max_size)

    def check(
        self, output: Path | None = None, reads: Sequence[Path] = (), replaces: Path | None = None
    ) -> None:
        """See, before the work, that there are such files, and that none of them is written to.

        Nor is what else the command `reads`, a model; one that goes on may be what it `replaces`.
        Each command calls this, for the names are those of files here: patterns are expanded.
        """
        check_sources(self.data, self.format)
        self.check_output(output, reads, replaces)

    def check_output(
        self, output: Path | None, reads: Sequence[Path] = (), replaces: Path | None = None
    ) -> None:
        """See that nothing that is read is written to."""
        from ..report._output import output_file, standard_output

        inputs = [*reads, *(0 if name == STDIN else name for name in self.data)]
        standard_output(inputs if replaces is None else [*inputs, replaces])
        if output is not None and not is_standard_output(output):
            output_file(output, inputs)

    def rows(self, size: int, skip: Skip | None = None) -> Iterator[Rows]:
        """Their rows, so many at a time."""
        from ..io.table_files import read_rows

        how: dict[str, Any] = {"format": self.format, "max_size": self.max_size, "skip": skip}
        return read_rows(self.data, size=size, **how)

    def expected(self) -> float | None:
        """About how many rows there are, if that is quickly known of all files."""
        found = [expected_rows(name, find_format(name, self.format)) for name in self.data]
        return None if None in found else sum(found)  # type: ignore[arg-type]

    def whole(self, meter: Meter) -> Rows:
        """All of their rows."""
        pace, parts = Pace(meter, "reading", "row"), []
        for rows in self.rows(1000):
            parts.append(rows)
            pace.passed(len(rows))
        return parts[0].joined(parts[1:])


def is_standard_output(path: Path) -> bool:
    """Also by the name of /dev/stdout, whatever that leads to: it is not to be replaced."""
    return str(path) == "-" or (str(path).startswith("/dev/") and is_same_file(path, 1))
