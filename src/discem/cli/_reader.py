"""Read files for commands: documents, or rows of a table, in the form that a model takes.

Commands only use `Reader` and `Batch`. `_documents.py` and `_tables.py` implement them for text and
tables. `_classes.py` and `_numbers.py` handle the two kinds of answers.
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
    """The input files, and the options for reading them."""

    data: list[str]
    format: str | None
    max_size: int

    @classmethod
    def of(cls, data: list[str], format: str | None, max_size: int) -> Source:
        """Return the source for file names or patterns."""
        return cls(expanded(data), format, max_size)

    def check(
        self, output: Path | None = None, reads: Sequence[Path] = (), replaces: Path | None = None
    ) -> None:
        """Check, before the work, that the files exist and that none of them is overwritten.

        The model that the command `reads` must not be overwritten, either, unless it `replaces` it.
        Each command calls this where the files are, as it expands patterns.
        """
        check_sources(self.data, self.format)
        self.check_output(output, reads, replaces)

    def check_output(
        self, output: Path | None, reads: Sequence[Path] = (), replaces: Path | None = None
    ) -> None:
        """Check that no input is overwritten."""
        from ..report._output import output_file, standard_output

        inputs = [*reads, *(0 if name == STDIN else name for name in self.data)]
        standard_output(inputs if replaces is None else [*inputs, replaces])
        if output is not None and not is_standard_output(output):
            output_file(output, inputs)

    def rows(self, size: int, skip: Skip | None = None) -> Iterator[Rows]:
        """Yield the rows in batches."""
        from ..io.table_files import read_rows

        how: dict[str, Any] = {"format": self.format, "max_size": self.max_size, "skip": skip}
        return read_rows(self.data, size=size, **how)

    def expected(self) -> float | None:
        """Return the approximate number of rows, if it is fast to find for all files."""
        found = [expected_rows(name, find_format(name, self.format)) for name in self.data]
        return None if None in found else sum(found)  # type: ignore[arg-type]

    def whole(self, meter: Meter) -> Rows:
        """Return all rows."""
        pace, parts = Pace(meter, "reading", "row"), []
        for rows in self.rows(1000):
            parts.append(rows)
            pace.passed(len(rows))
        return parts[0].joined(parts[1:])


def is_standard_output(path: Path) -> bool:
    """Return whether the path is the standard output, also as /dev/stdout."""
    return str(path) == "-" or (str(path).startswith("/dev/") and is_same_file(path, 1))


class Batch(ABC):
    """A batch of documents or rows."""

    part: str
    """What adds to the score: words or columns."""
    X: Any
    """The rows in the form that the model takes."""
    labels: list[Any]
    """The labels or numbers, if they were requested."""
    origin: dict[str, int]
    """The number of rows from each file, by its name."""
    key: str
    """The column that the names come from."""
    names: list[Any]
    """One name per row; for a document, its text."""

    def __len__(self) -> int:
        return len(self.names)

    @abstractmethod
    def one(self, i: int) -> Any:
        """Return one row in the form that `explain` takes."""

    def identity(self, i: int) -> dict[str, Any]:
        """Return what names a row in a record; documents have no name."""
        return {}

    def titled(self, i: int, title: str) -> str:
        """Return a title with the name of the row."""
        for key, name in self.identity(i).items():
            title = f"{key} {name}: {title}"
        return title

    def cells(self, i: int) -> dict[str, Any] | None:
        """Return the cells of a row; None for a document."""
        return None

    @abstractmethod
    def translated(self) -> AbstractContextManager[None]:
        """Translate errors and warnings of the model to the files and options of the command."""


class Training(NamedTuple):
    """All documents or rows to train on, local or on workers."""

    X: Any
    y: Any
    n: int
    translated: Callable[..., AbstractContextManager[None]]
    """Translate errors to the files and options of the command, for all or some rows."""
    families: dict[Any, str] | None = None  # the families of columns, if known before training


class Reader(ABC):
    """Read the files of a source for a model."""

    noun: str
    in_files: str  # the format of predictions

    def __init__(self, source: Source, model: Any):
        self.source, self.model, self.answers = source, model, answers_of(model)
        self.warnings = Warnings(self.noun)
        self.trail: Trail | None = None  # tracks learnt rows of a stream

    def skip(self, path: str) -> int | None:
        """Return how many rows of a file to skip because they are learnt; None is all."""
        before = self.trail.begin(path) if self.trail is not None else 0
        if before is None:
            note(f"{path}: all of it was learnt before")
        elif before:
            note(f"{path}: its first {counted(before, self.noun)} were learnt before")
        return before

    @abstractmethod
    def roles(self) -> dict[str, str]:
        """The columns that a model remembers, by their role."""

    @abstractmethod
    def batches(self, size: int, labels: LabelsNeeded = "optional") -> Iterator[Batch]:
        """Yield all documents or rows in batches."""

    @abstractmethod
    def whole(self, meter: Meter) -> Training:
        """Return all documents or rows."""

    @abstractmethod
    def on_workers(self, client: Any, meter: Meter) -> Training:
        """Return the same, read by workers."""

    @property
    @abstractmethod
    def learnt(self) -> int:
        """Return how many documents or rows the model has learnt from a stream."""

    def answered(
        self, size: int, meter: Meter, labels: LabelsNeeded = "optional"
    ) -> Iterator[tuple[Batch, Any]]:
        """Yield batches with the predictions of the model."""
        pace = Pace(meter, f"{self.noun}s", self.noun)
        for batch in self.batches(size, labels):
            with batch.translated():
                found = self.answers.ask(batch.X)
            yield batch, found
            pace.passed(len(batch))

    def check_labels(self, labels: Counter[Any]) -> None:
        """Check that there are at least two classes."""
        classes = set(labels) - {None}
        if not classes:
            raise InputError(f"none of the {counted(labels.total(), self.noun)} has a label")
        if len(classes) == 1 and self.model.loss != "nll":
            raise InputError(
                f"all labels are {classes.pop()!r}, and a classifier needs two classes: add "
                f"{self.noun}s of other classes, or fit with --loss nll or --stream"
            )

    def check_first_labels(self, labels: list[Any]) -> None:
        """Check that the first batch of a stream has a label."""
        if not any(labels):
            raise InputError(
                f"none of the first {counted(len(labels), self.noun)} has a label: a stream should "
                f"begin with {self.noun}s that have one"
            )


def answers_of(model: Any) -> Any:
    """Return `Classes` or `Numbers` for the model."""
    from ._classes import Classes
    from ._numbers import Numbers

    return Numbers(model) if is_regressor(model) else Classes(model)


def reader_of(model: Any, source: Source, columns: dict[str, str | None], hint: str) -> Reader:
    """Return a reader of documents or tables, as the model needs.

    `columns` are the named columns, by flag. `hint` says what to do if a file lacks the columns of
    documents.
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
    """Return a reader for a loaded model; the options must fit the model."""
    check_options(path, model, of_text, of_tables)
    hint = f"{path} is a model of documents, not of tables"
    return reader_of(model, source, of_text | of_tables, hint)
