"""``discem fit``: a model from files, in memory or as a stream."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..exceptions import (
    DiscemError,
    InputError,
    OptionError,
    SortedStreamWarning,
)
from ..io.documents import STDIN, Document, batches, read_documents
from ._interrupts import Interrupts, Stopped
from ._models import load_model, opened
from ._options import Data, Format, LabelColumn, MaxSize, TextColumn
from ._screen import Meter, Pace, counted
from ._start import leaving_at_once

if TYPE_CHECKING:
    from .. import TextClassifier

_BATCH_SIZE = 1000
_SAVE_EVERY = 100_000
_PARAMETERS = {
    "--loss": "loss",
    "--weighting": "weighting",
    "--ngrams": "ngram_range",
    "--min-df": "min_df",
    "--hash": "n_features",
    "--epochs": "max_iter",
    "--seed": "random_state",
    "--class-weight": "class_weight",
}  # of `TextClassifier`, by what they are called here

Loss = Enum(
    "Loss", {"auto": "auto", "ncll": "ncll", "hinge": "hinge", "nll": "nll", "blend": "blend"}
)
Weighting = Enum(
    "Weighting",
    {"auto": "auto", "tfidf": "tfidf", "presence": "presence", "counts": "counts"},
)
ClassWeight = Enum("ClassWeight", {"balanced": "balanced"})


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
        Loss | None, typer.Option(help="What training minimises.", show_default="auto")
    ] = None,
    weighting: Annotated[
        Weighting | None,
        typer.Option(help="What a word counts in a document.", show_default="auto"),
    ] = None,
    ngrams: Annotated[
        str | None,
        typer.Option(
            metavar="N or M-N",
            help="Count sequences of up to N words, or of M to N.",
            show_default="1",
        ),
    ] = None,
    min_df: Annotated[
        str | None,
        typer.Option(
            "--min-df",
            metavar="N",
            help="Ignore words that are in fewer documents: a count, or a share such as 0.01.",
            show_default="1",
        ),
    ] = None,
    hash: Annotated[
        int | None,
        typer.Option(
            "--hash",
            min=1,
            max=2**31 - 1,
            metavar="N",
            help="Hash words into N columns, which bounds the memory.",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Passes over the documents, at most.", show_default="auto"
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=2**32 - 1,
            metavar="N",
            help="Seed of everything random.",
            show_default="0",
        ),
    ] = None,
    class_weight: Annotated[
        ClassWeight | None,
        typer.Option(help="Give all classes the same weight.", show_default=False),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Take one pass in the order given, in little memory.")
    ] = False,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Documents of a stream to take at a time.",
            show_default=str(_BATCH_SIZE),
        ),
    ] = None,
    save_every: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Save the model of a stream every N documents.",
            show_default=str(_SAVE_EVERY),
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Continue the stream of this model; DATA is what it has not seen.",
            show_default=False,
        ),
    ] = None,
    max_size: MaxSize = 64,
) -> None:
    """Train a classifier on labelled documents and write it to a file.

    Ctrl-C saves what has been learnt so far.
    """
    given = {
        "--loss": loss and loss.value,
        "--weighting": weighting and weighting.value,
        "--ngrams": None if ngrams is None else _lengths(ngrams),
        "--min-df": None if min_df is None else _number(min_df),
        "--hash": hash,
        "--epochs": epochs,
        "--seed": seed,
        "--class-weight": class_weight and class_weight.value,
    }
    given = {flag: value for flag, value in given.items() if value is not None}
    for_streams = {"--batch-size": batch_size, "--save-every": save_every, "--resume": resume}
    _check(given, stream, [flag for flag, value in for_streams.items() if value is not None])
    documents = read_documents(
        data, format=format, text=text_column, label=label_column, max_size=max_size
    )
    _check_output(output, data)
    with leaving_at_once:
        from .. import TextClassifier  # noqa: F401  the rest takes a second or two to load
    options = {_PARAMETERS[flag]: value for flag, value in given.items()}
    model = load_model(resume) if resume else _new(options)
    with Interrupts() as interrupts, Meter(lines=True) as meter:
        if stream:
            job = _Stream(model, output, interrupts, meter)
            job.learn(documents, batch_size or _BATCH_SIZE, save_every or _SAVE_EVERY)
        else:
            _fit_in_memory(model, documents, output, interrupts, meter)
        typer.echo(f"{output}: {_summary(model, stream)}")


def _check(given: dict[str, Any], stream: bool, for_streams: list[str]) -> None:
    if for_streams and not stream:
        raise OptionError(f"{for_streams[0]} is for streams: add --stream")
    if stream and "--epochs" in given:
        raise OptionError("--stream takes one pass: leave out --epochs")
    if "--resume" in for_streams and given:
        raise OptionError(f"--resume takes the options of the model: leave out {', '.join(given)}")
    if "--min-df" in given and (stream or "--hash" in given):
        other = "--stream" if stream else "--hash"
        raise OptionError(f"--min-df needs words that are known beforehand: leave out {other}")


def _check_output(output: Path, data: list[str]) -> None:
    """Fail before the work, not after it."""
    from ..report._output import OutputError, output_file

    if str(output) == STDIN:
        raise OutputError("cannot write a model to standard output: name a file")
    output_file(output, opened(data))


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
        number = float(text) if "." in text else int(text)
    except ValueError:
        number = -1
    if not (0 <= number <= 1 if isinstance(number, float) else number >= 1):
        raise OptionError(f"--min-df {text}: expected a count, or a share such as 0.01")
    return number


def _new(options: dict[str, Any]) -> TextClassifier:
    from .. import TextClassifier

    return TextClassifier(**{"random_state": 0} | options)


def _save(model: TextClassifier, output: Path) -> None:
    from ..report._output import OutputError

    try:
        model.save(output)
    except OSError as error:
        raise OutputError(f"cannot write to {output}: {error.strerror}") from error


def _summary(model: TextClassifier, stream: bool) -> str:
    """What was learnt, how, and how well as far as that is known."""
    told = f"{counted(model.n_documents_, 'document')}, {counted(len(model.classes_), 'class')}"
    chosen = model.chosen_
    if stream:
        accuracy = _progressive_accuracy(model)
        return told if accuracy is None else f"{told}, progressive accuracy {accuracy:.4f}"
    told += f", loss {chosen['loss']}, weighting {chosen['weighting']}, epochs {chosen['epochs']}"
    for trial in chosen.get("trials", []):
        if (trial["loss"], trial["weighting"]) == (chosen["loss"], chosen["weighting"]):
            told += f"; accuracy {trial['accuracy']:.4f} on {chosen['held_out']:,} held out"
    return told


def _progressive_accuracy(model: TextClassifier) -> float | None:
    """That of the documents with a label, if there have been any."""
    return getattr(model, "progressive_accuracy_", None)


def _fit_in_memory(
    model: TextClassifier,
    documents: Iterator[Document],
    output: Path,
    interrupts: Interrupts,
    meter: Meter,
) -> None:
    labels: list[str | None] = []
    texts: list[str] = []
    pace = Pace(meter, "reading")
    for batch in batches(documents, 1000):
        labels += [document.label for document in batch]
        texts += [document.text for document in batch]
        pace.passed(len(batch))
    _check_labels(labels, model)

    def show(model: TextClassifier, record: dict[str, Any]) -> None:
        final = record["stage"] == "fit"
        step = f"epoch {record['epoch']}" + ("" if final else " of a trial")
        share = record["epoch"] / model.model_.max_iter if final else None
        rate = len(texts) / max(record["seconds"], 1e-9)
        meter.tell(step, share, record["loss"], rate=rate)

    meter.tell(f"counting words of {len(texts):,} documents")
    model.callback = show
    try:
        model.fit(texts, labels)
    except BaseException as error:  # libraries make errors of all kinds of a signal
        if "min_df" in str(error):
            raise OptionError(
                f"--min-df {model.min_df}: no word is in so many documents"
            ) from error
        learnt = model.__sklearn_is_fitted__() and model.history_  # an epoch at least
        if not interrupts.received or not learnt:
            raise
        with interrupts.held():
            _save(model, output)
        kept = f"{output} has the model trained so far"
        raise Stopped(interrupts.received, kept) from error
    with interrupts.finishing():
        _save(model, output)


def _check_labels(labels: list[str | None], model: TextClassifier) -> None:
    classes = set(labels) - {None}
    if not classes:
        raise InputError(f"none of the {counted(len(labels), 'document')} has a label")
    if len(classes) == 1 and model.loss != "nll":
        raise InputError(
            f"there is no label but {classes.pop()!r}, which leaves nothing to tell apart: add "
            "documents of other classes, or fit with --loss nll or --stream"
        )
    if isinstance(model.min_df, int) and model.min_df > len(labels):
        raise OptionError(f"--min-df {model.min_df}: there are only {len(labels):,} documents")


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
            with self.interrupts.finishing():
                self._save()
        except Stopped as stopped:
            raise Stopped(stopped.signum, self._keep()) from None
        except DiscemError as error:
            raise InputError(f"{error}; {self._keep()}") from error

    def _take(self, batch: list[Document], save_every: int) -> None:
        model = self.model
        labels = [label for label, _ in batch]
        if not (model.__sklearn_is_fitted__() or any(labels)):
            raise InputError(
                f"none of the first {counted(len(labels), 'document')} has a label: a stream "
                "should begin with documents that have one"
            )
        with warnings.catch_warnings(record=True) as caught:
            model.partial_fit([text for _, text in batch], labels)
        for each in caught:
            self._warn(each)
        self.learnt += len(batch)
        if self.learnt - self.saved >= save_every:
            self._save()
        loss, accuracy = model.history_[-1]["loss"], _progressive_accuracy(model)
        self.pace.passed(len(batch), loss=loss, accuracy=accuracy)

    def _warn(self, warning: warnings.WarningMessage) -> None:
        told = str(warning.message)
        if issubclass(warning.category, SortedStreamWarning):
            told = (
                "the labels of this stream come in long runs, and with every run the model "
                "forgets what came before: shuffle the documents, or fit with --loss nll, to "
                "which their order does not matter"
            )
        with suppress(OSError):
            print(f"discem: {told}", file=sys.stderr, flush=True)

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
