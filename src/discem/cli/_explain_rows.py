"""Why rows of tables get their classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..exceptions import InputError
from ..io.table_files import table_of
from ._models import Asked
from ._screen import Warnings, counted
from ._sources import Source
from ._tables import Reader, Roles, in_words_of_the_shell, names_of, plain_cell


def explained_rows(model: Any, source: Source, wanted: int | None) -> Iterator[Asked]:
    """All rows, or the one of that number, from 1 on, explained."""
    roles = Roles.of(model, None, None)
    reader = Reader(model, roles, Warnings("row"))
    done = 0
    for rows in source.rows(1000):
        key, names = names_of(rows, roles.id, done)
        asked = range(len(rows)) if wanted is None else [wanted - 1 - done]
        done += len(rows)
        if wanted is not None and wanted > done:
            continue
        with reader.warnings.told(), in_words_of_the_shell(rows.place):
            contents = reader.contents(rows)
            cells = {name: rows.cells(name) for name in contents if name in rows.columns}
            for row in asked:
                alone = {name: each.only(np.array([row])) for name, each in contents.items()}
                shown = {name: plain_cell(each[row]) for name, each in cells.items()}
                yield Asked(model.explain(table_of(alone)), "column", {key: names[row]}, shown)
        if wanted is not None:
            return
    if wanted is not None:
        raise InputError(f"--row {wanted}: there are only {counted(done, 'row')}")
