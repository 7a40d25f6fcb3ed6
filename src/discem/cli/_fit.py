"""``discem fit``: a model from files, in memory or as a stream."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..exceptions import DiscemError, InputError, OptionError
from ..io.documents import Document, batches, read_documents
from ._interrupts import Interrupts, Stopped
from ._models import load_model
from ._options import BatchSize, Data, Format, LabelColumn, TextColumn
from ._screen import Meter, Pace

if TYPE_CHECKING:
    from .. import TextClassifier


def fit(
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL", help="The model file to write."),
    ],
    format: Format = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    loss: Annotated[
        str | None, typer.Option(help="auto, ncll, hinge or nll.", show_default="auto")
    ] = None,
    weighting: Annotated[
        str | None, typer.Option(help="auto, counts, presence or tfidf.", show_default="auto")
    ] = None,
    ngrams: Annotated[
        str | None,
        typer.Option(metavar="N or M-N", help="Words and sequences of up to N.", show_default="1"),
    ] = None,
    min_df: Annotated[
        str | None,
        typer.Option(
            "--min-df",
            metavar="N",
            help="Ignore words in fewer documents: a count, or a share such as 0.01.",
            show_default="1",
        ),
    ] = None,
    hash: Annotated[
        int | None,
        typer.Option(
            "--hash",
            min=1,
            metavar="N",
            help="Hash words into N columns: bounded memory.",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="At most so many passes.", show_default="auto")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, show_default="0")] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(help="balanced: every class counts the same.", show_default=False),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="One pass in the order given, in little memory.")
    ] = False,
    batch_size: BatchSize = 1000,
    save_every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Save a stream's model every N documents.")
    ] = 100_000,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Go on with this model of a stream; DATA is what it has not seen.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Train a classifier on labelled documents and write it to a file.

    Ctrl-C keeps what has been learnt so far.
    """
    options = {
        "loss": loss,
        "weighting": weighting,
        "ngram_range": None if ngrams is None else _lengths(ngrams),
        "min_df": None if min_df is None else _number(min_df),
        "n_features": hash,
        "max_iter": epochs,
        "random_state": seed,
        "class_weight": class_weight,
    }
    options = {name: value for name, value in options.items() if value is not None}
    _check(options, stream, resume)
    _check_output(output)
    documents = read_documents(data, format=format, text=text_column, label=label_column)
    with Interrupts() as interrupts, Meter(lines=True) as meter:
        if stream:
            model = load_model(resume) if resume else _new(options)
            job = _Stream(model, output, interrupts, meter)
            job.learn(documents, batch_size, save_every)
        else:
            model = _fit_in_memory(options, documents, output, interrupts, meter)
    typer.echo(f"{output}: {_summary(model, stream)}")


def _check(options: dict[str, Any], stream: bool, resume: Path | None) -> None:
    if options.get("class_weight", "balanced") != "balanced":
        raise OptionError(f"--class-weight {options['class_weight']}: there is only 'balanced'")
    if resume and not stream:
        raise OptionError("--resume goes on with a stream: add --stream")
    if stream and "max_iter" in options:
        raise OptionError("--stream is one pass: leave out --epochs")
    if resume and options:
        raise OptionError(
            f"--resume takes the options of the model: leave out those for {', '.join(options)}"
        )


def _check_output(output: Path) -> None:
    """Fail before the work, not after it."""
    from ..report._output import output_file

    output_file(output)


def _lengths(text: str) -> tuple[int, int]:
    low, dash, high = text.partition("-")
    try:
        lengths = (int(low), int(high)) if dash else (1, int(low))
    except ValueError:
        lengths = (0, 0)
    if not 1 <= lengths[0] <= lengths[1]:
        raise OptionError(f"--ngrams {text}: expected a length such as 2, or a range such as 1-3")
    return lengths


def _number(text: str) -> int | float:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise OptionError(f"--min-df {text}: expected a count, or a share with a point") from None


def _new(options: dict[str, Any], **more: Any) -> TextClassifier:
    from .. import TextClassifier

    return TextClassifier(**{"random_state": 0} | options, **more)


def _save(model: TextClassifier, output: Path) -> None:
    from ..report._output import OutputError

    try:
        model.save(output)
    except OSError as error:
        raise OutputError(f"cannot write to {output}: {error.strerror}") from error


def _summary(model: TextClassifier, stream: bool) -> str:
    """What was learnt, how, and how well as far as that is known."""
    told = f"{model.n_documents_:,} documents, {len(model.classes_):,} classes"
    chosen = model.chosen_
    if stream:
        return f"{told}, progressive accuracy {model.progressive_accuracy_:.4f}"
    told += f", loss {chosen['loss']}, weighting {chosen['weighting']}, epochs {chosen['epochs']}"
    for trial in chosen.get("trials", []):
        if (trial["loss"], trial["weighting"]) == (chosen["loss"], chosen["weighting"]):
            told += f"; accuracy {trial['accuracy']:.4f} on {chosen['held_out']:,} held out"
    return told


def _fit_in_memory(
    options: dict[str, Any],
    documents: Iterator[Document],
    output: Path,
    interrupts: Interrupts,
    meter: Meter,
) -> TextClassifier:
    labels: list[str | None] = []
    texts: list[str] = []
    pace = Pace(meter, "reading")
    for batch in batches(documents, 1000):
        labels += [document.label for document in batch]
        texts += [document.text for document in batch]
        pace.passed(len(batch))

    def show(model: TextClassifier, record: dict[str, Any]) -> None:
        final = record["stage"] == "fit"
        step = f"epoch {record['epoch']}" + ("" if final else " of a trial")
        share = record["epoch"] / model.model_.max_iter if final else None
        rate = len(texts) / max(record["seconds"], 1e-9)
        meter.tell(step, share, record["loss"], rate=rate)

    meter.tell(f"counting words of {len(texts):,} documents")
    model = _new(options, callback=show)
    try:
        model.fit(texts, labels)
    except Stopped as stopped:
        if not model.__sklearn_is_fitted__():
            raise
        with interrupts.held():
            _save(model, output)
        raise Stopped(stopped.signum, f"{output} has the model trained so far") from None
    with interrupts.held():
        _save(model, output)
    return model


class _Stream:
    """One pass over documents, of which the model in the file is never far behind."""

    def __init__(
        self, model: TextClassifier, output: Path, interrupts: Interrupts, meter: Meter
    ) -> None:
        self.model, self.output, self.interrupts = model, output, interrupts
        self.pace = Pace(meter, "documents")
        self.learnt = self.saved = 0

    def learn(self, documents: Iterator[Document], batch_size: int, save_every: int) -> None:
        try:
            for batch in batches(documents, batch_size):
                with self.interrupts.held():
                    self._take(batch, save_every)
            with self.interrupts.held():
                self._save()
        except Stopped as stopped:
            raise Stopped(stopped.signum, self._keep()) from None
        except DiscemError as error:
            raise InputError(f"{error}; {self._keep()}") from error

    def _take(self, batch: list[Document], save_every: int) -> None:
        model = self.model
        with warnings.catch_warnings(record=True) as caught:
            model.partial_fit([text for _, text in batch], [label for label, _ in batch])
        for each in caught:
            print(f"discem: {each.message}", file=sys.stderr, flush=True)
        self.learnt += len(batch)
        if self.learnt - self.saved >= save_every:
            self._save()
        loss, accuracy = model.history_[-1]["loss"], model.progressive_accuracy_
        self.pace.passed(len(batch), loss=loss, accuracy=accuracy)

    def _save(self) -> None:
        _save(self.model, self.output)
        self.saved = self.learnt

    def _keep(self) -> str:
        """Save what can be saved, and say what there is."""
        if self.learnt > self.saved and not self.interrupts.cut:
            self._save()
        if not self.saved:
            return "nothing saved"
        return f"{self.output} has learnt the first {self.saved:,} of these documents"
