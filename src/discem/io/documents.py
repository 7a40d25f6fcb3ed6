"""Documents out of files, one at a time: a corpus is never held in memory."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeVar

from ..exceptions import DiscemError, InputError, MissingExtraError

STDIN = "-"
_FORMATS = {
    ".txt": "txt",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",  # what many call their JSON lines; a real array is refused in line 1
    ".parquet": "parquet",
}
FORMATS = tuple(dict.fromkeys(_FORMATS.values()))
_ROWS_AT_ONCE = 1000  # of a Parquet file, whose row groups may be large
_MEGABYTE = 2**20
_LEAST = 64  # bytes that a document takes in memory besides its text
_MOST_TIMES = 100  # that packed text comes to its size: prose 3, logs 20, what is made to harm 1000

Labels = Literal["required", "optional", "ignored"]
Item = TypeVar("Item")


class Document(NamedTuple):
    """A text and its label, None if it has none."""

    label: str | None
    text: str


class _Names(NamedTuple):
    """What to look for in a file."""

    text: str
    label: str
    labels: Labels
    max_size: int


def read_documents(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    text: str = "text",
    label: str = "label",
    labels: Labels = "required",
    max_size: int = 64,
) -> Iterator[Document]:
    r"""Read documents from files, one after the other, as they are asked for.

    Formats are txt (a document per line, ``label<TAB>text``), csv and tsv (with a header), jsonl
    (an object per line) and parquet, all UTF-8. A name that ends in ``.gz`` is unpacked. Paths are
    looked at before the first document is read, so that a wrong name is known at once.

    Parameters
    ----------
    paths : path or sequence of paths
        "-" is the standard input.
    format : {"txt", "csv", "tsv", "jsonl", "parquet"}, optional
        By default what the name ends in; txt for the standard input.
    text, label : str
        Columns (csv, tsv, parquet) or fields (jsonl) of the text and of its label.
    labels : {"required", "optional", "ignored"}
        Whether a file without labels is refused, taken as it is, or the only kind there is: then a
        line of txt is all text.
    max_size : int
        Megabytes that a line may have, and that a packed file may come to if that is more than 100
        times its own size: few documents are longer, and few files are packed so well, unless they
        were made to fill the memory. What is larger is refused before it is held.

    Yields
    ------
    Document
        Its label is None where the label is empty or null; a null text is an empty one.

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
    formats = [_find_format(name, format) for name in names]
    wanted = _Names(text, label, labels, max_size)
    return _read_all(list(zip(names, formats, strict=True)), wanted)


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` items, the last maybe shorter; an error comes after what came before it.

    Examples
    --------
    >>> list(batches("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    batch: list[Item] = []
    try:
        for item in items:
            batch.append(item)
            if len(batch) == size:
                full, batch = batch, []
                yield full
    except DiscemError:  # of a bad line, say
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def guess_format(name: str) -> str | None:
    """The format that a file's name tells, if any."""
    return _FORMATS.get(Path(name.removesuffix(".gz")).suffix)


def _find_format(name: str, given: str | None) -> str:
    if given is not None and given not in FORMATS:
        raise InputError(f"format {given!r} is unknown: use {', '.join(FORMATS)}")
    format = given or ("txt" if name == STDIN else guess_format(name))
    if name != STDIN and os.path.isdir(name):
        raise InputError(f"{name}: it is a folder; give the files in it")
    if format is None:
        raise InputError(
            f"{name}: its name does not tell the format; add --format, one of {', '.join(FORMATS)}"
        )
    if format == "parquet" and (name == STDIN or name.endswith(".gz")):
        raise InputError(f"{_shown(name)}: Parquet is read from a file of its own, not packed")
    if name != STDIN and not os.path.exists(name):
        raise InputError(f"{name}: there is no such file")
    return format


def _shown(name: str) -> str:
    return "standard input" if name == STDIN else name


def _read_all(sources: list[tuple[str, str]], names: _Names) -> Iterator[Document]:
    for path, format in sources:
        empty = True
        for document in _READERS[format](path, names):
            empty = False
            yield document
        if empty:
            raise InputError(f"{_shown(path)}: no documents in it")


# --- lines ----------------------------------------------------------------------------------------


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path == STDIN:
        if sys.stdin is None:
            raise InputError("standard input: it is closed")
        yield sys.stdin.buffer
    else:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            yield file  # type: ignore[misc]


def _lines(path: str, max_size: int) -> Iterator[str]:
    """Lines with their ends; decoded one by one, so that an error can name its line."""
    number = unpacked = 0
    longest = max_size * _MEGABYTE
    most = _most_unpacked(path, max_size) if path.endswith(".gz") else math.inf
    try:
        with _opened(path) as file:
            while line := file.readline(longest + 1):
                number += 1
                unpacked += len(line) + _LEAST
                if len(line) > longest:
                    raise InputError(
                        f"{_shown(path)}, line {number}: longer than {max_size} MB; "
                        "raise --max-size if that is right"
                    )
                if unpacked > most:
                    raise _too_much(path, max_size)
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{_shown(path)}, line {number}: cannot be read as UTF-8 text: {error.reason} "
            f"at byte {error.start + 1} of the line"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        after = f" after line {number}" if number else ""
        raise InputError(f"{_shown(path)} cannot be read{after}: {reason}") from error


def _most_unpacked(path: str, max_size: int) -> float:
    """Bytes that a packed file may come to; of what has no size, such as a pipe, any number."""
    packed = os.path.getsize(path) if os.path.isfile(path) else math.inf
    return max(max_size * _MEGABYTE, _MOST_TIMES * packed)


def _too_much(path: str, max_size: int) -> InputError:
    return InputError(
        f"{path}: unpacks to more than {max_size} MB and than {_MOST_TIMES} times its size; "
        "raise --max-size if that is right"
    )


def _read_txt(path: str, names: _Names) -> Iterator[Document]:
    for number, line in enumerate(_lines(path, names.max_size), 1):
        line = line.rstrip("\r\n")
        label, tab, text = line.partition("\t")
        if names.labels == "ignored" or (names.labels == "optional" and not tab):
            yield Document(None, line)
        elif tab:
            yield Document(label or None, text)
        else:
            raise InputError(f"{_shown(path)}, line {number}: expected label<TAB>text, got no tab")


def _read_csv(path: str, names: _Names, delimiter: str = ",") -> Iterator[Document]:
    csv.field_size_limit(min(names.max_size * _MEGABYTE, 2**31 - 1))  # 128 KiB unless told
    rows = csv.reader(_lines(path, names.max_size), delimiter=delimiter, strict=True)
    try:
        header = next(rows, [])
        if not header:
            return
        text, label = _places(_shown(path), header, names)
        for row in rows:
            if not row:
                continue  # an empty line
            if len(row) != len(header):
                raise InputError(
                    f"{_shown(path)}, line {rows.line_num}: {len(row)} columns, but the header has "
                    f"{len(header)}; quote a field that holds {delimiter!r}"
                )
            yield Document((row[label] or None) if label is not None else None, row[text])
    except csv.Error as error:
        hint = "; raise --max-size if that is right" if "field limit" in str(error) else ""
        raise InputError(f"{_shown(path)}, line {rows.line_num}: {error}{hint}") from error


def _read_tsv(path: str, names: _Names) -> Iterator[Document]:
    return _read_csv(path, names, delimiter="\t")


def _places(where: str, header: Sequence[str], names: _Names) -> tuple[int, int | None]:
    """Where the text is in a row, and where the label, if one is wanted and there."""
    found = {name: place for place, name in enumerate(header)}
    for name in (names.text, names.label):
        if name not in found and (name == names.text or names.labels == "required"):
            raise InputError(f"{where}: no column {name!r}; there is {_listed(header)}")
        if len(found) < len(header) and list(header).count(name) > 1:
            raise InputError(f"{where}: more than one column is named {name!r}")
    return found[names.text], found.get(names.label) if names.labels != "ignored" else None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"


# --- JSON lines and Parquet -----------------------------------------------------------------------


def _read_jsonl(path: str, names: _Names) -> Iterator[Document]:
    fields_of = partial(_distinct, (names.text, names.label))
    for number, line in enumerate(_lines(path, names.max_size), 1):
        if not line.strip():
            continue
        where = f"{_shown(path)}, line {number}"
        try:
            fields = json.loads(line, object_pairs_hook=fields_of)
        except RecursionError as error:
            raise InputError(f"{where}: cannot be read as JSON: it is nested too deep") from error
        except ValueError as error:
            reason = str(error).split("; use sys.")[0]  # what Python says of endless numbers
            raise InputError(f"{where}: cannot be read as JSON: {reason}") from error
        if not isinstance(fields, dict):
            raise InputError(f"{where}: expected a JSON object, got {line.strip()[:20]!r}")
        _places(where, list(fields), names)
        document = _document(fields, names, where)
        if "\\u" in line:
            _check_characters(document, where)
        yield document


def _distinct(wanted: tuple[str, ...], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a JSON object, of which the last would win if there were two of a name."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        for name in wanted:
            if names.count(name) > 1:
                raise ValueError(f"more than one field is named {name!r}")
    return fields


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
    if isinstance(label, bool | int):
        label = json.dumps(label)
    elif isinstance(label, float):
        label = None if label != label else json.dumps(label)  # NaN is a missing cell
    if label is not None and not isinstance(label, str):
        raise InputError(f"{where}, {names.label!r}: expected one label, got {str(label)[:20]!r}")
    return Document(label or None, text or "")


def _read_parquet(path: str, names: _Names) -> Iterator[Document]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError(
            "Parquet files need pyarrow: pip install 'discem[parquet]'"
        ) from error
    try:
        with ParquetFile(path) as file:
            columns = file.schema_arrow.names
            _, label = _places(path, columns, names)
            wanted = [names.text] + [names.label] * (label is not None)
            _check_unpacked(file.metadata, wanted, path, names.max_size)
            batches_of_rows = file.iter_batches(_ROWS_AT_ONCE, columns=wanted)
            rows = (fields for batch in batches_of_rows for fields in batch.to_pylist())
            for number, fields in enumerate(rows, 1):
                yield _document(fields, names, f"{path}, row {number}")
    except (ArrowException, OSError, UnicodeError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from error


def _check_unpacked(metadata: Any, wanted: list[str], path: str, max_size: int) -> None:
    """Of the columns that are wanted, what the file says that they unpack to."""
    groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
    columns = (group.column(place) for group in groups for place in range(group.num_columns))
    sizes = (each.total_uncompressed_size for each in columns if each.path_in_schema in wanted)
    if sum(sizes) > _most_unpacked(path, max_size):
        raise _too_much(path, max_size)


_READERS: dict[str, Callable[[str, _Names], Iterator[Document]]] = {
    "txt": _read_txt,
    "csv": _read_csv,
    "tsv": _read_tsv,
    "jsonl": _read_jsonl,
    "parquet": _read_parquet,
}
