"""``discem evaluate``: predictions beside the truth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..exceptions import InputError, OptionError
from ._models import check_options, class_names, is_table, load_model, refuse, scored
from ._options import (
    TABLES,
    AsJson,
    BatchSize,
    FamilyOf,
    Format,
    IdColumn,
    Ignore,
    LabelColumn,
    MaxSize,
    Target,
    TextColumn,
)
from ._screen import Meter, counted, one_line, screen, to_json
from ._sources import Source
from ._start import leaving_at_once

if TYPE_CHECKING:
    from .. import TextClassifier
    from ..io.documents import Document
    from ..report.evaluation import Evaluation

_SHOWN_CONFUSIONS = 10


def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A file written by discem fit; with --cv there is none.",
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
    cv: Annotated[
        int | None,
        typer.Option(
            "--cv",
            min=2,
            metavar="N",
            help="Without a model: hold out each of N parts of the rows in turn, and train on the "
            "others.",
            show_default=False,
            rich_help_panel=TABLES,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=2**32 - 1, metavar="N", help="Seed of --cv.", rich_help_panel=TABLES
        ),
    ] = 0,
    id_column: IdColumn = None,
    ignore: Ignore = None,
    family: FamilyOf = None,
) -> None:
    """Compare predictions with the labels of documents, or rows, that were not trained on."""
    of_text = {"--text-column": text_column, "--label-column": label_column}
    of_cv = {"--id": id_column, "--ignore": ignore or None, "--family": family or None}
    accuracies: list[float] = []
    if cv is None:
        refuse(of_cv, "is for --cv: a model knows its columns")
        if not data:
            raise OptionError("give a MODEL and DATA, or DATA and --target NAME --cv N")
        source = Source.of(data, format, max_size)
        source.check(reads=[Path(model)])
        classifier = load_model(Path(model))
        check_options(model, classifier, of_text, {"--target": target})
        if is_table(classifier):
            from ._evaluate_rows import evaluate_rows

            result = evaluate_rows(classifier, source, target, batch_size)
        else:
            hint = f"{model} is a model of documents, not of tables"
            documents = source.documents(text_column, label_column, hint)
            result = _evaluate_documents(classifier, documents, batch_size)
    else:
        refuse(of_text, "is for documents, and --cv for tables")
        if target is None:
            raise OptionError("--cv is for tables: add --target NAME")
        source = Source.of([model, *(data or [])], format, max_size)
        source.check()
        with leaving_at_once:
            from ._evaluate_rows import cross_validate
            from ._tables import Roles, families_of

        roles = Roles.of(None, target, id_column)
        families = families_of(family or [], ignore or [], roles)
        result, accuracies = cross_validate(source, roles, families, cv, seed)
    if not result.documents:
        raise InputError(f"none of the {result.unlabelled:,} {result.noun}s has a label")
    if as_json:
        more = {"parts": accuracies} if accuracies else {}
        typer.echo(to_json(result.summary() | more))
    else:
        _show_evaluation(result, accuracies)


def _evaluate_documents(
    model: TextClassifier, documents: Iterator[Document], batch_size: int
) -> Evaluation:
    from ..report.evaluation import Evaluation

    result = Evaluation(class_names(model))
    with Meter() as meter:
        for batch, log_proba in scored(model, documents, batch_size, meter):
            result.add([label for label, _ in batch], log_proba)
    return result


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
