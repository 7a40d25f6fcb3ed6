"""What commands read: files, and of these documents, or the rows of a table, as a model takes them.

The commands know `Reader` and `Batch` only. What differs between text and tables is in
`_documents.py` and `_tables.py`; what differs between answers that are classes and numbers, in
`_classes.py` and `_numbers.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..exceptions import InputError
from ..io.documents import LabelsNeeded
from ..io.files import is_same_file
from ..io.sources import STDIN, Skip, check_sources, expanded, expected_rows, find_format
from ._models import check_options, has_columns, is_regressor, is_table
from ._screen import Meter, Pace, Warnings, counted, note

if TYPE_CHECKING:
    from ..io.file_rows import Rows
    from ..io.seen import Trail


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


class Batch(ABC):
    """Some documents or rows."""

    part: str
    """What adds to the score of one of them."""
    X: Any
    """What the model takes."""
    labels: list[Any]
    """Their labels, or numbers, where they were asked for."""
    origin: dict[str, int]
    """How many of them each file had, by its name."""
    key: str
    """What the names are: the column that they come from."""
    names: list[Any]
    """One name for each: of a document, its text."""

    def __len__(self) -> int:
        return len(self.names)

    @abstractmethod
    def one(self, i: int) -> Any:
        """One of them, as `explain` of the model takes it."""

    def identity(self, i: int) -> dict[str, Any]:
        """What names one of them in a record; nothing names a document."""
        return {}

    def titled(self, i: int, title: str) -> str:
        """A title, after what names the row."""
        for key, name in self.identity(i).items():
            title = f"{key} {name}: {title}"
        return title

    def cells(self, i: int) -> dict[str, Any] | None:
        """The cells of a row; a document has none."""
        return None

    @abstractmethod
    def translated(self) -> AbstractContextManager[None]:
        """Let errors and warnings of the model speak of these rows in the words of the shell."""


class Training(NamedTuple):
    """All documents or rows to train on, wherever they are."""

    X: Any
    y: Any
    n: int
    translated: Callable[..., AbstractContextManager[None]]
    """Lets errors speak in the words of the shell: of all rows, or of some that are given."""
    families: dict[Any, str] | None = None  # of the columns, where they are known before training


class Reader(ABC):
    """Reads the files of a source for a model."""

    noun: str
    in_files: str  # the format of predictions

    def __init__(self, source: Source, model: Any):
        self.source, self.model, self.answers = source, model, answers_of(model)
        self.warnings = Warnings(self.noun)
        self.trail: Trail | None = None  # of a stream, which learns no row twice

    def skip(self, path: str) -> int | None:
        """A file is to be read: how many of its rows were learnt before; None is all of them."""
        before = self.trail.begin(path) if self.trail is not None else 0
        if before is None:
            note(f"{path}: all of it was learnt before")
        elif before:
            note(f"{path}: its first {counted(before, self.noun)} were learnt before")
        return before

    @abstractmethod
    def roles(self) -> dict[str, str]:
        """The names of columns that a model remembers, by what they are for."""

    @abstractmethod
    def batches(self, size: int, labels: LabelsNeeded = "optional") -> Iterator[Batch]:
        """All of it, so many documents or rows at a time."""

    @abstractmethod
    def whole(self, meter: Meter) -> Training:
        """All of it at once."""

    @abstractmethod
    def on_workers(self, client: Any, meter: Meter) -> Training:
        """The same, read by workers."""

    @property
    @abstractmethod
    def learnt(self) -> int:
        """How many documents or rows the model has learnt from a stream."""

    def answered(
        self, size: int, meter: Meter, labels: LabelsNeeded = "optional"
    ) -> Iterator[tuple[Batch, Any]]:
        """Batches, and what the model says of them."""
        pace = Pace(meter, f"{self.noun}s", self.noun)
        for batch in self.batches(size, labels):
            with batch.translated():
                found = self.answers.ask(batch.X)
            yield batch, found
            pace.passed(len(batch))

    def check_labels(self, labels: Counter[Any]) -> None:
        """See that there is something to tell apart."""
        classes = set(labels) - {None}
        if not classes:
            raise InputError(f"none of the {counted(labels.total(), self.noun)} has a label")
        if len(classes) == 1 and self.model.loss != "nll":
            raise InputError(
                f"all labels are {classes.pop()!r}, and a classifier needs two classes: add "
                f"{self.noun}s of other classes, or fit with --loss nll or --stream"
            )

    def check_first_labels(self, labels: list[Any]) -> None:
        """See that a stream begins with a label."""
        if not any(labels):
            raise InputError(
                f"none of the first {counted(len(labels), self.noun)} has a label: a stream should "
                f"begin with {self.noun}s that have one"
            )


def answers_of(model: Any) -> Any:
    """What commands ask of a model of classes, or of numbers: `Classes` or `Numbers`."""
    from ._classes import Classes
    from ._numbers import Numbers

    return Numbers(model) if is_regressor(model) else Classes(model)


def reader_of(model: Any, source: Source, columns: dict[str, str | None], hint: str) -> Reader:
    """A reader of documents or of tables, whichever the model takes.

    `columns` are those that were named, by their flags. The hint is what to do where a file has not
    the columns of documents.
    """
    from ._documents import Documents
    from ._numbers import NumberTables
    from ._tables import Arrays, Tables

    if not is_table(model):
        names = columns.get("--text-column"), columns.get("--label-column")
        return Documents(source, model, *names, hint)
    kind = NumberTables if is_regressor(model) else Tables if has_columns(model) else Arrays
    return kind(source, model, columns.get("--target"), columns.get("--id"))


def reader_for(
    path: Any, model: Any, source: Source, of_text: dict[str, Any], of_tables: dict[str, Any]
) -> Reader:
    """A reader for the model of a file; options must be those of what it takes."""
    check_options(path, model, of_text, of_tables)
    hint = f"{path} is a model of documents, not of tables"
    return reader_of(model, source, of_text | of_tables, hint)
