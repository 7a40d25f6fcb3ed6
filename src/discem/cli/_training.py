"""Training in commands: what has been learnt is saved, however the command ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.table import Table

from ..exceptions import DiscemError, EngineError, InputError
from ._interrupts import Interrupts, Stopped
from ._reader import Batch, Reader
from ._screen import Meter, Pace, counted, one_line, screen

_COLUMNS = 60  # that are shown
_CHOSEN = {
    "n_components": "components",
    "loss": "loss",
    "weighting": "weighting",
    "ngram_range": "n-grams",
    "hide": "hide",
    "missing": "missing",
    "prior_strength": "prior strength",
    "temperature": "temperature",
    "epochs": "epochs",
}


class Job:
    """A model that is trained on the input of a reader, and saved to a file."""

    def __init__(self, model: Any, output: Path, interrupts: Interrupts, reader: Reader):
        self.model, self.output, self.interrupts, self.reader = model, output, interrupts, reader
        self.learnt = self.saved = 0

    def whole(self, fit: Callable[[], Any], translated: AbstractContextManager[None]) -> None:
        """Call `fit` and save the model; after a signal, save what was learnt so far."""
        model, interrupts = self.model, self.interrupts
        try:
            with translated, self.reader.warnings.translated():
                fit()
        except BaseException as error:  # libraries turn a signal into all kinds of errors
            learnt = model.__sklearn_is_fitted__() and model.history_  # at least one epoch
            gone = isinstance(error, EngineError)  # workers, say
            if not (interrupts.received or gone) or not learnt:
                raise
            with interrupts.held():
                self.save()
            kept = f"{self.output} has the model trained so far"
            if not interrupts.received:
                raise EngineError(f"{error}; {kept}") from error
            raise Stopped(interrupts.received, kept) from error
        with interrupts.finishing():
            self.save()

    def stream(self, size: int, save_every: int, teach: Callable[[Batch], float | None]) -> None:
        """Teach one batch after the other, and save the model regularly.

        `teach` returns the accuracy so far, if known.
        """
        noun, reader = self.reader.noun, self.reader
        resumed = self.model.__sklearn_is_fitted__()
        from ..io.seen import Trail

        reader.trail = trail = Trail(self.model.files_ if resumed else {})
        try:
            with Meter(lines=True) as meter:
                expected = reader.source.expected()
                if expected is not None:
                    expected -= trail.rows(reader.source.data)
                pace = Pace(meter, f"{noun}s", noun, expected)
                for batch in reader.batches(size, "required"):
                    with self.interrupts.held():
                        with batch.translated():
                            accuracy = teach(batch)
                        trail.learnt(batch.origin)
                        self.learnt += len(batch)
                        if self.learnt - self.saved >= save_every:
                            self.save()
                        loss = self.model.history_[-1]["loss"]
                        pace.passed(len(batch), loss=loss, accuracy=accuracy)
            with self.interrupts.finishing():
                trail.end()
                self.save()
        except Stopped as stopped:
            raise Stopped(stopped.signum, self._keep()) from None
        except DiscemError as error:
            raise InputError(f"{error}; {self._keep()}") from error

    def save(self) -> None:
        from ..report._output import OutputError

        self.model.roles_.update(self.reader.roles())
        if self.reader.trail is not None:
            self.model.files_.update(self.reader.trail.known)
        try:
            self.model.save(self.output)
        except OSError as error:
            raise OutputError(f"cannot write to {self.output}: {error.strerror}") from error
        self.saved = self.learnt

    def _keep(self) -> str:
        """Save the model if possible; return a message that says what was saved."""
        if self.learnt > self.saved and not self.interrupts.cut:
            self.save()
        if not self.saved:
            return "nothing saved"
        return f"{self.output} has learnt the first {self.saved:,} of these {self.reader.noun}s"


def train(job: Job, client: Any = None) -> str:
    """Train on all data, here or on the workers of a client; return a summary."""
    model, reader = job.model, job.reader
    with Meter(lines=True) as meter:
        data = reader.on_workers(client, meter) if client else reader.whole(meter)
    if client is not None:
        from .. import Dask

        model.engine = Dask(client)
    _show_columns(data.families or {})

    def show(model: Any, record: dict[str, Any]) -> None:
        share = rate = None
        if record["stage"] == "fit":
            share = record["epoch"] / getattr(model.model_, "max_iter", model.max_iter)
            rate = data.n / max(record["seconds"], 1e-9)
        meter.tell(step_of(record), share, record["loss"], rate=rate, noun=reader.noun)

    model.callback = show
    with Meter(lines=True) as meter:
        meter.tell(f"beginning with {counted(data.n, reader.noun)}")
        job.whole(lambda: model.fit(data.X, data.y), data.translated())
    if data.families is None:
        _show_columns(getattr(model, "families_", {}))
    return _counts(job, data.n) + _chosen(model)


def train_on_stream(job: Job, size: int, save_every: int) -> str:
    """Train on one batch after the other; return a summary."""
    model, reader = job.model, job.reader
    resumed = model.__sklearn_is_fitted__()
    progress = _Progress(reader)

    def teach(batch: Batch) -> float | None:
        if model.__sklearn_is_fitted__():
            progress.add(batch)
        else:
            reader.check_first_labels(batch.labels)
        model.partial_fit(batch.X, batch.labels)
        return progress.accuracy

    job.stream(size, save_every, teach)
    if not resumed:
        _show_columns(getattr(model, "families_", {}))
    message, accuracy = _counts(job, reader.learnt), progress.accuracy
    return message if accuracy is None else f"{message}, progressive accuracy {accuracy:.4f}"


class _Progress:
    """Count correct predictions of rows before they are learnt.

    A model of text counts these itself, over all its streams.
    """

    def __init__(self, reader: Reader):
        self.model, self.answers = reader.model, reader.answers
        self.counts = not hasattr(type(reader.model), "progressive_accuracy_")
        self.right = self.labelled = 0

    def add(self, batch: Batch) -> None:
        if self.counts:
            hits = self.answers.hits(batch)
            self.right, self.labelled = self.right + sum(hits), self.labelled + len(hits)

    @property
    def accuracy(self) -> float | None:
        if not self.counts:
            return getattr(self.model, "progressive_accuracy_", None)  # of labelled rows
        return self.right / self.labelled if self.labelled else None


# --- what is told ---------------------------------------------------------------------------------


def step_of(record: dict[str, Any]) -> str:
    """Return what an epoch is for."""
    density = " of the density" if record["stage"] == "density" else ""
    return record.get("choice") or f"epoch {record['epoch']}{density}"


def _show_columns(families: dict[Any, str]) -> None:
    if not families:
        return
    console, table = screen(), Table("column", "taken for", "because")
    for name, family_and_why in list(families.items())[:_COLUMNS]:
        family, _, why = family_and_why.partition(": ")
        table.add_row(one_line(str(name)), family, why)
    console.print(table)
    if len(families) > _COLUMNS:
        console.print(f"and {len(families) - _COLUMNS:,} columns more", soft_wrap=True)


def _chosen(model: Any) -> str:
    """Return the options that training used."""
    chosen, text = model.chosen_, ""
    for name, called in _CHOSEN.items():
        if name in chosen:
            value = chosen[name]
            text += f", {called} {value:.3g}" if isinstance(value, float) else f", {called} {value}"
    if model.choice_:
        text += f"; the best of {len(model.choice_)} on {chosen['held_out']:,} held out"
    return text


def _counts(job: Job, count: int) -> str:
    return f"{counted(count, job.reader.noun)}, {job.reader.answers.summary()}"
