"""``discem sample``: draw rows from a model."""

from __future__ import annotations

from typing import Annotated, Any

from ..exceptions import OptionError
from ._models import load_table_model
from ._options import ModelFile, OutputFile, Seed, option
from ._output import records
from ._reader import Source, answers_of


def sample(
    model: ModelFile,
    output: OutputFile = None,
    n: Annotated[int, option("How many rows to draw.", "N", "-n", default=True, min=1)] = 10,
    given: Annotated[
        list[str] | None,
        option("Fix this cell and draw the others. Repeat the option for more cells.", "NAME=CELL"),
    ] = None,
    label: Annotated[str | None, option("Draw rows of this class.", default="any")] = None,
    seed: Seed = 0,
) -> None:
    """Draw new rows of a table, with their labels or numbers, from a model.

    The ending of the name of the output tells its format: CSV, TSV, JSON lines or Parquet.
    """
    Source([], None, 0).check(output, reads=[model])
    classifier = load_table_model(model)
    fixed = _cells(classifier, given or [])
    answers = answers_of(classifier)
    answers.refuse(model, {"--label": label}, {})
    X, drawn = answers.draw(n, seed, label, fixed)

    from ._cells import as_written, records_of, tidied

    rows = records_of(X)
    with records(output) as file:
        columns = {}
        for column in classifier.model_.layout_.columns:
            if column.is_modelled:
                cells = [row.get(str(column.name)) for row in rows]
                write = tidied if file.typed else as_written
                columns[str(column.name)] = [write(cell, column) for cell in cells]
        file.add(columns | {classifier.roles_.get("target", "label"): drawn})


def _cells(model: Any, pairs: list[str]) -> dict[str, Any]:
    from ..io.file_rows import TextRows
    from ..io.sources import listed
    from ..io.table_files import kind_of
    from ._cells import cells_of

    known = {str(column.name): column for column in model.model_.layout_.columns}
    found = {}
    for pair in pairs:
        name, equals, cell = pair.partition("=")
        if not equals or name not in known:
            raise OptionError(f"--given {pair}: expected NAME=CELL, of one of {listed(known)}")
        rows = TextRows.of([name], [(1, [cell])], "--given")
        (found[name],) = cells_of(rows.content(name, kind_of(known[name]), given=True))
    return found
