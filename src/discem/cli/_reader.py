"""What commands read, as a model takes it: documents, or the rows of a table.

The commands know `Reader` and `Batch` only. What differs between text and tables is in
`_documents.py` and `_tables.py`; what differs between answers that are classes and numbers, in
`_classes.py` and `_numbers.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from ..exceptions import InputError
from ..io.documents import LabelsNeeded
from ._models import check_options, has_columns, is_regressor, is_table
from ._screen import Meter, Pace, Warnings, counted, note
from ._sources import Source

if TYPE_CHECKING:
    from ..io.seen import Trail


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
