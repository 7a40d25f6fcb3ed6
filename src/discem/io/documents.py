"""Read documents from files, one at a time: a corpus is never held in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple

from ..exceptions import InputError, reading
from .sources import (
    FORMATS,
    STDIN,
    Skip,
    batches,
    check_unpacked,
    csv_rows,
    find_format,
    guess_format,
    json_objects,
    label_of,
    listed,
    parquet_file,
    read_each,
    read_lines,
    shown_name,
)

__all__ = ["FORMATS", "STDIN", "Document", "batches", "guess_format", "read_documents"]

_ROWS_AT_ONCE = 1000  # of a Parquet file, whose row groups may be large

LabelsNeeded = Literal["required", "optional", "ignored"]


class NoColumnError(InputError):
    """A file without the column of the text or the label."""


class Document(NamedTuple):
    """A text and its label, or None without a label."""

    label: str | None
    text: str


class _Names(NamedTuple):
    """The columns to look for in a file."""

    text: str
    label: str
    labels: LabelsNeeded
    max_size: int


def read_documents(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    text: str = "text",
    label: str = "label",
    labels: LabelsNeeded = "required",
    max_size: int = 64,
    skip: Skip | None = None,
) -> Iterator[Document]:
    r"""Read documents from files, one after the other, as they are asked for.

    Formats are txt (a document per line, ``label<TAB>text``), csv and tsv (with a header), jsonl
    (an object per line) and parquet, all UTF-8. A name that ends in ``.gz`` is unpacked. Paths are
    checked before the first document is read, so that a wrong name fails at once.

    Parameters
    ----------
    paths : path or sequence of paths
        "-" is the standard input.
    format : {"txt", "csv", "tsv", "jsonl", "parquet"}, optional
        By default the ending of the name; txt for the standard input.
    text, label : str
        Columns (csv, tsv, parquet) or fields (jsonl) of the text and of its label.
    labels : {"required", "optional", "ignored"}
        Whether a file must have labels, may have them, or has none: with "ignored", the whole line
        of a txt file is text.
    max_size : int
        The largest size of a line in megabytes. It also limits files that unpack to more than 100
        times their size, which may be made to fill the memory. Larger lines and files are refused
        before they are loaded.
    skip : callable, optional
        Called with the name of each file before it is read: how many of its first documents to
        leave out, or None for all of them.

    Yields
    ------
    Document
        The label is None if it is empty or null; a null text becomes an empty text.

    Raises
    ------
    InputError
        Naming the file, the line or row, and the column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "mail.csv")
    ...     size = path.write_text("label,text\nspam,buy now\n,who knows\n")
    ...     list(read_documents(path))
    [Document(label='spam', text='buy now'), Document(label=None, text='who knows')]
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    names = [os.fspath(path) for path in paths]
    formats = [find_format(name, format) for name in names]
    wanted = _Names(text, label, labels, max_size)
    return _read_all(zip(names, formats, strict=True), wanted, skip)


def read_part(
    path: str, format: str, groups: Sequence[int] | None, before: int, **names: Any
) -> list[Document]:
    """Return all documents of a file, or of some row groups of it, after `before` other rows."""
    wanted = _Names(**names)
    if groups is None:
        return list(_read_all([(path, format)], wanted, None))
    return list(_read_parquet(path, wanted, groups, before))


def _read_all(
    sources: Iterable[tuple[str, str]], names: _Names, skip: Skip | None
) -> Iterator[Document]:
    def read(path: str, format: str, before: int) -> Iterator[Document]:
        return islice(_READERS[format](path, names), before, None)

    return read_each(sources, read, skip, "documents")


def _read_txt(path: str, names: _Names) -> Iterator[Document]:
    for number, line in enumerate(read_lines(path, names.max_size), 1):
        line = line.rstrip("\r\n")
        label, tab, text = line.partition("\t")
        if names.labels == "ignored" or (names.labels == "optional" and not tab):
            yield Document(None, line)
        elif tab:
            yield Document(label_of(label, f"{shown_name(path)}, line {number}"), text)
        else:
            raise InputError(
                f"{shown_name(path)}, line {number}: expected label<TAB>text, got no tab"
            )


def _read_csv(path: str, names: _Names, delimiter: str = ",") -> Iterator[Document]:
    rows = csv_rows(path, names.max_size, delimiter)
    text, label, where = 0, None, shown_name(path)
    for place, (number, row) in enumerate(rows):
        if place == 0:
            text, label = _places(where, row, names)
        elif label is None:
            yield Document(None, row[text])
        else:
            found = label_of(row[label], f"{where}, line {number}, {names.label!r}")
            yield Document(found, row[text])


def _places(where: str, header: Sequence[str], names: _Names) -> tuple[int, int | None]:
    """Return the indices of the text and of the label, if a label is wanted and present."""
    found = {name: place for place, name in enumerate(header)}
    for name in (names.text, names.label):
        if name not in found and (name == names.text or names.labels == "required"):
            raise NoColumnError(f"{where}: no column {name!r}; there is {listed(header)}")
        if len(found) < len(header) and list(header).count(name) > 1:
            raise InputError(f"{where}: more than one column is named {name!r}")
    return found[names.text], found.get(names.label) if names.labels != "ignored" else None


def _read_jsonl(path: str, names: _Names) -> Iterator[Document]:
    for number, fields, line in json_objects(path, names.max_size, (names.text, names.label)):
        where = f"{shown_name(path)}, line {number}"
        _places(where, list(fields), names)
        document = _document(fields, names, where)
        if "\\u" in line:
            _check_characters(document, where)
        yield document


def _check_characters(document: Document, where: str) -> None:
    r"""JSON can spell what is no character, ``\ud800``, half of a pair, and no file can hold it."""
    for name, value in document._asdict().items():
        try:
            (value or "").encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(value[error.start]):04x}"
            raise InputError(f"{where}: the {name} holds {half}, half of a character") from error


def _document(fields: dict[str, Any], names: _Names, where: str) -> Document:
    text = fields[names.text]
    if text is not None and not isinstance(text, str):
        raise InputError(f"{where}, {names.text!r}: expected text, got {str(text)[:20]!r}")
    label = fields.get(names.label) if names.labels != "ignored" else None
    return Document(label_of(label, f"{where}, {names.label!r}"), text or "")


def _read_parquet(
    path: str, names: _Names, groups: Sequence[int] | None = None, before: int = 0
) -> Iterator[Document]:
    with parquet_file(path) as file:
        _, label = _places(path, file.schema_arrow.names, names)
        wanted = [names.text] + [names.label] * (label is not None)
        check_unpacked(file.metadata, wanted, path, names.max_size)
        batches_of_rows = file.iter_batches(_ROWS_AT_ONCE, row_groups=groups, columns=wanted)
        rows = (fields for batch in batches_of_rows for fields in _plain(batch, path))
        for number, fields in enumerate(rows, before + 1):
            yield _document(fields, names, f"{path}, row {number}")


def _plain(batch: Any, path: str) -> list[dict[str, Any]]:
    with reading(path):
        return batch.to_pylist()


_READERS: dict[str, Callable[[str, _Names], Iterator[Document]]] = {
    "txt": _read_txt,
    "csv": _read_csv,
    "tsv": partial(_read_csv, delimiter="\t"),
    "jsonl": _read_jsonl,
    "parquet": _read_parquet,
}
