"""The text data sets of experiments and benchmarks: files in a folder of your own."""

from __future__ import annotations

import os
from pathlib import Path

from discem.exceptions import DiscemError
from discem.io.documents import read_documents


class DataNotFoundError(DiscemError, FileNotFoundError):
    """A data set that is not where it was looked for."""


def load_text(
    name: str, data: str | os.PathLike[str] | None = None, subset: str = "train"
) -> tuple[list[str], list[str]]:
    r"""Read a text data set, ``<data>/<name>/<subset>.txt.gz`` (or ``.txt``), UTF-8.

    Each line is one document, ``label<TAB>text``; the text may be empty.

    Parameters
    ----------
    name : str
        The folder of the data set.
    data : path, optional
        The folder of all data sets; by default the environment variable ``DISCEM_DATA``.
    subset : str
        "train" or "test", or whatever files the folder holds.

    Returns
    -------
    texts, labels : list of str

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as data:
    ...     pathlib.Path(data, "mail").mkdir()
    ...     size = pathlib.Path(data, "mail", "train.txt").write_text("spam\tbuy now\nham\t\n")
    ...     load_text("mail", data)
    (['buy now', ''], ['spam', 'ham'])
    """
    root = data or os.environ.get("DISCEM_DATA")
    if not root:
        raise DataNotFoundError(
            f"no folder to read the text data {name!r} from: pass data=..., or set DISCEM_DATA to "
            f"a folder that holds {name}/{subset}.txt.gz (one document per line, label<TAB>text)"
        )
    packed, plain = (Path(root, name, subset + end) for end in (".txt.gz", ".txt"))
    path = packed if packed.exists() else plain
    if not path.exists():
        raise DataNotFoundError(
            f"text data {name!r} is absent: put its {subset} documents at {packed}, "
            "one per line, label<TAB>text"
        )
    documents = list(read_documents(path))
    return [text for _, text in documents], [label or "" for label, _ in documents]
