"""Read documents from files for models of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..exceptions import InputError, OptionError
from ..io.documents import Document, LabelsNeeded, NoColumnError, batches, read_documents
from ..io.sources import find_format
from ._reader import Batch, Reader, Source, Training
from ._screen import Meter, Pace, Warnings


class Texts(Batch):
    """A batch of documents."""

    part, key = "word", "text"

    def __init__(self, documents: list[Document], warnings: Warnings):
        self.X = self.names = [document.text for document in documents]
        self.labels = [document.label for document in documents]
        self.warnings = warnings

    def one(self, i: int) -> str:
        return self.X[i]

    def translated(self) -> AbstractContextManager[None]:
        return self.warnings.translated()


class Documents(Reader):
    """The documents of a source; `hint` says what to do if a file lacks their columns."""

    noun, in_files = "document", "lines"

    def __init__(self, source: Source, model: Any, text: str | None, label: str | None, hint: str):
        super().__init__(source, model)
        self.names = {"text": text or "text", "label": label or "label"}
        self.hint = hint

    def roles(self) -> dict[str, str]:
        source = self.source  # lines of txt have no columns
        plain = all(find_format(name, source.format) == "txt" for name in source.data)
        return {} if plain else self.names

    def batches(self, size: int, labels: LabelsNeeded = "optional") -> Iterator[Batch]:
        with self._hinted():
            for pairs in batches(self._read(labels), size):
                batch = Texts([document for document, _ in pairs], self.warnings)
                batch.origin = Counter(path for _, path in pairs)
                yield batch

    def whole(self, meter: Meter) -> Training:
        labels: list[str | None] = []
        texts: list[str] = []
        pace = Pace(meter, "reading")
        for batch in self.batches(1000, "required"):
            labels += batch.labels
            texts += batch.X
            pace.passed(len(batch))
        self.check_labels(Counter(labels))
        return Training(texts, labels, len(texts), self._translated)

    def on_workers(self, client: Any, meter: Meter) -> Training:
        from ..io import parts as files

        pace, source = Pace(meter, "reading"), self.source
        with self._hinted():
            found = files.parts_of(source.data, source.format, client.cluster is None)
            names = self.names | {"labels": "required", "max_size": source.max_size}
            parts = files.read_documents(client, found, pace.passed, **names)
        self.check_labels(parts.labels)
        texts, labels = parts.partitions(files.texts_of), parts.partitions(files.labels_of)
        return Training(texts, labels, parts.n_rows, self._translated)

    @property
    def learnt(self) -> int:
        return self.model.n_documents_

    def check_labels(self, labels: Counter[str | None]) -> None:
        super().check_labels(labels)
        least = self.model.min_df
        if isinstance(least, int) and least > labels.total():
            raise OptionError(f"--min-df {least}: there are only {labels.total():,} documents")

    def _read(self, labels: LabelsNeeded) -> Iterator[tuple[Document, str]]:
        """Yield documents with the names of their files."""
        source, path = self.source, ""

        def skip(name: str) -> int | None:
            nonlocal path
            path = name
            return self.skip(name)

        names: dict[str, Any] = self.names | {"labels": labels, "max_size": source.max_size}
        for document in read_documents(source.data, format=source.format, skip=skip, **names):
            yield document, path

    @contextmanager
    def _hinted(self) -> Iterator[None]:
        try:
            yield
        except NoColumnError as error:
            raise InputError(f"{error}; {self.hint}") from error

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate errors about counted words to the option of the command."""
        try:
            yield
        except Exception as error:
            if "min_df" not in str(error):
                raise
            least = self.model.min_df
            raise OptionError(f"--min-df {least}: no word is in so many documents") from error
