"""The files that a command reads: documents, or the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..exceptions import InputError
from ..io.documents import Document, Labels, NoColumnError, read_documents
from ..io.files import is_same_file
from ..io.sources import STDIN, check_sources, expanded, find_format
from ._screen import Meter, Pace

if TYPE_CHECKING:
    from ..io.parts import Parts
    from ..io.table_files import Rows


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
        from ..report._output import output_file, standard_output

        check_sources(self.data, self.format)
        inputs = [*reads, *(0 if name == STDIN else name for name in self.data)]
        standard_output(inputs if replaces is None else [*inputs, replaces])
        if output is not None and not is_standard_output(output):
            output_file(output, inputs)

    def documents(
        self, text: str | None, label: str | None, hint: str, labels: Labels = "required"
    ) -> Iterator[Document]:
        """Their documents; the hint is for a file that has not the columns of any."""
        names = self._names(text, label, labels)
        try:
            yield from read_documents(self.data, format=self.format, **names)
        except NoColumnError as error:
            raise InputError(f"{error}; {hint}") from error

    def documents_on(
        self, client: Any, text: str | None, label: str | None, hint: str, meter: Meter
    ) -> Parts:
        """Their documents, read by workers."""
        from ..io import parts

        pace, names = Pace(meter, "reading"), self._names(text, label, "required")
        try:
            found = parts.parts_of(self.data, self.format, client.cluster is None)
            return parts.read_documents(client, found, pace.passed, **names)
        except NoColumnError as error:
            raise InputError(f"{error}; {hint}") from error

    def columns(self, text: str | None, label: str | None) -> dict[str, str]:
        """The columns of documents, by their roles, if there are any: lines of txt have none."""
        if all(find_format(name, self.format) == "txt" for name in self.data):
            return {}
        return {"text": text or "text", "label": label or "label"}

    def _names(self, text: str | None, label: str | None, labels: Labels) -> dict[str, Any]:
        names = {"text": text or "text", "label": label or "label", "labels": labels}
        return names | {"max_size": self.max_size}

    def rows(self, size: int) -> Iterator[Rows]:
        """Their rows, so many at a time."""
        from ..io.table_files import read_rows

        return read_rows(self.data, format=self.format, size=size, max_size=self.max_size)

    def rows_on(self, client: Any, target: str, apart: list[str], meter: Meter) -> Parts:
        """Their rows, read by workers."""
        from ..io import parts

        pace = Pace(meter, "reading", "row")
        found = parts.parts_of(self.data, self.format, client.cluster is None)
        return parts.read_tables(client, found, pace.passed, target, apart, self.max_size)

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
