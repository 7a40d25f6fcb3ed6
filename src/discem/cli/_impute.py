"""``discem impute``: fill in the missing cells of a table."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from ._models import load_table_model
from ._options import BatchSize, Data, Format, MaxSize, ModelFile, OutputFile, Seed, option
from ._output import records
from ._reader import Source
from ._screen import Meter, Pace

How = Enum("How", {"mean": "mean", "mode": "mode", "draw": "draw"})


def impute(
    model: ModelFile,
    data: Data,
    output: OutputFile = None,
    how: Annotated[
        How,
        option(
            "Fill in the mean (for categories: the most probable one), the most probable value, "
            "or a random draw.",
            default=True,
        ),
    ] = How.mean,
    seed: Seed = 0,
    format: Format = None,
    batch_size: BatchSize = 1000,
    max_size: MaxSize = 64,
) -> None:
    """Fill in each missing cell of a table from the other cells of its row.

    All other cells stay as they are. Labels are copied, but not used. The ending of the name of the
    output tells its format: CSV, TSV, JSON lines or Parquet.
    """
    source = Source.of(data, format, max_size)
    source.check(output, reads=[model])
    classifier = load_table_model(model)
    import numpy as np

    from ._cells import completed, records_of, types_of
    from ._tables import Tables

    known = {str(column.name): column for column in classifier.model_.layout_.columns}
    rng = np.random.RandomState(seed)
    with records(output) as file, Meter() as meter:
        pace = Pace(meter, "rows", "row")
        for batch in Tables(source, classifier).batches(batch_size):
            typed = records_of(batch.X)
            with batch.translated():
                filled = classifier.impute(typed, how=how.value, random_state=rng)
            columns = completed(batch.rows, filled, known, file.typed)
            file.add(columns, types_of(batch.rows))
            pace.passed(len(batch))
