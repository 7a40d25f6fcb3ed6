"""``discem evaluate``: predictions beside the truth."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings

import typer
from rich.table import Table

from ..exceptions import InputError, OptionError
from ._models import check_options, class_names, is_regressor, load_model, refuse
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
from ._reader import Reader, reader_of
from ._screen import Meter, counted, note, one_line, screen, to_json
from ._sources import Source
from ._start import leaving_at_once
from ._training import step_of

if TYPE_CHECKING:
    import numpy as np

    from ..report.evaluation import Evaluation

_SHOWN_CONFUSIONS = 10


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
    result: Any
    parts: list[float] = []
    if cv is None:
        refuse(of_cv, "is for --cv: a model knows its columns")
        if not data:
            raise OptionError("give a MODEL and DATA, or DATA and --target NAME --cv N")
        source = Source.of(data, format, max_size)
        source.check(reads=[Path(model)])
        classifier = load_model(Path(model))
        table_flags = {"--target": target}
        check_options(model, classifier, text_flags, table_flags)
        hint = f"{model} is a model of documents, not of tables"
        reader = reader_of(classifier, source, text_flags | table_flags, hint)
        if is_regressor(classifier):
            from ._numbers import evaluated

            result = evaluated(reader, batch_size)
        else:
            result = _score(reader, batch_size)
    else:
        refuse(text_flags, "is for documents, and --cv for tables")
        if target is None:
            raise OptionError("--cv is for tables: add --target NAME")
        source = Source.of([model, *(data or [])], format, max_size)
        source.check()
        with leaving_at_once:
            from .. import TableClassifier, TableRegressor
            from ._numbers import NumberTables, cross_validated, reason_for_numbers
            from ._tables import Roles, Tables, families_of

        families = families_of(family or [], ignore or [], Roles.of({}, target, id_column))
        why = reason_for_numbers(source, target, task.value if task else "auto")
        made: Any = TableRegressor if why else TableClassifier
        new = partial(made, families=families or "auto", density=False, random_state=seed)
        if why:
            note(why)
            result, parts = cross_validated(NumberTables(source, new(), target, id_column), new, cv)
        else:
            result, parts = _cross_validate(Tables(source, new(), target, id_column), new, cv)
    if not result.documents:
        raise InputError(f"none of the {result.unlabelled:,} {result.noun}s has a label")
    from ..report.evaluation import Evaluation
    from ._numbers import show_evaluation

    if as_json:
        more = {"parts": parts} if parts else {}
        typer.echo(to_json(result.summary() | more))
    else:
        if isinstance(result, Evaluation):
            _show_evaluation(result, parts)
        else:
            show_evaluation(result, parts)


def _score(reader: Reader, size: int) -> Evaluation:
    """How good the model of a reader is on what it reads."""
    from ..report.evaluation import Evaluation

    result = Evaluation(class_names(reader.model), reader.noun)
    with Meter() as meter:
        for batch, log_proba in reader.scored(size, meter, "required"):
            result.add(batch.labels, log_proba)
    return result


def _cross_validate(
    reader: Reader, new: Callable[..., Any], n: int
) -> tuple[Evaluation, list[float]]:
    """How good models are on rows that they were not trained on, and the accuracy of each."""
    import numpy as np

    from ..report.evaluation import Evaluation

    with Meter(lines=True) as meter:
        data = reader.whole(meter)
        known = np.flatnonzero([label is not None for label in data.y])
        y = np.array([data.y[row] for row in known], dtype=str)
        classes = np.unique(y).tolist()
        result, accuracies = Evaluation(classes, reader.noun), []
        result.unlabelled = data.n - len(known)
        for fold, (train, held) in enumerate(_folds(y, n, new().random_state), 1):
            model = new(callback=partial(_tell, meter, f"part {fold} of {n}"))
            with reader.warnings.translated(), data.translated(known[train]):
                model.fit(data.X[known[train]], y[train])
            with reader.warnings.translated(), data.translated(known[held]):
                found = model.predict_log_proba(data.X[known[held]])
            log_proba = np.full((len(held), len(classes)), -np.inf)
            log_proba[:, np.searchsorted(classes, class_names(model))] = found
            result.add(y[held].tolist(), log_proba)
            right = np.array(classes)[log_proba.argmax(axis=1)] == y[held]
            accuracies.append(float(right.mean()))
    return result, accuracies


def _folds(y: np.ndarray, n: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows to train on and those held out, n times, with all classes in each if possible."""
    import numpy as np
    from sklearn.model_selection import StratifiedKFold

    *_, second, most = sorted(np.unique(y, return_counts=True)[1].tolist())
    if most < n:
        raise InputError(
            f"--cv {n}: no class has more than {counted(most, 'row')}; use a smaller N"
        )
    if second < 2:
        raise InputError(f"--cv {n}: all classes but one have a single row, which is too few")
    with catch_warnings(action="ignore", category=UserWarning):  # of classes with fewer rows
        parts = StratifiedKFold(n, shuffle=True, random_state=seed)
        return list(parts.split(np.empty((len(y), 0)), y))


def _tell(meter: Meter, part: str, _: Any, record: dict[str, Any]) -> None:
    meter.tell(f"{part}, {step_of(record)}", None, record["loss"])


def _show_evaluation(result: Evaluation, accuracies: list[float]) -> None:
    console, noun = screen(), result.noun
    classes = Table("class", title="Classes")
    for name in ("precision", "recall", "F1", f"{noun}s"):
        classes.add_column(name, justify="right")
    for score in result.by_class():
        figures = (score.precision, score.recall, score.f1)
        shown = ["-" if figure is None else f"{figure:.3f}" for figure in figures]
        classes.add_row(one_line(score.label), *shown, f"{score.support:,}")
    console.print(classes)
    if confusions := result.confusions(_SHOWN_CONFUSIONS):
        wrong = Table("class", "taken for", title="Most frequent confusions")
        wrong.add_column(f"{noun}s", justify="right")
        for label, found, times in confusions:
            wrong.add_row(one_line(label), one_line(found), f"{times:,}")
        console.print(wrong)
    log_loss = "-" if result.log_loss is None else f"{result.log_loss:.4f}"
    console.print(
        f"accuracy {result.accuracy:.4f}  log-loss {log_loss}  macro-F1 {result.macro_f1:.4f}  "
        f"{noun}s {result.documents:,}",
        soft_wrap=True,
    )
    if accuracies:
        parts = " ".join(f"{accuracy:.4f}" for accuracy in accuracies)
        console.print(f"accuracy of each part {parts}", soft_wrap=True)
    if result.unlabelled:
        console.print(
            f"skipped: {counted(result.unlabelled, noun)} without a label", soft_wrap=True
        )
    if result.unknown:
        counts = ", ".join(f"{one_line(name)} ({n:,})" for name, n in result.unknown.items())
        console.print(
            f"errors because the model does not know the label (not in the log-loss): {counts}",
            soft_wrap=True,
        )
