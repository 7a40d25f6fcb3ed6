"""``discem outliers``: show rows that are unlike the training rows, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ..exceptions import ModelFileError, OptionError
from ._models import load_table_model
from ._options import (
    AsJson,
    BatchSize,
    Data,
    Format,
    IdColumn,
    MaxSize,
    ModelFile,
    OutputFile,
    option,
)
from ._output import records
from ._reader import Source
from ._screen import Meter, Pace, counted, note, one_line, screen, to_json

_WHY = 3  # columns


def outliers(
    model: ModelFile,
    data: Data,
    output: OutputFile = None,
    rate: Annotated[
        float,
        option(
            "The share of usual rows that may be called outliers. A larger share finds more.",
            "SHARE",
            default=True,
        ),
    ] = 0.01,
    as_json: AsJson = False,
    id_column: IdColumn = None,
    format: Format = None,
    batch_size: BatchSize = 1000,
    max_size: MaxSize = 64,
) -> None:
    """Show the rows of a table that are unlike the training rows, and which cells are strange.

    The number beside a cell says by how much ln p(cell | other cells of the row) is below what is
    usual in its column. The ending of the name of the output tells its format: CSV, TSV, JSON lines
    or Parquet.
    """
    if not 0 < rate < 1:
        raise OptionError(f"--rate {rate}: expected a share between 0 and 1")
    source = Source.of(data, format, max_size)
    source.check(output, reads=[model])
    classifier = load_table_model(model)
    found = _outliers(classifier, source, rate, id_column, model, batch_size)
    if as_json:
        for record in found:
            typer.echo(to_json(record))
    elif output is None:
        _show(list(found))
    else:
        with records(output) as file:
            for record in found:
                record["because"] = _because(record["because"])
                file.add({name: [cell] for name, cell in record.items()})


def _outliers(
    model: Any, source: Source, rate: float, id: str | None, path: Path, size: int
) -> Iterator[dict[str, Any]]:
    """Yield the outliers: name, ln p(x), and the strangest cells with their strangeness."""
    import numpy as np

    from ._tables import Tables

    names = [str(column.name) for column in model.model_.layout_.columns]
    n_rows = n_found = 0
    with Meter() as meter:
        pace = Pace(meter, "rows", "row")
        for batch in Tables(source, model, id=id).batches(size):
            with batch.translated():
                rows = np.flatnonzero(_outlying(model, batch.X, rate, path)).tolist()
                for i in rows:
                    row, cells = batch.one(i), batch.cells(i)
                    (parts,) = model.strangeness(row)
                    order = [j for j in np.argsort(-parts)[:_WHY] if parts[j] > 0]
                    why = [[names[j], cells.get(names[j]), float(parts[j])] for j in order]
                    log_p = float(model.score_samples(row)[0])
                    yield batch.identity(i) | {"ln_p": log_p, "because": why}
            n_rows, n_found = n_rows + len(batch), n_found + len(rows)
            pace.passed(len(batch))
    note(f"{counted(n_found, 'outlier')} in {counted(n_rows, 'row')}, at a rate of {rate:g}")


def _outlying(model: Any, X: Any, rate: float, path: Path) -> Any:
    """Return which rows are outliers, if the model can tell."""
    try:
        return model.outliers(X, rate)
    except OptionError as error:  # the model learnt from a stream, or has no density
        raise ModelFileError(f"{path} does not know what is usual: {error}") from error


def _because(why: list[list[Any]]) -> str:
    return ", ".join(f"{name} = {cell} ({parts:+.1f})" for name, cell, parts in why)


def _show(found: list[dict[str, Any]]) -> None:
    if not found:
        return
    table = Table(one_line(next(iter(found[0]))))
    table.add_column("ln p(x)", justify="right")
    table.add_column("because")
    for record in sorted(found, key=lambda each: each["ln_p"]):
        name, log_p, why = record.values()
        table.add_row(one_line(str(name)), f"{log_p:.2f}", one_line(_because(why)))
    screen().print(table)
