"""``discem evaluate``: predictions beside the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.table import Table

from ..exceptions import InputError
from ..io.documents import read_documents
from ._models import class_names, load_model, scored
from ._options import AsJson, BatchSize, Data, Format, LabelColumn, MaxSize, ModelFile, TextColumn
from ._screen import Meter, counted, one_line, screen, to_json

if TYPE_CHECKING:
    from ..report.evaluation import Evaluation

_SHOWN_CONFUSIONS = 10


def evaluate(
    model: ModelFile,
    data: Data,
    format: Format = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    as_json: AsJson = False,
    batch_size: BatchSize = 1000,
    max_size: MaxSize = 64,
) -> None:
    """Compare predictions with the labels of documents that were not trained on."""
    documents = read_documents(
        data, format=format, text=text_column, label=label_column, max_size=max_size
    )
    classifier = load_model(model)
    from ..report.evaluation import Evaluation

    result = Evaluation(class_names(classifier))
    with Meter() as meter:
        for batch, log_proba in scored(classifier, documents, batch_size, meter):
            result.add([label for label, _ in batch], log_proba)
    if not result.documents:
        raise InputError(f"none of the {result.unlabelled:,} documents has a label")
    if as_json:
        typer.echo(to_json(result.summary()))
    else:
        _show_evaluation(result)


def _show_evaluation(result: Evaluation) -> None:
    console = screen()
    classes = Table("class", title="Classes")
    for name in ("precision", "recall", "F1", "documents"):
        classes.add_column(name, justify="right")
    for score in result.by_class():
        figures = (score.precision, score.recall, score.f1)
        shown = ["-" if figure is None else f"{figure:.3f}" for figure in figures]
        classes.add_row(one_line(score.label), *shown, f"{score.support:,}")
    console.print(classes)
    if confusions := result.confusions(_SHOWN_CONFUSIONS):
        wrong = Table("class", "taken for", title="Most frequent confusions")
        wrong.add_column("documents", justify="right")
        for label, found, times in confusions:
            wrong.add_row(one_line(label), one_line(found), f"{times:,}")
        console.print(wrong)
    log_loss = "-" if result.log_loss is None else f"{result.log_loss:.4f}"
    console.print(
        f"accuracy {result.accuracy:.4f}  log-loss {log_loss}  macro-F1 {result.macro_f1:.4f}  "
        f"documents {result.documents:,}",
        soft_wrap=True,
    )
    if result.unlabelled:
        console.print(
            f"skipped: {counted(result.unlabelled, 'document')} without a label", soft_wrap=True
        )
    if result.unknown:
        counts = ", ".join(f"{one_line(name)} ({n:,})" for name, n in result.unknown.items())
        console.print(
            f"errors because the model does not know the label (not in the log-loss): {counts}",
            soft_wrap=True,
        )
