"""``discem evaluate``: compare predictions with labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..exceptions import InputError, OptionError
from ._models import load_model, refuse
from ._options import (
    AsJson,
    BatchSize,
    FamilyOf,
    Format,
    IdColumn,
    Ignore,
    LabelColumn,
    MaxSize,
    Target,
    Task,
    TextColumn,
    of_tables,
)
from ._reader import Reader, Source, answers_of, reader_for, reader_of
from ._screen import Meter, note, to_json
from ._start import leaving_at_once
from ._training import step_of


def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A file written by discem fit. Leave it out with --cv.",
            show_default=False,
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA",
            help="Files of documents or rows, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    format: Format = None,
    as_json: AsJson = False,
    batch_size: BatchSize = 1000,
    max_size: MaxSize = 64,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    target: Target = None,
    task: Annotated[
        Task | None,
        of_tables(
            "With --cv: whether the target holds classes or numbers, see fit.", default="auto"
        ),
    ] = None,
    cv: Annotated[
        int | None,
        of_tables(
            "Cross-validate without a model: hold out each of N parts of the rows in turn, and "
            "train on the others.",
            "N",
            "--cv",
            min=2,
        ),
    ] = None,
    seed: Annotated[int, of_tables("Seed of --cv.", "N", default=True, min=0, max=2**32 - 1)] = 0,
    id_column: IdColumn = None,
    ignore: Ignore = None,
    family: FamilyOf = None,
) -> None:
    """Compare predictions with the labels of documents or rows that were not trained on."""
    text_flags = {"--text-column": text_column, "--label-column": label_column}
    of_cv = {
        "--task": task and task.value,
        "--id": id_column,
        "--ignore": ignore or None,
        "--family": family or None,
    }
    parts: list[float] = []
    if cv is None:
        refuse(of_cv, "is for --cv: a model knows its columns")
        if not data:
            raise OptionError("give a MODEL and DATA, or DATA and --target NAME --cv N")
        source = Source.of(data, format, max_size)
        source.check(reads=[Path(model)])
        classifier = load_model(Path(model))
        reader = reader_for(model, classifier, source, text_flags, {"--target": target})
        result = reader.answers.evaluation(reader.noun)
        with Meter() as meter:
            for batch, found in reader.answered(batch_size, meter, "required"):
                reader.answers.judge(result, batch.labels, found)
    else:
        refuse(text_flags, "is for documents, and --cv for tables")
        if target is None:
            raise OptionError("--cv is for tables: add --target NAME")
        source = Source.of([model, *(data or [])], format, max_size)
        source.check()
        with leaving_at_once:
            from .. import TableClassifier, TableRegressor
            from ._numbers import reason_for_numbers
            from ._tables import Roles, families_of

        families = families_of(family or [], ignore or [], Roles.of({}, target, id_column))
        why = reason_for_numbers(source, target, task.value if task else "auto")
        if why:
            note(why)
        made: Any = TableRegressor if why else TableClassifier
        new = partial(made, families=families or "auto", density=False, random_state=seed)
        reader = reader_of(new(), source, {"--target": target, "--id": id_column}, "")
        result, parts = _cross_validate(reader, new, cv)
    if not result.documents:
        raise InputError(f"none of the {result.unlabelled:,} {result.noun}s has a label")
    if as_json:
        more = {"parts": parts} if parts else {}
        typer.echo(to_json(result.summary() | more))
    else:
        reader.answers.show_evaluation(result, parts)


def _cross_validate(reader: Reader, new: Callable[..., Any], n: int) -> tuple[Any, list[float]]:
    """Cross-validate; return the evaluation, and the figure of each part."""
    import numpy as np

    with Meter(lines=True) as meter:
        data, answers = reader.whole(meter), reader.answers
        known = np.flatnonzero([label is not None for label in data.y])
        y = np.array([data.y[row] for row in known])
        result, figures = answers.evaluation(reader.noun, y.tolist()), []
        result.unlabelled = data.n - len(known)
        for fold, (train, held) in enumerate(answers.folds(y, n, new().random_state), 1):
            own = answers_of(new(callback=partial(_tell, meter, f"part {fold} of {n}")))
            with reader.warnings.translated(), data.translated(known[train]):
                own.model.fit(data.X[known[train]], y[train])
            with reader.warnings.translated(), data.translated(known[held]):
                found = own.ask(data.X[known[held]])
            part = own.evaluation(reader.noun, y.tolist())
            for each in (result, part):
                own.judge(each, y[held].tolist(), found)
            figures.append(getattr(part, own.figure))
    return result, figures


def _tell(meter: Meter, part: str, _: Any, record: dict[str, Any]) -> None:
    meter.tell(f"{part}, {step_of(record)}", None, record["loss"])
