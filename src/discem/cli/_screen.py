"""What commands show: where the work is, and tables."""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich import progress as bars
from rich.console import Console
from rich.table import Table

from ..exceptions import SortedStreamWarning

_SECONDS_BETWEEN_LINES = 5.0
_SURROGATES = re.compile("[\ud800-\udfff]")


def screen(file: Any = None) -> Console:
    """A console that takes text as it is: labels and words may look like markup."""
    return Console(file=file, markup=False, emoji=False, highlight=False)


def one_line(text: str) -> str:
    """The text on one line, and without what a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)


def escaped(text: str) -> str:
    """The same for messages, in which a name should be told from another."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(n: int, noun: str) -> str:
    """A number and what it is of: 1 class, 2 classes."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else plural}"


def duration(seconds: float) -> str:
    """Seconds in words: 8 s, 12 min, 3.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def to_json(record: dict[str, Any]) -> str:
    """One JSON line; a label of a model from elsewhere may hold what UTF-8 cannot."""
    text = json.dumps(record, ensure_ascii=False)
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def show_parts(
    title: str, part: str, figure: str, rows: list[tuple[str, str]], total: str = ""
) -> None:
    """Print what each part adds, and their sum."""
    table = Table(part)
    table.add_column(figure, justify="right")
    for name, value in rows:
        table.add_row(one_line(name), value)
    if total:
        table.add_section()
        table.add_row("sum", total)
    console = screen()
    console.print(one_line(title), soft_wrap=True)
    console.print(table)


def plain_cell(cell: Any) -> Any:
    """A cell as JSON has it; a date, say, is a text."""
    return cell if isinstance(cell, str | int | float | None) else str(cell)


def note(text: str) -> None:
    """A line on stderr besides the work, which does not end for want of a place to tell of it."""
    with suppress(OSError):
        print(f"discem: {escaped(text)}", file=sys.stderr, flush=True)


class Warnings:
    """Says what the library warns of, each thing once, in the words of the shell."""

    def __init__(self, noun: str = "document"):
        self.noun, self.known = noun, set[str]()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Say it when the block has ended well."""
        with warnings.catch_warnings(record=True) as caught:
            yield
        for each in caught:
            message = str(each.message).replace("max_iter=", "--epochs ").split(", or set tol=")[0]
            if issubclass(each.category, SortedStreamWarning):
                message = (
                    "the labels of this stream come in long runs, and with every run the model "
                    f"forgets what came before: shuffle the {self.noun}s, or fit with --loss nll, "
                    "to which their order does not matter"
                )
            self.once(message)

    def once(self, text: str) -> None:
        if text not in self.known:
            self.known.add(text)
            note(text)


class Meter:
    """Where the work is, on stderr: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, lines: bool = False, bar: bool = True):
        console = Console(stderr=True)
        moving = bar and console.is_terminal
        self.lines = lines and not moving
        self.last = time.monotonic()
        self.bar = bars.Progress(
            bars.BarColumn(bar_width=24),
            bars.TaskProgressColumn(),
            bars.TimeElapsedColumn(),
            bars.TextColumn("{task.description}", markup=False),
            bars.TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not moving,
        )
        self.task = self.bar.add_task("loading", total=None)

    def __enter__(self) -> Meter:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def tell(
        self,
        step: str,
        share: float | None = None,
        loss: float | None = None,
        *,
        rate: float | None = None,
        accuracy: float | None = None,
        noun: str = "document",
    ) -> None:
        """Show the step, the share of all work done (if known), and how fast and good it is."""
        text = step
        if rate is not None:
            text += f"  {rate:,.0f} {noun}s/s"
        if loss is not None:
            text += f"  loss {loss:.4f}"
        if accuracy is not None:
            text += f"  accuracy {accuracy:.4f}"
        total = None if share is None else 1.0
        self.bar.update(self.task, description=text, completed=share or 0.0, total=total)
        now = time.monotonic()
        if self.lines and now - self.last >= _SECONDS_BETWEEN_LINES:
            self.last = now
            note(text)


class Pace:
    """Tells a meter of documents, or rows, as they are counted."""

    def __init__(
        self, meter: Meter, step: str, noun: str = "document", expected: float | None = None
    ):
        self.meter, self.step, self.noun, self.expected = meter, step, noun, expected
        self.count, self.begun = 0, time.monotonic()

    def passed(self, count: int, **figures: float | None) -> None:
        self.count += count
        rate = self.count / max(time.monotonic() - self.begun, 1e-9)
        text, share = f"{self.step} {self.count:,}", None
        if self.expected and self.count <= self.expected:
            share = self.count / self.expected
            left = (self.expected - self.count) / rate
            text += f" of about {self.expected:,.0f}, {duration(left)} left"
        self.meter.tell(text, share, rate=rate, noun=self.noun, **figures)
