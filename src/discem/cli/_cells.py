"""Convert cells of tables between files and models."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np

from ..io.cells import Content, as_times
from ..io.columns import Column
from ..io.file_rows import Rows, TextRows
from ..io.frames import check_table


def cells_of(content: Content) -> list[Any]:
    """Return the cells of a column: numbers, texts, booleans, times; None is missing."""
    values, missing = content.values, content.missing
    if content.kind == "level":
        levels = np.array([*content.levels, None], dtype=object)
        return levels[values].tolist()
    if content.kind in ("date", "duration"):
        found = as_times(values, content.kind).tolist()
    else:
        found = values.astype(bool if content.kind == "bool" else float).tolist()
    return [None if gone else cell for cell, gone in zip(found, missing, strict=True)]


def records_of(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table of any library as dicts of such cells."""
    opened = check_table(table)
    columns = [cells_of(opened.content(j)) for j in range(len(opened.names))]
    names = [*map(str, opened.names)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def tidied(cell: Any, column: Column) -> Any:
    """Return a cell with the type of its column: whole numbers and whole days stay so."""
    cell = cell.item() if isinstance(cell, np.datetime64 | np.timedelta64) else cell
    if column.whole and isinstance(cell, datetime):
        return cell.date()
    if column.whole and isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return cell


def as_written(cell: Any, column: Column, example: Any = "") -> Any:
    """Return a cell in the format of its file, like `example` of the same column."""
    tidy = tidied(cell, column)
    if not isinstance(example, str):
        return cell if isinstance(example, datetime) else tidy
    if isinstance(tidy, datetime):
        return tidy.isoformat(example[10:11] or " ", "seconds") + "Z" * example.endswith("Z")
    if isinstance(tidy, bool):
        return str(tidy).upper() if example.isupper() else str(tidy).lower()
    return str(tidy) if isinstance(tidy, date) else tidy


def completed(
    rows: Rows, filled: list[dict[str, Any]], columns: dict[str, Column], typed: bool
) -> dict[str, list[Any]]:
    """Return the cells of rows by column, in their format, with missing ones from `filled`.

    With `typed`, for files that distinguish numbers from texts, numbers of CSV become numbers.
    """
    found = {}
    for name in rows.names:
        cells = rows.cells(name)
        column = columns.get(name)
        if column is not None and typed and isinstance(rows, TextRows):
            cells = [tidied(row.get(name), column) for row in filled]
        elif column is not None and None in cells:
            example = next((cell for cell in cells if cell is not None), "")
            cells = [
                as_written(row.get(name), column, example) if cell is None else cell
                for cell, row in zip(cells, filled, strict=True)
            ]
        found[name] = cells
    return found


def types_of(rows: Rows) -> dict[str, Any]:
    """Return the types of columns, if the file has any."""
    return {name: cells.type for name, cells in rows.columns.items() if hasattr(cells, "type")}
