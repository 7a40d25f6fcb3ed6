"""Training as commands do it: what has been learnt is saved, whatever ends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ..exceptions import DiscemError, EngineError, InputError
from ._interrupts import Interrupts, Stopped
from ._screen import Meter, Pace, Warnings, counted

Batch = TypeVar("Batch")


class Sizes(NamedTuple):
    """Of a stream: how many documents or rows are taken at a time, and how many before a save."""

    batch: int
    save_every: int


class Learnt(NamedTuple):
    """What came of a batch: how many rows it had, the loss, and the accuracy so far if known."""

    rows: int
    loss: float
    accuracy: float | None


class Job:
    """A model that is trained and goes to a file."""

    def __init__(
        self,
        model: Any,
        output: Path,
        interrupts: Interrupts,
        *,
        noun: str = "document",
        roles: dict[str, str] | None = None,
    ):
        self.model, self.output, self.interrupts, self.noun = model, output, interrupts, noun
        self.roles = roles or {}
        self.learnt = self.saved = 0
        self.warnings = Warnings(noun)

    def whole(self, fit: Callable[[], Any]) -> None:
        """Call `fit` and save the model; if a signal ends it, what there is of the model."""
        model, interrupts = self.model, self.interrupts
        try:
            with self.warnings.told():
                fit()
        except BaseException as error:  # libraries make errors of all kinds of a signal
            learnt = model.__sklearn_is_fitted__() and model.history_  # an epoch at least
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

    def stream(
        self,
        batches: Iterator[Batch],
        teach: Callable[[Batch], Learnt],
        save_every: int,
        meter: Meter,
    ) -> None:
        """Teach one batch after the other; the model in the file is never far behind."""
        pace = Pace(meter, f"{self.noun}s", self.noun)
        try:
            for batch in batches:
                with self.interrupts.held():
                    with self.warnings.told():
                        learnt = teach(batch)
                    self.learnt += learnt.rows
                    if self.learnt - self.saved >= save_every:
                        self.save()
                    pace.passed(learnt.rows, loss=learnt.loss, accuracy=learnt.accuracy)
            with self.interrupts.finishing():
                self.save()
        except Stopped as stopped:
            raise Stopped(stopped.signum, self._keep()) from None
        except DiscemError as error:
            raise InputError(f"{error}; {self._keep()}") from error

    def save(self) -> None:
        from ..report._output import OutputError

        if self.roles:
            self.model.roles_.update(self.roles)
        try:
            self.model.save(self.output)
        except OSError as error:
            raise OutputError(f"cannot write to {self.output}: {error.strerror}") from error
        self.saved = self.learnt

    def _keep(self) -> str:
        """Save what can be saved, and say what there is."""
        if self.learnt > self.saved and not self.interrupts.cut:
            self.save()
        if not self.saved:
            return "nothing saved"
        return f"{self.output} has learnt the first {self.saved:,} of these {self.noun}s"


def check_labels(labels: Counter[str | None], noun: str, loss: Any) -> None:
    """See that there is something to tell apart."""
    classes = set(labels) - {None}
    if not classes:
        raise InputError(f"none of the {counted(labels.total(), noun)} has a label")
    if len(classes) == 1 and loss != "nll":
        raise InputError(
            f"there is no label but {classes.pop()!r}, which leaves nothing to tell apart: add "
            f"{noun}s of other classes, or fit with --loss nll or --stream"
        )


def check_first_labels(labels: list[str | None], noun: str) -> None:
    """See that a stream begins with a label."""
    if not any(labels):
        raise InputError(
            f"none of the first {counted(len(labels), noun)} has a label: a stream should begin "
            f"with {noun}s that have one"
        )
